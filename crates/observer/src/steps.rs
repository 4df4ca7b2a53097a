//! Records of steps on hosts, derived from requested actions and their results alone: a step runs while every machine
//! of its host is aside, and each machine returns once.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

#[derive(Default)]
pub struct StepRecords {
    hosts: BTreeMap<(MaintenanceId, HostId), HostRecord>,
    requested: BTreeSet<(MaintenanceId, Target)>,
}

#[derive(Default)]
struct HostRecord {
    /// Machines whose action to step aside has not ended.
    leaving: BTreeSet<MachineId>,
    aside: BTreeSet<MachineId>,
    obstructed: bool,
    step: StepRecord,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StepRecord {
    #[default]
    NotRequested,
    Requested,
    Ended,
}

impl StepRecords {
    /// Called after a change was applied. Returns the promises that it breaks, and the kind of observation.
    pub fn changed(
        &mut self,
        cluster: &Cluster,
        change: &Change,
        effects: &[Effect],
    ) -> (BrokenPromises, &'static str) {
        let mut broken = Vec::new();
        let mut seen = "";
        if let Change::Completed { maintenance, target, report } = change {
            self.completed(*maintenance, *target, *report);
        }
        for effect in effects {
            let Effect::Perform(action) = effect else { continue };
            if matches!(change, Change::Retried { .. } | Change::FenceChanged { .. }) {
                continue;
            }
            if !self.requested.insert((action.maintenance, action.target)) {
                broken.push((Promise::StepInside, format!("{action:?} is requested twice")));
            }
            seen = match action.target {
                Target::Machine(_) => seen,
                Target::Host(_) => "step on a host",
                Target::Returning(_) => "return after a step",
            };
            self.requested(cluster, *action, &mut broken);
        }
        (broken, seen)
    }

    fn requested(&mut self, cluster: &Cluster, action: Action, broken: &mut BrokenPromises) {
        let Action { maintenance, target, impact, .. } = action;
        let mut note = |what: String| broken.push((Promise::StepInside, format!("{maintenance}: {what}")));
        match target {
            Target::Machine(machine) => {
                let Some(known) = cluster.machine(machine) else { return };
                let steps = matches!(
                    impact,
                    Impact::StepAside(_) | Impact::Migrate { .. } | Impact::Redeploy { .. } | Impact::Stop
                );
                let plan = cluster.maintenance(maintenance).map(|known| &known.plan);
                if steps && plan.is_some_and(|plan| plan.cause.has_step()) {
                    self.hosts.entry((maintenance, known.host)).or_default().leaving.insert(machine);
                }
            }
            Target::Host(host) => {
                let record = self.hosts.entry((maintenance, host)).or_default();
                if record.step != StepRecord::NotRequested {
                    note(format!("second step on {host}"));
                }
                if !record.leaving.is_empty() || record.obstructed {
                    note(format!("step on {host} before its machines are aside: {:?}", record.leaving));
                }
                record.step = StepRecord::Requested;
            }
            Target::Returning(machine) => {
                let of_machine = |(key, record): &(&(MaintenanceId, HostId), &HostRecord)| {
                    key.0 == maintenance && record.aside.contains(&machine)
                };
                match self.hosts.iter().find(of_machine) {
                    Some((_, record)) if record.step == StepRecord::Ended || record.obstructed => {}
                    Some((_, record)) => {
                        note(format!("{machine} returns while the step is {:?}", record.step));
                    }
                    None => note(format!("{machine} returns and was not aside")),
                }
            }
        }
    }

    fn completed(&mut self, maintenance: MaintenanceId, target: Target, report: Report) {
        match target {
            Target::Machine(machine) => {
                for (key, record) in &mut self.hosts {
                    if key.0 == maintenance && record.leaving.remove(&machine) {
                        match report {
                            Report::Done => drop(record.aside.insert(machine)),
                            Report::Failed => record.obstructed = true,
                        }
                    }
                }
            }
            Target::Host(host) => {
                self.hosts.entry((maintenance, host)).or_default().step = StepRecord::Ended;
            }
            Target::Returning(_) => {}
        }
    }
}
