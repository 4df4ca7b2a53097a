//! A server of a realm: several servers on one log.
//!
//! Every server has a copy of every stream: its own journal. Each cluster has an owner, the only server that decides
//! about it. The owner writes a batch to the log of the realm (etcd), then into its journal, and then publishes, replies
//! and acts. Other servers copy the batch from the log and publish it; they send requests about the cluster to the owner.

mod acceptance;
#[cfg(test)]
mod acceptance_tests;
mod administration;
mod archive;
mod archives;
mod audit_lines;
mod audit_search;
mod confirmation;
mod content;
mod copies;
mod engine_check;
mod former_copies;
#[cfg(test)]
mod forwarded_tests;
#[cfg(test)]
mod forwarding_tests;
mod handle;
#[cfg(test)]
mod impact_tests;
mod join;
mod log_keeper;
mod migration;
#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod move_tests;
mod moves;
mod own_name;
mod owners;
mod peer_side;
mod pending_moves;
mod plan;
mod process;
#[cfg(test)]
mod reports_tests;
mod restore;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod stored_state_tests;
mod takeover;
mod task;
#[cfg(test)]
mod tests;
mod view;

pub use acceptance::{AcceptanceError, AcceptanceReport, RestoredRealm, StreamLoss};
pub(crate) use administration::{RealmAdmin, RealmAdminError};
pub(crate) use archive::ArchiveKeeper;
pub(crate) use audit_search::SearchError;
pub(crate) use confirmation::{Confirmations, StreamNumbers};
pub use engine_check::UnsafeVersion;
pub(crate) use handle::{PeerClients, RealmHandle};
pub(crate) use join::{FORMAT, JoinedRealm, check_history, join};
pub(crate) use log_keeper::LogKeeper;
pub use migration::{MigrationError, MigrationReport, cancel_migration, migrate};
pub(crate) use own_name::take_name;
pub(crate) use owners::Owners;
pub(crate) use peer_side::{HeartbeatSide, PeerSide};
pub(crate) use pending_moves::{Moves, RealmOrders};
pub use plan::RealmPlan;
pub use process::ServerProcess;
pub(crate) use restore::RestoreWatch;
pub(crate) use task::{RealmTask, stay_member};
pub(crate) use view::SharedView;
