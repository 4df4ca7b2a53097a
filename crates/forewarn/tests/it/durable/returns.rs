//! A rollout that waits for machines: a poll is the return of a machine, and outlives the server that answered it.

use serde_json::{Value, json};

use crate::durable::disk::{limit, start_limited};
use crate::durable::place::Place;
use forewarn_testkit::operator::{read, value};
use forewarn_testkit::{NEWEST, TestServer, wait_until};

fn rollout(server: &TestServer) -> Value {
    value(&read(server.api(), "/v1/rollouts/0").unwrap())
}

/// Restarts two hosts one after the other. The machine of the first has polled after the announcement, and not since its
/// restart.
fn begin(server: &TestServer) {
    server.enrol(&["vm-0", "vm-1"]);
    server.run(&["rollout", "start", "h0", "h1", "--kind", "reboot", "--at-once", "1", "--await-machines"]);
    assert_eq!(server.status("vm-0"), "Scheduled");
    server.advance("16m");
    check_waiting(server);
}

fn check_waiting(server: &TestServer) {
    let shown = rollout(server);
    assert_eq!(shown["state"], "waits-for-health", "{shown}");
    assert_eq!((&shown["done"], &shown["waiting"]), (&json!(["h0"]), &json!(["h1"])), "{shown}");
    let away = json!([{"machine": "vm-0/vm-0", "since": "2026-01-01T00:15:30Z"}]);
    assert_eq!(shown["away"], away, "{shown}");
}

fn check_going_on(server: &TestServer) {
    let shown = rollout(server);
    assert_eq!((&shown["state"], &shown["current_hosts"]), (&json!("going"), &json!(["h1"])), "{shown}");
    assert_eq!(shown["away"], Value::Null, "{shown}");
}

/// promise: R2
#[test]
fn a_rollout_waits_until_a_machine_polls_and_a_kill_forgets_neither() {
    let place = Place::new();
    let server = place.start();
    begin(&server);
    let text = server.run(&["rollout", "show", "0"]);
    for line in
        ["away         vm-0/vm-0, since 2026-01-01 00:15:30Z", "waits until the machines of each group"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let explained = server.run(&["vm", "explain", "vm-0"]);
    assert!(explained.contains("Rollout 0 waits until the machine polls"), "{explained}");
    server.kill();
    let server = place.start();
    check_waiting(&server);
    assert_eq!(server.get("vm-1", NEWEST).status(), 200);
    server.advance("1h");
    check_waiting(&server);
    // The second machine has not polled since its own announcement, which is still to come.
    assert_eq!(server.get("vm-0", NEWEST).status(), 200);
    server.kill();
    let server = place.start();
    check_going_on(&server);
    let polls = server.json(&["audit", "ls", "--kind", "polled", "--machine", "vm-0"]);
    let polls = polls.as_array().or(polls["items"].as_array()).unwrap().clone();
    assert_eq!(polls.len(), 2, "after the announcement, and after the restart: {polls:?}");
    assert!(
        polls.iter().all(|entry| entry["by"] == "machine vm-0/vm-0" && entry["rollout"] == 0),
        "{polls:?}"
    );
    server.advance("16m");
    assert_eq!(rollout(&server)["state"], "finished");
}

/// promise: R2
#[test]
fn a_poll_that_cannot_be_reported_is_answered_and_the_next_one_is_reported() {
    let place = Place::new();
    let server = start_limited(&place);
    begin(&server);
    limit(&server, Some(0));
    for _ in 0..3 {
        assert_eq!(server.get("vm-0", NEWEST).status(), 200);
        check_waiting(&server);
    }
    limit(&server, None);
    wait_until("a poll is reported", || {
        assert_eq!(server.get("vm-0", NEWEST).status(), 200);
        (rollout(&server)["state"] == "going").then_some(())
    });
    check_going_on(&server);
}

/// promise: R2
#[test]
fn a_rollout_whose_terms_no_longer_await_machines_goes_on() {
    let place = Place::new();
    let server = place.start();
    begin(&server);
    server.run(&["rollout", "set", "0", "--pause-between", "1m"]);
    server.advance("2m");
    check_waiting(&server);
    server.run(&["rollout", "set", "0", "--await-machines=false"]);
    check_going_on(&server);
    assert_eq!(rollout(&server)["terms"]["health"], "awaited");
}
