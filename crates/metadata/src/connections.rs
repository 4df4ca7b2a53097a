//! The connections of one listener: which of them wait for a request, and how all of them end.
//!
//! ```text
//!   serving ──stop──▶ idle ones are closed, waiting requests answered ──all answered, or out of time──▶ closed
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// How long answers that are under way may take when the server stops.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// The connections of one listener. They end with it.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    seats: Arc<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    open: Mutex<Open>,
    is_stopping: AtomicBool,
    stopping: Notify,
    left: Notify,
}

/// Lines by number; the number of one that has gone is given to another.
#[derive(Debug, Default)]
struct Open {
    lines: Vec<Option<Arc<Line>>>,
    free: Vec<usize>,
}

#[derive(Debug, Default)]
struct Line {
    is_idle: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// The place of one connection among the others. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    number: usize,
    line: Arc<Line>,
    seats: Arc<Seats>,
}

impl Connections {
    /// Gives a connection a seat, and a task of its own.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, run: impl FnOnce(Seat) -> F) {
        let line = Arc::new(Line::default());
        let number = self.seats.open().add(Arc::clone(&line));
        let seat = Seat { number, line: Arc::clone(&line), seats: Arc::clone(&self.seats) };
        let task = tokio::spawn(run(seat)).abort_handle();
        line.task.set(task).expect("a line has one task");
    }

    /// Closes who is idle at once, and waits until the others have their answers, but not for long.
    pub(crate) async fn stop(self) {
        self.seats.is_stopping.store(true, Ordering::Release);
        self.seats.stopping.notify_waiters();
        self.seats.open().close(|line| line.is_idle.load(Ordering::Acquire));
        let all_left = async {
            while self.seats.open().count() > 0 {
                // Whoever leaves between the two has left a permit.
                self.seats.left.notified().await;
            }
        };
        if tokio::time::timeout(FINISH_MAX, all_left).await.is_err() {
            tracing::warn!(connections = self.seats.open().count(), "closed before they were answered");
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.seats.open().close(|_| true);
    }
}

impl Seats {
    /// Nothing in there can be half done, even if somebody panicked while holding it.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn add(&mut self, line: Arc<Line>) -> usize {
        let number = self.free.pop().unwrap_or(self.lines.len());
        if number == self.lines.len() {
            self.lines.push(None);
        }
        self.lines[number] = Some(line);
        number
    }

    fn remove(&mut self, number: usize) {
        self.lines[number] = None;
        self.free.push(number);
    }

    fn count(&self) -> usize {
        self.lines.len() - self.free.len()
    }

    fn close(&self, which: impl Fn(&Line) -> bool) {
        let lines = self.lines.iter().flatten().filter(|line| which(line));
        lines.filter_map(|line| line.task.get()).for_each(AbortHandle::abort);
    }
}

impl Seat {
    /// Nothing of a request has come: this connection may be closed at any moment.
    pub(crate) fn set_idle(&self) {
        self.line.is_idle.store(true, Ordering::Release);
    }

    /// Something of a request has come: it is answered before the connection is closed.
    pub(crate) fn set_busy(&self) {
        self.line.is_idle.store(false, Ordering::Release);
    }

    /// Whether this request is the last one.
    pub(crate) fn is_stopping(&self) -> bool {
        self.seats.is_stopping.load(Ordering::Acquire)
    }

    /// Returns when the server stops.
    pub(crate) async fn stopping(&self) {
        let stopping = self.seats.stopping.notified();
        tokio::pin!(stopping);
        stopping.as_mut().enable();
        if !self.is_stopping() {
            stopping.await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.open().remove(self.number);
        if self.is_stopping() {
            self.seats.left.notify_one();
        }
    }
}
