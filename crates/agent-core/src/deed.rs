//! What is to be done, and how it went.

use forewarn_imds::MalformedEvent;
use forewarn_types::{EventId, Steady};

use crate::case::Gone;
use crate::seen::Seen;
use crate::settings::Phase;

/// Something to be done, after the memory has been kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Run a hook, and tell how it ended.
    Run(Run),
    /// End a hook that runs, and tell how it ended as always.
    Stop(Task),
    /// Approve an event, and tell what was answered.
    Approve(EventId),
    /// Tell whoever wants to know.
    Note(Note),
    /// Log events of a document that are skipped because they cannot be read. Each is named once for as long as it is there.
    Skip(Vec<MalformedEvent>),
}

/// A hook, for an event, in a phase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// For which event; an undo: the one that was over last.
    pub event: EventId,
    /// When.
    pub phase: Phase,
    /// The name of the hook.
    pub hook: String,
}

/// A hook to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which.
    pub task: Task,
    /// 1, and more when it is tried again.
    pub attempt: u32,
    /// When it has to have ended.
    pub until: Steady,
    /// The event.
    pub seen: Seen,
    /// When the notice is over, if that is known.
    pub deadline: Option<Steady>,
    /// What became of the event, once it has left the document.
    pub outcome: Option<Gone>,
    /// With which event it began that it has something to undo. As long as this is the same, nothing of it was undone; where there
    /// is none, nothing of it ever is.
    pub owed: Option<EventId>,
    /// What it has done so far and would undo, in its own words.
    pub memory: Option<serde_json::Value>,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Whether it did what it should, or why not.
    pub result: Result<(), String>,
    /// What it has to remember in order to undo it; nothing changes what was remembered before.
    pub memory: Option<serde_json::Value>,
}

/// What became of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It counts.
    Taken,
    /// It does not, and this is why; it is tried again after a while, as long as the event is there.
    Refused(String),
    /// There was no answer, for this reason: it may count or not, and is tried again.
    Unknown(String),
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Of which event.
    pub seen: Seen,
    /// What.
    pub what: What,
}

/// What there is to tell of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was seen for the first time.
    Seen {
        /// Whether this machine is named.
        mine: bool,
    },
    /// A rule says that nothing is to be done about it.
    Ignored,
    /// Its type is not known: this machine prepares for it, and never approves it.
    UnknownType,
    /// It has started before there was time to prepare.
    TooLate,
    /// Other machines are drained: this one waits for its turn.
    WaitsForTurn,
    /// Hooks begin to run.
    Preparing,
    /// A hook has failed for good.
    HookFailed {
        /// In which phase.
        phase: Phase,
        /// Which.
        hook: String,
        /// Why.
        why: String,
    },
    /// All hooks are done; this machine is ready.
    Ready,
    /// Hooks have failed; this machine does not approve.
    Held,
    /// Everybody is ready, or as ready as they get: it is approved by this machine.
    Approving {
        /// Who was not heard of, and counts as ready.
        without: Vec<String>,
    },
    /// The approval was taken.
    Approved,
    /// The approval was not taken.
    Unapproved {
        /// Why.
        why: String,
    },
    /// It has started.
    Started,
    /// It is over.
    Completed,
    /// It will not happen.
    Cancelled,
    /// What was done for it is being undone.
    Undoing,
    /// All of it is undone.
    Undone,
    /// Something could not be undone. It is tried again after the next event, or when the agent starts.
    UndoFailed {
        /// What.
        hook: String,
        /// Why.
        why: String,
    },
}
