//! Documents and events, as last observed.

use std::time::Duration;

use forewarn_imds::{Edition, MalformedEvent, ReadDocument, ReadEvent, Word};
use forewarn_types::{EventId, EventKind, Moment, Timestamp};
use serde::{Deserialize, Serialize};

/// The words that identify a live migration in `Description`. No other field distinguishes it from other freezes.
const LIVE_MIGRATION: &str = "live migration";

/// A document, and the service's time at which it was valid.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    pub document: &'a ReadDocument,
    /// The edition of the request.
    pub edition: Edition,
    /// Time of the service's clock.
    pub date: Timestamp,
}

/// An event, as last observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedEvent {
    /// The id of the event. It never changes.
    #[serde(with = "id_text")]
    pub id: EventId,
    pub status: Status,
    /// The event type, as spelled in the document.
    pub kind: String,
    /// Type of the resources: `VirtualMachine`.
    pub resource_type: String,
    /// Names of the affected machines.
    pub resources: Vec<String>,
    /// The earliest start without approval, as last listed while the event was scheduled.
    pub not_before: Option<Moment>,
    /// The description, if the edition has one.
    pub description: Option<String>,
    /// The source, if the edition has one.
    pub source: Option<String>,
    /// The expected interruption in seconds, -1 if unknown, if the edition has one.
    pub duration_seconds: Option<i64>,
}

/// Status of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Scheduled,
    Started,
}

impl Status {
    /// The spelling in a document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::Started => "Started",
        }
    }
}

impl ObservedEvent {
    /// Converts an event of a document of that edition.
    ///
    /// # Errors
    /// Fails if the status is unknown, because the handling depends on it.
    pub fn read(event: &ReadEvent, edition: Edition) -> Result<Self, MalformedEvent> {
        Ok(Self {
            id: event.id,
            status: status(event)?,
            kind: word(&event.kind, |kind| kind.as_str()),
            resource_type: event.resource_type.clone(),
            resources: event.resources.iter().map(|name| plain_name(name, edition).to_owned()).collect(),
            not_before: event.not_before.map(Moment),
            description: event.description.clone(),
            source: event.source.as_ref().map(|source| word(source, |source| source.as_str())),
            duration_seconds: event.duration_seconds,
        })
    }

    /// True if the type is documented. Events of other types are never approved.
    #[must_use]
    pub fn has_known_type(&self) -> bool {
        EventKind::ALL.into_iter().any(|kind| kind.as_str() == self.kind)
    }

    /// True if the event names the machine. Names are compared as a whole: `vm1` is not `vm10`.
    #[must_use]
    pub fn names(&self, machine: &str) -> bool {
        self.resources.iter().any(|name| name == machine)
    }

    /// The expected interruption, if known.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs)
    }

    /// True for a live migration; `None` if the edition has no description.
    #[must_use]
    pub fn is_live_migration(&self) -> Option<bool> {
        let description = self.description.as_deref()?;
        Some(description.to_ascii_lowercase().contains(LIVE_MIGRATION))
    }
}

fn status(event: &ReadEvent) -> Result<Status, MalformedEvent> {
    match &event.status {
        Word::Known(forewarn_imds::Status::Scheduled) => Ok(Status::Scheduled),
        Word::Known(forewarn_imds::Status::Started) => Ok(Status::Started),
        Word::Other(text) => {
            Err(MalformedEvent::new(Some(event.id), &format!("unknown EventStatus: {text:?}")))
        }
    }
}

fn word<T>(word: &Word<T>, known: impl Fn(&T) -> &'static str) -> String {
    match word {
        Word::Known(meaning) => known(meaning).to_owned(),
        Word::Other(text) => text.clone(),
    }
}

/// The name without the underscore that the preview edition puts before it.
fn plain_name(name: &str, edition: Edition) -> &str {
    match edition {
        Edition::V2017_03_01 => name.strip_prefix('_').unwrap_or(name),
        Edition::V2017_08_01
        | Edition::V2017_11_01
        | Edition::V2019_01_01
        | Edition::V2019_04_01
        | Edition::V2019_08_01
        | Edition::V2020_07_01 => name,
    }
}

/// Serialises event ids as text.
pub(crate) mod id_text {
    use forewarn_types::EventId;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(id: &EventId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventId, D::Error> {
        let text = String::deserialize(deserializer)?;
        EventId::parse(&text).ok_or_else(|| D::Error::custom(format!("not a GUID: {text:?}")))
    }
}
