//! Commands to webhooks, and their changes.

use std::sync::Arc;

use forewarn_lifecycle::Name;
use forewarn_url::Url;

use super::{Authorization, Filter, Progress, UndeliveredMessages, Webhook, WebhookFormat};
use crate::stream::ClusterId;

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
    /// Stores messages of a cluster that was just removed. They may be delivered already.
    KeepUndelivered {
        cluster: ClusterId,
        messages: UndeliveredMessages,
    },
    /// Messages of a removed cluster were delivered to a webhook, by number, up to there.
    AdvanceUndelivered {
        cluster: ClusterId,
        webhook: u32,
        progress: Progress,
    },
    /// All messages of a removed cluster were delivered to a webhook, by number.
    EndUndelivered {
        cluster: ClusterId,
        webhook: u32,
    },
}

/// A webhook to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDefinition {
    pub name: Name,
    pub url: Url,
    /// The format of its messages.
    pub format: WebhookFormat,
    /// The events that it gets.
    pub filter: Filter,
    /// Value of the header `Authorization`; for PagerDuty, the routing key.
    pub authorization: Option<Authorization>,
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
    /// It was added by an older version, with its progress in all clusters.
    AddedWithProgress(Arc<Webhook>, Progress),
    /// Messages of all clusters were delivered up to there, by an older version.
    Advanced { webhook: u32, progress: Progress },
    /// A cluster was removed. Its messages may not all be delivered.
    Undelivered { cluster: ClusterId, messages: UndeliveredMessages },
    /// Messages of a removed cluster were delivered up to there.
    UndeliveredAdvanced { cluster: ClusterId, webhook: u32, progress: Progress },
    /// All messages of a removed cluster were delivered.
    Delivered { cluster: ClusterId, webhook: u32 },
}
