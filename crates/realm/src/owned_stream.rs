//! A stream that this server owns: commits, snapshots, trims, and the move to another server.
//!
//! The outcome of a commit is always known when it returns: without an answer, the same transaction is sent again, on
//! the next endpoint, until there is one, or the server stops. A future of [`OwnedStream::commit`] may only be dropped
//! with the stream.

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{Commit, OwnerRecord, Revision, ServerName, StreamWriter, WriterStep};
use forewarn_store::StreamState;

use crate::commit::{
    AnswerEvidence, CommitFate, NewBatch, details_after, engine_transaction, fate, fresh_id, send,
    shown_head, unexpected, write_parts,
};
use crate::entry_tail::EntryTail;
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, SnapshotRef, StreamHead, StreamTime};
use crate::read::{ReadFrom, StreamContent};
use crate::realm::{Attempts, Realm};
use crate::snapshot::SnapshotWriting;
use crate::trim::TrimProgress;

pub(crate) type Writer = StreamWriter<HeadDetails, Bytes>;

/// A stream that this server owns.
#[derive(Debug)]
pub struct OwnedStream {
    realm: Realm,
    stream: Stream,
    writer: Writer,
    tail: EntryTail,
    /// Bytes of batches that this server has committed since the last stored state.
    logged_bytes: usize,
}

/// The outcome of a commit to an owned stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The commit is durable. Only now it may be published and answered.
    Committed {
        /// The number of the last batch.
        number: u64,
        /// The revision of the head.
        revision: Revision,
    },
    /// Another server has taken the stream over: drop its state and do nothing more.
    Fenced {
        /// The head that the other server wrote. None if the stream was removed.
        head: Option<KnownHead>,
        fate: CommitFate,
    },
}

/// The outcome of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The stream belongs to the other server.
    Moved {
        to: OwnerRecord,
        /// The revision of the head.
        revision: Revision,
    },
    /// Another server has taken the stream over.
    Fenced {
        /// The head that the other server wrote. None if the stream was removed.
        head: Option<KnownHead>,
    },
}

impl OwnedStream {
    pub(crate) fn new(realm: &Realm, stream: Stream, writer: Writer) -> Self {
        let tail = EntryTail::at(writer.head().details.chain);
        Self { realm: realm.clone(), stream, writer, tail, logged_bytes: 0 }
    }

    #[must_use]
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// The head that this server knows to be durable.
    #[must_use]
    pub fn head(&self) -> &StreamHead {
        self.writer.head()
    }

    /// The head, and its revision.
    #[must_use]
    pub fn known_head(&self) -> KnownHead {
        KnownHead { revision: self.writer.revision(), head: Box::new(self.writer.head().clone()) }
    }

    /// Bytes of batches that this server has committed since the last stored state.
    #[must_use]
    pub fn logged_bytes(&self) -> usize {
        self.logged_bytes
    }

    /// Reads the content of the stream.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, something is missing or damaged, or another server has taken the stream over.
    pub async fn read(&self, from: ReadFrom) -> Result<StreamContent, RealmError> {
        let content = self.realm.read_stream(self.stream, from).await?;
        if content.head == self.known_head() { Ok(content) } else { Err(RealmError::Deposed(self.stream)) }
    }

    /// Commits a batch, and waits until the outcome is known.
    ///
    /// # Errors
    /// Fails if the batch does not follow the last one, is too large, or the engine refuses it.
    pub async fn commit(&mut self, new: &NewBatch) -> Result<CommitOutcome, CommitError> {
        let (batch, clock, head) = (fresh_id()?, new.time.clock, self.writer.head());
        let heading = self.tail.next_heading(self.stream, head, batch, new)?;
        let encoded = heading.encode(&new.records, &new.entries)?;
        let details = details_after(head, new, encoded.chain_after);
        if !write_parts(&self.realm, self.stream, self.writer.revision(), &encoded).await? {
            return self.deposed().await;
        }
        let bytes = encoded.bytes();
        let payload = Some(encoded.log);
        self.writer.begin(Commit { batch, payload, details, clock })?;
        let outcome = self.settle().await?;
        if let CommitOutcome::Committed { .. } = outcome {
            self.tail.add(&heading, &new.entries);
            self.logged_bytes = self.logged_bytes.saturating_add(bytes);
        }
        Ok(outcome)
    }

    /// Records the clock in the head.
    ///
    /// # Errors
    /// Fails if the clock is earlier than the one of the head, or the engine refuses it.
    pub async fn refresh_clock(&mut self, time: StreamTime) -> Result<CommitOutcome, CommitError> {
        let HeadDetails { wall, .. } = self.head().details;
        let details = HeadDetails { wall: wall.max(time.wall), ..self.head().details.clone() };
        self.change_head(details, time).await
    }

    /// Begins to write the state of the stream, which must be the result of everything that was committed so far.
    ///
    /// # Errors
    /// Fails if there are no random numbers.
    pub fn begin_snapshot(&self, state: StreamState) -> Result<SnapshotWriting, RealmError> {
        SnapshotWriting::begin(self.stream, self.head(), state)
    }

