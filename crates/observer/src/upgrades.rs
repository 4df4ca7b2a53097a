//! Records of rolling upgrades: the last batch of each scale set, and its waiting instances, derived from decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

#[derive(Default)]
pub struct Upgrades {
    /// The last batch of each scale set with waiting instances.
    resting: BTreeMap<ScaleSetId, Steady>,
}

impl Upgrades {
    /// Called after a decision, before it is applied. Returns the promises that it breaks, and the kind of observation.
    pub fn decided(
        &mut self,
        cluster: &Cluster,
        now: Now,
        command: &Command,
        changes: &[Change],
    ) -> (BrokenPromises, Vec<&'static str>) {
        let (mut broken, mut seen) = (Vec::new(), Vec::new());
        for (id, set) in cluster.scale_sets() {
            let mut policy = set.upgrade;
            let mut version = set.model_version;
            for change in changes {
                match change {
                    Change::UpgradePolicyChanged { scale_set, upgrade } if *scale_set == id => {
                        policy = *upgrade;
                    }
                    Change::ModelChanged { scale_set, version: new, .. } if *scale_set == id => {
                        version = *new;
                    }
                    _ => {}
                }
            }
            let UpgradePolicy::Rolling { batch, pause } = policy else {
                self.resting.remove(&id);
                continue;
            };
            let given = given(cluster, set, changes);
            let ended =
                changes.iter().any(|change| matches!(change, Change::RollingEnded(ended) if *ended == id));
            // Explicitly requested upgrades are not a batch. An end without a batch is checked like one: it is due only
            // when the pause is over and no instance waits.
            if matches!(command, Command::UpgradeInstance(_)) || (given.is_empty() && !ended) {
                continue;
            }
            if !given.is_empty() {
                seen.push("batch");
            }
            let mut note = |what: String| broken.push((Promise::Batches, format!("{}: {what}", set.name)));
            let staying = staying(cluster, set);
            let all = usize::from(batch.percent()) * staying.len();
            let size = all / 100 + usize::from(!all.is_multiple_of(100));
            let older: Vec<_> =
                staying.values().copied().filter(|id| model(cluster, *id) != version).collect();
            let expected: BTreeSet<_> = older.iter().take(size).copied().collect();
            if given != expected {
                note(format!("{given:?} have model {version}, and not {expected:?}"));
            }
            if let Some(last) = self.resting.get(&id) {
                if !given.is_empty() {
                    seen.push("batch after a pause");
                }
                if now.steady < last.plus(pause) {
                    note(format!("does not rest for {pause:?} after {last:?}: {:?}", now.steady));
                }
            }
            if older.len() > size {
                self.resting.insert(id, now.steady);
            } else {
                self.resting.remove(&id);
            }
        }
        (broken, seen)
    }

    /// Called when everything due is handled: every instance with an older model waits for the latest.
    pub fn settled(&self, cluster: &Cluster, now: Now) -> BrokenPromises {
        let mut broken = Vec::new();
        for (_, set) in cluster.scale_sets() {
            let older = |id: &&MachineId| model(cluster, **id) != set.model_version;
            let staying = staying(cluster, set);
            let Some(behind) = staying.values().find(older) else { continue };
            let is_owed = match set.upgrade {
                UpgradePolicy::Manual => true,
                UpgradePolicy::Automatic => false,
                UpgradePolicy::Rolling { pause, .. } => {
                    let wait = set.next_batch().map(|at| at.steady.since(now.steady));
                    wait.is_some_and(|wait| wait > Duration::ZERO && wait <= pause)
                }
            };
            if !is_owed {
                broken.push((Promise::Batches, format!("{behind} of {} is forgotten", set.name)));
            }
        }
        broken
    }
}

/// The machines that get another model.
fn given(cluster: &Cluster, set: &ScaleSet, changes: &[Change]) -> BTreeSet<MachineId> {
    let machines = changes.iter().filter_map(|change| match change {
        Change::ProfileChanged { machine, .. } => Some(*machine),
        _ => None,
    });
    let is_of_set =
        |id: &MachineId| cluster.machine(*id).is_some_and(|machine| set.groups.contains(&machine.tenant));
    machines.filter(is_of_set).collect()
}

/// Instances that are not being deleted, by number.
fn staying(cluster: &Cluster, set: &ScaleSet) -> BTreeMap<u32, MachineId> {
    let ends = cluster.maintenances().filter(|work| {
        matches!(work.plan.cause, Cause::UserDelete(_) | Cause::Eviction(EvictionPolicy::Delete))
    });
    let leaving: BTreeSet<_> = ends.flat_map(|work| work.plan.machines()).collect();
    let machines = cluster.machines().filter(|(_, machine)| set.groups.contains(&machine.tenant));
    let number = |machine: &Machine| {
        let (_, digits) = machine.name.as_str().rsplit_once('_').expect("the name of an instance");
        digits.parse().expect("a number")
    };
    machines.filter(|(id, _)| !leaving.contains(id)).map(|(id, machine)| (number(machine), id)).collect()
}

fn model(cluster: &Cluster, id: MachineId) -> u32 {
    cluster.machine(id).map_or(0, |machine| machine.model_version)
}
