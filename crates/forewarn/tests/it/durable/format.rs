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
        // Cursors were numbers.
        for cursor in ["next", "head", "swept"] {
            let as_text = members.get(cursor).and_then(Value::as_u64).map(|number| number.to_string());
            as_text.into_iter().for_each(|text| drop(members.insert(cursor.to_owned(), text.into())));
        }
        if members.get("swept").is_some_and(|swept| swept == "0") {
            members.remove("swept");
        }
        ["problem", "error", "failing_since"].iter().for_each(|key| drop(members.remove(*key)));
        // One number for all clusters became one for each: `format_1` tests that messages go on where they were.
        ["told", "last_entries"].iter().for_each(|key| drop(members.remove(*key)));
        // A setting that is new; an old cluster has its default.
        if members.get("enrolment").is_some_and(|rule| rule == "on-first-poll") {
            members.remove("enrolment");
        }
        // A webhook had a schema; its key is new.
        members.remove("key").into_iter().for_each(|key| assert_eq!(key, false));
        for (old, new) in [("untold", "unnotified"), ("schema", "format")] {
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

/// The common log of all clusters stays as it is, and the chains of its clusters continue it.
/// promise: C5, D5
#[test]
fn an_upgraded_audit_log_verifies_together_with_what_follows() {
    let (place, responses) = written();
    let export = responses.iter().find(|response| response["path"] == "/v1/audit/export").unwrap();
    let old = export["body"].as_str().unwrap();
    let server = place.start_with(&["--clock", "frozen"]);
    server.run(&["cluster", "create", "later"]);
    for cluster in ["default", "north", "later"] {
        server.run(&["--cluster", cluster, "brake", "on"]);
        server.run(&["--cluster", cluster, "brake", "off"]);
    }
    assert!(server.run(&["audit", "export", "-"]).starts_with(old));
    let verified = server.run(&["audit", "verify"]);
    let (end, next) = (old.lines().count(), old.lines().count() + 1);
    for chain in [
        format!(
            "\n  common log of all clusters: {end} entries, from 1 to {end}. The last entry is common:{end}:"
        ),
        format!("\n  shared: 1 entry, from {next} to {next}. "),
        format!("\n  default (cluster-0): 4 entries, from {next} to {}. ", end + 4),
        "\n  later (cluster-3): 4 entries, from 1 to 4. ".to_owned(),
    ] {
        assert!(verified.contains(&chain), "{chain}{verified}");
    }
    let north = server.run(&["audit", "verify", "--cluster", "north"]);
    assert!(
        north.contains("common log") && north.contains("north (cluster-1)") && !north.contains("default")
    );
}
