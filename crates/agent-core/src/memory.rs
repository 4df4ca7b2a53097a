//! The durable state of a watcher. It is stored before any effect is performed.

use std::collections::BTreeMap;

use forewarn_types::{EventId, Steady};
use serde::{Deserialize, Serialize};

use crate::event_case::{EventCase, EventOutcome};
use crate::observation::ObservedEvent;

/// Pending events, and work that is still to be undone.
///
/// Survives restarts of the agent and of the machine. It therefore holds no process ids and no times of the steady
/// clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Pending events, in the order of their first observation.
    pub cases: Vec<EventCase>,
    /// Pending undo work, by the name of the hook.
    #[serde(rename = "owed")]
    pub pending_undo: BTreeMap<String, PendingUndo>,
}

/// Work of one hook that has to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingUndo {
    /// The first event for which the work was done.
    #[serde(with = "crate::observation::id_text")]
    pub since: EventId,
    /// The latest event for which the work was done.
    #[serde(rename = "seen")]
    pub observed: ObservedEvent,
    /// Outcome of that event, once it has left the document.
    #[serde(rename = "gone", default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EventOutcome>,
    /// State that the hook needs to undo its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<serde_json::Value>,
    /// Number of undo attempts: the work may be half undone.
    #[serde(default)]
    pub attempts: u32,
    /// Progress of the undo.
    #[serde(skip)]
    pub(crate) undoing: UndoProgress,
}

/// Progress of an undo in this agent process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndoProgress {
    pub(crate) attempts: u32,
    pub(crate) runs: bool,
    /// True once the undo was asked to stop in favour of a pending event.
    pub(crate) stopped: bool,
    pub(crate) retry_at: Option<Steady>,
    /// True once all attempts have failed. The next event or the next start of the agent tries again.
    pub(crate) given_up: bool,
}
