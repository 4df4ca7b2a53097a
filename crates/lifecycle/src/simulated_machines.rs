//! Simulated machines and hosts: an action takes about as long as on a real one, on the clock of the caller.
//!
//! Only an action that an event announced takes time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_types::{HostId, MachineId, MaintenanceId, Steady};

use crate::action::{Action, Impact, Report};
use crate::cluster::Cluster;
use crate::host_step::{HostTask, Target};
use crate::maintenance::{Cause, Maintenance};
use crate::simulator::Completion;

/// The actions in progress on simulated machines and hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedMachines {
    busy: BTreeMap<(Steady, MaintenanceId, Target), Action>,
    keys: BTreeSet<(MaintenanceId, Target)>,
}

impl SimulatedMachines {
    /// Begins an action, unless it has begun already.
    pub fn begin(&mut self, cluster: &Cluster, action: Action, now: Steady) {
        let (maintenance, target) = (action.maintenance, action.target);
        if self.keys.insert((maintenance, target)) {
            let done = now.plus(time_of(cluster, action));
            self.busy.insert((done, maintenance, target), action);
        }
    }

    /// The next action that is finished by then. Each is returned once.
    pub fn take_finished(&mut self, now: Steady) -> Option<Action> {
        let first = self.busy.first_entry().filter(|first| first.key().0 <= now)?;
        let action = first.remove();
        self.keys.remove(&(action.maintenance, action.target));
        Some(action)
    }

    /// The next completion that is due by then. The action on a jammed machine fails: the last one, if it steps aside
    /// and returns.
    pub fn take_completion(&mut self, now: Steady, jammed: &mut BTreeSet<MachineId>) -> Option<Completion> {
        let Action { maintenance, target, impact, .. } = self.take_finished(now)?;
        let jams = target.machine().filter(|_| !matches!(impact, Impact::StepAside(_)));
        let is_jammed = jams.is_some_and(|machine| jammed.remove(&machine));
        let report = if is_jammed { Report::Failed } else { Report::Done };
        Some(Completion { maintenance, target, report })
    }

    /// The time at which the next action finishes.
    #[must_use]
    pub fn next(&self) -> Option<Steady> {
        self.busy.first_key_value().map(|((at, ..), _)| *at)
    }
}

/// The duration of an action: that of an announced Freeze, otherwise the time of a fast machine.
fn time_of(cluster: &Cluster, action: Action) -> Duration {
    let maintenance = cluster.maintenance(action.maintenance);
    let machine = match action.target {
        Target::Machine(machine) | Target::Returning(machine) => machine,
        Target::Host(host) => {
            return maintenance.map_or(Duration::ZERO, |known| step_time(cluster, known, host));
        }
    };
    let tenant = cluster.machine(machine).map(|machine| machine.tenant);
    let part = maintenance.zip(tenant).and_then(|(maintenance, tenant)| maintenance.plan.part(tenant));
    action.impact.usual_duration(part.and_then(|part| part.announcement.as_deref()))
}

/// The time that it takes to fence a host.
const FENCE_TIME: Duration = Duration::from_secs(10);

/// The duration of the step on a host: that of the interruption announced to its machines.
fn step_time(cluster: &Cluster, maintenance: &Maintenance, host: HostId) -> Duration {
    if matches!(maintenance.plan.cause, Cause::Fencing { .. }) {
        return FENCE_TIME;
    }
    let announced = maintenance.machines_aside(host).any(|machine| {
        let part = cluster.machine(machine).and_then(|machine| maintenance.plan.part(machine.tenant));
        part.is_some_and(|part| part.announcement.is_some())
    });
    let task = maintenance.plan.cause.host_task().filter(|_| announced);
    task.map_or(Duration::ZERO, HostTask::usual_duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn an_action_begins_once_and_finishes_once() {
        let cluster = Cluster::new(Seed([1; 16]));
        let (maintenance, target) = (MaintenanceId(4), Target::Machine(MachineId(2)));
        let action = Action { maintenance, target, impact: Impact::Delete, boots: 1 };
        let mut machines = SimulatedMachines::default();
        machines.begin(&cluster, action, Steady::from_millis(10));
        machines.begin(&cluster, action, Steady::from_millis(99));
        assert_eq!(machines.next(), Some(Steady::from_millis(10)));
        assert_eq!(machines.take_finished(Steady::from_millis(9)), None);
        assert_eq!(machines.take_finished(Steady::from_millis(10)), Some(action));
        assert_eq!(machines.take_finished(Steady::from_millis(99)), None);
        assert_eq!(machines.next(), None);
    }
}
