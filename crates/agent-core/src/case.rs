//! One event in hand: what was done about it so far.

use std::collections::BTreeMap;

use forewarn_types::Steady;
use serde::{Deserialize, Serialize};

use crate::seen::Seen;
use crate::settings::{Approval, Failure, Phase, Treatment};

/// An event in hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The event, as it was last seen.
    pub seen: Seen,
    /// What is done about it; nothing if it does not name this machine.
    pub treatment: Treatment,
    /// When this machine approves it.
    pub approval: Approval,
    /// What a hook that failed means.
    pub on_failure: Failure,
    /// Whether it had started when it was seen first.
    pub late: bool,
    /// Whether this machine's turn to prepare has come.
    pub begun: bool,
    /// Whether this machine has approved it, or knows that somebody has.
    pub consent: Consent,
    /// What became of it, once it has left the document.
    pub gone: Option<Gone>,
    /// How far hooks have come.
    pub runs: BTreeMap<Phase, BTreeMap<String, Progress>>,
    /// What is only true in this life of the agent.
    #[serde(skip)]
    pub(crate) live: Live,
}

/// Whether an event was approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Nobody has, as far as this machine knows.
    #[default]
    None,
    /// This machine may have: it has tried, and does not know yet what came of it.
    Tried,
    /// The approval was taken.
    Given,
    /// A peer says that its approval was taken.
    ByPeer,
}

/// What became of an event that has left the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gone {
    /// It happened.
    Completed,
    /// It did not.
    Cancelled,
}

/// How far a hook has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// How often it was started.
    pub attempts: u32,
    /// Where it stands.
    pub state: State,
    /// When it is tried again.
    #[serde(skip)]
    pub(crate) again_at: Option<Steady>,
    /// Whether it runs, or was started by an agent that is no more.
    #[serde(skip)]
    pub(crate) runs: bool,
    /// Whether it was told to end.
    #[serde(skip)]
    pub(crate) stopped: bool,
}

/// Where a hook stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was started. After a restart of the agent: it may have done anything, and is run again.
    Begun,
    /// It did what it should.
    Done,
    /// It did not, however often it was tried.
    Failed(String),
    /// There was no time left for it.
    Skipped,
}

/// What is only true in this life of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Whether a document of this life has told of it: before that, nothing is done.
    pub(crate) confirmed: bool,
    /// When it came into hand.
    pub(crate) since: Steady,
    /// When its notice is over.
    pub(crate) deadline: Option<Steady>,
    /// Whether an approval is under way.
    pub(crate) approving: bool,
    /// When approving is tried again, and how often it was tried.
    pub(crate) approve_at: Option<Steady>,
    pub(crate) refusals: u32,
    /// What was told of it already.
    pub(crate) told_turn: bool,
    pub(crate) told_ready: bool,
    /// Nothing is left to do about it.
    pub(crate) closed: bool,
    /// It is in the document again, although it had left it. That is another life of it, when all is done about this one.
    pub(crate) again: Option<(Seen, Option<Steady>)>,
    /// An approval was not answered: it may have been taken.
    pub(crate) in_doubt: bool,
    /// The last document has it, or may have it, in a form that cannot be read: it has not ended, and is not approved.
    pub(crate) is_malformed: bool,
}

/// How a phase of a case stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseState {
    /// Hooks run, or will.
    Open,
    /// All have ended well.
    Done,
    /// All have ended, some of them not well.
    Failed,
}

impl Case {
    /// The event, if nothing is left to do about it and it is there again.
    pub(crate) fn returned(&mut self) -> Option<(Seen, Option<Steady>)> {
        if self.live.closed { self.live.again.take() } else { None }
    }

    /// Whether it keeps this machine drained.
    pub(crate) fn drains(&self) -> bool {
        self.begun && self.gone.is_none()
    }

    pub(crate) fn progress(&self, phase: Phase, hook: &str) -> Option<&Progress> {
        self.runs.get(&phase)?.get(hook)
    }

    pub(crate) fn progress_mut(&mut self, phase: Phase, hook: &str) -> Option<&mut Progress> {
        self.runs.get_mut(&phase)?.get_mut(hook)
    }

    /// Whether a hook of a phase has failed.
    pub(crate) fn has_failed(&self, phase: Phase) -> bool {
        let mut all = self.runs.get(&phase).into_iter().flatten();
        all.any(|(_, progress)| matches!(progress.state, State::Failed(_)))
    }
}

impl Progress {
    pub(crate) fn new(state: State) -> Self {
        Self { attempts: 0, state, again_at: None, runs: false, stopped: false }
    }
}
