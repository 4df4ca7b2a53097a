//! The published state of the agent: readiness, the report to peers, and the full status.

use std::sync::Arc;

use forewarn_agent_core::PeerStatus;

use crate::status::Status;

/// A snapshot of the agent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedStatus {
    /// True if the endpoint has responded, the machine name is known, and the memory is stored.
    pub(crate) ready: bool,
    /// True if this machine should get no new work.
    pub(crate) drained: bool,
    /// The report to peers.
    pub(crate) peer_status: PeerStatus,
    /// The full status. It is serialised on request.
    pub(crate) status: Arc<Status>,
}
