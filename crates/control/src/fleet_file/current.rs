//! The fleet of a cluster, read entry by entry: an entry costs the same, however many machines the cluster has.

use std::collections::BTreeMap;

use forewarn_lifecycle::{
    Cluster, EnrolmentRule, Machine, MachineId, Now, ScaleSet, ScaleSetId, Shape, Tenant, WindowOwner,
};

use crate::command::enrolment::EnrolmentWord;
use crate::command::entry::{
    HostEntry, InstanceEntry, MachineEntry, ScaleSetEntry, SetEntry, Site, VmEntry, notices, spot,
};
use crate::command::machine_details::MachineDetails;
use crate::command::size::cpus_and_memory;
use crate::command::window::WindowEntry;
use crate::fleet_file::fleet::Fleet;
use crate::placement::instances;

/// The fleet of a cluster.
#[derive(Clone, Copy)]
pub struct CurrentFleet<'a> {
    pub cluster: &'a Cluster,
    pub site: &'a Site,
    /// Details of a machine, if it has some.
    pub details: &'a dyn Fn(MachineId) -> Option<&'a MachineDetails>,
    pub now: Now,
}

impl<'a> CurrentFleet<'a> {
    /// The whole fleet, as a fleet file lists it.
    #[must_use]
    pub fn fleet(&self) -> Fleet {
        let mut fleet =
            Fleet { enrolment: self.enrolment(), site: self.site.clone().into(), ..Fleet::default() };
        for (id, host) in self.cluster.hosts() {
            let (cpus, memory) = cpus_and_memory(self.cluster.room_of(id).capacity);
            let (name, zone) = (host.name.to_string(), host.zone.map(|zone| zone.0));
            fleet.hosts.push(HostEntry { name, zone, cpus, memory });
        }
        for (_, tenant) in self.cluster.tenants() {
            match tenant.shape {
                Shape::StandaloneMachine => fleet.vms.extend(self.vm(tenant)),
                Shape::AvailabilitySet => fleet.availability_sets.push(self.set(tenant)),
                Shape::CloudService => fleet.cloud_services.push(self.set(tenant)),
                Shape::PlacementGroup(_) => {}
            }
        }
        fleet.scale_sets.extend(self.cluster.scale_sets().map(|(id, set)| self.scale_set(id, set)));
        fleet
    }

    /// The rule of enrolment. None for the usual one: a fleet file need not name it.
    fn enrolment(&self) -> Option<EnrolmentWord> {
        let rule = self.cluster.settings().enrolment;
        (rule != EnrolmentRule::default()).then(|| rule.into())
    }

    /// The tenant with that name and shape.
    pub(super) fn tenant_named(&self, name: &str, shape: Shape) -> Option<&'a Tenant> {
        let tenant = self.cluster.tenant_named(name).and_then(|id| self.cluster.tenant(id));
        tenant.filter(|tenant| tenant.shape == shape)
    }

    pub(super) fn scale_set_named(&self, name: &str) -> Option<(ScaleSetId, &'a ScaleSet)> {
        let id = self.cluster.scale_set_named(name)?;
        Some((id, self.cluster.scale_set(id)?))
    }

    /// The machines of a tenant by their names.
    pub(super) fn machines_of(&self, tenant: &Tenant) -> BTreeMap<&'a str, MachineId> {
        let named = |id: &MachineId| Some((self.cluster.machine(*id)?.name.as_str(), *id));
        tenant.machines().iter().filter_map(named).collect()
    }

    pub(super) fn vm(&self, tenant: &Tenant) -> Option<VmEntry> {
        let machine = self.machine(*tenant.machines().first()?)?;
        let windows = self.windows_named(tenant.name.as_str());
        Some(VmEntry { windows, ..VmEntry::of(machine, tenant.policy.into()) })
    }

    pub(super) fn machine(&self, id: MachineId) -> Option<MachineEntry> {
        let machine = self.cluster.machine(id)?;
        let (terminate, os_image) = notices(machine.profile);
        let MachineDetails { addresses, tags, home: _ } = self.details_of(id);
        let (cpus, memory) = cpus_and_memory(self.cluster.size_of(id));
        Some(MachineEntry {
            name: machine.name.to_string(),
            host: self.host(machine),
            update_domain: machine.update_domain.0,
            fault_domain: machine.fault_domain.0,
            cpus,
            memory,
            spot: spot(machine.priority),
            terminate,
            os_image,
            addresses,
            tags,
        })
    }

    pub(super) fn instance(&self, number: u32, id: MachineId) -> Option<InstanceEntry> {
        let machine = self.cluster.machine(id)?;
        let MachineDetails { addresses, tags, home: _ } = self.details_of(id);
        Some(InstanceEntry {
            id: Some(number),
            host: self.host(machine),
            update_domain: machine.update_domain.0,
            fault_domain: machine.fault_domain.0,
            addresses,
            tags,
        })
    }

    /// The windows of the tenant or the scale set of that name.
    pub(super) fn windows_named(&self, name: &str) -> Vec<WindowEntry> {
        if !self.cluster.has_tenant_windows() {
            return Vec::new();
        }
        let tenant = || self.cluster.tenant_named(name).map(WindowOwner::Tenant);
        let owner = self.cluster.scale_set_named(name).map(WindowOwner::ScaleSet).or_else(tenant);
        let windows = owner.map_or(&[][..], |owner| self.cluster.windows_of(owner));
        windows.iter().map(WindowEntry::from).collect()
    }

    /// A scale set without its instances.
    pub(super) fn bare_scale_set(&self, id: ScaleSetId, set: &ScaleSet) -> ScaleSetEntry {
        let (terminate, os_image) = notices(set.model);
        let (cpus, memory) = cpus_and_memory(self.cluster.instance_size(id));
        ScaleSetEntry {
            name: set.name.to_string(),
            orchestration: set.orchestration.into(),
            upgrade: set.upgrade.into(),
            cpus,
            memory,
            spot: spot(set.priority),
            terminate,
            os_image,
            policy: set.policy.into(),
            windows: self.windows_named(set.name.as_str()),
            count: None,
            placement: None,
            instances: Vec::new(),
        }
    }

    fn set(&self, tenant: &Tenant) -> SetEntry {
        let machines = tenant.machines().iter().filter_map(|id| self.machine(*id)).collect();
        let windows = self.windows_named(tenant.name.as_str());
        SetEntry { name: tenant.name.to_string(), policy: tenant.policy.into(), windows, machines }
    }

    fn scale_set(&self, id: ScaleSetId, set: &ScaleSet) -> ScaleSetEntry {
        let all = instances(self.cluster, set).into_iter();
        let instances = all.filter_map(|(number, id)| self.instance(number, id)).collect();
        ScaleSetEntry { instances, ..self.bare_scale_set(id, set) }
    }

    fn details_of(&self, id: MachineId) -> MachineDetails {
        (self.details)(id).cloned().unwrap_or_default()
    }

    fn host(&self, machine: &Machine) -> String {
        self.cluster.host(machine.host).map(|host| host.name.to_string()).unwrap_or_default()
    }
}
