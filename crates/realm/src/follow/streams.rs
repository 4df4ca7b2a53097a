//! The streams that a follower follows, and their positions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::Revision;

use super::RealmChange;
use crate::batch::{Batch, LogValue};
use crate::engine::{KeyEvent, KeySpan, ReadRequest};
use crate::error::RealmError;
use crate::head::{KnownHead, StreamPosition, position_of};
use crate::heads::known_head;
use crate::keys::RealmKey;
use crate::links::BatchLinks;
use crate::read::{LogRead, ReadFailure};
use crate::realm::Realm;

/// Batches that one repair reads at most: the queue stays short.
const BATCHES_PER_REPAIR: u64 = 1_000;

/// Bytes of these batches, about.
const REPAIR_BYTES: usize = 16 << 20;

/// A stream that is followed.
#[derive(Debug)]
struct FollowedStream {
    links: BatchLinks,
    standing: Standing,
    /// The revision of the last head that was given out; of the deletion, if it was removed.
    head_revision: Revision,
    /// A head that waits for the batches before it.
    waiting: Option<KnownHead>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing is known but its name: its head tells if the caller must read it.
    New,
    /// The next batch comes by the watch.
    Current,
    /// Batches are missing: read the log.
    Repairing,
    /// The log no longer has them: the caller reads the stream.
    Behind,
    /// The stream was removed.
    Removed,
}

/// All streams that are followed.
#[derive(Debug)]
pub(super) struct FollowedStreams {
    streams: BTreeMap<Stream, FollowedStream>,
    repairs: BTreeSet<Stream>,
    /// A revision that is to be given out once no repair is left.
    current_at: Option<Revision>,
}

/// What a repair has read.
pub(super) enum Missing {
    /// Batches, and the head after all batches, at one revision.
    Batches(Vec<Batch>, KnownHead),
    /// The log no longer has them.
    Gone(KnownHead),
    /// The stream does not exist at this revision.
    NoStream(Revision),
}

/// Reads the batches after a position, or some of them.
pub(super) async fn read_missing(
    realm: &Realm,
    stream: Stream,
    position: StreamPosition,
) -> Result<Missing, ReadFailure> {
    let key = realm.key(&RealmKey::Head(stream));
    let page = realm.read(&ReadRequest::new(KeySpan::one(key))).await?;
    let Some(entry) = page.entries.first() else { return Ok(Missing::NoStream(page.revision)) };
    let head = known_head(stream, entry)?;
    let last = head.head.number.min(position.number.saturating_add(BATCHES_PER_REPAIR));
    match realm.read_some(stream, (position.number + 1, last), page.revision, REPAIR_BYTES).await? {
        LogRead::Batches(batches) => Ok(Missing::Batches(batches, head)),
        LogRead::Lacks(_) => Ok(Missing::Gone(head)),
    }
}

impl FollowedStream {
    fn at(position: StreamPosition) -> Self {
        let (standing, head_revision) = (Standing::Current, Revision::ABSENT);
        Self { links: BatchLinks::new(position), standing, head_revision, waiting: None }
    }

    /// Gives out the next batch.
    fn add(&mut self, batch: Batch, queue: &mut VecDeque<RealmChange>) -> Result<(), RealmError> {
        let key = RealmKey::Log(batch.stream, batch.number);
        self.links.add(&batch).map_err(|error| RealmError::damaged(&key, &error))?;
        queue.push_back(RealmChange::Batch(Box::new(batch)));
        Ok(())
    }

    /// Gives out the waiting head, if all batches before it were given out.
    fn give_head(&mut self, stream: Stream, queue: &mut VecDeque<RealmChange>) {
        let number = self.links.position().number;
        if let Some(head) = self.waiting.take_if(|head| head.head.number <= number) {
            self.head_revision = head.revision;
            queue.push_back(RealmChange::Head { stream, head });
        }
    }
}

impl FollowedStreams {
    pub(super) fn new(positions: BTreeMap<Stream, StreamPosition>) -> Self {
        let streams = positions.into_iter().map(|(stream, at)| (stream, FollowedStream::at(at))).collect();
        Self { streams, repairs: BTreeSet::new(), current_at: None }
    }

    pub(super) fn position(&self, stream: Stream) -> StreamPosition {
        self.streams.get(&stream).map(|one| one.links.position()).unwrap_or_default()
    }

    /// A stream whose log is to be read.
    pub(super) fn next_repair(&self) -> Option<Stream> {
        self.repairs.first().copied()
    }

    fn entry(&mut self, stream: Stream) -> &mut FollowedStream {
        let new =
            || FollowedStream { standing: Standing::New, ..FollowedStream::at(StreamPosition::default()) };
        self.streams.entry(stream).or_insert_with(new)
    }

    fn repair_later(&mut self, stream: Stream) {
        self.entry(stream).standing = Standing::Repairing;
        self.repairs.insert(stream);
    }

    pub(super) fn resume(&mut self, stream: Stream, position: StreamPosition) {
        let former = self.entry(stream);
        let head_revision = former.head_revision;
        *former = FollowedStream { head_revision, ..FollowedStream::at(position) };
        self.repair_later(stream);
    }

