//! Operations: what begins as a request and ends when machines have agreed, when their notice is over, or when nobody wants it
//! any more. They outlive the server.

use serde_json::{Value, json};

use forewarn_testkit::RawResponse;
use forewarn_testkit::arm::{
    AFTER_10, ArmServer, GROUP, NEW, SUBSCRIPTION, body, compute, header, instance, operation, refusal, set,
    text, wanted_set,
};

/// A scale set whose instances are told ten minutes before; one of them has asked.
fn told(place: &ArmServer, capacity: u32) {
    place.make_group();
    let mut wanted = wanted_set(capacity);
    wanted["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] =
        json!({ "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT10M" } });
    place.put(&set(), NEW, &wanted);
    place.server.enrol(&[&instance(0)]);
}

fn delete(place: &ArmServer, ids: &[&str]) -> String {
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ids }))
}

/// The numbers of the instances that clients see.
fn instances(place: &ArmServer) -> Vec<String> {
    let listed = place.get(&format!("{}/virtualMachines", set()), NEW);
    listed["value"].as_array().unwrap().iter().map(|shown| text(&shown["instanceId"])).collect()
}

/// A machine of its own, which has asked.
fn make_machine(place: &ArmServer, name: &str, more: &Value) -> String {
    let path = format!("{}/virtualMachines/{name}", compute());
    let mut wanted = json!({
        "location": "eastus",
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
            "osProfile": { "computerName": name, "adminUsername": "azureuser" },
        },
    });
    for (key, value) in more.as_object().unwrap() {
        wanted["properties"][key] = value.clone();
    }
    place.put(&path, NEW, &wanted);
    place.server.enrol(&[name]);
    path
}

/// The target of `Location`.
fn location(answer: &RawResponse) -> String {
    let url = header(answer, "location").expect("a place to ask");
    let rest = url.split_once("://").expect("a whole URL").1;
    rest[rest.find('/').expect("a path")..].to_owned()
}

/// promise: Z3
#[test]
fn a_deletion_of_two_is_over_when_both_have_agreed() {
    let place = ArmServer::start(crate::program());
    told(&place, 3);
    let answer = place.ask("POST", &format!("{}/delete", set()), NEW, r#"{"instanceIds":["0","1"]}"#);
    assert_eq!((answer.status(), answer.body.as_str()), (202, ""));
    let (status, monitor) = (operation(&answer).unwrap(), location(&answer));
    assert!(header(&answer, "retry-after").is_some(), "{answer:?}");
    for machine in [instance(0), instance(2)] {
        let seen = place.seen(&machine);
        assert!(seen.iter().all(|seen| seen.what == "Terminate Scheduled" && seen.not_before == AFTER_10));
        assert_eq!(seen.len(), 2, "{seen:?}");
    }
    place.approve(&instance(1), &instance(1));
    assert_eq!(place.status(&status), "InProgress");
    let waiting = place.ask_url("GET", &monitor, "");
    assert_eq!(waiting.status(), 202, "{waiting:?}");
    assert!(
        header(&waiting, "location").is_some() && header(&waiting, "retry-after").is_some(),
        "{waiting:?}"
    );
    place.approve(&instance(0), &instance(0));
    assert_eq!(place.status(&status), "Succeeded");
    let over = place.ask_url("GET", &monitor, "");
    assert_eq!((over.status(), over.body.as_str()), (200, ""));
    assert_eq!(
        place.short(&instance(2)),
        ["Terminate Started", "Terminate Started"]
            .map(String::from)
            .iter()
            .zip([instance(0), instance(1)])
            .map(|(what, whom)| format!("{what} {whom}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(instances(&place), ["2"]);
    assert_eq!(place.get(&set(), NEW)["sku"]["capacity"], 1);
    place.server.advance("5m");
    assert!(!place.is_there(&instance(0)) && !place.is_there(&instance(1)));
    assert_eq!(place.status(&status), "Succeeded", "it is kept for whoever asks once more");
}

/// promise: Z3
#[test]
fn a_deletion_is_over_when_the_notice_is() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    let operation = delete(&place, &["1"]);
    place.server.advance("9m59s");
    assert_eq!(place.status(&operation), "InProgress");
    place.server.advance("1s");
    assert_eq!(place.status(&operation), "Succeeded");
    assert_eq!(place.one(&instance(0)).what, "Terminate Started");
    assert_eq!(instances(&place), ["0"]);
}

/// promise: Z3
#[test]
fn a_deletion_that_an_operator_takes_back_is_canceled() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    let operation = delete(&place, &["1"]);
    place.server.run(&["event", "cancel", &place.one(&instance(0)).id]);
    assert_eq!(place.status(&operation), "Canceled");
    assert_eq!(place.short(&instance(0)), [""; 0]);
    assert_eq!(instances(&place), ["0", "1"]);
}

/// promise: Z3
#[test]
fn a_restart_is_preempted_by_a_deletion_and_a_second_one_refused() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    let restart = format!("{}/virtualMachines/1/restart", set());
    let first = place.begin("POST", &restart, &json!({}));
    assert_eq!(place.short(&instance(0)), [format!("Reboot Scheduled {}", instance(1))]);
    let (code, message) = refusal(&place.ask("POST", &restart, NEW, ""), 409);
    assert!(!code.is_empty() && message.contains(&place.one(&instance(0)).id), "{code}: {message}");
    let second = delete(&place, &["1"]);
    assert_eq!(place.short(&instance(0)), [format!("Terminate Scheduled {}", instance(1))]);
    assert_eq!((place.status(&first).as_str(), place.status(&second).as_str()), ("Failed", "InProgress"));
    let failed = body(&place.ask_url("GET", &first, ""));
    assert_eq!(failed["error"]["code"], "OperationPreempted", "{failed}");
}

/// promise: Z3
#[test]
fn an_operation_outlives_the_server() {
    let place = ArmServer::start_durable(crate::program());
    told(&place, 3);
    let first = delete(&place, &["1"]);
    let before = place.one(&instance(0));
    let shown = place.get(&set(), NEW);
    let place = place.kill_and_start();
    assert_eq!(place.one(&instance(0)), before);
    assert_eq!(place.status(&first), "InProgress");
    assert_eq!(place.get(&set(), NEW), shown);
    place.approve(&instance(0), &instance(1));
    assert_eq!(place.status(&first), "Succeeded");
    let second = delete(&place, &["2"]);
    assert_ne!(first, second);
    let place = place.kill_and_start();
    assert_eq!((place.status(&first).as_str(), place.status(&second).as_str()), ("Succeeded", "InProgress"));
    assert_eq!(instances(&place), ["0", "2"]);
    place.server.advance("10m");
    assert_eq!(place.status(&second), "Succeeded");
}

#[test]
fn where_nobody_asks_for_events_everything_is_over_at_once() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    place.put(&set(), NEW, &wanted_set(2));
    place.act(&format!("{}/virtualMachines/0/restart", set()), &json!({}));
    place.act(&format!("{}/redeploy", set()), &json!({ "instanceIds": ["1"] }));
    place.act(&format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    assert_eq!(instances(&place), ["0"]);
}

/// promise: E2, Z3
#[test]
fn every_action_on_a_machine_is_what_it_should_be_for_the_machine() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let path = make_machine(&place, "solo", &json!({}));
    for (action, event) in
        [("restart", "Reboot"), ("redeploy", "Redeploy"), ("performMaintenance", "Redeploy")]
    {
        let operation = place.begin("POST", &format!("{path}/{action}"), &json!({}));
        assert_eq!(place.short("solo"), [format!("{event} Scheduled solo")], "{action}");
        assert_eq!(place.status(&operation), "InProgress", "{action}");
        place.approve("solo", "solo");
        assert_eq!(place.status(&operation), "Succeeded", "{action}");
        assert_eq!(place.short("solo"), [format!("{event} Started solo")], "{action}");
        place.server.advance("5m");
        assert_eq!(place.short("solo"), [""; 0], "{action}");
    }
    // No event, and over at once.
    for action in ["reapply", "reimage", "powerOff?skipShutdown=false", "start", "deallocate", "start"] {
        place.act(&format!("{path}/{action}"), &json!({}));
        assert_eq!(place.short("solo"), [""; 0], "{action}");
    }
    let (code, message) = refusal(&place.ask("POST", &format!("{path}/simulateEviction"), NEW, ""), 409);
    assert_eq!(code, "OperationNotAllowed");
    assert_eq!(message, "Operation 'simulateEviction' is allowed only for Spot Virtual Machines");
    let (code, _) = refusal(&place.ask("POST", &format!("{path}/fly"), NEW, ""), 400);
    assert_eq!(code, "OperationNotSupported");
}

