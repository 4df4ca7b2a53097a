//! Hosts, tenants, scale sets and machines come, change and go.

use super::draft::Draft;
use crate::change::Change;
use crate::command::{Refusal, SetShape};
use crate::fleet::{Machine, Orchestration, Placement, Power, Priority, Profile, ScaleSet, UpgradePolicy};
use crate::ids::{HostId, MachineId, ScaleSetId, TenantId, Zone};
use crate::limits::{
    HOSTS_MAX, INSTANCE_NUMBER_MAX, MACHINES_PER_PLACEMENT_GROUP_MAX, MACHINES_PER_TENANT_MAX,
    PLACEMENT_GROUPS_PER_SCALE_SET_MAX, TENANTS_MAX,
};
use crate::names::Name;
use crate::policy::Policy;
use crate::tenant::Shape;

impl Draft<'_> {
    pub(super) fn admit_host(&mut self, name: &Name, zone: Option<Zone>) -> Result<(), Refusal> {
        Refusal::check(self.cluster.hosts.len() + 1, HOSTS_MAX, "hosts")?;
        if self.cluster.host_names.contains_key(name) {
            return Err(Refusal::NameTaken(name.clone()));
        }
        let host = HostId(self.next.host);
        self.changes.push(Change::HostAdmitted { host, name: name.clone(), zone });
        Ok(())
    }

    pub(super) fn remove_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if !host.machines().is_empty() {
            return Err(Refusal::HostInUse(host.name.clone()));
        }
        if host.rollout.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        self.changes.push(Change::HostRemoved(id));
        Ok(())
    }

    pub(super) fn admit_standalone(
        &mut self,
        name: &Name,
        placement: Placement,
        priority: Priority,
        profile: Profile,
        policy: Policy,
    ) -> Result<(), Refusal> {
        self.check_tenant_name(name)?;
        check_profile(name, priority, profile)?;
        Refusal::check_domains(placement)?;
        let tenant = self.new_tenant(name, Shape::StandaloneMachine, policy);
        self.cluster.check_admission(placement.host, tenant, placement.update_domain)?;
        self.new_machine(tenant, name.clone(), placement, priority, 0, profile);
        Ok(())
    }

    pub(super) fn admit_tenant(&mut self, name: &Name, set: SetShape, policy: Policy) -> Result<(), Refusal> {
        self.check_tenant_name(name)?;
        let shape = match set {
            SetShape::CloudService => Shape::CloudService,
            SetShape::AvailabilitySet => Shape::AvailabilitySet,
        };
        self.new_tenant(name, shape, policy);
        Ok(())
    }

    pub(super) fn change_policy(&mut self, id: TenantId, policy: Policy) -> Result<(), Refusal> {
        let tenant = self.cluster.known_tenant(id)?;
        if let Shape::PlacementGroup(_) = tenant.shape {
            return Err(Refusal::PartOfScaleSet(tenant.name.clone()));
        }
        if tenant.policy != policy {
            self.changes.push(Change::PolicyChanged { tenant: id, policy });
        }
        Ok(())
    }

    pub(super) fn remove_tenant(&mut self, id: TenantId) -> Result<(), Refusal> {
        let tenant = self.cluster.known_tenant(id)?;
        if let Shape::PlacementGroup(_) = tenant.shape {
            return Err(Refusal::PartOfScaleSet(tenant.name.clone()));
        }
        if !tenant.machines().is_empty() || !tenant.events().is_empty() {
            return Err(Refusal::TenantInUse(tenant.name.clone()));
        }
        self.changes.push(Change::TenantRemoved(id));
        Ok(())
    }

    pub(super) fn admit_machine(
        &mut self,
        tenant_id: TenantId,
        name: &Name,
        placement: Placement,
        priority: Priority,
        profile: Profile,
    ) -> Result<(), Refusal> {
        let tenant = self.cluster.known_tenant(tenant_id)?;
        match tenant.shape {
            Shape::StandaloneMachine => return Err(Refusal::Standalone(tenant.name.clone())),
            Shape::PlacementGroup(_) => return Err(Refusal::PartOfScaleSet(tenant.name.clone())),
            Shape::CloudService | Shape::AvailabilitySet => {}
        }
        Refusal::check(tenant.machines().len() + 1, MACHINES_PER_TENANT_MAX, "machines of the tenant")?;
        if self.cluster.machine_named(tenant_id, name.as_str()).is_some() {
            return Err(Refusal::NameTaken(name.clone()));
        }
        check_profile(name, priority, profile)?;
        Refusal::check_domains(placement)?;
        self.cluster.check_admission(placement.host, tenant_id, placement.update_domain)?;
        self.new_machine(tenant_id, name.clone(), placement, priority, 0, profile);
        Ok(())
    }

    pub(super) fn change_profile(&mut self, id: MachineId, profile: Profile) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        if let Shape::PlacementGroup(_) = self.cluster.known_tenant(machine.tenant)?.shape {
            return Err(Refusal::PartOfScaleSet(machine.name.clone()));
        }
        check_profile(&machine.name, machine.priority, profile)?;
        if machine.profile != profile {
            self.changes.push(Change::ProfileChanged { machine: id, model_version: 0, profile });
        }
        Ok(())
    }

    pub(super) fn admit_scale_set(
        &mut self,
        name: &Name,
        orchestration: Orchestration,
        priority: Priority,
        upgrade: UpgradePolicy,
        model: Profile,
        policy: Policy,
    ) -> Result<(), Refusal> {
        self.check_tenant_name(name)?;
        check_profile(name, priority, model)?;
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
        };
        self.changes.push(Change::ScaleSetAdmitted { scale_set, new });
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
        let name = set.name.of_instance(number);
        if number < set.next_instance {
            return Err(Refusal::InstanceNumberPassed { name, next: set.next_instance });
        }
        Refusal::check(number as usize, INSTANCE_NUMBER_MAX, "instances there ever were of a scale set")?;
        Refusal::check_domains(placement)?;
        let tenant = match self.group_with_room(set) {
            Some(group) => group,
            None => self.new_group(id, set)?,
        };
        self.cluster.check_admission(placement.host, tenant, placement.update_domain)?;
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

    /// A new model reaches instances when they are upgraded; at once, if the scale set upgrades automatically.
    pub(super) fn change_model(&mut self, id: ScaleSetId, model: Profile) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        check_profile(&set.name, set.priority, model)?;
        if set.model == model {
            return Ok(());
        }
        let version = set.model_version + 1;
        self.changes.push(Change::ModelChanged { scale_set: id, version, model });
        if set.upgrade == UpgradePolicy::Automatic {
            let groups = set.groups.iter().filter_map(|group| self.cluster.tenant(*group));
            let machines = groups.flat_map(|group| group.machines().iter().copied());
            self.changes.extend(machines.map(|machine| Change::ProfileChanged {
                machine,
                model_version: version,
                profile: model,
            }));
        }
        Ok(())
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
            let (model_version, profile) = (set.model_version, set.model);
            self.changes.push(Change::ProfileChanged { machine: id, model_version, profile });
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

    fn check_tenant_name(&self, name: &Name) -> Result<(), Refusal> {
        Refusal::check(self.cluster.tenants.len() + 1, TENANTS_MAX, "tenants")?;
        if self.cluster.tenant_names.contains_key(name) || self.cluster.scale_set_names.contains_key(name) {
            return Err(Refusal::NameTaken(name.clone()));
        }
        Ok(())
    }

    fn new_tenant(&mut self, name: &Name, shape: Shape, policy: Policy) -> TenantId {
        let tenant = TenantId(self.next.tenant);
        self.changes.push(Change::TenantAdmitted { tenant, name: name.clone(), shape, policy });
        tenant
    }

    fn new_machine(
        &mut self,
        tenant: TenantId,
        name: Name,
        placement: Placement,
        priority: Priority,
        model_version: u32,
        profile: Profile,
    ) {
        let new = Machine {
            name,
            tenant,
            host: placement.host,
            update_domain: placement.update_domain,
            fault_domain: placement.fault_domain,
            priority,
            power: Power::Running,
            boots: 1,
            ephemeral_generation: 1,
            model_version,
            profile,
        };
        self.changes.push(Change::MachineAdmitted { machine: MachineId(self.next.machine), new });
    }
}

fn check_profile(name: &Name, priority: Priority, profile: Profile) -> Result<(), Refusal> {
    match priority {
        Priority::Spot(_) if profile.terminate.is_some() => Err(Refusal::TerminateOnSpot(name.clone())),
        Priority::Spot(_) | Priority::Regular => Ok(()),
    }
}
