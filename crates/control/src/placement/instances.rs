//! The instances of a scale set.

use forewarn_lifecycle::limits::{MACHINES_PER_TENANT_MAX, PLACEMENT_GROUPS_PER_SCALE_SET_MAX};
use forewarn_lifecycle::{Cluster, MachineId, ScaleSet, Tenant};

/// Instances of one scale set.
pub const INSTANCES_MAX: u16 = 1_000;

const _: () =
    assert!(INSTANCES_MAX as usize == MACHINES_PER_TENANT_MAX, "a flexible scale set can have them");
const _: () =
    assert!(INSTANCES_MAX as usize == 100 * PLACEMENT_GROUPS_PER_SCALE_SET_MAX, "so can a uniform one");

/// The number of instances of a scale set, without those that are being removed.
pub(crate) fn staying(cluster: &Cluster, set: &ScaleSet) -> usize {
    instances(cluster, set).into_iter().filter(|(_, id)| !cluster.is_leaving(*id)).count()
}

/// The instances of a scale set, by number.
pub fn instances(cluster: &Cluster, set: &ScaleSet) -> Vec<(u32, MachineId)> {
    let groups = set.groups.iter().filter_map(|group| cluster.tenant(*group));
    let numbered = |id: &MachineId| {
        let number = cluster.machine(*id)?.name.instance_number(&set.name)?;
        Some((number, *id))
    };
    let mut all: Vec<_> = groups.flat_map(Tenant::machines).filter_map(numbered).collect();
    all.sort_unstable();
    all
}
