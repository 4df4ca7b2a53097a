//! A server of a realm: several servers on one log.
//!
//! Every server has a copy of every stream: its own journal. Each cluster has an owner, the only server that decides
//! about it. The owner writes a batch to the log of the realm (etcd), then into its journal, and then publishes, replies
//! and acts. Other servers copy the batch from the log and publish it; they send requests about the cluster to the owner.

mod log;

pub(crate) use log::{CommitError, LoggedBatch, LoggedWrite, NewOwnership, StreamLog};
