//! Room for machines: hosts that begin or cease to be open, and the work that waits for a host.
//!
//! ```text
//!   a host of a zone opens ──▶ the first work that waits for a host of the zone has its turn
//!   it has been decided    ──▶ the next work has its turn, if a host of the zone is still open
//!   a machine leaves an open host ──▶ work on machines of the same tenant is checked, and groups of rollouts, which
//!                                     may need several places: for all other machines nothing has changed
//! ```

use std::collections::BTreeSet;

use forewarn_types::{HostId, MachineId, MaintenanceId, RolloutId, TenantId, Zone};

use crate::cluster::Cluster;
use crate::fleet::Host;
use crate::maintenance::{Cause, Hold, Plan, Wait};
use crate::rollout::{Rollout, Standing};

impl Cluster {
    /// Changes a host and its places among the open hosts, and offers it to waiting work if it has opened.
    pub(super) fn change_host(&mut self, id: HostId, change: impl FnOnce(&mut Host)) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let zone = host.zone;
        let (was_open, load_before) = (host.is_open(), host.load());
        change(host);
        let (is_open, load) = (host.is_open(), host.load());
        if (was_open, load_before) != (is_open, load) {
            if was_open {
                self.open_by_load.remove(&(zone, load_before, id));
            }
            if is_open {
                self.open_by_load.insert((zone, load, id));
            }
        }
        match (was_open, is_open) {
            (false, true) => {
                self.open_hosts.insert((zone, id));
                self.relist_room(id);
                self.offer_host_of(zone);
            }
            (true, false) => {
                self.open_hosts.remove(&(zone, id));
                self.relist_room(id);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// A host of the zone has opened.
    pub(super) fn offer_host_of(&mut self, zone: Option<Zone>) {
        self.offer_to_next(zone, MaintenanceId(0));
        self.recheck_rollouts(waits_for_target_hosts);
    }

    /// Gives the first work from that number on that waits for a host of the zone its turn.
    pub(super) fn offer_to_next(&mut self, zone: Option<Zone>, from: MaintenanceId) {
        let next = self.next_waiting_for_host(zone, from);
        if let Some(id) = next.filter(|_| self.has_open_host(zone)) {
            self.set_wait(id, Wait::Offered { zone });
        }
    }

    fn next_waiting_for_host(&self, zone: Option<Zone>, from: MaintenanceId) -> Option<MaintenanceId> {
        let all = (zone, from)..=(zone, MaintenanceId(u64::MAX));
        self.waiting_for_host.range(all).next().map(|(_, id)| *id)
    }

    /// A machine has left an open host: the host may be able to take other machines of the tenant now.
    pub(super) fn offer_place_to(&mut self, tenant: TenantId) {
        let waits = |id: &RolloutId| self.rollout(*id).is_some_and(waits_for_target_hosts);
        if self.waiting_for_host.is_empty() && !self.rollouts.keys().any(waits) {
            return;
        }
        let machines = self.tenants.get(&tenant).map_or(&[][..], |tenant| tenant.machines()).to_vec();
        let hosts = machines.iter().filter_map(|machine| self.hosts.get(&self.machines.get(machine)?.host));
        let rollouts: BTreeSet<_> = hosts.filter_map(|host| host.rollout).filter(waits).collect();
        machines.into_iter().for_each(|machine| self.recheck_work_held_for_host(machine));
        rollouts.into_iter().for_each(|id| self.set_standing(id, Standing::Next));
        self.recheck_held_groups();
    }

    /// Has the next ticks recheck announced groups that are held for lack of a host: a group of several machines may have
    /// lacked only the place that has become free.
    fn recheck_held_groups(&mut self) {
        let groups = self.rollouts.values().filter_map(|rollout| rollout.current());
        let held: Vec<_> = groups.filter(|id| self.held.contains(&(Hold::NoHost, *id))).collect();
        held.into_iter().for_each(|id| self.recheck(id));
    }

    /// Has the next ticks recheck work that names a machine and is held for lack of a host.
    pub(super) fn recheck_work_held_for_host(&mut self, machine: MachineId) {
        let waiting = self.waiting_of(machine).filter(|work| work.wait() == Some(Wait::Held(Hold::NoHost)));
        let held: Vec<_> = waiting.map(|work| work.plan.id).collect();
        held.into_iter().for_each(|id| self.recheck(id));
    }

    /// Has the next tick recheck the announced group of a host that is held for lack of a host.
    pub(super) fn recheck_held_group(&mut self, host: HostId) {
        let work = self.hosts.get(&host).and_then(|host| host.work);
        if let Some(id) = work.filter(|id| self.held.contains(&(Hold::NoHost, *id))) {
            self.recheck(id);
        }
    }

    /// Lists work that is held for lack of a host.
    pub(crate) fn list_for_host(&mut self, id: MaintenanceId, hold: Hold) {
        if hold == Hold::NoHost
            && let Some(work) = self.maintenances.get(&id)
        {
            let zones = self.zones_of(&work.plan);
            self.waiting_for_host.extend(zones.into_iter().map(|zone| (zone, id)));
        }
    }

    pub(super) fn unlist_for_host(&mut self, id: MaintenanceId, hold: Hold) {
        if hold == Hold::NoHost
            && let Some(work) = self.maintenances.get(&id)
        {
            for zone in self.zones_of(&work.plan) {
                self.waiting_for_host.remove(&(zone, id));
            }
        }
    }

    /// The zones in which work needs a host: those of its hosts, or of its machine. A machine never changes its zone, so
    /// they stay the same until a machine or a host leaves the work.
    fn zones_of(&self, plan: &Plan) -> BTreeSet<Option<Zone>> {
        let zone = |id: &HostId| self.hosts.get(id).map(|host| host.zone);
        match &plan.cause {
            Cause::HostWork { hosts, .. } => hosts.iter().filter_map(zone).collect(),
            Cause::UserRestart
            | Cause::UserRedeploy
            | Cause::UserDelete(_)
            | Cause::Reimage(_)
            | Cause::Power(_)
            | Cause::Eviction(_)
            | Cause::DegradedHost { .. }
            | Cause::FailedHost { .. }
            | Cause::Fencing { .. }
            | Cause::HostReturn { .. } => {
                let hosts = plan.machines().filter_map(|machine| Some(self.machines.get(&machine)?.host));
                hosts.filter_map(|host| zone(&host)).collect()
            }
        }
    }
}

/// Returns true if a rollout may wait for hosts that can take the machines of its hosts.
fn waits_for_target_hosts(rollout: &Rollout) -> bool {
    rollout.waits_for_room() && rollout.work.kind.moves_machines()
}
