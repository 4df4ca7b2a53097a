//! States of machines as clients see them: power state and provisioning state.

use forewarn_lifecycle::{Aside, Cluster, EvictionPolicy, Impact, MachineId, Power};

use super::Provisioning;
use crate::presence::is_leaving;

/// Power state of a machine.
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
            Impact::Start { .. } | Impact::Return(Aside::Stopped) => Some(Self::Starting),
            Impact::Stop | Impact::StepAside(Aside::Stopped) => Some(Self::Stopping),
            Impact::Deallocate | Impact::Evict(EvictionPolicy::Deallocate) => Some(Self::Deallocating),
            Impact::Pause { .. }
            | Impact::Migrate { .. }
            | Impact::Reboot { .. }
            | Impact::Redeploy { .. }
            | Impact::Reimage
            | Impact::Evict(EvictionPolicy::Delete)
            | Impact::Delete
            | Impact::StepAside(Aside::Paused)
            | Impact::Return(Aside::Paused)
            | Impact::OnHost(_) => None,
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

/// Provisioning state of a machine; `otherwise` if the rules know nothing better.
pub(super) fn provisioning(cluster: &Cluster, id: MachineId, otherwise: Provisioning) -> Provisioning {
    if is_leaving(cluster, id) { Provisioning::Deleting } else { otherwise }
}
