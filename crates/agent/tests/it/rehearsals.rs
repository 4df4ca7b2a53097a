//! Drills.

use serde_json::Value;

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, scheduled};
use forewarn_testkit::{TestServer, wait_until};

fn all_phases() -> String {
    ["scheduled", "started", "completed", "cancelled", "undo"]
        .map(|phase| tracing_hook(&format!("on-{phase}"), phase))
        .concat()
}

/// promise: A7
#[test]
fn a_drill_goes_through_all_hooks_and_is_undone() {
    let server = TestServer::start(crate::program());
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
    assert!(failed.out.contains("exited with status 1"), "{}", failed.out);
    assert!(failed.out.contains("this machine would not approve"), "{}", failed.out);
    let ignored = place.run(&["rehearse", "--type", "Freeze", "--duration", "5s"]);
    assert_eq!(ignored.code, Some(0), "{ignored:?}");
    assert!(ignored.out.contains("A rule ignores such an event"), "{}", ignored.out);
}

/// promise: A7
#[test]
fn a_drill_is_refused_while_something_real_is_pending() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), &tracing_hook("first", "scheduled"));
    let ran = place.run(&["rehearse"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("cannot rehearse: a real event of this machine is pending"), "{ran:?}");
    let agent = place.start();
    place.expect(&["scheduled first 1"]);
    wait_until("it is kept", || place.memory()["memory"]["cases"].get(0).map(|_| ()));
    let ran = place.run(&["rehearse"]);
    assert!(ran.err.contains("cannot rehearse: a real event is pending"), "{ran:?}");
    assert!(ran.err.contains("hint: forewarn-agent events"), "{ran:?}");
    place.expect(&["scheduled first 1"]);
    drop(agent);
}

#[test]
fn a_drill_needs_no_endpoint() {
    let place = Place::new("http://127.0.0.1:1", &(String::from("name = \"web_0\"\n") + &all_phases()));
    let ran = place.run(&["rehearse"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("cannot check the endpoint for real events"), "{ran:?}");
    let nameless = Place::new("http://127.0.0.1:1", &all_phases());
    let ran = nameless.run(&["rehearse"]);
    assert_eq!(ran.code, Some(0), "without a name, the host name is that of the machine: {ran:?}");
}

#[test]
fn a_drill_that_is_interrupted_is_undone() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let settings = "[[hook]]\nname = \"mark\"\norder = 1\ntouch = { path = \"DIR/mark\" }\n\
                    [[hook]]\nname = \"hangs\"\ncommand = [\"/bin/sleep\", \"600\"]\n";
    let place = Place::new(&endpoint.url(), settings);
    let drill = place.start_with(&["rehearse"], &[]);
    wait_until("it has begun", || place.path("mark").exists().then_some(()));
    drill.signal(rustix::process::Signal::INT);
    drill.hear("Interrupted. All hooks were undone.");
    assert!(!drill.end().success(), "not all of it was rehearsed");
    assert!(!place.path("mark").exists());
}

#[test]
fn a_drill_of_what_is_approved_at_once_ends_and_says_so() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let rule = "[[rule]]\nwhen = { types = [\"Freeze\"] }\ntreatment = \"approve-at-once\"\n";
    let place = Place::new(&endpoint.url(), &(rule.to_owned() + &all_phases()));
    for words in [&["rehearse", "--type", "Freeze"][..], &["rehearse", "--type", "Freeze", "--cancelled"]] {
        let drill = place.start_with(words, &[]);
        drill.hear("A rule approves such an event at once");
        assert!(drill.end().success());
    }
    let report = place.run(&["rehearse", "--type", "Freeze", "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["approved_at_once"], &report["held"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(place.traces(), [""; 0]);
    assert_eq!(endpoint.approvals(), [""; 0]);
}

/// A hook that is done at once, and whose undo waits until it may go on.
const SLOW_UNDO: &str = "[[hook]]\nname = \"slow\"\ncommand = [\"/bin/true\"]\n\
    undo = [\"/bin/sh\", \"-c\", \"echo undo begins >> DIR/traces; while [ -d DIR ] && [ ! -e DIR/go ]; do sleep 0.05; done; echo undone >> DIR/traces\"]\n";

/// promise: A7
#[test]
fn a_drill_that_is_interrupted_while_it_is_undone_is_undone_to_the_end() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), SLOW_UNDO);
    let drill = place.start_with(&["rehearse"], &[]);
    place.expect(&["undo begins"]);
    drill.signal(rustix::process::Signal::INT);
    drill.hear("interrupted: undoing; interrupt again to stop without undo");
    std::fs::write(place.path("go"), "").unwrap();
    drill.hear("Interrupted. All hooks were undone.");
    assert!(!drill.end().success());
    place.expect(&["undo begins", "undone"]);
}

#[test]
fn a_drill_that_is_interrupted_twice_ends_as_it_is() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), SLOW_UNDO);
    let drill = place.start_with(&["rehearse"], &[]);
    place.expect(&["undo begins"]);
    drill.signal(rustix::process::Signal::INT);
    drill.hear("interrupt again to stop without undo");
    drill.signal(rustix::process::Signal::TERM);
    drill.hear("interrupted twice: the undo may be incomplete");
    assert!(!drill.end().success());
    place.expect(&["undo begins"]);
}

/// promise: A7
#[test]
fn a_drill_without_hooks_says_what_the_policy_makes_of_that() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let rule = "[[rule]]\nwhen = { types = [\"Freeze\"] }\napproval = \"when-done\"\n";
    for (settings, words, expected) in [
        (
            "",
            &["rehearse"][..],
            "an event that names only this machine is approved at once (policy = \"alone\")",
        ),
        ("[approval]\npolicy = \"never\"\n", &["rehearse"], "approves nothing (policy = \"never\")"),
        (rule, &["rehearse", "--type", "Freeze"], "it is approved at once (policy = \"when-done\")"),
    ] {
        let ran = Place::new(&endpoint.url(), settings).run(words);
        assert!(ran.code == Some(0) && ran.out.contains(expected), "{ran:?}");
    }
}

#[test]
fn a_hint_in_a_reason_stays_on_its_line() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), "[[hook]]\nname = \"k\"\nkubernetes = {}\n");
    let ran = place.run(&["rehearse", "-o", "wide"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("KUBERNETES_SERVICE_HOST is not set; hint: "), "{}", ran.out);
    assert!(!ran.out.contains("\\n"), "{}", ran.out);
}
