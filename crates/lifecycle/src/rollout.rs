//! A rollout: work over many hosts, group by group, on terms.
//!
//! ```text
//!               ┌──────────── a group is announced ◀───────────┐
//!               ▼                                              │ nothing is in the way
//!   planned ─▶ Works ── it is over ──▶ Next ── looked at ──────┤
//!                                       ▲                      │ something is: pause, gate, window, brake, room
//!                                       └─ that has changed ◀──┘
//!   no host left: it ends, and is remembered for a while
//! ```
//!
//! One group is announced or under way at a time. Terms say how large it may be, when it may start, and what must be so
//! before the next one.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{HostId, MachineId, MaintenanceId, Steady, Timestamp};
use serde::{Deserialize, Serialize};

use crate::maintenance::HostWork;
use crate::paged::{PagedMap, PagedSet};
use crate::percent::Percent;
use crate::window::Window;

/// Work over many hosts, group by group: hosts on which no tenant has two update domains go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// What is done.
    pub work: HostWork,
    /// How it is done.
    pub terms: RolloutTerms,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// The hosts that have not been announced yet, in the order in which they were named.
    pub waiting: Vec<HostId>,
    /// What became of the hosts that it has left behind.
    pub past: PagedMap<HostId, HostFate>,
    /// What it does, or waits for.
    pub standing: Standing,
    /// Why nothing new is announced, if it is paused.
    pub pause: Option<Pause>,
    /// Impacts that have failed since it began, or was resumed.
    pub failures: u32,
    /// Groups that are done.
    pub groups: u32,
    /// How many of them had been done when somebody last said that it may go on.
    pub confirmed: u32,
    /// When the last group was done.
    pub group_over: Option<Steady>,
    /// The machines of the last group.
    pub last_machines: Vec<MachineId>,
    /// Hosts that were not well before they were worked on, or that somebody has seen and resumed.
    pub excused: PagedSet<HostId>,
}

/// How a rollout is done. What is not said does not limit it; but one failed impact pauses it, and it waits for hosts that
/// are not well, unless that is not wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutTerms {
    /// At most that many hosts at once.
    #[serde(deserialize_with = "Option::deserialize")]
    pub hosts_at_once: Option<NonZeroU16>,
    /// At most that part of the machines of any tenant at once, in all planned work.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tenant_share: Option<Percent>,
    /// Whether the machines of a tenant may lie in several fault domains.
    pub fault_domains: FaultDomains,
    /// When groups may start; at any time, if there are none.
    pub windows: Vec<Window>,
    /// How long it rests between two groups.
    pub pause_between: Duration,
    /// After which groups somebody has to say that it may go on.
    pub confirm: Confirm,
    /// Whether it waits for what is not well.
    pub health: HealthGate,
    /// After how many failed impacts it pauses itself; never, if not said.
    #[serde(deserialize_with = "Option::deserialize")]
    pub stop_after: Option<NonZeroU16>,
}

/// In how many fault domains of a tenant a group may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultDomains {
    /// In as many as there are.
    #[default]
    Any,
    /// In one; but a single host is always possible, whatever it carries.
    OneAtATime,
}

/// After which groups somebody has to say that a rollout may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confirm {
    /// After none.
    #[default]
    Never,
    /// After the first.
    First,
    /// After each.
    Each,
}

/// Whether a rollout waits for what is not well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthGate {
    /// No group is announced while a host that it has worked on, or one with a machine of the last group, has become
    /// degraded or failed.
    #[default]
    Awaited,
    /// It does not look.
    Ignored,
}

/// What became of a host of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFate {
    /// It has been worked on.
    Done,
    /// It has been worked on, and something failed.
    Failed,
    /// It has not been worked on: its group was taken back, or nobody was there any more.
    Skipped,
}

