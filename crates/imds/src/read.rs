//! Parsing of documents of any edition, from any service with this format.
//!
//! A client must tolerate newer services: unknown keys are skipped, unknown words are stored as text, and fields that
//! older editions lack are `None`. An empty body is not an error: the service returns it while it is being enabled. A
//! malformed event does not prevent the parsing of the others.

use std::fmt;

use forewarn_types::{EventId, EventKind, EventSource, Timestamp};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::date::{parse_date, parse_iso};
use crate::json::{DEPTH_MAX, is_too_deep};
use crate::words::{Status, Word};

/// Maximum size of a document: twenty times the size of a thousand events with one machine each.
pub const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of events in a document: more would keep a client busy with nothing else.
pub const DOCUMENT_EVENTS_MAX: usize = 10_000;

/// Characters of the error of a malformed event.
const ERROR_CHARS_MAX: usize = 300;

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// No document yet: keep the known state, and poll again.
    NoNews,
    /// A document.
    Document(ReadDocument),
}

/// A parsed document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDocument {
    /// Equal numbers mean equal documents.
    pub incarnation: u64,
    /// In the order of the document.
    pub events: Vec<ReadEvent>,
    /// Malformed events, in the order of the document. They still exist: a known event that is now malformed has not
    /// ended.
    pub malformed: Vec<MalformedEvent>,
}

/// A malformed event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MalformedEvent {
    /// Its id; `None` if that is malformed too.
    pub id: Option<EventId>,
    /// The error, which names the field.
    pub error: String,
}

impl MalformedEvent {
    /// An event with that error, which is truncated if it is long.
    #[must_use]
    pub fn new(id: Option<EventId>, error: &str) -> Self {
        Self { id, error: error.chars().take(ERROR_CHARS_MAX).collect() }
    }
}

/// A parsed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadEvent {
    /// The same for the event's whole life.
    pub id: EventId,
    /// Scheduled or started.
    pub status: Word<Status>,
    /// The effect on the machines.
    pub kind: Word<EventKind>,
    /// The kind of the resources: `VirtualMachine`.
    pub resource_type: String,
    /// The affected machines.
    pub resources: Vec<String>,
    /// The earliest start without approval; `None` once it has started.
    pub not_before: Option<Timestamp>,
    /// The reason, which may be empty; in editions from 2019-04-01 on.
    pub description: Option<String>,
    /// The platform or the owner; in editions from 2019-08-01 on.
    pub source: Option<Word<EventSource>>,
    /// The expected interruption, -1 if unknown; in editions from 2020-07-01 on.
    pub duration_seconds: Option<i64>,
}

