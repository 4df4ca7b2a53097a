//! A GET of the events: its bytes, its conditions, and how a document changes.
//!
//! | behaviour | test |
//! |---|---|
//! | type, length, date, server and tag of an answer | `an_answer_is_these_bytes` |
//! | `If-None-Match` in all its forms; `0` is never the number of a document | `who_has_the_document_already_is_told_so_without_it` |
//! | the incarnation is a number: one more for each event that appears, starts or goes, and otherwise the same | `the_incarnation_counts_what_can_be_seen_and_nothing_else` |
//! | one id from Scheduled to gone, `NotBefore` empty but there once Started | `an_event_keeps_its_id_until_it_is_gone` |
//! | a cancelled event is gone without having been Started | `a_cancelled_event_is_simply_gone` |
//! | events in the order of announcement, the same resources for every reader | `events_stay_in_the_order_in_which_they_were_announced` |
//! | another tenant's events are not there | `nobody_sees_what_is_another_tenants` |
//! | `Date` and `NotBefore` are of the same, virtual clock | `the_date_is_that_of_the_clock_that_events_go_by` |
//! | `NotBefore` is a whole second, rounded up, and nothing starts before it | `a_notice_is_rounded_up_to_a_whole_second` |
//! | a caller may wait for news, at most a minute | `a_caller_may_wait_for_news`, `who_cannot_be_understood_waits_for_nothing` |

use serde_json::{Value, json};

use forewarn_testkit::{NEWEST, TestServer, approve, get, request};

#[test]
fn an_answer_is_these_bytes() {
    let server = TestServer::start(crate::program());
    let answer = server.get("solo", NEWEST);
    let name = format!("forewarn/{} IMDS", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        answer.head,
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 37\r\n\
             Server: {name}\r\nETag: \"1\"\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"
        )
    );
    assert_eq!(answer.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
}

#[test]
fn who_has_the_document_already_is_told_so_without_it() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    server.restart("solo");
    let mut line = server.connect();
    let asking =
        |tag: &str| request(&format!("GET {NEWEST}"), &format!("Metadata: true\r\nIf-None-Match: {tag}\r\n"));
    for tag in ["\"2\"", "2", "W/\"2\"", "w/\"2\"", "\"1\", \"2\"", "1,2", "\"2\" , \"3\"", "*"] {
        line.send(&asking(tag));
        let answer = line.answer();
        assert_eq!((answer.short(), answer.header("ETag")), ((304, ""), Some("\"2\"")), "{tag}");
        assert_eq!((answer.header("Content-Length"), answer.header("Content-Type")), (None, None), "{tag}");
        assert_eq!(answer.header("Date"), Some("Thu, 01 Jan 2026 00:00:00 GMT"));
    }
    for tag in ["0", "\"0\"", "1", "\"1\"", "\"22\"", "\"two\"", "", "-2", "2.0"] {
        line.send(&asking(tag));
        let answer = line.answer();
        assert_eq!((answer.status(), answer.header("ETag")), (200, Some("\"2\"")), "{tag}");
    }
    let fields = "Metadata: true\r\nIf-None-Match: \"1\"\r\nIf-None-Match: \"2\"\r\n";
    line.send(&request(&format!("GET {NEWEST}"), fields));
    assert_eq!(line.answer().status(), 304, "on two lines");
}

#[test]
fn the_incarnation_counts_what_can_be_seen_and_nothing_else() {
    let server = TestServer::start(crate::program());
    let seen = |expected: u64, why: &str| {
        let document = server.document("db-0");
        assert_eq!(document["DocumentIncarnation"], json!(expected), "{why}");
    };
    seen(1, "there was nothing yet");
    let first = server.restart("db-0");
    seen(2, "one has appeared");
    server.restart("db-1");
    seen(3, "another one has");
    seen(3, "reading changes nothing");
    server.advance("1m");
    seen(3, "time changes nothing");
    server.run(&["vm", "restart", "solo"]);
    seen(3, "nor do others");
    assert_eq!(server.post("db-2", &approve(&[&first])).status(), 200);
    seen(4, "one has started");
    assert_eq!(server.post("db-2", &approve(&[&first])).status(), 200);
    seen(4, "approving again changes nothing");
    server.advance("5m");
    seen(5, "one is over");
    server.advance("15m");
    seen(7, "the other one has started, and is over");
    let restart = server.restart("db-2");
    server.run(&["event", "cancel", &restart]);
    seen(9, "one has appeared, and was cancelled");
}

#[test]
fn an_event_keeps_its_id_until_it_is_gone() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    let scheduled = server.document("solo")["Events"][0].clone();
    server.advance("15m");
    let started = server.document("solo")["Events"][0].clone();
    let mut expected = scheduled.clone();
    (expected["EventStatus"], expected["NotBefore"]) = (json!("Started"), json!(""));
    assert_eq!((started, &scheduled["EventId"]), (expected, &Value::from(id.as_str())));
    server.advance("5m");
    assert_eq!(server.get("solo", NEWEST).body, r#"{"DocumentIncarnation":4,"Events":[]}"#);
    assert_ne!(server.restart("solo"), id, "an id is never used again");
}

