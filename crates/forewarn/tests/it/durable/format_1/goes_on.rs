//! The next server goes on where the last one of format 1 stopped: requests, operations, events, webhooks, the audit log, and
//! resource groups.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::answers::{CLUSTERS, read, send};
use super::{OldData, Receivers, exported, fixture, more, repeat, start};
use crate::access::place;
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver};
use forewarn_testkit::{NEWEST, RawResponse, TestServer, approve, ask, clean_command, get, post, wait_until};

fn order(server: &TestServer, cluster: &str, command: &Value) -> RawResponse {
    send(server, &format!("POST /v1/commands?cluster={cluster}"), "", &command.to_string())
}

/// The events that a machine sees.
fn events(server: &TestServer, machine: &str) -> Vec<Value> {
    let answer = ask(server.metadata(), &get(&format!("/vm/{machine}{NEWEST}"))).unwrap();
    place::json(&answer)["Events"].as_array().unwrap_or_else(|| panic!("{answer:?}")).clone()
}

fn ids(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(Seen::id).collect()
}

/// promise: C2, D5
#[test]
fn a_request_that_is_repeated_gets_the_outcome_that_it_had() {
    let old = OldData::stopped();
    let requests = read(&fixture("answers/repeated.json"));
    assert!(requests.len() > 8);
    for _ in 0..2 {
        let server = start(&old.data, &[]);
        for request in &requests {
            let (status, answer) = repeat(&server, request);
            assert_eq!(
                (Value::from(status), &answer),
                (request["status"].clone(), &request["answer"]),
                "{request}"
            );
        }
        assert_eq!(server.run(&["audit", "export", "-"]), exported(), "nothing is carried out again");
        let mut other = requests[0].clone();
        other["body"] = r#"{"name":"elsewhere"}"#.into();
        assert_eq!(repeat(&server, &other).0, 422, "the key of another request");
        server.kill();
    }
}

