//! The fence of a failed host: its machines can no longer write to their disks, so that no second copy of one can.
//!
//! ```text
//!   failed ──▶ Awaited, the driver is ordered to fence the host ──▶ Confirmed: machines start elsewhere
//!                 │  ▲                                                 ▲
//!          failed ▼  │ ordered again                                   │
//!              Awaited, without an order ──── an operator's word ──────┘
//! ```
//!
//! While a fence is awaited, no machine of the host starts elsewhere: new moves are held, and moves that were in progress
//! when the host failed are not requested again.

use forewarn_types::{HostId, MachineId};

use crate::action::{Action, Impact};
use crate::cluster::Cluster;
use crate::fleet::{Fence, Health, Power};
use crate::host_step::{HostOperation, Target};
use crate::maintenance::Cause;

impl Cluster {
    /// The failed host of a machine whose fence is awaited: the machine may still run there.
    #[must_use]
    pub fn unfenced_host_of(&self, machine: MachineId) -> Option<HostId> {
        let host = self.machine(machine)?.host;
        self.host(host).is_some_and(|host| host.fence.is_awaited()).then_some(host)
    }

    /// The failed host because of which an unfinished action is not requested again; `None` if it may be. A move away
    /// from the host waits for the fence, work on the host itself for its recovery: it could undo the fence.
    #[must_use]
    pub fn barred_by(&self, action: Action) -> Option<HostId> {
        match action.target {
            Target::Machine(machine) | Target::Returning(machine) => {
                action.impact.destination().and_then(|_| self.unfenced_host_of(machine))
            }
            Target::Host(host) => {
                let is_fenced = self.host(host).is_some_and(|host| host.fence != Fence::Unneeded);
                (is_fenced && action.impact != Impact::OnHost(HostOperation::Fence)).then_some(host)
            }
        }
    }

    /// Returns true if the failure of a host still concerns a machine. Where a fence is required, time passes between the
    /// failure and the start elsewhere, and the machine may have left.
    pub(crate) fn failure_concerns(&self, host: HostId, machine: MachineId) -> bool {
        let Some(known) = self.machine(machine) else { return false };
        let is_fenced = self.host(host).is_some_and(|host| host.fence != Fence::Unneeded);
        !is_fenced || (known.host == host && known.power != Power::Deallocated)
    }

    /// Returns true if the failure of its host is about to start a machine elsewhere.
    pub(crate) fn awaits_restart(&self, machine: MachineId) -> bool {
        self.waiting_of(machine).any(|work| matches!(work.plan.cause, Cause::FailedHost { .. }))
    }

    /// Returns true if the host of a machine has failed, in a cluster that fences hosts.
    pub(crate) fn is_on_fenced_host(&self, machine: MachineId) -> bool {
        let host = self.machine(machine).and_then(|machine| self.host(machine.host));
        host.is_some_and(|host| host.health == Health::Failed && host.fence != Fence::Unneeded)
    }
}
