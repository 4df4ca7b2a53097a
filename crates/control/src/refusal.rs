//! Refusals: requests about clusters, tokens, webhooks, receipts and resources that cannot be carried out.

use forewarn_lifecycle::Name;

use crate::limits::{BY_BYTES_MAX, KEY_BYTES_MAX};
use crate::stream::ClusterId;

/// The reason why a command was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says what it is; its fields are what the message names")]
pub enum Refusal {
    #[error("no such cluster: number {0}")]
    NoSuchCluster(ClusterId),
    #[error("no such token: {0}\n  hint: `forewarn token ls` shows them")]
    NoSuchToken(Name),
    #[error("the name is taken: {0}")]
    NameTaken(Name),
    #[error("this cluster stays, and keeps its name: {}", ClusterId::DEFAULT_NAME)]
    DefaultCluster,
    #[error(
        "an admin cannot be limited to tenants: {0}\n  hint: make it an operator, or leave out the tenants"
    )]
    AdminOfTenants(Name),
    #[error(
        "a token for no {what} is good for nothing: {name}\n  hint: leave them out, and it is good for all"
    )]
    ScopeOfNothing { what: &'static str, name: Name },
    #[error("the token would have expired already: {0}")]
    ExpiredAlready(Name),
    #[error("not the number of the next token: {number}, which is {next}")]
    NotNextToken { number: u32, next: u32 },
    #[error("who asks is told in 1 to {BY_BYTES_MAX} bytes, without control characters")]
    BadBy,
    #[error("an idempotency key has 1 to {KEY_BYTES_MAX} visible ASCII characters")]
    BadKey,
    #[error(
        "the idempotency key was used for another request: {0}\n  hint: take a new key for a new request"
    )]
    KeyUsed(String),
    #[error("the answer is too long to be kept: at most {max} bytes")]
    AnswerTooLong { max: usize },
    #[error("it is known under another id: {0}")]
    LinkTaken(String),
    #[error("something in another cluster has this id: {0}")]
    IdTaken(String),
    #[error("an operation has this name already: {0}")]
    OperationTaken(String),
    #[error("no such webhook: {0}\n  hint: `forewarn webhook ls` shows them")]
    NoSuchWebhook(Name),
    #[error("a webhook for no {what} is told nothing: {name}\n  hint: leave them out, and it is told of all")]
    WebhookOfNothing { what: &'static str, name: Name },
    #[error(
        "the secret of a webhook would be sent in the clear: {0}\n  hint: https://, or an address of this computer"
    )]
    SecretInTheClear(Name),
    #[error("too many {what}: at most {max}")]
    TooMany { what: &'static str, max: usize },
}

impl Refusal {
    pub(crate) fn check(count: usize, max: usize, what: &'static str) -> Result<(), Self> {
        if count > max { Err(Self::TooMany { what, max }) } else { Ok(()) }
    }
}
