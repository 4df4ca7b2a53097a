//! The three troubles that the article about terminate notification knows, and who tells their causes.

use serde_json::json;

use crate::place::{AFTER_5, NEW, Place, SET, body, instance, notification, refusal, set, text};

/// A scale set whose instances are told five minutes before.
fn told(place: &Place, capacity: u32) {
    place.make_set(capacity);
    place.put(&set(), NEW, &notification(&json!({ "enable": true })));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
}

/// "Getting error BadRequest": the version of the API is too old, and the refusal says from which on it is known.
#[test]
fn a_refusal_names_the_version_that_is_needed() {
    let place = Place::start();
    place.make_set(1);
    let sent = notification(&json!({ "enable": true })).to_string();
    let answer = place.ask("PUT", &set(), "2018-10-01", &sent);
    assert_eq!(refusal(&answer, 400).0, "BadRequest");
    let why = text(&body(&answer)["error"]["details"][0]["message"]);
    assert!(why.contains("2018-10-01") && why.contains("2019-03-01"), "{why}");
}

/// "Not getting Terminate events": an edition that does not know them was asked, or nobody asked before the deletion.
#[test]
fn an_event_that_nobody_saw_is_explained() {
    let place = Place::start();
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
#[test]
fn a_deletion_that_nobody_was_told_of_is_explained() {
    let place = Place::start();
    place.make_group();
    place.put(&set(), NEW, &crate::place::wanted_set(2));
    place.put(&set(), NEW, &notification(&json!({ "enable": true })));
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    place.act(&format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let explained = place.server.run(&["vm", "explain", &format!("{SET}/{}", instance(1))]);
    assert!(explained.contains("\nenrolled          no\n"), "{explained}");
}

/// "Getting Terminate event with incorrect NotBefore": the instance runs an older model.
#[test]
fn a_notice_of_an_older_model_is_explained() {
    let place = Place::start();
    told(&place, 2);
    place.put(&set(), NEW, &notification(&json!({ "enable": true, "notBeforeTimeout": "PT15M" })));
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let seen = place.one(&instance(0));
    assert_eq!(seen.not_before, AFTER_5);
    let explained = place.server.run(&["event", "explain", &seen.id]);
    assert!(explained.contains(&format!("{} runs model", instance(1))), "{explained}");
    assert!(explained.contains("PT5M"), "{explained}");
}
