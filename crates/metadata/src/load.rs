//! Counts of connections and requests that are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much one machine has going on.
#[derive(Debug, Default)]
pub(crate) struct Load {
    connections: AtomicU32,
    in_flight: AtomicU32,
    waiting: AtomicU32,
}

/// What there is a limited number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Open connections.
    Connection,
    /// Requests that were read and are not answered yet.
    InFlight,
    /// Requests that wait for news.
    Waiting,
}

/// How many there are of something, against a maximum that may change.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU32);

/// One of them; it is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Count>);

impl Count {
    /// One more, unless there are as many as there may be.
    pub(crate) fn take(self: &Arc<Self>, max: u32) -> Option<Place> {
        let grow = |count: u32| (count < max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        Some(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Load {
    pub(crate) const fn count(&self, kind: Kind) -> &AtomicU32 {
        match kind {
            Kind::Connection => &self.connections,
            Kind::InFlight => &self.in_flight,
            Kind::Waiting => &self.waiting,
        }
    }
}
