//! How it is told: in order, again and again until it is taken, and nowhere else.

use std::time::Duration;

use forewarn_testkit::TestServer;
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver, add, are_apart, shorts, show, until_state};

/// promise: W2
#[test]
fn what_is_not_taken_is_told_again_and_nothing_overtakes_it() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["solo", "web_0"]);
    add(&server, "ops", &receiver, &[]);
    receiver.refuses(Some("500 Internal Server Error"));
    server.restart("solo");
    server.restart("web_0");
    let shown = until_state(&server, "ops", "failing");
    assert!(shown["failing_since"].is_string(), "{shown}");
    assert_eq!((&shown["error"], &shown["delivered"]), (&"receiver answered 500".into(), &0.into()));
    receiver.answers(&["404 Not Found"]);
    receiver.refuses(None);
    receiver.until_taken(2);
    let told = receiver.told();
    let (last, first) = told.split_last().unwrap();
    assert!(first.len() >= 3 && first.iter().all(|seen| seen.short() == "Scheduled Reboot solo"), "{told:?}");
    assert_eq!(last.short(), "Scheduled Reboot web_0");
    let same = |seen: &Seen| (seen.id(), &seen.body) == (first[0].id(), &first[0].body);
    assert!(first.iter().all(same), "whoever hears it twice can tell");
    assert_ne!(last.id(), first[0].id());
    let shown = until_state(&server, "ops", "healthy");
    assert_eq!((&shown["failing_since"], &shown["delivered"]), (&serde_json::Value::Null, &2.into()));
    let log = server.log();
    assert_eq!(log.matches("webhook delivery failed; retrying").count(), 1, "{log}");
    assert!(log.contains("webhook delivery failed; retrying webhook=\"ops\" cluster=0 "), "{log}");
    let metrics = metrics(&server);
    for line in [
        "forewarn_webhook_pushes_total{outcome=\"delivered\"} 2",
        &format!("forewarn_webhook_pushes_total{{outcome=\"refused\"}} {}", first.len() - 1),
        "forewarn_webhooks{state=\"healthy\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\nin\n{metrics}");
    }
}

fn metrics(server: &TestServer) -> String {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    forewarn_testkit::ask(server.api(), request).unwrap().body
}

/// promise: W2
#[test]
fn a_webhook_that_is_busy_says_for_how_long() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["solo"]);
    add(&server, "ops", &receiver, &[]);
    receiver.answers(&["429 Too Many Requests\r\nRetry-After: 2"]);
    server.restart("solo");
    receiver.until_taken(1);
    let told = receiver.told();
    assert!(are_apart(&told[0], &told[1], Duration::from_secs(2)), "it is left alone for as long");
}

/// promise: W2
#[test]
fn a_webhook_is_not_told_more_often_than_it_agreed_to() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["solo", "web_0", "db-0"]);
    receiver.agrees_to(120);
    add(&server, "ops", &receiver, &[]);
    for machine in ["solo", "web_0", "db-0"] {
        server.restart(machine);
    }
    let taken = receiver.until_taken(3);
    // Half a second between two; what is measured is when they arrive.
    assert!(are_apart(&taken[0], &taken[2], Duration::from_millis(900)), "{taken:?}");
}

/// promise: W2
#[test]
fn redirects_are_not_followed() {
    let (server, receiver, elsewhere) =
        (TestServer::start(crate::program()), WebhookReceiver::start(), WebhookReceiver::start());
    server.enrol(&["solo"]);
    add(&server, "ops", &receiver, &[]);
    receiver.answers(&[&format!("307 Temporary Redirect\r\nLocation: {}", elsewhere.url("/events"))]);
    server.restart("solo");
    receiver.until_taken(1);
    assert_eq!(receiver.told()[0].answer, "307 Temporary Redirect");
    assert!(elsewhere.seen().is_empty());
}

/// One that does not answer, or is not there, holds nobody else up.
/// promise: W2
#[test]
fn webhooks_have_nothing_to_do_with_each_other() {
    let (server, slow, other) =
        (TestServer::start(crate::program()), WebhookReceiver::start(), WebhookReceiver::start());
    server.enrol(&["solo"]);
    add(&server, "slow", &slow, &[]);
    add(&server, "other", &other, &[]);
    server.run(&["webhook", "create", "nobody", "http://127.0.0.1:9/"]);
    slow.stalls_at(Some(0));
    let id = server.restart("solo");
    server.run(&["event", "approve", &id]);
    server.advance("1m");
    other.until_taken(3);
    assert!(slow.taken().is_empty());
    slow.stalls_at(None);
    assert_eq!(shorts(&slow.until_taken(3)), shorts(&other.taken()));
}

/// promise: W2
#[test]
fn a_webhook_that_is_removed_is_told_nothing_more() {
    let (server, receiver, other) =
        (TestServer::start(crate::program()), WebhookReceiver::start(), WebhookReceiver::start());
    server.enrol(&["solo"]);
    add(&server, "ops", &receiver, &[]);
    add(&server, "other", &other, &[]);
    let id = server.restart("solo");
    receiver.until_taken(1);
    assert_eq!(server.run(&["webhook", "delete", "ops"]), "Webhook ops deleted.\n");
    server.run(&["event", "cancel", &id]);
    other.until_taken(2);
    assert_eq!(receiver.told().len(), 1);
    assert_eq!(server.json(&["webhook", "ls"])["items"].as_array().unwrap().len(), 1);
    // Another of that name begins anew.
    add(&server, "ops", &receiver, &[]);
    assert_eq!(show(&server, "ops")["delivered"], 0);
}
