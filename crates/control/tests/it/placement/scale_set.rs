//! Scale set commands on a cluster whose rules must accept the expanded commands.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Command, Report, Size};
use forewarn_types::Span;
use serde_json::{Value, json};

use forewarn_control::*;
use forewarn_testkit::TestCluster;

fn scale_to(capacity: u16) -> ScaleSetCommand {
    ScaleSetCommand::Scale { scale_set: "web".to_owned(), to: Scale { capacity, ..Scale::default() } }
}

fn delete(names: &[&str]) -> ScaleSetCommand {
    let instances = names.iter().map(|name| (*name).to_owned()).collect();
    ScaleSetCommand::DeleteInstances { scale_set: "web".to_owned(), which: DeleteInstances { instances } }
}

fn upgrade(names: Option<&[&str]>) -> ScaleSetCommand {
    let instances = match names {
        Some(names) => InstanceSelection::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        None => InstanceSelection::Every(AllWord::All),
    };
    ScaleSetCommand::UpgradeInstances { scale_set: "web".to_owned(), upgrade: Upgrade { instances } }
}

fn change(change: Value) -> ScaleSetCommand {
    ScaleSetCommand::ChangeScaleSet {
        scale_set: "web".to_owned(),
        change: serde_json::from_value(change).expect("a change"),
    }
}

/// promise: T6
#[test]
fn instances_are_spread_over_hosts_and_domains() {
    let mut cluster = TestCluster::new(7);
    cluster.create(&json!({ "instances": 8 }));
    let expected = [
        ("h1", 0, 0),
        ("h2", 1, 1),
        ("h3", 2, 2),
        ("h4", 3, 0),
        ("h5", 4, 1),
        ("h6", 0, 2),
        ("h7", 1, 0),
        ("h3", 2, 2),
    ];
    assert_eq!(cluster.placements(), expected.map(|(host, ud, fd)| (host.to_owned(), ud, fd)));
}

/// promise: T6
#[test]
fn where_hosts_are_few_not_every_update_domain_is_used() {
    let mut cluster = TestCluster::new(2);
    cluster.create(&json!({ "instances": 5 }));
    let expected = [("h1", 0, 0), ("h2", 1, 1), ("h1", 0, 0), ("h2", 1, 1), ("h1", 0, 0)];
    assert_eq!(cluster.placements(), expected.map(|(host, ud, fd)| (host.to_owned(), ud, fd)));
}

