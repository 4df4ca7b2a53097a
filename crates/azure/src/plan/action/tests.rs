//! Actions on a fleet whose rules have to accept what comes of them.

use forewarn_lifecycle::{Command, Refusal, Report};
use serde_json::{Value, json};

use super::*;
use crate::instances::read_instances;
use crate::refused::bad_command;
use forewarn_control::Resolved;
use forewarn_testkit::TestCluster;

fn town(more: &Value) -> TestCluster {
    let mut town = TestCluster::new(6);
    town.create(more);
    town.enrol();
    town
}

/// What has started is done.
fn finish(town: &mut TestCluster) {
    let started: Vec<_> = town.cluster.unfinished().collect();
    for action in started {
        let (maintenance, machine) = (action.maintenance, action.machine);
        town.submit(&Command::Complete { maintenance, machine, report: Report::Done });
    }
}

fn machine(town: &TestCluster, name: &str) -> MachineId {
    forewarn_control::find_machine(&town.cluster, name).unwrap()
}

fn all(town: &TestCluster) -> InstanceSelection {
    let set = town.cluster.scale_set_named("web").unwrap();
    read_instances(&town.cluster, set, &Value::Null).unwrap()
}

fn nobody(_: MachineId) -> Protection {
    Protection::default()
}

fn words(commands: &[NamedCommand]) -> Vec<String> {
    let word = |command: &NamedCommand| {
        let value = serde_json::to_value(command).unwrap();
        format!("{} {}", value["command"].as_str().unwrap(), value["machine"].as_str().unwrap())
    };
    commands.iter().map(word).collect()
}

/// What the rules say to the first command that they refuse.
fn refusal(town: &TestCluster, commands: &[NamedCommand]) -> Option<Refusal> {
    commands.iter().find_map(|command| match command.resolve(&town.cluster).expect("a command") {
        Resolved::Rules(command) | Resolved::Admit(command, _) => {
            town.cluster.decide(town.now, &command).err()
        }
        Resolved::Describe(..) | Resolved::Site(_) | Resolved::Jam(_) => None,
    })
}

#[test]
fn every_action_has_its_command() {
    let town = town(&json!({ "instances": 1 }));
    let on = [machine(&town, "web_0")];
    for (word, expected) in [
        ("restart", vec!["restart web/web_0"]),
        ("Redeploy", vec!["redeploy web/web_0"]),
        ("performmaintenance", vec!["redeploy web/web_0"]),
        ("reimage", vec!["reimage web/web_0"]),
        ("reimageall", vec!["reimage web/web_0"]),
        ("start", vec!["start web/web_0"]),
        ("poweroff", vec!["stop web/web_0"]),
        ("deallocate", vec!["deallocate web/web_0"]),
        ("simulateEviction", vec!["evict web/web_0"]),
        ("delete", vec!["delete web/web_0"]),
        ("reapply", vec![]),
        ("manualupgrade", vec![]),
    ] {
        let action = Action::parse(word).unwrap();
        assert_eq!(words(&plan_action(&town.cluster, action, &on).unwrap()), expected, "{word}");
    }
    assert_eq!(Action::parse("capture"), None);
    let error = plan_action(&town.cluster, Action::Restart, &[MachineId(99)]).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (404, "NotFound"));
}

#[test]
fn what_cannot_be_done_is_refused_in_the_words_of_azure() {
    let mut town = town(&json!({ "instances": 1 }));
    let on = [machine(&town, "web_0")];
    let plan = |town: &TestCluster, action| plan_action(&town.cluster, action, &on).unwrap();
    let evict = refusal(&town, &plan(&town, Action::SimulateEviction)).unwrap();
    assert_eq!(
        refused(&evict).to_string(),
        "(OperationNotAllowed) Operation 'simulateEviction' is allowed only for Spot Virtual Machines"
    );
    town.order(&json!({ "command": "restart", "machine": "web_0" }));
    let again = refused(&refusal(&town, &plan(&town, Action::Redeploy)).unwrap());
    let event = town.cluster.tenants().next().unwrap().1.events()[0].id().to_string();
    assert_eq!((again.status, again.code.as_ref()), (409, "Conflict"));
    assert!(again.message.contains(&event), "{again}");
    let gone = NamedCommand::Restart { machine: "web/web_9".to_owned() };
    assert_eq!(bad_command(&gone.resolve(&town.cluster).unwrap_err()).status, 404);
}

#[test]
fn a_machine_that_is_on_its_way_out_is_not_deleted_again() {
    let mut town = town(&json!({ "instances": 2, "terminate": "5m" }));
    town.order(&json!({ "command": "delete", "machine": "web_0" }));
    let commands = plan_instances(&town.cluster, Action::Delete, &all(&town), &nobody).unwrap();
    assert_eq!(words(&commands), ["delete web/web_1"]);
}

#[test]
fn of_all_instances_those_are_left_out_that_cannot_or_may_not() {
    let mut town = town(&json!({ "instances": 4, "spot": "deallocate" }));
    for (command, machine) in [("deallocate", "web_0"), ("stop", "web_1"), ("restart", "web_2")] {
        town.order(&json!({ "command": command, "machine": machine }));
    }
    finish(&mut town);
    let plan = |action| {
        let commands = plan_instances(&town.cluster, action, &all(&town), &nobody).unwrap();
        assert_eq!(refusal(&town, &commands), None, "{action:?}");
        words(&commands)
    };
    assert_eq!(plan(Action::Restart), ["restart web/web_3"]);
    assert_eq!(plan(Action::Redeploy), ["redeploy web/web_1", "redeploy web/web_3"]);
    assert_eq!(plan(Action::Reimage), ["reimage web/web_1", "reimage web/web_3"]);
    assert_eq!(plan(Action::SimulateEviction).len(), 3);
    let third = machine(&town, "web_3");
    let protection = |id| Protection { from_actions: id == third, ..Protection::default() };
    let commands = plan_instances(&town.cluster, Action::Restart, &all(&town), &protection).unwrap();
    assert_eq!(commands, []);
    let named = InstanceSelection::These(vec![third]);
    let commands = plan_instances(&town.cluster, Action::Restart, &named, &protection).unwrap();
    assert_eq!(words(&commands), ["restart web/web_3"], "who is named is not protected");
}

#[test]
fn an_upgrade_reaches_those_that_have_an_older_model() {
    let mut town = town(&json!({ "instances": 2 }));
    town.order(&json!({ "command": "change_model", "scale_set": "web", "terminate": "10m" }));
    town.order(&json!({ "command": "upgrade_instance", "machine": "web_1" }));
    let plan = |image_since| {
        let action = Action::Upgrade { image_since };
        let commands = plan_instances(&town.cluster, action, &all(&town), &nobody).unwrap();
        assert_eq!(refusal(&town, &commands), None);
        words(&commands)
    };
    assert_eq!(plan(None), ["upgrade_instance web/web_0"]);
    assert_eq!(plan(Some(1)), ["upgrade_instance web/web_0"], "it has that image");
    assert_eq!(plan(Some(2)), ["upgrade_instance web/web_0", "reimage web/web_0"]);
}

#[test]
fn a_machine_of_its_own_has_no_model_to_be_upgraded_to() {
    let mut town = TestCluster::new(1);
    town.order(&json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
    let on = [machine(&town, "solo")];
    let error = plan_action(&town.cluster, Action::Upgrade { image_since: None }, &on).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (409, "OperationNotAllowed"));
}