/// The reason why a body is not a document.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// More than [`DOCUMENT_BYTES_MAX`].
    #[error("the document has more than {DOCUMENT_BYTES_MAX} bytes: {0}")]
    TooLong(usize),
    /// The bytes are not UTF-8.
    #[error("the document is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// Deeper than [`DEPTH_MAX`].
    #[error("the document is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// More than [`DOCUMENT_EVENTS_MAX`].
    #[error("the document has more than {DOCUMENT_EVENTS_MAX} events: {0}")]
    TooMany(usize),
    /// Not JSON, or not of the expected form.
    #[error("the document is not of the expected form")]
    Form(#[source] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawDocument<E> {
    document_incarnation: u64,
    events: Vec<E>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawEvent {
    event_id: String,
    event_status: String,
    event_type: String,
    resource_type: String,
    resources: Vec<String>,
    not_before: Option<String>,
    description: Option<String>,
    event_source: Option<String>,
    duration_in_seconds: Option<i64>,
}

/// Keys of an event.
const KEYS: [&str; 9] = [
    "EventId",
    "EventStatus",
    "EventType",
    "ResourceType",
    "Resources",
    "NotBefore",
    "Description",
    "EventSource",
    "DurationInSeconds",
];

/// Any value in the position of an event.
enum LooseEvent {
    Object(Vec<(String, Value)>),
    NotAnObject,
}

impl<'de> Deserialize<'de> for LooseEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = LooseEvent;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("anything")
    }

    /// Keys and values in a list: a repeated key must not hide one of its values.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseEvent, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if KEYS.contains(&key.as_str()) {
                pairs.push((key, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(LooseEvent::Object(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LooseEvent, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_str<E>(self, _: &str) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_i64<E>(self, _: i64) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_u64<E>(self, _: u64) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_f64<E>(self, _: f64) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_bool<E>(self, _: bool) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }

    fn visit_unit<E>(self) -> Result<LooseEvent, E> {
        Ok(LooseEvent::NotAnObject)
    }
}

impl LooseEvent {
    /// The event, if each of its fields is well-formed.
    fn strict(self) -> Result<RawEvent, MalformedEvent> {
        let Self::Object(pairs) = self else {
            return Err(MalformedEvent::new(None, "the event is not an object"));
        };
        let id = field::<String>(&pairs, "EventId").ok().flatten().and_then(|text| EventId::parse(&text));
        let event = || {
            Ok(RawEvent {
                event_id: needed(&pairs, "EventId")?,
                event_status: needed(&pairs, "EventStatus")?,
                event_type: needed(&pairs, "EventType")?,
                resource_type: needed(&pairs, "ResourceType")?,
                resources: needed(&pairs, "Resources")?,
                not_before: field(&pairs, "NotBefore")?,
                description: field(&pairs, "Description")?,
                event_source: field(&pairs, "EventSource")?,
                duration_in_seconds: field(&pairs, "DurationInSeconds")?,
            })
        };
        event().map_err(|error: String| MalformedEvent::new(id, &error))
    }
}

/// The value of a key; `None` if it is `null` or missing.
fn field<T: DeserializeOwned>(pairs: &[(String, Value)], key: &str) -> Result<Option<T>, String> {
    let mut values = pairs.iter().filter(|(name, _)| name == key).map(|(_, value)| value);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{key} is there twice"));
    }
    Option::<T>::deserialize(value).map_err(|error| format!("{key} is not of the expected form: {error}"))
}

fn needed<T: DeserializeOwned>(pairs: &[(String, Value)], key: &str) -> Result<T, String> {
    field(pairs, key)?.ok_or_else(|| format!("{key} is missing"))
}

/// Parses the body of a response with status 200.
///
/// ```
/// use forewarn_imds::{Reading, read_document};
/// assert_eq!(read_document(b"")?, Reading::NoNews);
/// let Reading::Document(document) = read_document(br#"{"DocumentIncarnation":190,"Events":[]}"#)? else {
///     unreachable!()
/// };
/// assert_eq!(document.incarnation, 190);
/// # Ok::<_, forewarn_imds::Unreadable>(())
/// ```
///
/// # Errors
/// The body exceeds a limit or is not a document. Malformed events are not an error: [`ReadDocument::malformed`].
pub fn read_document(body: &[u8]) -> Result<Reading, Unreadable> {
    if body.len() > DOCUMENT_BYTES_MAX {
        return Err(Unreadable::TooLong(body.len()));
    }
    let text = str::from_utf8(body).map_err(Unreadable::NotUtf8)?;
    if text.trim_ascii().is_empty() {
        return Ok(Reading::NoNews);
    }
    if is_too_deep(text) {
        return Err(Unreadable::TooDeep);
    }
    match serde_json::from_str::<RawDocument<RawEvent>>(text) {
        Ok(raw) => gather(raw, Ok),
        // A single event may be malformed.
        Err(_) => {
            let raw = serde_json::from_str(text).map_err(Unreadable::Form)?;
            gather(raw, |event: LooseEvent| event.strict())
        }
    }
}

/// Collects the well-formed and the malformed events of a document.
fn gather<E>(
    raw: RawDocument<E>,
    strict: impl Fn(E) -> Result<RawEvent, MalformedEvent>,
) -> Result<Reading, Unreadable> {
    if raw.events.len() > DOCUMENT_EVENTS_MAX {
        return Err(Unreadable::TooMany(raw.events.len()));
    }
    let incarnation = raw.document_incarnation;
    let mut document = ReadDocument { incarnation, events: Vec::new(), malformed: Vec::new() };
    document.events.reserve(raw.events.len());
    for event in raw.events {
        match strict(event).and_then(ReadEvent::try_from) {
            Ok(event) => document.events.push(event),
            Err(malformed) => document.malformed.push(malformed),
        }
    }
    Ok(Reading::Document(document))
}

impl TryFrom<RawEvent> for ReadEvent {
    type Error = MalformedEvent;

    fn try_from(raw: RawEvent) -> Result<Self, MalformedEvent> {
        let id = EventId::parse(&raw.event_id).ok_or_else(|| {
            MalformedEvent::new(None, &format!("EventId is not a GUID: {:?}", raw.event_id))
        })?;
        let error = |error: String| MalformedEvent::new(Some(id), &error);
        Ok(Self {
            id,
            status: Word::read(raw.event_status, Status::ALL.map(|status| (status.as_str(), status))),
            kind: Word::read(raw.event_type, EventKind::ALL.map(|kind| (kind.as_str(), kind))),
            resource_type: raw.resource_type,
            resources: raw.resources,
            not_before: not_before(raw.not_before).map_err(error)?,
            description: raw.description,
            source: raw.event_source.map(source),
            duration_seconds: raw.duration_in_seconds,
        })
    }
}

fn source(text: String) -> Word<EventSource> {
    Word::read(text, EventSource::ALL.map(|source| (source.as_str(), source)))
}

fn not_before(text: Option<String>) -> Result<Option<Timestamp>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match parse_date(&text).or_else(|| parse_iso(&text)) {
        Some(when) => Ok(Some(when)),
        None => Err(format!("NotBefore is not a date: {text:?}")),
    }
}
