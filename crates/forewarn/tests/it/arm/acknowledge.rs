//! Agreeing through Azure Resource Manager, for those who cannot ask from inside the machine.

use serde_json::json;

use forewarn_testkit::arm::{ArmServer, NEW, compute, instance, notification, set};

const VERSION: &str = "2025-10-01-preview";

/// A scale set with two deletions that are announced.
fn announced(place: &ArmServer) -> [String; 2] {
    place.make_set(3);
    place.put(&set(), NEW, &notification(&json!({ "enable": true })));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1", "2"] }));
    let seen = place.seen(&instance(0));
    [seen[0].id.clone(), seen[1].id.clone()]
}

fn events(of: &str) -> String {
    format!("{of}/providers/Microsoft.Maintenance/scheduledevents")
        .replace("resourceGroups", "resourcegroups")
}

/// As it was answered by the real one.
const UNKNOWN: &str = r#"{"Error":{"Code":"InvalidScheduledEventId","Message":"Scheduled event not found"}}"#;

/// promise: Z3
#[test]
fn an_event_is_acknowledged_by_its_id() {
    let place = ArmServer::start(crate::program());
    let [first, second] = announced(&place);
    for id in [&first, &second.to_lowercase()] {
        let answer = place.ask("POST", &format!("{}/{id}/acknowledge", events(&set())), VERSION, "");
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert!(forewarn_testkit::arm::body(&answer)["value"].is_string(), "{answer:?}");
    }
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Started"));
    // Once more does no harm.
    let again = place.ask("POST", &format!("{}/{first}/acknowledge", events(&set())), VERSION, "");
    assert_eq!(again.status(), 200, "{again:?}");
}

/// promise: Z3
#[test]
fn several_are_acknowledged_at_once_or_none() {
    let place = ArmServer::start(crate::program());
    let [first, second] = announced(&place);
    let stranger = "11111111-2222-3333-4444-555555555555";
    let post =
        |ids: &[&str]| place.ask("POST", &events(&set()), VERSION, &json!({ "value": ids }).to_string());
    assert_eq!(post(&[&first, stranger, &second]).short(), (404, UNKNOWN));
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Scheduled"));
    let answer = post(&[&first, &second]);
    assert_eq!(answer.status(), 200, "{answer:?}");
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Started"));
}

/// promise: Z3
#[test]
fn what_is_not_known_or_another_s_is_not_found() {
    let place = ArmServer::start(crate::program());
    let [first, _] = announced(&place);
    let vm =
        json!({ "location": "eastus", "properties": { "hardwareProfile": { "vmSize": "Standard_D2s_v3" } } });
    let solo = format!("{}/virtualMachines/solo", compute());
    place.put(&solo, NEW, &vm);
    for (of, id) in
        [(set(), "11111111-2222-3333-4444-555555555555"), (set(), "nothing"), (solo.clone(), first.as_str())]
    {
        let answer = place.ask("POST", &format!("{}/{id}/acknowledge", events(&of)), VERSION, "");
        assert_eq!(answer.short(), (404, UNKNOWN), "{of} {id}");
    }
    let nobody = solo.replace("solo", "nobody");
    let answer = place.ask("POST", &format!("{}/{first}/acknowledge", events(&nobody)), VERSION, "");
    assert_eq!(answer.status(), 404, "{answer:?}");
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Scheduled"));
}
