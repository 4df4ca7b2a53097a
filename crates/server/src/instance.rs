//! Instance metadata of a machine, from the fleet and its details.

use std::net::{IpAddr, Ipv4Addr};

use forewarn_control::ClusterState;
use forewarn_control::resource_id::{group_of, machine_id, scale_set_id};
use forewarn_control::resources::DescribedName;
use forewarn_imds::{Instance, Interface, OsType, ScaleSetMembership, USUAL_SIZE, computer_name};
use forewarn_lifecycle::{EvictionPolicy, MachineId, Priority, Seed, Shape};
use forewarn_types::Unique;

/// Instance metadata of a machine. None if it does not exist.
pub(crate) fn instance_of(state: &ClusterState, id: MachineId, seed: &Seed) -> Option<Instance> {
    let (cluster, site, details) = (state.rules(), state.site(), state.details_of(id));
    let machine = cluster.machine(id)?;
    let tenant = cluster.tenant(machine.tenant)?;
    let scale_set = match tenant.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    };
    let group = group_of(site, Some(details));
    let location = details.home.as_ref().map_or(&site.location, |home| &home.location);
    let number = scale_set.and_then(|set| machine.name.instance_number(&set.name));
    let described = state.resources().described(cluster, id);
    let (priority, eviction_policy) = priority_words(machine.priority);
    Some(Instance {
        name: machine.name.clone(),
        vm_id: Unique::Machine(id).id(seed),
        location: location.clone(),
        os_type: OsType::Linux,
        computer_name: match (described.computer_name, scale_set, number) {
            (Some(DescribedName::Whole(name)), _, _) => name,
            (Some(DescribedName::Prefix(prefix)), _, Some(number)) => computer_name(&prefix, number),
            (None, Some(set), Some(number)) => computer_name(set.name.as_str(), number),
            (None, None, _) | (_, _, None) => machine.name.to_string(),
        },
        vm_size: described.size.unwrap_or_else(|| USUAL_SIZE.to_owned()),
        update_domain: machine.update_domain,
        fault_domain: machine.fault_domain,
        zone: cluster.host(machine.host).and_then(|host| host.zone),
        priority,
        eviction_policy,
        subscription_id: site.subscription.clone(),
        resource_id: machine_id(cluster, &group, id)?.to_string(),
        tags: details.tags.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        scale_set: scale_set.map(|set| ScaleSetMembership {
            name: set.name.to_string(),
            id: scale_set_id(&group, &set.name).to_string(),
            placement_group_id: Unique::PlacementGroup(machine.tenant).id(seed),
        }),
        interfaces: interfaces(id, &details.addresses),
        resource_group_name: group.name,
    })
}

/// The words for `priority` and `evictionPolicy`.
const fn priority_words(priority: Priority) -> (&'static str, &'static str) {
    match priority {
        Priority::Regular => ("Regular", ""),
        Priority::Spot(EvictionPolicy::Deallocate) => ("Spot", "Deallocate"),
        Priority::Spot(EvictionPolicy::Delete) => ("Spot", "Delete"),
    }
}

/// One interface for each IPv4 address; a machine without any gets a made-up one.
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
        // Locally administered: no vendor assigns it.
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

#[cfg(test)]
mod tests {
    use forewarn_control::ClusterId;
    use forewarn_control::{
        ClusterEntry, ControlState, MachineDetails, NamedCommand, Record, Resolved, ResourceGroupRef,
    };
    use forewarn_lifecycle::Now;

    use super::*;

    const FIRST: ClusterId = ClusterId::DEFAULT;

    fn state_after(commands: &[&str]) -> ControlState {
        let mut state = ControlState::new(Seed([1; 16]));
        let now = Now::at_millis(0);
        for command in commands {
            let command: NamedCommand = serde_json::from_str(command).unwrap();
            let rules = state.cluster(FIRST).unwrap().rules();
            let (Resolved::Rules(resolved) | Resolved::Admit(resolved, _)) = command.resolve(rules).unwrap()
            else {
                unreachable!("all of them are of the rules")
            };
            for change in rules.decide(now, &resolved).unwrap() {
                state.apply(&Record::rules(now, FIRST, change));
            }
        }
        state
    }

    #[test]
    fn a_spot_machine_shows_its_eviction_policy() {
        let deallocated = Priority::Spot(EvictionPolicy::Deallocate);
        assert_eq!(priority_words(Priority::Regular), ("Regular", ""));
        assert_eq!(priority_words(deallocated), ("Spot", "Deallocate"));
        assert_eq!(priority_words(Priority::Spot(EvictionPolicy::Delete)), ("Spot", "Delete"));
    }

    /// promise: M1, Z1
    #[test]
    fn a_machine_shows_its_resource_group_and_location() {
        let mut state = state_after(&[
            r#"{"command":"admit_host","name":"h1"}"#,
            r#"{"command":"admit_vm","name":"solo","host":"h1"}"#,
            r#"{"command":"admit_scale_set","name":"web"}"#,
            r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h1"}}"#,
        ]);
        let metadata = |state: &ControlState, id| {
            let cluster = state.cluster(FIRST).unwrap();
            let instance = instance_of(cluster, MachineId(id), &Seed([2; 16])).unwrap();
            (instance.location, instance.resource_group_name, instance.resource_id)
        };
        let id = |group: &str, rest: &str| {
            let subscription = "/subscriptions/00000000-0000-0000-0000-000000000000";
            format!("{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/{rest}")
        };
        let site = (String::from("local"), String::from("forewarn"), id("forewarn", "virtualMachines/solo"));
        assert_eq!(metadata(&state, 0), site);
        let home = ResourceGroupRef { resource_group: "Shop".to_owned(), location: "west".to_owned() };
        for machine in [MachineId(0), MachineId(1)] {
            let details = MachineDetails { home: Some(home.clone()), ..MachineDetails::default() };
            let change = ClusterEntry::Described { machine, details };
            state.apply(&Record::in_cluster(Now::at_millis(0), FIRST, change));
        }
        let (west, shop) = (String::from("west"), String::from("Shop"));
        assert_eq!(metadata(&state, 0), (west.clone(), shop.clone(), id("Shop", "virtualMachines/solo")));
        let web = id("Shop", "virtualMachineScaleSets/web");
        assert_eq!(metadata(&state, 1), (west, shop, format!("{web}/virtualMachines/0")));
        let instance = instance_of(state.cluster(FIRST).unwrap(), MachineId(1), &Seed([2; 16])).unwrap();
        assert_eq!(instance.scale_set.map(|set| set.id), Some(web));
    }
}
