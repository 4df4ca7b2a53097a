//! Placement of single machines.

use forewarn_lifecycle::limits::UPDATE_DOMAINS_MAX;
use forewarn_lifecycle::{HostId, TenantId, Zone};
use serde_json::{Value, json};

use forewarn_control::*;
use forewarn_testkit::TestCluster;

/// Five update domains and two fault domains of a tenant, in any zone.
fn anywhere(tenant: Option<TenantId>) -> PlacementConstraints {
    PlacementConstraints { tenant, zone: None, update_domains: 5, fault_domains: 2 }
}

/// A cluster with an empty availability set.
fn with_set(hosts: u32) -> (TestCluster, TenantId) {
    let mut cluster = TestCluster::new(hosts);
    cluster.run_json(&json!({ "command": "admit_availability_set", "name": "db" }));
    let tenant = cluster.rules.tenant_named("db").unwrap();
    (cluster, tenant)
}

/// Admits a machine of the availability set at its place; the rules must accept it.
fn join(cluster: &mut TestCluster, name: &str, wanted: &PlacementConstraints) -> (String, u16, u16) {
    let place = place_machine(&cluster.rules, wanted).expect("a place");
    let host = cluster.rules.host(place.host).unwrap().name.to_string();
    let machine = json!({
        "name": name, "host": host, "update_domain": place.update_domain, "fault_domain": place.fault_domain,
    });
    cluster.run_json(&json!({ "command": "admit_machine", "tenant": "db", "machine": machine }));
    (host, place.update_domain, place.fault_domain)
}

fn fail(cluster: &mut TestCluster, host: &str) {
    cluster.run_json(&json!({ "command": "fail_host", "host": host }));
}

/// promise: T6
#[test]
fn a_standalone_machine_goes_where_the_fewest_are() {
    let mut cluster = TestCluster::new(3);
    let solo = |name: &str, host: &str| json!({ "command": "admit_vm", "name": name, "host": host });
    let next = |cluster: &TestCluster| place_machine(&cluster.rules, &anywhere(None));
    let place = |host| Some(MachinePlacement { host: HostId(host), update_domain: 0, fault_domain: 0 });
    assert_eq!(next(&cluster), place(0));
    cluster.run_json(&solo("a", "h1"));
    assert_eq!(next(&cluster), place(1));
    cluster.run_json(&solo("b", "h2"));
    fail(&mut cluster, "h3");
    assert_eq!(next(&cluster), place(0), "it joined first, and h3 has failed");
    cluster.run_json(&json!({ "command": "update_hosts", "hosts": ["h1"] }));
    assert_eq!(next(&cluster), place(1), "work is announced on h1");
    fail(&mut cluster, "h2");
    assert_eq!(next(&cluster), None);
}

/// promise: T6
#[test]
fn machines_of_a_set_are_spread_over_hosts_and_domains() {
    let (mut cluster, set) = with_set(7);
    let wanted = anywhere(Some(set));
    let expected = [
        ("h1", 0, 0),
        ("h2", 1, 1),
        ("h3", 2, 0),
        ("h4", 3, 1),
        ("h5", 4, 0),
        ("h6", 0, 1),
        ("h7", 1, 0),
        ("h3", 2, 0),
    ];
    for (index, (host, update_domain, fault_domain)) in expected.into_iter().enumerate() {
        let found = join(&mut cluster, &format!("db{index}"), &wanted);
        assert_eq!(found, (host.to_owned(), update_domain, fault_domain), "{index}");
    }
}

#[test]
fn placements_on_few_hosts_are_accepted_by_the_rules() {
    for hosts in 1..=4 {
        let (mut cluster, set) = with_set(hosts);
        for index in 0..9 {
            // The maximum number of domains, and zero, which counts as one.
            let domains = [0, 1, 2, 5, u16::MAX][index % 5];
            let wanted = PlacementConstraints {
                update_domains: domains,
                fault_domains: domains,
                ..anywhere(Some(set))
            };
            let place = place_machine(&cluster.rules, &wanted);
            // A host has one update domain of the set; if that exceeds the wanted ones, the host is not used.
            if place.is_some() {
                let (_, update_domain, _) = join(&mut cluster, &format!("db{index}"), &wanted);
                assert!(update_domain < domains.clamp(1, UPDATE_DOMAINS_MAX), "{hosts} {index}");
            }
        }
        let members = cluster.rules.tenant(set).unwrap().machines().len();
        assert!(members >= 5, "{hosts}: {members}");
    }
}

