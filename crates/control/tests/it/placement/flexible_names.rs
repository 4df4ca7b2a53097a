//! Names of instances of flexible scale sets.

use forewarn_control::*;
use forewarn_lifecycle::{Change, MachineId};
use forewarn_testkit::TestCluster;
use serde_json::json;

fn names(cluster: &TestCluster) -> Vec<String> {
    cluster.rules.machines().map(|(_, machine)| machine.name.to_string()).collect()
}

fn commands(cluster: &TestCluster, command: &ScaleSetCommand) -> Vec<String> {
    let name = |command: &NamedCommand| {
        let NamedCommand::Delete { machine } = command else { panic!("{command:?}") };
        machine.clone()
    };
    command.commands(&cluster.rules).unwrap().iter().map(name).collect()
}

fn delete(names: &[&str]) -> ScaleSetCommand {
    let instances = names.iter().map(|name| (*name).to_owned()).collect();
    ScaleSetCommand::DeleteInstances { scale_set: "web".to_owned(), which: DeleteInstances { instances } }
}

fn scale_to(capacity: u16) -> ScaleSetCommand {
    ScaleSetCommand::Scale { scale_set: "web".to_owned(), to: Scale { capacity, ..Scale::default() } }
}

/// promise: T6
#[test]
fn an_instance_of_a_flexible_set_is_named_by_eight_digits_and_found_by_number() {
    let mut cluster = TestCluster::new(3);
    cluster.create(&json!({ "instances": 2, "orchestration": "flexible" }));
    assert_eq!(names(&cluster), ["web_dd6d6b41", "web_c3d18c1c"], "by the name of the set and the number");
    let second = find_machine(&cluster.rules, "web_c3d18c1c").unwrap();
    for spelled in ["web/web_c3d18c1c", "web_1", "web/web_1"] {
        assert_eq!(find_machine(&cluster.rules, spelled), Ok(second), "{spelled}");
    }
    for unknown in
        ["web_2", "web_01", "web_+1", "web/1", "db_1", "web_268435457", "web_C3D18C1C", "solo/web_1"]
    {
        assert!(find_machine(&cluster.rules, unknown).is_err(), "{unknown}");
    }
    for spelled in ["1", "web_1", "web_c3d18c1c", "web/web_c3d18c1c"] {
        assert_eq!(commands(&cluster, &delete(&[spelled])), ["web/web_c3d18c1c"], "{spelled}");
    }
    assert_eq!(commands(&cluster, &delete(&["0", "web_dd6d6b41"])), ["web/web_dd6d6b41"], "each once");
    assert!(delete(&["2"]).commands(&cluster.rules).is_err());
    assert_eq!(commands(&cluster, &scale_to(1)), ["web/web_c3d18c1c"], "the newest goes first");
}

/// promise: T6
#[test]
fn instances_of_older_versions_keep_their_names_and_numbers() {
    let mut cluster = TestCluster::new(3);
    cluster.create(&json!({ "instances": 1, "orchestration": "flexible" }));
    // As older versions have stored it.
    let (_, first) = cluster.rules.machines().next().unwrap();
    let set = cluster.rules.scale_set(cluster.rules.scale_set_named("web").unwrap()).unwrap();
    let mut old = first.clone();
    old.name = set.name.of_instance(5);
    let admitted = Change::MachineAdmitted { machine: MachineId(1), new: old };
    drop(cluster.rules.evolve(cluster.now, &admitted));
    cluster.run(&scale_to(3));
    assert_eq!(names(&cluster)[1], "web_5");
    let next = find_machine(&cluster.rules, "web_6").unwrap();
    assert_eq!(next, MachineId(2), "numbers go on");
    assert!(names(&cluster)[2].len() == "web_".len() + 8, "{:?}", names(&cluster));
    assert_eq!(find_machine(&cluster.rules, "web_5"), Ok(MachineId(1)));
    assert_eq!(commands(&cluster, &delete(&["5"])), ["web/web_5"]);
    // A fleet file has numbers: the file of this fleet changes nothing in it.
    let fleet = cluster.fleet();
    let numbers: Vec<_> = fleet.scale_sets[0].instances.iter().map(|instance| instance.id).collect();
    assert_eq!(numbers, [Some(0), Some(5), Some(6)]);
    let changes = cluster.difference(&fleet, UnlistedObjects::Remove).unwrap();
    assert!(changes.is_empty(), "{changes:?}");
}
