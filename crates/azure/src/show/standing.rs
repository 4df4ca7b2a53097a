//! How machines stand for those who manage them: there, on their way out, or gone; on, off, or in between.
//!
//! Nothing here looks at more work than that of one machine, so a thousand of them can be listed.

use forewarn_lifecycle::{Cause, Cluster, EvictionPolicy, Impact, MachineId, Maintenance, Power, ScaleSetId};

use super::Provisioning;
use forewarn_control::instances;

/// Whether a machine is not there any more: its deletion has started, or is over.
#[must_use]
pub fn is_gone(cluster: &Cluster, machine: MachineId) -> bool {
    cluster.machine(machine).is_none() || ends(cluster, machine).any(|work| work.action(machine).is_some())
}

/// Whether a machine is being deleted, or evicted for good, be that announced or under way.
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

/// Whether a machine is on, as its owner is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PowerState {
    Starting,
    Running,
    Stopping,
    Stopped,
    Deallocating,
    Deallocated,
}

impl PowerState {
    pub(super) fn of(cluster: &Cluster, id: MachineId) -> Self {
        let mut impacts = cluster.pending_of(id).filter_map(|work| Some(work.action(id)?.impact));
        let on_its_way = impacts.find_map(|impact| match impact {
            Impact::Start { .. } => Some(Self::Starting),
            Impact::Stop => Some(Self::Stopping),
            Impact::Deallocate | Impact::Evict(EvictionPolicy::Deallocate) => Some(Self::Deallocating),
            Impact::Pause { .. }
            | Impact::Migrate { .. }
            | Impact::Reboot { .. }
            | Impact::Redeploy { .. }
            | Impact::Reimage
            | Impact::Evict(EvictionPolicy::Delete)
            | Impact::Delete => None,
        });
        on_its_way.unwrap_or_else(|| match cluster.machine(id).map(|machine| machine.power) {
            Some(Power::Running) => Self::Running,
            Some(Power::Stopped) => Self::Stopped,
            Some(Power::Deallocated) | None => Self::Deallocated,
        })
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Deallocating => "deallocating",
            Self::Deallocated => "deallocated",
        }
    }
}

/// How a machine stands of which that is known besides.
pub(super) fn provisioning(cluster: &Cluster, id: MachineId, otherwise: Provisioning) -> Provisioning {
    if is_leaving(cluster, id) { Provisioning::Deleting } else { otherwise }
}
