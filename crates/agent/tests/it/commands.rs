//! `events`, `approve`, `status`, `find` and `completions`.

use serde_json::Value;

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, id, scheduled, scheduled_for};
use forewarn_testkit::{TestServer, wait_until};

fn place_of(server: &TestServer, machine: &str, more: &str) -> Place {
    Place::new(&format!("http://{}/vm/{machine}", server.metadata()), more)
}

#[test]
fn events_are_what_the_endpoint_says_now() {
    let server = TestServer::start(crate::program());
    let place = place_of(&server, "web_0", "");
    let none = place.run(&["events"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""), "{none:?}");
    assert_eq!(none.err, "no event is pending\n");
    let own = server.restart("web_0");
    let other = server.restart("web_1");
    let shown = place.run(&["events"]).out;
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines[0].contains("NOT BEFORE"), "{shown}");
    assert!(
        lines[1].starts_with(&own[..8]) && lines[1].contains("15m") && lines[1].contains("yes"),
        "{shown}"
    );
    assert!(lines[2].starts_with(&other[..8]) && lines[2].contains("no "), "{shown}");
    assert!(place.run(&["events", "-o", "wide"]).out.contains(&format!("\n{own}  ")));
    let list: Value = serde_json::from_str(&place.run(&["events", "--json"]).out).unwrap();
    assert_eq!(list[0]["id"], own);
    assert_eq!(list[0]["seconds_left"], 900);
    assert_eq!(list[0]["mine"], true);
    assert_eq!(list[1]["mine"], false);
}

/// promise: A6
#[test]
fn an_endpoint_that_does_not_answer_is_told_with_where_it_is() {
    let place = Place::new("http://127.0.0.1:1", "");
    for words in [&["events"][..], &["approve", "--all"]] {
        let ran = place.run(words);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("http://127.0.0.1:1"), "{ran:?}");
    }
    let empty = Played::start(Say::Empty);
    let ran = Place::new(&empty.url(), "").run(&["events"]);
    assert!(ran.err.contains("Scheduled Events are being enabled"), "{ran:?}");
}

#[test]
fn events_are_approved_by_id_or_by_how_it_begins() {
    let server = TestServer::start(crate::program());
    let place = place_of(&server, "web_0", "");
    server.enrol(&["web_0"]);
    let id = server.restart("web_0");
    let ran = place.run(&["approve", &id[..6].to_ascii_lowercase()]);
    assert_eq!((ran.code, ran.out), (Some(0), format!("{id} is approved\n")));
    wait_until("it starts", || (server.status("web_0") == "Started").then_some(()));
    for (wrong, what) in [
        ("123", "an id prefix has at least 4 characters"),
        ("0000", "event not found"),
        ("00000000-0000-4000-8000-000000000000", "rejected the request"),
    ] {
        let ran = place.run(&["approve", wrong]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(what), "{ran:?}");
    }
}

#[test]
fn all_means_all_of_this_machine() {
    let server = TestServer::start(crate::program());
    let place = place_of(&server, "web_0", "");
    server.enrol(&["web_0"]);
    let none = place.run(&["approve", "--all"]);
    assert_eq!((none.code, none.err.as_str()), (Some(0), "no scheduled event names web_0\n"));
    let (own, other) = (server.restart("web_0"), server.restart("web_1"));
    assert_eq!(place.run(&["approve", "--all"]).out, format!("{own} is approved\n"));
    let approved = server.json(&["event", "show", &other]);
    assert_eq!(approved["approved"], false, "{approved}");
}

