//! Refusals: requests about clusters, tokens, webhooks, receipts and resources that cannot be carried out.

use std::borrow::Cow;

use forewarn_lifecycle::Name;
use forewarn_types::derived_name;
use serde::{Deserialize, Serialize};

use crate::limits::{BY_BYTES_MAX, KEY_BYTES_MAX};
use crate::stream::ClusterId;

/// The reason why a command was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Refusal {
    #[error("no such cluster: number {0}")]
    NoSuchCluster(ClusterId),
    #[error("no such token: {0}\n  hint: `forewarn token ls` shows them")]
    NoSuchToken(#[serde(with = "derived_name")] Name),
    #[error("the name is taken: {0}")]
    NameTaken(#[serde(with = "derived_name")] Name),
    #[error("the default cluster cannot be removed or renamed: {}", ClusterId::DEFAULT_NAME)]
    DefaultCluster,
    #[error(
        "an admin cannot be limited to tenants: {0}\n  hint: make it an operator, or leave out the tenants"
    )]
    AdminOfTenants(#[serde(with = "derived_name")] Name),
    #[error("token {name} has an empty list of {what}\n  hint: omit the list to allow all")]
    ScopeOfNothing {
        what: Cow<'static, str>,
        #[serde(with = "derived_name")]
        name: Name,
    },
    #[error("expiry of token {0} is in the past")]
    ExpiredAlready(#[serde(with = "derived_name")] Name),
    #[error("invalid token number {number}: the next one is {next}")]
    NotNextToken { number: u32, next: u32 },
    #[error("invalid caller name: 1 to {BY_BYTES_MAX} bytes without control characters")]
    BadBy,
    #[error("an idempotency key has 1 to {KEY_BYTES_MAX} visible ASCII characters")]
    BadKey,
    #[error("the idempotency key was used for another request: {0}\n  hint: use a new key for a new request")]
    KeyUsed(String),
    #[error("the response is too long to be stored: at most {max} bytes")]
    AnswerTooLong { max: usize },
    #[error("the object has another resource id: {0}")]
    LinkTaken(String),
    #[error("resource group {0} belongs to another cluster\n  hint: choose another name")]
    GroupTaken(String),
    #[error("operation name is taken: {0}")]
    OperationTaken(String),
    #[error("no such webhook: {0}\n  hint: `forewarn webhook ls` shows them")]
    NoSuchWebhook(#[serde(with = "derived_name")] Name),
    #[error("webhook {name} has an empty list of {what}\n  hint: omit the list to send all")]
    WebhookOfNothing {
        what: Cow<'static, str>,
        #[serde(with = "derived_name")]
        name: Name,
    },
    #[error(
        "the secret of a webhook would be sent in the clear: {0}\n  hint: https://, or an address of this computer"
    )]
    SecretInTheClear(#[serde(with = "derived_name")] Name),
    #[error(
        "webhook {0} needs a routing key of PagerDuty: 32 letters and digits\n  hint: --key-file FILE, or `key` in the API"
    )]
    NoRoutingKey(#[serde(with = "derived_name")] Name),
    #[error("too many {what}: at most {max}")]
    TooMany { what: Cow<'static, str>, max: usize },
}

impl Refusal {
    pub(crate) fn check(count: usize, max: usize, what: &'static str) -> Result<(), Self> {
        if count > max { Err(Self::TooMany { what: what.into(), max }) } else { Ok(()) }
    }
}
