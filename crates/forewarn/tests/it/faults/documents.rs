//! Faults that alter the document of one machine: an incarnation that jumps, events that appear late.

use forewarn_testkit::{NEWEST, TestServer, get, request};
use serde_json::{Value, json};

use super::{faults_left, inject, server};

/// Incarnation, number of events, and tag of the document of a machine.
fn seen(server: &TestServer, machine: &str) -> (u64, usize, String) {
    let answer = server.get(machine, NEWEST);
    let document: Value = serde_json::from_str(&answer.body).unwrap();
    let events = document["Events"].as_array().unwrap().len();
    let tag = answer.header("ETag").unwrap().to_owned();
    (document["DocumentIncarnation"].as_u64().unwrap(), events, tag)
}

#[test]
fn an_incarnation_jumps_once_and_is_the_true_one_again() {
    let server = server();
    server.enrol(&["db-0"]);
    server.restart("db-0");
    let (true_one, _, _) = seen(&server, "db-0");
    inject(&server, "db-0 --answer jump");
    assert_eq!(seen(&server, "db-1"), (true_one, 1, format!("\"{true_one}\"")));
    let jumped = true_one + 1_000;
    assert_eq!(seen(&server, "db-0"), (jumped, 1, format!("\"{jumped}\"")));
    assert_eq!(seen(&server, "db-0"), (true_one, 1, format!("\"{true_one}\"")));
    assert_eq!(server.json(&["tenant", "show", "db"])["incarnation"], true_one);
    // A client that has the true document sees the other one as new.
    inject(&server, "db-0 --next 2 --answer jump");
    for (known, status) in [(true_one, 200), (jumped, 304), (true_one, 304)] {
        let fields = format!("Metadata: true\r\nIf-None-Match: \"{known}\"\r\n");
        let answer = server.say(&request(&format!("GET /vm/db-0{NEWEST}"), &fields));
        assert_eq!(answer.status(), status, "{known}");
    }
}

#[test]
fn an_event_is_hidden_from_one_machine_until_shortly_before_its_start() {
    let server = server();
    server.enrol(&["db-0"]);
    let (before, _, _) = seen(&server, "db-0");
    let fault = inject(&server, "db-0 --answer hide=5s");
    assert_eq!((&fault["left"], &fault["machine"]), (&Value::Null, &json!("db/db-0")));
    server.run(&["vm", "restart", "db-0"]);
    for span in ["0s", "14m54s"] {
        server.advance(span);
        assert_eq!(seen(&server, "db-0"), (before, 0, format!("\"{before}\"")), "{span}");
        assert_eq!(seen(&server, "db-1").1, 1, "{span}");
    }
    server.advance("1s");
    let after = before + 1;
    assert_eq!(seen(&server, "db-0"), (after, 1, format!("\"{after}\"")), "as if it were announced now");
    server.run(&["vm", "restart", "db-1"]);
    assert_eq!(seen(&server, "db-0").1, 1, "the next event is hidden, too");
    assert_eq!(server.json(&["fault", "clear", "db-0"])["cleared"], 1);
    assert_eq!(seen(&server, "db-0"), seen(&server, "db-1"));
}

#[test]
fn hiding_may_be_for_some_polls_only_and_beside_other_faults() {
    let server = server();
    server.enrol(&["solo"]);
    server.run(&["vm", "restart", "solo"]);
    inject(&server, "solo --next 2 --answer hide=5s");
    inject(&server, "solo --answer 500");
    inject(&server, "solo --answer jump");
    assert_eq!(server.get("solo", NEWEST).status(), 500, "it reads no document, so it hides none");
    assert_eq!(seen(&server, "solo").0, 1_001);
    assert_eq!(seen(&server, "solo").1, 0);
    assert_eq!((seen(&server, "solo").1, faults_left(&server)), (1, 0));
}

#[test]
fn whoever_waits_for_a_hidden_event_is_answered_when_it_appears() {
    let server = server();
    server.enrol(&["solo"]);
    inject(&server, "solo --answer hide=5s");
    server.run(&["vm", "restart", "solo"]);
    let (shown, _, _) = seen(&server, "solo");
    let mut line = server.connect();
    line.send(&get(&format!("/vm/solo{NEWEST}&wait=60s&incarnation={shown}")));
    server.advance("14m54s");
    server.advance("1s");
    let document: Value = serde_json::from_str(&line.answer().body).unwrap();
    assert_eq!(document["DocumentIncarnation"], shown + 1);
    assert_eq!(document["Events"][0]["EventStatus"], "Scheduled");
}
