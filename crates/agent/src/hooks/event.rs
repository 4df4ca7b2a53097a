//! The data of an event for hooks: environment variables, placeholders, JSON.
//!
//! Event data is untrusted. It becomes values only, never names or arguments. Control characters, including line ends,
//! are replaced by spaces in environment variables and placeholders.

use std::time::Duration;

use forewarn_agent_core::{EventOutcome, ObservedEvent};
use forewarn_imds::print_date;
use forewarn_types::{Moment, Timestamp};
use serde_json::{Map, Value, json};

use super::Job;
use crate::clock;

/// Limit of the length of a value.
const VALUE_CHARS_MAX: usize = 4_096;

/// An environment variable of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventVariable {
    pub(super) variable: &'static str,
    pub(super) value: String,
}

/// The names of all variables.
pub(super) const VARIABLES: [&str; 18] = [
    "EVENT_ID",
    "EVENT_TYPE",
    "EVENT_STATUS",
    "EVENT_SOURCE",
    "EVENT_NOTBEFORE",
    "EVENT_RESOURCES",
    "EVENT_RESOURCETYPE",
    "EVENT_DURATION",
    "EVENT_DESCRIPTION",
    "EVENT_DEADLINE",
    "EVENT_SECONDS_LEFT",
    "EVENT_LIVE_MIGRATION",
    "FOREWARN_PHASE",
    "FOREWARN_HOOK",
    "FOREWARN_ATTEMPT",
    "FOREWARN_SECONDS_LEFT",
    "FOREWARN_NAME",
    "FOREWARN_OUTCOME",
];

