//! Machines that exist, are being removed, or are gone.
//!
//! Each function inspects only the work of one machine, so a list of a thousand is cheap.

use forewarn_control::instances;
use forewarn_lifecycle::{Cause, Cluster, EvictionPolicy, MachineId, Maintenance, ScaleSetId};

/// True for a machine that no longer exists: its deletion has started or completed.
#[must_use]
pub fn is_gone(cluster: &Cluster, machine: MachineId) -> bool {
    cluster.machine(machine).is_none() || ends(cluster, machine).any(|work| work.action(machine).is_some())
}

/// True for a machine whose deletion, or eviction by deletion, is announced or has started.
#[must_use]
pub fn is_leaving(cluster: &Cluster, machine: MachineId) -> bool {
    ends(cluster, machine).any(|work| work.wait().is_some() || work.action(machine).is_some())
}

/// The existing instances of a scale set, by number.
#[must_use]
pub fn instances_there(cluster: &Cluster, set: ScaleSetId) -> Vec<(u32, MachineId)> {
    let Some(set) = cluster.scale_set(set) else { return Vec::new() };
    let mut all = instances(cluster, set);
    all.retain(|(_, id)| !is_gone(cluster, *id));
    all
}

/// Work that removes a machine.
fn ends(cluster: &Cluster, machine: MachineId) -> impl Iterator<Item = &Maintenance> {
    cluster.pending_of(machine).filter(|work| {
        matches!(work.plan.cause, Cause::UserDelete(_) | Cause::Eviction(EvictionPolicy::Delete))
    })
}
