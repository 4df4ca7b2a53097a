//! Random fleets: they read as they are written, and applying one gives that fleet.

use std::time::Duration;

use forewarn_control::*;
use forewarn_lifecycle::Size;
use forewarn_types::Span;
use proptest::prelude::*;

use crate::fleets::apply;
use forewarn_testkit::TestCluster;

/// Any machine: its update domain is the number of its host, so that no two clash.
fn machine(hosts: u16) -> impl Strategy<Value = MachineEntry> {
    let spot = prop::option::of(prop::sample::select(vec![Eviction::Delete, Eviction::Deallocate]));
    let terminate = prop::option::of(300..=900u64);
    let tags = prop::collection::btree_map("[a-z]{1,4}", "[ -~]{0,6}", 0..3);
    let size = (0..4u16, 0..4u32).prop_map(|(cpus, gib)| Size { cpus, memory_mib: 1024 * gib });
    (0..hosts, 0..5u16, spot, terminate, any::<bool>(), tags, size).prop_map(
        |(host, fault_domain, spot, terminate, os_image, tags, size)| MachineEntry {
            cpus: cpus_and_memory(size).0,
            memory: cpus_and_memory(size).1,
            name: String::new(),
            host: format!("h{host}"),
            update_domain: host,
            fault_domain,
            spot,
            terminate: terminate.filter(|_| spot.is_none()).map(|seconds| Span(Duration::from_secs(seconds))),
            os_image,
            addresses: Vec::new(),
            tags,
        },
    )
}

fn policy() -> impl Strategy<Value = PolicyEntry> {
    let word = || prop::sample::select(vec![ApproveWord::Automatic, ApproveWord::Asked]);
    (word(), word(), word()).prop_map(|(restart, redeploy, all_down)| PolicyEntry {
        restart,
        redeploy,
        all_down,
    })
}

/// Windows for some of the policies.
fn windows_of(policy: PolicyEntry) -> Vec<WindowEntry> {
    let night = "sat,sun 22:00-04:00 Europe/Berlin".parse().unwrap();
    match (policy.restart, policy.redeploy) {
        (ApproveWord::Automatic, ApproveWord::Automatic) => {
            vec![night, "12:00-13:00 +01:00".parse().unwrap()]
        }
        (ApproveWord::Automatic, ApproveWord::Asked) => vec![night],
        (ApproveWord::Asked, _) => Vec::new(),
    }
}

fn vm(machine: MachineEntry, name: String, policy: PolicyEntry) -> VmEntry {
    VmEntry { windows: windows_of(policy), ..VmEntry::of(MachineEntry { name, ..machine }, policy) }
}

/// A host with room for every machine, or without a limit.
fn host(number: usize, zone: Option<u16>) -> HostEntry {
    let (cpus, memory) = match number % 2 {
        0 => (None, None),
        _ => cpus_and_memory(Size { cpus: 1_000, memory_mib: 1 << 20 }),
    };
    HostEntry { name: format!("h{number}"), zone, cpus, memory }
}

fn sets(letter: char, hosts: u16) -> impl Strategy<Value = Vec<SetEntry>> {
    let one = (policy(), prop::collection::vec(machine(hosts), 0..4));
    prop::collection::vec(one, 0..3).prop_map(move |all| {
        let numbered = all.into_iter().enumerate();
        let named = |(set, (policy, machines)): (usize, (PolicyEntry, Vec<MachineEntry>))| {
            let machines = machines.into_iter().enumerate();
            let machines =
                machines.map(|(n, machine)| MachineEntry { name: format!("{letter}{set}-{n}"), ..machine });
            SetEntry {
                name: format!("{letter}{set}"),
                policy,
                windows: windows_of(policy),
                machines: machines.collect(),
            }
        };
        numbered.map(named).collect()
    })
}

