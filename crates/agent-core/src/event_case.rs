//! One pending event and the work done for it so far.

use std::collections::BTreeMap;

use forewarn_types::Steady;
use serde::{Deserialize, Serialize};

use crate::observation::ObservedEvent;
use crate::obstacle::ApprovalObstacle;
use crate::settings::{Approval, Failure, Phase, Treatment};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCase {
    /// The event, as last observed.
    #[serde(rename = "seen")]
    pub observed: ObservedEvent,
    /// The handling of the event; the default if it does not name this machine.
    pub treatment: Treatment,
    /// The approval policy for this event.
    pub approval: Approval,
    /// The effect of a failed hook on the approval.
    pub on_failure: Failure,
    /// True if the event had started before it was first observed.
    pub late: bool,
    /// True once this machine has begun to prepare.
    pub begun: bool,
    /// The approval, as far as this machine knows.
    pub consent: Consent,
    /// The outcome, once the event has left the document.
    #[serde(rename = "gone")]
    pub outcome: Option<EventOutcome>,
    /// Progress of the hooks, by phase and name.
    pub runs: BTreeMap<Phase, BTreeMap<String, HookProgress>>,
    /// State that is lost when the agent stops.
    #[serde(skip)]
    pub(crate) live: LiveState,
}

/// State of the approval of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// No approval is known.
    #[default]
    None,
    /// This machine has sent an approval and has no response yet.
    Tried,
    /// The endpoint has accepted the approval of this machine.
    Given,
    /// A peer reports that its approval was accepted.
    ByPeer,
}

/// The outcome of an event that has left the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventOutcome {
    /// The event took place.
    Completed,
    /// The event was withdrawn before it started.
    Cancelled,
}

/// Progress of one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookProgress {
    pub attempts: u32,
    pub state: HookState,
    /// Time of the next attempt, if one is due.
    #[serde(skip)]
    pub(crate) retry_at: Option<Steady>,
    /// True while the hook runs.
    #[serde(skip)]
    pub(crate) runs: bool,
    /// True once the hook was asked to stop.
    #[serde(skip)]
    pub(crate) stopped: bool,
}

/// State of one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookState {
    /// Started. After a restart of the agent its result is unknown, so it runs again.
    Begun,
    Done,
    /// Failed in every attempt.
    Failed(String),
    /// Not run, because no time was left.
    Skipped,
}

/// State of a case that is lost when the agent stops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveState {
    /// True once a document of this agent process has listed the event. Nothing is done before that.
    pub(crate) confirmed: bool,
    /// Time at which this agent process first observed the event.
    pub(crate) since: Steady,
    /// The end of the notice, if known.
    pub(crate) deadline: Option<Steady>,
    /// True while an approval is in flight.
    pub(crate) approving: bool,
    /// Time of the next approval attempt, and the number of failed ones.
    pub(crate) approve_at: Option<Steady>,
    pub(crate) refusals: u32,
    /// Set once the log says that this machine waits for its turn: true if other machines come first.
    pub(crate) logged_turn: Option<bool>,
    /// True once the log has the corresponding entry.
    pub(crate) logged_ready: bool,
    /// The last logged obstacle to an approval, without progress of peers.
    pub(crate) logged_obstacle: Option<ApprovalObstacle>,
    /// True once no work is left for this event.
    pub(crate) closed: bool,
    /// The event is listed again after it had left the document. A new case is opened for it when this one is closed.
    pub(crate) again: Option<(ObservedEvent, Option<Steady>)>,
    /// True if an approval got no response: it may have been accepted.
    pub(crate) in_doubt: bool,
    /// True if the last document lists the event, or may list it, in a malformed entry. Such an event has not ended,
    /// and is not approved.
    pub(crate) is_malformed: bool,
}

/// State of one phase of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseState {
    /// Hooks are running or still to be run.
    Open,
    /// All hooks have succeeded.
    Done,
    /// All hooks have ended, and at least one has failed.
    Failed,
}

impl EventCase {
    /// Takes the reappeared event out of a closed case.
    pub(crate) fn returned(&mut self) -> Option<(ObservedEvent, Option<Steady>)> {
        if self.live.closed { self.live.again.take() } else { None }
    }

    /// True if this case keeps the machine drained.
    pub(crate) fn drains(&self) -> bool {
        self.begun && self.outcome.is_none()
    }

    pub(crate) fn progress(&self, phase: Phase, hook: &str) -> Option<&HookProgress> {
        self.runs.get(&phase)?.get(hook)
    }

    pub(crate) fn progress_mut(&mut self, phase: Phase, hook: &str) -> Option<&mut HookProgress> {
        self.runs.get_mut(&phase)?.get_mut(hook)
    }

    /// True if a hook of the phase has failed.
    pub(crate) fn has_failed(&self, phase: Phase) -> bool {
        let mut all = self.runs.get(&phase).into_iter().flatten();
        all.any(|(_, progress)| matches!(progress.state, HookState::Failed(_)))
    }
}

impl HookProgress {
    pub(crate) fn new(state: HookState) -> Self {
        Self { attempts: 0, state, retry_at: None, runs: false, stopped: false }
    }
}
