//! Cost of placement: it depends on the instances, and not on the size of the cluster.

use forewarn_control::*;
use forewarn_lifecycle::{Cluster, reads};
use forewarn_observer::random::{build, layouts, random_operations};
use forewarn_testkit::TestCluster;
use proptest::prelude::*;
use serde_json::json;

/// A cluster with that many hosts in three zones, and with two machines on every other host.
fn cluster(hosts: u32) -> Cluster {
    let mut cluster = TestCluster::new(0);
    for host in 0..hosts {
        cluster.run_json(&json!({ "command": "admit_host", "name": format!("h{host}"), "zone": host % 3 }));
    }
    for (number, host) in (0..hosts).step_by(2).flat_map(|host| [host, host]).enumerate() {
        let (name, host) = (format!("vm{number}"), format!("h{host}"));
        cluster.run_json(&json!({ "command": "admit_vm", "name": name, "host": host }));
    }
    cluster.rules
}

fn set_of(instances: u16, zones: &[u16]) -> ScaleSetCommand {
    let new = json!({ "name": "web", "instances": instances, "orchestration": "flexible" });
    let new: NewScaleSet = serde_json::from_value(new).expect("a scale set");
    ScaleSetCommand::CreateScaleSet(NewScaleSet { zones: zones.to_vec(), ..new })
}

/// Rows that the work reads.
fn cost<T>(work: impl FnOnce() -> T) -> u64 {
    let before = reads();
    work();
    reads() - before
}

#[test]
fn a_scale_set_of_many_instances_costs_the_same_in_a_large_cluster() {
    let (small, large) = (cluster(1_000), cluster(4_000));
    for zones in [&[][..], &[0, 2]] {
        let set = set_of(500, zones);
        let [one, other] = [&small, &large].map(|cluster| cost(|| set.commands(cluster).expect("room")));
        assert!(other <= one + one / 10, "{one} and {other} rows, zones {zones:?}");
    }
}

#[test]
fn a_machine_is_placed_without_a_scan_of_the_hosts() {
    let cluster = cluster(1_000);
    let wanted = PlacementConstraints { tenant: None, zone: None, update_domains: 1, fault_domains: 1 };
    let reads = cost(|| place_machine(&cluster, &wanted).expect("a host"));
    assert!(reads <= 20, "{reads}");
}

proptest! {
    /// Named hosts are all read, so this compares the ranked hosts with a scan of all of them.
    #[test]
    fn ranked_hosts_give_the_same_placement_as_a_scan(
        layout in layouts(),
        history in random_operations(),
        instances in 0u16..30,
        zones in prop::collection::btree_set(0u16..4, 0..3),
    ) {
        let mut world = build(&layout);
        history.iter().for_each(|operation| world.happen(operation));
        let cluster = &world.cluster;
        let all: Vec<_> = cluster.hosts().map(|(_, host)| host.name.to_string()).collect();
        let zones: Vec<_> = zones.into_iter().collect();
        let mut commands = vec![set_of(instances, &zones)];
        commands.extend(cluster.scale_sets().map(|(_, set)| {
            let to = Scale { capacity: instances, zones: zones.clone(), ..Scale::default() };
            ScaleSetCommand::Scale { scale_set: set.name.to_string(), to }
        }));
        for command in commands.iter().filter(|_| !all.is_empty()) {
            let mut named = command.clone();
            match &mut named {
                ScaleSetCommand::CreateScaleSet(NewScaleSet { hosts, .. })
                | ScaleSetCommand::Scale { to: Scale { hosts, .. }, .. } => *hosts = Some(all.clone()),
                ScaleSetCommand::ChangeScaleSet { .. }
                | ScaleSetCommand::UpgradeInstances { .. }
                | ScaleSetCommand::DeleteInstances { .. } => unreachable!("only these two"),
            }
            prop_assert_eq!(command.commands(cluster), named.commands(cluster));
        }
    }
}
