//! The JSON format of the log: one object for each event, on one line, and no key twice.
//!
//! `timestamp`, `level` and `message` come first. A field with one of these names, or one that an event has twice, is
//! written under its name with a number behind it (`message_2`), so that no field can hide another.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The key of the message of an event, both here and in `tracing`.
const MESSAGE: &str = "message";

/// Formats events as JSON objects.
pub(crate) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut object = head(event.metadata().level().as_str());
        let mut fields = Fields::default();
        event.record(&mut fields);
        object.insert(MESSAGE.to_owned(), fields.message.unwrap_or_default().into());
        fields.others.into_iter().for_each(|(name, value)| insert(&mut object, name, value));
        writeln!(writer, "{}", Value::Object(object))
    }
}

/// An object of the same form for standard output, outside the log: a message and its members.
pub(crate) fn object(message: &str, members: &[(&str, &str)]) -> String {
    let mut object = head("INFO");
    object.insert(MESSAGE.to_owned(), message.into());
    members.iter().for_each(|(name, value)| insert(&mut object, name, (*value).into()));
    Value::Object(object).to_string()
}

fn head(level: &str) -> Map<String, Value> {
    let mut timestamp = String::new();
    // Formatting of the time cannot fail here; if it does, the field is empty.
    SystemTime.format_time(&mut Writer::new(&mut timestamp)).ok();
    let mut object = Map::new();
    object.insert("timestamp".to_owned(), timestamp.into());
    object.insert("level".to_owned(), level.into());
    object
}

/// Adds a member under its name, or under the first name with a number behind it that is free.
fn insert(object: &mut Map<String, Value>, name: &str, value: Value) {
    let numbered = (2..).map(|number: u32| format!("{name}_{number}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered);
    if let Some(free) = names.find(|name| !object.contains_key(name)) {
        object.insert(free, value);
    }
}

/// The fields of an event. The macros of `tracing` record the message first, so a later field of that name is another
/// one.
#[derive(Default)]
struct Fields {
    message: Option<String>,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.others.push((field.name(), value));
    }

    fn add_text(&mut self, field: &Field, text: String) {
        if field.name() == MESSAGE && self.message.is_none() {
            self.message = Some(text);
        } else {
            self.add(field, text.into());
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured::lines;

    /// promise: S6
    #[test]
    fn keys_of_a_log_line_are_unique() {
        let lines = lines(|| {
            let message = "no such domain";
            tracing::warn!(message, level = "high", timestamp = 7, target = "x", "an impact failed");
            tracing::info!(problem = "a\n\"b\"\u{1b}", share = f64::NAN, ok = true, left = -3, "words {}", 1);
        });
        let read = |line: &str| serde_json::from_str::<Map<String, Value>>(line).unwrap();
        let first = read(&lines[0]);
        assert_eq!(first["level"], "WARN");
        assert_eq!(first["message"], "an impact failed");
        assert_eq!(first["message_2"], "no such domain");
        assert_eq!((&first["level_2"], &first["timestamp_2"]), (&"high".into(), &7.into()));
        // Reading keeps the last of a key that occurs twice: it must occur once in the line, too.
        for key in first.keys() {
            assert_eq!(lines[0].matches(&format!("\"{key}\":")).count(), 1, "{key}: {}", lines[0]);
        }
        let second = read(&lines[1]);
        assert_eq!((&second["message"], &second["problem"]), (&"words 1".into(), &"a\n\"b\"\u{1b}".into()));
        assert_eq!(
            (&second["share"], &second["ok"], &second["left"]),
            (&Value::Null, &true.into(), &(-3).into())
        );
        assert_eq!(lines.len(), 2, "an event is one line");
    }

    #[test]
    fn an_object_without_an_event_looks_the_same() {
        let text = object("server ready", &[("api", "http://h"), ("message", "x")]);
        let read: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let keys: Vec<_> = read.keys().map(String::as_str).collect();
        assert_eq!(keys, ["timestamp", "level", "message", "api", "message_2"]);
    }
}