    /// Takes a batch of the watch. A gap, or a batch in parts, is read from the log.
    pub(super) fn take_log(
        &mut self,
        stream: Stream,
        number: u64,
        value: &Bytes,
        queue: &mut VecDeque<RealmChange>,
    ) -> Result<(), RealmError> {
        let one = self.entry(stream);
        if one.standing != Standing::Current || number <= one.links.position().number {
            return Ok(());
        }
        let key = RealmKey::Log(stream, number);
        let value = LogValue::read(stream, number, value).map_err(RealmError::malformed(&key))?;
        if number != one.links.position().number + 1 || value.heading.parts > 0 {
            self.repair_later(stream);
            return Ok(());
        }
        one.add(value.into_batch(&[]).map_err(RealmError::malformed(&key))?, queue)
    }

    /// Takes a head of the watch, or its deletion.
    pub(super) fn take_head(
        &mut self,
        stream: Stream,
        event: &KeyEvent,
        queue: &mut VecDeque<RealmChange>,
    ) -> Result<(), RealmError> {
        match event {
            KeyEvent::Put(entry) => {
                let head = known_head(stream, entry)?;
                self.take_known(stream, head, queue)
            }
            KeyEvent::Deleted { mod_revision, .. } => {
                self.take_removal(stream, *mod_revision, queue);
                Ok(())
            }
        }
    }

    fn take_known(
        &mut self,
        stream: Stream,
        head: KnownHead,
        queue: &mut VecDeque<RealmChange>,
    ) -> Result<(), RealmError> {
        let one = self.entry(stream);
        let waiting = one.waiting.as_ref().map_or(Revision::ABSENT, |waiting| waiting.revision);
        if head.revision <= one.head_revision.max(waiting) {
            return Ok(());
        }
        if one.standing == Standing::New {
            one.standing =
                if head.head.details.snapshot.is_none() { Standing::Current } else { Standing::Behind };
            if one.standing == Standing::Behind {
                queue.push_back(RealmChange::Behind { stream, head: head.clone() });
            }
        }
        let position = one.links.position();
        let is_complete = one.standing == Standing::Current && head.head.number <= position.number;
        if is_complete {
            check_head(stream, position, &head)?;
        }
        one.waiting = Some(head);
        match one.standing {
            Standing::Current if is_complete => one.give_head(stream, queue),
            Standing::Current => self.repair_later(stream),
            Standing::New | Standing::Repairing | Standing::Behind | Standing::Removed => {}
        }
        Ok(())
    }

    fn take_removal(&mut self, stream: Stream, at: Revision, queue: &mut VecDeque<RealmChange>) {
        let one = self.entry(stream);
        if at <= one.head_revision || one.standing == Standing::Removed {
            return;
        }
        (one.standing, one.head_revision, one.waiting) = (Standing::Removed, at, None);
        self.repairs.remove(&stream);
        queue.push_back(RealmChange::Removed(stream));
    }

    /// Takes everything that a repair has read.
    pub(super) fn repaired(
        &mut self,
        stream: Stream,
        found: Missing,
        queue: &mut VecDeque<RealmChange>,
    ) -> Result<(), RealmError> {
        match found {
            Missing::NoStream(revision) => self.take_removal(stream, revision, queue),
            Missing::Gone(head) => {
                let one = self.entry(stream);
                (one.standing, one.waiting) = (Standing::Behind, None);
                self.repairs.remove(&stream);
                queue.push_back(RealmChange::Behind { stream, head });
            }
            Missing::Batches(batches, head) => {
                let one = self.entry(stream);
                for batch in batches {
                    one.add(batch, queue)?;
                }
                if one.links.position().number >= head.head.number {
                    check_head(stream, one.links.position(), &head)?;
                    one.standing = Standing::Current;
                    let is_new = head.revision > one.head_revision;
                    one.waiting = one.waiting.take().filter(|waiting| waiting.revision > head.revision);
                    if is_new {
                        let waiting = one.waiting.replace(head);
                        one.give_head(stream, queue);
                        one.waiting = waiting;
                    }
                    self.repairs.remove(&stream);
                }
            }
        }
        self.give_current(queue);
        Ok(())
    }

    /// Compares with all heads.
    pub(super) fn compare(
        &mut self,
        heads: BTreeMap<Stream, KnownHead>,
        at: Revision,
        queue: &mut VecDeque<RealmChange>,
    ) -> Result<(), RealmError> {
        let gone: Vec<_> =
            self.streams.keys().filter(|stream| !heads.contains_key(stream)).copied().collect();
        for stream in gone {
            if self.streams.get(&stream).is_some_and(|one| one.head_revision > Revision::ABSENT) {
                self.take_removal(stream, at, queue);
            }
        }
        for (stream, head) in heads {
            let (known, found) = (self.position(stream).number, head.head.number);
            if found < known {
                return Err(RealmError::Older { stream, known, found });
            }
            self.take_known(stream, head, queue)?;
            let one = self.entry(stream);
            if one.standing == Standing::Current && one.links.position().number < found {
                self.repair_later(stream);
            }
        }
        Ok(())
    }

    /// Gives out that everything up to a revision was given out, once it is true.
    pub(super) fn current_at(&mut self, revision: Revision, queue: &mut VecDeque<RealmChange>) {
        self.current_at = Some(revision);
        self.give_current(queue);
    }

    fn give_current(&mut self, queue: &mut VecDeque<RealmChange>) {
        if self.repairs.is_empty()
            && let Some(revision) = self.current_at.take()
        {
            queue.push_back(RealmChange::Current(revision));
        }
    }
}

/// Checks that the batches lead to the head.
fn check_head(stream: Stream, position: StreamPosition, head: &KnownHead) -> Result<(), RealmError> {
    if position.number != head.head.number || position == position_of(&head.head) {
        return Ok(());
    }
    Err(RealmError::damaged(&RealmKey::Head(stream), &"it does not continue the batches before it"))
}
