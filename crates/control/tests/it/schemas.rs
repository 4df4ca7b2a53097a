//! Whoever makes a request by the schemas makes one that is understood.

use forewarn_control::{Fleet, HostEntry, NamedCommand, PolicyEntry, RolloutEntry, schema};
use forewarn_lifecycle::{EventId, Name};
use forewarn_types::{EventKind, FaultAnswer, FaultedRequest, Moment, Span};
use proptest::prelude::*;
use proptest::string::string_regex;
use schemars::{JsonSchema, schema_for};
use serde_json::json;

/// Texts as the schema of a type has them.
fn texts<T: JsonSchema>() -> impl Strategy<Value = String> {
    let schema = schema_for!(T);
    let pattern = schema.get("pattern").and_then(|pattern| pattern.as_str()).unwrap();
    let chars_max = schema.get("maxLength").and_then(serde_json::Value::as_u64).unwrap_or(u64::MAX);
    let pattern = string_regex(pattern.trim_start_matches('^').trim_end_matches('$')).unwrap();
    pattern.prop_filter("too long", move |text| text.len() as u64 <= chars_max)
}

proptest! {
    /// promise: C3
    #[test]
    fn a_new_name_by_its_schema_is_a_name(text in texts::<schema::NewName>()) {
        prop_assert!(Name::new(&text).is_ok(), "{}", text);
    }

    #[test]
    fn a_name_by_its_schema_may_be_that_of_something(text in texts::<schema::Name>()) {
        prop_assert!(Name::restored(&text).is_ok(), "{}", text);
    }

    /// promise: C3
    #[test]
    fn a_length_of_time_by_its_schema_is_read(text in texts::<Span>()) {
        prop_assert!(text.parse::<Span>().is_ok(), "{}", text);
    }

    /// promise: C3
    #[test]
    fn a_notice_by_its_schema_is_one(text in texts::<schema::Notice>()) {
        let Span(span) = text.parse().unwrap();
        prop_assert!((300..=900).contains(&span.as_secs()), "{}", text);
    }

    #[test]
    fn the_id_of_an_event_by_its_schema_is_read(text in texts::<schema::EventId>()) {
        prop_assert!(EventId::parse(&text).is_some(), "{}", text);
    }
}

/// Clients are generated from the schemas, and know the types by these names.
#[test]
fn types_that_are_texts_keep_the_names_of_their_schemas() {
    let texts = [Span::schema_name(), Moment::schema_name(), EventKind::schema_name()];
    assert_eq!(texts, ["Span", "Moment", "KindWord"]);
    let faults = [FaultAnswer::schema_name(), FaultedRequest::schema_name()];
    assert_eq!(faults, ["FaultAnswer", "FaultedRequest"]);
}

#[test]
fn every_name_that_may_be_chosen_is_one_by_the_schema() {
    let schema = schema_for!(schema::NewName);
    assert_eq!(schema.get("maxLength"), Some(&json!(80)));
    assert_eq!(schema.get("pattern"), Some(&json!(r"^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$")));
}

/// promise: C3
#[test]
fn every_command_has_a_schema_that_lets_nothing_else_pass() {
    let schema = schema_for!(NamedCommand);
    let commands = schema.get("oneOf").and_then(|all| all.as_array()).unwrap();
    assert!(commands.iter().all(|command| command["additionalProperties"] == false));
    let of = |word: &str| {
        commands.iter().find(|command| command["properties"]["command"]["const"] == word).unwrap()
    };
    assert_eq!(of("brake_on")["required"], json!(["command"]));
    assert!(of("restart")["properties"]["machine"]["pattern"].is_string());
    assert!(of("update_hosts")["properties"]["hosts"]["items"]["pattern"].is_string());
    assert_eq!(of("admit_availability_set")["properties"]["machine"]["maxItems"], 0);
}

/// promise: C3
#[test]
fn an_entry_is_an_object_and_never_a_list() {
    assert!(serde_json::from_value::<PolicyEntry>(json!({})).is_ok());
    for wrong in [json!([]), json!(["asked", "asked", "asked"]), json!(null)] {
        let problem = serde_json::from_value::<PolicyEntry>(wrong).unwrap_err().to_string();
        assert!(problem.ends_with("expected an object"), "{problem}");
    }
    assert!(serde_json::from_value::<HostEntry>(json!(["h1", null])).is_err());
    assert!(serde_json::from_value::<Fleet>(json!({ "site": [] })).is_err());
    assert!(Fleet::parse("host = [['h1']]").is_err());
    for wrong in
        [json!({ "kind": "update", "hosts": [0] }), json!({ "kind": "update", "hosts": "all", "terms": [] })]
    {
        assert!(serde_json::from_value::<RolloutEntry>(wrong).is_err());
    }
}
