//! Counts of connections and requests that are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Open connections and pending requests of one machine.
#[derive(Debug, Default)]
pub(crate) struct CallerLoad {
    connections: AtomicU32,
    in_flight: AtomicU32,
    waiting: AtomicU32,
}

/// Kind of load that is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKind {
    Connection,
    /// Requests that were read and have no response yet.
    InFlight,
    /// Requests that wait for a change of the document.
    Waiting,
}

/// A count with a maximum, which may change.
#[derive(Debug, Default)]
pub(crate) struct LimitedCount(AtomicU32);

/// One unit of a [`LimitedCount`], returned on drop.
#[derive(Debug)]
pub(crate) struct CountGuard(Arc<LimitedCount>);

impl LimitedCount {
    /// Takes one unit, unless the maximum is reached.
    pub(crate) fn take(self: &Arc<Self>, max: u32) -> Option<CountGuard> {
        let grow = |count: u32| (count < max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        Some(CountGuard(Arc::clone(self)))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallerLoad {
    pub(crate) const fn count(&self, kind: LoadKind) -> &AtomicU32 {
        match kind {
            LoadKind::Connection => &self.connections,
            LoadKind::InFlight => &self.in_flight,
            LoadKind::Waiting => &self.waiting,
        }
    }
}
