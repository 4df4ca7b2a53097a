//! Application of changes to the windows of tenants.

use crate::cluster::Cluster;
use crate::maintenance::{Hold, Wait};
use crate::rollout::Rollout;
use crate::tenant_windows::WindowOwner;
use crate::window::Window;

impl Cluster {
    /// Stores the windows, and has the next ticks recheck everything that may wait for a window of a tenant.
    pub(super) fn windows_changed(&mut self, owner: WindowOwner, windows: &[Window]) {
        if windows.is_empty() {
            self.tenant_windows.remove(&owner);
        } else {
            self.tenant_windows.insert(owner, windows.into());
        }
        self.recheck_rollouts(Rollout::waits_for_room);
        let groups = self.rollouts.values().filter_map(|rollout| rollout.current());
        let groups = groups.filter_map(|group| self.maintenances.get(&group));
        let held = groups.filter(|group| matches!(group.wait(), Some(Wait::Held(Hold::Window { .. }))));
        let held: Vec<_> = held.map(|group| group.plan.id).collect();
        held.into_iter().for_each(|group| self.recheck(group));
    }
}
