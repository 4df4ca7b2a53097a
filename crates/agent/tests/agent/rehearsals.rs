//! Drills.

use serde_json::Value;

use crate::harness::{Server, until};
use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, scheduled};

fn all_phases() -> String {
    ["scheduled", "started", "completed", "cancelled", "undo"]
        .map(|phase| tracing_hook(&format!("on-{phase}"), phase))
        .concat()
}

#[test]
fn a_drill_goes_through_all_hooks_and_is_undone() {
    let server = Server::start();
    let settings = all_phases() + "[[hook]]\nname = \"mark\"\norder = 90\ntouch = { path = \"DIR/mark\" }\n";
    let place = Place::new(&format!("http://{}/vm/web_0", server.metadata()), &settings);
    let ran = place.run(&["rehearse", "--type", "Redeploy", "--left", "60s"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place.expect(&[
        "scheduled on-scheduled 1",
        "started on-started 1",
        "completed on-completed 1",
        "undo on-undo 1",
    ]);
    assert!(!place.path("mark").exists() && !place.path("state.json").exists());
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(lines[0].starts_with("PHASE") && lines[0].contains("SECONDS"), "{}", ran.out);
    assert_eq!(lines.iter().filter(|line| line.contains("done")).count(), 6, "{}", ran.out);
    assert!(lines.last().unwrap().contains("of 1m. Nothing was approved."), "{}", ran.out);
}

#[test]
fn a_drill_may_be_cancelled_and_reported_as_json() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), &all_phases());
    let ran = place.run(&["rehearse", "--cancelled", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place.expect(&["scheduled on-scheduled 1", "cancelled on-cancelled 1", "undo on-undo 1"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["seconds_given"], 900);
    assert_eq!(report["hooks"][1]["phase"], "cancelled");
    assert_eq!(report["hooks"][1]["outcome"], "done");
    assert_eq!(endpoint.approvals(), [""; 0]);
}

#[test]
fn a_drill_shows_what_fails_and_what_is_ignored() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let settings = "[[rule]]\nwhen = { types = [\"Freeze\"], shorter_than = \"10s\" }\ntreatment = \"ignore\"\n\
                    [[hook]]\nname = \"fails\"\ncommand = [\"/bin/false\"]\n";
    let place = Place::new(&endpoint.url(), settings);
    let failed = place.run(&["rehearse"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("it ended with status 1"), "{}", failed.out);
    assert!(failed.out.contains("this machine would not approve"), "{}", failed.out);
    let ignored = place.run(&["rehearse", "--type", "Freeze", "--duration", "5s"]);
    assert_eq!(ignored.code, Some(0), "{ignored:?}");
    assert!(ignored.out.contains("A rule says that nothing is done"), "{}", ignored.out);
}

#[test]
fn a_drill_is_refused_while_something_real_is_pending() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let ran = place.run(&["rehearse"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("an event of this machine is pending, and that one is real"), "{ran:?}");
    let agent = place.start();
    place.expect(&["scheduled first 1"]);
    until("it is kept", || place.memory()["memory"]["cases"].get(0).map(|_| ()));
    let ran = place.run(&["rehearse"]);
    assert!(ran.err.contains("an event is in hand, and that one is real"), "{ran:?}");
    place.expect(&["scheduled first 1"]);
    drop(agent);
}

#[test]
fn a_drill_needs_no_endpoint() {
    let place = Place::new("http://127.0.0.1:1", &(String::from("name = \"web_0\"\n") + &all_phases()));
    let ran = place.run(&["rehearse"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("the endpoint cannot be asked"), "{ran:?}");
    let nameless = Place::new("http://127.0.0.1:1", "");
    assert!(nameless.run(&["rehearse"]).err.contains("the name of this machine is not known"));
}
