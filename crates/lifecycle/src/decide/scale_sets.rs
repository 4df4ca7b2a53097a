//! Scale sets and their instances: admission, change, removal, and upgrades to the latest model.

use forewarn_types::{MachineId, Name, ScaleSetId, TenantId};

use super::draft::Draft;
use super::fleet::check_profile;
use crate::capacity::Size;
use crate::change::Change;
use crate::fleet::{Orchestration, Placement, Priority, Profile, ScaleSet, UpgradePolicy};
use crate::limits::{
    INSTANCE_NUMBER_MAX, MACHINES_PER_PLACEMENT_GROUP_MAX, MACHINES_PER_TENANT_MAX, PAUSE_BETWEEN_MAX,
    PLACEMENT_GROUPS_PER_SCALE_SET_MAX,
};
use crate::percent::Percent;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::tenant::{Shape, Tenant};

/// The part of a model that the rules know.
#[derive(Clone, Copy)]
struct Model {
    version: u32,
    profile: Profile,
}

impl Model {
    /// The latest model of a scale set.
    fn of(set: &ScaleSet) -> Self {
        Self { version: set.model_version, profile: set.model }
    }

    fn change_for(self, machine: MachineId) -> Change {
        Change::ProfileChanged { machine, model_version: self.version, profile: self.profile }
    }
}

