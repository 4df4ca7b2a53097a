//! The handle of a realm: an engine, the keys in it, and the time limits of calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{BatchId, Revision, ServerName};
use tokio::time::{Instant, sleep};

use crate::engine::{
    Engine, EngineError, EngineOperation, EngineTransaction, KeyPage, KeyValue, LeaseId, ReadRequest,
    TransactionAnswer,
};
use crate::error::{CommitError, RealmError};
use crate::keys::{KeyFamily, Keyspace, RealmKey};
use crate::records::{ArchivedNumbers, JsonRecord};

/// Maximum number of streams of a realm: the shared one and all clusters.
pub const STREAMS_MAX: u32 = 10_000;

/// Seconds after which the key of a silent server goes.
pub const SERVER_LEASE_SECONDS: u32 = 5;

/// The pause after a first failed call, and the longest one.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(160);

/// Repetitions of a commit while the server stops: each of three endpoints is tried.
const STOPPING_REPEATS_MAX: u32 = 3;

/// Time limits of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// Of the first attempts of a call: then the next endpoint is tried.
    pub attempt: Duration,
    /// Of later attempts, which have more and more time: an engine that is slow is used all the same.
    pub attempt_max: Duration,
    /// Of all attempts of a call that may be given up: all except commits.
    pub total: Duration,
}

impl Default for CallTimes {
    /// 300 ms, 2 s, and 5 s.
    fn default() -> Self {
        let (attempt, attempt_max) = (Duration::from_millis(300), Duration::from_secs(2));
        Self { attempt, attempt_max, total: Duration::from_secs(5) }
    }
}

impl CallTimes {
    /// The time limit of an attempt after that many others.
    fn attempt_after(&self, others: u32) -> Duration {
        // Three endpoints get the first one each.
        self.attempt.saturating_mul(1 + others / 3).min(self.attempt_max.max(self.attempt))
    }
}

/// A realm: everything under one prefix of one engine. Clones share connections.
#[derive(Clone, Debug)]
pub struct Realm {
    engine: Engine,
    keys: Keyspace,
    times: CallTimes,
    /// The server stops.
    is_stopping: Arc<AtomicBool>,
}

/// Attempts of a call: their time limits, and the pauses between them.
#[derive(Debug)]
pub(crate) struct Attempts {
    times: CallTimes,
    failed: u32,
}

impl Attempts {
    pub(crate) fn new(times: CallTimes) -> Self {
        Self { times, failed: 0 }
    }

    /// The time limit of the next attempt.
    pub(crate) fn limit(&self) -> Duration {
        self.times.attempt_after(self.failed)
    }

    /// Waits after an attempt that has failed.
    pub(crate) async fn pause(&mut self) {
        sleep((PAUSE_MIN * (1 << self.failed.min(8))).min(PAUSE_MAX)).await;
        self.failed = self.failed.saturating_add(1);
    }

    /// The same after an attempt of a commit that has no answer. Fails if the server stops, and does not wait for one.
    pub(crate) async fn pause_commit(&mut self, realm: &Realm) -> Result<(), CommitError> {
        if self.failed >= STOPPING_REPEATS_MAX && realm.is_stopping.load(Ordering::Relaxed) {
            let error = EngineError::Unknown("no answer before the server stopped".to_owned());
            return Err(CommitError::Unknown(error.into()));
        }
        self.pause().await;
        Ok(())
    }
}

impl Realm {
    #[must_use]
    pub fn new(engine: Engine, keys: Keyspace, times: CallTimes) -> Self {
        Self { engine, keys, times, is_stopping: Arc::default() }
    }

