//! A server of a realm: several servers on one log.
//!
//! Every server has a copy of every stream: its own journal. Each cluster has an owner, the only server that decides
//! about it. The owner writes a batch to the log of the realm (etcd), then into its journal, and then publishes, replies
//! and acts. Other servers copy the batch from the log and publish it; they send requests about the cluster to the owner.

mod administration;
mod confirmation;
mod handle;
mod join;
#[cfg(test)]
mod move_tests;
mod moves;
mod peer_side;
mod plan;
#[cfg(test)]
mod reports_tests;
mod restore;
mod shared_copy;
mod takeover;
mod task;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use administration::{RealmAdmin, RealmAdminError};
pub(crate) use confirmation::{Confirmations, StreamNumbers};
pub(crate) use handle::{Owners, RealmHandle};
pub(crate) use join::{FORMAT, JoinedRealm, join};
pub(crate) use moves::Moves;
pub(crate) use peer_side::{HeartbeatSide, PeerSide};
pub use plan::RealmPlan;
pub(crate) use restore::RestoreWatch;
pub(crate) use task::{RealmTask, stay_member};
pub(crate) use view::SharedView;
