//! What a watcher was told once and for all: hooks, rules, and when to approve.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::seen::Seen;

/// Everything that does not change while it watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this machine, as it is written in `Resources`.
    pub me: String,
    /// What to run, in any order.
    pub hooks: Vec<Hook>,
    /// What to do about which event; the first that fits decides.
    pub rules: Vec<Rule>,
    /// When to approve, where no rule says otherwise.
    pub approval: Approval,
    /// What a hook that failed means, where no rule says otherwise.
    pub on_failure: Failure,
    /// Hooks end so long before `NotBefore`.
    pub spare: Duration,
    /// The others.
    pub peers: Peers,
}

/// What is known of the others before any of them has said a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// A peer that has said nothing for so long is silent.
    pub silent_after: Duration,
    /// What becomes of an approval that waits for a silent peer.
    pub silence: Silence,
    /// So many machines may be drained at once, for different events.
    pub at_once: Option<u32>,
    /// With so little time left, a machine no longer waits for its turn.
    pub reserve: Duration,
}

/// What a silent peer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It is waited for: without it nothing is approved, and the event starts when its notice is over.
    Wait,
    /// It counts as ready once no more than so much time is left.
    GoOnWhenLeft(Duration),
    /// It counts as ready as soon as it is silent.
    GoOn,
}

/// Something to run. What exactly is the business of whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Unique among all hooks.
    pub name: String,
    /// When it runs.
    pub phase: Phase,
    /// For which events.
    pub when: Condition,
    /// Smaller ones run first; those of the same order by name.
    pub order: u32,
    /// How long it may take.
    pub limit: Duration,
    /// How often it is tried again.
    pub retries: u32,
    /// Whether it can undo what it has done. Only hooks of [`Phase::Scheduled`].
    pub undoes: bool,
    /// Whether it also runs for an event that is first seen when it has started already. Only hooks of [`Phase::Scheduled`].
    pub even_late: bool,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// An event is announced: get ready.
    Scheduled,
    /// It has started.
    Started,
    /// It is over.
    Completed,
    /// It will not happen.
    Cancelled,
    /// Nothing is pending any more: back to work.
    Undo,
}

impl Phase {
    /// All of them, in the order in which they come.
    pub const ALL: [Self; 5] = [Self::Scheduled, Self::Started, Self::Completed, Self::Cancelled, Self::Undo];

    /// What it is called in settings, logs and names of directories.
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

/// What to do about events that a condition fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which.
    pub when: Condition,
    /// What to do.
    pub treatment: Treatment,
    /// When to approve, if not as usual.
    pub approval: Option<Approval>,
    /// What a hook that failed means, if not what it usually does.
    pub on_failure: Option<Failure>,
}

/// What is done about an event of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// Nothing: no hook, no approval.
    Ignore,
    /// It is approved as if there were no hooks.
    ApproveAtOnce,
    /// Hooks, then approval.
    #[default]
    Prepare,
}

/// When an event is approved by this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Not at all: it starts when its notice is over.
    Never,
    /// When the hooks are done, if no other machine is named.
    #[default]
    Alone,
    /// When the hooks of this machine are done, whoever else is named.
    WhenDone,
    /// By the first machine that is named and alive, when every machine that is named is ready.
    Leader,
}

/// What a hook that failed means for the approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// This machine is not ready, and does not become so.
    #[default]
    Hold,
    /// It is as ready as it gets.
    Approve,
}

impl Settings {
    /// The hooks of a phase for an event, in the order in which they run.
    pub(crate) fn hooks_of(&self, phase: Phase, seen: &Seen) -> Vec<&Hook> {
        let fits = |hook: &&Hook| hook.phase == phase && hook.when.fits(seen, &self.me);
        let mut hooks: Vec<_> = self.hooks.iter().filter(fits).collect();
        hooks.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        hooks
    }

    pub(crate) fn hook(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    /// The rule for an event, if there is one.
    pub(crate) fn rule(&self, seen: &Seen) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.when.fits(seen, &self.me))
    }
}
