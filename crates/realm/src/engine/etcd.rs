//! The engine etcd: requests and errors translated for its client.

use std::time::Duration;

use forewarn_etcd::{
    Condition, Doubt, EtcdClient, EtcdError, FoundKeys, KeyRange, Obstacle, Operation, OperationAnswer,
    PutOperation, RangeQuery, Rejection, Transaction, Watch, WatchEnd, WatchEvent, WatchItem, WatchQuery,
};
use forewarn_ownership::Revision;

use super::AnswerTimes;
use super::error::{EngineError, EngineRefusal};
use super::request::{
    EngineOperation, EngineStatus, EngineTransaction, KeyEvent, KeyPage, KeySpan, KeyValue, LeaseId,
    ReadContent, ReadRequest, TransactionAnswer,
};

/// A cluster of etcd. Clones share its connections.
#[derive(Clone, Debug)]
pub struct EtcdEngine {
    client: EtcdClient,
    answers: AnswerTimes,
}

/// A watch of etcd.
#[derive(Debug)]
pub struct EtcdWatch {
    watch: Watch,
    answers: AnswerTimes,
}

impl EtcdEngine {
    #[must_use]
    pub fn new(client: EtcdClient) -> Self {
        Self { client, answers: AnswerTimes::new() }
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &EtcdClient {
        &self.client
    }

    pub(super) fn answers(&self) -> &AnswerTimes {
        &self.answers
    }

    pub(super) async fn read(&self, request: &ReadRequest, limit: Duration) -> Result<KeyPage, EngineError> {
        let answer = self.client.within(limit).range(&query(request)).await.map_err(read_error);
        let answer = self.answers.note(answer)?;
        let FoundKeys { entries, has_more, .. } = answer.found;
        let entries = entries.into_iter().map(KeyValue::from).collect();
        Ok(KeyPage { entries, has_more, revision: Revision(answer.header.revision) })
    }

    pub(super) async fn transact(
        &self,
        transaction: &EngineTransaction,
        limit: Duration,
    ) -> Result<TransactionAnswer, EngineError> {
        let answer = self.client.within(limit).transact(&message(transaction)).await;
        let answer = self.answers.note(answer.map_err(EngineError::from))?;
        let reads = answer.answers.into_iter().filter_map(|answer| match answer {
            OperationAnswer::Range(found) => Some(found.entries.into_iter().map(KeyValue::from).collect()),
            OperationAnswer::Put | OperationAnswer::Delete(_) => None,
        });
        let (succeeded, revision) = (answer.succeeded, Revision(answer.header.revision));
        Ok(TransactionAnswer { succeeded, revision, reads: reads.collect() })
    }

    pub(super) async fn watch(
        &self,
        keys: KeySpan,
        Revision(start): Revision,
        limit: Duration,
    ) -> Result<EtcdWatch, EngineError> {
        let query = WatchQuery::new(range(&keys)).starting_at(start);
        let begun = self.client.within(limit).watch(&query).await.map_err(EngineError::from);
        let watch = self.answers.note(begun)?;
        Ok(EtcdWatch { watch, answers: self.answers.clone() })
    }

    pub(super) async fn grant_lease(&self, seconds: u32, limit: Duration) -> Result<LeaseId, EngineError> {
        let granted = self.client.within(limit).grant_lease(0, i64::from(seconds)).await;
        self.answers.note(granted.map(|answer| LeaseId(answer.lease)).map_err(EngineError::from))
    }

    pub(super) async fn keep_lease_alive(&self, lease: LeaseId, limit: Duration) -> Result<(), EngineError> {
        let kept = self.client.within(limit).keep_lease_alive(lease.0).await;
        self.answers.note(kept.map(drop).map_err(EngineError::from))
    }

    pub(super) async fn revoke_lease(&self, lease: LeaseId, limit: Duration) -> Result<(), EngineError> {
        let revoked = self.client.within(limit).revoke_lease(lease.0).await;
        self.answers.note(revoked.map(drop).map_err(EngineError::from))
    }

    pub(super) async fn compact(
        &self,
        Revision(revision): Revision,
        limit: Duration,
    ) -> Result<(), EngineError> {
        let compacted = self.client.within(limit).compact(revision).await;
        match self.answers.note(compacted.map(drop).map_err(EngineError::from)) {
            Ok(()) | Err(EngineError::Compacted(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn status(&self, limit: Duration) -> Result<EngineStatus, EngineError> {
        // A count of a key that nobody has: the header of the answer is what is wanted.
        let query = RangeQuery::new(KeyRange::key(&b"\0"[..])).count_only();
        let answer = self.client.within(limit).range(&query).await.map_err(EngineError::from);
        let header = self.answers.note(answer)?.header;
        Ok(EngineStatus { cluster_id: header.cluster_id, revision: Revision(header.revision) })
    }
}

impl EtcdWatch {
    pub(super) async fn next(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        loop {
            let item = self.watch.next().await.map_err(|end| match end {
                WatchEnd::Compacted { revision } => EngineError::Compacted(Some(Revision(revision))),
                WatchEnd::Lost(error) => error.into(),
            });
            match self.answers.note(item)? {
                WatchItem::Events(events) => return Ok(events.into_iter().map(KeyEvent::from).collect()),
                WatchItem::Progress { .. } => {}
            }
        }
    }
}

fn range(keys: &KeySpan) -> KeyRange {
    match keys.end() {
        None => KeyRange::key(keys.first().clone()),
        Some(end) => KeyRange::between(keys.first().clone(), end.clone()),
    }
}

fn query(request: &ReadRequest) -> RangeQuery {
    let ReadRequest { keys, revision, limit, content } = request;
    let query = RangeQuery::new(range(keys));
    let query = revision.map_or(query.clone(), |Revision(revision)| query.at_revision(revision));
    let query = limit.map_or(query.clone(), |limit| query.limit(limit));
    match content {
        ReadContent::Values => query,
        ReadContent::Keys => query.keys_only(),
    }
}

fn operation(operation: &EngineOperation) -> Operation {
    match operation {
        EngineOperation::Put { key, value, lease } => {
            let put = PutOperation::new(key.clone(), value.clone());
            Operation::Put(put.with_lease(lease.map_or(0, |LeaseId(lease)| lease)))
        }
        EngineOperation::Delete(keys) => Operation::Delete(range(keys)),
        EngineOperation::Read(request) => Operation::Range(query(request)),
    }
}

fn message(transaction: &EngineTransaction) -> Transaction {
    let EngineTransaction { guards, then, otherwise } = transaction;
    let message = guards.iter().fold(Transaction::new(), |message, guard| {
        message.when(Condition::written_at(guard.key.clone(), guard.revision.0))
    });
    let message = then.iter().fold(message, |message, one| message.then(operation(one)));
    otherwise.iter().fold(message, |message, one| message.otherwise(operation(one)))
}

impl From<forewarn_etcd::KeyValue> for KeyValue {
    fn from(entry: forewarn_etcd::KeyValue) -> Self {
        Self { key: entry.key, value: entry.value, mod_revision: Revision(entry.mod_revision) }
    }
}

impl From<WatchEvent> for KeyEvent {
    fn from(event: WatchEvent) -> Self {
        match event {
            WatchEvent::Put(entry) => Self::Put(entry.into()),
            WatchEvent::Delete { key, mod_revision } => {
                Self::Deleted { key, mod_revision: Revision(mod_revision) }
            }
        }
    }
}

impl From<EtcdError> for EngineError {
    fn from(error: EtcdError) -> Self {
        let message = error.to_string();
        match error {
            EtcdError::NotSent { obstacle: Obstacle::TooLarge, .. } => {
                Self::refused(EngineRefusal::TooLarge, message)
            }
            EtcdError::NotSent { obstacle: Obstacle::Unreachable | Obstacle::TimedOut, .. } => {
                Self::NotReached(message)
            }
            EtcdError::Rejected { rejection, .. } => rejected(rejection, message),
            EtcdError::Unknown { .. } => Self::Unknown(message),
        }
    }
}

/// The error of a read. An answer that is too large may be read with a smaller limit.
fn read_error(error: EtcdError) -> EngineError {
    if error.doubt() == Some(Doubt::InvalidAnswer) {
        return EngineError::refused(EngineRefusal::TooLarge, error.to_string());
    }
    error.into()
}

fn rejected(rejection: Rejection, message: String) -> EngineError {
    match rejection {
        Rejection::Compacted => EngineError::Compacted(None),
        Rejection::TooLarge | Rejection::TooManyOperations => {
            EngineError::refused(EngineRefusal::TooLarge, message)
        }
        Rejection::LeaseNotFound => EngineError::refused(EngineRefusal::NoLease, message),
        Rejection::PermissionDenied
        | Rejection::NotAuthenticated
        | Rejection::WrongLogin
        | Rejection::LoginDisabled => EngineError::refused(EngineRefusal::Denied, message),
        // Another member may do better.
        Rejection::NoLeader | Rejection::Overloaded | Rejection::FutureRevision | Rejection::Unsupported => {
            EngineError::NotReached(message)
        }
        Rejection::Invalid | Rejection::DuplicateKey | Rejection::LeaseExists => {
            EngineError::refused(EngineRefusal::Invalid, message)
        }
    }
}
