//! Application of changes to the machines that rollouts observe.

use forewarn_types::{MachineId, MaintenanceId, Now, RolloutId};

use crate::action::Report;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::fleet::Power;
use crate::maintenance::Cause;
use crate::rollout::{HealthGate, Presence, Standing};

impl Cluster {
    /// Observes the machines of an announced group, if the gate of its rollout includes machines.
    pub(super) fn observe(
        &mut self,
        id: RolloutId,
        machines: impl Iterator<Item = MachineId>,
        out: &mut Vec<Effect>,
    ) {
        if self.rollout(id).is_none_or(|rollout| rollout.terms.health != HealthGate::Machines) {
            return;
        }
        for machine in machines {
            self.presences.insert((machine, id), Presence::Unseen);
            self.publish_polls_awaited(machine, out);
        }
    }

    /// Records a poll of an observed machine.
    pub(super) fn polled(&mut self, machine: MachineId, out: &mut Vec<Effect>) {
        let observed: Vec<_> = self.presences_of(machine).collect();
        for (rollout, presence) in observed {
            match presence {
                Presence::Unseen => drop(self.presences.insert((machine, rollout), Presence::Polling)),
                Presence::Polling => {}
                Presence::Away { .. } => self.forget_presence(machine, rollout, out),
            }
        }
        self.publish_polls_awaited(machine, out);
    }

    /// Records the end of the last action on a machine in a group. A machine whose impact failed counts as a failure
    /// and is not awaited.
    pub(super) fn impact_ended(
        &mut self,
        now: Now,
        group: MaintenanceId,
        machine: MachineId,
        report: Report,
        out: &mut Vec<Effect>,
    ) {
        let cause = self.maintenances.get(&group).map(|group| &group.plan.cause);
        let Some(rollout) = cause.and_then(Cause::rollout) else { return };
        let runs = self.machines.get(&machine).is_some_and(|machine| machine.power == Power::Running);
        match (self.presences.get(&(machine, rollout)), report) {
            (Some(Presence::Polling), Report::Done) if runs => {
                self.presences.insert((machine, rollout), Presence::Away { since: now.wall });
                self.publish_polls_awaited(machine, out);
            }
            (Some(_), Report::Done | Report::Failed) => self.forget_presence(machine, rollout, out),
            (None, Report::Done | Report::Failed) => {}
        }
    }

    /// No rollout waits for a machine that is off or gone.
    pub(super) fn stop_observing(&mut self, machine: MachineId, out: &mut Vec<Effect>) {
        let rollouts: Vec<_> = self.presences_of(machine).map(|(rollout, _)| rollout).collect();
        rollouts.into_iter().for_each(|rollout| self.forget_presence(machine, rollout, out));
    }

    /// Forgets the machines of a rollout that are present so, or all of them.
    pub(super) fn forget_presences(
        &mut self,
        id: RolloutId,
        which: impl Fn(Presence) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let of_rollout = self.presences.iter().filter(|((_, rollout), _)| *rollout == id);
        let some: Vec<_> =
            of_rollout.filter(|(_, presence)| which(**presence)).map(|((machine, _), _)| *machine).collect();
        some.into_iter().for_each(|machine| self.forget_presence(machine, id, out));
    }

    /// Rechecks the rollout when the last machine that it has waited for is no longer away.
    fn forget_presence(&mut self, machine: MachineId, id: RolloutId, out: &mut Vec<Effect>) {
        let Some(presence) = self.presences.remove(&(machine, id)) else { return };
        let was_away = matches!(presence, Presence::Away { .. });
        let waits = self.rollout(id).is_some_and(|rollout| rollout.standing == Standing::Unwell);
        if was_away && waits && self.machines_away(id).next().is_none() {
            self.set_standing(id, Standing::Next);
        }
        self.publish_polls_awaited(machine, out);
    }

    /// Has the shell learn which machines of the tenant of a machine are to be reported when they poll.
    fn publish_polls_awaited(&self, machine: MachineId, out: &mut Vec<Effect>) {
        let tenant = self.machines.get(&machine).map(|machine| machine.tenant);
        out.extend(tenant.map(Effect::Publish));
    }
}
