//! `events`, `approve`, `status`, `find` and `completions`.

use serde_json::Value;

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, id, scheduled};
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
    for what in ["machine", "web_0", "drained", "Reboot", "Scheduled", "ready", "drain", "done"] {
        assert!(shown.contains(what), "{what}: {shown}");
    }
    assert!(agent.stop().success());
}

#[test]
fn without_an_agent_status_says_what_to_do() {
    let place = Place::new("http://127.0.0.1:1", "listen = \"127.0.0.1:1\"\n");
    let ran = place.run(&["status"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("cannot connect to the agent at 127.0.0.1:1"), "{ran:?}");
    assert!(ran.err.contains("hint: systemctl status forewarn-agent"), "{ran:?}");
}

/// promise: A6
#[test]
fn find_says_where_the_endpoint_is() {
    let place = Place::new("http://127.0.0.1:1", "");
    let ran = place.run(&["find"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "http://127.0.0.1:1\n"), "{ran:?}");
    let ran = place.run(&["find", "--endpoint", "127.0.0.1:2"]);
    assert_eq!(ran.out, "http://127.0.0.1:2\n");
}

#[test]
fn shells_get_their_completions() {
    let place = Place::new("http://127.0.0.1:1", "");
    let ran = place.run(&["completions", "bash"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("rehearse"));
    assert_eq!(place.run(&["watch"]).code, Some(2));
}
