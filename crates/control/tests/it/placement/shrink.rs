//! Choice of the instances to remove.

use std::collections::BTreeSet;

use serde_json::json;

use forewarn_control::*;
use forewarn_testkit::TestCluster;

/// An instance on each of these hosts, in these fault domains.
fn cluster(places: &[(&str, u16)]) -> TestCluster {
    let mut cluster = TestCluster::new(0);
    for (name, zone) in [("a1", 1), ("b1", 1), ("a2", 2), ("b2", 2)] {
        cluster.run_json(&json!({ "command": "admit_host", "name": name, "zone": zone }));
    }
    cluster.run_json(&json!({ "command": "admit_scale_set", "name": "web", "terminate": "5m" }));
    for (host, fault_domain) in places {
        let instance = json!({ "host": host, "fault_domain": fault_domain });
        cluster.run_json(&json!({ "command": "admit_instance", "scale_set": "web", "instance": instance }));
    }
    cluster.enrol_all();
    cluster
}

fn pick(
    cluster: &TestCluster,
    count: usize,
    rule: ScaleInRule,
    protected: &[u32],
) -> Result<Vec<u32>, ScaleSetError> {
    let id = cluster.rules.scale_set_named("web").unwrap();
    let how = ScaleIn { rule, protected: protected.iter().copied().collect() };
    pick_for_scale_in(&cluster.rules, cluster.rules.scale_set(id).unwrap(), count, &how)
}

/// promise: T6
#[test]
fn the_fullest_zone_and_fault_domain_give_their_newest() {
    // Zone 1 has four, of them three in fault domain 0; zone 2 has two.
    let cluster = cluster(&[("a1", 0), ("a1", 0), ("a2", 0), ("b1", 0), ("b1", 1), ("a2", 1)]);
    let order = pick(&cluster, 6, ScaleInRule::Default, &[]).unwrap();
    assert_eq!(order, [3, 1, 5, 4, 2, 0], "zone 1 until there are two in both; then the newest of equals");
}

/// promise: T6
#[test]
fn the_newest_and_the_oldest_go_by_their_numbers() {
    let mut cluster = cluster(&[("a1", 0), ("a1", 0), ("a2", 0), ("b1", 0)]);
    cluster.run_json(&json!({ "command": "delete", "machine": "web/web_3" }));
    cluster.run_json(&json!({ "command": "delete", "machine": "web/web_0" }));
    assert_eq!(
        pick(&cluster, 2, ScaleInRule::Newest, &[]).unwrap(),
        [2, 1],
        "instances that are being deleted count as gone"
    );
    assert_eq!(pick(&cluster, 2, ScaleInRule::Oldest, &[]).unwrap(), [1, 2]);
    assert!(pick(&cluster, 0, ScaleInRule::Default, &[1, 2]).unwrap().is_empty());
}

/// promise: T6
#[test]
fn who_is_protected_stays_and_counts() {
    let cluster = cluster(&[("a1", 0), ("a1", 0), ("a1", 1), ("a2", 0)]);
    for (rule, expected) in
        [(ScaleInRule::Default, [0, 3]), (ScaleInRule::Newest, [3, 0]), (ScaleInRule::Oldest, [0, 3])]
    {
        assert_eq!(pick(&cluster, 2, rule, &[1, 2]).unwrap(), expected, "{rule:?}");
        let refused = pick(&cluster, 3, rule, &[1, 2]).unwrap_err();
        assert_eq!(refused, ScaleSetError::Protected { set: "web".to_owned(), wanted: 3, missing: 1 });
        let words = "too many instances of web are protected from scale-in: 1 of 3 cannot be removed";
        assert_eq!(refused.to_string(), words);
    }
}

#[test]
fn the_remaining_instances_are_balanced() {
    // The rest is as balanced as possible, wherever the instances are.
    for count in 0..=8 {
        let places: Vec<_> = (0..8u16).map(|n| (["a1", "b1", "a2"][usize::from(n % 3)], n % 2)).collect();
        let cluster = cluster(&places);
        let gone = pick(&cluster, count, ScaleInRule::Default, &[]).unwrap();
        let unique: BTreeSet<_> = gone.iter().collect();
        assert_eq!(unique.len(), count);
        let left = (0..8u32).filter(|number| !gone.contains(number));
        let zone = |number: u32| if number % 3 == 2 { 2 } else { 1 };
        let (one, two): (Vec<_>, Vec<_>) = left.partition(|number| zone(*number) == 1);
        assert!(count < 4 || one.len().abs_diff(two.len()) <= 1, "{count}: {one:?} {two:?}");
    }
}
