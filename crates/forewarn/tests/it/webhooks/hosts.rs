//! Messages about hosts that are ready for the work of a person: one when a host is ready, reminders, and one at the end,
//! whenever the server is killed.

use std::collections::BTreeSet;

use serde_json::Value;
use tempfile::TempDir;

use crate::program;
use forewarn_testkit::server::dev;
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver, add, show, until_state};
use forewarn_testkit::{ServeDir, TestServer, clean_command, wait_until};

const START: &str = "2026-01-01T00:00:00Z";

const FLEET: &str = "host = [{ name = 'kvm1' }, { name = 'kvm2' }]\nvm = [{ name = 'web', host = 'kvm1' }]\n";

/// `forewarn dev` on a directory; persons work on its hosts.
fn start(data: &TempDir) -> TestServer {
    let fleet = data.path().join("fleet.toml");
    std::fs::write(&fleet, FLEET).unwrap();
    let mut command = clean_command(program());
    dev(&mut command, &["--host-work", "manual", "--clock", "frozen", "--clock-start", START, "--fleet"]);
    command.arg(fleet).arg("--data-dir").arg(data.path().join("data"));
    TestServer::spawn(program(), command)
}

/// The messages about hosts. A server that is killed may repeat the last ones, with the same ids.
fn about_hosts(receiver: &WebhookReceiver) -> Vec<Value> {
    let (taken, mut ids) = (receiver.taken(), BTreeSet::new());
    let events = taken.iter().map(Seen::event).filter(|event| event["type"] == "Forewarn.HostWork");
    events.filter(|event| ids.insert(event["id"].to_string())).collect()
}

fn until_messages(receiver: &WebhookReceiver, count: usize) -> Vec<Value> {
    wait_until(&format!("{count} messages about hosts"), || {
        let messages = about_hosts(receiver);
        (messages.len() >= count).then_some(messages)
    })
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| {
        let data = &message["data"];
        format!("{}: {}", data["status"].as_str().unwrap(), data["text"].as_str().unwrap())
    };
    messages.iter().map(text).collect()
}

