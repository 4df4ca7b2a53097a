//! The state that clusters share: names of clusters, tokens, webhooks, receipts of requests to it.
//!
//! It is pure, as the rules are (`forewarn-lifecycle`): no I/O, no clock, no randomness. Of a token there is only a
//! hash. The secret of a webhook is here; `Debug` does not show it. Nothing here looks into a cluster: the caller
//! checks that a cluster is empty before it is removed.
//!
//! ```text
//!   Command ──▶ decide(&self, now) ──▶ Change ──▶ evolve(&mut self, now)
//!               reads, may refuse      (journal)   writes, cannot fail
//! ```
//!
//! ```
//! use forewarn_control::shared::*;
//! use forewarn_control::refusal::Refusal;
//! use forewarn_control::{ClusterId, Site};
//! use forewarn_lifecycle::{Name, Now, Seed};
//!
//! let mut shared = SharedState::new();
//! let now = Now::at_millis(0);
//! let (name, seed, site) = (Name::new("north").unwrap(), Seed([7; 16]), Site::default());
//! let create = Command::CreateCluster { name, seed, site };
//! for change in shared.decide(now, &create)? {
//!     shared.evolve(now, &change);
//! }
//! assert_eq!(shared.cluster_named("north"), Some(ClusterId(1)));
//! assert_eq!(shared.cluster_named("default"), Some(ClusterId::DEFAULT));
//! # Ok::<_, Refusal>(())
//! ```

mod boot;
mod change;
mod command;
mod decide;
mod evolve;
mod rows;
mod state;
mod token;
mod webhook;
mod webhook_rules;

pub use boot::Boot;
pub use change::Change;
pub use command::Command;
pub use rows::{Restoring, Row};
pub use state::{Counters, SharedState};
pub use token::{Reach, Role, Scope, Token, TokenHash};
pub use webhook::{
    Authorization, AuthorizationError, DeliveryFailure, Filter, Handshake, Progress, Schema, Webhook,
    WebhookChange, WebhookCommand, WebhookDefinition,
};
