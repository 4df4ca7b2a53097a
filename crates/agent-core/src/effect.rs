//! Effects that a watcher requests, and their results.

use forewarn_imds::MalformedEvent;
use forewarn_types::{EventId, Steady};

use crate::event_case::EventOutcome;
use crate::observation::ObservedEvent;
use crate::obstacle::ApprovalObstacle;
use crate::settings::Phase;

/// An effect to perform after the memory has been stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Run a hook and report its result.
    Run(Run),
    /// Stop a running hook. Its result is reported as usual.
    Stop(Task),
    /// Approve an event and report the response.
    Approve(EventId),
    /// Write an entry to the event log.
    Log(EventLogEntry),
    /// Log malformed events of a document. Each is reported once for as long as the document lists it.
    Skip(Vec<MalformedEvent>),
}

/// One run of a hook: the hook, the event, and the phase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// The event; for an undo, the latest event for which the work was done.
    pub event: EventId,
    pub phase: Phase,
    /// The name of the hook.
    pub hook: String,
}

/// A hook to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub task: Task,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Deadline of the hook.
    pub until: Steady,
    pub observed: ObservedEvent,
    /// The end of the notice, if known.
    pub deadline: Option<Steady>,
    /// The outcome of the event, once it has left the document.
    pub outcome: Option<EventOutcome>,
    /// The event that first caused the undo work of this hook; `None` if the hook is never undone. A different id than
    /// before means that earlier work was undone.
    pub pending_undo: Option<EventId>,
    /// State from earlier runs that the hook needs to undo its work.
    pub memory: Option<serde_json::Value>,
}

/// The result of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOutcome {
    /// Success, or the reason of the failure.
    pub result: Result<(), String>,
    /// State that the hook needs to undo its work; `None` keeps the earlier state.
    pub memory: Option<serde_json::Value>,
}

/// The result of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalResult {
    /// The endpoint has accepted the approval.
    Accepted,
    /// The endpoint has rejected the approval, with a reason. It is retried for as long as the event is listed.
    Rejected(String),
    /// No response, with a reason. The approval may have been accepted; it is retried.
    Unknown(String),
}

/// An entry of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLogEntry {
    pub observed: ObservedEvent,
    /// The kind of the entry.
    pub kind: EventLogKind,
}

/// The kinds of entries in the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventLogKind {
    /// The event was observed for the first time.
    Observed {
        /// True if the event names this machine.
        mine: bool,
    },
    /// A rule says to ignore the event.
    Ignored,
    /// The type is unknown: this machine prepares for the event and never approves it.
    UnknownType,
    /// The event started before there was time to prepare.
    TooLate,
    /// This machine waits for its turn.
    WaitsForTurn {
        /// Machines that come first; none while the peers are asked.
        behind: Vec<String>,
    },
    /// The first hook starts.
    Preparing,
    /// A hook has failed in every attempt.
    HookFailed {
        /// The phase of the hook.
        phase: Phase,
        /// The name of the hook.
        hook: String,
        /// The reason of the failure.
        reason: String,
    },
    /// All hooks have succeeded: this machine is ready.
    Ready,
    /// Hooks have failed: this machine does not approve.
    Held,
    /// This machine is ready and does not approve, for now or at all.
    NotApproving {
        obstacle: ApprovalObstacle,
    },
    /// All machines are ready: this machine sends an approval.
    Approving {
        /// Silent machines that count as ready.
        without: Vec<String>,
    },
    /// The approval was accepted.
    Approved,
    /// The approval was not accepted.
    Unapproved {
        reason: String,
    },
    /// The event has started.
    Started,
    /// The event has completed.
    Completed,
    /// The event was cancelled.
    Cancelled,
    Undoing,
    /// All work is undone.
    Undone,
    /// A hook could not be undone. It is tried again after the next event and when the agent starts.
    UndoFailed {
        /// The name of the hook.
        hook: String,
        /// The reason of the failure.
        reason: String,
    },
}
