//! The shared stream, which has no owner: any server whose replica is current may commit.

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{Commit, HeadClock, Revision, SharedStep, SharedWriter, Term};
use forewarn_store::StreamState;

use crate::commit::{
    CommitFate, NewBatch, details_after, engine_transaction, fate, fresh_id, send, shown_head, unexpected,
    write_parts,
};
use crate::entry_tail::EntryTail;
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, SnapshotRef, StreamHead, StreamTime, position_of};
use crate::read::{ReadFrom, StreamContent};
use crate::realm::{Attempts, Realm};
use crate::snapshot::SnapshotWriting;
use crate::takeover::NewStream;
use crate::trim::TrimProgress;

type Writer = SharedWriter<HeadDetails, Bytes>;

const STREAM: Stream = Stream::Shared;

/// The shared stream, as far as the replica of this server has it.
#[derive(Debug)]
pub struct SharedStream {
    realm: Realm,
    writer: Writer,
    tail: EntryTail,
}

/// The outcome of a commit to the shared stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedOutcome {
    /// The commit is durable, and the replica is current.
    Committed {
        /// The number of the last batch.
        number: u64,
        /// The revision of the head.
        revision: Revision,
    },
    /// The commit is durable, and others have committed after it: catch up before the next one.
    Overtaken {
        /// The number of the batch.
        number: u64,
        head: KnownHead,
    },
    /// Nothing was committed, because others have committed before: catch up, and decide again.
    Behind {
        /// None if the stream does not exist.
        head: Option<KnownHead>,
    },
}

/// The outcome of an attempt to create the shared stream.
#[derive(Debug)]
pub enum SharedCreation {
    /// This server has created it.
    Created(Box<SharedStream>),
    /// It exists.
    Exists(KnownHead),
}

impl SharedStream {
    /// The stream of a server whose replica has everything up to a head.
    #[must_use]
    pub fn at(realm: &Realm, known: KnownHead) -> Self {
        let tail = EntryTail::at(known.head.details.chain);
        let writer = Writer::new(Some((known.revision, *known.head)));
        Self { realm: realm.clone(), writer, tail }
    }

    /// Creates the stream, unless it exists.
    ///
    /// # Errors
    /// Fails if the engine is unavailable or refuses it.
    pub async fn create(realm: &Realm, new: NewStream) -> Result<SharedCreation, CommitError> {
        let details = new.details(realm, STREAM, Term::default()).await?;
        let tail = EntryTail::at(details.chain);
        let mut shared = Self { realm: realm.clone(), writer: Writer::new(None), tail };
        shared.writer.begin(Commit { batch: fresh_id()?, payload: None, details, clock: new.time.clock })?;
        match shared.settle().await? {
            SharedOutcome::Committed { .. } => Ok(SharedCreation::Created(Box::new(shared))),
            SharedOutcome::Overtaken { head, .. } | SharedOutcome::Behind { head: Some(head) } => {
                Ok(SharedCreation::Exists(head))
            }
            SharedOutcome::Behind { head: None } => Err(unexpected()),
        }
    }

    /// The head that the replica has reached.
    #[must_use]
    pub fn head(&self) -> Option<&StreamHead> {
        self.writer.head()
    }

