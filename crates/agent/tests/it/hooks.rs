//! Hooks that fail, hang, come too late or lie in directories.

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, id, scheduled, started};
use forewarn_testkit::wait_until;

fn announced(settings: &str) -> (Played, Place) {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), settings);
    (endpoint, place)
}

const FAILS: &str = "[[hook]]\nname = \"fails\"\ncommand = [\"/bin/false\"]\n";

/// promise: A1
#[test]
fn a_hook_that_fails_holds_the_approval() {
    let (endpoint, place) = announced(&format!("{FAILS}{}", tracing_hook("last", "scheduled")));
    let agent = place.start();
    let said = agent.hear("this machine does not approve the event");
    assert!(said.contains("hook failed"), "{said}");
    place.expect(&["scheduled last 1"]);
    endpoint.wait_for_polls(2);
    assert_eq!(endpoint.approvals(), [""; 0]);
}

#[test]
fn a_hook_that_fails_does_not_matter_if_that_is_the_policy() {
    let (endpoint, place) = announced(&format!("[approval]\non_failure = \"approve\"\n{FAILS}"));
    let agent = place.start();
    agent.hear("approval accepted");
    assert_eq!(endpoint.approvals(), [format!(r#"{{"StartRequests":[{{"EventId":"{}"}}]}}"#, id(1))]);
}

#[test]
fn a_hook_is_tried_again_as_often_as_it_may_be() {
    let hook = "[[hook]]\nname = \"second-try\"\nretries = 3\n\
                command = [\"/bin/sh\", \"-c\", \"echo try $FOREWARN_ATTEMPT >> DIR/traces; [ $FOREWARN_ATTEMPT = 3 ]\"]\n";
    let (_endpoint, place) = announced(hook);
    let agent = place.start();
    agent.hear("approval accepted");
    place.expect(&["try 1", "try 2", "try 3"]);
}

/// promise: A4
#[test]
fn a_hook_that_hangs_is_ended_and_has_failed() {
    let hook = "[[hook]]\nname = \"hangs\"\nlimit = \"5s\"\n\
                command = [\"/bin/sh\", \"-c\", \"trap '' TERM; echo $$ > DIR/pid; while :; do sleep 1; done\"]\n";
    let (endpoint, place) = announced(hook);
    let agent = place.start();
    let said = agent.hear("this machine does not approve the event");
    assert!(said.contains("timed out after"), "{said}");
    let pid = std::fs::read_to_string(place.path("pid")).unwrap();
    assert!(!crate::place::is_alive(&pid));
    assert_eq!(endpoint.approvals(), [""; 0]);
}

/// promise: A5
#[test]
fn a_hook_that_hangs_does_not_hold_up_another_event() {
    let hook = "[[hook]]\nname = \"hangs\"\nwhen = { types = [\"Reboot\"] }\ncommand = [\"/bin/sleep\", \"600\"]\n\
                [[hook]]\nname = \"quick\"\nwhen = { types = [\"Freeze\"] }\ncommand = [\"/bin/true\"]\n";
    let (endpoint, place) = announced(hook);
    let agent = place.start();
    agent.hear("hook=\"hangs\"");
    endpoint.say(Say::Events(vec![scheduled(1, "Reboot", 900), scheduled(2, "Freeze", 900)]));
    wait_until("the other is approved", || {
        let approvals = endpoint.approvals();
        (approvals.len() == 1 && approvals[0].contains(&id(2))).then_some(())
    });
    assert!(agent.stop().success());
}

#[test]
fn an_event_that_had_started_is_too_late_to_prepare_for() {
    let endpoint = Played::start(Say::Events(vec![started(1, "Reboot")]));
    let even_late = tracing_hook("late", "scheduled") + "even_late = true\n";
    let settings = tracing_hook("normal", "scheduled") + &even_late + &tracing_hook("now", "started");
    let place = Place::new(&endpoint.url(), &settings);
    let agent = place.start();
    agent.hear("event started before this machine could prepare");
    wait_until("hooks run", || (place.traces().len() == 2).then_some(()));
    let mut traces = place.traces();
    traces.sort();
    assert_eq!(traces, ["scheduled late 1", "started now 1"]);
    endpoint.say(Say::Events(Vec::new()));
    agent.hear("event completed");
    assert_eq!(endpoint.approvals(), [""; 0]);
}

/// promise: A1
#[test]
fn a_type_that_is_not_known_is_prepared_for_and_never_approved() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Thaw", 900)]));
    let hook = "[[hook]]\nname = \"any\"\ncommand = [\"/bin/sh\", \"-c\", \"echo $EVENT_TYPE >> DIR/traces\"]\n\
                [[hook]]\nname = \"reboot\"\nwhen = { types = [\"Reboot\"] }\ncommand = [\"/bin/false\"]\n";
    let place = Place::new(&endpoint.url(), hook);
    let agent = place.start();
    agent.hear("ready for event");
    endpoint.wait_for_polls(3);
    assert_eq!(endpoint.approvals(), [""; 0]);
    assert_eq!(agent.said().matches("unknown event type").count(), 1, "{}", agent.said());
    place.expect(&["Thaw"]);
}

/// promise: A4
#[test]
fn scripts_in_directories_run_in_their_order() {
    let (endpoint, place) = announced("hooks = \"DIR/hooks\"\n");
    for (name, body) in [
        ("scheduled.d/20-second", "echo second $FOREWARN_HOOK >> DIR/traces"),
        ("scheduled.d/10-first", "cat >> DIR/json; echo first $1 $FOREWARN_NAME >> DIR/traces"),
        ("undo.d/back", "echo back $EVENT_ID >> DIR/traces"),
        ("cancelled.d/any", "echo cancelled >> DIR/traces"),
    ] {
        place.script(&format!("hooks/{name}"), body);
    }
    std::fs::write(place.path("hooks/scheduled.d/30-plain"), "echo no").unwrap();
    let agent = place.start();
    let said = agent.hear("approval accepted");
    assert!(said.contains("suspicious setting") && said.contains("30-plain"), "{said}");
    place.expect(&["first web_0", "second scheduled.d/20-second"]);
    let event: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("json")).unwrap()).unwrap();
    assert_eq!(event["EventId"], id(1));
    endpoint.say(Say::Events(Vec::new()));
    agent.hear("undo completed");
    assert_eq!(place.traces().last(), Some(&format!("back {}", id(1))));
}

/// promise: A1
#[test]
fn an_approval_that_is_refused_is_tried_again() {
    let (endpoint, place) = announced("");
    endpoint.answer_approvals(500);
    let agent = place.start();
    agent.hear("approval not accepted, retrying");
    endpoint.answer_approvals(200);
    agent.hear("approval accepted");
    assert!(endpoint.approvals().len() > 1);
}
