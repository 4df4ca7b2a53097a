//! Shares of the load that one machine may have.
//!
//! A share is given back when it is dropped, whichever way a request or a connection ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::directory::Caller;
use crate::load::Kind;

/// One of a limited number; it is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    caller: Arc<Caller>,
    kind: Kind,
}

impl Share {
    /// One more for that machine, unless it has as many as it may.
    pub(crate) fn take(caller: &Arc<Caller>, kind: Kind, max: u32) -> Option<Self> {
        // It only counts: nothing else is made visible by it.
        let grow = |count: u32| (count < max).then_some(count + 1);
        let count = caller.load.count(kind);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        Some(Self { caller: Arc::clone(caller), kind })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.caller.load.count(self.kind).fetch_sub(1, Ordering::Relaxed);
    }
}
