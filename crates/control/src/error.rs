//! Errors of requests to the control plane.

use std::net::IpAddr;

use forewarn_lifecycle::{Name, Refusal};
use forewarn_types::{Moment, derived_name};
use serde::{Deserialize, Serialize};

use crate::access::Denied;
use crate::command::CommandError;
use crate::placement::ScaleSetError;

/// The first of several commands that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCommand {
    /// Index of the command in the request.
    pub index: usize,
    pub error: ControlError,
}

/// Error of a request. Nothing has changed.
///
/// Its JSON form, for messages between servers, holds everything: an error that crossed a connection equals the
/// original. Reading it rejects anything that it does not describe exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum ControlError {
    /// A rule of the control plane refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command is invalid.
    #[error(transparent)]
    Bad(#[from] CommandError),
    /// The change of a scale set is impossible.
    #[error(transparent)]
    ScaleSetError(#[from] ScaleSetError),
    /// An address belongs to one machine.
    #[error("address {address} is already used by {machine}")]
    AddressTaken {
        address: IpAddr,
        /// The machine that has it.
        machine: String,
    },
    /// A resource group is in one cluster.
    #[error("resource group {0} belongs to another cluster\n  hint: choose another name")]
    GroupTaken(String),
    /// The request begins to use a resource group that its cluster has not claimed: [`claims_needed`] names it.
    ///
    /// [`claims_needed`]: crate::claims_needed
    #[error("the cluster has not claimed a resource group of the request")]
    Unclaimed,
    /// A time beyond the last one that documents can show.
    #[error("time is out of range: the last year is 9989")]
    EndOfTime,
    /// A virtual clock is not set back.
    #[error("the time is not in the future: {0}\n  hint: a clock is only set forward")]
    NotLater(Moment),
    /// The shared state, the receipts or the resources refuse it.
    #[error(transparent)]
    Rejected(#[from] crate::refusal::Refusal),
    /// The permit of the caller does not allow it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The token was valid when the request arrived, and is no longer.
    #[error(
        "the token was revoked or has expired\n  hint: an admin can issue another: `forewarn token create`"
    )]
    TokenGone,
    /// The object has changed since the caller read it.
    #[error("the resource has changed since you read it\n  hint: read it again and repeat the request")]
    Changed,
    /// The request requires notice, and none of the concerned tenants is enrolled.
    #[error(
        "no machine would be notified: {0}\n  hint: poll once from one of the machines, \
         GET /metadata/scheduledevents, or enrol every tenant: `forewarn settings set --enrolment always`"
    )]
    NoNotice(String),
    /// The request requires notice, and makes no event.
    #[error(
        "no machine would be notified: the request makes no event\n  \
         hint: a deletion is announced with --terminate-notification on, a new image with --os-image on"
    )]
    NoEvent,
    /// Only an empty cluster can be removed.
    #[error("cluster {0} is not empty\n  hint: remove its hosts and tenants first")]
    ClusterInUse(String),
    /// The driver of the cluster has failed. Its documents are still served.
    #[error("the cluster has failed: {0}\n  hint: restart the server, and report this with its log")]
    ClusterFailed(String),
    /// Another server of the realm owns the cluster.
    #[error("another server owns the cluster")]
    Elsewhere,
    /// The cluster does not exist.
    #[error("no such cluster")]
    NoSuchCluster,
    /// A repeated request whose response held a secret, which is not stored.
    #[error(
        "token {0} was issued already, and its text is shown only once\n  hint: revoke it and issue another"
    )]
    ShownOnce(#[serde(with = "derived_name")] Name),
    /// Real machines cannot be made to fail.
    #[error("only simulated machines can be made to fail")]
    NotPretending,
    /// The real clock cannot be set.
    #[error("the clock is real and cannot be set\n  hint: only a server for development has a virtual clock")]
    RealClock,
    /// The cluster has changed since the request was planned: plan it again.
    #[error("the cluster has changed in the meantime; try again")]
    Outdated,
    /// The engine of the realm has lost acknowledged commits: no server owns anything.
    #[error(
        "the engine was restored from an older backup: {0}\n  \
         hint: restore etcd from a newer backup; or stop all servers, and continue from the older state: \
         forewarn realm accept-restore --config FILE"
    )]
    EngineRestored(String),
    /// Nothing can be written now, or the server is stopping.
    #[error("not available now; try again")]
    Unavailable,
}

impl ControlError {
    /// The error without the names of hosts that its caller did not mention, for callers that see no hosts.
    #[must_use]
    pub fn without_hosts(self) -> Self {
        let Self::Refused(Refusal::NoRoom { machine, .. }) = self else { return self };
        Self::Refused(Refusal::NoHost(machine))
    }
}
