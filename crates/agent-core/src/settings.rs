//! Settings of a watcher: hooks, rules, and the approval policy.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::observation::ObservedEvent;

/// The settings of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this machine, as listed in `Resources`.
    pub me: String,
    /// The hooks, in any order.
    pub hooks: Vec<Hook>,
    /// The rules; the first one that matches applies.
    pub rules: Vec<Rule>,
    /// The approval policy, unless a rule overrides it.
    pub approval: Approval,
    /// The effect of a failed hook, unless a rule overrides it.
    pub on_failure: Failure,
    /// Time between the deadline of hooks and `NotBefore`.
    pub spare: Duration,
    pub peers: Peers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// Time without a response after which a peer counts as silent.
    pub silent_after: Duration,
    /// The effect of a silent peer on an approval.
    pub silence: Silence,
    /// Number of machines that may be drained at once for different events; `None` for no limit.
    pub at_once: Option<u32>,
    /// Remaining time at which a machine stops waiting for its turn.
    pub reserve: Duration,
}

/// The effect of a silent peer on an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing is approved without the peer. The event starts when its notice ends.
    Wait,
    /// The peer counts as ready once at most this much time is left.
    GoOnWhenLeft(Duration),
    /// The peer counts as ready as soon as it is silent.
    GoOn,
}

/// A hook. The caller of the watcher decides how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The name, unique among all hooks.
    pub name: String,
    /// The phase in which the hook runs.
    pub phase: Phase,
    /// The events for which the hook runs.
    pub when: Condition,
    /// Position in the phase: lower numbers run first, equal ones in the order of their names.
    pub order: u32,
    /// The time limit of one run.
    pub limit: Duration,
    pub retries: u32,
    /// True if the hook can undo its work. Only for [`Phase::Scheduled`].
    pub undoes: bool,
    /// True if the hook also runs for an event that had started before it was first observed. Only for
    /// [`Phase::Scheduled`].
    pub even_late: bool,
}

/// The phase of an event in which a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The event is announced: prepare.
    Scheduled,
    /// The event has started.
    Started,
    /// The event has completed.
    Completed,
    /// The event was cancelled.
    Cancelled,
    /// No event is pending: restore normal operation.
    Undo,
}

impl Phase {
    /// All phases, in their order in time.
    pub const ALL: [Self; 5] = [Self::Scheduled, Self::Started, Self::Completed, Self::Cancelled, Self::Undo];

    /// The name in settings, logs and directories.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Started => "started",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Undo => "undo",
        }
    }
}

/// A rule: the handling of events that match a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The events to which the rule applies.
    pub when: Condition,
    /// The handling of these events.
    pub treatment: Treatment,
    /// The approval policy; `None` for the default.
    pub approval: Option<Approval>,
    /// The effect of a failed hook; `None` for the default.
    pub on_failure: Option<Failure>,
}

/// The handling of an event that names this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// No hooks and no approval.
    Ignore,
    ApproveAtOnce,
    #[default]
    Prepare,
}

/// The policy for approvals by this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Never approve. The event starts when its notice ends.
    Never,
    /// Approve when the hooks are done, if the event names no other machine.
    #[default]
    Alone,
    /// Approve when the hooks of this machine are done.
    WhenDone,
    /// The first named machine that is alive approves when all named machines are ready.
    Leader,
}

/// The effect of a failed hook on the approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// This machine does not become ready.
    #[default]
    Hold,
    /// This machine counts as ready.
    Approve,
}

impl Settings {
    /// The hooks of a phase that match an event, in the order of execution.
    pub(crate) fn hooks_of(&self, phase: Phase, observed: &ObservedEvent) -> Vec<&Hook> {
        let fits = |hook: &&Hook| hook.phase == phase && hook.when.fits(observed, &self.me);
        let mut hooks: Vec<_> = self.hooks.iter().filter(fits).collect();
        hooks.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        hooks
    }

    /// The approval policy for an event of this machine.
    #[must_use]
    pub fn approval_of(&self, observed: &ObservedEvent) -> Approval {
        self.rule(observed).and_then(|rule| rule.approval).unwrap_or(self.approval)
    }

    pub(crate) fn hook(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    /// The rule for an event, if one matches.
    pub(crate) fn rule(&self, observed: &ObservedEvent) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.when.fits(observed, &self.me))
    }
}