    /// The revision of that head.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.writer.revision()
    }

    /// Takes note that the replica has applied everything up to a head. An older head than the known one is ignored.
    ///
    /// # Errors
    /// Fails if a commit was interrupted.
    pub fn follow(&mut self, known: KnownHead) -> Result<(), CommitError> {
        if known.revision > self.writer.revision() {
            self.tail = EntryTail::at(known.head.details.chain);
        }
        Ok(self.writer.follow(known.revision, *known.head)?)
    }

    /// Reads the batches after the known head, and takes note of them: the caller applies them.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or something is missing or damaged.
    pub async fn catch_up(&mut self) -> Result<StreamContent, CommitError> {
        let from = self.head().map_or(ReadFrom::Beginning, |head| ReadFrom::After(position_of(head)));
        let content = self.realm.read_stream(STREAM, from).await.map_err(CommitError::NotCommitted)?;
        self.follow(content.head.clone())?;
        Ok(content)
    }

    /// Commits a batch, if the replica is current, and waits until the outcome is known.
    ///
    /// # Errors
    /// Fails if the batch does not follow the last one, is too large, or the engine refuses it.
    pub async fn commit(&mut self, new: &NewBatch) -> Result<SharedOutcome, CommitError> {
        let batch = fresh_id()?;
        let Some(head) = self.writer.head() else { return Ok(SharedOutcome::Behind { head: None }) };
        let heading = self.tail.next_heading(STREAM, head, batch, new)?;
        let encoded = heading.encode(&new.records, &new.entries)?;
        let details = details_after(head, new, encoded.chain_after);
        let clock = later_clock(head, &new.time);
        if !write_parts(&self.realm, STREAM, self.writer.revision(), &encoded).await? {
            let head = self.realm.head(STREAM).await.map_err(CommitError::NotCommitted)?;
            return Ok(SharedOutcome::Behind { head });
        }
        self.writer.begin(Commit { batch, payload: Some(encoded.log), details, clock })?;
        let outcome = self.settle().await?;
        if let SharedOutcome::Committed { .. } = outcome {
            self.tail.add(&heading, &new.entries);
        }
        Ok(outcome)
    }

    /// Begins to write the state of the stream, which must be the result of everything up to the known head.
    ///
    /// # Errors
    /// Fails if the stream does not exist, or there are no random numbers.
    pub fn begin_snapshot(&self, state: StreamState) -> Result<SnapshotWriting, RealmError> {
        let head = self.head().ok_or(RealmError::NoStream(STREAM))?;
        SnapshotWriting::begin(STREAM, head, state)
    }

    /// Makes a state that was written the stored state. An older one than the stored one changes nothing.
    ///
    /// # Errors
    /// Fails if the engine refuses it.
    pub async fn publish_snapshot(
        &mut self,
        snapshot: SnapshotRef,
        time: StreamTime,
    ) -> Result<SharedOutcome, CommitError> {
        let Some(head) = self.writer.head() else { return Ok(SharedOutcome::Behind { head: None }) };
        if snapshot.is_older_than(head) {
            let (number, revision) = (head.number, self.writer.revision());
            return Ok(SharedOutcome::Committed { number, revision });
        }
        let (clock, wall) = (later_clock(head, &time), head.details.wall.max(time.wall));
        let details = HeadDetails { snapshot: Some(snapshot), wall, ..head.details.clone() };
        self.writer.begin(Commit { batch: fresh_id()?, payload: None, details, clock })?;
        self.settle().await
    }

    /// Deletes some batches up to a number, as far as the stored state covers them, and states that it has replaced.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn trim(&mut self, upto: u64) -> Result<TrimProgress, RealmError> {
        let Some(head) = self.writer.head().cloned() else { return Ok(TrimProgress::Done) };
        let known = KnownHead { revision: self.writer.revision(), head: Box::new(head) };
        self.realm.trim_step(STREAM, &known, upto).await
    }

    /// Sends the transaction in flight until its outcome is known. Without an outcome, it is forgotten: if it was applied,
    /// or will be, the next one finds another head.
    async fn settle(&mut self) -> Result<SharedOutcome, CommitError> {
        let outcome = self.send_until_settled().await;
        if self.writer.in_flight().is_some() {
            let known = self.writer.head().cloned().map(|head| (self.writer.revision(), head));
            self.writer = Writer::new(known);
        }
        outcome
    }

    async fn send_until_settled(&mut self) -> Result<SharedOutcome, CommitError> {
        let transaction = self.writer.in_flight().ok_or_else(unexpected)?;
        let number = transaction.head.number;
        let request = engine_transaction(&self.realm, STREAM, transaction);
        let mut attempts = Attempts::new(*self.realm.times());
        loop {
            let sent = send(&self.realm, STREAM, number, (&request, attempts.limit()))
                .await
                .map_err(CommitError::Unknown)?;
            match self.writer.answer(sent.answer).map_err(|_| unexpected())? {
                SharedStep::Repeat => attempts.pause_commit(&self.realm).await?,
                SharedStep::Committed { number, revision, .. } => {
                    return Ok(SharedOutcome::Committed { number, revision });
                }
                SharedStep::Behind { revision, head, fate: unsure, payload } => {
                    let fate = fate(unsure, &sent.evidence, head.as_ref());
                    let fate = payload.map_or(CommitFate::NotApplied, |_| fate);
                    return behind(fate, number, shown_head(revision, head));
                }
                SharedStep::Rejected { .. } => return Err(sent.evidence.rejected()),
            }
        }
    }
}

fn behind(fate: CommitFate, number: u64, head: Option<KnownHead>) -> Result<SharedOutcome, CommitError> {
    match (fate, head) {
        (CommitFate::NotApplied, head) => Ok(SharedOutcome::Behind { head }),
        (CommitFate::Applied, Some(head)) => Ok(SharedOutcome::Overtaken { number, head }),
        (CommitFate::Applied | CommitFate::Unknown, _) => {
            Err(CommitError::Unknown(RealmError::Undecided(STREAM)))
        }
    }
}

/// The clock of a commit: servers have clocks of their own, and that of the stream does not go back.
fn later_clock(head: &StreamHead, time: &StreamTime) -> HeadClock {
    if time.clock.steady < head.clock.steady { head.clock } else { time.clock }
}