/// promise: E2, Z3
#[test]
fn a_spot_machine_is_evicted_and_one_with_a_profile_is_told_of_its_deletion() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let spot = make_machine(&place, "cheap", &json!({ "priority": "Spot", "evictionPolicy": "Deallocate" }));
    let answer = place.ask("POST", &format!("{spot}/simulateEviction"), NEW, "");
    assert_eq!((answer.status(), answer.body.as_str()), (204, ""));
    assert_eq!(place.short("cheap"), ["Preempt Scheduled cheap"]);
    place.server.advance("5m");
    let view = place.get(&format!("{spot}/instanceView"), NEW);
    assert_eq!(view["statuses"][1]["code"], "PowerState/deallocated", "{view}");

    let profile = json!({ "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT10M" } });
    let dear = make_machine(&place, "dear", &json!({ "scheduledEventsProfile": profile }));
    let operation = place.begin("DELETE", &dear, &json!({}));
    assert_eq!(place.one("dear").what, "Terminate Scheduled");
    assert_eq!(place.status(&operation), "InProgress");
    assert_eq!(place.get(&dear, NEW)["properties"]["provisioningState"], "Deleting");
    place.approve("dear", "dear");
    assert_eq!(place.status(&operation), "Succeeded");
    assert_eq!(refusal(&place.ask("GET", &dear, NEW, ""), 404).0, "ResourceNotFound");
    assert_eq!(place.ask("DELETE", &dear, NEW, "").status(), 204);
}

/// promise: Z1
#[test]
fn a_group_goes_with_its_last_machine() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}");
    let answer = place.ask("DELETE", &group, "2024-11-01", "");
    assert_eq!((answer.status(), answer.body.as_str()), (202, ""));
    assert_eq!(header(&answer, "azure-asyncoperation"), None);
    let monitor = location(&answer);
    assert_eq!(place.short(&instance(0)).len(), 2, "every instance is told");
    assert_eq!(place.ask_url("GET", &monitor, "").status(), 202);
    assert_eq!(place.get(&group, "2024-11-01")["properties"]["provisioningState"], "Deleting");
    place.approve(&instance(0), &instance(0));
    place.approve(&instance(0), &instance(1));
    assert_eq!(place.ask_url("GET", &monitor, "").status(), 200);
    place.server.advance("5m");
    assert_eq!(refusal(&place.ask("GET", &group, "2024-11-01", ""), 404).0, "ResourceGroupNotFound");
    assert_eq!(place.ask("GET", &set(), NEW, "").status(), 404);
    assert!(!place.is_there(&instance(0)));
}
