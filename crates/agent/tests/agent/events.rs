//! From announcement to undo, against a real server.

use crate::harness::{Server, until};
use crate::place::{Place, tracing_hook};

fn endpoint(server: &Server, machine: &str) -> String {
    format!("http://{}/vm/{machine}", server.metadata())
}

/// A hook for each phase.
fn all_phases() -> String {
    ["scheduled", "started", "completed", "cancelled", "undo"]
        .map(|phase| tracing_hook(&format!("on-{phase}"), phase))
        .concat()
}

#[test]
fn an_event_goes_through_all_hooks_is_approved_and_undone() {
    let server = Server::start();
    let place = Place::new(
        &endpoint(&server, "web_0"),
        &format!("event_log = \"DIR/events.jsonl\"\n{}", all_phases()),
    );
    let agent = place.start();
    agent.hear("Scheduled Events are enabled");
    server.restart("web_0");
    place.expect(&["scheduled on-scheduled 1", "started on-started 1"]);
    until("it is approved and starts", || (server.status("web_0") == "Started").then_some(()));
    server.advance("1m");
    agent.hear("back to work");
    place.expect(&[
        "scheduled on-scheduled 1",
        "started on-started 1",
        "completed on-completed 1",
        "undo on-undo 1",
    ]);
    let mut told = place.told();
    // Whether it has started or the approval was taken is heard first is a matter of chance.
    told[4..6].sort();
    let expected =
        ["seen", "preparing", "ready", "approving", "approved", "started", "completed", "undoing", "undone"];
    assert_eq!(told, expected);
    assert_eq!(agent.said().matches("Scheduled Events are enabled").count(), 1);
    assert!(agent.stop().success());
    assert_eq!(place.memory()["memory"], serde_json::json!({ "cases": [], "owed": {} }));
}

#[test]
fn an_event_that_is_taken_back_was_cancelled() {
    let server = Server::start();
    let settings = format!("[approval]\npolicy = \"never\"\n{}", all_phases());
    let place = Place::new(&endpoint(&server, "web_0"), &settings);
    let agent = place.start();
    agent.hear("Scheduled Events are enabled");
    let id = server.restart("web_0");
    agent.hear("this machine is ready");
    server.run(&["event", "cancel", &id]);
    agent.hear("back to work");
    place.expect(&["scheduled on-scheduled 1", "cancelled on-cancelled 1", "undo on-undo 1"]);
    assert_eq!(server.ids("web_0"), [""; 0]);
    drop(agent);
}

#[test]
fn events_of_others_are_left_alone() {
    let server = Server::start();
    let place = Place::new(&endpoint(&server, "web_0"), &all_phases());
    let agent = place.start();
    agent.hear("Scheduled Events are enabled");
    server.restart("web_1");
    agent.hear("an event of other machines");
    server.restart("web_0");
    place.expect(&["scheduled on-scheduled 1", "started on-started 1"]);
    assert_eq!(server.status("web_1"), "Scheduled", "nobody has approved it");
    drop(agent);
}

#[test]
fn a_short_freeze_is_ignored_by_rule() {
    let server = Server::start();
    let rule = "[[rule]]\nwhen = { types = [\"Freeze\"], shorter_than = \"10s\" }\ntreatment = \"ignore\"\n";
    let place = Place::new(&endpoint(&server, "web_0"), &format!("{rule}{}", all_phases()));
    let agent = place.start();
    agent.hear("Scheduled Events are enabled");
    let host = server.host_of("web_0");
    server.run(&["host", "update", &host]);
    agent.hear("a rule says that nothing is done about it");
    server.advance("20m");
    agent.hear("it is over");
    assert_eq!(place.traces(), [""; 0]);
}

#[test]
fn a_dry_run_tells_and_does_nothing() {
    let server = Server::start();
    let place = Place::new(
        &endpoint(&server, "web_0"),
        &format!("event_log = \"DIR/events.jsonl\"\n{}", all_phases()),
    );
    let agent = place.start_with(&["run", "--dry-run"], &[]);
    agent.hear("Scheduled Events are enabled");
    server.restart("web_0");
    let said = agent.hear("would approve");
    assert!(said.contains("would run a hook") && said.contains("hook=\"on-scheduled\""), "{said}");
    assert_eq!(server.status("web_0"), "Scheduled");
    assert_eq!(place.traces(), [""; 0]);
    assert!(agent.stop().success());
    assert!(!place.path("state.json").exists() && !place.path("events.jsonl").exists());
}
