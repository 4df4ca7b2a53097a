//! How connections live and end, and the word before a body.
//!
//! | behaviour | test |
//! |---|---|
//! | kept alive; requests may be sent ahead | `a_connection_is_kept_and_requests_may_be_sent_ahead` |
//! | `Connection: close` is honoured and echoed, on refusals too | `who_wants_to_close_is_told_the_same_and_closed` |
//! | HTTP/1.0 | `the_old_protocol_works_without_a_host_and_closes` |
//! | `Expect: 100-continue` | `who_waits_for_the_word_gets_it`, `a_refusal_comes_instead_of_the_word` |
//! | a poller that stays connected sees every change, and is forgotten when its machine is gone | `a_poller_on_one_connection_sees_every_change`, `a_machine_that_is_gone_is_a_stranger_on_the_same_connection` |
//! | many pollers at once | `many_pollers_are_answered_side_by_side` |

use std::thread;

use forewarn_testkit::{NEWEST, RawConnection, TestServer, approve, get, post, request};

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[test]
fn a_connection_is_kept_and_requests_may_be_sent_ahead() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    line.send(&[get(NEWEST), post(NEWEST, "x"), get("/metadata/nothing"), get(NEWEST)].concat());
    assert_eq!(line.answer().short(), EMPTY);
    assert_eq!(line.answer().status(), 400, "the body of a refused request is not the next request");
    assert_eq!(line.answer().status(), 400);
    let last = line.answer();
    assert_eq!((last.short(), last.header("Connection")), (EMPTY, None));
    // Different callers may share one, where the path names them.
    line.send(&get(&format!("/vm/web_0{NEWEST}")));
    assert_eq!(line.answer().short(), EMPTY);
    line.end();
    assert_eq!(line.rest(), "");
}

#[test]
fn a_request_may_come_in_pieces() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    for byte in format!("{}{}", post(NEWEST, "[]"), get(NEWEST)).chars() {
        line.send(&byte.to_string());
    }
    assert_eq!(line.answer().short(), (400, r#"{ "error": "Bad request: the body must be an object" }"#));
    assert_eq!(line.answer().short(), EMPTY);
}

#[test]
fn who_wants_to_close_is_told_the_same_and_closed() {
    let server = TestServer::start(crate::program());
    let closing = |line: &str| request(line, "Metadata: true\r\nConnection: close\r\n");
    for (bytes, status) in [
        (closing(&format!("GET {NEWEST}")), 200),
        (closing(&format!("GET {NEWEST}")).replace("close", "keep-alive, Close"), 200),
        (closing("GET /elsewhere"), 404),
        (closing("GET /metadata/instance"), 400),
        (closing(&format!("PUT {NEWEST}")), 405),
        (closing(&format!("POST {NEWEST}")).replace("\r\n\r\n", "\r\nContent-Length: 2\r\n\r\n{}"), 400),
    ] {
        let mut line = server.connect();
        line.send(&bytes);
        let answer = line.answer();
        assert_eq!((answer.status(), answer.header("Connection")), (status, Some("close")), "{bytes}");
        assert_eq!(line.rest(), "");
    }
}

#[test]
fn the_old_protocol_works_without_a_host_and_closes() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    let body = approve(&[&id]);
    let mut line = server.connect();
    line.send(&format!("GET {NEWEST} HTTP/1.0\r\nMetadata: true\r\n\r\n"));
    let answer = line.answer();
    assert_eq!((answer.status(), answer.header("Connection")), (200, Some("close")));
    assert!(answer.body.contains(&id));
    assert_eq!(line.rest(), "");
    let fields = format!("Metadata: true\r\nContent-Length: {}\r\n", body.len());
    let approved = server.say(&format!("POST {NEWEST} HTTP/1.0\r\n{fields}\r\n{body}"));
    assert_eq!((approved.short(), approved.header("Connection")), ((200, ""), Some("close")));
}

#[test]
fn who_sends_nothing_more_is_still_answered() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    line.send(&get(NEWEST));
    line.end();
    assert_eq!(line.answer().short(), EMPTY);
    assert_eq!(line.rest(), "");
}

#[test]
fn who_waits_for_the_word_gets_it() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    let body = approve(&[&server.restart("solo")]);
    let fields = format!("Metadata: true\r\nContent-Length: {}\r\nExpect: 100-continue\r\n", body.len());
    let mut line = server.connect();
    line.send(&request(&format!("POST {NEWEST}"), &fields));
    assert_eq!(line.answer().head, CONTINUE);
    line.send(&body);
    assert_eq!(line.answer().short(), (200, ""));
    line.send(&get(NEWEST));
    assert_eq!(line.answer().status(), 200, "and the connection goes on");
}

#[test]
fn a_refusal_comes_instead_of_the_word() {
    let server = TestServer::start(crate::program());
    for (line, fields) in [
        (format!("POST {NEWEST}"), ""),
        ("POST /metadata/versions".to_owned(), "Metadata: true\r\n"),
        ("POST /metadata/scheduledevents?api-version=latest".to_owned(), "Metadata: true\r\n"),
    ] {
        let mut connection = server.connect();
        let fields = format!("{fields}Content-Length: 5\r\nExpect: 100-continue\r\n");
        connection.send(&request(&line, &fields));
        let answer = connection.answer();
        assert!(answer.status() >= 400, "{line}");
        assert_eq!(answer.header("Connection"), Some("close"), "a body may or may not follow");
        assert_eq!(connection.rest(), "");
    }
}

#[test]
fn a_poller_on_one_connection_sees_every_change() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    let mut poll = |incarnation: u64, status: &str| {
        // The same bytes again and again, among others: nothing that was remembered may be shown.
        for target in [NEWEST, "/vm/db-0/metadata/versions", NEWEST] {
            line.send(&get(target));
            let answer = line.answer();
            assert_eq!(answer.status(), 200, "{target}");
            if target == NEWEST {
                assert_eq!(answer.header("ETag"), Some(format!("\"{incarnation}\"").as_str()));
                assert_eq!(answer.body.contains("EventStatus"), !status.is_empty());
                assert!(answer.body.contains(status), "{}", answer.body);
            }
        }
    };
    poll(1, "");
    let id = server.restart("solo");
    poll(2, "Scheduled");
    assert_eq!(server.post("solo", &approve(&[&id])).status(), 200);
    poll(3, "Started");
    server.advance("5m");
    poll(4, "");
}

#[test]
fn a_machine_that_is_gone_is_a_stranger_on_the_same_connection() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    let poll = get(&format!("/vm/db-2{NEWEST}"));
    for status in [200, 200] {
        line.send(&poll);
        assert_eq!(line.answer().status(), status);
    }
    server.run(&["vm", "delete", "db-2"]);
    line.send(&poll);
    let forbidden = r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#;
    assert_eq!(line.answer().short(), (403, forbidden));
    line.send(&get(&format!("/vm/db-1{NEWEST}")));
    assert_eq!(line.answer().status(), 200, "the others are still there");
}

#[test]
fn many_pollers_are_answered_side_by_side() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    let at = server.metadata();
    let poll = move |id: &str| {
        for _ in 0..20 {
            let mut line = RawConnection::connect(at);
            line.send(&get(NEWEST));
            assert!(line.answer().body.contains(id));
            line.send(&get("/metadata/instance?api-version=2021-02-01"));
            assert_eq!(line.answer().status(), 200);
        }
    };
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| poll(&id));
        }
    });
}
