//! Errors of requests to the control plane.

use std::net::IpAddr;

use forewarn_lifecycle::{Name, Refusal};

use crate::access::Denied;
use crate::command::BadCommand;
use crate::placement::ScaleSetError;

/// The first of several commands that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCommand {
    /// Index of the command in the order.
    pub index: usize,
    /// The reason.
    pub error: ControlError,
}

/// Error of a request. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// A rule says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command is none.
    #[error(transparent)]
    Bad(#[from] BadCommand),
    /// The change of a scale set is not possible.
    #[error(transparent)]
    ScaleSetError(#[from] ScaleSetError),
    /// An address is that of one machine.
    #[error("the address is taken: {address}, by {machine}")]
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// Who has it.
        machine: String,
    },
    /// A resource group is in one cluster.
    #[error("the resource group is in another cluster: {0}\n  hint: choose another name for it")]
    GroupTaken(String),
    /// No clock shows what no document can.
    #[error("the clock ends with the year 9989")]
    EndOfTime,
    /// The shared state, the receipts or the resources refuse it.
    #[error(transparent)]
    Rejected(#[from] crate::refusal::Refusal),
    /// Whoever asks may not have it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The token was valid when the request came, and is not any more.
    #[error(
        "the token was revoked or has expired\n  hint: an admin can issue another: `forewarn token create`"
    )]
    TokenGone,
    /// Somebody has changed it since it was read.
    #[error(
        "it is not any more what you have read\n  hint: read it again, and see whether you still want that"
    )]
    Changed,
    /// A cluster goes when nothing is in it.
    #[error("the cluster still has hosts or tenants: {0}\n  hint: remove them first")]
    ClusterInUse(String),
    /// There is no such cluster, or not any more.
    #[error("no such cluster")]
    NoSuchCluster,
    /// A request that was answered already, with a secret that was not kept.
    #[error(
        "the token was issued already, and its text is shown once: {0}\n  hint: revoke it, and issue another"
    )]
    ShownOnce(Name),
    /// Real machines cannot be told to fail.
    #[error("only a pretend machine can be jammed\n  hint: `forewarn dev` has them")]
    NotPretending,
    /// The real clock goes as it goes.
    #[error("the clock is real: it cannot be driven\n  hint: `forewarn dev` has a virtual one")]
    RealClock,
    /// The cluster has changed since the request was planned: plan it again.
    #[error("the cluster has changed meanwhile; try again")]
    Outdated,
    /// Nothing can be written now, or the server is stopping.
    #[error("not available now; try again")]
    Unavailable,
}
