//! Webhooks: receivers of messages about events, and their progress.
//!
//! Messages are made from the audit logs of clusters. Each cluster stores the number of the last entry of its log that
//! was delivered to a webhook: the entries after that number are the outbox.
//!
//! ```text
//!   added ──▶ handshake wanted ──▶ confirmed ──▶ delivering, entry by entry, or failing since
//!         └── a chat cannot confirm ──▶┘
//! ```

mod change;
mod undelivered;

use std::fmt;

use forewarn_lifecycle::{EventKind, Name, Timestamp};
use forewarn_url::Url;
use serde::{Deserialize, Serialize, Serializer};

use crate::limits::AUTHORIZATION_BYTES_MAX;
use crate::shared::token::{Reach, Scope};

pub use crate::webhook_format::{HandshakeMethod, WebhookFormat};

pub use change::{WebhookChange, WebhookCommand, WebhookDefinition};
pub use undelivered::UndeliveredMessages;

/// A receiver of messages about events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its number, which is never used again.
    pub number: u32,
    pub name: Name,
    pub url: Url,
    /// The format of its messages.
    pub format: WebhookFormat,
    /// The events that it gets.
    pub filter: Filter,
    /// Value of the header `Authorization`; for PagerDuty, the routing key.
    pub authorization: Option<Authorization>,
    /// Time at which it was added.
    pub created: Timestamp,
    /// The caller that added it.
    pub by: String,
    /// State of the handshake.
    pub handshake: Handshake,
}

/// The events that a webhook gets: those that every part includes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Clusters and tenants. A cluster that was removed stays in the list: its number is never used again.
    pub scope: Scope,
    pub kinds: Reach<EventKind>,
}

/// The handshake of a webhook. It gets no messages before it has confirmed. That of a chat counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It has not confirmed.
    Wanted,
    Done {
        /// Time of the confirmation.
        at: Timestamp,
        /// Messages per minute that it accepts, if it has set a limit.
        per_minute: Option<u32>,
    },
}

/// Progress of the deliveries of one cluster to a webhook. It only grows. A cluster records the first progress before
/// its first event since the webhook was added, in the same decision: it begins after the entries before that event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of the last entry of the cluster's audit log that was delivered, or that is excluded by the filter.
    pub cursor: u64,
    /// Number of events that were not delivered: attempts failed for a day, or the entries were removed.
    pub lost: u64,
    /// The failure, while deliveries fail.
    #[serde(deserialize_with = "Option::deserialize")]
    pub failing: Option<DeliveryFailure>,
}

/// A failure of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryFailure {
    /// Time of the first failed attempt, on the clock of the computer even if the clock of the service is virtual.
    pub since: Timestamp,
    /// Number of the last entry of the cluster's audit log at that time.
    pub head: u64,
}

/// Value of the header `Authorization`. `Debug` hides it; its JSON is for messages between servers.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Authorization(String);

/// A text that cannot be sent as `Authorization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value of Authorization: 1 to {AUTHORIZATION_BYTES_MAX} visible ASCII characters and spaces")]
pub struct AuthorizationError;

impl Progress {
    /// No deliveries yet; the webhook gets no messages about that entry and those before it.
    #[must_use]
    pub fn from(cursor: u64) -> Self {
        Self { cursor, lost: 0, failing: None }
    }

    /// Returns true if this progress continues another, and differs from it.
    pub(crate) fn continues(self, before: Self) -> bool {
        self.cursor >= before.cursor && self.lost >= before.lost && self != before
    }

    /// The audit log begins anew with entry 1: all of its entries are delivered.
    pub(crate) fn in_new_audit_log(self) -> Self {
        Self { lost: self.lost, ..Self::from(0) }
    }
}

impl Authorization {
    /// Checks a text.
    ///
    /// # Errors
    /// Fails if it is not valid in a header.
    pub fn new(text: &str) -> Result<Self, AuthorizationError> {
        let fits = (1..=AUTHORIZATION_BYTES_MAX).contains(&text.len());
        let is_text = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if fits && is_text && text.trim() == text {
            Ok(Self(text.to_owned()))
        } else {
            Err(AuthorizationError)
        }
    }

    /// The secret, for the request and for the journal.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Authorization {
    type Error = AuthorizationError;

    fn try_from(text: String) -> Result<Self, AuthorizationError> {
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
    fn a_secret_is_validated_and_hidden_in_debug_output() {
        let secret = Authorization::new("Bearer s3cret").unwrap();
        assert_eq!(
            (format!("{secret:?}").as_str(), secret.reveal()),
            ("Authorization(secret)", "Bearer s3cret")
        );
        for wrong in ["", " ", " a", "a ", "a\r\nX: b", "ä", &"a".repeat(AUTHORIZATION_BYTES_MAX + 1)] {
            assert_eq!(Authorization::new(wrong), Err(AuthorizationError), "{wrong:?}");
        }
    }
}