/// promise: Z3, D5
#[test]
fn an_operation_ends_and_stays_ended() {
    let (old, more) = (OldData::stopped(), more());
    let [open, ended] = ["open", "ended"].map(|name| more[name].as_str().unwrap());
    let status = |server: &TestServer, target: &str| {
        let shown = place::json(&send(server, &format!("GET {target}"), "", ""));
        shown["status"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
    };
    let server = start(&old.data, &[]);
    assert_eq!([open, ended].map(|target| status(&server, target)), ["InProgress", "Succeeded"]);
    let machine = "north/vm-n/vm-n";
    let event = events(&server, machine)[0]["EventId"].as_str().unwrap().to_owned();
    let sent = post(&format!("/vm/{machine}{NEWEST}"), &approve(&[&event]));
    assert_eq!(ask(server.metadata(), &sent).unwrap().short(), (200, ""));
    assert_eq!(status(&server, open), "Succeeded");
    server.kill();
    let server = start(&old.data, &[]);
    assert_eq!([open, ended].map(|target| status(&server, target)), ["Succeeded", "Succeeded"]);
}

/// Events that wait, that run and that are held; a rollout; notices of deletions.
/// promise: N1, T3, D5
#[test]
fn work_goes_on_at_its_time() {
    let old = OldData::stopped();
    let server = start(&old.data, &[]);
    let first = |machine: &str| events(&server, machine).first().map(|event| event["EventStatus"].clone());
    assert_eq!(first("south/gamma/gamma"), Some("Scheduled".into()), "the brake holds it");
    assert_eq!(order(&server, "south", &json!({ "command": "brake_off" })).status(), 200);
    assert_eq!(first("south/gamma/gamma"), Some("Started".into()));
    assert!(events(&server, "shop/FrontEnd_IN_0").iter().any(|event| event["EventStatus"] == "Started"));
    let boots = |machine: &str| {
        let shown = place::json(&send(&server, &format!("GET /v1/machines/{machine}"), "", ""));
        shown["boots"].as_u64().unwrap()
    };
    let before = boots("solo/solo?cluster=default");
    assert_eq!(first("solo/solo"), Some("Scheduled".into()));
    server.advance("14m");
    assert_eq!(first("solo/solo"), Some("Scheduled".into()), "not before its time");
    server.advance("2m");
    assert_eq!(boots("solo/solo?cluster=default"), before + 1);
    for gone in ["web/web_2?cluster=default", "api/api_1?cluster=north"] {
        assert_eq!(send(&server, &format!("GET /v1/machines/{gone}"), "", "").status(), 404, "{gone}");
    }
    let rollout = || {
        let shown = place::json(&send(&server, "GET /v1/rollouts/0?cluster=default", "", ""));
        (shown["waiting"].clone(), shown["done"].clone(), shown["ended_at"].is_string())
    };
    // Its first host is done; the next one follows after the pause.
    assert_eq!(rollout(), (json!(["h4", "h5"]), json!(["h3"]), false));
    server.advance("12h");
    assert_eq!(rollout(), (json!([]), json!(["h3", "h4", "h5"]), true));
    assert_eq!(events(&server, "south/gamma/gamma"), [] as [Value; 0]);
}

/// promise: W2, D5
#[test]
fn webhooks_go_on_from_their_cursors_and_send_nothing_twice() {
    let texts = |member: &str| -> Vec<String> {
        more()[member].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let (old, waiting) = (OldData::stopped(), texts("waiting"));
    let receivers = Receivers::start(&old);
    let Receivers { ops, pager } = &receivers;
    let server = start(&old.data, &[]);
    // All of them are of one cluster: they come in their order.
    assert_eq!(ids(&pager.until_taken(waiting.len())), waiting);
    events(&server, "south/delta/delta");
    let restart = |cluster: &str, machine: &str| {
        let answer = order(&server, cluster, &json!({ "command": "restart", "machine": machine }));
        place::json(&answer)["events"][0]["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    };
    let new = [restart("north", "alpha"), restart("default", "db-0"), restart("south", "delta")];
    check_new(ops, &new, &texts("ops"), 3);
    check_new(pager, &[new[0].clone(), new[2].clone()], &texts("pager"), waiting.len() + 2);
    server.kill();
    // Whatever was recorded of the progress before the kill: the next server repeats at most messages under their ids.
    let before = [ops, pager].map(|receiver| ids(&receiver.taken()));
    let server = start(&old.data, &[]);
    let answer = order(&server, "north", &json!({ "command": "cancel", "event": new[0] }));
    assert_eq!(answer.status(), 200, "{answer:?}");
    for (receiver, before) in [ops, pager].into_iter().zip(before) {
        let last = wait_until("the last message", || {
            let taken = receiver.taken();
            taken.iter().any(|seen| is_about(seen, &new[0], "Canceled")).then_some(taken)
        });
        let unknown = ids(&last).into_iter().filter(|id| !before.contains(id)).count();
        assert_eq!(unknown, 1, "{last:?}");
    }
}

fn is_about(seen: &Seen, event: &str, status: &str) -> bool {
    let properties = seen.properties();
    properties["EventStatus"] == status && properties["EventId"] == event
}

/// A receiver has got so many messages, those about new events included: each once, and none of those that it had before.
fn check_new(receiver: &WebhookReceiver, events: &[String], had: &[String], count: usize) {
    wait_until("messages about new events", || {
        let taken = receiver.taken();
        let told = |event: &String| taken.iter().any(|seen| is_about(seen, event, "Scheduled"));
        events.iter().all(told).then_some(())
    });
    let taken = ids(&receiver.taken());
    assert!(had.iter().all(|id| !taken.contains(id)), "sent again: {taken:?}");
    let different: BTreeSet<_> = taken.iter().collect();
    assert_eq!((taken.len(), different.len()), (count, count), "{taken:?}");
}

/// promise: C5, D5
#[test]
fn the_audit_log_goes_on_and_verifies() {
    let old = OldData::stopped();
    let verify = |file: &str| {
        let verified = clean_command(crate::program()).args(["audit", "verify", file]).output().unwrap();
        assert!(verified.status.success(), "{file}: {verified:?}");
    };
    verify(fixture("answers/audit.ndjson").to_str().unwrap());
    let mut logs = vec![exported()];
    for round in 0..2 {
        let server = start(&old.data, &[]);
        for cluster in CLUSTERS {
            let host = json!({ "command": "admit_host", "name": format!("new-{round}") });
            assert_eq!(order(&server, cluster, &host).status(), 200);
        }
        let cluster = format!(r#"{{"name":"new-{round}"}}"#);
        assert_eq!(send(&server, "POST /v1/clusters", "", &cluster).status(), 200);
        let host = json!({ "command": "admit_host", "name": "first" });
        assert_eq!(order(&server, &format!("new-{round}"), &host).status(), 200);
        server.run(&["audit", "verify"]);
        let file = old.files.path(&format!("export-{round}"));
        server.run(&["audit", "export", &file]);
        verify(&file);
        let log = fs::read_to_string(&file).unwrap();
        let new = log.strip_prefix(&logs[round]).expect("the same log, and more");
        assert_eq!(new.lines().filter(|line| line.contains(r#""kind":"command""#)).count(), 5, "{new}");
        // A change of any entry is found.
        let changed = log.replacen("new-0", "old-0", 1);
        let changed = clean_command(crate::program())
            .args(["audit", "verify", &old.files.write("changed", &changed)])
            .output()
            .unwrap();
        assert_eq!(changed.status.code(), Some(1), "{changed:?}");
        logs.push(log);
        server.kill();
    }
}

/// promise: Z1, D5
#[test]
fn resource_groups_belong_to_their_clusters() {
    let old = OldData::stopped();
    let move_to = |server: &TestServer, cluster: &str, group: &str| {
        let body = json!({ "resource_group": group }).to_string();
        send(server, &format!("PATCH /v1/site?cluster={cluster}"), "", &body).status()
    };
    let server = start(&old.data, &[]);
    // Groups of sites, and groups that clients have created; in any spelling.
    for (cluster, group) in [
        ("south", "north-group"),
        ("south", "MAIN"),
        ("south", "arm-north"),
        ("north", "Arm-Main"),
        ("default", "south-group"),
    ] {
        assert_eq!(move_to(&server, cluster, group), 409, "{cluster}: {group}");
    }
    assert_eq!(move_to(&server, "north", "ARM-north"), 200, "its own");
    assert_eq!(move_to(&server, "south", "north-group"), 200, "it is free now");
    // The group of a cluster that was removed is free, and so is its name; another cluster with that name is another one.
    assert_eq!(move_to(&server, "north", "forewarn-gone"), 200);
    assert_eq!(send(&server, "POST /v1/clusters", "", r#"{"name":"gone"}"#).status(), 200);
    server.kill();
    let server = start(&old.data, &[]);
    let group = |cluster: &str| {
        place::json(&send(&server, &format!("GET /v1/site?cluster={cluster}"), "", ""))["resource_group"]
            .clone()
    };
    assert_eq!(["north", "south", "gone"].map(group), ["forewarn-gone", "north-group", "forewarn-gone-2"]);
    let log = place::json(&send(&server, "GET /v1/audit?cluster=gone&order=oldest", "", ""));
    let log = log["items"].as_array().unwrap();
    assert!(log.iter().all(|entry| !entry["text"].as_str().unwrap().contains("omega")), "{log:?}");
}
