//! The control plane: its durable state, its requests, and the decisions. Pure: no I/O, no clock, no randomness.
//!
//! ```text
//!   ClusterRequest ──▶ decide_in_cluster(&ClusterState, &SharedState, …) ──▶ Decision: records, effects, …
//!   SharedRequest  ──▶ decide_shared(&SharedState, …)                    ──▶ Decision
//!   Record         ──▶ ClusterState::apply, SharedState::apply           ──▶ Effect: the only writers
//! ```
//!
//! The state is the shared state and the clusters ([`Stream`]); every record, request and audit entry belongs to one
//! of them, and a decision changes one of them: clusters do not wait for each other. A cluster has the rules of
//! `forewarn-lifecycle`, which know numbers. Operators know names: a [`NamedCommand`] is resolved into a command of the
//! rules, and the state is shown as views. The operator API, the command line, fleet files and stories use the same
//! commands.
//!
//! ```
//! use forewarn_control::NamedCommand;
//!
//! let restart: NamedCommand = serde_json::from_str(r#"{"command":"restart","machine":"web_0"}"#)?;
//! assert_eq!(restart, NamedCommand::Restart { machine: "web_0".to_owned() });
//! # Ok::<_, serde_json::Error>(())
//! ```

pub mod access;
pub mod audit;
pub mod command;
pub mod decision;
mod effect;
mod error;
pub mod fleet_file;
pub mod limits;
pub mod notice;
mod outcomes;
pub mod placement;
pub mod push;
mod receipts;
mod record;
pub mod refusal;
pub mod request;
mod request_context;
pub mod resource_id;
pub mod resources;
mod rows;
pub mod shared;
mod state;
mod stream;
pub mod view;
mod webhook_format;

pub use access::{Denied, Permit};
pub use audit::*;
pub use command::*;
pub use decision::{
    ClusterRemoval, Decision, Environment, Fencing, HypervisorKind, decide_in_cluster, decide_shared,
    describe_request,
};
pub use effect::{Effect, FinishedWork, PlannedWork};
pub use error::{ControlError, RefusedCommand};
pub use fleet_file::*;
pub use outcomes::{RecentOutcomes, WorkOutcome};
pub use placement::*;
pub use receipts::{NewReceipt, Receipt, ReceiptRow, Receipts, StoredResponse};
pub use record::{ClusterEntry, Entry, Record};
pub use state::{
    ClosedBy, ClusterState, ControlState, DetailsTable, HostReminders, INCARNATION_STEP, RestoringCluster,
    RestoringState, StateRow, claims_needed, missing_claims, unused_claims,
};
pub use stream::{ClusterId, Stream, StreamPosition};
pub use view::*;
