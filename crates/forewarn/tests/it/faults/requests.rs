//! Faults and the rules: requests that reach them and requests that do not, approvals, requests at the same time.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use forewarn_testkit::{DEADLINE, NEWEST, TestServer, approve, operator, post};
use serde_json::Value;

use super::{faults_left, inject, server};

fn is_enrolled(server: &TestServer, tenant: &str) -> bool {
    server.json(&["tenant", "show", tenant])["enrolled"].as_bool().expect("true or false")
}

/// Polls once, however it ends.
fn poll(server: &TestServer, machine: &str) {
    let request = forewarn_testkit::get(&format!("/vm/{machine}{NEWEST}"));
    let mut stream = TcpStream::connect(server.metadata()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    // A reset connection is one of the ends.
    drop(stream.read(&mut [0; 4_096]));
}

#[test]
fn only_a_request_that_is_processed_enables_events() {
    let server = server();
    for answer in ["500", "429", "reset"] {
        inject(&server, &format!("solo --answer {answer}"));
        poll(&server, "solo");
        assert!(!is_enrolled(&server, "solo"), "{answer} is as if a proxy had answered");
    }
    for (answer, machine, tenant) in
        [("truncated", "solo", "solo"), ("empty", "web_0", "web"), ("jump", "db-0", "db")]
    {
        inject(&server, &format!("{machine} --answer {answer}"));
        poll(&server, machine);
        assert!(is_enrolled(&server, tenant), "{answer} alters the answer only");
    }
}

#[test]
fn approvals_have_faults_of_their_own() {
    let server = server();
    server.enrol(&["db-0"]);
    let id = server.restart("db-0");
    for answer in ["500", "410"] {
        inject(&server, &format!("db-0 --request approve --answer {answer}"));
        assert_eq!(server.status("db-0"), "Scheduled", "a poll has none of them");
        assert_eq!(server.post("db-0", &approve(&[&id])).status().to_string(), answer);
        assert_eq!((server.status("db-0").as_str(), faults_left(&server)), ("Scheduled", 0));
    }
    inject(&server, "db-0 --request approve --answer truncated");
    let mut line = server.connect();
    line.send(&post(&format!("/vm/db-0{NEWEST}"), &approve(&[&id])));
    let cut = line.rest();
    assert!(cut.starts_with("HTTP/1.1 200 OK\r\n") && !cut.contains("\r\n\r\n"), "{cut:?}");
    assert_eq!(server.status("db-1"), "Started", "it was carried out");
    assert_eq!(server.post("db-0", &approve(&[&id])).short(), (200, ""));
}

#[test]
fn a_fault_of_any_request_is_for_polls_and_approvals() {
    let server = server();
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    inject(&server, "solo --request any --next 3 --answer 502");
    assert_eq!(server.post("solo", &approve(&[&id])).status(), 502);
    assert_eq!(server.get("solo", NEWEST).status(), 502);
    assert_eq!(server.post("solo", &approve(&[&id])).status(), 502);
    assert_eq!(server.post("solo", &approve(&[&id])).status(), 200);
}

/// What operators see of the state: documents of all tenants and the audit log.
fn state(server: &TestServer) -> (Value, String) {
    (server.json(&["tenant", "ls"]), operator::read(server.api(), "/v1/audit/export").unwrap().body)
}

/// promise: X1
#[test]
fn faults_change_neither_documents_nor_the_audit_log() {
    let server = server();
    server.enrol(&["db-0", "solo"]);
    server.restart("db-0");
    let before = state(&server);
    for answer in ["500", "reset", "truncated", "empty", "jump", "hide=5s", "slow=1s"] {
        inject(&server, &format!("db-0 --next 1 --answer {answer}"));
        poll(&server, "db-0");
        assert_eq!(faults_left(&server), 0, "{answer}");
    }
    assert_eq!(state(&server), before);
}

#[test]
fn polls_at_the_same_time_take_each_fault_once() {
    const POLLS: usize = 40;
    let server = server();
    server.enrol(&["db-0"]);
    for _ in 0..4 {
        inject(&server, "db-0 --next 15 --answer 500");
    }
    let (failed, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let poll = |machine: &str, failed: &AtomicUsize| {
        let mut line = server.connect();
        for _ in 0..POLLS {
            line.send(&forewarn_testkit::get(&format!("/vm/{machine}{NEWEST}")));
            let status = line.answer().status();
            assert!(matches!(status, 200 | 500), "{status}");
            failed.fetch_add(usize::from(status == 500), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| poll("db-0", &failed));
            scope.spawn(|| poll("db-1", &others));
        }
    });
    assert_eq!((failed.into_inner(), others.into_inner(), faults_left(&server)), (60, 0, 0));
}

#[test]
fn a_machine_that_is_deleted_takes_its_faults_along() {
    let server = server();
    inject(&server, "solo --next 5 --answer 500");
    inject(&server, "db-0 --next 5 --answer 500");
    server.run(&["vm", "forget", "solo"]);
    let left = server.json(&["fault", "ls"]);
    assert_eq!((left["items"][0]["machine"].as_str(), faults_left(&server)), (Some("db/db-0"), 1));
}

#[test]
fn faults_do_not_survive_a_restart() {
    let directory = forewarn_testkit::TestDir::new();
    let data = directory.file("data");
    let start = || TestServer::start_with(crate::program(), &["--data-dir", data.to_str().unwrap()]);
    let first = start();
    inject(&first, "solo --next 5 --answer 500");
    first.signal(rustix::process::Signal::TERM);
    first.end();
    let second = start();
    assert_eq!(faults_left(&second), 0);
    second.document("solo");
}
