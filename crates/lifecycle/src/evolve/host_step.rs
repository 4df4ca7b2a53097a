//! Application of changes to the hosts of started work: machines step aside, the step, machines return.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_types::{HostId, MachineId, MaintenanceId, Now, TenantId};

use super::rollouts::GroupEnd;
use crate::action::{Action, Report};
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::host_step::{HostPhase, Readiness, Steps, Target};
use crate::maintenance::{Maintenance, Stage};
use crate::rollout::HostResult;

/// The state of a machine after an action on it, as far as its maintenance is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterAction {
    /// Nothing more will be done to it.
    Free,
    /// It waits for the step on its host.
    Aside,
}

impl Cluster {
    /// The progress on its hosts with which a maintenance starts.
    pub(super) fn first_steps(&self, now: Now, id: MaintenanceId, actions: &[Action]) -> Steps {
        let mut steps = Steps::default();
        let Some(maintenance) = self.maintenances.get(&id) else { return steps };
        let cause = &maintenance.plan.cause;
        if !cause.has_step() {
            return steps;
        }
        let mut counts = BTreeMap::<HostId, u32>::new();
        for action in actions {
            match action.target {
                Target::Host(host) => drop(steps.hosts.insert(host, HostPhase::Step { since: now.wall })),
                Target::Machine(machine) | Target::Returning(machine) => {
                    let Some(host) = self.machines.get(&machine).map(|known| known.host) else { continue };
                    steps.leaving.insert(machine, host);
                    *counts.entry(host).or_default() += 1;
                }
            }
        }
        let busy = counts.into_iter();
        steps
            .hosts
            .extend(busy.map(|(host, left)| (host, HostPhase::Aside { left, ready: Readiness::Ready })));
        for id in maintenance.plan.machines().filter(|id| self.concerns(cause, *id)) {
            if let Some(machine) = self.machines.get(&id)
                && cause.host_task().is_some_and(|task| task.waits_aside(machine.power))
            {
                steps.aside.insert((machine.host, id));
                steps.idle.insert(id);
            }
        }
        steps
    }

    /// Returns true if work that has not started has hosts with a step.
    pub(super) fn has_hosts_to_step_on(&self, id: MaintenanceId) -> bool {
        let plan = self.maintenances.get(&id).map(|maintenance| &maintenance.plan);
        plan.is_some_and(|plan| plan.cause.has_step() && !plan.hosts().is_empty())
    }

    /// Records the end of an action by which a machine steps aside. Other actions leave the machine free.
    pub(super) fn leave_for_step(
        &mut self,
        id: MaintenanceId,
        target: Target,
        report: Report,
    ) -> AfterAction {
        let Some((maintenance, machine)) = self.maintenances.get_mut(&id).zip(target.machine()) else {
            return AfterAction::Free;
        };
        if matches!(target, Target::Returning(_)) || !maintenance.plan.cause.has_step() {
            return AfterAction::Free;
        }
        let Maintenance { plan, stage } = Arc::make_mut(maintenance);
        let Stage::Running { steps, .. } = stage else { return AfterAction::Free };
        let Some(host) = steps.leaving.remove(&machine) else { return AfterAction::Free };
        if let Some(HostPhase::Aside { left, ready }) = steps.hosts.get_mut(&host) {
            *left = left.saturating_sub(1);
            if report == Report::Failed {
                *ready = Readiness::Obstructed;
            }
        }
        let waits = plan.cause.host_task().is_some_and(|task| task.aside().is_some());
        if waits && report == Report::Done {
            steps.aside.insert((host, machine));
            return AfterAction::Aside;
        }
        AfterAction::Free
    }

    /// Records the end of the step on a host. The change that follows brings its machines back.
    pub(super) fn step_ended(&mut self, id: MaintenanceId, host: HostId, report: Report) {
        self.record_step(id, host, report);
        let rollout = self.maintenances.get(&id).and_then(|maintenance| maintenance.plan.cause.rollout());
        match report {
            Report::Done => {}
            Report::Failed => {
                if let Some(rollout) = rollout.and_then(|rollout| self.remembered_rollout(rollout)) {
                    rollout.failures += 1;
                    rollout.past.insert(host, HostResult::Failed);
                }
            }
        }
    }

    /// Requests the step on a host, or the return of its machines. Machines without an action are released.
    pub(super) fn host_advanced(
        &mut self,
        now: Now,
        id: MaintenanceId,
        host: HostId,
        requested: &[Action],
        out: &mut Vec<Effect>,
    ) {
        let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
        let aside: Vec<_> = maintenance.machines_aside(host).collect();
        let Stage::Running { actions, steps, .. } = &mut maintenance.stage else { return };
        actions.extend(requested.iter().map(|action| (action.target, *action)));
        out.extend(requested.iter().copied().map(Effect::Perform));
        if requested.iter().any(|action| action.target == Target::Host(host)) {
            steps.hosts.insert(host, HostPhase::Step { since: now.wall });
            return;
        }
        steps.hosts.remove(&host);
        for machine in &aside {
            steps.aside.remove(&(host, *machine));
            steps.idle.remove(machine);
        }
        let returning = |machine: &MachineId| actions.contains_key(&Target::Returning(*machine));
        let released: Vec<_> = aside.into_iter().filter(|machine| !returning(machine)).collect();
        let tenants: Vec<_> =
            released.into_iter().filter_map(|machine| self.tenant_in(id, machine)).collect();
        let ended: Vec<TenantId> =
            tenants.into_iter().filter(|tenant| self.action_ended(id, *tenant) == 0).collect();
        self.end_parts(now, id, &ended, Some(GroupEnd::Skipped), out);
    }
}