#[test]
fn a_cancelled_event_is_simply_gone() {
    let server = TestServer::start(crate::program());
    server.enrol(&["web_0"]);
    server.run(&["host", "update", &server.host_of("web_0")]);
    let id = server.ids("web_0").remove(0);
    server.run(&["event", "cancel", &id]);
    assert_eq!(server.get("web_0", NEWEST).body, r#"{"DocumentIncarnation":3,"Events":[]}"#);
    server.advance("1h");
    assert_eq!(server.get("web_0", NEWEST).body, r#"{"DocumentIncarnation":3,"Events":[]}"#, "for good");
}

#[test]
fn events_stay_in_the_order_in_which_they_were_announced() {
    let server = TestServer::start(crate::program());
    server.enrol(&["web_0"]);
    let mut ids: Vec<_> = ["web_3", "web_1", "web_2", "web_0"].map(|name| server.restart(name)).into();
    for reader in ["web_0", "web_1", "web_4"] {
        assert_eq!(server.ids(reader), ids, "{reader}");
    }
    assert_eq!(server.post("web_0", &approve(&[&ids[1]])).status(), 200);
    assert_eq!(server.ids("web_0"), ids, "a start moves nothing");
    server.advance("5m");
    ids.remove(1);
    assert_eq!(server.ids("web_0"), ids);
}

#[test]
fn nobody_sees_what_is_another_tenants() {
    let server = TestServer::start(crate::program());
    let others = ["db-0", "FrontEnd_IN_0", "spot-0", "batch_0", "web_0"];
    server.enrol(&others);
    server.enrol(&["solo"]);
    server.restart("solo");
    for other in others {
        assert_eq!(server.document(other), json!({ "DocumentIncarnation": 1, "Events": [] }), "{other}");
    }
    // What is done to a shared host is told to each tenant by itself.
    let host = server.host_of("solo");
    assert_eq!(host, server.host_of("web_0"), "the fleet of `dev` has them together");
    server.run(&["host", "update", &host]);
    let (solo, web) = (server.document("solo"), server.document("web_3"));
    assert_eq!(solo["Events"][1]["Resources"], json!(["solo"]));
    assert_eq!(web["Events"][0]["Resources"], json!(["web_0"]));
    assert_ne!(solo["Events"][1]["EventId"], web["Events"][0]["EventId"]);
    assert_eq!((&solo["DocumentIncarnation"], &web["DocumentIncarnation"]), (&json!(3), &json!(2)));
}

#[test]
fn the_date_is_that_of_the_clock_that_events_go_by() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    server.advance("90s");
    server.restart("solo");
    let answer = server.get("solo", NEWEST);
    assert_eq!(answer.header("Date"), Some("Thu, 01 Jan 2026 00:01:30 GMT"));
    assert!(answer.body.contains(r#""NotBefore":"Thu, 01 Jan 2026 00:16:30 GMT""#), "{}", answer.body);
    server.run(&["clock", "next"]);
    let refusal = server.get("solo", "/metadata/nothing");
    assert_eq!(refusal.header("Date"), Some("Thu, 01 Jan 2026 00:16:30 GMT"), "refusals too");
    assert_eq!(server.status("solo"), "Started");
}

#[test]
fn a_notice_is_rounded_up_to_a_whole_second() {
    let server = TestServer::start_at(crate::program(), "2026-01-01T00:00:00.250Z", &[]);
    server.enrol(&["solo"]);
    server.restart("solo");
    assert_eq!(server.document("solo")["Events"][0]["NotBefore"], "Thu, 01 Jan 2026 00:15:01 GMT");
    server.advance("14m59s");
    assert_eq!(
        server.get("solo", NEWEST).header("Date"),
        Some("Thu, 01 Jan 2026 00:15:00 GMT"),
        "a whole second"
    );
    assert_eq!(server.status("solo"), "Scheduled", "a second is left");
    server.advance("1s");
    assert_eq!(server.status("solo"), "Started");
    assert_eq!(server.get("solo", NEWEST).header("Date"), Some("Thu, 01 Jan 2026 00:15:01 GMT"));
}

#[test]
fn a_caller_may_wait_for_news() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    let mut line = server.connect();
    line.send(&get(&format!("{NEWEST}&wait=60s&incarnation=7")));
    assert_eq!(line.answer().header("ETag"), Some("\"1\""), "it is another one already");
    line.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1")));
    // The request may arrive before the news or after them: it is answered with them either way.
    server.run(&["vm", "restart", "solo"]);
    let news = line.answer();
    assert_eq!((news.status(), news.header("ETag")), (200, Some("\"2\"")));
    line.send(&get(&format!("{NEWEST}&wait=0s&incarnation=2")));
    assert_eq!(line.answer().header("ETag"), Some("\"2\""), "there are none");
    line.send(&get(&format!("{NEWEST}&incarnation=2")));
    assert_eq!(line.answer().header("ETag"), Some("\"2\""), "nobody wants to wait");
}

#[test]
fn who_cannot_be_understood_waits_for_nothing() {
    let server = TestServer::start(crate::program());
    let body =
        r#"{ "error": "Bad request: wait must be like 30s, at most 60s, and incarnation must be a number" }"#;
    for query in [
        "wait=61s&incarnation=1",
        "wait=30&incarnation=1",
        "wait=1m&incarnation=1",
        "wait=1s",
        "wait=1s&incarnation=x",
    ] {
        assert_eq!(server.get("solo", &format!("{NEWEST}&{query}")).short(), (400, body), "{query}");
    }
}
