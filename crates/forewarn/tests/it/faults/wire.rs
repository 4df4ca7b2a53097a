//! Each fault as bytes on the connection: so often as it was asked for, then the usual answer.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use forewarn_testkit::{DEADLINE, NEWEST, TestServer, get, operator, wait_until};

use super::{faults_left, inject, server};

/// A connection whose poll has taken the one fault of the server. A later poll cannot overtake it.
fn polling_into_fault(server: &TestServer, machine: &str) -> TcpStream {
    let stream = polling(server, machine);
    wait_until("the fault is used", || (faults_left(server) == 0).then_some(()));
    stream
}

/// A connection with a poll of a machine on its way.
fn polling(server: &TestServer, machine: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.metadata()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(get(&format!("/vm/{machine}{NEWEST}")).as_bytes()).unwrap();
    stream
}

#[test]
fn a_status_is_answered_with_its_body_and_then_no_longer() {
    let server = server();
    let usual = server.get("db-0", NEWEST);
    for (status, body, retry_after) in [
        (400, r#"{ "error": "Bad request: the request is malformed" }"#, None),
        (401, r#"{ "error": "Unauthorized" }"#, None),
        (403, r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#, None),
        (404, r#"{ "error": "Not found" }"#, None),
        (408, r#"{ "error": "Request timeout" }"#, None),
        (410, r#"{ "error": "Gone" }"#, None),
        (429, r#"{ "error": "Too many requests" }"#, Some("1")),
        (500, r#"{ "error": "Internal server error" }"#, None),
        (502, r#"{ "error": "Bad gateway" }"#, None),
        (503, r#"{ "error": "Service unavailable" }"#, Some("1")),
        (504, r#"{ "error": "Gateway timeout" }"#, None),
    ] {
        inject(&server, &format!("db-0 --next 2 --answer {status}"));
        for _ in 0..2 {
            let answer = server.get("db-0", NEWEST);
            assert_eq!(answer.short(), (status, body));
            assert_eq!(answer.header("Retry-After"), retry_after, "{status}");
            assert_eq!(server.get("db-1", NEWEST), usual, "another machine of the same tenant");
        }
        assert_eq!(server.get("db-0", NEWEST), usual);
    }
}

#[test]
fn a_connection_that_stays_open_gets_a_fault_in_the_midst_of_its_polls() {
    let server = server();
    let mut line = server.connect();
    let poll = get(&format!("/vm/solo{NEWEST}"));
    let mut statuses = Vec::new();
    for turn in 0..8 {
        if turn == 4 {
            inject(&server, "solo --next 2 --answer 503");
        }
        line.send(&poll);
        statuses.push(line.answer().status());
    }
    assert_eq!(statuses, [200, 200, 200, 200, 503, 503, 200, 200]);
}

#[test]
fn a_reset_connection_has_no_answer() {
    let server = server();
    inject(&server, "solo --next 2 --answer reset");
    for _ in 0..2 {
        let error = polling(&server, "solo").read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    server.document("solo");
}

#[test]
fn a_request_that_hangs_ends_with_the_patience_of_its_client() {
    let server = server();
    inject(&server, "solo --answer hang");
    let mut stream = polling_into_fault(&server, "solo");
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    server.document("solo");
    let metrics = || operator::read(server.api(), "/metrics").unwrap().body;
    let is_open = || metrics().lines().any(|line| line == "forewarn_metadata_connections_open 1");
    wait_until("only the request that hangs is open", || is_open().then_some(()));
    drop(stream);
    let is_closed = || metrics().lines().any(|line| line == "forewarn_metadata_connections_open 0");
    wait_until("it is closed with its client", || is_closed().then_some(()));
}

#[test]
fn a_truncated_answer_is_shorter_than_it_says() {
    let server = server();
    inject(&server, "solo --next 2 --answer truncated");
    let usual = server.get("db-0", NEWEST).body;
    for _ in 0..2 {
        let mut text = String::new();
        polling(&server, "solo").read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", usual.len())), "{head}");
        assert_eq!(body, &usual[..usual.len() / 2]);
    }
    server.document("solo");
}

#[test]
fn an_empty_answer_is_a_success_without_a_body() {
    let server = server();
    inject(&server, "solo --next 2 --answer empty");
    for _ in 0..2 {
        let answer = server.get("solo", NEWEST);
        assert_eq!((answer.short(), answer.header("Content-Length")), ((200, ""), Some("0")));
    }
    server.document("solo");
}

#[test]
fn a_slow_answer_is_the_usual_one_later() {
    let server = server();
    let usual = server.get("db-0", NEWEST).body;
    inject(&server, "solo --answer slow=1s");
    let begin = Instant::now();
    assert_eq!(server.get("solo", NEWEST).body, usual);
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    inject(&server, "solo --answer slow=10m");
    // A slow answer does not delay the next poll.
    let waiting = polling_into_fault(&server, "solo");
    server.document("solo");
    drop(waiting);
}

#[test]
fn a_request_that_is_refused_uses_up_no_fault() {
    let server = server();
    inject(&server, "solo --answer 500");
    for target in [
        "/metadata/scheduledevents",
        "/metadata/scheduledevents?api-version=1999-01-01",
        "/metadata/versions",
        "/metadata/instance?api-version=2021-02-01",
    ] {
        server.get("solo", target);
    }
    assert_eq!(faults_left(&server), 1);
    assert_eq!(server.get("solo", NEWEST).status(), 500);
}
