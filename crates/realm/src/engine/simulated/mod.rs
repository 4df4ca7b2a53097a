//! An engine in this process, for tests: the same semantics as etcd, and faults on demand.
//!
//! Every client ([`SimulatedEngine::client`]) shares the store and has faults of its own. A call that meets a fault has
//! no answer: the request was lost before it was applied, or its answer after, or it is applied later.

mod faults;
mod store;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_ownership::Revision;
use tokio::sync::watch as signal;

use super::AnswerTimes;
use super::error::{EngineError, EngineRefusal};
use super::request::{
    EngineStatus, EngineTransaction, KeyPage, KeySpan, KeyValue, LeaseId, ReadRequest, TransactionAnswer,
};

pub use faults::{FaultRates, SimulatedFault, WatchFault};
pub use store::{SIMULATED_OPERATIONS_MAX, SIMULATED_REQUEST_BYTES_MAX};
pub use watch::SimulatedWatch;

use faults::{ClientFaults, Reach};
use store::SimulatedStore;

/// An engine in this process. Clones share the store and the faults.
#[derive(Clone, Debug)]
pub struct SimulatedEngine {
    shared: Arc<SharedStore>,
    faults: Arc<Mutex<ClientFaults>>,
    answers: AnswerTimes,
}

/// The store that clients share.
#[derive(Debug)]
struct SharedStore {
    store: Mutex<SimulatedStore>,
    /// Changes with every write.
    changed: signal::Sender<i64>,
}

impl SharedStore {
    fn lock(&self) -> MutexGuard<'_, SimulatedStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        let Revision(revision) = self.lock().revision();
        self.changed.send_replace(revision);
    }
}

