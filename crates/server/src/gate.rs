//! Gates of a server with a virtual clock: many pass a gate at once, and one closes it.
//!
//! A server has two: drivers pass one while they decide, so that the clock goes on only in between; requests pass the
//! other, so that the state is replaced only in between. A server with a real clock waits for neither.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::clock::{Clock, ClockKind};

/// A gate. A server with a real clock has none, and everybody passes.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Option<Arc<RwLock<()>>>);

/// Keeps a gate open, as long as this lives.
pub(crate) type OpenGate = Option<OwnedRwLockReadGuard<()>>;

/// Keeps a gate closed, as long as this lives.
pub(crate) type ClosedGate = Option<OwnedRwLockWriteGuard<()>>;

impl Gate {
    pub(crate) fn of(clock: &Clock) -> Self {
        Self((clock.kind() == ClockKind::Virtual).then(Arc::default))
    }

    /// Passes the gate. Nobody may pass twice: the second time would wait for a gate that is about to be closed.
    pub(crate) async fn enter(&self) -> OpenGate {
        match &self.0 {
            Some(gate) => Some(Arc::clone(gate).read_owned().await),
            None => None,
        }
    }

    /// Waits until the gate is empty, and keeps others waiting.
    pub(crate) async fn close(&self) -> ClosedGate {
        match &self.0 {
            Some(gate) => Some(Arc::clone(gate).write_owned().await),
            None => None,
        }
    }
}
