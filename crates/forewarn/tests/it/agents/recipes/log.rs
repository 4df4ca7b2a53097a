//! Event log: one record for each thing that happens to an event.

use super::settings;
use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::wait_until;

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn each_event_is_recorded_when_it_is_seen_approved_started_and_gone() {
    let place = AgentNetwork::of(crate::program(), &["web_0"]);
    let world = place.begin(&settings("event-log"));
    let agent = world.agent("web_0");
    let mine = world.announce(&["vm", "restart", "web_0"]);
    agent.has_noted("started");
    world.advance("1m");
    let other = world.announce(&["vm", "restart", "web_1"]);
    wait_until("the other is seen", || {
        agent.notes().iter().any(|note| note["event"] == other.as_str()).then_some(())
    });
    world.run(&["event", "cancel", &other]);
    wait_until("the other is cancelled", || {
        let notes = agent.notes();
        notes.iter().any(|note| note["event"] == other.as_str() && note["what"] == "cancelled").then_some(())
    });
    let of = |event: &str, kinds: &[&str]| -> Vec<String> {
        let notes = agent.notes();
        let notes = notes.iter().filter(|note| note["event"] == event);
        let words = notes.map(|note| note["what"].as_str().unwrap().to_owned());
        words.filter(|what| kinds.contains(&what.as_str())).collect()
    };
    let kinds = ["seen", "approved", "started", "completed", "cancelled"];
    // The answer to the approval, and the news that it has led to, come over two connections.
    let mut found = of(&mine, &kinds);
    found[1..3].sort();
    assert_eq!(found, ["seen", "approved", "started", "completed"]);
    assert_eq!(of(&other, &kinds), ["seen", "cancelled"]);
    let seen = agent.notes().into_iter().find(|note| note["what"] == "seen").unwrap();
    assert_eq!((&seen["type"], &seen["resources"][0]), (&"Reboot".into(), &"web_0".into()));
    assert!(seen["time"].as_str().unwrap().ends_with('Z'));
    // Whoever rotates the file may take it away.
    std::fs::rename(agent.file("events.jsonl"), agent.file("events.jsonl.1")).unwrap();
    let third = world.announce(&["vm", "restart", "web_0"]);
    wait_until("a new file is begun", || {
        agent.notes().iter().any(|note| note["event"] == third.as_str()).then_some(())
    });
}
