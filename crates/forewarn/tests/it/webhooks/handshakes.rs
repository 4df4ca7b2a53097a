//! Nobody is told who has not agreed; and what a test of a webhook does.

use forewarn_testkit::webhook_receiver::{WebhookReceiver, add, shorts, show, until_state};
use forewarn_testkit::{TestServer, wait_until};

/// promise: W1
#[test]
fn a_webhook_is_asked_until_it_agrees_and_told_of_all_since_it_was_added() {
    for (schema, question) in
        [("cloudevents", "OPTIONS /events HTTP/1.1"), ("eventgrid", "POST /events HTTP/1.1")]
    {
        let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
        server.enrol(&["solo"]);
        receiver.is_unwilling(true);
        server.run(&["webhook", "create", "ops", &receiver.url("/events"), "--format", schema]);
        server.restart("solo");
        wait_until("it is asked again", || (receiver.seen().len() >= 3).then_some(()));
        let shown = show(&server, "ops");
        assert_eq!((&shown["state"], &shown["delivered"]), (&"unconfirmed".into(), &0.into()));
        let problem = shown["error"].as_str().unwrap();
        assert!(problem.starts_with("subscription not confirmed: "), "{problem}");
        assert!(receiver.seen().iter().all(|seen| seen.line == question), "nothing else is said");
        receiver.is_unwilling(false);
        assert_eq!(shorts(&receiver.until_taken(1)), ["Scheduled Reboot solo"]);
        assert_eq!(until_state(&server, "ops", "healthy")["error"], serde_json::Value::Null);
    }
}

/// promise: W1
#[test]
fn a_question_says_who_asks_and_a_code_is_said_back() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    add(&server, "cloud", &receiver, &[]);
    let asked = &receiver.seen()[0];
    assert_eq!(asked.header("webhook-request-origin"), Some("forewarn"));
    assert_eq!(asked.body, "");
    let grid = WebhookReceiver::start();
    add(&server, "grid", &grid, &["--format", "eventgrid"]);
    let asked = &grid.seen()[0];
    assert_eq!(asked.header("aeg-event-type"), Some("SubscriptionValidation"));
    assert_eq!(asked.header("aeg-subscription-name"), Some("grid"));
    let event = &asked.json()[0];
    assert_eq!(event["eventType"], "Microsoft.EventGrid.SubscriptionValidationEvent");
    assert!(event["data"]["validationCode"].as_str().unwrap().len() >= 32, "nobody guesses it");
    assert_eq!((receiver.seen().len(), grid.seen().len()), (1, 1), "once is enough");
}

#[test]
fn a_test_says_that_it_is_one_and_whether_it_was_taken() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    add(&server, "ops", &receiver, &[]);
    assert!(server.run(&["webhook", "test", "ops"]).starts_with("Webhook ops accepted a test message in "));
    let told = &receiver.until_taken(1)[0];
    let description = told.properties()["Description"].as_str().unwrap().to_owned();
    assert_eq!(description, "This is a test of the webhook ops. Nothing happens.");
    assert_eq!(told.short(), "Scheduled Freeze forewarn-test");

    receiver.answers(&["500 Internal Server Error"]);
    let failed = server.try_run(&["webhook", "test", "ops"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(said, "forewarn: webhook ops did not accept the test message: receiver answered 500\n");
    let failed = server.try_run(&["webhook", "test", "opps"]);
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(said, "forewarn: no such webhook: opps\n  hint: did you mean ops?\n");
}

/// Whoever repairs a webhook does not have to wait for the next try.
#[test]
fn a_test_that_is_taken_shakes_hands_and_has_the_rest_told_at_once() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["solo"]);
    receiver.is_unwilling(true);
    server.run(&["webhook", "create", "ops", &receiver.url("/")]);
    server.restart("solo");
    wait_until("it is asked", || (!receiver.seen().is_empty()).then_some(()));
    let failed = server.json_of(&["webhook", "test", "ops"]);
    assert_eq!(failed["delivered"], false);
    receiver.is_unwilling(false);
    server.run(&["webhook", "test", "ops"]);
    let mut taken = shorts(&receiver.until_taken(2));
    taken.sort();
    assert_eq!(taken, ["Scheduled Freeze forewarn-test", "Scheduled Reboot solo"]);
}
