//! Simulated machines: an action takes as long as it might on a real one, on the clock of the caller.
//!
//! Only an action that an event announced takes time.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_types::{MachineId, MaintenanceId, Steady};

use crate::cluster::Cluster;
use crate::maintenance::Action;

/// The actions that simulated machines are busy with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PretendMachines {
    busy: BTreeSet<(Steady, MaintenanceId, MachineId)>,
    keys: BTreeSet<(MaintenanceId, MachineId)>,
}

impl PretendMachines {
    /// Takes on an action, unless it has been taken on already.
    pub fn take_on(&mut self, cluster: &Cluster, action: Action, now: Steady) {
        if self.keys.insert((action.maintenance, action.machine)) {
            let done = now.plus(time_of(cluster, action));
            self.busy.insert((done, action.maintenance, action.machine));
        }
    }

    /// The next action that is done by then, if any is. It is reported once.
    pub fn take_done(&mut self, now: Steady) -> Option<(MaintenanceId, MachineId)> {
        let &(at, maintenance, machine) = self.busy.first()?;
        if at > now {
            return None;
        }
        self.busy.pop_first();
        self.keys.remove(&(maintenance, machine));
        Some((maintenance, machine))
    }

    /// When the next action will be done.
    #[must_use]
    pub fn next(&self) -> Option<Steady> {
        self.busy.first().map(|(at, ..)| *at)
    }
}

/// The time of an action: the announced duration of a Freeze, otherwise the time of a quick machine.
fn time_of(cluster: &Cluster, action: Action) -> Duration {
    let tenant = cluster.machine(action.machine).map(|machine| machine.tenant);
    let maintenance = cluster.maintenance(action.maintenance);
    let part = maintenance.zip(tenant).and_then(|(maintenance, tenant)| maintenance.plan.part(tenant));
    action.impact.usual_length(part.and_then(|part| part.announcement.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Impact, Seed};

    #[test]
    fn an_action_is_taken_on_once_and_reported_once() {
        let cluster = Cluster::new(Seed([1; 16]));
        let (maintenance, machine) = (MaintenanceId(4), MachineId(2));
        let action = Action { maintenance, machine, impact: Impact::Delete, boots: 1 };
        let mut pretend = PretendMachines::default();
        pretend.take_on(&cluster, action, Steady::from_millis(10));
        pretend.take_on(&cluster, action, Steady::from_millis(99));
        assert_eq!(pretend.next(), Some(Steady::from_millis(10)));
        assert_eq!(pretend.take_done(Steady::from_millis(9)), None);
        assert_eq!(pretend.take_done(Steady::from_millis(10)), Some((maintenance, machine)));
        assert_eq!(pretend.take_done(Steady::from_millis(99)), None);
        assert_eq!(pretend.next(), None);
    }
}