#[test]
fn each_is_asked_for_on_a_terminal_or_from_a_pipe() {
    let endpoint = Played::start(Say::Events(vec![
        scheduled(1, "Reboot", 900),
        scheduled(2, "Freeze", 900),
        scheduled(3, "Redeploy", 900),
        scheduled(4, "Preempt", 900),
    ]));
    let place = Place::new(&endpoint.url(), "");
    let ran = place.run_with(&["approve", "--interactive"], "y\nno\nperhaps\nYES\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = format!("{} is approved\n{} is not approved\n{} is approved\n", id(1), id(2), id(3));
    assert_eq!(ran.out, expected);
    assert!(ran.err.contains("approve it? [y/N]") && ran.err.contains("enter y or n"), "{}", ran.err);
    assert!(ran.err.contains("end of input"), "{}", ran.err);
    assert_eq!(endpoint.approvals().len(), 2);
}

/// promise: A7
#[test]
fn status_tells_how_the_agent_is() {
    let server = TestServer::start(crate::program());
    let settings = format!("[approval]\npolicy = \"never\"\n{}", tracing_hook("drain", "scheduled"));
    let place = place_of(&server, "web_0", &settings);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let at = agent.address();
    let quiet = place.run(&["status", "--at", &at]);
    assert_eq!(quiet.code, Some(0), "{quiet:?}");
    assert!(quiet.out.contains("no event is pending"), "{}", quiet.out);
    server.restart("web_0");
    agent.hear("ready for event");
    let status: Value = wait_until("it shows", || {
        let status: Value = serde_json::from_str(&place.run(&["status", "--at", &at, "--json"]).out).unwrap();
        (status["events"][0]["stage"] == "ready").then_some(status)
    });
    assert_eq!(
        (&status["name"], &status["drained"], &status["ready"]),
        (&"web_0".into(), &true.into(), &true.into())
    );
    assert_eq!(status["events"][0]["hooks"][0]["state"], "done");
    let shown = place.run(&["status", "--at", &at]).out;
    for what in
        ["machine", "web_0", "agent works", "drained", "Reboot", "Scheduled", "ready", "drain", "done"]
    {
        assert!(shown.contains(what), "{what}: {shown}");
    }
    assert!(agent.stop().success());
}

/// The status as text, once it has that.
fn status_with(place: &Place, words: &[&str], wanted: &str) -> String {
    wait_until(&format!("the status has {wanted:?}"), || {
        let shown = place.run(words).out;
        shown.contains(wanted).then_some(shown)
    })
}

/// promise: A7
#[test]
fn status_and_log_tell_why_an_event_of_several_machines_is_not_approved() {
    let machines = ["BackEnd_IN_0", "BackEnd_IN_1"];
    let endpoint = Played::start(Say::Events(vec![scheduled_for(1, "Reboot", 900, &machines)]));
    let place = Place::new(&endpoint.url(), "name = \"BackEnd_IN_0\"\n");
    let agent = place.start();
    let said = agent.hear("event not approved by this machine");
    let reason = r#"reason="the event names other machines, and policy = \"alone\"""#;
    let short = &id(1)[..8];
    assert!(said.contains(reason) && said.contains(&format!("forewarn-agent approve {short}")), "{said}");
    let at = agent.address();
    let shown = status_with(&place, &["status", "--at", &at], "is not approved by this agent");
    let sentence = format!(
        "\n{short} is not approved by this agent: the event names other machines, and policy = \"alone\"\n  \
         hint: forewarn-agent approve {short}\n"
    );
    assert!(shown.contains(&sentence), "{shown}");
    assert!(shown.contains("BackEnd_IN_0, BackEnd_IN_1"), "in 80 columns: {shown}");
    let wide = place.run(&["status", "--at", &at, "-o", "wide"]).out;
    assert!(wide.contains(&format!("\n{}  ", id(1))), "{wide}");
    let status: Value = serde_json::from_str(&place.run(&["status", "--at", &at, "--json"]).out).unwrap();
    let not_approved = &status["events"][0]["not_approved"];
    assert_eq!(not_approved["hint"], format!("forewarn-agent approve {short}"), "{status}");
}

/// promise: A7
#[test]
fn status_shows_ignored_events_and_hooks_in_their_order() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Freeze", 900), scheduled(2, "Reboot", 900)]));
    let settings = "[approval]\npolicy = \"never\"\n\
                    [[rule]]\nwhen = { types = [\"Freeze\"] }\ntreatment = \"ignore\"\n"
        .to_owned()
        + &tracing_hook("a-late", "scheduled")
        + &tracing_hook("z-early", "scheduled")
        + "order = 10\n";
    let place = Place::new(&endpoint.url(), &settings);
    let agent = place.start();
    agent.hear("ready for event");
    let at = agent.address();
    let shown = status_with(&place, &["status", "--at", &at], "policy = \"never\"");
    let freeze = shown.lines().find(|line| line.contains("Freeze")).unwrap();
    assert!(freeze.contains(" ignored "), "{shown}");
    assert!(shown.find("z-early").unwrap() < shown.find("a-late").unwrap(), "{shown}");
}

