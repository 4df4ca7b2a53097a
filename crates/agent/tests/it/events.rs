//! From announcement to undo, against a real server.

use serde_json::Value;

use crate::place::{Place, tracing_hook};
use forewarn_testkit::{TestServer, wait_until};

fn endpoint(server: &TestServer, machine: &str) -> String {
    format!("http://{}/vm/{machine}", server.metadata())
}

/// A hook for each phase.
fn all_phases() -> String {
    ["scheduled", "started", "completed", "cancelled", "undo"]
        .map(|phase| tracing_hook(&format!("on-{phase}"), phase))
        .concat()
}

/// promise: A1
#[test]
fn an_event_goes_through_all_hooks_is_approved_and_undone() {
    let server = TestServer::start(crate::program());
    let place = Place::new(
        &endpoint(&server, "web_0"),
        &format!("event_log = \"DIR/events.jsonl\"\n{}", all_phases()),
    );
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    place.expect(&["scheduled on-scheduled 1", "started on-started 1"]);
    wait_until("it is approved and starts", || (server.status("web_0") == "Started").then_some(()));
    server.advance("1m");
    agent.hear("undo completed");
    place.expect(&[
        "scheduled on-scheduled 1",
        "started on-started 1",
        "completed on-completed 1",
        "undo on-undo 1",
    ]);
    let mut told = wait_until("the undo is recorded", || {
        Some(place.told()).filter(|told| told.last().is_some_and(|last| last == "undone"))
    });
    // Whether it has started or the approval was taken is heard first is a matter of chance.
    told[4..6].sort();
    let expected =
        ["seen", "preparing", "ready", "approving", "approved", "started", "completed", "undoing", "undone"];
    assert_eq!(told, expected);
    let log = std::fs::read_to_string(place.path("events.jsonl")).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&last["what"], &last["status"]), (&"undone".into(), &"Started".into()), "its last status");
    assert_eq!(agent.said().matches("Scheduled Events enabled").count(), 1);
    assert!(agent.stop().success());
    assert_eq!(place.memory()["memory"], serde_json::json!({ "cases": [], "owed": {} }));
}

/// promise: A2
#[test]
fn an_event_that_is_taken_back_was_cancelled() {
    let server = TestServer::start(crate::program());
    let settings = format!("[approval]\npolicy = \"never\"\n{}", all_phases());
    let place = Place::new(&endpoint(&server, "web_0"), &settings);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let id = server.restart("web_0");
    agent.hear("ready for event");
    server.run(&["event", "cancel", &id]);
    agent.hear("undo completed");
    place.expect(&["scheduled on-scheduled 1", "cancelled on-cancelled 1", "undo on-undo 1"]);
    assert_eq!(server.ids("web_0"), [""; 0]);
    drop(agent);
}

#[test]
fn events_of_others_are_left_alone() {
    let server = TestServer::start(crate::program());
    let place = Place::new(&endpoint(&server, "web_0"), &all_phases());
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_1");
    agent.hear("event of other machines");
    server.restart("web_0");
    place.expect(&["scheduled on-scheduled 1", "started on-started 1"]);
    assert_eq!(server.status("web_1"), "Scheduled", "nobody has approved it");
    drop(agent);
}

#[test]
fn a_short_freeze_is_ignored_by_rule() {
    let server = TestServer::start(crate::program());
    let rule = "[[rule]]\nwhen = { types = [\"Freeze\"], shorter_than = \"10s\" }\ntreatment = \"ignore\"\n";
    let place = Place::new(&endpoint(&server, "web_0"), &format!("{rule}{}", all_phases()));
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let host = server.host_of("web_0");
    server.run(&["host", "update", &host]);
    agent.hear("event ignored by a rule");
    server.advance("20m");
    agent.hear("event completed");
    assert_eq!(place.traces(), [""; 0]);
}

/// promise: A7
#[test]
fn a_dry_run_tells_and_does_nothing() {
    let server = TestServer::start(crate::program());
    let place = Place::new(
        &endpoint(&server, "web_0"),
        &format!("event_log = \"DIR/events.jsonl\"\n{}", all_phases()),
    );
    let agent = place.start_with(&["run", "--dry-run"], &[]);
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    let said = agent.hear("dry run: would approve event");
    assert!(said.contains("dry run: would run hook") && said.contains("hook=\"on-scheduled\""), "{said}");
    assert_eq!(server.status("web_0"), "Scheduled");
    assert_eq!(place.traces(), [""; 0]);
    assert!(agent.stop().success());
    assert!(!place.path("state.json").exists() && !place.path("events.jsonl").exists());
}
