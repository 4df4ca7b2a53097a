//! Random fleets for tests of the rules.

use forewarn_lifecycle::*;
use proptest::prelude::*;

use crate::ObservedCluster;

/// The layout of a random fleet.
#[derive(Clone, Debug)]
pub struct Layout {
    hosts: u8,
    zones: u16,
    domains: u16,
    machines: Vec<(u8, u8, u8)>,
    enrolled: Vec<bool>,
    /// Capacities of the hosts and sizes of the machines, repeated; none if empty.
    sizes: Vec<u8>,
}

pub fn layouts() -> impl Strategy<Value = Layout> {
    let machines = prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 4..20);
    let enrolled = prop::collection::vec(prop::bool::weighted(0.8), 8);
    let sizes = prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 1..8)];
    (3u8..8, 1u16..3, 2u16..4, machines, enrolled, sizes).prop_map(
        |(hosts, zones, domains, machines, enrolled, sizes)| Layout {
            hosts,
            zones,
            domains,
            machines,
            enrolled,
            sizes,
        },
    )
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

/// Builds the fleet. A placement that the rules refuse is left out.
pub fn build(layout: &Layout) -> ObservedCluster {
    let mut world = ObservedCluster::new();
    let mut sizes = layout.sizes.iter().cycle().copied();
    for host in 0..layout.hosts {
        let zone = Some(Zone(u16::from(host) % layout.zones));
        let capacity = sizes.next().map_or(Size::NONE, random_capacity);
        world
            .submit(Command::AdmitHost { name: name(&format!("h{host}")), zone, capacity })
            .expect("a new host");
    }
    let policy = Policy::default();
    for (text, set) in [("shop", SetShape::CloudService), ("db", SetShape::AvailabilitySet)] {
        world.submit(Command::AdmitTenant { name: name(text), set, policy }).expect("a new tenant");
    }
    let model = Profile { terminate: Some(TerminateNotice::MIN), os_image: OsImageNotice::On };
    for (text, priority, model) in [
        ("web", Priority::Regular, model),
        ("batch", Priority::Spot(EvictionPolicy::Delete), Profile::default()),
    ] {
        let (orchestration, upgrade) = (Orchestration::Uniform, UpgradePolicy::Manual);
        let set = Command::AdmitScaleSet {
            name: name(text),
            orchestration,
            priority,
            upgrade,
            model,
            policy,
            size: sizes.next().map_or(Size::NONE, random_size),
        };
        world.submit(set).expect("a new scale set");
    }
    for (number, &(tenant, host, domain)) in layout.machines.iter().enumerate() {
        let placement = Placement {
            host: HostId(u32::from(host % layout.hosts)),
            update_domain: UpdateDomain(u16::from(domain) % layout.domains),
            fault_domain: FaultDomain(u16::from(domain / 16) % 3),
            size: sizes.next().map_or(Size::NONE, random_size),
        };
        drop(world.submit(admission(tenant % 6, number, placement)));
    }
    let tenants: Vec<_> = world.cluster.tenants().map(|(id, _)| id).collect();
    for (tenant, enrolled) in tenants.into_iter().zip(layout.enrolled.iter().cycle()) {
        if *enrolled {
            world.poll(tenant);
        }
    }
    world
}

fn admission(tenant: u8, number: usize, placement: Placement) -> Command {
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let terminate = Profile { terminate: Some(TerminateNotice::MAX), ..profile };
    let text = name(&format!("vm{number}"));
    let spot = Priority::Spot(EvictionPolicy::Deallocate);
    match tenant {
        0 => Command::AdmitMachine { tenant: TenantId(0), name: text, placement, priority, profile },
        1 => {
            Command::AdmitMachine { tenant: TenantId(1), name: text, placement, priority, profile: terminate }
        }
        2 => Command::AdmitInstance { scale_set: ScaleSetId(0), placement, number: None },
        3 => Command::AdmitInstance { scale_set: ScaleSetId(1), placement, number: None },
        4 => Command::AdmitStandalone { name: text, placement, priority, profile, policy },
        _ => Command::AdmitStandalone { name: text, placement, priority: spot, profile, policy },
    }
}

/// None, CPUs, memory, or both: room for a few machines.
pub(super) fn random_capacity(bits: u8) -> Size {
    let Size { cpus, memory_mib } = random_size(bits);
    Size { cpus: 3 * cpus, memory_mib: 3 * memory_mib }
}

/// None, CPUs, memory, or both.
pub(super) fn random_size(bits: u8) -> Size {
    let part = |place: u8| u16::from(bits >> place & 3);
    let size = Size { cpus: 1 + part(2), memory_mib: 512 * (1 + u32::from(part(4))) };
    match bits & 3 {
        0 => Size { cpus: 0, ..size },
        1 => Size { memory_mib: 0, ..size },
        _ if bits < 4 => Size::NONE,
        _ => size,
    }
}
