//! The connections of one listener: tracks which are idle, and ends all of them on stop.
//!
//! ```text
//!   serving ──stop──▶ idle ones are closed, waiting requests answered ──all answered, or out of time──▶ closed
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Maximum time for responses in progress when the server stops.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// The connections of one listener. Dropping it aborts them.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    set: Arc<ConnectionSet>,
}

#[derive(Debug, Default)]
struct ConnectionSet {
    open: Mutex<OpenConnections>,
    is_stopping: AtomicBool,
    stopping: Notify,
    left: Notify,
}

/// Slots by number. The number of a closed connection is reused.
#[derive(Debug, Default)]
struct OpenConnections {
    slots: Vec<Option<Arc<ConnectionSlot>>>,
    free: Vec<usize>,
}

#[derive(Debug, Default)]
struct ConnectionSlot {
    is_idle: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// Registers one connection in the set, and frees its slot on drop.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    number: usize,
    slot: Arc<ConnectionSlot>,
    set: Arc<ConnectionSet>,
}

impl Connections {
    /// Registers a connection, and spawns its task.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        run: impl FnOnce(ConnectionGuard) -> F,
    ) {
        let slot = Arc::new(ConnectionSlot::default());
        let number = self.set.open().add(Arc::clone(&slot));
        let guard = ConnectionGuard { number, slot: Arc::clone(&slot), set: Arc::clone(&self.set) };
        let task = tokio::spawn(run(guard)).abort_handle();
        slot.task.set(task).expect("a slot has one task");
    }

    /// Aborts idle connections, then waits up to [`FINISH_MAX`] until the others have sent their responses.
    pub(crate) async fn stop(self) {
        self.set.is_stopping.store(true, Ordering::Release);
        self.set.stopping.notify_waiters();
        self.set.open().close(|slot| slot.is_idle.load(Ordering::Acquire));
        let all_left = async {
            while self.set.open().count() > 0 {
                // A connection that closes between the check and the wait leaves a permit.
                self.set.left.notified().await;
            }
        };
        if tokio::time::timeout(FINISH_MAX, all_left).await.is_err() {
            tracing::warn!(connections = self.set.open().count(), "connections closed before their response");
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.set.open().close(|_| true);
    }
}

impl ConnectionSet {
    /// The table is consistent at every moment, even if a holder of the lock panicked.
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn add(&mut self, slot: Arc<ConnectionSlot>) -> usize {
        let number = self.free.pop().unwrap_or(self.slots.len());
        if number == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[number] = Some(slot);
        number
    }

    fn remove(&mut self, number: usize) {
        self.slots[number] = None;
        self.free.push(number);
    }

    fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn close(&self, which: impl Fn(&ConnectionSlot) -> bool) {
        let slots = self.slots.iter().flatten().filter(|slot| which(slot));
        slots.filter_map(|slot| slot.task.get()).for_each(AbortHandle::abort);
    }
}

impl ConnectionGuard {
    /// No byte of a request has arrived: this connection may be aborted at any time.
    pub(crate) fn set_idle(&self) {
        self.slot.is_idle.store(true, Ordering::Release);
    }

    /// A request has begun to arrive: it is answered before the connection is closed.
    pub(crate) fn set_busy(&self) {
        self.slot.is_idle.store(false, Ordering::Release);
    }

    /// Returns true if the server stops: the current request is the last one.
    pub(crate) fn is_stopping(&self) -> bool {
        self.set.is_stopping.load(Ordering::Acquire)
    }

    /// Returns when the server stops.
    pub(crate) async fn stopping(&self) {
        let stopping = self.set.stopping.notified();
        tokio::pin!(stopping);
        stopping.as_mut().enable();
        if !self.is_stopping() {
            stopping.await;
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.set.open().remove(self.number);
        if self.is_stopping() {
            self.set.left.notify_one();
        }
    }
}
