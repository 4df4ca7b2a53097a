//! State of the feed: the examined entries, the newest events, and the groups of clients.

use std::sync::Arc;
use std::task::Waker;

use axum::body::Bytes;
use forewarn_store::LoggedEntry;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use super::super::seen_entries::SeenEntries;
use super::event::{StreamEvent, missed};
use super::filter::EntryFilter;
use super::group::{MemberId, NextChunk};
use super::groups::{GroupId, Groups};
use super::log_pages::LogPage;
use super::recent::RecentEvents;

/// Bytes after which a chunk ends. An event is never split.
pub(super) const CHUNK_BYTES_MAX: usize = 16 << 10;

/// Text for a stream without entries.
const COMMENT: &[u8] = b":\n\n";

/// State of the feed.
#[derive(Debug)]
pub(super) struct FeedState {
    entries: broadcast::Receiver<LoggedEntry>,
    /// The examined entries.
    seen: SeenEntries,
    recent: RecentEvents,
    groups: Groups,
    renderings: Counter,
    /// The broadcast has dropped entries. They precede those that it still has.
    is_lagging: bool,
    is_closed: bool,
}

/// The place of a client in a group.
pub(super) type Place = (GroupId, MemberId);

/// Result of an attempt to join a group.
#[derive(Debug)]
pub(super) enum StreamAdmission {
    /// The client has everything that the feed has examined, after this text.
    Joined(Place, Bytes),
    /// More follows after this text.
    Text(Bytes),
    /// The next entries are in the audit log, after this position.
    Log(u64),
    /// The server stops.
    Closed,
}

impl FeedState {
    /// All entries up to a position are in the audit log, and later ones are broadcast.
    pub(super) fn new(
        entries: broadcast::Receiver<LoggedEntry>,
        published: u64,
        renderings: Counter,
    ) -> Self {
        let (seen, recent) = (SeenEntries::to(published), RecentEvents::after(published));
        let (is_lagging, is_closed) = (false, false);
        Self { entries, seen, recent, groups: Groups::default(), renderings, is_lagging, is_closed }
    }

    pub(super) fn seen(&self) -> &SeenEntries {
        &self.seen
    }

    /// Takes all entries from the broadcast. Returns the clients that wait for one of them. Entries that the broadcast
    /// has dropped leave a gap, which is closed first.
    pub(super) fn drain(&mut self) -> Vec<Waker> {
        let mut batch = EntryBatch::new(&self.seen);
        while !self.is_lagging {
            match self.entries.try_recv() {
                Ok(logged) => self.add(StreamEvent::new(logged), &mut batch),
                Err(TryRecvError::Lagged(_)) => self.is_lagging = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.end(batch)
    }

    /// The position after which published entries are missing. Without clients, nothing is missing.
    pub(super) fn gap(&mut self, published: u64) -> Option<u64> {
        if self.groups.is_empty() {
            self.seen.add_all_to(published);
            self.recent.forget_to(published);
        }
        let has_gap = published > self.seen.all_to();
        self.is_lagging &= has_gap;
        has_gap.then(|| self.seen.all_to())
    }

    /// Adds entries of the audit log. Returns the clients that wait for one of them.
    pub(super) fn add_page(&mut self, page: LogPage) -> Vec<Waker> {
        let mut batch = EntryBatch::new(&self.seen);
        if page.swept > self.seen.all_to() {
            self.groups.append_to_all(&missed(SWEPT));
            self.seen.add_all_to(page.swept);
            self.recent.forget_to(page.swept);
        }
        page.events.into_iter().for_each(|event| self.add(event, &mut batch));
        self.end(batch)
    }

    /// Sends a comment to every client.
    pub(super) fn comment(&mut self) -> Vec<Waker> {
        self.groups.append_to_all(COMMENT);
        self.groups.close_chunks(&self.seen, &self.seen)
    }

    /// Begins with another audit log: all entries up to a position are in it, and later ones are broadcast. Returns the
    /// clients that wait: their streams end.
    pub(super) fn restart(
        &mut self,
        entries: broadcast::Receiver<LoggedEntry>,
        published: u64,
    ) -> Vec<Waker> {
        (self.entries, self.is_lagging) = (entries, false);
        (self.seen, self.recent) = (SeenEntries::to(published), RecentEvents::after(published));
        self.groups.clear()
    }

    /// Ends all streams. Returns the clients that wait.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.is_closed = true;
        self.groups.waiting()
    }

    /// Lets a client that has these entries join the group of its filter, or gives it the next text.
    pub(super) fn admit(&mut self, filter: &Arc<EntryFilter>, seen: &mut SeenEntries) -> StreamAdmission {
        if self.is_closed {
            return StreamAdmission::Closed;
        }
        if seen.all_to() < self.recent.floor() {
            return StreamAdmission::Log(seen.all_to());
        }
        let mut text = Vec::new();
        for event in self.recent.range(seen.all_to().saturating_add(1)..) {
            if text.len() > CHUNK_BYTES_MAX {
                return StreamAdmission::Text(text.into());
            }
            append_new(event, filter, seen, &mut text, &self.renderings);
        }
        StreamAdmission::Joined(self.groups.join(filter, self.seen.clone()), text.into())
    }

    /// The next chunk of a client. None if the server stops.
    pub(super) fn take(&mut self, (group, member): Place, waker: &Waker) -> Option<NextChunk> {
        if self.is_closed {
            return None;
        }
        Some(self.groups.get_mut(group)?.take(member, waker))
    }

    pub(super) fn leave(&mut self, place: Place) {
        self.groups.leave(place);
    }

    /// Removes all chunks that wait for clients, as if they were too slow.
    #[cfg(test)]
    pub(super) fn drop_queues(&mut self) {
        self.groups.drop_queues();
    }

    /// Examines an entry. Without room beyond a missing entry, it follows from the audit log.
    fn add(&mut self, event: StreamEvent, batch: &mut EntryBatch) {
        if self.seen.contains(event.position) || !self.seen.has_room(event.position) {
            return;
        }
        self.seen.add(event.position);
        let (seen, renderings) = (&self.seen, &self.renderings);
        self.groups.append_event((event.position, &event.entry), |text| event.write(text, seen, renderings));
        batch.bytes += event.rendered_bytes();
        self.recent.add(Arc::new(event));
        if batch.bytes > CHUNK_BYTES_MAX {
            batch.waiting.extend(self.groups.close_chunks(&batch.before, &self.seen));
            (batch.bytes, batch.before) = (0, self.seen.clone());
        }
    }

    fn end(&mut self, batch: EntryBatch) -> Vec<Waker> {
        let mut waiting = batch.waiting;
        waiting.extend(self.groups.close_chunks(&batch.before, &self.seen));
        waiting
    }
}

/// Text of the event for entries that are no longer in the audit log.
pub(super) const SWEPT: &str = "older entries have been swept";

/// Entries that are added together.
struct EntryBatch {
    /// The entries that had been examined when the open chunks began.
    before: SeenEntries,
    bytes: usize,
    waiting: Vec<Waker>,
}

impl EntryBatch {
    fn new(seen: &SeenEntries) -> Self {
        Self { before: seen.clone(), bytes: 0, waiting: Vec::new() }
    }
}

/// Appends an event for one client, if it is new to the client and visible.
pub(super) fn append_new(
    event: &StreamEvent,
    filter: &EntryFilter,
    seen: &mut SeenEntries,
    text: &mut Vec<u8>,
    renderings: &Counter,
) {
    if seen.contains(event.position) {
        return;
    }
    seen.add(event.position);
    if filter.admits(&event.entry) {
        event.write(text, &*seen, renderings);
    }
}
