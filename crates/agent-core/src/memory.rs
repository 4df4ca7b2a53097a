//! What a watcher knows that must not be lost: it is kept before anything is done.

use std::collections::BTreeMap;

use forewarn_types::{EventId, Steady};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Gone};
use crate::seen::Seen;

/// Events in hand, and what is still to be undone.
///
/// It survives restarts of the agent and of the machine, so it holds nothing that counts from either: no process, no steady
/// clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// In the order in which they were seen first.
    pub cases: Vec<Case>,
    /// What has to be undone, by the name of the hook that does it.
    pub owed: BTreeMap<String, Owed>,
}

/// Something that has to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owed {
    /// The event for which it was done first.
    #[serde(with = "crate::seen::id_text")]
    pub since: EventId,
    /// The event for which it was done last.
    pub seen: Seen,
    /// What became of that event, once it has left the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Gone>,
    /// What the hook has to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<serde_json::Value>,
    /// How often its undoing was begun: it may be half undone.
    #[serde(default)]
    pub attempts: u32,
    /// The progress of undoing it.
    #[serde(skip)]
    pub(crate) undoing: Undoing,
}

/// The progress of undoing something, in this life of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undoing {
    pub(crate) attempts: u32,
    pub(crate) runs: bool,
    /// It was ordered to end: something else is more urgent.
    pub(crate) stopped: bool,
    pub(crate) again_at: Option<Steady>,
    /// It was tried often enough; the next event, or the next life, tries again.
    pub(crate) given_up: bool,
}
