//! The state that clusters share: names of clusters, tokens, webhooks, claims of resource groups, receipts of
//! requests to it.
//!
//! It is pure, as the rules are (`forewarn-lifecycle`): no I/O, no clock, no randomness. Of a token there is only a
//! hash. The secret of a webhook is here; `Debug` does not show it. Nothing here looks into a cluster: the caller
//! closes a cluster before it removes it.
//!
//! ```text
//!   Command ──▶ decide(&self, now) ──▶ Change ──▶ apply(&mut self, now)
//!               reads, may refuse      (journal)   writes, cannot fail
//! ```
//!
//! ```
//! use forewarn_control::shared::*;
//! use forewarn_control::refusal::Refusal;
//! use forewarn_control::{ClusterId, Site};
//! use forewarn_lifecycle::{Name, Now, Seed};
//!
//! let mut shared = SharedState::new(Seed([5; 16]));
//! let now = Now::at_millis(0);
//! let (name, seed, site) = (Name::new("north").unwrap(), Seed([7; 16]), Site::default());
//! let create = Command::CreateCluster { name, seed, site };
//! for change in shared.decide(now, &create)? {
//!     shared.apply(now, &change);
//! }
//! assert_eq!(shared.cluster_named("north"), Some(ClusterId(1)));
//! assert_eq!(shared.cluster_named("default"), Some(ClusterId::DEFAULT));
//! # Ok::<_, Refusal>(())
//! ```

mod apply;
mod boot;
mod change;
mod claim;
mod claim_rules;
mod command;
mod decide;
mod rows;
mod state;
mod token;
mod undelivered_rules;
mod webhook;
mod webhook_rules;

pub use boot::Boot;
pub use change::Change;
pub use claim::{Claim, NewClaim};
pub use command::Command;
pub(crate) use rows::RestoredShared;
pub use rows::{Restoring, Row};
pub use state::{Counters, SharedState};
pub use token::{Reach, Role, Scope, Token, TokenHash};
pub use webhook::{
    Authorization, AuthorizationError, DeliveryFailure, Filter, Handshake, HandshakeMethod, Progress,
    UndeliveredMessages, Webhook, WebhookChange, WebhookCommand, WebhookDefinition, WebhookFormat,
};
