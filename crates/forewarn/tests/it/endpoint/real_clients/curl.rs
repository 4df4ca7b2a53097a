//! The commands of the documentation, as they are written there.

use super::{Centre, DB_0, SOLO, STRANGER};

const GET: &str =
    "curl -H Metadata:true http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01";

/// promise: M6
#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn the_documented_curl_commands_read_and_approve() {
    let centre = Centre::start();
    assert_eq!(centre.shell(SOLO, GET), r#"{"DocumentIncarnation":1,"Events":[]}"#);
    centre.server.run(&["vm", "restart", "solo"]);
    let document: serde_json::Value = serde_json::from_str(&centre.shell(SOLO, GET)).unwrap();
    let id = document["Events"][0]["EventId"].as_str().unwrap();
    let approve = format!(
        "curl -H Metadata:true -X POST -d '{{\"StartRequests\": [{{\"EventId\": \"{id}\"}}]}}' \
         http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
    );
    assert_eq!(centre.shell(SOLO, &approve), "");
    let document: serde_json::Value = serde_json::from_str(&centre.shell(SOLO, GET)).unwrap();
    assert_eq!(document["Events"][0]["EventStatus"], "Started");
    assert_eq!(centre.shell(DB_0, GET), r#"{"DocumentIncarnation":1,"Events":[]}"#, "another tenant");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn without_the_header_curl_is_told_what_is_missing() {
    let centre = Centre::start();
    let bare = GET.replace(" -H Metadata:true", "");
    let expected = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
    assert_eq!(centre.shell(SOLO, &bare), expected);
    assert_eq!(centre.shell(SOLO, &bare.replace("curl", "curl -o /dev/null -w %{http_code}")), "400");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn the_preview_is_approved_without_the_header() {
    let centre = Centre::start();
    let get = "curl http://169.254.169.254/metadata/scheduledevents?api-version=2017-03-01";
    centre.shell(DB_0, get);
    centre.server.run(&["vm", "restart", "db-0"]);
    let document: serde_json::Value = serde_json::from_str(&centre.shell(DB_0, get)).unwrap();
    let event = &document["Events"][0];
    assert_eq!(event["Resources"][0], "_db-0");
    let id = event["EventId"].as_str().unwrap();
    let approve = format!(
        "curl -w '%{{http_code}}' -X POST -d '{{\"DocumentIncarnation\": \"2\", \"StartRequests\": [{{\"EventId\": \"{id}\"}}]}}' \
         http://169.254.169.254/metadata/scheduledevents?api-version=2017-03-01"
    );
    assert_eq!(centre.shell(DB_0, &approve), "200");
    assert!(centre.shell(DB_0, get).contains(r#""EventStatus":"Started""#));
}

#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn who_calls_is_known_by_the_address_and_a_stranger_learns_nothing() {
    let centre = Centre::start();
    let name = "curl -s -H Metadata:true 'http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text'";
    assert_eq!(centre.shell(DB_0, name), "db-0");
    assert_eq!(centre.shell(SOLO, name), "solo");
    let forbidden = r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#;
    for command in
        [name, GET, "curl http://169.254.169.254/", "curl http://169.254.169.254/metadata/versions"]
    {
        assert_eq!(centre.shell(STRANGER, command), forbidden, "{command}");
    }
    // What it claims to be does not matter.
    let claim = name.replace("/metadata/", "/vm/solo/metadata/");
    assert_eq!(centre.shell(STRANGER, &claim), forbidden);
}
