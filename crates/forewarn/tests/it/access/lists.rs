//! Requests with empty lists: the server rejects them and does nothing.

use serde_json::{Value, json};

use crate::access::place::{self, Place, Request, order, read};
use forewarn_testkit::TestServer;

fn post(server: &TestServer, token: &str, line: &str, body: &Value) -> u16 {
    let (line, body) = (format!("POST {line}"), body.to_string());
    Request { line: &line, token: Some(token), body: &body, ..Request::default() }.send(server).status()
}

/// promise: C3
#[test]
fn an_approval_names_its_events_or_says_all() {
    let place = Place::new();
    let server = place.start();
    let admin = place.token("admin --role admin");
    place.enrol(&server);
    for machine in ["web_0", "web_1"] {
        let restart = json!({ "command": "restart", "machine": machine }).to_string();
        assert_eq!(order(&server, &admin, &restart).status(), 200);
    }
    let approved = || {
        let events = place::json(&read(&server, &admin, "/v1/events?tenant=web"));
        let events = events["items"].as_array().unwrap().clone();
        (events.len(), events.iter().filter(|event| event["approved"] == true).count())
    };
    for body in [
        r#"{"command":"approve","tenant":"web","events":[]}"#,
        r#"{"command":"approve","tenant":"web"}"#,
        r#"{"command":"approve","tenant":"web","events":null}"#,
    ] {
        let answer = order(&server, &admin, body);
        assert_eq!(answer.status(), 400, "{body}: {answer:?}");
        assert_eq!(approved(), (2, 0), "{body}");
    }
    let all = order(&server, &admin, r#"{"command":"approve","tenant":"web","events":"all"}"#);
    assert_eq!(all.status(), 200, "{all:?}");
    let unapproved = |(there, approved): (usize, usize)| there - approved;
    let started = place::json(&read(&server, &admin, "/v1/events?tenant=web&status=Scheduled"));
    assert!(unapproved(approved()) == 0 || started["items"] == json!([]), "{started}");
}

/// promise: C3
#[test]
fn no_request_with_an_empty_list_reaches_everything() {
    let place = Place::new();
    let server = place.start();
    let admin = place.token("admin --role admin");
    for (line, body) in [
        ("/v1/commands", json!({ "command": "update_hosts", "hosts": [] })),
        ("/v1/commands", json!({ "command": "start_rollout", "kind": "reboot", "hosts": [] })),
        ("/v1/rollouts/preview", json!({ "work": "reboot", "hosts": [] })),
        ("/v1/scalesets/front/scale", json!({ "capacity": 1, "hosts": [] })),
        ("/v1/scalesets/front/scale", json!({ "capacity": 1, "zones": [] })),
        ("/v1/scalesets/front/upgrade", json!({ "instances": [] })),
        ("/v1/scalesets/front/upgrade", json!({})),
        ("/v1/scalesets/front/delete-instances", json!({ "instances": [] })),
        ("/v1/tokens", json!({ "name": "t", "role": "operator", "tenants": [] })),
        ("/v1/tokens", json!({ "name": "t", "role": "operator", "clusters": [] })),
        ("/v1/webhooks", json!({ "name": "w", "url": "http://127.0.0.1:9/", "types": [] })),
        ("/v1/webhooks", json!({ "name": "w", "url": "http://127.0.0.1:9/", "tenants": [] })),
        ("/v1/webhooks", json!({ "name": "w", "url": "http://127.0.0.1:9/", "clusters": [] })),
    ] {
        assert_eq!(post(&server, &admin, line, &body), 400, "{line} {body}");
    }
    let upgrade = json!({ "instances": "all" });
    assert_eq!(post(&server, &admin, "/v1/scalesets/front/upgrade", &upgrade), 200);
    for words in [
        ["token", "create", "t", "--role", "viewer", "--cluster", ""].as_slice(),
        &["token", "create", "t", "--role", "viewer", "--tenant", ""],
        &["webhook", "create", "w", "http://127.0.0.1:9/", "--cluster", ""],
        &["event", "approve", "--tenant", ""],
        &["scaleset", "upgrade", "front"],
    ] {
        let ran = place.run(words);
        assert!(!ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stdout));
    }
    assert!(!place.out(&["token", "ls"]).contains("viewer"), "no token was issued");
}
