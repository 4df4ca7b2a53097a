//! Webhooks: who is told of events, and how far that has come.
//!
//! What there is to tell is in the trail, which is kept anyway. Of a webhook there is only what it wants to be told, and the
//! number of the last entry that it was told of: the outbox is what follows that number.
//!
//! ```text
//!   added ──▶ handshake wanted ──▶ confirmed ──▶ told entry after entry, or failing since
//! ```

mod change;

use std::fmt;

use forewarn_lifecycle::{EventKind, Name, Timestamp};
use forewarn_url::Url;
use serde::{Deserialize, Serialize, Serializer};

use crate::limits::AUTHORIZATION_BYTES_MAX;
use crate::shared::token::{Reach, Scope};

pub use change::{NewWebhook, WebhookChange, WebhookCommand};

/// Somebody who is told of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Never used again.
    pub number: u32,
    /// What people call it.
    pub name: Name,
    /// Where it is told.
    pub url: Url,
    /// In which form.
    pub schema: Schema,
    /// Of what.
    pub filter: Filter,
    /// What is sent as `Authorization`.
    pub authorization: Option<Authorization>,
    /// When it was added.
    pub created: Timestamp,
    /// Who added it.
    pub by: String,
    /// Whether it has said that it wants to be told.
    pub handshake: Handshake,
    /// How far it has been told.
    pub progress: Progress,
}

/// The form in which events are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Schema {
    /// CloudEvents 1.0, as structured JSON.
    CloudEvents,
    /// That of Event Grid.
    EventGrid,
}

/// Of which events a webhook is told: those that every part admits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// In which clusters, of which tenants. A cluster that is gone stays: its number is never used again.
    pub scope: Scope,
    /// Of which kinds.
    pub kinds: Reach<EventKind>,
}

/// Whether a webhook has said that it wants to be told. Until then it is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It has not.
    Wanted,
    /// It has.
    Done {
        /// When.
        at: Timestamp,
        /// How often a minute, if it has said so.
        per_minute: Option<u32>,
    },
}

/// How far a webhook has been told. It only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The number of the last entry of the trail that it was told of, or that was not for it.
    pub cursor: u64,
    /// How many events it was not told of: nobody took them for a day, or they were not kept for long enough.
    pub lost: u64,
    /// Since when it does not take what it is told.
    #[serde(deserialize_with = "Option::deserialize")]
    pub failing: Option<Failing>,
}

/// A webhook that does not take what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failing {
    /// Since when, on the clock of the computer, whatever the clock of the service shows.
    pub since: Timestamp,
    /// The number of the last entry that there was then.
    pub head: u64,
}

/// What is sent as `Authorization`. It shows itself to nobody; its JSON is for messages between servers.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Authorization(String);

/// A text that cannot be sent as `Authorization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what is sent as Authorization has 1 to {AUTHORIZATION_BYTES_MAX} visible ASCII characters and spaces"
)]
pub struct BadAuthorization;

impl Schema {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CloudEvents, Self::EventGrid];

    /// What people call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudEvents => "cloudevents",
            Self::EventGrid => "eventgrid",
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl Progress {
    /// Told nothing, and not to be told of that entry nor of those before.
    #[must_use]
    pub fn from(cursor: u64) -> Self {
        Self { cursor, lost: 0, failing: None }
    }
}

impl Authorization {
    /// Checks a text.
    ///
    /// # Errors
    /// When no header can have it.
    pub fn new(text: &str) -> Result<Self, BadAuthorization> {
        let fits = (1..=AUTHORIZATION_BYTES_MAX).contains(&text.len());
        let is_text = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if fits && is_text && text.trim() == text { Ok(Self(text.to_owned())) } else { Err(BadAuthorization) }
    }

    /// The secret itself: for the request, and for the journal.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Authorization {
    type Error = BadAuthorization;

    fn try_from(text: String) -> Result<Self, BadAuthorization> {
        Self::new(&text)
    }
}

impl Serialize for Authorization {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reveal())
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Authorization(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_can_be_sent_and_is_shown_to_nobody() {
        let secret = Authorization::new("Bearer s3cret").unwrap();
        assert_eq!(
            (format!("{secret:?}").as_str(), secret.reveal()),
            ("Authorization(secret)", "Bearer s3cret")
        );
        for wrong in ["", " ", " a", "a ", "a\r\nX: b", "ä", &"a".repeat(AUTHORIZATION_BYTES_MAX + 1)] {
            assert_eq!(Authorization::new(wrong), Err(BadAuthorization), "{wrong:?}");
        }
    }

    #[test]
    fn schemas_have_words() {
        assert_eq!(Schema::ALL.map(|schema| schema.to_string()), ["cloudevents", "eventgrid"]);
    }
}