/// A hook that fails until a file is there.
const NEEDS: &str =
    "[[hook]]\nname = \"needs\"\ncommand = [\"/bin/sh\", \"-c\", \"[ -e DIR/cause-removed ]\"]\n";

/// promise: A7
#[test]
fn failed_hooks_run_again_on_request_and_the_event_is_approved() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), NEEDS);
    let agent = place.start();
    let at = agent.address();
    let short = &id(1)[..8];
    let said = agent.hear("hooks failed: this machine does not approve the event");
    assert!(said.contains(&format!("forewarn-agent retry {short}")), "{said}");
    status_with(
        &place,
        &["status", "--at", &at],
        "is not approved by this agent: hooks failed\n  hint: remove",
    );
    let ran = place.run(&["retry", "--at", &at, short]);
    assert_eq!(
        (ran.code, ran.out),
        (Some(0), format!("needs runs again, in the phase scheduled of {}\n", id(1)))
    );
    agent.hear_times("hooks failed: this machine does not approve the event", 2);
    assert_eq!(endpoint.approvals(), [""; 0], "the cause is still there");
    std::fs::write(place.path("cause-removed"), "").unwrap();
    let ran = place.run(&["retry", "--at", &at, "--json"]);
    let hooks: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&hooks[0]["hook"], &hooks[0]["event"]), (&"needs".into(), &id(1).into()), "{ran:?}");
    agent.hear("approval accepted");
    assert_eq!(endpoint.approvals().len(), 1);
    let none = place.run(&["retry", "--at", &at]);
    assert_eq!((none.code, none.err.as_str()), (Some(0), "no hook has failed\n"), "{none:?}");
    for (wrong, what) in [("FFFF", "event not found: FFFF"), ("12", "an id prefix has at least 4 characters")]
    {
        let ran = place.run(&["retry", "--at", &at, wrong]);
        assert!(ran.code == Some(1) && ran.err.contains(what), "{ran:?}");
    }
}

#[test]
fn without_an_agent_status_says_what_to_do() {
    let place = Place::new("http://127.0.0.1:1", "listen = \"127.0.0.1:1\"\n");
    let ran = place.run(&["status"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("cannot connect to the agent at 127.0.0.1:1"), "{ran:?}");
    assert!(ran.err.contains("hint: systemctl status forewarn-agent"), "{ran:?}");
    assert!(ran.err.contains("--config FILE, or --at ADDRESS"), "{ran:?}");
}

/// promise: A6
#[test]
fn find_says_where_the_endpoint_is() {
    let place = Place::new("http://127.0.0.1:1", "");
    let ran = place.run(&["find"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "http://127.0.0.1:1\n"), "{ran:?}");
    assert_eq!(ran.err, "found in the settings\n");
    let ran = place.run(&["find", "--endpoint", "127.0.0.1:2"]);
    assert_eq!(ran.out, "http://127.0.0.1:2\n");
    assert_eq!(ran.err, "found on the command line\n");
}

#[test]
fn shells_get_their_completions() {
    let place = Place::new("http://127.0.0.1:1", "");
    let ran = place.run(&["completions", "bash"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("rehearse"));
    assert_eq!(place.run(&["watch"]).code, Some(2));
}