/// promise: T6
#[test]
fn a_zone_is_kept_to() {
    let mut cluster = TestCluster::new(2);
    let host =
        |name: &str, zone: u16| -> Value { json!({ "command": "admit_host", "name": name, "zone": zone }) };
    for (name, zone) in [("a1", 1), ("b2", 2), ("c2", 2)] {
        cluster.run_json(&host(name, zone));
    }
    let place = |cluster: &TestCluster, zone| {
        let wanted = PlacementConstraints { zone: Some(Zone(zone)), ..anywhere(None) };
        let place = place_machine(&cluster.rules, &wanted);
        place.map(|place| cluster.rules.host(place.host).unwrap().name.to_string())
    };
    assert_eq!(place(&cluster, 1).as_deref(), Some("a1"));
    assert_eq!(place(&cluster, 2).as_deref(), Some("b2"));
    fail(&mut cluster, "b2");
    assert_eq!(place(&cluster, 2).as_deref(), Some("c2"));
    assert_eq!(place(&cluster, 3), None);
    fail(&mut cluster, "a1");
    assert_eq!(place(&cluster, 1), None);
}

#[test]
fn a_machine_that_is_being_deleted_holds_its_host_and_does_not_count() {
    let (mut cluster, set) = with_set(3);
    let wanted = PlacementConstraints { update_domains: 2, ..anywhere(Some(set)) };
    for name in ["db0", "db1", "db2"] {
        join(&mut cluster, name, &wanted);
    }
    cluster.enrol_all();
    for name in ["db0", "db2"] {
        cluster.run_json(
            &json!({ "command": "change_profile", "machine": format!("db/{name}"), "terminate": "5m" }),
        );
        cluster.run_json(&json!({ "command": "delete", "machine": format!("db/{name}") }));
    }
    let place = place_machine(&cluster.rules, &wanted).unwrap();
    assert_eq!(
        place,
        MachinePlacement { host: HostId(0), update_domain: 0, fault_domain: 0 },
        "as db0, which leaves"
    );
}

/// Two hosts in zone 1, one in zone 2 and one without a zone.
fn zoned() -> TestCluster {
    let mut cluster = TestCluster::new(0);
    for (name, zone) in [("a1", Some(1)), ("b1", Some(1)), ("c2", Some(2)), ("d0", None)] {
        cluster.run_json(&json!({ "command": "admit_host", "name": name, "zone": zone }));
    }
    cluster
}

fn hosts(cluster: &TestCluster) -> Vec<String> {
    cluster.placements().into_iter().map(|(host, ..)| host).collect()
}

/// promise: T6
#[test]
fn instances_are_balanced_over_the_zones_that_are_named() {
    let mut cluster = zoned();
    cluster.create(&json!({ "instances": 6, "zones": [2, 1] }));
    assert_eq!(hosts(&cluster), ["a1", "c2", "b1", "c2", "a1", "c2"]);
    cluster.run(&scale(json!({ "capacity": 8, "zones": [2] })));
    assert_eq!(hosts(&cluster)[6..], ["c2", "c2"], "from now on only there");
    cluster.run(&scale(json!({ "capacity": 10, "zones": [1, 2, 7] })));
    assert_eq!(hosts(&cluster)[8..], ["b1", "a1"], "zone 1 has fewer");
    cluster.run(&scale(json!({ "capacity": 11 })));
    assert_eq!(hosts(&cluster)[10..], ["d0"], "anywhere");
    let nowhere = scale(json!({ "capacity": 12, "zones": [2], "hosts": ["a1"] })).commands(&cluster.rules);
    assert!(nowhere.unwrap_err().to_string().starts_with("no host can take more instances of web"));
}

/// promise: T6
#[test]
fn a_zone_that_is_full_or_unwell_does_not_keep_others_from_growing() {
    let mut cluster = zoned();
    cluster.create(&json!({ "instances": 2, "zones": [1, 2] }));
    fail(&mut cluster, "c2");
    cluster.run(&scale(json!({ "capacity": 5, "zones": [1, 2] })));
    assert_eq!(hosts(&cluster), ["a1", "c2", "b1", "a1", "b1"]);
}

/// promise: T6
#[test]
fn fault_domains_are_as_many_as_are_wanted() {
    for (wanted, expected) in [(1, [0, 0, 0, 0]), (2, [0, 1, 0, 1]), (5, [0, 1, 2, 3])] {
        let mut cluster = TestCluster::new(4);
        cluster.create(&json!({ "instances": 4, "fault_domains": wanted }));
        let found: Vec<_> =
            cluster.placements().into_iter().map(|(_, _, fault_domain)| fault_domain).collect();
        assert_eq!(found, expected, "{wanted}");
    }
    let mut cluster = TestCluster::new(6);
    cluster.create(&json!({ "instances": 4, "fault_domains": 5 }));
    cluster.run(&scale(json!({ "capacity": 6, "fault_domains": 1 })));
    assert_eq!(cluster.placements()[4..], [("h5".to_owned(), 4, 0), ("h6".to_owned(), 0, 0)]);
}

fn scale(to: Value) -> ScaleSetCommand {
    ScaleSetCommand::Scale { scale_set: "web".to_owned(), to: serde_json::from_value(to).expect("how many") }
}
