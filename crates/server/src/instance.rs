//! What a machine is told of itself: from the fleet, and from what its owner has noted.

use std::net::{IpAddr, Ipv4Addr};

use forewarn_lifecycle::{EventId, Machine, MachineId, ScaleSet, Seed, Shape, Tenant};
use forewarn_store::Estate;
use forewarn_wire::operator::{Details, Site};
use forewarn_wire::{Instance, Interface, OsType, ScaleSetMembership, computer_name};

/// All machines have one size; nothing depends on it.
const SIZE: &str = "Standard_D2s_v5";

/// What a machine is told of itself; nothing, if it is not there.
pub(crate) fn instance_of(estate: &Estate, id: MachineId, seed: &Seed) -> Option<Instance> {
    let Estate { cluster, site, details } = estate;
    let nothing = Details::default();
    let details = details.get(&id).unwrap_or(&nothing);
    let machine = cluster.machine(id)?;
    let tenant = cluster.tenant(machine.tenant)?;
    let scale_set = match tenant.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    };
    let number = scale_set.and_then(|set| machine.name.instance_number(&set.name));
    Some(Instance {
        name: machine.name.clone(),
        vm_id: unique_id(seed, Kind::Machine, id.0),
        location: site.location.clone(),
        os_type: OsType::Linux,
        computer_name: match (scale_set, number) {
            (Some(set), Some(number)) => computer_name(set.name.as_str(), number),
            (None, _) | (_, None) => machine.name.to_string(),
        },
        vm_size: SIZE.to_owned(),
        update_domain: machine.update_domain,
        fault_domain: machine.fault_domain,
        zone: cluster.host(machine.host).and_then(|host| host.zone),
        priority: machine.priority,
        subscription_id: site.subscription.clone(),
        resource_group_name: site.resource_group.clone(),
        resource_id: resource_id(site, machine, tenant, scale_set.zip(number)),
        tags: details.tags.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        scale_set: scale_set.map(|set| ScaleSetMembership {
            name: set.name.to_string(),
            id: scale_set_id(site, set),
            placement_group_id: unique_id(seed, Kind::Group, machine.tenant.0),
        }),
        interfaces: interfaces(id, &details.addresses),
    })
}

/// What an id is the id of.
#[derive(Clone, Copy)]
enum Kind {
    Machine = 1,
    Group = 2,
}

/// An id is made as that of an event is, of a secret of its own: one tells nothing of the other.
fn unique_id(seed: &Seed, kind: Kind, number: u32) -> String {
    let mut own = *seed;
    own.0[0] ^= kind as u8;
    EventId::nth(&own, u64::from(number)).to_string().to_lowercase()
}

fn resource_id(
    site: &Site,
    machine: &Machine,
    tenant: &Tenant,
    instance: Option<(&ScaleSet, u32)>,
) -> String {
    let Site { subscription, resource_group, .. } = site;
    let group = format!("/subscriptions/{subscription}/resourceGroups/{resource_group}/providers");
    let name = &machine.name;
    match (instance, tenant.shape) {
        (Some((set, number)), _) => format!("{}/virtualMachines/{number}", scale_set_id(site, set)),
        (None, Shape::CloudService) => {
            format!("{group}/Microsoft.Compute/cloudServices/{}/roleInstances/{name}", tenant.name)
        }
        (None, Shape::StandaloneMachine | Shape::AvailabilitySet | Shape::PlacementGroup(_)) => {
            format!("{group}/Microsoft.Compute/virtualMachines/{name}")
        }
    }
}

fn scale_set_id(Site { subscription, resource_group, .. }: &Site, set: &ScaleSet) -> String {
    let provider = "Microsoft.Compute/virtualMachineScaleSets";
    format!("/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/{provider}/{}", set.name)
}

/// One interface for each IPv4 address; a machine without any shows one in a network of its own making.
fn interfaces(MachineId(number): MachineId, addresses: &[IpAddr]) -> Vec<Interface> {
    let mut known: Vec<_> = addresses.iter().filter_map(|address| v4(*address)).collect();
    if known.is_empty() {
        known.push(Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 4)).wrapping_add(number)));
    }
    known.into_iter().map(|private| interface(number, private)).collect()
}

fn interface(number: u32, private: Ipv4Addr) -> Interface {
    let [_, _, third, fourth] = private.octets();
    let [_, _, high, low] = number.to_be_bytes();
    Interface {
        // Locally administered: nobody else gives it out.
        mac: [0x02, 0x0F, high, low, third, fourth],
        private,
        public: None,
        subnet: Ipv4Addr::from(u32::from(private) & 0xFFFF_FF00),
        subnet_prefix_bits: 24,
    }
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address.to_canonical() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
