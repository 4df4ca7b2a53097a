//! A machine that has called.

use std::sync::Arc;

use forewarn_types::{ClusterId, MachineId};

use super::last_poll::{LastPoll, Poll};
use super::load::CallerLoad;
use crate::published::DocumentSlot;

/// A machine that has called: made at its first request, and the same until it is deleted.
#[derive(Debug)]
pub struct Caller {
    pub machine: MachineId,
    /// Slot of its tenant's document.
    pub slot: Arc<DocumentSlot>,
    /// Its open connections and pending requests.
    pub(crate) load: CallerLoad,
    pub(crate) polled: LastPoll,
}

impl Caller {
    pub(super) fn new(machine: MachineId, slot: Arc<DocumentSlot>) -> Self {
        Self { machine, slot, load: CallerLoad::default(), polled: LastPoll::default() }
    }

    /// The last poll of the machine since the server started.
    #[must_use]
    pub fn last_poll(&self) -> Option<Poll> {
        self.polled.get()
    }

    /// The machine that this is.
    #[must_use]
    pub fn id(&self) -> CallerId {
        CallerId { cluster: self.slot.cluster, machine: self.machine }
    }
}

/// A machine of a cluster: machines of two clusters may have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    pub cluster: ClusterId,
    pub machine: MachineId,
}

impl CallerId {
    /// Pseudo-machine of all unknown callers, which share the limits of one machine. No real machine has these numbers.
    pub(crate) const UNKNOWN: Self = Self { cluster: ClusterId(u32::MAX), machine: MachineId(u32::MAX) };
}
