//! Actions on a fleet whose rules must accept the commands.

use forewarn_lifecycle::{Command, Refusal, Report};
use serde_json::{Value, json};

use super::*;
use crate::instances::read_instances;
use crate::refusals::bad_command;
use forewarn_control::Resolved;
use forewarn_testkit::TestCluster;

fn fleet(more: &Value) -> TestCluster {
    let mut fleet = TestCluster::new(6);
    fleet.create(more);
    fleet.enrol_all();
    fleet
}

fn finish(fleet: &mut TestCluster) {
    let started: Vec<_> = fleet.rules.unfinished().collect();
    for action in started {
        let (maintenance, target) = (action.maintenance, action.target);
        fleet.submit(&Command::Complete { maintenance, target, report: Report::Done });
    }
}

fn machine(fleet: &TestCluster, name: &str) -> MachineId {
    forewarn_control::find_machine(&fleet.rules, name).unwrap()
}

fn all(fleet: &TestCluster) -> InstanceSelection {
    let set = fleet.rules.scale_set_named("web").unwrap();
    read_instances(&fleet.rules, set, &Value::Null).unwrap()
}

fn unprotected(_: MachineId) -> Protection {
    Protection::default()
}

fn words(commands: &[NamedCommand]) -> Vec<String> {
    let word = |command: &NamedCommand| {
        let value = serde_json::to_value(command).unwrap();
        format!("{} {}", value["command"].as_str().unwrap(), value["machine"].as_str().unwrap())
    };
    commands.iter().map(word).collect()
}

/// The first refusal of the rules.
fn refusal(fleet: &TestCluster, commands: &[NamedCommand]) -> Option<Refusal> {
    commands.iter().find_map(|command| match command.resolve(&fleet.rules).expect("a command") {
        Resolved::Rules(command) | Resolved::Admit(command, _) | Resolved::Fail(command, _) => {
            fleet.rules.decide(fleet.now, &command).err()
        }
        Resolved::Describe(..) | Resolved::Site(_) | Resolved::Jam(_) => None,
    })
}

#[test]
fn every_action_has_its_command() {
    let fleet = fleet(&json!({ "instances": 1 }));
    let on = [machine(&fleet, "web_0")];
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
        assert_eq!(words(&plan_action(&fleet.rules, action, &on).unwrap()), expected, "{word}");
    }
    assert_eq!(Action::parse("capture"), None);
    let error = plan_action(&fleet.rules, Action::Restart, &[MachineId(99)]).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (404, "NotFound"));
}

/// promise: Z6
#[test]
fn impossible_actions_get_azure_errors() {
    let mut fleet = fleet(&json!({ "instances": 1 }));
    let on = [machine(&fleet, "web_0")];
    let plan = |fleet: &TestCluster, action| plan_action(&fleet.rules, action, &on).unwrap();
    let evict = refusal(&fleet, &plan(&fleet, Action::SimulateEviction)).unwrap();
    assert_eq!(
        refused(&evict).to_string(),
        "(OperationNotAllowed) Operation 'simulateEviction' is allowed only for Spot Virtual Machines"
    );
    fleet.run_json(&json!({ "command": "restart", "machine": "web_0" }));
    let again = refused(&refusal(&fleet, &plan(&fleet, Action::Redeploy)).unwrap());
    let event = fleet.rules.tenants().next().unwrap().1.events()[0].id().to_string();
    assert_eq!((again.status, again.code.as_ref()), (409, "Conflict"));
    assert!(again.message.contains(&event), "{again}");
    let gone = NamedCommand::Restart { machine: "web/web_9".to_owned() };
    assert_eq!(bad_command(&gone.resolve(&fleet.rules).unwrap_err()).status, 404);
}

#[test]
fn a_machine_that_is_on_its_way_out_is_not_deleted_again() {
    let mut fleet = fleet(&json!({ "instances": 2, "terminate": "5m" }));
    fleet.run_json(&json!({ "command": "delete", "machine": "web_0" }));
    let commands = plan_instances(&fleet.rules, Action::Delete, &all(&fleet), &unprotected).unwrap();
    assert_eq!(words(&commands), ["delete web/web_1"]);
}

/// promise: T6
#[test]
fn an_action_on_all_skips_busy_and_protected_instances() {
    let mut fleet = fleet(&json!({ "instances": 4, "spot": "deallocate" }));
    for (command, machine) in [("deallocate", "web_0"), ("stop", "web_1"), ("restart", "web_2")] {
        fleet.run_json(&json!({ "command": command, "machine": machine }));
    }
    finish(&mut fleet);
    let plan = |action| {
        let commands = plan_instances(&fleet.rules, action, &all(&fleet), &unprotected).unwrap();
        assert_eq!(refusal(&fleet, &commands), None, "{action:?}");
        words(&commands)
    };
    assert_eq!(plan(Action::Restart), ["restart web/web_3"]);
    assert_eq!(plan(Action::Redeploy), ["redeploy web/web_1", "redeploy web/web_3"]);
    assert_eq!(plan(Action::Reimage), ["reimage web/web_1", "reimage web/web_3"]);
    assert_eq!(plan(Action::SimulateEviction).len(), 3);
    let third = machine(&fleet, "web_3");
    let protection = |id| Protection { from_actions: id == third, ..Protection::default() };
    let commands = plan_instances(&fleet.rules, Action::Restart, &all(&fleet), &protection).unwrap();
    assert_eq!(commands, []);
    let named = InstanceSelection::These(vec![third]);
    let commands = plan_instances(&fleet.rules, Action::Restart, &named, &protection).unwrap();
    assert_eq!(words(&commands), ["restart web/web_3"], "who is named is not protected");
}

#[test]
fn an_upgrade_reaches_those_that_have_an_older_model() {
    let mut fleet = fleet(&json!({ "instances": 2 }));
    fleet.run_json(&json!({ "command": "change_model", "scale_set": "web", "terminate": "10m" }));
    fleet.run_json(&json!({ "command": "upgrade_instance", "machine": "web_1" }));
    let plan = |image_since| {
        let action = Action::Upgrade { image_since };
        let commands = plan_instances(&fleet.rules, action, &all(&fleet), &unprotected).unwrap();
        assert_eq!(refusal(&fleet, &commands), None);
        words(&commands)
    };
    assert_eq!(plan(None), ["upgrade_instance web/web_0"]);
    assert_eq!(plan(Some(1)), ["upgrade_instance web/web_0"], "it has that image");
    assert_eq!(plan(Some(2)), ["upgrade_instance web/web_0", "reimage web/web_0"]);
}

#[test]
fn a_machine_of_its_own_has_no_model_to_be_upgraded_to() {
    let mut fleet = TestCluster::new(1);
    fleet.run_json(&json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
    let on = [machine(&fleet, "solo")];
    let error = plan_action(&fleet.rules, Action::Upgrade { image_since: None }, &on).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (409, "OperationNotAllowed"));
}
