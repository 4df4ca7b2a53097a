//! What a server keeps beside its clusters: what they are called, who may ask for what, who is told of events, and what was
//! answered.
//!
//! The same bargain as that of the rules (`forewarn-lifecycle`): no I/O, no clock, no randomness. Of a token there is only a
//! hash; what a webhook is sent as a secret is here, and shows itself to nobody. What a cluster is, is not here: nothing in the
//! catalogue looks into one, so that whoever removes a cluster makes sure that it is empty.
//!
//! ```text
//!   Command ──▶ decide(&self, now) ──▶ Change ──▶ evolve(&mut self, now)
//!               reads, may refuse      (journal)   writes, cannot fail
//! ```
//!
//! The caller owes three things: it applies every change that it was given, in order; a cluster comes and goes in the same
//! commit as its name; and it asks for a receipt only after it knows that whoever asks may ask.
//!
//! ```
//! use forewarn_control::shared::*;
//! use forewarn_lifecycle::{Name, Now, Seed};
//!
//! let mut catalogue = Catalogue::new();
//! let now = Now::at_millis(0);
//! let create = Command::CreateCluster { name: Name::new("north").unwrap(), seed: Seed([7; 16]) };
//! for change in catalogue.decide(now, &create)? {
//!     catalogue.evolve(now, &change);
//! }
//! assert_eq!(catalogue.cluster_named("north"), Some(ClusterId(1)));
//! assert_eq!(catalogue.cluster_named("default"), Some(ClusterId::DEFAULT));
//! # Ok::<_, Refusal>(())
//! ```

mod catalogue;
mod change;
mod cluster;
mod command;
mod decide;
mod evolve;
pub mod limits;
mod receipt;
mod register;
mod rows;
mod token;
mod webhook;

pub use catalogue::{Catalogue, Counters};
pub use change::Change;
pub use cluster::ClusterId;
pub use command::{Command, Refusal};
pub use receipt::{Answer, Receipt};
pub use register::{Body, Ending, Entry, Filed, Filing, Leaving, Link, Operation};
pub use rows::{BadRows, Restoring, Row};
pub use token::{Reach, Role, Scope, Token, TokenHash};
pub use webhook::{
    Authorization, BadAuthorization, Failing, Filter, Handshake, NewWebhook, Progress, Schema, Webhook,
    WebhookChange, WebhookCommand,
};
