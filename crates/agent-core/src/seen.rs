//! Documents and events, as they were last seen.

use std::time::Duration;

use forewarn_imds::{Edition, MalformedEvent, ReadDocument, ReadEvent, Word};
use forewarn_types::{EventId, EventKind, Moment, Timestamp};
use serde::{Deserialize, Serialize};

/// The words that describe a live migration. Nothing else on the wire tells it from other freezes.
const LIVE_MIGRATION: &str = "live migration";

/// A document, and when it was true.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// What was read.
    pub document: &'a ReadDocument,
    /// The edition that was asked for.
    pub edition: Edition,
    /// What the service's clock showed.
    pub date: Timestamp,
}

/// An event as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The same for its whole life.
    #[serde(with = "id_text")]
    pub id: EventId,
    /// Where it stands.
    pub status: Status,
    /// Its type, in the words of the document.
    pub kind: String,
    /// What the resources are: `VirtualMachine`.
    pub resource_type: String,
    /// The machines it is about, by the names that they call themselves.
    pub resources: Vec<String>,
    /// The earliest start without approval, as it was said while it was scheduled.
    pub not_before: Option<Moment>,
    /// Why, where the edition says so.
    pub description: Option<String>,
    /// Who caused it, where the edition says so.
    pub source: Option<String>,
    /// The expected interruption in seconds, -1 if unknown, where the edition says so.
    pub duration_seconds: Option<i64>,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Announced.
    Scheduled,
    /// Under way.
    Started,
}

impl Status {
    /// The word in a document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::Started => "Started",
        }
    }
}

impl Seen {
    /// An event of a document of that edition.
    ///
    /// # Errors
    /// When its status is not known: what may be done about it is not known either.
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

    /// Whether its type is one of the documented ones. An event of another type is never approved.
    #[must_use]
    pub fn has_known_type(&self) -> bool {
        EventKind::ALL.into_iter().any(|kind| kind.as_str() == self.kind)
    }

    /// Whether a machine is named. Names are compared whole: `vm1` is not `vm10`.
    #[must_use]
    pub fn names(&self, machine: &str) -> bool {
        self.resources.iter().any(|name| name == machine)
    }

    /// The expected interruption, where it is known.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs)
    }

    /// True for a live migration; none where the edition has no description.
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
            Err(MalformedEvent::new(Some(event.id), &format!("EventStatus is not known: {text:?}")))
        }
    }
}

fn word<T>(word: &Word<T>, known: impl Fn(&T) -> &'static str) -> String {
    match word {
        Word::Known(meaning) => known(meaning).to_owned(),
        Word::Other(text) => text.clone(),
    }
}

/// The name without the one underscore that the preview puts before it.
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

/// Ids as text.
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
