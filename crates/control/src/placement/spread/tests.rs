//! Where single machines go.

use serde_json::{Value, json};

use super::*;
use crate::placement::scale_set::ScaleSetCommand;
use crate::town::Town;

/// Five update domains and two fault domains of a tenant, in any zone.
fn anywhere(tenant: Option<TenantId>) -> Whereabouts {
    Whereabouts { tenant, zone: None, update_domains: 5, fault_domains: 2 }
}

/// A town with an availability set that has no machines.
fn with_set(hosts: u32) -> (Town, TenantId) {
    let mut town = Town::new(hosts);
    town.order(&json!({ "command": "admit_availability_set", "name": "db" }));
    let tenant = town.cluster.tenant_named("db").unwrap();
    (town, tenant)
}

/// Puts a machine of the availability set where it goes; the rules have to accept that.
fn join(town: &mut Town, name: &str, wanted: &Whereabouts) -> (String, u16, u16) {
    let place = place_machine(&town.cluster, wanted).expect("a place");
    let host = town.cluster.host(place.host).unwrap().name.to_string();
    let machine = json!({
        "name": name, "host": host, "update_domain": place.update_domain, "fault_domain": place.fault_domain,
    });
    town.order(&json!({ "command": "admit_machine", "tenant": "db", "machine": machine }));
    (host, place.update_domain, place.fault_domain)
}

fn fail(town: &mut Town, host: &str) {
    town.order(&json!({ "command": "fail_host", "host": host }));
}

#[test]
fn a_standalone_machine_goes_where_the_fewest_are() {
    let mut town = Town::new(3);
    let solo = |name: &str, host: &str| json!({ "command": "admit_vm", "name": name, "host": host });
    let next = |town: &Town| place_machine(&town.cluster, &anywhere(None));
    let place = |host| Some(Place { host: HostId(host), update_domain: 0, fault_domain: 0 });
    assert_eq!(next(&town), place(0));
    town.order(&solo("a", "h1"));
    assert_eq!(next(&town), place(1));
    town.order(&solo("b", "h2"));
    fail(&mut town, "h3");
    assert_eq!(next(&town), place(0), "it joined first, and h3 has failed");
    town.order(&json!({ "command": "update_hosts", "hosts": ["h1"] }));
    assert_eq!(next(&town), place(1), "work is announced on h1");
    fail(&mut town, "h2");
    assert_eq!(next(&town), None);
}

#[test]
fn machines_of_a_set_are_spread_over_hosts_and_domains() {
    let (mut town, set) = with_set(7);
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
        let found = join(&mut town, &format!("db{index}"), &wanted);
        assert_eq!(found, (host.to_owned(), update_domain, fault_domain), "{index}");
    }
}

#[test]
fn where_hosts_are_few_the_rules_still_accept_the_place() {
    for hosts in 1..=4 {
        let (mut town, set) = with_set(hosts);
        for index in 0..9 {
            // As many domains as somebody may say, and none at all, which is one.
            let domains = [0, 1, 2, 5, u16::MAX][index % 5];
            let wanted =
                Whereabouts { update_domains: domains, fault_domains: domains, ..anywhere(Some(set)) };
            let place = place_machine(&town.cluster, &wanted);
            // A host has one update domain of the set; where that is beyond those that are wanted, it is not used.
            if place.is_some() {
                let (_, update_domain, _) = join(&mut town, &format!("db{index}"), &wanted);
                assert!(update_domain < domains.clamp(1, UPDATE_DOMAINS_MAX), "{hosts} {index}");
            }
        }
        let members = town.cluster.tenant(set).unwrap().machines().len();
        assert!(members >= 5, "{hosts}: {members}");
    }
}

#[test]
fn a_zone_is_kept_to() {
    let mut town = Town::new(2);
    let host =
        |name: &str, zone: u16| -> Value { json!({ "command": "admit_host", "name": name, "zone": zone }) };
    for (name, zone) in [("a1", 1), ("b2", 2), ("c2", 2)] {
        town.order(&host(name, zone));
    }
    let place = |town: &Town, zone| {
        let wanted = Whereabouts { zone: Some(Zone(zone)), ..anywhere(None) };
        let place = place_machine(&town.cluster, &wanted);
        place.map(|place| town.cluster.host(place.host).unwrap().name.to_string())
    };
    assert_eq!(place(&town, 1).as_deref(), Some("a1"));
    assert_eq!(place(&town, 2).as_deref(), Some("b2"));
    fail(&mut town, "b2");
    assert_eq!(place(&town, 2).as_deref(), Some("c2"));
    assert_eq!(place(&town, 3), None);
    fail(&mut town, "a1");
    assert_eq!(place(&town, 1), None);
}

