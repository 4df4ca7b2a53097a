//! Application of changes to actions whose result is unknown, and to hosts that need attention.

use std::sync::Arc;

use forewarn_types::{HostId, MaintenanceId};

use crate::action::Action;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::fleet::HostAttention;
use crate::host_step::{Steps, Target};
use crate::maintenance::Stage;
use crate::paged::PagedMap;

impl Cluster {
    pub(super) fn suspended(&mut self, id: MaintenanceId, target: Target) {
        let Some((_, steps)) = self.running_mut(id) else { return };
        steps.suspended.insert(target);
    }

    pub(super) fn retried(&mut self, id: MaintenanceId, target: Target, out: &mut Vec<Effect>) {
        let Some((actions, steps)) = self.running_mut(id) else { return };
        steps.suspended.remove(&target);
        out.extend(actions.get(&target).copied().map(Effect::Perform));
    }

    fn running_mut(&mut self, id: MaintenanceId) -> Option<(&mut PagedMap<Target, Action>, &mut Steps)> {
        match &mut Arc::make_mut(self.maintenances.get_mut(&id)?).stage {
            Stage::Running { actions, steps, .. } => Some((actions, steps)),
            Stage::Waiting(_) => None,
        }
    }

    /// A host that needs attention is closed to machines and to work.
    pub(super) fn attention_changed(&mut self, id: HostId, attention: HostAttention) {
        self.change_host(id, |host| host.attention = attention);
        match attention {
            HostAttention::Needed => {}
            HostAttention::Unneeded => self.advance_rollout_of(id),
        }
    }
}
