//! Machines that are there, on their way out, or gone.
//!
//! Each function looks only at the work of one machine, so a thousand of them can be listed.

use forewarn_control::instances;
use forewarn_lifecycle::{Cause, Cluster, EvictionPolicy, MachineId, Maintenance, ScaleSetId};

/// True for a machine that is not there any more: its deletion has started, or is over.
#[must_use]
pub fn is_gone(cluster: &Cluster, machine: MachineId) -> bool {
    cluster.machine(machine).is_none() || ends(cluster, machine).any(|work| work.action(machine).is_some())
}

/// True for a machine that is being deleted, or evicted for good, be that announced or under way.
#[must_use]
pub fn is_leaving(cluster: &Cluster, machine: MachineId) -> bool {
    ends(cluster, machine).any(|work| work.wait().is_some() || work.action(machine).is_some())
}

/// The instances of a scale set that are there, by number.
#[must_use]
pub fn instances_there(cluster: &Cluster, set: ScaleSetId) -> Vec<(u32, MachineId)> {
    let Some(set) = cluster.scale_set(set) else { return Vec::new() };
    let mut all = instances(cluster, set);
    all.retain(|(_, id)| !is_gone(cluster, *id));
    all
}

/// The work that takes a machine away.
fn ends(cluster: &Cluster, machine: MachineId) -> impl Iterator<Item = &Maintenance> {
    cluster.pending_of(machine).filter(|work| {
        matches!(work.plan.cause, Cause::UserDelete(_) | Cause::Eviction(EvictionPolicy::Delete))
    })
}