#[test]
fn whoever_leaves_holds_its_place_and_does_not_count() {
    let (mut town, set) = with_set(3);
    let wanted = Whereabouts { update_domains: 2, ..anywhere(Some(set)) };
    for name in ["db0", "db1", "db2"] {
        join(&mut town, name, &wanted);
    }
    town.enrol();
    for name in ["db0", "db2"] {
        town.order(
            &json!({ "command": "change_profile", "machine": format!("db/{name}"), "terminate": "5m" }),
        );
        town.order(&json!({ "command": "delete", "machine": format!("db/{name}") }));
    }
    let place = place_machine(&town.cluster, &wanted).unwrap();
    assert_eq!(place, Place { host: HostId(0), update_domain: 0, fault_domain: 0 }, "as db0, which leaves");
}

/// Two hosts in zone 1, one in zone 2 and one in none.
fn zoned() -> Town {
    let mut town = Town::new(0);
    for (name, zone) in [("a1", Some(1)), ("b1", Some(1)), ("c2", Some(2)), ("d0", None)] {
        town.order(&json!({ "command": "admit_host", "name": name, "zone": zone }));
    }
    town
}

fn hosts(town: &Town) -> Vec<String> {
    town.places().into_iter().map(|(host, ..)| host).collect()
}

#[test]
fn instances_are_balanced_over_the_zones_that_are_named() {
    let mut town = zoned();
    town.create(&json!({ "instances": 6, "zones": [2, 1] }));
    assert_eq!(hosts(&town), ["a1", "c2", "b1", "c2", "a1", "c2"]);
    town.wish(&wish(json!({ "capacity": 8, "zones": [2] })));
    assert_eq!(hosts(&town)[6..], ["c2", "c2"], "from now on only there");
    town.wish(&wish(json!({ "capacity": 10, "zones": [1, 2, 7] })));
    assert_eq!(hosts(&town)[8..], ["b1", "a1"], "zone 1 has fewer");
    town.wish(&wish(json!({ "capacity": 11 })));
    assert_eq!(hosts(&town)[10..], ["d0"], "anywhere");
    let nowhere = wish(json!({ "capacity": 12, "zones": [2], "hosts": ["a1"] })).commands(&town.cluster);
    assert!(nowhere.unwrap_err().to_string().starts_with("no host can take more instances of web"));
}

#[test]
fn a_zone_that_is_full_or_unwell_does_not_keep_others_from_growing() {
    let mut town = zoned();
    town.create(&json!({ "instances": 2, "zones": [1, 2] }));
    fail(&mut town, "c2");
    town.wish(&wish(json!({ "capacity": 5, "zones": [1, 2] })));
    assert_eq!(hosts(&town), ["a1", "c2", "b1", "a1", "b1"]);
}

#[test]
fn fault_domains_are_as_many_as_are_wanted() {
    for (wanted, expected) in [(1, [0, 0, 0, 0]), (2, [0, 1, 0, 1]), (5, [0, 1, 2, 3])] {
        let mut town = Town::new(4);
        town.create(&json!({ "instances": 4, "fault_domains": wanted }));
        let found: Vec<_> = town.places().into_iter().map(|(_, _, fault_domain)| fault_domain).collect();
        assert_eq!(found, expected, "{wanted}");
    }
    let mut town = Town::new(6);
    town.create(&json!({ "instances": 4, "fault_domains": 5 }));
    town.wish(&wish(json!({ "capacity": 6, "fault_domains": 1 })));
    assert_eq!(town.places()[4..], [("h5".to_owned(), 4, 0), ("h6".to_owned(), 0, 0)]);
}

fn wish(to: Value) -> ScaleSetCommand {
    ScaleSetCommand::Scale { scale_set: "web".to_owned(), to: serde_json::from_value(to).expect("how many") }
}
