//! What is told: every event from its announcement to its end, in the form that was wanted.

use forewarn_testkit::TestServer;
use forewarn_testkit::webhook_receiver::{WebhookReceiver, add, shorts};

/// promise: W1
#[test]
fn an_event_is_told_when_it_is_scheduled_starts_and_is_completed() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["web_0"]);
    add(&server, "ops", &receiver, &[]);
    let id = server.restart("web_0");
    let scheduled = &receiver.until_taken(1)[0];
    assert_eq!(scheduled.line, "POST /events HTTP/1.1");
    assert_eq!(scheduled.header("content-type"), Some("application/cloudevents+json; charset=utf-8"));
    assert_eq!(scheduled.header("webhook-request-origin"), Some("forewarn"));
    assert!(scheduled.header("user-agent").unwrap().starts_with("forewarn/"));
    let event = scheduled.json();
    assert_eq!((&event["specversion"], &event["time"]), (&"1.0".into(), &"2026-01-01T00:00:00Z".into()));
    assert_eq!(event["type"], "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted");
    let subject = event["subject"].as_str().unwrap();
    assert!(subject.ends_with("/providers/Microsoft.Compute/virtualMachineScaleSets/web"), "{subject}");
    assert!(subject.starts_with(event["source"].as_str().unwrap()), "{event}");
    assert_eq!(event["data"]["resourceInfo"]["name"], id.as_str());
    // The machine reads the same of it, to the order of the members.
    assert_eq!(scheduled.properties().to_string(), server.document("web_0")["Events"][0].to_string());

    server.run(&["event", "approve", &id]);
    let started = &receiver.until_taken(2)[1];
    assert_eq!(started.properties().to_string(), server.document("web_0")["Events"][0].to_string());
    server.advance("1m");
    let all = receiver.until_taken(3);
    assert_eq!(shorts(&all), ["Scheduled Reboot web_0", "Started Reboot web_0", "Completed Reboot web_0"]);
    assert_eq!(all[2].properties()["NotBefore"], "");
    assert_eq!(server.ids("web_0"), Vec::<String>::new());
    let mut ids: Vec<_> = all.iter().map(forewarn_testkit::webhook_receiver::Seen::id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has an id of its own");
}

/// promise: W1
#[test]
fn what_is_taken_back_is_canceled_and_what_starts_at_once_was_never_scheduled() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["web_0", "db-0"]);
    add(&server, "ops", &receiver, &[]);
    let id = server.restart("db-0");
    server.run(&["event", "cancel", &id]);
    server.run(&["host", "fail", &server.host_of("web_0")]);
    server.advance("5m");
    let all = receiver.until_taken(4);
    let of = |machine: &str| -> Vec<String> {
        let all = shorts(&all).into_iter();
        all.filter_map(|line| line.strip_suffix(machine).map(|rest| rest.trim_end().to_owned())).collect()
    };
    assert_eq!(of("db-0"), ["Scheduled Reboot", "Canceled Reboot"]);
    assert_eq!(of("web_0"), ["Started Reboot", "Completed Reboot"]);
    let subject = |number: usize| all[number].json()["subject"].as_str().unwrap().to_owned();
    assert!(subject(0).ends_with("/providers/Microsoft.Compute/availabilitySets/db"), "{}", subject(0));
}

/// promise: W1
#[test]
fn the_schema_of_event_grid_is_a_list_of_one() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["solo"]);
    add(&server, "grid", &receiver, &["--format", "eventgrid"]);
    server.run(&["vm", "redeploy", "solo"]);
    let told = &receiver.until_taken(1)[0];
    let json = told.json();
    assert_eq!(json.as_array().map(Vec::len), Some(1));
    let members: Vec<_> = json[0].as_object().unwrap().keys().cloned().collect();
    let expected =
        ["id", "topic", "subject", "data", "eventType", "dataVersion", "metadataVersion", "eventTime"];
    assert_eq!(members, expected);
    assert!(json[0]["subject"].as_str().unwrap().ends_with("/virtualMachines/solo"), "{json}");
    assert_eq!(told.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(told.header("aeg-event-type"), Some("Notification"));
    assert_eq!(told.header("aeg-subscription-name"), Some("grid"));
    assert_eq!(told.header("aeg-delivery-count"), Some("1"));
    assert_eq!(told.short(), "Scheduled Redeploy solo");
}

/// promise: W1
#[test]
fn a_webhook_is_told_of_what_it_wants_and_of_nothing_from_before() {
    let server = TestServer::start(crate::program());
    let [types, tenants, clusters] = [(); 3].map(|()| WebhookReceiver::start());
    server.run(&["cluster", "create", "west"]);
    server.enrol(&["web_0", "solo"]);
    server.restart("web_0");
    add(&server, "types", &types, &["--type", "redeploy", "--type", "Terminate"]);
    add(&server, "tenants", &tenants, &["--tenant", "solo"]);
    server.run(&["webhook", "create", "clusters", &clusters.url("/"), "--cluster", "west"]);
    server.restart("solo");
    server.run(&["vm", "redeploy", "web_1"]);
    server.run(&["event", "cancel", &server.ids("solo")[0]]);
    assert_eq!(shorts(&types.until_taken(1)), ["Scheduled Redeploy web_1"]);
    assert_eq!(shorts(&tenants.until_taken(2)), ["Scheduled Reboot solo", "Canceled Reboot solo"]);
    // Whoever is told of everything was told of the last thing: the others have looked at it by now, or will not.
    let all = WebhookReceiver::start();
    add(&server, "all", &all, &[]);
    server.restart("solo");
    all.until_taken(1);
    tenants.until_taken(3);
    assert_eq!((types.told().len(), clusters.told().len()), (1, 0));
}

/// The clock stands: what came before and what comes after have the same time.
/// promise: W1
#[test]
fn a_webhook_gets_no_event_from_before_it_was_added_while_the_clock_stands() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    server.enrol(&["web_0", "solo"]);
    server.restart("web_0");
    add(&server, "late", &receiver, &[]);
    server.restart("solo");
    assert_eq!(shorts(&receiver.until_taken(1)), ["Scheduled Reboot solo"]);
}
