//! Reading a document, of any edition and from any service that speaks the format.
//!
//! A reader lives longer than the service it reads from: keys that it does not know are skipped, words that it does not
//! know are kept as text, and what older editions do not say is `None`. An empty answer is not an error: the service
//! gives it while it is being enabled. An event that cannot be read does not keep the others from being read.

use std::fmt;

use forewarn_types::{EventId, EventKind, EventSource, Timestamp};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::date::{parse_date, parse_iso};
use crate::json::{DEPTH_MAX, is_too_deep};
use crate::words::{Status, Word};

/// Bytes in a document that is read. Twenty times what a thousand events with one machine each take.
pub const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Events in a document that is read: so many short ones fit into a document that whoever keeps them would be busy with nothing else.
pub const DOCUMENT_EVENTS_MAX: usize = 10_000;

/// Characters of what is wrong with an event.
const PROBLEM_CHARS_MAX: usize = 300;

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing yet: go on with what is known, and ask again.
    NoNews,
    /// A document.
    Document(ReadDocument),
}

/// A document as its reader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDocument {
    /// Equal numbers mean equal documents.
    pub incarnation: u64,
    /// In the order of the document.
    pub events: Vec<ReadEvent>,
    /// Events that cannot be read, in the order of the document. They are there: an event that was known before and is among them
    /// has not ended.
    pub malformed: Vec<MalformedEvent>,
}

/// An event that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MalformedEvent {
    /// Its id, if that can be read.
    pub id: Option<EventId>,
    /// What is wrong with it, in a phrase that names the field.
    pub problem: String,
}

impl MalformedEvent {
    /// An event with that problem, which is cut if it is long.
    #[must_use]
    pub fn new(id: Option<EventId>, problem: &str) -> Self {
        Self { id, problem: problem.chars().take(PROBLEM_CHARS_MAX).collect() }
    }
}

/// An event as its reader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadEvent {
    /// The same for the event's whole life.
    pub id: EventId,
    /// Where it stands.
    pub status: Word<Status>,
    /// What will be done.
    pub kind: Word<EventKind>,
    /// What the resources are: `VirtualMachine`.
    pub resource_type: String,
    /// The machines it is about.
    pub resources: Vec<String>,
    /// The earliest start without approval; nothing once it has started.
    pub not_before: Option<Timestamp>,
    /// Why, in a sentence that may be empty; editions from 2019-04-01 on.
    pub description: Option<String>,
    /// Who caused it; editions from 2019-08-01 on.
    pub source: Option<Word<EventSource>>,
    /// The expected interruption, -1 if unknown; editions from 2020-07-01 on.
    pub duration_seconds: Option<i64>,
}

/// Why a body is not a document.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// More than [`DOCUMENT_BYTES_MAX`].
    #[error("the document has more than {DOCUMENT_BYTES_MAX} bytes: {0}")]
    TooLong(usize),
    /// Bytes that are no text.
    #[error("the document is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// Deeper than [`DEPTH_MAX`].
    #[error("the document is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// More than [`DOCUMENT_EVENTS_MAX`].
    #[error("the document has more than {DOCUMENT_EVENTS_MAX} events: {0}")]
    TooMany(usize),
    /// No JSON, or not of this form.
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

/// Anything that stands where an event should.
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

    /// Pairs in a list: a key that is there twice must not hide one of its values.
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
    /// The event, if each of its fields has the right form.
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
        event().map_err(|problem: String| MalformedEvent::new(id, &problem))
    }
}

/// The value of a key; none if it is `null` or not there.
fn field<T: DeserializeOwned>(pairs: &[(String, Value)], key: &str) -> Result<Option<T>, String> {
    let mut values = pairs.iter().filter(|(name, _)| name == key).map(|(_, value)| value);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{key} is there twice"));
    }
    Option::<T>::deserialize(value).map_err(|problem| format!("{key} is not of the expected form: {problem}"))
}

fn needed<T: DeserializeOwned>(pairs: &[(String, Value)], key: &str) -> Result<T, String> {
    field(pairs, key)?.ok_or_else(|| format!("{key} is missing"))
}

/// Reads the body of a 200.
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
/// When the body passes a limit or is not a document. Events that cannot be read are no error: [`ReadDocument::malformed`].
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
        // Perhaps it is one event that is malformed.
        Err(_) => {
            let raw = serde_json::from_str(text).map_err(Unreadable::Form)?;
            gather(raw, |event: LooseEvent| event.strict())
        }
    }
}

/// The events of a document, those that can be read and those that cannot.
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
        let problem = |problem: String| MalformedEvent::new(Some(id), &problem);
        Ok(Self {
            id,
            status: Word::read(raw.event_status, Status::ALL.map(|status| (status.as_str(), status))),
            kind: Word::read(raw.event_type, EventKind::ALL.map(|kind| (kind.as_str(), kind))),
            resource_type: raw.resource_type,
            resources: raw.resources,
            not_before: not_before(raw.not_before).map_err(problem)?,
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
