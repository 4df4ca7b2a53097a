//! Admission, change and removal of hosts, tenants and machines; scale sets have a file of their own.

use forewarn_types::{HostId, MachineId, Name, TenantId, Zone};

use super::draft::Draft;
use crate::capacity::Size;
use crate::change::Change;
use crate::command::SetShape;
use crate::fleet::{Machine, Placement, Power, Priority, Profile};
use crate::limits::{HOSTS_MAX, MACHINES_PER_TENANT_MAX, TENANTS_MAX};
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::tenant::Shape;

impl Draft<'_> {
    pub(super) fn admit_host(
        &mut self,
        name: &Name,
        zone: Option<Zone>,
        capacity: Size,
    ) -> Result<(), Refusal> {
        Refusal::check(self.cluster.hosts.len() + 1, HOSTS_MAX, "hosts")?;
        if self.cluster.host_named(name.as_str()).is_some() {
            return Err(Refusal::NameTaken(name.clone()));
        }
        let host = HostId(self.next.host);
        self.changes.push(Change::HostAdmitted { host, name: name.clone(), zone });
        if !capacity.is_none() {
            self.changes.push(Change::CapacityChanged { host, capacity });
        }
        Ok(())
    }

    pub(super) fn remove_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if !host.machines().is_empty() {
            return Err(Refusal::HostInUse { host: host.name.clone(), machines: self.listed_on(host) });
        }
        if host.rollout.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        if host.fence.order().is_some() {
            return Err(Refusal::BeingFenced(host.name.clone()));
        }
        drop(self.withdraw_returns(id));
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
        self.cluster.check_admission(placement.host, tenant, placement.update_domain, placement.size)?;
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
        self.cluster.check_admission(placement.host, tenant_id, placement.update_domain, placement.size)?;
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

    pub(super) fn check_tenant_name(&self, name: &Name) -> Result<(), Refusal> {
        Refusal::check(self.cluster.tenants.len() + 1, TENANTS_MAX, "tenants")?;
        let text = name.as_str();
        if self.cluster.tenant_named(text).is_some() || self.cluster.scale_set_named(text).is_some() {
            return Err(Refusal::NameTaken(name.clone()));
        }
        Ok(())
    }

    pub(super) fn new_tenant(&mut self, name: &Name, shape: Shape, policy: Policy) -> TenantId {
        let tenant = TenantId(self.next.tenant);
        self.changes.push(Change::TenantAdmitted { tenant, name: name.clone(), shape, policy });
        tenant
    }

    pub(super) fn new_machine(
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
        let machine = MachineId(self.next.machine);
        self.changes.push(Change::MachineAdmitted { machine, new });
        if !placement.size.is_none() {
            self.changes.push(Change::MachineResized { machine, size: placement.size });
        }
    }
}

pub(super) fn check_profile(name: &Name, priority: Priority, profile: Profile) -> Result<(), Refusal> {
    match priority {
        Priority::Spot(_) if profile.terminate.is_some() => Err(Refusal::TerminateOnSpot(name.clone())),
        Priority::Spot(_) | Priority::Regular => Ok(()),
    }
}
