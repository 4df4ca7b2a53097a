//! An endpoint that does not answer, or not with a document.

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, id, scheduled};
use forewarn_testkit::wait_until;

#[test]
fn an_endpoint_that_is_down_for_a_while_is_told_of_once() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    endpoint.say(Say::Nothing);
    endpoint.wait_for_polls(2);
    endpoint.say(Say::Status(500));
    endpoint.wait_for_polls(1);
    agent.hear("endpoint does not respond");
    endpoint.say(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let said = agent.hear("endpoint responds again");
    assert_eq!(said.matches("endpoint does not respond").count(), 1, "{said}");
    place.expect(&["scheduled first 1"]);
    drop(agent);
}

/// promise: A3, A7
#[test]
fn an_empty_answer_is_no_news() {
    let endpoint = Played::start(Say::Empty);
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let agent = place.start();
    agent.hear("no document yet: Scheduled Events are being enabled");
    endpoint.say(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    agent.hear("Scheduled Events enabled");
    agent.hear("approval accepted");
    // An event does not go because nothing is said of it.
    endpoint.say(Say::Empty);
    endpoint.wait_for_polls(2);
    let said = agent.said();
    assert!(!said.contains("event completed") && !said.contains("event cancelled"), "{said}");
    assert!(!said.contains("does not respond"), "{said}");
}

#[test]
fn an_endpoint_that_names_no_editions_is_approved_in_the_one_in_which_it_answers() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    endpoint.know_only("2019-08-01");
    let place = Place::new(&endpoint.url(), "");
    let agent = place.start();
    let said = agent.hear("approval accepted");
    assert!(said.contains("approval accepted"), "{said}");
    assert!(!said.contains("approval not accepted"), "{said}");
    assert_eq!(endpoint.approvals().len(), 1);
}

/// promise: A3
#[test]
fn the_name_is_asked_for_until_it_is_known() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    endpoint.call(None);
    let place = Place::new(&endpoint.url(), "");
    let agent = place.start();
    let said = agent.hear("endpoint returns no machine name, retrying");
    assert!(said.contains("agent started"), "it waits for nobody: {said}");
    let shown = place.run(&["status", "--json", "--at", &agent.address()]);
    let status: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(status["ready"], false, "{status}");
    assert!(status["endpoint"]["error"].as_str().is_some(), "{status}");
    endpoint.call(Some("web_7"));
    let said = agent.hear("Scheduled Events enabled");
    assert!(said.contains("web_7"), "{said}");
    assert!(agent.stop().success());
}

/// promise: A2
#[test]
fn a_memory_that_cannot_be_kept_does_not_stop_the_work() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    wait_until("it is kept", || place.memory()["memory"]["cases"].as_array().map(|_| ()));
    // A directory is in the way of the file that is written first.
    std::fs::create_dir(place.path("state.json.new")).unwrap();
    endpoint.say(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    agent.hear("cannot store the state");
    agent.hear("approval accepted");
    place.expect(&["scheduled first 1"]);
    std::fs::remove_dir(place.path("state.json.new")).unwrap();
    endpoint.say(Say::Events(Vec::new()));
    agent.hear("state stored again");
    wait_until("it is kept", || place.memory()["memory"]["cases"].as_array().map(|_| ()));
}

/// promise: A3
#[test]
fn a_malformed_event_is_skipped_and_the_others_are_handled() {
    let broken = scheduled(2, "Reboot", 900).replace("\"NotBefore\":\"", "\"NotBefore\":\"not ");
    let endpoint = Played::start(Say::Events(vec![broken.clone(), scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let agent = place.start();
    agent.hear("approval accepted");
    endpoint.wait_for_polls(3);
    let said = agent.said();
    assert_eq!(said.matches("skipped malformed event").count(), 1, "{said}");
    assert!(said.contains(&id(2)) && said.contains("NotBefore"), "{said}");
    place.expect(&["scheduled first 1"]);
    assert!(endpoint.approvals().iter().all(|body| !body.contains(&id(2))), "{:?}", endpoint.approvals());
}

/// promise: A3
#[test]
fn an_event_that_becomes_malformed_has_not_ended() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let phases = ["scheduled", "completed", "cancelled", "undo"].map(|phase| tracing_hook(phase, phase));
    let place = Place::new(&endpoint.url(), &format!("[approval]\npolicy = \"never\"\n{}", phases.concat()));
    let agent = place.start();
    agent.hear("ready for event");
    let good = scheduled(1, "Reboot", 900);
    // With an id that can be read; without; with a state that this agent does not know.
    let broken = [
        good.replace("\"Resources\":[", "\"Resources\":[7,"),
        "{\"EventId\":7}".to_owned(),
        good.replace("\"Scheduled\"", "\"Pondered\""),
    ];
    for (count, broken) in broken.into_iter().enumerate() {
        endpoint.say(Say::Events(vec![broken]));
        agent.hear_times("skipped malformed event", count + 1);
        endpoint.wait_for_polls(2);
    }
    assert_eq!(place.traces(), ["scheduled scheduled 1"]);
    endpoint.say(Say::Events(Vec::new()));
    place.expect(&["scheduled scheduled 1", "cancelled cancelled 1", "undo undo 1"]);
}

/// promise: A3
#[test]
fn an_unknown_status_is_never_approved() {
    let strange = scheduled(2, "Reboot", 900).replace("\"Scheduled\"", "\"Pondered\"");
    let endpoint = Played::start(Say::Events(vec![strange, scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let agent = place.start();
    agent.hear("approval accepted");
    endpoint.wait_for_polls(3);
    let approvals = endpoint.approvals();
    assert!(approvals.iter().all(|body| !body.contains(&id(2))), "{approvals:?}");
    place.expect(&["scheduled first 1"]);
}