/// The instances of a scale set, numbered as they stand or with gaps.
fn scale_set(hosts: u16) -> impl Strategy<Value = ScaleSetEntry> {
    let instances = prop::collection::vec((machine(hosts), 1..4u32), 0..5);
    let words = (
        prop::sample::select(vec![OrchestrationWord::Uniform, OrchestrationWord::Flexible]),
        prop_oneof![
            Just(UpgradeWord::Manual),
            Just(UpgradeWord::Automatic),
            (1..=100u8, 0..=604_800u64).prop_map(|(batch_percent, seconds)| {
                let pause = Span(Duration::from_secs(seconds));
                UpgradeWord::Rolling(RollingEntry { batch_percent, pause })
            }),
        ],
    );
    (words, policy(), machine(hosts), instances, any::<bool>()).prop_map(
        |((orchestration, upgrade), policy, model, instances, numbered)| {
            let mut next = 0;
            let instance = |(machine, gap): (MachineEntry, u32)| {
                next += gap;
                InstanceEntry {
                    id: numbered.then_some(next),
                    host: machine.host,
                    update_domain: machine.update_domain,
                    fault_domain: machine.fault_domain,
                    addresses: Vec::new(),
                    tags: machine.tags,
                }
            };
            ScaleSetEntry {
                windows: windows_of(policy),
                name: String::new(),
                orchestration,
                upgrade,
                cpus: model.cpus,
                memory: model.memory,
                spot: model.spot,
                terminate: model.terminate,
                os_image: model.os_image,
                policy,
                count: None,
                placement: None,
                instances: instances.into_iter().map(instance).collect(),
            }
        },
    )
}

prop_compose! {
    fn any_fleet()(zones in prop::collection::vec(prop::option::of(0..3u16), 1..5))(
        vms in prop::collection::vec((machine(u16::try_from(zones.len()).unwrap()), policy()), 0..4),
        availability_sets in sets('a', u16::try_from(zones.len()).unwrap()),
        cloud_services in sets('c', u16::try_from(zones.len()).unwrap()),
        scale_sets in prop::collection::vec(scale_set(u16::try_from(zones.len()).unwrap()), 0..3),
        location in "[a-z]{1,8}",
        enrolment in prop::option::of(Just(EnrolmentWord::Always)),
        zones in Just(zones),
    ) -> Fleet {
        let hosts = zones.into_iter().enumerate();
        let vms = vms.into_iter().enumerate();
        let scale_sets = scale_sets.into_iter().enumerate();
        Fleet {
            enrolment,
            site: Site { location, ..Site::default() }.into(),
            hosts: hosts.map(|(n, zone)| host(n, zone)).collect(),
            vms: vms.map(|(n, (machine, policy))| vm(machine, format!("v{n}"), policy)).collect(),
            availability_sets,
            cloud_services,
            scale_sets: scale_sets.map(|(n, set)| ScaleSetEntry { name: format!("s{n}"), ..set }).collect(),
        }
    }
}

/// The same fleet, every instance with its number.
fn numbered(mut fleet: Fleet) -> Fleet {
    for set in &mut fleet.scale_sets {
        for (place, instance) in (0..).zip(&mut set.instances) {
            instance.id = instance.id.or(Some(place));
        }
    }
    fleet
}

proptest! {
    /// promise: C4
    #[test]
    fn a_fleet_file_reads_as_it_is_written(fleet in any_fleet()) {
        let text = fleet.print().unwrap();
        prop_assert_eq!(Fleet::parse(&text), Ok(fleet.clone()), "{}", text);
        let json = serde_json::to_string(&fleet).unwrap();
        prop_assert_eq!(serde_json::from_str::<Fleet>(&json).unwrap(), fleet);
    }

    /// promise: C4
    #[test]
    fn what_is_wanted_is_there_once_it_is_done(fleet in any_fleet()) {
        let mut town = TestCluster::empty();
        apply(&mut town, &fleet, UnlistedObjects::Keep);
        prop_assert_eq!(town.fleet(), numbered(fleet.clone()));
        for unmentioned in [UnlistedObjects::Keep, UnlistedObjects::Remove] {
            prop_assert_eq!(town.difference(&fleet, unmentioned), Ok(Vec::new()));
        }
    }

    /// promise: C4
    #[test]
    fn a_fleet_that_is_not_wanted_goes(fleet in any_fleet()) {
        // Deletions that are announced would take time.
        let fleet = Fleet { enrolment: None, ..fleet };
        let mut town = TestCluster::empty();
        apply(&mut town, &fleet, UnlistedObjects::Keep);
        let nothing = Fleet { site: fleet.site.clone(), ..Fleet::default() };
        // Machines, then what they were in and on.
        apply(&mut town, &nothing, UnlistedObjects::Remove);
        apply(&mut town, &nothing, UnlistedObjects::Remove);
        prop_assert_eq!(town.fleet(), nothing);
    }
}
