//! Application of changes to scale sets, and the schedule of their batches.

use forewarn_types::{MachineId, Now, ScaleSetId};

use crate::agenda::Due;
use crate::cluster::Cluster;
use crate::fleet::{Profile, ScaleSet, UpgradePolicy};
use crate::policy::Policy;
use crate::tenant::Shape;
use crate::tenant_windows::WindowOwner;

impl Cluster {
    pub(super) fn scale_set_admitted(&mut self, id: ScaleSetId, new: &ScaleSet) {
        self.next.scale_set = id.0 + 1;
        self.scale_set_names.insert(new.name.as_str(), id);
        self.scale_sets.insert(id, new.clone());
    }

    pub(super) fn model_changed(&mut self, id: ScaleSetId, version: u32, model: Profile) {
        if let Some(set) = self.scale_sets.get_mut(&id) {
            (set.model_version, set.model) = (version, model);
        }
    }

    pub(super) fn scale_set_policy_changed(&mut self, id: ScaleSetId, policy: Policy) {
        if let Some(set) = self.scale_sets.get_mut(&id) {
            set.policy = policy;
        }
    }

    pub(super) fn scale_set_removed(&mut self, id: ScaleSetId) {
        self.unlist_batch(id);
        if let Some(set) = self.scale_sets.remove(&id) {
            self.tenant_windows.remove(&WindowOwner::ScaleSet(id));
            self.scale_set_names.remove(set.name.as_str(), id);
            self.capacities.instance_sizes.remove(&id);
        }
    }

    /// A pause in progress gets the length of the new policy. Without batches there is nothing to wait for.
    pub(super) fn upgrade_policy_changed(&mut self, id: ScaleSetId, upgrade: UpgradePolicy) {
        self.unlist_batch(id);
        if let Some(set) = self.scale_sets.get_mut(&id) {
            set.upgrade = upgrade;
            match upgrade {
                UpgradePolicy::Manual | UpgradePolicy::Automatic => set.rolling = None,
                UpgradePolicy::Rolling { .. } => {}
            }
        }
        self.list_batch(id);
    }

    pub(super) fn set_rolling(&mut self, id: ScaleSetId, rolling: Option<Now>) {
        self.unlist_batch(id);
        if let Some(set) = self.scale_sets.get_mut(&id) {
            set.rolling = rolling;
        }
        self.list_batch(id);
    }

    /// Puts an instance into the next batch that was skipped because it was leaving, and now stays.
    pub(super) fn recheck_model(&mut self, now: Now, id: MachineId) {
        let Some(machine) = self.machines.get(&id) else { return };
        let Some(Shape::PlacementGroup(set_id)) = self.tenants.get(&machine.tenant).map(|group| group.shape)
        else {
            return;
        };
        let Some(set) = self.scale_sets.get(&set_id) else { return };
        let rolls = matches!(set.upgrade, UpgradePolicy::Rolling { .. });
        if rolls && set.rolling.is_none() && machine.model_version != set.model_version {
            self.set_rolling(set_id, Some(now));
        }
    }

    /// Schedules the next batch of a scale set, if there is one.
    pub(crate) fn list_batch(&mut self, id: ScaleSetId) {
        if let Some(at) = self.scale_sets.get(&id).and_then(ScaleSet::recheck_time) {
            self.agenda.add(at, Due::Batch(id));
        }
    }

    fn unlist_batch(&mut self, id: ScaleSetId) {
        if let Some(at) = self.scale_sets.get(&id).and_then(ScaleSet::recheck_time) {
            self.agenda.remove(at, Due::Batch(id));
        }
    }
}