/// All variables of a hook. Unknown values are empty.
pub(super) fn event_variables(job: &Job) -> Vec<EventVariable> {
    let observed = &job.run.observed;
    let values = [
        observed.id.to_string(),
        observed.kind.clone(),
        observed.status.as_str().to_owned(),
        observed.source.clone().unwrap_or_default(),
        not_before(observed),
        list(&observed.resources),
        observed.resource_type.clone(),
        observed.duration_seconds.map(|seconds| seconds.to_string()).unwrap_or_default(),
        observed.description.clone().unwrap_or_default(),
        deadline(job.limit),
        job.left.map(|left| left.as_secs().to_string()).unwrap_or_default(),
        live_migration(observed).to_owned(),
        job.run.task.phase.as_str().to_owned(),
        job.run.task.hook.clone(),
        job.run.attempt.to_string(),
        job.limit.as_secs().to_string(),
        job.me.clone(),
        outcome(job.run.outcome).to_owned(),
    ];
    let variable =
        |(variable, value): (&'static str, String)| EventVariable { variable, value: plain(&value) };
    VARIABLES.into_iter().zip(values).map(variable).collect()
}

/// The event as in the document. Keys that its edition lacks are absent.
pub(super) fn event_json(observed: &ObservedEvent) -> Value {
    let mut event = Map::new();
    event.insert("EventId".to_owned(), json!(observed.id.to_string()));
    event.insert("EventStatus".to_owned(), json!(observed.status.as_str()));
    event.insert("EventType".to_owned(), json!(observed.kind));
    event.insert("ResourceType".to_owned(), json!(observed.resource_type));
    event.insert("Resources".to_owned(), json!(observed.resources));
    event.insert("NotBefore".to_owned(), json!(not_before(observed)));
    if let Some(description) = &observed.description {
        event.insert("Description".to_owned(), json!(description));
    }
    if let Some(source) = &observed.source {
        event.insert("EventSource".to_owned(), json!(source));
    }
    if let Some(seconds) = observed.duration_seconds {
        event.insert("DurationInSeconds".to_owned(), json!(seconds));
    }
    Value::Object(event)
}

/// The time after a delay from now, in whole seconds.
pub(super) fn moment_in(span: Duration) -> Moment {
    let at = clock::wall().plus(span);
    Moment(Timestamp::from_millis(at.seconds().saturating_mul(1_000)))
}

/// A value on one line, truncated to the limit.
pub(super) fn plain(text: &str) -> String {
    text.chars().take(VALUE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Names separated by commas. Names that do not fit are omitted as a whole.
fn list(names: &[String]) -> String {
    let mut room = VALUE_CHARS_MAX + 1;
    let fits = |name: &&String| {
        let needed = name.chars().count() + 1;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    names.iter().take_while(fits).map(String::as_str).collect::<Vec<_>>().join(",")
}

fn not_before(observed: &ObservedEvent) -> String {
    observed.not_before.map(|Moment(at)| print_date(at)).unwrap_or_default()
}

fn deadline(limit: Duration) -> String {
    moment_in(limit).to_string()
}

fn live_migration(observed: &ObservedEvent) -> &'static str {
    match observed.is_live_migration() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

/// The outcome of the event, if it has ended.
fn outcome(event_outcome: Option<EventOutcome>) -> &'static str {
    match event_outcome {
        Some(EventOutcome::Completed) => "completed",
        Some(EventOutcome::Cancelled) => "cancelled",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::fixtures;
    use forewarn_agent_core::Phase;

    /// promise: A4
    #[test]
    fn variables_are_complete_and_plain_text() {
        let mut job = fixtures::job("drain", Phase::Completed);
        job.run.observed.description = Some("a\nb\0c\u{1b}[31m$(reboot)".to_owned());
        job.run.observed.resources = vec!["web_0".to_owned(), "web_1".to_owned()];
        job.run.outcome = Some(EventOutcome::Completed);
        job.left = Some(Duration::from_millis(61_900));
        let event_variables = event_variables(&job);
        let value = |name: &str| {
            event_variables.iter().find(|variable| variable.variable == name).unwrap().value.clone()
        };
        assert_eq!(value("EVENT_ID"), "28512AF7-C957-4500-9BC4-842D6FB531E4");
        assert_eq!(value("EVENT_DESCRIPTION"), "a b c [31m$(reboot)");
        assert_eq!(value("EVENT_RESOURCES"), "web_0,web_1");
        assert_eq!(value("EVENT_NOTBEFORE"), "Wed, 24 Jan 2018 21:20:44 GMT");
        assert_eq!(value("EVENT_SOURCE"), "");
        assert_eq!(value("EVENT_LIVE_MIGRATION"), "no");
        assert_eq!(value("FOREWARN_OUTCOME"), "completed");
        assert_eq!(
            (value("FOREWARN_SECONDS_LEFT").as_str(), value("EVENT_SECONDS_LEFT").as_str()),
            ("20", "61")
        );
        assert!(value("EVENT_DEADLINE").ends_with('Z'), "{}", value("EVENT_DEADLINE"));
        assert_eq!(event_variables.len(), VARIABLES.len());
    }

    #[test]
    fn names_that_do_not_fit_are_left_out_whole() {
        let mut job = fixtures::job("drain", Phase::Scheduled);
        let resources = |job: &Job| event_variables(job)[5].value.clone();
        let name = |number: usize| format!("machine-{number:03}");
        // Twelve characters each with the comma: 341 of them leave five of 4,096 characters.
        job.run.observed.resources = (0..400).map(name).collect();
        let expected = (0..341).map(name).collect::<Vec<_>>().join(",");
        assert_eq!((event_variables(&job)[5].variable, resources(&job)), ("EVENT_RESOURCES", expected));
        // The last name ends exactly at the limit.
        job.run.observed.resources = vec!["a".repeat(4_090), "bcdef".to_owned()];
        assert_eq!(resources(&job).len(), 4_096);
        job.run.observed.resources = vec!["a".repeat(4_090), "bcdefg".to_owned(), "h".to_owned()];
        assert_eq!(resources(&job), "a".repeat(4_090));
        job.run.observed.resources = vec!["é".repeat(4_097)];
        assert_eq!(resources(&job), "", "names are never truncated");
    }

    #[test]
    fn the_event_json_matches_the_document() {
        let mut job = fixtures::job("drain", Phase::Scheduled);
        let expected = concat!(
            r#"{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","EventStatus":"Scheduled","EventType":"Reboot","#,
            r#""ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT","#,
            r#""Description":"Host server is undergoing maintenance."}"#,
        );
        assert_eq!(event_json(&job.run.observed).to_string(), expected);
        job.run.observed.not_before = None;
        job.run.observed.duration_seconds = Some(-1);
        let json = event_json(&job.run.observed);
        assert_eq!((&json["NotBefore"], &json["DurationInSeconds"]), (&json!(""), &json!(-1)));
    }
}
