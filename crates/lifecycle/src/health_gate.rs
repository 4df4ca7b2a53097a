//! The health gate of rollouts: unhealthy hosts, and machines that have not returned.
//!
//! ```text
//!   group announced ──▶ Unseen ── polls ──▶ Polling ── its impact has ended ──▶ Away ── polls ──▶ returned
//!                          └── its impact has ended, or the group has ────▶ not awaited
//! ```
//!
//! Only rollouts whose gate includes machines have such entries, only for the machines of their last group. A machine
//! that has not polled since its announcement is not expected to: nothing would ever report its return.

use std::collections::BTreeSet;

use forewarn_types::{HostId, MachineId, RolloutId, TenantId, Timestamp};

use crate::cluster::Cluster;
use crate::fleet::Power;
use crate::rollout::{HostResult, Presence, Rollout};
use crate::rows::{BadRows, new};

impl Cluster {
    /// Unhealthy hosts of a rollout: hosts that it has worked on, and hosts with machines of its last group.
    pub fn unhealthy_hosts_of<'a>(&'a self, rollout: &'a Rollout) -> impl Iterator<Item = HostId> + 'a {
        let machines = rollout.last_machines.iter().filter(|_| !self.unhealthy.is_empty());
        let carrying = machines
            .filter_map(|id| self.machine(*id))
            .filter(|machine| machine.power != Power::Deallocated && self.unhealthy.contains(&machine.host));
        let carrying: BTreeSet<_> = carrying.map(|machine| machine.host).collect();
        let worked_on =
            |id: &HostId| rollout.past.get(id).is_some_and(|outcome| *outcome != HostResult::Skipped);
        let unhealthy = self.unhealthy.iter().copied();
        unhealthy.filter(move |id| (worked_on(id) || carrying.contains(id)) && !rollout.excused.contains(id))
    }

    /// The machines of the last group of a rollout that have not returned, each with the end of its impact. None, unless
    /// the health gate of the rollout includes machines.
    pub fn machines_away(&self, id: RolloutId) -> impl Iterator<Item = (MachineId, Timestamp)> {
        let rollout = self.rollout(id).filter(|_| !self.presences.is_empty());
        let last = rollout.into_iter().flat_map(|rollout| rollout.last_machines.iter().copied());
        last.filter_map(move |machine| match self.presences.get(&(machine, id))? {
            Presence::Away { since } => Some((machine, *since)),
            Presence::Unseen | Presence::Polling => None,
        })
    }

    /// The machines of a tenant whose next poll a rollout waits for. The shell reports it with [`Polled`].
    ///
    /// [`Polled`]: crate::Command::Polled
    #[must_use]
    pub fn polls_awaited_of(&self, tenant: TenantId) -> Vec<MachineId> {
        let tenant = self.tenant(tenant).filter(|_| !self.presences.is_empty());
        let machines = tenant.map_or(&[][..], |tenant| tenant.machines());
        machines.iter().copied().filter(|machine| self.awaits_poll_of(*machine)).collect()
    }

    /// Returns true if a rollout waits for the next poll of a machine.
    pub(crate) fn awaits_poll_of(&self, machine: MachineId) -> bool {
        self.presences_of(machine).any(|(_, presence)| presence.awaits_poll())
    }

    /// The rollouts that observe a machine, each with its presence there.
    pub fn presences_of(&self, machine: MachineId) -> impl Iterator<Item = (RolloutId, Presence)> {
        let all = (machine, RolloutId(0))..=(machine, RolloutId(u64::MAX));
        self.presences.range(all).map(|((_, rollout), presence)| (*rollout, *presence))
    }

    pub(crate) fn restore_presence(
        &mut self,
        machine: MachineId,
        rollout: RolloutId,
        presence: Presence,
    ) -> Result<(), BadRows> {
        self.machine(machine).ok_or(BadRows("an observed machine is missing"))?;
        self.rollout(rollout).ok_or(BadRows("a rollout that observes a machine is missing"))?;
        new(self.presences.insert((machine, rollout), presence).as_ref())
    }
}