    /// Makes a state that was written the stored state. An older one than the stored one changes nothing.
    ///
    /// # Errors
    /// Fails if the clock is earlier than the one of the head, or the engine refuses it.
    pub async fn publish_snapshot(
        &mut self,
        snapshot: SnapshotRef,
        time: StreamTime,
    ) -> Result<CommitOutcome, CommitError> {
        if snapshot.is_older_than(self.head()) {
            let (number, revision) = (self.head().number, self.writer.revision());
            return Ok(CommitOutcome::Committed { number, revision });
        }
        let HeadDetails { wall, .. } = self.head().details;
        let wall = wall.max(time.wall);
        let details = HeadDetails { snapshot: Some(snapshot), wall, ..self.head().details.clone() };
        let outcome = self.change_head(details, time).await?;
        self.logged_bytes = 0;
        Ok(outcome)
    }

    /// Deletes some batches up to a number, as far as the stored state covers them, and states that it has replaced.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn trim(&mut self, upto: u64) -> Result<TrimProgress, RealmError> {
        self.realm.trim_step(self.stream, &self.known_head(), upto).await
    }

    /// Moves the stream to another server. Afterwards this one can only be dropped.
    ///
    /// # Errors
    /// Fails if the clock is earlier than the one of the head, or the engine refuses it.
    pub async fn hand_over(&mut self, to: &ServerName, time: StreamTime) -> Result<MoveOutcome, CommitError> {
        self.writer.begin_move(to.clone(), fresh_id()?, time.clock)?;
        match self.settle_step().await? {
            (WriterStep::Moved { to, revision }, _) => Ok(MoveOutcome::Moved { to, revision }),
            (step, evidence) => match self.outcome(step, evidence)? {
                CommitOutcome::Fenced { head, .. } => Ok(MoveOutcome::Fenced { head }),
                CommitOutcome::Committed { .. } => Err(unexpected()),
            },
        }
    }

    /// Removes the stream: head, owner, log and states. Returns false if another server has taken it over.
    ///
    /// # Errors
    /// Fails if the engine is unavailable. It may be removed then: see [`Realm::delete_leftovers`].
    pub async fn remove(self) -> Result<bool, RealmError> {
        self.realm.remove_stream(self.stream, &self.known_head()).await
    }

    async fn change_head(
        &mut self,
        details: HeadDetails,
        time: StreamTime,
    ) -> Result<CommitOutcome, CommitError> {
        let batch = fresh_id()?;
        self.writer.begin(Commit { batch, payload: None, details, clock: time.clock })?;
        self.settle().await
    }

    async fn settle(&mut self) -> Result<CommitOutcome, CommitError> {
        let (step, evidence) = self.settle_step().await?;
        self.outcome(step, evidence)
    }

    /// Sends the transaction in flight until its outcome is known.
    async fn settle_step(&mut self) -> Result<(WriterStep<HeadDetails, Bytes>, AnswerEvidence), CommitError> {
        let transaction = self.writer.in_flight().ok_or_else(unexpected)?;
        let number = transaction.head.number;
        let request = engine_transaction(&self.realm, self.stream, transaction);
        let mut attempts = Attempts::new(*self.realm.times());
        loop {
            let sent = send(&self.realm, self.stream, number, (&request, attempts.limit())).await;
            let sent = sent.map_err(CommitError::Unknown)?;
            match self.writer.answer(sent.answer).map_err(|_| unexpected())? {
                WriterStep::Repeat => attempts.pause_commit(&self.realm).await?,
                step @ (WriterStep::Committed { .. }
                | WriterStep::Moved { .. }
                | WriterStep::Fenced { .. }
                | WriterStep::Rejected { .. }) => return Ok((step, sent.evidence)),
            }
        }
    }

    fn outcome(
        &self,
        step: WriterStep<HeadDetails, Bytes>,
        evidence: AnswerEvidence,
    ) -> Result<CommitOutcome, CommitError> {
        match step {
            WriterStep::Committed { number, revision, .. } => {
                Ok(CommitOutcome::Committed { number, revision })
            }
            WriterStep::Fenced { revision, head, fate: unsure, .. } => {
                let fate = fate(unsure, &evidence, head.as_ref());
                Ok(CommitOutcome::Fenced { head: shown_head(revision, head), fate })
            }
            WriterStep::Rejected { .. } => Err(evidence.rejected()),
            WriterStep::Moved { .. } | WriterStep::Repeat => Err(unexpected()),
        }
    }

    /// The outcome of a commit that was not begun, because the head is another one.
    async fn deposed(&self) -> Result<CommitOutcome, CommitError> {
        let head = self.realm.head(self.stream).await.map_err(CommitError::NotCommitted)?;
        Ok(CommitOutcome::Fenced { head, fate: CommitFate::NotApplied })
    }
}
