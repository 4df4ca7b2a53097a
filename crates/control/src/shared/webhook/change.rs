//! What can be done with webhooks, and what has been decided of them.

use std::sync::Arc;

use forewarn_lifecycle::Name;
use forewarn_url::Url;

use super::{Authorization, Filter, Progress, Schema, Webhook};

/// A wish about webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCommand {
    /// Somebody is told of events from now on.
    Add(Box<NewWebhook>),
    /// Somebody is told nothing any more.
    Remove(Name),
    /// A webhook, by its number, has said that it wants to be told.
    Confirm {
        /// Which.
        webhook: u32,
        /// How often a minute, if it has said so.
        per_minute: Option<u32>,
    },
    /// Webhooks, by their numbers, have been told that far. What would go back is left out.
    Advance(Vec<(u32, Progress)>),
}

/// A webhook that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
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
    /// The number of the last entry of the trail of which it is not told.
    pub cursor: u64,
    /// Who adds it.
    pub by: String,
}

/// One step of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the step sets")]
pub enum WebhookChange {
    /// It is told of what happens from now on, once it has confirmed that it wants to be.
    Added(Arc<Webhook>),
    /// It is told nothing any more, and forgotten.
    Removed(u32),
    /// It wants to be told, so often a minute at most.
    Confirmed { webhook: u32, per_minute: Option<u32> },
    /// It has been told that far.
    Advanced { webhook: u32, progress: Progress },
}
