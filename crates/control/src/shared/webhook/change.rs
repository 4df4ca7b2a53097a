//! Commands to webhooks, and their changes.

use std::sync::Arc;

use forewarn_lifecycle::Name;
use forewarn_url::Url;

use super::{Authorization, Filter, Progress, Schema, Webhook};

/// A command to webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCommand {
    Add(Box<WebhookDefinition>),
    Remove(Name),
    /// A webhook has confirmed that it wants messages.
    Confirm {
        /// Number of the webhook.
        webhook: u32,
        /// Messages per minute that it accepts, if it has set a limit.
        per_minute: Option<u32>,
    },
    /// Progress of webhooks, by number. Progress that would go back is ignored.
    Advance(Vec<(u32, Progress)>),
}

/// A webhook to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDefinition {
    pub name: Name,
    pub url: Url,
    /// The schema of its messages.
    pub schema: Schema,
    /// The events that it gets.
    pub filter: Filter,
    /// Value of the header `Authorization`.
    pub authorization: Option<Authorization>,
    /// Number of the last audit entry that it gets no message about.
    pub cursor: u64,
    /// The caller that adds it.
    pub by: String,
}

/// A change of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the step sets")]
pub enum WebhookChange {
    /// It was added. It gets messages once it has confirmed that it wants them.
    Added(Arc<Webhook>),
    /// It was removed, by number.
    Removed(u32),
    /// It has confirmed, with an optional limit of messages per minute.
    Confirmed { webhook: u32, per_minute: Option<u32> },
    /// Messages were delivered up to there.
    Advanced { webhook: u32, progress: Progress },
}
