//! How long before its deletion an instance is told: any length of ISO 8601 from five to fifteen minutes, and nothing else.

use serde_json::{Value, json};

use forewarn_testkit::arm::{
    AFTER_5, ArmServer, NEW, body, instance, notification, refusal, set, shown_notification, text, wanted_set,
};

/// Lengths that are accepted, and when a deletion at the start of the clock is due.
const GOOD: [(&str, &str); 9] = [
    ("PT5M", AFTER_5),
    ("PT7M30S", "Thu, 01 Jan 2026 00:07:30 GMT"),
    ("PT600S", "Thu, 01 Jan 2026 00:10:00 GMT"),
    ("PT0H15M", "Thu, 01 Jan 2026 00:15:00 GMT"),
    ("PT15M", "Thu, 01 Jan 2026 00:15:00 GMT"),
    ("PT0H5M0S", AFTER_5),
    ("P0DT10M", "Thu, 01 Jan 2026 00:10:00 GMT"),
    ("PT300S", AFTER_5),
    ("PT900S", "Thu, 01 Jan 2026 00:15:00 GMT"),
];

const BAD: [&str; 14] = [
    "PT4M59S",
    "PT15M1S",
    "P1D",
    "10",
    "",
    "PT",
    "P",
    "5M",
    "PT-10M",
    "00:10:00",
    "PT10M ",
    "PT1H",
    "ten minutes",
    "PT99999999999999999999S",
];

fn length(profile: &Value) -> Value {
    notification(profile)
}

/// promise: Z2
#[test]
fn a_length_from_five_to_fifteen_minutes_is_returned_as_given_and_kept_to() {
    let place = ArmServer::start(crate::program());
    place.make_set(u32::try_from(GOOD.len()).unwrap() + 1);
    for (number, (given, due)) in (1..).zip(GOOD) {
        let profile = json!({ "enable": true, "notBeforeTimeout": given });
        place.put(&set(), NEW, &length(&profile));
        assert_eq!(shown_notification(&place.get(&set(), NEW)), &profile);
        place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
        place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": [number.to_string()] }));
        let seen = place.seen(&instance(0));
        let event = seen.iter().find(|seen| seen.whom == instance(number)).expect("it is told");
        assert_eq!((event.what.as_str(), event.not_before.as_str()), ("Terminate Scheduled", due), "{given}");
    }
}

/// promise: Z2
#[test]
fn any_other_length_is_refused_by_name_and_changes_nothing() {
    let place = ArmServer::start(crate::program());
    place.make_set(1);
    place.put(&set(), NEW, &length(&json!({ "enable": true, "notBeforeTimeout": "PT6M" })));
    let before = place.get(&set(), NEW);
    for bad in BAD {
        let sent = length(&json!({ "enable": true, "notBeforeTimeout": bad })).to_string();
        for method in ["PUT", "PATCH"] {
            let answer = place.ask(method, &set(), NEW, &sent);
            let (code, message) = refusal(&answer, 400);
            assert_eq!(code, "InvalidParameter", "{bad:?}: {message}");
            let target = text(&body(&answer)["error"]["target"]);
            assert!(target.ends_with("notBeforeTimeout"), "{bad:?}: {target}");
        }
    }
    assert_eq!(place.get(&set(), NEW), before);
    // Neither is a scale set made with one.
    let mut wanted = wanted_set(1);
    wanted["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] =
        json!({ "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT16M" } });
    let other = set() + "-other";
    assert_eq!(refusal(&place.ask("PUT", &other, NEW, &wanted.to_string()), 400).0, "InvalidParameter");
    assert_eq!(place.ask("GET", &other, NEW, "").status(), 404);
}

/// promise: Z2
#[test]
fn enabled_without_a_length_it_is_five_minutes_and_disabled_nobody_is_told() {
    let place = ArmServer::start(crate::program());
    place.make_set(3);
    place.put(&set(), NEW, &length(&json!({ "enable": true })));
    let shown = place.get(&set(), NEW);
    assert_eq!(shown_notification(&shown), &json!({ "enable": true, "notBeforeTimeout": "PT5M" }));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    let operation = place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    assert_eq!(place.one(&instance(0)).not_before, AFTER_5);
    place.approve(&instance(0), &instance(1));
    assert_eq!(place.status(&operation), "Succeeded");
    place.server.advance("1m");
    assert_eq!(place.short(&instance(0)), [""; 0]);

    place.put(&set(), NEW, &length(&json!({ "enable": false })));
    assert_eq!(shown_notification(&place.get(&set(), NEW))["enable"], false);
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    place.act(&format!("{}/delete", set()), &json!({ "instanceIds": ["2"] }));
    assert_eq!(place.short(&instance(0)), [""; 0]);
    place.server.advance("1m");
    assert!(!place.is_there(&instance(2)));
}
