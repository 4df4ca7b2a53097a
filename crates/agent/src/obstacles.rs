//! The reason why this machine does not approve an event, in words: for the status, the log and the event log.

use forewarn_agent_core::{ApprovalObstacle, AwaitedPeer, PeerState, Stage};
use forewarn_cli_support::table::some;
use forewarn_types::EventId;
use serde::{Deserialize, Serialize};

/// The reason why this machine does not approve an event, and what a person can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotApproved {
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Machines that have to become ready first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<AwaitedMachine>,
}

/// A machine that has to become ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedMachine {
    pub(crate) machine: String,
    /// One of `silent`, `unknown`, `waiting`, `preparing`, `failed`.
    pub(crate) state: String,
    /// The error of the last request to its agent, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl NotApproved {
    pub(crate) fn new(obstacle: &ApprovalObstacle, event: EventId) -> Self {
        let id = short_id(&event.to_string());
        let approve = format!("forewarn-agent approve {id}");
        let waits_for: Vec<AwaitedMachine> = match obstacle {
            ApprovalObstacle::Peers(peers) => peers.iter().map(AwaitedMachine::from).collect(),
            ApprovalObstacle::HooksFailed
            | ApprovalObstacle::NeverApproves
            | ApprovalObstacle::OtherMachines
            | ApprovalObstacle::UnknownType
            | ApprovalObstacle::Malformed
            | ApprovalObstacle::Leader(_) => Vec::new(),
        };
        let (reason, hint) = match obstacle {
            ApprovalObstacle::HooksFailed => ("hooks failed".to_owned(), Some(after_failure(event))),
            ApprovalObstacle::NeverApproves => ("policy = \"never\"".to_owned(), Some(approve)),
            ApprovalObstacle::OtherMachines => {
                ("the event names other machines, and policy = \"alone\"".to_owned(), Some(approve))
            }
            ApprovalObstacle::UnknownType => ("the type of the event is unknown".to_owned(), Some(approve)),
            ApprovalObstacle::Malformed => {
                ("the document lists the event in a form that cannot be parsed".to_owned(), Some(approve))
            }
            ApprovalObstacle::Peers(_) => {
                let machines: Vec<_> = waits_for.iter().map(AwaitedMachine::describe).collect();
                (format!("it waits for {}", some(&machines)), Some(format!("without them: {approve}")))
            }
            ApprovalObstacle::Leader(leader) => {
                (format!("all machines are ready, and {leader} approves"), None)
            }
        };
        Self { reason, hint, waits_for }
    }
}

/// The way out after a failed hook.
pub(crate) fn after_failure(event: EventId) -> String {
    let id = short_id(&event.to_string());
    format!(
        "remove the cause, then forewarn-agent retry {id}; or prepare the machine by hand, then forewarn-agent approve {id}"
    )
}

impl From<&AwaitedPeer> for AwaitedMachine {
    fn from(AwaitedPeer { name, state, error }: &AwaitedPeer) -> Self {
        let state = match state {
            PeerState::Silent => "silent",
            PeerState::Unknown => "unknown",
            PeerState::Stage(Stage::Waiting) => "waiting",
            PeerState::Stage(Stage::Preparing) => "preparing",
            PeerState::Stage(Stage::Failed) => "failed",
            // Such a machine is not waited for.
            PeerState::Stage(Stage::Ready | Stage::Idle) => "ready",
        };
        Self { machine: name.clone(), state: state.to_owned(), error: error.clone() }
    }
}

impl AwaitedMachine {
    fn describe(&self) -> String {
        match &self.error {
            Some(error) => format!("{} ({}: {error})", self.machine, self.state),
            None => format!("{} ({})", self.machine, self.state),
        }
    }
}

/// The first part of an id.
pub(crate) fn short_id(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(obstacle: &ApprovalObstacle) -> (String, Option<String>) {
        let NotApproved { reason, hint, .. } = NotApproved::new(obstacle, EventId::from_bytes([7; 16]));
        (reason, hint)
    }

    #[test]
    fn every_obstacle_has_a_reason_and_a_way_out() {
        let peer = |name: &str, state, error: Option<&str>| AwaitedPeer {
            name: name.to_owned(),
            state,
            error: error.map(str::to_owned),
        };
        let peers = ApprovalObstacle::Peers(vec![
            peer("web_1", PeerState::Silent, Some("connection refused")),
            peer("web_2", PeerState::Stage(Stage::Preparing), None),
        ]);
        let (reason, hint) = told(&peers);
        assert_eq!(reason, "it waits for web_1 (silent: connection refused), web_2 (preparing)");
        assert_eq!(hint.as_deref(), Some("without them: forewarn-agent approve 07070707"));
        let (reason, hint) = told(&ApprovalObstacle::OtherMachines);
        assert_eq!(reason, "the event names other machines, and policy = \"alone\"");
        assert_eq!(hint.as_deref(), Some("forewarn-agent approve 07070707"));
        let (_, hint) = told(&ApprovalObstacle::HooksFailed);
        assert!(hint.is_some_and(|hint| hint.contains("forewarn-agent retry 07070707")));
        assert_eq!(told(&ApprovalObstacle::Leader("web_0".to_owned())).1, None, "nothing has to be done");
    }
}
