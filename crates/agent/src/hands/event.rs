//! An event as hooks are told of it: variables, placeholders, JSON.
//!
//! Everything in an event was written by somebody else. Here it becomes values, never names and never arguments; control
//! characters, line ends too, are replaced by spaces where a value stands alone.

use std::time::Duration;

use forewarn_agent_core::{Gone, Seen};
use forewarn_imds::print_date;
use forewarn_types::{Moment, Timestamp};
use serde_json::{Map, Value, json};

use super::Job;
use crate::clock;

/// Characters of a value that hooks are told.
const VALUE_CHARS_MAX: usize = 4_096;

/// Something that a hook is told: the name of a variable, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) variable: &'static str,
    pub(super) value: String,
}

/// The names of all facts.
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

/// Everything that a hook is told. What is not known is empty.
pub(super) fn facts(job: &Job) -> Vec<Fact> {
    let seen = &job.run.seen;
    let values = [
        seen.id.to_string(),
        seen.kind.clone(),
        seen.status.as_str().to_owned(),
        seen.source.clone().unwrap_or_default(),
        not_before(seen),
        list(&seen.resources),
        seen.resource_type.clone(),
        seen.duration_seconds.map(|seconds| seconds.to_string()).unwrap_or_default(),
        seen.description.clone().unwrap_or_default(),
        deadline(job.limit),
        job.left.map(|left| left.as_secs().to_string()).unwrap_or_default(),
        live_migration(seen).to_owned(),
        job.run.task.phase.as_str().to_owned(),
        job.run.task.hook.clone(),
        job.run.attempt.to_string(),
        job.limit.as_secs().to_string(),
        job.me.clone(),
        outcome(job.run.outcome).to_owned(),
    ];
    let fact = |(variable, value): (&'static str, String)| Fact { variable, value: plain(&value) };
    VARIABLES.into_iter().zip(values).map(fact).collect()
}

/// The event in the words of a document; keys that its edition lacks are absent.
pub(super) fn event_json(seen: &Seen) -> Value {
    let mut event = Map::new();
    event.insert("EventId".to_owned(), json!(seen.id.to_string()));
    event.insert("EventStatus".to_owned(), json!(seen.status.as_str()));
    event.insert("EventType".to_owned(), json!(seen.kind));
    event.insert("ResourceType".to_owned(), json!(seen.resource_type));
    event.insert("Resources".to_owned(), json!(seen.resources));
    event.insert("NotBefore".to_owned(), json!(not_before(seen)));
    if let Some(description) = &seen.description {
        event.insert("Description".to_owned(), json!(description));
    }
    if let Some(source) = &seen.source {
        event.insert("EventSource".to_owned(), json!(source));
    }
    if let Some(seconds) = seen.duration_seconds {
        event.insert("DurationInSeconds".to_owned(), json!(seconds));
    }
    Value::Object(event)
}

/// A moment that is so far from now, in whole seconds.
pub(super) fn moment_in(span: Duration) -> Moment {
    let at = clock::wall().plus(span);
    Moment(Timestamp::from_millis(at.seconds().saturating_mul(1_000)))
}

/// A value that stands alone: one line, and no longer than anybody reads.
pub(super) fn plain(text: &str) -> String {
    text.chars().take(VALUE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Names with commas between, as many as fit: each of them whole.
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

fn not_before(seen: &Seen) -> String {
    seen.not_before.map(|Moment(at)| print_date(at)).unwrap_or_default()
}

fn deadline(limit: Duration) -> String {
    moment_in(limit).to_string()
}

fn live_migration(seen: &Seen) -> &'static str {
    match seen.is_live_migration() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

/// How the event ended, if it has.
fn outcome(gone: Option<Gone>) -> &'static str {
    match gone {
        Some(Gone::Completed) => "completed",
        Some(Gone::Cancelled) => "cancelled",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::samples;
    use forewarn_agent_core::Phase;

    #[test]
    fn a_hook_is_told_everything_and_nothing_but_plain_text() {
        let mut job = samples::job("drain", Phase::Completed);
        job.run.seen.description = Some("a\nb\0c\u{1b}[31m$(reboot)".to_owned());
        job.run.seen.resources = vec!["web_0".to_owned(), "web_1".to_owned()];
        job.run.outcome = Some(Gone::Completed);
        job.left = Some(Duration::from_millis(61_900));
        let facts = facts(&job);
        let value = |name: &str| facts.iter().find(|fact| fact.variable == name).unwrap().value.clone();
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
        assert_eq!(facts.len(), VARIABLES.len());
    }

    #[test]
    fn names_that_do_not_fit_are_left_out_whole() {
        let mut job = samples::job("drain", Phase::Scheduled);
        let told = |job: &Job| facts(job)[5].value.clone();
        let name = |number: usize| format!("machine-{number:03}");
        // Twelve characters each, with the comma: 341 of them leave five of 4,096 characters.
        job.run.seen.resources = (0..400).map(name).collect();
        let expected = (0..341).map(name).collect::<Vec<_>>().join(",");
        assert_eq!((facts(&job)[5].variable, told(&job)), ("EVENT_RESOURCES", expected));
        // The last one ends just where there is no more room.
        job.run.seen.resources = vec!["a".repeat(4_090), "bcdef".to_owned()];
        assert_eq!(told(&job).len(), 4_096);
        job.run.seen.resources = vec!["a".repeat(4_090), "bcdefg".to_owned(), "h".to_owned()];
        assert_eq!(told(&job), "a".repeat(4_090));
        job.run.seen.resources = vec!["é".repeat(4_097)];
        assert_eq!(told(&job), "", "part of a name is no name");
    }

    #[test]
    fn an_event_is_told_in_the_words_of_a_document() {
        let mut job = samples::job("drain", Phase::Scheduled);
        let expected = concat!(
            r#"{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","EventStatus":"Scheduled","EventType":"Reboot","#,
            r#""ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT","#,
            r#""Description":"Host server is undergoing maintenance."}"#,
        );
        assert_eq!(event_json(&job.run.seen).to_string(), expected);
        job.run.seen.not_before = None;
        job.run.seen.duration_seconds = Some(-1);
        let json = event_json(&job.run.seen);
        assert_eq!((&json["NotBefore"], &json["DurationInSeconds"]), (&json!(""), &json!(-1)));
    }
}
