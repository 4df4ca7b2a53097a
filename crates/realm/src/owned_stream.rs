//! A stream that this server owns: commits, snapshots, trims, and the move to another server.
//!
//! The outcome of a commit is always known when it returns: without an answer, the same transaction is sent again, on
//! the next endpoint, until there is one. A future of [`OwnedStream::commit`] may only be dropped with the stream.

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{
    Commit, OwnerRecord, Revision, ServerName, StreamWriter, Takeover, TakeoverStep, Term, WriterStep,
};
use forewarn_store::StreamState;

use crate::commit::{
    CommitFate, EntryTail, NewBatch, Sent, details_after, engine_transaction, fate, send, shown_head,
    write_parts,
};
use crate::engine::{EngineError, EngineOperation, EngineTransaction, KeySpan};
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, SnapshotRef, StreamHead, StreamPosition, StreamTime};
use crate::keys::RealmKey;
use crate::read::{ReadFrom, StreamContent, known_head, owner_record};
use crate::realm::{Pauses, Realm, new_batch_id};
use crate::snapshot::SnapshotWriting;
use crate::trim::TrimProgress;

type Writer = StreamWriter<HeadDetails, Bytes>;

/// A stream that this server owns.
#[derive(Debug)]
pub struct OwnedStream {
    realm: Realm,
    stream: Stream,
    writer: Writer,
    tail: EntryTail,
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

/// The outcome of an attempt to become the owner of a stream.
#[derive(Debug)]
pub enum TakeoverOutcome {
    /// This server owns the stream.
    Owned(Box<OwnedStream>),
    /// Another server has written the head meanwhile.
    Lost {
        /// Its head. None if the stream does not exist.
        head: Option<KnownHead>,
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

/// A stream that does not exist yet.
#[derive(Clone, Debug)]
pub struct NewStream {
    /// The state; none if readers can derive it.
    pub state: Option<StreamState>,
    /// Number of records before, and the end of the audit log.
    pub position: StreamPosition,
    pub time: StreamTime,
    /// The format in which records are written.
    pub format: u32,
}

impl OwnedStream {
    fn new(realm: &Realm, stream: Stream, writer: Writer) -> Self {
        let tail = EntryTail::at(writer.head().details.chain);
        Self { realm: realm.clone(), stream, writer, tail }
    }

    /// Takes over a stream whose head was read. Only after that its content is read: see [`Self::read`]. The future may
    /// be dropped; the takeover may be applied then.
    ///
    /// # Errors
    /// Fails if the engine refuses it, or the clock is earlier than the one of the head.
    pub async fn take_over(
        realm: &Realm,
        stream: Stream,
        server: &ServerName,
        known: &KnownHead,
        time: StreamTime,
    ) -> Result<TakeoverOutcome, CommitError> {
        let (batch, KnownHead { revision, head }) = (fresh_id()?, known);
        let takeover = Takeover::new(server.clone(), *revision, head, batch, time.clock)?;
        settle_takeover(realm, stream, takeover).await
    }

    /// Creates a stream that does not exist.
    ///
    /// # Errors
    /// Fails if the engine is unavailable or refuses it.
    pub async fn create(
        realm: &Realm,
        stream: Stream,
        server: &ServerName,
        new: NewStream,
    ) -> Result<TakeoverOutcome, CommitError> {
        let details = new.details(realm, stream, Term::default().next()).await?;
        let takeover = Takeover::creation(server.clone(), fresh_id()?, details, new.time.clock);
        settle_takeover(realm, stream, takeover).await
    }

    /// Continues a stream that its former owner has moved to this server. A process that has just started takes over
    /// instead.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or a value is damaged.
    pub async fn accept(
        realm: &Realm,
        stream: Stream,
        server: &ServerName,
    ) -> Result<TakeoverOutcome, RealmError> {
        let get = |key: &RealmKey| EngineOperation::get(realm.key(key));
        let then = vec![get(&RealmKey::Head(stream)), get(&RealmKey::Owner(stream))];
        let answer = realm.repeat(&EngineTransaction { then, ..EngineTransaction::default() }).await?;
        let find = |number: usize| answer.reads.get(number).and_then(|found| found.first());
        let Some(known) = find(0).map(|entry| known_head(stream, entry)).transpose()? else {
            return Ok(TakeoverOutcome::Lost { head: None });
        };
        let owner = find(1).map(|entry| owner_record(stream, entry)).transpose()?;
        let KnownHead { revision, head } = known.clone();
        match Writer::after_move(server.clone(), owner.as_ref(), revision, *head) {
            Ok(writer) => Ok(TakeoverOutcome::Owned(Box::new(Self::new(realm, stream, writer)))),
            Err(_) => Ok(TakeoverOutcome::Lost { head: Some(known) }),
        }
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
    pub async fn commit(&mut self, new: NewBatch) -> Result<CommitOutcome, CommitError> {
        let (time, mode, id) = (new.time, new.mode, fresh_id()?);
        let head = self.writer.head();
        let batch = self.tail.next_batch(self.stream, head, id, new)?;
        let encoded = batch.encode()?;
        let details = details_after(head, &batch, encoded.chain_after, &time);
        if !write_parts(&self.realm, self.stream, self.writer.revision(), &encoded).await? {
            return self.deposed().await;
        }
        let payload = Some(encoded.log);
        self.writer.begin(Commit { batch: id, payload, details, clock: time.clock })?;
        let outcome = self.settle().await?;
        if let CommitOutcome::Committed { .. } = outcome {
            self.tail.add(mode, batch.chain_before, batch.entries);
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
        self.change_head(details, time).await
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
            (step, sent) => match self.outcome(step, &sent)? {
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
        let key = |key| self.realm.key(&key);
        let head = key(RealmKey::Head(self.stream));
        let keys = [head.clone(), key(RealmKey::Owner(self.stream)), key(RealmKey::Preferred(self.stream))];
        let then = keys.map(|key| EngineOperation::Delete(KeySpan::one(key))).to_vec();
        let guarded = EngineTransaction::guarded(head.clone(), self.writer.revision());
        let otherwise = vec![EngineOperation::get(head)];
        let answer = self.realm.repeat(&EngineTransaction { then, otherwise, ..guarded }).await?;
        if !answer.succeeded && answer.reads.iter().any(|found| !found.is_empty()) {
            return Ok(false);
        }
        self.realm.delete_leftovers(self.stream).await
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
        let (step, sent) = self.settle_step().await?;
        self.outcome(step, &sent)
    }

    /// Sends the transaction in flight until its outcome is known.
    async fn settle_step(&mut self) -> Result<(WriterStep<HeadDetails, Bytes>, Answered), CommitError> {
        let transaction = self.writer.in_flight().ok_or_else(unexpected)?;
        let number = transaction.head.number;
        let request = engine_transaction(&self.realm, self.stream, transaction);
        let mut pauses = Pauses::new();
        loop {
            let sent = send(&self.realm, self.stream, number, &request).await;
            let sent = sent.map_err(CommitError::Unknown)?;
            let answered = Answered::of(&sent);
            match self.writer.answer(sent.answer).map_err(|_| unexpected())? {
                WriterStep::Repeat => pauses.next().await,
                step @ (WriterStep::Committed { .. }
                | WriterStep::Moved { .. }
                | WriterStep::Fenced { .. }
                | WriterStep::Rejected { .. }) => return Ok((step, answered)),
            }
        }
    }

    fn outcome(
        &self,
        step: WriterStep<HeadDetails, Bytes>,
        answered: &Answered,
    ) -> Result<CommitOutcome, CommitError> {
        match step {
            WriterStep::Committed { number, revision, .. } => {
                Ok(CommitOutcome::Committed { number, revision })
            }
            WriterStep::Fenced { revision, head, fate: unsure, .. } => {
                let fate = fate(unsure, answered.logged, head.as_ref());
                Ok(CommitOutcome::Fenced { head: shown_head(revision, head), fate })
            }
            WriterStep::Rejected { .. } => Err(answered.rejected()),
            WriterStep::Moved { .. } | WriterStep::Repeat => Err(unexpected()),
        }
    }

    /// The outcome of a commit that was not begun, because the head is another one.
    async fn deposed(&self) -> Result<CommitOutcome, CommitError> {
        let head = self.realm.head(self.stream).await.map_err(CommitError::NotCommitted)?;
        Ok(CommitOutcome::Fenced { head, fate: CommitFate::NotApplied })
    }
}

/// The parts of an answer that the commit protocol does not read.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) logged: Option<forewarn_ownership::BatchId>,
    refusal: Option<EngineError>,
}

impl Answered {
    pub(crate) fn of(sent: &Sent) -> Self {
        Self { logged: sent.logged(), refusal: sent.refusal.clone() }
    }

    pub(crate) fn rejected(&self) -> CommitError {
        match &self.refusal {
            Some(error) => CommitError::NotCommitted(error.clone().into()),
            None => unexpected(),
        }
    }
}

impl NewStream {
    /// The details of the first head; writes the state before.
    pub(crate) async fn details(
        &self,
        realm: &Realm,
        stream: Stream,
        term: Term,
    ) -> Result<HeadDetails, CommitError> {
        let position = StreamPosition { number: 0, ..self.position };
        let snapshot = match &self.state {
            None => None,
            Some(state) => {
                let writing = SnapshotWriting::at(stream, (term, position), state.clone());
                let written = writing.map_err(CommitError::NotCommitted)?.finish(realm).await;
                Some(written.map_err(CommitError::NotCommitted)?)
            }
        };
        let StreamPosition { records, chain, .. } = position;
        Ok(HeadDetails { records, chain, snapshot, wall: self.time.wall, format: self.format })
    }
}

async fn settle_takeover(
    realm: &Realm,
    stream: Stream,
    mut takeover: Takeover<HeadDetails, Bytes>,
) -> Result<TakeoverOutcome, CommitError> {
    let number = takeover.transaction().head.number;
    let request = engine_transaction(realm, stream, takeover.transaction());
    let mut pauses = Pauses::new();
    loop {
        let sent = send(realm, stream, number, &request).await.map_err(CommitError::Unknown)?;
        let answered = Answered::of(&sent);
        match takeover.answer(sent.answer) {
            TakeoverStep::Won(writer) => {
                return Ok(TakeoverOutcome::Owned(Box::new(OwnedStream::new(realm, stream, writer))));
            }
            TakeoverStep::Repeat(again) => takeover = again,
            TakeoverStep::Lost { revision, head } => {
                return Ok(TakeoverOutcome::Lost { head: shown_head(revision, head) });
            }
            TakeoverStep::Rejected => return Err(answered.rejected()),
        }
        pauses.next().await;
    }
}

pub(crate) fn fresh_id() -> Result<forewarn_ownership::BatchId, CommitError> {
    new_batch_id().map_err(CommitError::NotCommitted)
}

/// The error of an answer that the protocol does not give.
pub(crate) fn unexpected() -> CommitError {
    CommitError::Unknown(RealmError::Limit("answers of the commit protocol"))
}