/// promise: T6
#[test]
fn what_is_there_already_is_balanced() {
    let mut cluster = TestCluster::new(6);
    cluster.run_json(&json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
    cluster.create(&json!({ "instances": 2, "hosts": ["h5", "h6"] }));
    assert_eq!(cluster.placements(), [("h5".to_owned(), 0, 0), ("h6".to_owned(), 1, 1)]);
    cluster.run(&scale_to(4));
    assert_eq!(
        cluster.placements()[2..],
        [("h2".to_owned(), 2, 2), ("h3".to_owned(), 3, 0)],
        "h1 has a machine"
    );
}

/// promise: T6
#[test]
fn hosts_that_the_rules_would_refuse_are_not_used() {
    let mut cluster = TestCluster::new(4);
    cluster.run_json(&json!({ "command": "degrade_host", "host": "h1" }));
    cluster.run_json(&json!({ "command": "fail_host", "host": "h2" }));
    cluster.create(&json!({ "instances": 3 }));
    let hosts: BTreeSet<_> = cluster.placements().into_iter().map(|(host, ..)| host).collect();
    assert_eq!(hosts, ["h3", "h4"].map(str::to_owned).into());
    for host in ["h3", "h4"] {
        cluster.run_json(&json!({ "command": "fail_host", "host": host }));
    }
    let refused = scale_to(5).commands(&cluster.rules).unwrap_err();
    assert_eq!(
        refused,
        ScaleSetError::NoHost { set: "web".to_owned(), wanted: 2, missing: 2, size: Size::NONE }
    );
    assert!(
        refused
            .to_string()
            .starts_with("no host can take more instances of web: 2 of 2 do not fit\n  hint: ")
    );
    let shrink = Scale { hosts: Some(vec!["h9".to_owned()]), ..Scale::default() };
    let refused = ScaleSetCommand::Scale { scale_set: "web".to_owned(), to: shrink }.commands(&cluster.rules);
    assert!(matches!(refused, Err(ScaleSetError::Unknown(_))), "also where no host is needed: {refused:?}");
    let unknown = NewScaleSet { hosts: Some(vec!["h9".to_owned()]), ..plain(1) };
    let refused = ScaleSetCommand::CreateScaleSet(unknown).commands(&cluster.rules).unwrap_err();
    assert_eq!(refused.to_string(), "no such host: h9\n  hint: did you mean h1?");
}

fn plain(instances: u16) -> NewScaleSet {
    serde_json::from_value(json!({ "name": "new", "instances": instances })).expect("a scale set")
}

/// promise: T6
#[test]
fn a_host_takes_as_many_as_the_rules_let_it() {
    let mut cluster = TestCluster::new(1);
    cluster.create(&json!({ "instances": 500 }));
    let refused = scale_to(600).commands(&cluster.rules).unwrap_err();
    assert_eq!(
        refused,
        ScaleSetError::NoHost { set: "web".to_owned(), wanted: 100, missing: 100, size: Size::NONE }
    );
    let refused = scale_to(1_001).commands(&cluster.rules).unwrap_err();
    assert_eq!(refused.to_string(), "a scale set has at most 1000 instances, not 1001");
}

/// promise: T6
#[test]
fn placement_groups_are_filled_as_the_rules_fill_them() {
    for (orchestration, groups) in [("uniform", 10), ("flexible", 1)] {
        let mut cluster = TestCluster::new(4);
        cluster.create(&json!({ "orchestration": orchestration, "instances": 130 }));
        // Gaps in the first placement group, which the next instances fill.
        cluster.run(&delete(&["0", "5", "99", "120"]));
        let ended: Vec<_> = cluster.rules.unfinished().collect();
        for action in ended {
            let (maintenance, target) = (action.maintenance, action.target);
            cluster.submit(&Command::Complete { maintenance, target, report: Report::Done });
        }
        assert_eq!(cluster.view().instances.len(), 126);
        cluster.run(&scale_to(1_000));
        let view = cluster.view();
        assert_eq!((view.summary.capacity, view.summary.tenants.len()), (1_000, groups));
    }
}

/// promise: T6
#[test]
fn whatever_there_is_the_rules_accept_what_a_wish_comes_to() {
    // Every number of hosts with every capacity, up and down, one after the other on the same cluster.
    for hosts in 1..=9 {
        let mut cluster = TestCluster::new(hosts);
        cluster.create(&json!({}));
        for capacity in [3, 1, 7, 7, 2, 12, 0, 5] {
            cluster.run(&scale_to(capacity));
            assert_eq!(cluster.view().summary.capacity, usize::from(capacity), "{hosts}");
            let mut domains: BTreeMap<u16, usize> = BTreeMap::new();
            let members = cluster.view().instances.into_iter().map(|one| one.member);
            members
                .filter(|one| !one.leaving)
                .for_each(|one| *domains.entry(one.update_domain).or_default() += 1);
            assert!(domains.len() <= hosts as usize, "{hosts} {capacity}");
        }
    }
}

/// promise: T6
#[test]
fn the_newest_go_first_and_those_that_are_going_are_gone() {
    let mut cluster = TestCluster::new(5);
    cluster.create(&json!({ "instances": 5, "terminate": "10m" }));
    cluster.enrol_all();
    assert_eq!(cluster.run(&scale_to(5)), 0, "it is so already");
    assert_eq!(cluster.run(&scale_to(3)), 2);
    let leaving = |cluster: &TestCluster| -> Vec<u32> {
        cluster.view().instances.iter().filter(|one| one.member.leaving).map(|one| one.id).collect()
    };
    assert_eq!(leaving(&cluster), [3, 4]);
    assert_eq!(cluster.run(&scale_to(3)), 0, "they are going");
    assert_eq!(cluster.run(&delete(&["4"])), 0, "it is going");
    assert_eq!(cluster.run(&scale_to(4)), 1, "one is added, and none comes back");
    let view = cluster.view();
    assert_eq!((view.summary.capacity, view.summary.leaving), (4, 2));
    assert_eq!(view.instances.last().unwrap().id, 5);
    assert_eq!(view.instances[4].member.events.len(), 1);
    assert_eq!(cluster.run(&delete(&["0", "web_0", "web/web_1"])), 2);
    assert_eq!(leaving(&cluster), [0, 1, 3, 4]);
}

/// promise: T5
#[test]
fn a_model_reaches_instances_that_are_upgraded() {
    let mut cluster = TestCluster::new(3);
    cluster.create(&json!({ "instances": 3, "terminate": "5m" }));
    assert_eq!(cluster.run(&change(json!({ "terminate": "5m" }))), 0, "it is so already");
    assert_eq!(cluster.run(&change(json!({ "terminate": "10m", "os_image": true }))), 1);
    let notices = |cluster: &TestCluster| -> Vec<(u32, bool, Option<u64>)> {
        let seconds = |span: Option<Span>| span.map(|Span(span)| span.as_secs());
        let view = |one: InstanceView| (one.model, one.latest, seconds(one.member.terminate));
        cluster.view().instances.into_iter().map(view).collect()
    };
    assert_eq!(notices(&cluster), [(1, false, Some(300)); 3]);
    assert_eq!(cluster.view().summary.outdated, 3);
    assert_eq!(cluster.run(&upgrade(Some(&["web_1"]))), 1);
    assert_eq!(cluster.run(&upgrade(Some(&["1"]))), 0);
    assert_eq!(notices(&cluster)[1], (2, true, Some(600)));
    assert_eq!(cluster.run(&upgrade(Some(&[]))), 0);
    assert_eq!(cluster.run(&upgrade(None)), 2);
    assert_eq!(notices(&cluster), [(2, true, Some(600)); 3]);
    assert_eq!(cluster.run(&change(json!({ "terminate": null }))), 1);
    let summary = cluster.view().summary;
    assert_eq!((summary.terminate, summary.os_image), (None, true), "what is not said stays");
    assert_eq!(cluster.run(&change(json!({ "policy": { "restart": "automatic" } }))), 1);
    let policy = cluster.view().summary.policy;
    assert_eq!(policy, PolicyEntry { restart: ApproveWord::Automatic, ..summary.policy });
    assert_eq!(cluster.run(&change(json!({}))), 0);
}

#[test]
fn a_change_of_the_model_uses_the_upgrade_policy_of_the_same_request() {
    let mut cluster = TestCluster::new(3);
    cluster.create(&json!({ "instances": 3 }));
    let models =
        |cluster: &TestCluster| cluster.view().instances.iter().map(|one| one.model).collect::<Vec<_>>();
    let both =
        json!({ "terminate": "10m", "upgrade": { "rolling": { "batch_percent": 50, "pause": "1h" } } });
    assert_eq!(cluster.run(&change(both.clone())), 2);
    assert_eq!(models(&cluster), [2, 2, 1]);
    let due = cluster.now.wall.plus(std::time::Duration::from_hours(1));
    assert_eq!(cluster.view().summary.next_batch.map(|at| at.0), Some(due));
    assert_eq!(cluster.run(&change(both)), 0, "it is so already");
    assert_eq!(cluster.run(&change(json!({ "terminate": null, "upgrade": "manual" }))), 2);
    assert_eq!(
        (models(&cluster), cluster.view().summary.next_batch),
        (vec![2, 2, 1], None),
        "it is stopped first"
    );
    assert_eq!(cluster.run(&change(json!({ "upgrade": "automatic" }))), 1);
    assert_eq!(models(&cluster), [3, 3, 3]);
    let json_of = serde_json::to_value(change(json!({ "upgrade": "rolling" }))).unwrap();
    assert_eq!(json_of["upgrade"], json!({ "rolling": { "batch_percent": 20, "pause": "0s" } }));
}

#[test]
fn an_instance_is_called_by_its_number_or_its_name() {
    let mut cluster = TestCluster::new(1);
    cluster.create(&json!({ "instances": 102 }));
    for name in ["101", "web_101", "web/web_101", "web:2/web_101"] {
        let commands = delete(&[name]).commands(&cluster.rules).unwrap();
        assert_eq!(commands, [NamedCommand::Delete { machine: "web/web_101".to_owned() }], "{name}");
    }
    for name in ["102", "+1", "01", "web_01", "db/web_1", "web/", "", "web_", "-1", "4294967296"] {
        let refused = delete(&[name]).commands(&cluster.rules).unwrap_err();
        assert!(matches!(refused, ScaleSetError::Unknown(LookupError::Nothing { .. })), "{name}");
    }
    let refused = delete(&["web-7"]).commands(&cluster.rules).unwrap_err();
    assert_eq!(refused.to_string(), "no such instance of this scale set: web-7\n  hint: did you mean web_7?");
    let refused =
        ScaleSetCommand::Scale { scale_set: "wbe".to_owned(), to: Scale { capacity: 1, ..Scale::default() } };
    let refused = refused.commands(&cluster.rules).unwrap_err();
    assert_eq!(refused.to_string(), "no such scale set: wbe\n  hint: did you mean web?");
}

#[test]
fn a_command_serializes_as_it_was_requested() {
    let json_of = |command: &ScaleSetCommand| serde_json::to_value(command).unwrap();
    assert_eq!(json_of(&scale_to(3)), json!({ "command": "scale", "scale_set": "web", "capacity": 3 }));
    let no_notice = change(json!({ "terminate": null }));
    assert_eq!(
        json_of(&no_notice),
        json!({ "command": "change_scale_set", "scale_set": "web", "terminate": null })
    );
    assert_eq!(json_of(&delete(&["3"]))["instances"], json!(["3"]));
    assert_eq!(json_of(&ScaleSetCommand::CreateScaleSet(plain(2)))["command"], "create_scale_set");
    assert_eq!(ScaleSetCommand::CreateScaleSet(plain(2)).scale_set(), "new");
}

#[test]
fn unknown_members_are_rejected() {
    assert!(serde_json::from_value::<ScaleSetChange>(json!({ "capacity": 3 })).is_err());
    assert!(serde_json::from_value::<ScaleSetChange>(json!({ "policy": [] })).is_err());
    assert!(serde_json::from_value::<Scale>(json!({ "capacity": -1 })).is_err());
    assert!(serde_json::from_value::<Upgrade>(json!({ "instances": 3 })).is_err());
}
