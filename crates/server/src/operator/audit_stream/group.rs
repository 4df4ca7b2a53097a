//! A group of clients with the same filter: one queue of chunks for all of them.
//!
//! ```text
//!   chunk 7   chunk 8   chunk 9    rendered once; removed when every member has taken it
//!      ▲                    ▲
//!      member A             member B      each member has a number: the next chunk that it takes
//! ```
//!
//! The queue has a limit of bytes. A member whose next chunk was removed is behind: it continues from the audit log.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use axum::body::Bytes;

use super::super::seen_entries::SeenEntries;

/// Number of a member.
pub(super) type MemberId = u64;

/// The clients with one filter.
#[derive(Debug, Default)]
pub(super) struct Group {
    chunks: VecDeque<Chunk>,
    /// Number of the first chunk in the queue.
    first: u64,
    bytes: usize,
    /// Events of the chunk that is being written.
    open: Vec<u8>,
    /// Position of the last entry that was added: an entry may have several topics of a group.
    last_position: u64,
    members: HashMap<MemberId, Member>,
}

#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    /// The entries that a client has after this chunk.
    seen: SeenEntries,
    /// Members that have not taken it.
    left: usize,
}

#[derive(Debug)]
struct Member {
    /// Number of the next chunk.
    next: u64,
    /// The entries that the client has.
    seen: SeenEntries,
    /// Present while the client waits.
    waker: Option<Waker>,
}

/// The next part of a member's stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextChunk {
    Chunk(Bytes),
    /// The member will be woken.
    None,
    /// The next chunk was removed. The client has these entries.
    Behind(SeenEntries),
}

impl Group {
    pub(super) fn join(&mut self, id: MemberId, seen: SeenEntries) {
        let next = self.end();
        self.members.insert(id, Member { next, seen, waker: None });
    }

    /// Removes a member. Returns true if none is left.
    pub(super) fn leave(&mut self, id: MemberId) -> bool {
        if let Some(member) = self.members.remove(&id) {
            let skipped = usize::try_from(member.next.saturating_sub(self.first)).unwrap_or(usize::MAX);
            self.chunks.iter_mut().skip(skipped).for_each(|chunk| chunk.left -= 1);
            self.remove_taken();
        }
        self.members.is_empty()
    }

    /// Begins an event, unless the entry was added before. The caller appends its text.
    pub(super) fn begin_event(&mut self, position: u64) -> Option<&mut Vec<u8>> {
        let is_new = self.last_position != position;
        self.last_position = position;
        is_new.then_some(&mut self.open)
    }

    /// Appends text that is no entry.
    pub(super) fn append(&mut self, text: &[u8]) {
        self.open.extend_from_slice(text);
    }

    /// Adds the open chunk to the queue. Returns the members that wait for it. `before` are the entries that a member
    /// without chunks in the queue has, `after` those that it has after this one.
    pub(super) fn close_chunk(
        &mut self,
        before: &SeenEntries,
        after: &SeenEntries,
        bytes_max: usize,
    ) -> Vec<Waker> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let end = self.end();
        let mut waiting = Vec::new();
        for member in self.members.values_mut() {
            if member.next == end {
                member.seen.clone_from(before);
            }
            waiting.extend(member.waker.take());
        }
        let (bytes, left) = (Bytes::from(std::mem::take(&mut self.open)), self.members.len());
        self.bytes += bytes.len();
        self.chunks.push_back(Chunk { bytes, seen: after.clone(), left });
        while self.bytes > bytes_max && self.chunks.len() > 1 {
            self.remove_first();
        }
        waiting
    }

    /// The next chunk of a member. A member without one is woken by the next.
    pub(super) fn take(&mut self, id: MemberId, waker: &Waker) -> NextChunk {
        let Some(member) = self.members.get_mut(&id) else { return NextChunk::None };
        let Some(place) = member.next.checked_sub(self.first) else {
            return NextChunk::Behind(member.seen.clone());
        };
        let Some(chunk) = usize::try_from(place).ok().and_then(|place| self.chunks.get_mut(place)) else {
            member.waker = Some(waker.clone());
            return NextChunk::None;
        };
        chunk.left -= 1;
        member.next += 1;
        member.seen.clone_from(&chunk.seen);
        let bytes = chunk.bytes.clone();
        self.remove_taken();
        NextChunk::Chunk(bytes)
    }

    /// Members that wait.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = Waker> {
        self.members.values_mut().filter_map(|member| member.waker.take())
    }

    #[cfg(test)]
    pub(super) fn drop_queue(&mut self) {
        while !self.chunks.is_empty() {
            self.remove_first();
        }
    }

    fn end(&self) -> u64 {
        self.first + u64::try_from(self.chunks.len()).unwrap_or(u64::MAX)
    }

    fn remove_taken(&mut self) {
        while self.chunks.front().is_some_and(|chunk| chunk.left == 0) {
            self.remove_first();
        }
    }

    fn remove_first(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= chunk.bytes.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(group: &mut Group, position: u64, bytes_max: usize) -> usize {
        group.begin_event(position).unwrap().extend_from_slice(b"ten bytes.");
        let (before, after) = (SeenEntries::to(position - 1), SeenEntries::to(position));
        group.close_chunk(&before, &after, bytes_max).len()
    }

    /// promise: C5
    #[test]
    fn a_chunk_is_kept_until_all_have_taken_it() {
        let mut group = Group::default();
        group.join(1, SeenEntries::to(4));
        group.join(2, SeenEntries::to(4));
        assert_eq!(group.take(1, Waker::noop()), NextChunk::None);
        assert_eq!(push(&mut group, 5, 100), 1, "only the one that waits is woken");
        assert!(matches!(group.take(1, Waker::noop()), NextChunk::Chunk(_)));
        assert_eq!((group.chunks.len(), group.bytes), (1, 10));
        assert!(!group.leave(2));
        assert_eq!((group.chunks.len(), group.bytes), (0, 0));
        assert!(group.leave(1));
    }

    /// promise: C5
    #[test]
    fn a_member_that_takes_nothing_falls_behind_and_keeps_its_place() {
        let mut group = Group::default();
        group.join(1, SeenEntries::to(2));
        group.join(2, SeenEntries::to(2));
        for position in [5, 6, 9] {
            push(&mut group, position, 20);
            assert!(matches!(group.take(2, Waker::noop()), NextChunk::Chunk(_)));
        }
        assert_eq!(group.chunks.len(), 2);
        // It was not concerned by entries 3 and 4, which were examined before entry 5 came.
        assert_eq!(group.take(1, Waker::noop()), NextChunk::Behind(SeenEntries::to(4)));
        assert_eq!(group.take(2, Waker::noop()), NextChunk::None);
    }

    #[test]
    fn an_entry_with_several_topics_is_added_once() {
        let mut group = Group::default();
        assert!(group.begin_event(3).is_some());
        assert!(group.begin_event(3).is_none());
        assert!(group.begin_event(4).is_some());
    }
}
