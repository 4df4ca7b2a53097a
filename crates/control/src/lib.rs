//! What operators and the server say to each other: commands by name, the fleet file, and what is shown.
//!
//! The rules know numbers; people know names. Here a [`NamedCommand`] becomes a command of the rules, and the state of a
//! cluster becomes views that can be printed. The operator API, the command line, fleet files and stories all speak this
//! one language, so a machine that cannot be found is not found in the same words everywhere.
//!
//! ```text
//!   fleet file ──▶ Fleet ──difference──▶ NamedCommand ──resolve(&Cluster)──▶ Command
//!   Cluster ──▶ views (hosts, machines, tenants, events), and back to a Fleet
//! ```
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
mod caller;
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
#[cfg(test)]
pub(crate) mod town;
pub mod view;

pub use access::{Denied, Permit};
pub use audit::*;
pub use command::*;
pub use decision::{Decision, Environment, HypervisorKind, decide};
pub use error::{ControlError, RefusedCommand};
pub use fleet_file::*;
pub use outcomes::{RecentOutcomes, WorkOutcome};
pub use placement::*;
pub use receipts::{Answer, NewReceipt, Receipt, ReceiptRow, Receipts};
pub use record::{ClusterEntry, Entry, Record};
pub use state::{
    ClusterState, ControlState, DetailsTable, Effect, FinishedWork, INCARNATION_STEP, PlannedWork,
    RestoringState, StateRow,
};
pub use stream::{ClusterId, Stream};
pub use view::*;
