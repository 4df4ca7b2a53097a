//! A directory that a server of the previous format has written: this version answers as that one did.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::durable::place::Place;
use forewarn_testkit::operator::read;
use forewarn_testkit::{RawResponse, TestServer, ask};

/// The directory, and the answers of the server that has written it.
fn written() -> (Place, Vec<Value>) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/format-0");
    let place = Place::new();
    fs::create_dir(place.data()).unwrap();
    for name in ["journal.db", "journal.db-wal", "journal.reach", "lock"] {
        fs::copy(source.join(name), place.data().join(name)).unwrap();
    }
    let responses = fs::read(source.join("responses.json")).unwrap();
    (place, serde_json::from_slice(&responses).unwrap())
}

fn repeat(server: &TestServer) -> RawResponse {
    let (api, body) = (server.api(), r#"{"command":"redeploy","machine":"web_0"}"#);
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let key = "Idempotency-Key: redeploy-web\r\n";
    ask(api, &format!("POST /v1/commands HTTP/1.1\r\nHost: {api}\r\n{key}{fields}\r\n{body}")).unwrap()
}

/// A body without the members that depend on the attempts of this process to reach a webhook. The previous version
/// wrote `told` for `last_entry`, and `untold` for `unnotified`.
fn durable(body: &str) -> Value {
    let mut value = serde_json::from_str::<Value>(body).unwrap_or_else(|_| body.into());
    if let Some(members) = value.as_object_mut() {
        ["problem", "error", "failing_since"].iter().for_each(|key| drop(members.remove(*key)));
        for (old, new) in [("told", "last_entry"), ("untold", "unnotified")] {
            if let Some(value) = members.remove(old) {
                members.insert(new.to_owned(), value);
            }
        }
    }
    value
}

fn check(server: &TestServer, responses: &[Value]) {
    for expected in responses {
        let (path, body) = (expected["path"].as_str().unwrap(), expected["body"].as_str().unwrap());
        if path == "/v1/audit/export" {
            // The program reads the whole stream, and prints it byte for byte.
            assert_eq!(server.run(&["audit", "export", "-"]), body);
            continue;
        }
        let answer = if path.starts_with('/') { read(server.api(), path).unwrap() } else { repeat(server) };
        assert_eq!(Value::from(answer.status()), expected["status"], "{path}");
        assert_eq!(durable(&answer.body), durable(body), "{path}");
    }
}

/// promise: D5
#[test]
fn a_directory_of_the_previous_format_is_upgraded_and_answers_as_before() {
    let (place, responses) = written();
    assert!(responses.len() > 30);
    let server = place.start_with(&["--clock", "frozen"]);
    check(&server, &responses);
    assert!(place.data().join("journal.format-0.db").exists(), "the old journal is kept");
    server.kill();
    check(&place.start_with(&["--clock", "frozen"]), &responses);
}
