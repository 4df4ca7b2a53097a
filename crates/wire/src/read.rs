//! Reading a document, of any edition and from any service that speaks the format.
//!
//! A reader lives longer than the service it reads from: keys that it does not know are skipped, words that it does not
//! know are kept as text, and what older editions do not say is `None`. An empty answer is not an error: the service
//! gives it while it is being enabled.

use forewarn_lifecycle::{EventId, EventKind, EventSource, Timestamp};
use serde::Deserialize;

use crate::date::{parse_date, parse_iso};
use crate::json::{DEPTH_MAX, is_too_deep};
use crate::words::{self, Status, Word};

/// Bytes in a document that is read. Twenty times what a thousand events with one machine each take.
pub const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Events in a document that is read: so many short ones fit into a document that whoever keeps them would be busy with nothing else.
pub const DOCUMENT_EVENTS_MAX: usize = 10_000;

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
    /// An id that is none.
    #[error("the document has an EventId that is not a GUID: {0:?}")]
    EventId(String),
    /// A time that is none.
    #[error("the document has a NotBefore that is not a date: {0:?}")]
    NotBefore(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawDocument {
    document_incarnation: u64,
    events: Vec<RawEvent>,
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

/// Reads the body of a 200.
///
/// ```
/// use forewarn_wire::{Reading, read_document};
/// assert_eq!(read_document(b"")?, Reading::NoNews);
/// let Reading::Document(document) = read_document(br#"{"DocumentIncarnation":190,"Events":[]}"#)? else {
///     unreachable!()
/// };
/// assert_eq!(document.incarnation, 190);
/// # Ok::<_, forewarn_wire::Unreadable>(())
/// ```
///
/// # Errors
/// When the body passes a limit or is not a document.
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
    let raw: RawDocument = serde_json::from_str(text).map_err(Unreadable::Form)?;
    if raw.events.len() > DOCUMENT_EVENTS_MAX {
        return Err(Unreadable::TooMany(raw.events.len()));
    }
    let events = raw.events.into_iter().map(ReadEvent::try_from).collect::<Result<_, _>>()?;
    Ok(Reading::Document(ReadDocument { incarnation: raw.document_incarnation, events }))
}

impl TryFrom<RawEvent> for ReadEvent {
    type Error = Unreadable;

    fn try_from(raw: RawEvent) -> Result<Self, Unreadable> {
        let id = EventId::parse(&raw.event_id).ok_or(Unreadable::EventId(raw.event_id))?;
        Ok(Self {
            id,
            status: Word::read(raw.event_status, Status::ALL.map(|status| (status.as_str(), status))),
            kind: Word::read(raw.event_type, words::KINDS.map(|kind| (words::kind(kind), kind))),
            resource_type: raw.resource_type,
            resources: raw.resources,
            not_before: not_before(raw.not_before)?,
            description: raw.description,
            source: raw.event_source.map(source),
            duration_seconds: raw.duration_in_seconds,
        })
    }
}

fn source(text: String) -> Word<EventSource> {
    Word::read(text, words::SOURCES.map(|source| (words::source(source), source)))
}

fn not_before(text: Option<String>) -> Result<Option<Timestamp>, Unreadable> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match parse_date(&text).or_else(|| parse_iso(&text)) {
        Some(when) => Ok(Some(when)),
        None => Err(Unreadable::NotBefore(text)),
    }
}
