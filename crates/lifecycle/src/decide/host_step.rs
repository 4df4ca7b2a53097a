//! The step on a host: when it is requested, and the return of the machines.

use std::collections::BTreeSet;

use forewarn_types::{HostId, MachineId, MaintenanceId};

use super::draft::Draft;
use crate::action::{Action, Impact, Report};
use crate::change::Change;
use crate::fleet::{Health, HostAttention, Power};
use crate::host_step::{HostPhase, HostTask, Readiness, Target};
use crate::maintenance::{Maintenance, Plan};

impl Draft<'_> {
    /// Requests the step at once on hosts whose machines need no action to step aside.
    pub(super) fn add_steps_of_idle_hosts(&self, plan: &Plan, actions: &mut Vec<Action>) {
        let Some(operation) = plan.cause.host_operation() else { return };
        let machines = actions.iter().filter_map(|action| self.cluster.machine(action.target.machine()?));
        let busy: BTreeSet<_> = machines.map(|machine| machine.host).collect();
        let idle = plan.hosts().iter().filter(|host| !busy.contains(host));
        actions.extend(idle.map(|host| step(plan.id, *host, Impact::OnHost(operation))));
    }

    /// A host on which a step failed is not used before an operator has examined it.
    pub(super) fn call_for_attention(&mut self, target: Target) {
        if let Target::Host(host) = target {
            self.changes.push(Change::AttentionChanged { host, attention: HostAttention::Needed });
        }
    }

    /// After the end of an action: requests the step on the host whose last machine has stepped aside, or the return of
    /// its machines.
    pub(super) fn advance_host(&mut self, maintenance: &Maintenance, target: Target, report: Report) {
        let Some(steps) = maintenance.steps() else { return };
        match target {
            Target::Returning(_) => {}
            Target::Host(host) => self.return_machines(maintenance, host, None),
            Target::Machine(machine) => {
                let Some(host) = steps.leaving.get(&machine) else { return };
                let Some(HostPhase::Aside { left: 1, ready }) = steps.hosts.get(host) else { return };
                match (ready, report) {
                    (Readiness::Ready, Report::Done) => self.request_step(maintenance, *host),
                    (Readiness::Ready | Readiness::Obstructed, _) => {
                        let aside = Some(machine).filter(|_| report == Report::Done);
                        self.return_machines(maintenance, *host, aside);
                    }
                }
            }
        }
    }

    fn request_step(&mut self, maintenance: &Maintenance, host: HostId) {
        let Some(operation) = maintenance.plan.cause.host_operation() else { return };
        let id = maintenance.plan.id;
        let actions = vec![step(id, host, Impact::OnHost(operation))];
        self.changes.push(Change::HostAdvanced { maintenance: id, host, actions });
    }

    /// Requests the return of the machines that have stepped aside, and of one that this decision adds to them.
    fn return_machines(&mut self, maintenance: &Maintenance, host: HostId, last: Option<MachineId>) {
        let way = maintenance.plan.cause.host_task().and_then(HostTask::aside);
        let id = maintenance.plan.id;
        let aside = maintenance.machines_aside(host).chain(last.filter(|_| way.is_some()));
        let is_idle = |machine| maintenance.steps().is_some_and(|steps| steps.idle.contains(&machine));
        let aside = aside.filter(|machine| !is_idle(*machine));
        let mut machines: Vec<_> = aside.filter(|machine| self.can_return(*machine, host)).collect();
        machines.sort_unstable();
        let action = |machine: MachineId| {
            let (impact, known) = (Impact::Return(way?), self.cluster.machine(machine)?);
            Some(Action { maintenance: id, target: Target::Returning(machine), impact, boots: known.boots })
        };
        let actions = machines.into_iter().filter_map(action).collect();
        self.changes.push(Change::HostAdvanced { maintenance: id, host, actions });
    }

    /// Returns true unless the machine has been switched off, moved or deleted by other work, or its host has failed.
    fn can_return(&self, id: MachineId, host: HostId) -> bool {
        let Some(machine) = self.cluster.machine(id) else { return false };
        let works = self.cluster.host(host).is_some_and(|host| host.health != Health::Failed);
        works && machine.host == host && machine.power == Power::Running && !self.cluster.is_moving(id)
    }
}

fn step(maintenance: MaintenanceId, host: HostId, impact: Impact) -> Action {
    Action { maintenance, target: Target::Host(host), impact, boots: 0 }
}
