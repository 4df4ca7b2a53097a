//! Load guards: units of the load that one machine may cause.
//!
//! A unit is returned on drop, however a request or a connection ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::caller::Caller;
use super::load::LoadKind;

/// One unit of load of a machine, returned on drop.
#[derive(Debug)]
pub(crate) struct LoadGuard {
    caller: Arc<Caller>,
    kind: LoadKind,
}

impl LoadGuard {
    /// Takes one unit of load for a machine, unless its maximum is reached.
    pub(crate) fn take(caller: &Arc<Caller>, kind: LoadKind, max: u32) -> Option<Self> {
        // Only a counter: relaxed ordering is enough.
        let grow = |count: u32| (count < max).then_some(count + 1);
        let count = caller.load.count(kind);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        Some(Self { caller: Arc::clone(caller), kind })
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.caller.load.count(self.kind).fetch_sub(1, Ordering::Relaxed);
    }
}