/// What a rollout does, or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Standing {
    /// It is looked at in the next tick.
    Next,
    /// A group is announced or under way.
    Works(MaintenanceId),
    /// None of the hosts can be announced now; this is in the way of the first.
    Room(Obstacle),
    /// It rests after a group.
    Rests {
        /// Until then.
        until: Steady,
    },
    /// What is announced now would not start in a window.
    Window {
        /// When something may be announced that does.
        announces: Timestamp,
    },
    /// Something that it has worked on is not well.
    Unwell,
    /// Somebody has to say that it may go on.
    Unconfirmed,
    /// The brake is on: whatever is announced now would be held.
    Brake,
    /// It is paused.
    Paused,
}

/// When a rollout is looked at, and on which clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Steady(Steady),
    Wall(Timestamp),
}

/// Why a host cannot be announced now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Obstacle {
    /// It has failed.
    Failed,
    /// A machine is on the way to it.
    Arrivals,
    /// Another update domain of one of its tenants is in planned work.
    UpdateDomain,
    /// One of its tenants has as many machines in planned work as the terms permit.
    TenantShare,
    /// Another fault domain of one of its tenants is in planned work.
    FaultDomain,
    /// One of its tenants sees as many events as it can.
    Events,
    /// No other host can take one of its machines.
    NoHost,
    /// The group is as large as it may be.
    Full,
}

/// Why a rollout is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// An operator wanted it.
    Operator,
    /// As many impacts have failed as the terms permit.
    Failures,
}

/// What becomes of a group that is announced when its rollout is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Announced {
    /// It starts when it may.
    Stays,
    /// It is withdrawn, if it has not started; its hosts wait for their turn again.
    TakenBack,
}

/// A rollout that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRollout {
    /// What it was; after a cancellation its last group may still be under way.
    pub rollout: Rollout,
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub how: RolloutEnd,
}

/// How a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutEnd {
    /// No host was left.
    Finished,
    /// An operator wanted it.
    Cancelled,
}

impl Default for RolloutTerms {
    fn default() -> Self {
        Self {
            hosts_at_once: None,
            tenant_share: None,
            fault_domains: FaultDomains::default(),
            windows: Vec::new(),
            pause_between: Duration::ZERO,
            confirm: Confirm::default(),
            health: HealthGate::default(),
            stop_after: Some(NonZeroU16::MIN),
        }
    }
}

impl Rollout {
    /// The group that is announced or under way.
    #[must_use]
    pub fn current(&self) -> Option<MaintenanceId> {
        match self.standing {
            Standing::Works(group) => Some(group),
            Standing::Next
            | Standing::Room(_)
            | Standing::Rests { .. }
            | Standing::Window { .. }
            | Standing::Unwell
            | Standing::Unconfirmed
            | Standing::Brake
            | Standing::Paused => None,
        }
    }

    /// When it is looked at, if it waits for time alone.
    pub(crate) fn looked_at(&self) -> Option<Look> {
        match self.standing {
            Standing::Next => Some(Look::Steady(Steady::START)),
            Standing::Rests { until } => Some(Look::Steady(until)),
            Standing::Window { announces } => Some(Look::Wall(announces)),
            Standing::Works(_)
            | Standing::Room(_)
            | Standing::Unwell
            | Standing::Unconfirmed
            | Standing::Brake
            | Standing::Paused => None,
        }
    }

    /// Whether it waits for another host, place or tenant, so that a change of those is worth a look.
    pub(crate) fn waits_for_room(&self) -> bool {
        matches!(self.standing, Standing::Room(_))
    }

    /// Whether the terms want somebody to say that it may go on, and nobody has.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        match self.terms.confirm {
            Confirm::Never => false,
            Confirm::First => self.groups > 0 && self.confirmed == 0,
            Confirm::Each => self.groups > self.confirmed,
        }
    }

    /// Until when it rests after the last group.
    pub(crate) fn rests_until(&self) -> Option<Steady> {
        self.group_over.map(|over| over.plus(self.terms.pause_between))
    }

    /// Whether one more failed impact is one too many.
    pub(crate) fn stops_at_next_failure(&self) -> bool {
        let stop = self.terms.stop_after.is_some_and(|max| self.failures + 1 >= u32::from(max.get()));
        stop && self.pause.is_none() && !self.waiting.is_empty()
    }
}
