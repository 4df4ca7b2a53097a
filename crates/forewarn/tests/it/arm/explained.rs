//! The three troubles that the article about terminate notification knows, and who tells their causes.

use serde_json::json;

use forewarn_testkit::arm::{AFTER_5, ArmServer, NEW, SET, instance, notification, refusal, set};

/// A scale set whose instances are told five minutes before.
fn told(place: &ArmServer, capacity: u32) {
    place.make_set(capacity);
    place.put(&set(), NEW, &notification(&json!({ "enable": true })));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
}

/// "Getting error BadRequest": the version of the API is too old. The scale set tells from which on the member is known.
/// promise: C6
#[test]
fn a_refusal_is_explained_with_the_version_that_is_needed() {
    let place = ArmServer::start(crate::program());
    place.make_set(1);
    let sent = notification(&json!({ "enable": true })).to_string();
    let answer = place.ask("PUT", &set(), "2018-10-01", &sent);
    assert_eq!(refusal(&answer, 400).0, "BadRequest");
    let explained = place.server.run(&["scaleset", "explain", SET]);
    assert!(explained.contains("2018-10-01") && explained.contains("2019-03-01"), "{explained}");
}

/// "Not getting Terminate events": an edition that does not know them was asked, or nobody asked before the deletion.
/// promise: C6
#[test]
fn an_event_that_nobody_saw_is_explained() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let id = place.one(&instance(0)).id;
    let old = "/metadata/scheduledevents?api-version=2017-11-01";
    let document = place.server.get(&instance(1), old).body;
    assert!(document.ends_with(r#""Events":[]}"#), "{document}");
    let explained = place.server.run(&["event", "explain", &id]);
    assert!(explained.contains("2017-11-01") && explained.contains("2019-01-01"), "{explained}");
}

/// The same, where nobody has asked: then there is no event, and the machine is asked about.
/// promise: C6
#[test]
fn a_deletion_that_nobody_was_told_of_is_explained() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    place.put(&set(), NEW, &forewarn_testkit::arm::wanted_set(2));
    place.put(&set(), NEW, &notification(&json!({ "enable": true })));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    place.act(&format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let explained = place.server.run(&["vm", "explain", &format!("{SET}/{}", instance(1))]);
    assert!(explained.contains("\nenrolled   no\n"), "{explained}");
}

/// "Getting Terminate event with incorrect NotBefore": the instance runs an older model.
/// promise: C6
#[test]
fn a_notice_of_an_older_model_is_explained() {
    let place = ArmServer::start(crate::program());
    told(&place, 2);
    place.put(&set(), NEW, &notification(&json!({ "enable": true, "notBeforeTimeout": "PT15M" })));
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let seen = place.one(&instance(0));
    assert_eq!(seen.not_before, AFTER_5);
    let explained = place.server.run(&["event", "explain", &seen.id]);
    assert!(explained.contains(&format!("{} runs model", instance(1))), "{explained}");
    assert!(explained.contains("PT5M"), "{explained}");
}