impl Default for SimulatedEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedEngine {
    /// An empty engine without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::with_store(SimulatedStore::new(1))
    }

    fn with_store(store: SimulatedStore) -> Self {
        let shared = SharedStore { store: Mutex::new(store), changed: signal::Sender::new(0) };
        Self { shared: Arc::new(shared), faults: Arc::default(), answers: AnswerTimes::new() }
    }

    /// Another client of the same engine, without faults.
    #[must_use]
    pub fn client(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), faults: Arc::default(), answers: AnswerTimes::new() }
    }

    /// Another engine with the present content, as if restored from a backup: another cluster id, and all
    /// leases have ended since.
    #[must_use]
    pub fn restored(&self) -> Self {
        Self::with_store(self.shared.lock().restored())
    }

    /// Adds a fault that the next transaction of this client meets.
    pub fn meet(&self, fault: SimulatedFault) {
        self.lock_faults().queue.push_back(fault);
    }

    /// Adds a fault that the next event of each watch of this client meets.
    pub fn meet_in_watch(&self, fault: WatchFault) {
        self.lock_faults().watch_queue.push_back(fault);
    }

    /// Makes transactions and events of this client meet random faults from now on.
    pub fn meet_randomly(&self, rates: FaultRates) {
        self.lock_faults().rates = Some(rates);
    }

    /// Cuts this client off: it reaches nothing, and its watches end.
    pub fn cut(&self) {
        self.lock_faults().reach = Reach::Cut;
        self.shared.announce();
    }

    /// Cuts this client off after that many transactions, reads among them, as if its process were killed.
    pub fn cut_after(&self, transactions: usize) {
        self.lock_faults().left = Some(transactions);
    }

    /// Lets this client reach the engine again, and ends all of its faults.
    pub fn heal(&self) {
        *self.lock_faults() = ClientFaults::default();
        self.shared.announce();
    }

    /// Number of transactions that are delayed.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.lock_faults().delayed.len()
    }

    /// Applies transactions that were delayed.
    pub fn deliver_delayed(&self) {
        let delayed = std::mem::take(&mut self.lock_faults().delayed);
        for transaction in delayed {
            // Nobody waits for the answer.
            drop(self.shared.lock().transact(&transaction));
        }
        self.shared.announce();
    }

    /// Ends a lease as if its time were over.
    pub fn expire_lease(&self, lease: LeaseId) {
        self.shared.lock().end_lease(lease);
        self.shared.announce();
    }

    /// Replaces the bytes of a value without a trace, as damage does. Returns false if there is no such key.
    pub fn damage(&self, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.shared.lock().damage(key, change)
    }

    /// All keys and values.
    #[must_use]
    pub fn contents(&self) -> Vec<KeyValue> {
        self.shared.lock().contents()
    }

    pub(super) fn answers(&self) -> &AnswerTimes {
        &self.answers
    }

    fn lock_faults(&self) -> MutexGuard<'_, ClientFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_reach(&self) -> Result<(), EngineError> {
        match self.lock_faults().reach {
            Reach::Open => Ok(()),
            Reach::Cut => Err(EngineError::NotReached("the client is cut off".to_owned())),
        }
    }

    /// Waits as a client does that gets no answer.
    async fn time_out<T>(limit: Duration) -> Result<T, EngineError> {
        tokio::time::sleep(limit).await;
        Err(EngineError::Unknown("no answer in time".to_owned()))
    }

    pub(super) async fn read(&self, request: &ReadRequest, limit: Duration) -> Result<KeyPage, EngineError> {
        tokio::task::yield_now().await;
        if self.lock_faults().loses_read() {
            return Self::time_out(limit).await;
        }
        self.check_reach()?;
        let answer = self.shared.lock().read(request);
        self.answers.note(answer)
    }

    pub(super) async fn transact(
        &self,
        transaction: &EngineTransaction,
        limit: Duration,
    ) -> Result<TransactionAnswer, EngineError> {
        // Others get their turn, as they do while a real engine works.
        tokio::task::yield_now().await;
        self.lock_faults().count();
        self.check_reach()?;
        let fault = self.lock_faults().next();
        let apply = || {
            let answer = self.shared.lock().transact(transaction);
            self.shared.announce();
            answer
        };
        match fault {
            None => self.answers.note(apply()),
            Some(SimulatedFault::LostRequest) => Self::time_out(limit).await,
            Some(SimulatedFault::LostAnswer) => {
                drop(apply());
                Self::time_out(limit).await
            }
            Some(SimulatedFault::Delayed) => {
                self.lock_faults().delayed.push(transaction.clone());
                Self::time_out(limit).await
            }
            Some(SimulatedFault::Refused) => {
                Err(EngineError::refused(EngineRefusal::Invalid, "a fault of the simulation"))
            }
        }
    }

    pub(super) fn watch(&self, keys: KeySpan, start: Revision) -> Result<SimulatedWatch, EngineError> {
        self.check_reach()?;
        let changed = self.shared.changed.subscribe();
        Ok(SimulatedWatch::new(Arc::clone(&self.shared), Arc::clone(&self.faults), keys, start, changed))
    }

    pub(super) fn grant_lease(&self) -> Result<LeaseId, EngineError> {
        self.check_reach()?;
        self.answers.note(Ok(self.shared.lock().grant_lease()))
    }

    pub(super) fn keep_lease_alive(&self, lease: LeaseId) -> Result<(), EngineError> {
        self.check_reach()?;
        self.answers.note(self.shared.lock().check_lease(lease))
    }

    pub(super) fn revoke_lease(&self, lease: LeaseId) -> Result<(), EngineError> {
        self.keep_lease_alive(lease)?;
        self.expire_lease(lease);
        Ok(())
    }

    pub(super) fn compact(&self, revision: Revision) -> Result<(), EngineError> {
        self.check_reach()?;
        let compacted = self.shared.lock().compact(revision);
        self.shared.announce();
        self.answers.note(compacted)
    }

    pub(super) fn status(&self) -> Result<EngineStatus, EngineError> {
        self.check_reach()?;
        self.answers.note(Ok(self.shared.lock().status()))
    }
}
