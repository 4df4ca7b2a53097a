//! The engine that servers of a realm share: keys with revisions, transactions, watches, leases.
//!
//! One narrow enum: etcd, and a simulation of it in this process for tests. A call is made once and within one time
//! limit; [`EngineError`] says whether it may have been applied.

mod error;
mod etcd;
mod members;
mod request;
mod simulated;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forewarn_ownership::Revision;

pub use error::{EngineError, EngineRefusal};
pub use etcd::{EtcdEngine, EtcdWatch};
pub use members::{EngineMember, EngineMemberStatus};
pub use request::{
    EngineOperation, EngineStatus, EngineTransaction, Guard, KeyEvent, KeyPage, KeySpan, KeyValue, LeaseId,
    ReadContent, ReadRequest, TransactionAnswer,
};
pub use simulated::{
    FaultRates, SIMULATED_OPERATIONS_MAX, SIMULATED_REQUEST_BYTES_MAX, SimulatedEngine, SimulatedFault,
    SimulatedWatch, WatchFault,
};

/// An engine.
#[derive(Clone, Debug)]
pub enum Engine {
    Etcd(EtcdEngine),
    Simulated(SimulatedEngine),
}

/// A watch of the engine. It ends when it is dropped.
#[derive(Debug)]
pub enum EngineWatch {
    Etcd(Box<EtcdWatch>),
    Simulated(SimulatedWatch),
}

impl Engine {
    /// Reads one page of keys.
    ///
    /// # Errors
    /// Fails if there is no answer, or the revision is compacted.
    pub async fn read(&self, request: &ReadRequest, limit: Duration) -> Result<KeyPage, EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.read(request, limit).await,
            Self::Simulated(simulated) => simulated.read(request, limit).await,
        }
    }

    /// Applies a transaction.
    ///
    /// # Errors
    /// Fails if there is no answer, or the engine refuses it. A guard that does not hold is no error.
    pub async fn transact(
        &self,
        transaction: &EngineTransaction,
        limit: Duration,
    ) -> Result<TransactionAnswer, EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.transact(transaction, limit).await,
            Self::Simulated(simulated) => simulated.transact(transaction, limit).await,
        }
    }

    /// Begins a watch of keys from a revision on.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn watch(
        &self,
        keys: KeySpan,
        start: Revision,
        limit: Duration,
    ) -> Result<EngineWatch, EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.watch(keys, start, limit).await.map(Box::new).map(EngineWatch::Etcd),
            Self::Simulated(simulated) => simulated.watch(keys, start).map(EngineWatch::Simulated),
        }
    }

    /// Grants a lease that ends after some seconds, unless it is kept alive.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn grant_lease(&self, seconds: u32, limit: Duration) -> Result<LeaseId, EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.grant_lease(seconds, limit).await,
            Self::Simulated(simulated) => simulated.grant_lease(),
        }
    }

    /// Keeps a lease alive, once.
    ///
    /// # Errors
    /// Fails if there is no answer, or the lease has ended ([`EngineRefusal::NoLease`]).
    pub async fn keep_lease_alive(&self, lease: LeaseId, limit: Duration) -> Result<(), EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.keep_lease_alive(lease, limit).await,
            Self::Simulated(simulated) => simulated.keep_lease_alive(lease),
        }
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// # Errors
    /// Fails if there is no answer, or the lease has ended.
    pub async fn revoke_lease(&self, lease: LeaseId, limit: Duration) -> Result<(), EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.revoke_lease(lease, limit).await,
            Self::Simulated(simulated) => simulated.revoke_lease(lease),
        }
    }

    /// Removes the history before a revision.
    ///
    /// # Errors
    /// Fails if there is no answer. History that is gone already is no error.
    pub async fn compact(&self, revision: Revision, limit: Duration) -> Result<(), EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.compact(revision, limit).await,
            Self::Simulated(simulated) => simulated.compact(revision),
        }
    }

    /// The identity and the revision of the engine, confirmed by a majority.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn status(&self, limit: Duration) -> Result<EngineStatus, EngineError> {
        match self {
            Self::Etcd(etcd) => etcd.status(limit).await,
            Self::Simulated(simulated) => simulated.status(),
        }
    }

    /// Time since the engine last answered this process, or since the engine was made here.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        match self {
            Self::Etcd(etcd) => etcd.answers().silent_for(),
            Self::Simulated(simulated) => simulated.answers().silent_for(),
        }
    }
}

impl EngineWatch {
    /// Waits for the next events: all events of one or more revisions, in their order. May be dropped at any time
    /// without losing any.
    ///
    /// # Errors
    /// Fails if the watch has ended. Another one may be begun after the last revision that was seen, unless the error is
    /// [`EngineError::Compacted`].
    pub async fn next(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        match self {
            Self::Etcd(watch) => watch.next().await,
            Self::Simulated(watch) => watch.next().await,
        }
    }
}

/// The time of the last answer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct AnswerTimes {
    origin: Instant,
    /// Milliseconds from the origin to the last answer.
    last_millis: Arc<AtomicU64>,
}

impl AnswerTimes {
    fn new() -> Self {
        Self { origin: Instant::now(), last_millis: Arc::default() }
    }

    /// Takes note of an answer, unless the engine was not reached.
    fn note<T>(&self, answer: Result<T, EngineError>) -> Result<T, EngineError> {
        match &answer {
            Ok(_) | Err(EngineError::Refused { .. } | EngineError::Compacted(_)) => {
                let millis = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.last_millis.fetch_max(millis, Ordering::Relaxed);
            }
            Err(EngineError::NotReached(_) | EngineError::Unknown(_)) => {}
        }
        answer
    }

    fn silent_for(&self) -> Duration {
        let last = Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
        self.origin.elapsed().saturating_sub(last)
    }
}