/// promise: W1
/// promise: W2
#[test]
fn a_host_that_is_ready_is_reported_reminded_of_and_its_end_also_over_restarts() {
    let (data, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
    let server = start(&data);
    add(&server, "ops", &receiver, &[]);
    add(&server, "tenant", &WebhookReceiver::start(), &["--tenant", "web"]);
    server.run(&["host", "update", "kvm1", "--work", "kernel 6.12.9"]);
    server.advance("1s");
    let messages = until_messages(&receiver, 1);
    assert_eq!(texts(&messages), ["Ready: host kvm1 is ready for work: kernel 6.12.9"]);
    let data_of = |message: &Value| message["data"].clone();
    let expected = serde_json::json!({
        "host": "kvm1", "cluster": "default", "status": "Ready",
        "text": "host kvm1 is ready for work: kernel 6.12.9", "operation": "update", "work": "kernel 6.12.9",
        "since": "2026-01-01T00:00:00Z", "rollout": 0,
    });
    assert_eq!(data_of(&messages[0]), expected);
    assert_eq!(messages[0]["subject"], "/clusters/default/hosts/kvm1");

    // Nothing is reported twice: neither by the next server nor when other time passes.
    server.kill();
    let server = start(&data);
    server.advance("58m");
    server.run(&["host", "update", "kvm2"]);
    until_messages(&receiver, 2);
    // The next server knows when the reminder is due.
    server.advance("30s");
    server.kill();
    let server = start(&data);
    server.advance("2m");
    let messages = until_messages(&receiver, 3);
    let reminder = &messages[2]["data"];
    assert_eq!((&reminder["status"], &reminder["reminder"]), (&"Reminder".into(), &1.into()));
    assert_eq!(reminder["text"], "host kvm1 is ready for work since 1h31s: kernel 6.12.9");
    // The next one comes after twice the time; the first of the other host before.
    server.advance("1h58m");
    until_messages(&receiver, 4);
    server.advance("5m");
    let messages = until_messages(&receiver, 5);
    let reminders: Vec<_> =
        messages[3..].iter().map(|it| (&it["data"]["host"], &it["data"]["reminder"])).collect();
    assert_eq!(reminders, [(&"kvm2".into(), &1.into()), (&"kvm1".into(), &2.into())]);

    server.run(&["host", "done", "kvm1"]);
    server.run(&["host", "done", "kvm2", "--failed", "does not boot"]);
    let messages = until_messages(&receiver, 7);
    let ends = [
        "Completed: update of host kvm1 completed: kernel 6.12.9",
        "Failed: update of host kvm2 failed: does not boot",
    ];
    assert_eq!(texts(&messages[5..]), ends);
    assert_eq!(messages[6]["data"]["reason"], "does not boot");
    server.advance("72h");
    server.run(&["host", "clear", "kvm2"]);
    assert_eq!(about_hosts(&receiver).len(), 7, "no reminder of work that is done");
    assert_eq!(until_state(&server, "ops", "healthy")["delivered"], show(&server, "ops")["delivered"]);
    assert_eq!(show(&server, "tenant")["delivered"], 0, "a host belongs to no tenant");
    let entries = server.json(&["audit", "ls", "--kind", "reminder"]);
    assert_eq!(entries["items"].as_array().unwrap().len(), 3);
}

/// promise: W1
#[test]
fn the_settings_say_when_the_first_reminder_comes() {
    let (site, receiver) = (ServeDir::new(program(), FLEET), WebhookReceiver::start());
    let settings = |reminder: &str| {
        format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi = {{ socket = 'DIR/api.sock' }}\n\
             metadata = {{ listen = [{{ address = '127.0.0.1:0' }}] }}\n\
             driver = {{ kind = 'simulated', host_work = 'manual', host_reminder = '{reminder}' }}\n"
        )
    };
    let refused = site.serve(&settings("0s")).output().unwrap();
    let printed = String::from_utf8(refused.stderr).unwrap();
    assert!(printed.contains("driver.host_reminder = \"0s\"\n  hint: "), "{printed}");
    let server = site.start(&settings("1s"));
    add(&server, "ops", &receiver, &["--format", "eventgrid"]);
    server.run(&["host", "update", "kvm2"]);
    let told = receiver.until_taken(3);
    let statuses: Vec<_> = told.iter().map(|seen| seen.event()["data"]["status"].clone()).collect();
    assert_eq!(statuses[..3], ["Ready", "Reminder", "Reminder"]);
    assert_eq!(told[0].event()["eventType"], "Forewarn.HostWork");
    let apart = told[2].at.duration_since(told[1].at);
    assert!(apart.as_millis() >= 1_500, "the time between reminders grows: {apart:?}");
}

/// promise: W1
#[test]
fn a_failed_step_is_reported_also_if_no_person_carried_it_out() {
    let (site, receiver) = (ServeDir::new(program(), FLEET), WebhookReceiver::start());
    let server = site.start(
        "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi = { socket = 'DIR/api.sock' }\n\
         metadata = { listen = [{ address = '127.0.0.1:0' }] }\n\
         driver = { kind = 'simulated', host_work = ['sh', '-c', 'echo no such kernel; exit 10'] }\n",
    );
    add(&server, "ops", &receiver, &[]);
    server.run(&["host", "update", "kvm2"]);
    let messages = until_messages(&receiver, 1);
    assert_eq!(messages[0]["data"]["status"], "Failed");
    assert!(messages[0]["data"]["reason"].as_str().unwrap().contains("no such kernel"), "{messages:?}");
    let listed = site.out(&["rollout", "ls", "--all"]);
    assert!(listed.lines().nth(1).unwrap().contains("kvm2"), "{listed}");
}
