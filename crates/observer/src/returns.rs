//! Records of the machines whose return a rollout awaits, derived from polls and changes alone.

use std::collections::BTreeMap;

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

#[derive(Default)]
pub struct ReturnRecords {
    gates: BTreeMap<RolloutId, HealthGate>,
    /// The rollout of each group, and the way in which its machines step aside.
    groups: BTreeMap<MaintenanceId, (RolloutId, Option<Aside>)>,
    machines: BTreeMap<(RolloutId, MachineId), Stage>,
}

/// The way of a machine through a group of a rollout that awaits machines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Announced,
    /// It has polled since.
    Heard,
    /// Its impact has ended since, and it has not polled.
    Ended,
}

impl ReturnRecords {
    /// Called when a machine polls. Returns the kind of observation.
    pub fn polled(&mut self, machine: MachineId) -> &'static str {
        let count = self.machines.len();
        self.machines.retain(|(_, other), stage| *other != machine || *stage != Stage::Ended);
        for (_, stage) in self.machines.iter_mut().filter(|((_, other), _)| *other == machine) {
            *stage = Stage::Heard;
        }
        if self.machines.len() < count { "machine returned" } else { "" }
    }

    /// Called after a change was applied. Returns the promises that it breaks, and the kind of observation.
    pub fn changed(&mut self, cluster: &Cluster, change: &Change) -> (BrokenPromises, &'static str) {
        let (mut broken, mut seen) = (Vec::new(), "");
        match change {
            Change::RolloutPlanned { rollout, terms, .. } | Change::RolloutChanged { rollout, terms, .. } => {
                self.gates.insert(*rollout, terms.health);
                self.forget(|of, _| of == *rollout && terms.health != HealthGate::Machines);
            }
            Change::RolloutResumed(rollout) => {
                self.forget(|of, stage| of == *rollout && stage == Stage::Ended);
            }
            Change::RolloutEnded { rollout, .. } => self.forget(|of, _| of == *rollout),
            Change::Planned(plan) => broken = self.announced(plan),
            Change::Completed { maintenance, target, report } => {
                seen = self.completed(*maintenance, *target, *report);
            }
            _ => {}
        }
        let runs = |id: MachineId| cluster.machine(id).is_some_and(|known| known.power == Power::Running);
        self.machines.retain(|(_, machine), _| runs(*machine));
        (broken, seen)
    }

    fn forget(&mut self, which: impl Fn(RolloutId, Stage) -> bool) {
        self.machines.retain(|(rollout, _), stage| !which(*rollout, *stage));
    }

    fn announced(&mut self, plan: &Plan) -> BrokenPromises {
        let Cause::HostWork { rollout, work, .. } = &plan.cause else { return Vec::new() };
        let rollout = *rollout;
        self.groups.insert(plan.id, (rollout, work.aside()));
        let away =
            |((of, _), stage): &(&(RolloutId, MachineId), &Stage)| *of == rollout && **stage == Stage::Ended;
        let away: Vec<_> = self.machines.iter().filter(away).map(|((_, machine), _)| *machine).collect();
        self.forget(|of, _| of == rollout);
        if self.gates.get(&rollout) == Some(&HealthGate::Machines) {
            self.machines.extend(plan.machines().map(|machine| ((rollout, machine), Stage::Announced)));
        }
        let note = |machine| (Promise::Returned, format!("rollout {rollout} does not wait for {machine}"));
        away.into_iter().map(note).collect()
    }

    /// Records the end of an action. A machine that has stepped aside still has to return.
    fn completed(&mut self, group: MaintenanceId, target: Target, report: Report) -> &'static str {
        let Some(machine) = target.machine() else { return "" };
        let Some((rollout, aside)) = self.groups.get(&group).copied() else { return "" };
        let has_stepped_aside = aside.is_some() && matches!(target, Target::Machine(_));
        if report == Report::Done && has_stepped_aside {
            return "";
        }
        match (self.machines.remove(&(rollout, machine)), report) {
            (Some(Stage::Heard), Report::Done) => {
                self.machines.insert((rollout, machine), Stage::Ended);
                "machine awaited"
            }
            _ => "",
        }
    }
}