impl Draft<'_> {
    pub(super) fn admit_scale_set(
        &mut self,
        name: &Name,
        (orchestration, size): (Orchestration, Size),
        priority: Priority,
        upgrade: UpgradePolicy,
        model: Profile,
        policy: Policy,
    ) -> Result<(), Refusal> {
        self.check_tenant_name(name)?;
        check_profile(name, priority, model)?;
        check_upgrade(upgrade)?;
        let scale_set = ScaleSetId(self.next.scale_set);
        let new = ScaleSet {
            name: name.clone(),
            orchestration,
            priority,
            upgrade,
            model_version: 1,
            model,
            policy,
            next_instance: 0,
            groups: Vec::new(),
            rolling: None,
        };
        self.changes.push(Change::ScaleSetAdmitted { scale_set, new });
        if !size.is_none() {
            self.changes.push(Change::InstancesResized { scale_set, size });
        }
        self.new_tenant(name, Shape::PlacementGroup(scale_set), policy);
        Ok(())
    }

    /// A new instance joins the first placement group with room, or a new one.
    pub(super) fn admit_instance(
        &mut self,
        id: ScaleSetId,
        placement: Placement,
        number: Option<u32>,
    ) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        let number = number.unwrap_or(set.next_instance);
        Refusal::check(number as usize, INSTANCE_NUMBER_MAX, "instances ever created in a scale set")?;
        let name = set.instance_name(number);
        if number < set.next_instance {
            return Err(Refusal::InstanceNumberPassed { name, next: set.next_instance });
        }
        Refusal::check_domains(placement)?;
        let placement = Placement { size: self.cluster.instance_size(id), ..placement };
        let tenant = match self.group_with_room(set) {
            Some(group) => group,
            None => self.new_group(id, set)?,
        };
        self.cluster.check_admission(placement.host, tenant, placement.update_domain, placement.size)?;
        self.new_machine(tenant, name, placement, set.priority, set.model_version, set.model);
        Ok(())
    }

    fn group_with_room(&self, set: &ScaleSet) -> Option<TenantId> {
        let max = match set.orchestration {
            Orchestration::Uniform => MACHINES_PER_PLACEMENT_GROUP_MAX,
            Orchestration::Flexible => MACHINES_PER_TENANT_MAX,
        };
        let has_room =
            |id: &&TenantId| self.cluster.tenant(**id).is_some_and(|tenant| tenant.machines().len() < max);
        set.groups.iter().find(has_room).copied()
    }

    fn new_group(&mut self, id: ScaleSetId, set: &ScaleSet) -> Result<TenantId, Refusal> {
        let max = match set.orchestration {
            Orchestration::Uniform => PLACEMENT_GROUPS_PER_SCALE_SET_MAX,
            Orchestration::Flexible => 1,
        };
        Refusal::check(set.groups.len() + 1, max, "placement groups of the scale set")?;
        let name = set.name.of_placement_group(set.groups.len() + 1);
        self.check_tenant_name(&name)?;
        Ok(self.new_tenant(&name, Shape::PlacementGroup(id), set.policy))
    }

    pub(super) fn change_model(&mut self, id: ScaleSetId, model: Profile) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        check_profile(&set.name, set.priority, model)?;
        if set.model != model {
            self.new_model(id, set, model);
        }
        Ok(())
    }

    pub(super) fn revise_model(&mut self, id: ScaleSetId) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        self.new_model(id, set, set.model);
        Ok(())
    }

    fn new_model(&mut self, id: ScaleSetId, set: &ScaleSet, profile: Profile) {
        let model = Model { version: set.model_version + 1, profile };
        self.changes.push(Change::ModelChanged { scale_set: id, version: model.version, model: profile });
        self.distribute(id, set, set.upgrade, model);
    }

    /// Changes the upgrade policy. Instances with an older model get the latest one in the new way.
    pub(super) fn change_upgrade_policy(
        &mut self,
        id: ScaleSetId,
        upgrade: UpgradePolicy,
    ) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        check_upgrade(upgrade)?;
        if set.upgrade != upgrade {
            self.changes.push(Change::UpgradePolicyChanged { scale_set: id, upgrade });
            self.distribute(id, set, upgrade, Model::of(set));
        }
        Ok(())
    }

    /// Distributes a model: on upgrade of each instance, at once, or batch by batch. While a rolling upgrade pauses,
    /// the first batch of another one waits too, so that there is a pause between any two batches.
    fn distribute(&mut self, id: ScaleSetId, set: &ScaleSet, upgrade: UpgradePolicy, model: Model) {
        match upgrade {
            UpgradePolicy::Manual => {}
            UpgradePolicy::Automatic => {
                let all: Vec<_> = self.instances(set).filter(|id| self.is_older(*id, model)).collect();
                self.changes.extend(all.into_iter().map(|machine| model.change_for(machine)));
            }
            UpgradePolicy::Rolling { batch, .. } if set.rolling.is_none() => {
                self.upgrade_batch(id, set, batch, model);
            }
            UpgradePolicy::Rolling { .. } => {}
        }
    }

    /// The next batch of a rolling upgrade is due.
    pub(super) fn next_batch(&mut self, id: ScaleSetId) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        match set.upgrade {
            UpgradePolicy::Rolling { batch, .. } => self.upgrade_batch(id, set, batch, Model::of(set)),
            UpgradePolicy::Manual | UpgradePolicy::Automatic => self.changes.push(Change::RollingEnded(id)),
        }
        Ok(())
    }

    /// Upgrades the next instances with an older model, in the order of their numbers. Instances that are being deleted
    /// are skipped.
    fn upgrade_batch(&mut self, id: ScaleSetId, set: &ScaleSet, batch: Percent, model: Model) {
        let number = |id: MachineId| self.cluster.machine(id)?.name.instance_number(&set.name);
        let staying = self.instances(set).filter(|id| !self.cluster.is_leaving(*id));
        let mut staying: Vec<_> = staying.map(|id| (number(id), id)).collect();
        staying.sort_unstable();
        let size = batch.of_rounded_up(staying.len());
        staying.retain(|(_, id)| self.is_older(*id, model));
        self.changes.extend(staying.iter().take(size).map(|(_, machine)| model.change_for(*machine)));
        if staying.len() > size {
            self.changes.push(Change::BatchUpgraded(id));
        } else if set.rolling.is_some() {
            self.changes.push(Change::RollingEnded(id));
        }
    }

    fn instances(&self, set: &ScaleSet) -> impl Iterator<Item = MachineId> {
        let groups = set.groups.iter().filter_map(|group| self.cluster.tenant(*group));
        groups.flat_map(Tenant::machines).copied()
    }

    fn is_older(&self, id: MachineId, model: Model) -> bool {
        self.cluster.machine(id).is_some_and(|machine| machine.model_version != model.version)
    }

    pub(super) fn change_scale_set_policy(&mut self, id: ScaleSetId, policy: Policy) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        if set.policy != policy {
            self.changes.push(Change::ScaleSetPolicyChanged { scale_set: id, policy });
            self.changes
                .extend(set.groups.iter().map(|group| Change::PolicyChanged { tenant: *group, policy }));
        }
        Ok(())
    }

    pub(super) fn upgrade_instance(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let Shape::PlacementGroup(set) = self.cluster.known_tenant(machine.tenant)?.shape else {
            return Err(Refusal::NotAnInstance(machine.name.clone()));
        };
        let set = self.cluster.known_scale_set(set)?;
        if machine.model_version != set.model_version {
            self.changes.push(Model::of(set).change_for(id));
        }
        Ok(())
    }

    pub(super) fn remove_scale_set(&mut self, id: ScaleSetId) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        let in_use = |group: &TenantId| {
            self.cluster
                .tenant(*group)
                .is_some_and(|tenant| !tenant.machines().is_empty() || !tenant.events().is_empty())
        };
        if set.groups.iter().any(in_use) {
            return Err(Refusal::ScaleSetInUse(set.name.clone()));
        }
        self.changes.extend(set.groups.iter().map(|group| Change::TenantRemoved(*group)));
        self.changes.push(Change::ScaleSetRemoved(id));
        Ok(())
    }
}

fn check_upgrade(upgrade: UpgradePolicy) -> Result<(), Refusal> {
    match upgrade {
        UpgradePolicy::Rolling { pause, .. } if pause > PAUSE_BETWEEN_MAX => Err(Refusal::PauseTooLong),
        UpgradePolicy::Rolling { .. } | UpgradePolicy::Manual | UpgradePolicy::Automatic => Ok(()),
    }
}
