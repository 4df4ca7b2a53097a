//! Which events a condition fits, in every edition.

use forewarn_agent_core::{Condition, ObservedEvent};
use forewarn_imds::{Edition, Reading, read_document};
use serde_json::json;

use super::support::{Event, ME, Machine, drain};

/// A condition as it is written in settings.
pub(crate) fn condition(text: &str) -> Condition {
    toml::from_str(text).unwrap_or_else(|problem| panic!("{problem}"))
}

fn observed(event: &Event, edition: Edition) -> ObservedEvent {
    let body = json!({"DocumentIncarnation": 1, "Events": [event.0]}).to_string();
    let Ok(Reading::Document(document)) = read_document(body.as_bytes()) else { panic!("{body}") };
    ObservedEvent::read(&document.events[0], edition).unwrap()
}

fn fits(text: &str, event: &Event) -> bool {
    condition(text).fits(&observed(event, Edition::newest()), ME)
}

/// promise: A3
#[test]
fn types_sources_and_durations() {
    let event = Event::new(1, "Freeze", &[ME], 900).with("DurationInSeconds", 9);
    for (text, expected) in [
        ("", true),
        ("types = ['Freeze', 'Reboot']", true),
        ("types = ['Reboot']", false),
        ("sources = ['Platform']", true),
        ("sources = ['User']", false),
        ("shorter_than = '10s'", true),
        ("shorter_than = '9s'", false),
        ("at_least = '9s'", true),
        ("at_least = '10s'", false),
        ("mine = 'no'", false),
        ("mine = 'any'", true),
    ] {
        assert_eq!(fits(text, &event), expected, "{text}");
    }
}

/// promise: A3
#[test]
fn what_a_document_does_not_say_fits_only_if_that_was_said() {
    let event = Event::new(1, "Freeze", &[ME], 900);
    let old = event.clone().without("DurationInSeconds").without("EventSource").without("Description");
    for text in
        ["shorter_than = '10s'", "at_least = '1s'", "sources = ['Platform']", "live_migration = false"]
    {
        assert!(!fits(text, &old), "{text}");
        assert!(fits(&format!("{text}\nunknown = true"), &old), "{text}");
    }
    assert!(!fits("shorter_than = '10s'", &event), "-1 is not short, it is unknown");
    assert!(fits("shorter_than = '10s'\nunknown = true", &event));
}

/// promise: A3
#[test]
fn a_live_migration_is_told_from_other_freezes() {
    let freeze = |text: &str| Event::new(1, "Freeze", &[ME], 900).with("Description", text);
    let words = "Virtual machine is being paused because of a memory-preserving Live Migration operation.";
    assert!(fits("live_migration = true", &freeze(words)));
    assert!(!fits("live_migration = false", &freeze(words)));
    assert!(fits("live_migration = false", &freeze("Host server is undergoing maintenance.")));
}

/// promise: A3
#[test]
fn names_are_compared_whole() {
    for (resources, expected) in [
        (vec!["web_0"], true),
        (vec!["web_01"], false),
        (vec!["eb_0", "xweb_0"], false),
        (vec!["WEB_0"], false),
    ] {
        assert_eq!(fits("", &Event::new(1, "Reboot", &resources, 900)), expected, "{resources:?}");
    }
}

/// promise: A3
#[test]
fn the_underscore_of_the_preview_is_not_part_of_a_name_and_only_there() {
    let event = Event::new(1, "Reboot", &["_web_0", "_web_1"], 900);
    assert_eq!(observed(&event, Edition::V2017_03_01).resources, ["web_0", "web_1"]);
    assert_eq!(observed(&event, Edition::V2017_08_01).resources, ["_web_0", "_web_1"]);
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.edition = Edition::V2017_03_01;
    let old = event.without("DurationInSeconds").without("EventSource").without("Description");
    machine.observe(&[old]);
    assert_eq!(machine.running(), ["scheduled drain"]);
}

#[test]
fn a_mistake_in_a_condition_is_an_error() {
    for text in
        ["types = ['reboot']", "shorter_than = 10", "shorter = '10s'", "mine = true", "sources = ['Me']"]
    {
        assert!(toml::from_str::<Condition>(text).is_err(), "{text}");
    }
}
