//! The reasons why this machine does not approve an event for which it has prepared.

use crate::stage::Stage;

/// The reason why this machine does not approve an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalObstacle {
    /// Hooks have failed, and the event is held.
    HooksFailed,
    /// The policy is never to approve.
    NeverApproves,
    /// The event names other machines, and the policy is to approve only events of this machine alone.
    OtherMachines,
    /// The type of the event is unknown.
    UnknownType,
    /// The last document lists the event in a malformed entry.
    Malformed,
    /// Other named machines are not ready.
    Peers(Vec<AwaitedPeer>),
    /// All machines are ready, and this one approves because it is named before this machine.
    Leader(String),
}

/// A machine that has to become ready before an event is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedPeer {
    pub name: String,
    pub state: PeerState,
    /// The error of the last poll, if it failed.
    pub error: Option<String>,
}

/// The state of a machine that is not known to be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// No response for longer than `silent_after`.
    Silent,
    /// No recent report.
    Unknown,
    Stage(Stage),
}

impl ApprovalObstacle {
    /// The obstacle without peers that make progress. A change of the rest is logged.
    pub(crate) fn without_progress(&self) -> Self {
        match self {
            Self::Peers(peers) => {
                Self::Peers(peers.iter().filter(|peer| peer.state == PeerState::Silent).cloned().collect())
            }
            Self::HooksFailed
            | Self::NeverApproves
            | Self::OtherMachines
            | Self::UnknownType
            | Self::Malformed
            | Self::Leader(_) => self.clone(),
        }
    }
}
