//! The control plane: its durable state, its requests, and the decisions. Pure: no I/O, no clock, no randomness.
//!
//! ```text
//!   Request ──▶ decide(&ControlState, Environment) ──▶ Decision: records, effects, audit entries, reply
//!   Record  ──▶ ControlState::apply ──▶ Effect         the only writer, live and in replay
//! ```
//!
//! The state is the shared state and the clusters ([`Stream`]); every record, request and audit entry belongs to one
//! of them. A cluster has the rules of `forewarn-lifecycle`, which know numbers. Operators know names: a
//! [`NamedCommand`] is resolved into a command of the rules, and the state is shown as views. The operator API, the
//! command line, fleet files and stories use the same commands.
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
pub mod resource_id;
pub mod resources;
mod rows;
pub mod shared;
mod state;
mod stream;
pub mod view;

pub use access::{Denied, Permit};
pub use audit::*;
pub use command::*;
pub use decision::{Decision, Environment, HypervisorKind, decide};
pub use error::{ControlError, RefusedCommand};
pub use fleet_file::*;
pub use outcomes::{RecentOutcomes, WorkOutcome};
pub use placement::*;
pub use receipts::{NewReceipt, Receipt, ReceiptRow, Receipts, StoredResponse};
pub use record::{ClusterEntry, Entry, Record};
pub use state::{
    ClusterState, ControlState, DetailsTable, Effect, FinishedWork, INCARNATION_STEP, PlannedWork,
    RestoringState, StateRow,
};
pub use stream::{ClusterId, Stream};
pub use view::*;
