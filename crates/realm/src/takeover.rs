//! Ways to own a stream: a takeover, a move by its former owner, or its creation.

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{ServerName, Takeover, TakeoverStep, Term};
use forewarn_store::StreamState;

use crate::commit::{engine_transaction, fresh_id, send, shown_head};
use crate::engine::{EngineOperation, EngineTransaction};
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, StreamPosition, StreamTime};
use crate::heads::{known_head, owner_record};
use crate::keys::RealmKey;
use crate::owned_stream::{OwnedStream, Writer};
use crate::realm::{Attempts, Realm};
use crate::snapshot::SnapshotWriting;

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
    let mut attempts = Attempts::new(*realm.times());
    loop {
        let sent =
            send(realm, stream, number, (&request, attempts.limit())).await.map_err(CommitError::Unknown)?;
        match takeover.answer(sent.answer) {
            TakeoverStep::Won(writer) => {
                return Ok(TakeoverOutcome::Owned(Box::new(OwnedStream::new(realm, stream, writer))));
            }
            TakeoverStep::Repeat(again) => takeover = again,
            TakeoverStep::Lost { revision, head } => {
                return Ok(TakeoverOutcome::Lost { head: shown_head(revision, head) });
            }
            TakeoverStep::Rejected => return Err(sent.evidence.rejected()),
        }
        attempts.pause_commit(realm).await?;
    }
}
