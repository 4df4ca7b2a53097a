//! The parts of a maintenance that a change ends, in a cluster to which it has not been applied yet.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_types::{HostId, MachineId, MaintenanceId, TenantId};

use crate::action::{Action, Report};
use crate::cluster::Cluster;
use crate::host_step::Target;
use crate::maintenance::Maintenance;

impl Cluster {
    /// The tenants whose parts have nothing to do when the maintenance starts with these actions.
    #[must_use]
    pub fn parts_without_actions(&self, id: MaintenanceId, actions: &[Action]) -> BTreeSet<TenantId> {
        let Some(Maintenance { plan, .. }) = self.maintenance(id) else { return BTreeSet::new() };
        let busy: BTreeSet<_> = actions.iter().filter_map(|action| action.target.machine()).collect();
        let waits_for_step = |id: MachineId| {
            let (task, machine) = (plan.cause.host_task(), self.machine(id));
            let off = task.zip(machine).is_some_and(|(task, machine)| task.waits_aside(machine.power));
            off && self.concerns(&plan.cause, id)
        };
        let is_busy = |id: &MachineId| busy.contains(id) || waits_for_step(*id);
        let idle = plan.parts.iter().filter(|part| !part.machines.iter().any(is_busy));
        idle.map(|part| part.tenant).collect()
    }

    /// The tenant whose part ends with an action. A machine that steps aside has not come to the end.
    #[must_use]
    pub fn part_ended_by(&self, id: MaintenanceId, target: Target, report: Report) -> Option<TenantId> {
        let maintenance = self.maintenance(id)?;
        maintenance.action_on(target)?;
        let machine = target.machine()?;
        let waits = maintenance.plan.cause.host_task().is_some_and(|task| task.aside().is_some());
        if waits && report == Report::Done && matches!(target, Target::Machine(_)) {
            return None;
        }
        self.part_tenant(maintenance, machine).filter(|tenant| self.unfinished_in(id, *tenant) == 1)
    }

    /// The tenants whose parts end because no action brings back the last of their machines that are aside.
    #[must_use]
    pub fn parts_released(&self, id: MaintenanceId, host: HostId, actions: &[Action]) -> BTreeSet<TenantId> {
        let Some(maintenance) = self.maintenance(id) else { return BTreeSet::new() };
        if actions.iter().any(|action| action.target == Target::Host(host)) {
            return BTreeSet::new();
        }
        let returning: BTreeSet<_> = actions.iter().filter_map(|action| action.target.machine()).collect();
        let released = maintenance.machines_aside(host).filter(|machine| !returning.contains(machine));
        let mut counts = BTreeMap::<TenantId, u32>::new();
        for tenant in released.filter_map(|machine| self.part_tenant(maintenance, machine)) {
            *counts.entry(tenant).or_default() += 1;
        }
        let ends = counts.into_iter().filter(|(tenant, count)| self.unfinished_in(id, *tenant) == *count);
        ends.map(|(tenant, _)| tenant).collect()
    }

    /// The tenant of the part that names a machine. A machine that other work has deleted is found by search.
    fn part_tenant(&self, maintenance: &Maintenance, machine: MachineId) -> Option<TenantId> {
        let parts = &maintenance.plan.parts;
        let search = || parts.iter().find(|part| part.machines.contains(&machine)).map(|part| part.tenant);
        self.machine(machine).map(|known| known.tenant).or_else(search)
    }

    /// The same for a maintenance by its number.
    pub(crate) fn tenant_in(&self, id: MaintenanceId, machine: MachineId) -> Option<TenantId> {
        self.part_tenant(self.maintenance(id)?, machine)
    }
}
