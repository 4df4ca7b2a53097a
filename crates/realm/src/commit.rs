//! Sends transactions of the commit protocol, and reads the answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forewarn_control::{AuditEntry, Chain, Record, Stream};
use forewarn_ownership::{Answer, BatchFate, BatchId, Head, OwnerRecord, Revision, Transaction};

use crate::batch::{AuditMode, EncodedBatch, LogValue};
use crate::engine::{EngineError, EngineOperation, EngineTransaction, KeyValue, TransactionAnswer};
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, StreamHead, StreamTime, head_to_bytes};
use crate::heads::known_head;
use crate::keys::RealmKey;
use crate::realm::{Realm, new_batch_id};
use crate::records::JsonRecord;

/// The content of a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBatch {
    pub records: Vec<Record>,
    pub entries: Vec<Arc<AuditEntry>>,
    pub mode: AuditMode,
    pub time: StreamTime,
}

/// The fate of a batch that met a foreign head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFate {
    /// The batch is not in the log and never will be.
    NotApplied,
    /// The batch is in the log.
    Applied,
    /// The log no longer has the number of the batch.
    Unknown,
}

pub(crate) type StreamTransaction = Transaction<HeadDetails, Bytes>;

/// An answer to a transaction of a stream.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) answer: Answer<HeadDetails>,
    pub(crate) evidence: AnswerEvidence,
}

/// The parts of an answer that the commit protocol does not read.
#[derive(Debug, Default)]
pub(crate) struct AnswerEvidence {
    /// The id of the batch under the number of the transaction, after a conflict.
    logged: Option<BatchId>,
    /// The reason of a refusal.
    refusal: Option<EngineError>,
}

impl AnswerEvidence {
    /// The error of a transaction that the engine has refused.
    pub(crate) fn rejected(self) -> CommitError {
        self.refusal.map_or_else(unexpected, |error| CommitError::NotCommitted(error.into()))
    }
}

/// The transaction as the engine gets it. If the head is another one, it returns the head, and the batch that has the
/// number of this one: both tell if the transaction was applied before.
pub(crate) fn engine_transaction(
    realm: &Realm,
    stream: Stream,
    transaction: &StreamTransaction,
) -> EngineTransaction {
    let Transaction { expected, owner, head, payload } = transaction;
    let head_key = realm.key(&RealmKey::Head(stream));
    let log_key = realm.key(&RealmKey::Log(stream, head.number));
    let mut then = Vec::new();
    then.extend(payload.as_ref().map(|value| EngineOperation::put(log_key.clone(), value.clone())));
    then.extend(owner.as_ref().map(|owner: &OwnerRecord| {
        EngineOperation::put(realm.key(&RealmKey::Owner(stream)), owner.to_json())
    }));
    then.push(EngineOperation::put(head_key.clone(), head_to_bytes(stream, head)));
    let otherwise = vec![EngineOperation::get(head_key.clone()), EngineOperation::get(log_key)];
    EngineTransaction { then, otherwise, ..EngineTransaction::guarded(head_key, *expected) }
}

/// Sends a transaction once.
pub(crate) async fn send(
    realm: &Realm,
    stream: Stream,
    number: u64,
    (request, limit): (&EngineTransaction, Duration),
) -> Result<Sent, RealmError> {
    let no_evidence = |answer| Ok(Sent { answer, evidence: AnswerEvidence::default() });
    match realm.engine().transact(request, limit).await {
        Ok(answer) if answer.succeeded => no_evidence(Answer::Applied { revision: answer.revision }),
        Ok(answer) => conflict(realm, stream, number, answer),
        Err(EngineError::NotReached(_) | EngineError::Unknown(_)) => no_evidence(Answer::NoAnswer),
        Err(error @ (EngineError::Refused { .. } | EngineError::Compacted(_))) => {
            let evidence = AnswerEvidence { refusal: Some(error), logged: None };
            Ok(Sent { answer: Answer::Rejected, evidence })
        }
    }
}

fn conflict(
    realm: &Realm,
    stream: Stream,
    number: u64,
    answer: TransactionAnswer,
) -> Result<Sent, RealmError> {
    let found: Vec<KeyValue> = answer.reads.into_iter().flatten().collect();
    let find = |key: &RealmKey| found.iter().find(|entry| entry.key == realm.key(key));
    let head = find(&RealmKey::Head(stream)).map(|entry| known_head(stream, entry)).transpose()?;
    let log_key = RealmKey::Log(stream, number);
    let logged = find(&log_key).map(|entry| LogValue::read(stream, number, &entry.value)).transpose();
    let logged = logged.map_err(RealmError::malformed(&log_key))?.map(|value| value.heading.id);
    let (revision, head) = match head {
        Some(KnownHead { revision, head }) => (revision, Some(*head)),
        None => (Revision::ABSENT, None),
    };
    let evidence = AnswerEvidence { logged, refusal: None };
    Ok(Sent { answer: Answer::Conflict { revision, head }, evidence })
}

/// The fate of a batch, from the id that the log has under its number.
pub(crate) fn fate(fate: BatchFate, evidence: &AnswerEvidence, head: Option<&StreamHead>) -> CommitFate {
    match fate {
        BatchFate::NotApplied => CommitFate::NotApplied,
        BatchFate::Unknown { number, batch } => match evidence.logged {
            Some(found) if found == batch => CommitFate::Applied,
            Some(_) => CommitFate::NotApplied,
            None if head.is_some_and(|head| head.number < number) => CommitFate::NotApplied,
            None => CommitFate::Unknown,
        },
    }
}

/// The head that a conflict has shown.
pub(crate) fn shown_head(revision: Revision, head: Option<Head<HeadDetails>>) -> Option<KnownHead> {
    head.map(|head| KnownHead { revision, head: Box::new(head) })
}

/// Writes the parts of a large batch. Returns false if the head is another one.
pub(crate) async fn write_parts(
    realm: &Realm,
    stream: Stream,
    revision: Revision,
    encoded: &EncodedBatch,
) -> Result<bool, CommitError> {
    for (key, value) in &encoded.parts {
        let put = EngineOperation::put(realm.key(&RealmKey::Part(*key)), value.clone());
        let guarded = EngineTransaction::guarded(realm.key(&RealmKey::Head(stream)), revision);
        let request = EngineTransaction { then: vec![put], ..guarded };
        let answer = realm.repeat(&request).await.map_err(|error| CommitError::NotCommitted(error.into()))?;
        if !answer.succeeded {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The details of the head after a batch.
pub(crate) fn details_after(head: &StreamHead, new: &NewBatch, chain: Chain) -> HeadDetails {
    let HeadDetails { records, snapshot, wall, format, .. } = head.details;
    let (records, wall) = (records + new.records.len() as u64, wall.max(new.time.wall));
    HeadDetails { records, chain, snapshot, wall, format }
}

pub(crate) fn fresh_id() -> Result<BatchId, CommitError> {
    new_batch_id().map_err(CommitError::NotCommitted)
}

/// The error of an answer that the protocol does not give.
pub(crate) fn unexpected() -> CommitError {
    CommitError::Unknown(RealmError::Protocol)
}