    /// Gives up commits that have no answer, from now on: the server stops. Their outcome is unknown.
    pub fn give_up_commits(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// The time limits of calls.
    #[must_use]
    pub fn times(&self) -> &CallTimes {
        &self.times
    }

    pub(crate) fn key(&self, key: &RealmKey) -> Bytes {
        self.keys.key(key)
    }

    /// Repeats a call until it has an answer, or its time is over.
    pub(crate) async fn until_answered<T, F: Future<Output = Result<T, EngineError>>>(
        &self,
        call: impl Fn(Duration) -> F,
    ) -> Result<T, EngineError> {
        let (begin, mut attempts) = (Instant::now(), Attempts::new(self.times));
        loop {
            match call(attempts.limit()).await {
                Err(error) if error.may_be_repeated() && begin.elapsed() < self.times.total => {
                    attempts.pause().await;
                }
                answer => return answer,
            }
        }
    }

    /// Reads one page of keys, with as many attempts as the time allows.
    pub(crate) async fn read(&self, request: &ReadRequest) -> Result<KeyPage, EngineError> {
        self.until_answered(|limit| self.engine.read(request, limit)).await
    }

    /// Reads one key.
    pub(crate) async fn get(&self, key: &RealmKey) -> Result<Option<KeyValue>, RealmError> {
        let request = ReadRequest::new(crate::engine::KeySpan::one(self.key(key)));
        let attempt = |limit| self.engine.read(&request, limit);
        Ok(self.until_answered(attempt).await?.entries.pop())
    }

    /// Applies a transaction that may be applied twice without harm, with as many attempts as the time allows.
    pub(crate) async fn repeat(
        &self,
        transaction: &EngineTransaction,
    ) -> Result<TransactionAnswer, EngineError> {
        self.until_answered(|limit| self.engine.transact(transaction, limit)).await
    }

    /// Writes a value that a repetition does not change.
    async fn put(
        &self,
        key: &RealmKey,
        value: Bytes,
        lease: Option<LeaseId>,
    ) -> Result<Revision, RealmError> {
        let put = EngineOperation::Put { key: self.key(key), value, lease };
        let transaction = EngineTransaction { then: vec![put], ..EngineTransaction::default() };
        Ok(self.repeat(&transaction).await?.revision)
    }

    async fn delete(&self, key: &RealmKey) -> Result<Revision, RealmError> {
        let delete = EngineOperation::Delete(crate::engine::KeySpan::one(self.key(key)));
        let transaction = EngineTransaction { then: vec![delete], ..EngineTransaction::default() };
        Ok(self.repeat(&transaction).await?.revision)
    }

    /// Stores the numbers of the last batches on the disk of a server.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn record_archived(
        &self,
        name: &ServerName,
        numbers: &ArchivedNumbers,
    ) -> Result<Revision, RealmError> {
        self.put(&RealmKey::Archived(name.clone()), numbers.to_json(), None).await
    }

    /// Forgets the archive of a server that is removed from the realm.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn forget_archive(&self, name: &ServerName) -> Result<Revision, RealmError> {
        self.delete(&RealmKey::Archived(name.clone())).await
    }

    /// The servers that have an archive, with the numbers of the last batches on their disks.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn archives(&self) -> Result<BTreeMap<ServerName, ArchivedNumbers>, RealmError> {
        let request = ReadRequest::new(self.keys.family(KeyFamily::Archived)).limit(STREAMS_MAX);
        let entries = self.read(&request).await?.entries;
        let archive = |entry: KeyValue| {
            let Some(RealmKey::Archived(name)) = self.keys.parse(&entry.key) else { return None };
            // A value that this program cannot read belongs to a server all the same.
            Some((name, ArchivedNumbers::from_json(&entry.value).unwrap_or_default()))
        };
        Ok(entries.into_iter().filter_map(archive).collect())
    }

    /// Orders a server to give its streams away and to take none, or ends that order.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn set_draining(&self, name: &ServerName, is_on: bool) -> Result<Revision, RealmError> {
        let key = RealmKey::Draining(name.clone());
        if is_on { self.put(&key, name.to_json(), None).await } else { self.delete(&key).await }
    }

    /// Sets or removes the preferred owner of a stream.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn set_preferred(
        &self,
        stream: Stream,
        server: Option<&ServerName>,
    ) -> Result<Revision, RealmError> {
        let key = RealmKey::Preferred(stream);
        match server {
            Some(server) => self.put(&key, server.to_json(), None).await,
            None => self.delete(&key).await,
        }
    }

    /// Grants a lease for the key of a server.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn grant_lease(&self) -> Result<LeaseId, RealmError> {
        let grant = |limit| self.engine.grant_lease(SERVER_LEASE_SECONDS, limit);
        Ok(self.until_answered(grant).await?)
    }

    /// Keeps a lease alive, once.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the lease has ended.
    pub async fn keep_lease_alive(&self, lease: LeaseId) -> Result<(), RealmError> {
        let keep = |limit| self.engine.keep_lease_alive(lease, limit);
        Ok(self.until_answered(keep).await?)
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the lease has ended.
    pub async fn revoke_lease(&self, lease: LeaseId) -> Result<(), RealmError> {
        let revoke = |limit| self.engine.revoke_lease(lease, limit);
        Ok(self.until_answered(revoke).await?)
    }

    /// Removes the history of the engine before a revision.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn compact(&self, revision: Revision) -> Result<(), RealmError> {
        let compact = |limit| self.engine.compact(revision, limit);
        Ok(self.until_answered(compact).await?)
    }
}

/// An id that no other transaction has.
pub(crate) fn new_batch_id() -> Result<BatchId, RealmError> {
    random().map(BatchId)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], RealmError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| RealmError::Random(error.to_string()))?;
    Ok(bytes)
}
