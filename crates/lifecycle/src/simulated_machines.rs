//! Simulated machines: an action takes about as long as on a real machine, on the clock of the caller.
//!
//! Only an action that an event announced takes time.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_types::{MachineId, MaintenanceId, Steady};

use crate::cluster::Cluster;
use crate::maintenance::Action;

/// The actions in progress on simulated machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedMachines {
    busy: BTreeSet<(Steady, MaintenanceId, MachineId)>,
    keys: BTreeSet<(MaintenanceId, MachineId)>,
}

impl SimulatedMachines {
    /// Begins an action, unless it has begun already.
    pub fn begin(&mut self, cluster: &Cluster, action: Action, now: Steady) {
        if self.keys.insert((action.maintenance, action.machine)) {
            let done = now.plus(time_of(cluster, action));
            self.busy.insert((done, action.maintenance, action.machine));
        }
    }

    /// The next action that is finished by then. Each is returned once.
    pub fn take_finished(&mut self, now: Steady) -> Option<(MaintenanceId, MachineId)> {
        let &(at, maintenance, machine) = self.busy.first()?;
        if at > now {
            return None;
        }
        self.busy.pop_first();
        self.keys.remove(&(maintenance, machine));
        Some((maintenance, machine))
    }

    /// The time at which the next action finishes.
    #[must_use]
    pub fn next(&self) -> Option<Steady> {
        self.busy.first().map(|(at, ..)| *at)
    }
}

/// The duration of an action: that of an announced Freeze, otherwise the time of a fast machine.
fn time_of(cluster: &Cluster, action: Action) -> Duration {
    let tenant = cluster.machine(action.machine).map(|machine| machine.tenant);
    let maintenance = cluster.maintenance(action.maintenance);
    let part = maintenance.zip(tenant).and_then(|(maintenance, tenant)| maintenance.plan.part(tenant));
    action.impact.usual_duration(part.and_then(|part| part.announcement.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Impact, Seed};

    #[test]
    fn an_action_begins_once_and_finishes_once() {
        let cluster = Cluster::new(Seed([1; 16]));
        let (maintenance, machine) = (MaintenanceId(4), MachineId(2));
        let action = Action { maintenance, machine, impact: Impact::Delete, boots: 1 };
        let mut machines = SimulatedMachines::default();
        machines.begin(&cluster, action, Steady::from_millis(10));
        machines.begin(&cluster, action, Steady::from_millis(99));
        assert_eq!(machines.next(), Some(Steady::from_millis(10)));
        assert_eq!(machines.take_finished(Steady::from_millis(9)), None);
        assert_eq!(machines.take_finished(Steady::from_millis(10)), Some((maintenance, machine)));
        assert_eq!(machines.take_finished(Steady::from_millis(99)), None);
        assert_eq!(machines.next(), None);
    }
}
