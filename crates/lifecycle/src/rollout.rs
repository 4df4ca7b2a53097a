//! A rollout: work over many hosts, group by group, on terms.
//!
//! ```text
//!               ┌──────────── a group is announced ◀───────────┐
//!               ▼                                              │ no obstacle
//!   planned ─▶ Works ── it has ended ▶ Next ── checked ────────┤
//!                                       ▲                      │ obstacle: pause, gate, window, brake, room
//!                                       └─ obstacle changed ◀──┘
//!   no host left: it ends, and is remembered for a while
//! ```
//!
//! One group is announced or in progress at a time. The terms limit its size and its start, and set the conditions for
//! the next group.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{HostId, MachineId, MaintenanceId, Steady, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::host_step::HostTask;
use crate::paged::{PagedMap, PagedSet};
use crate::percent::Percent;
use crate::waiting_hosts::WaitingHosts;
use crate::window::Window;

/// Work over many hosts, group by group: hosts on which no tenant has two update domains go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// The work on each host.
    pub work: HostTask,
    /// Budgets, windows and gates.
    pub terms: RolloutTerms,
    /// Time of its planning.
    pub planned_at: Timestamp,
    /// The hosts that have not been announced yet, in the order in which they were named.
    pub waiting: WaitingHosts,
    /// Results of the hosts that it has processed.
    pub past: PagedMap<HostId, HostResult>,
    /// Current step, or the condition that it waits for.
    pub standing: Standing,
    /// The reason of the pause; `None` if it is not paused.
    pub pause: Option<Pause>,
    /// Failed impacts since its start, or since it was last resumed.
    pub failures: u32,
    /// Completed groups.
    pub groups: u32,
    /// Number of completed groups when an operator last confirmed it.
    pub confirmed: u32,
    /// Time at which the last group ended.
    pub group_over: Option<Steady>,
    /// The machines of the last group.
    pub last_machines: Vec<MachineId>,
    /// Hosts that were unhealthy before the work, or whose health an operator acknowledged by resuming.
    pub excused: PagedSet<HostId>,
}

/// The terms of a rollout. Omitted terms do not limit it; but by default one failed impact pauses it, and it waits for
/// unhealthy hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutTerms {
    /// Maximum number of hosts at once; `None` for no limit.
    #[serde(deserialize_with = "Option::deserialize")]
    pub hosts_at_once: Option<NonZeroU16>,
    /// Maximum share of the machines of any tenant at once, in all planned work; `None` for no limit.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tenant_share: Option<Percent>,
    /// Fault domains of a tenant that a group may span.
    pub fault_domains: FaultDomains,
    /// Times at which groups may start; at any time, if empty.
    pub windows: Vec<Window>,
    /// Pause between two groups.
    pub pause_between: Duration,
    /// Groups after which an operator has to confirm the rollout.
    pub confirm: Confirm,
    /// Treatment of unhealthy hosts and of machines that have not returned.
    pub health: HealthGate,
    /// Number of failed impacts after which it pauses; `None` for never.
    #[serde(deserialize_with = "Option::deserialize")]
    pub stop_after: Option<NonZeroU16>,
}

/// The number of fault domains of a tenant that a group may span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultDomains {
    /// Any number.
    #[default]
    Any,
    /// One; but a single host is always possible, whatever machines it has.
    OneAtATime,
}

/// Groups after which an operator has to confirm the rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confirm {
    /// No confirmation.
    #[default]
    Never,
    /// After the first.
    First,
    /// After each.
    Each,
}

/// Treatment of unhealthy hosts, and of machines that have not returned, by a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthGate {
    /// No group is announced while a host that it has worked on, or one with a machine of the last group, has become
    /// degraded or failed.
    #[default]
    Awaited,
    /// Health is ignored.
    Ignored,
    /// As `Awaited`; nor while a machine of the last group has not polled since its impact ended. A machine that is off,
    /// or has not polled between the announcement and the end of its impact, is not awaited.
    Machines,
}

/// The presence of a machine in the last group of a rollout whose health gate includes machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has not polled since its group was announced.
    Unseen,
    /// It has polled since then.
    Polling,
    /// It has not polled since its impact ended.
    Away {
        /// The end of its impact.
        since: Timestamp,
    },
}

/// The result of a host in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostResult {
    /// The work succeeded.
    Done,
    /// The work was done, and an impact failed.
    Failed,
    /// The work was not done: its group was withdrawn, or the host had no machine any more.
    Skipped,
}

/// The current step of a rollout, or the condition that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Standing {
    /// The next tick checks it.
    Next,
    /// A group is announced or in progress.
    Works(MaintenanceId),
    /// None of the hosts can be announced now; this is the obstacle of the first.
    Room(Obstacle),
    /// It pauses after a group.
    Rests {
        /// Until then.
        until: Steady,
    },
    /// A group announced now would not start in a window.
    Window {
        /// Time from which an announced group starts in a window.
        announces: Timestamp,
    },
    /// None of the hosts can be announced now: a group announced now would not start in a window of a tenant.
    TenantWindow {
        /// The first tenant whose windows are closed.
        tenant: TenantId,
        /// Time from which an announced group starts in windows of the rollout and of the tenants of a host; `None` if
        /// they never meet.
        #[serde(deserialize_with = "Option::deserialize")]
        announces: Option<Timestamp>,
    },
    /// A host that it has worked on is unhealthy, or a machine of its last group has not returned.
    Unwell,
    /// An operator has to confirm it.
    Unconfirmed,
    /// The brake is on: a group announced now would be held.
    Brake,
    /// It is paused.
    Paused,
}

/// The time at which a rollout is rechecked, on one of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecheckTime {
    Steady(Steady),
    Wall(Timestamp),
}

/// The reason why a host cannot be announced now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Obstacle {
    /// It has failed.
    Failed,
    /// A machine is moving to it.
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
    /// The group has reached its maximum size.
    Full,
    /// It needs the attention of an operator.
    NeedsAttention,
    /// No window of one of its tenants is open when a group announced now would start.
    TenantWindow,
}

/// The reason why a rollout is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// By an operator.
    Operator,
    /// As many impacts have failed as the terms permit.
    Failures,
}

/// Treatment of the announced group of a paused rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Announced {
    /// It starts as announced.
    Stays,
    /// It is withdrawn if it has not started; its hosts wait again.
    TakenBack,
}

/// An ended rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRollout {
    /// The rollout; after a cancellation its last group may still be in progress.
    pub rollout: Rollout,
    /// Time of its end.
    pub at: Timestamp,
    /// Finished or cancelled.
    pub how: RolloutEnd,
}

/// The way in which a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutEnd {
    /// No host was left.
    Finished,
    /// By an operator.
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

impl Presence {
    /// Returns true if the next poll of the machine changes it.
    pub(crate) fn awaits_poll(self) -> bool {
        match self {
            Self::Unseen | Self::Away { .. } => true,
            Self::Polling => false,
        }
    }
}

impl Rollout {
    /// The group that is announced or in progress; `None` if there is none.
    #[must_use]
    pub fn current(&self) -> Option<MaintenanceId> {
        match self.standing {
            Standing::Works(group) => Some(group),
            Standing::Next
            | Standing::Room(_)
            | Standing::Rests { .. }
            | Standing::Window { .. }
            | Standing::TenantWindow { .. }
            | Standing::Unwell
            | Standing::Unconfirmed
            | Standing::Brake
            | Standing::Paused => None,
        }
    }

    /// The number of hosts that wait or have been processed.
    pub(crate) fn host_count(&self) -> usize {
        self.waiting.len() + self.past.len()
    }

    /// The time of the next check; `None` unless it waits for time alone.
    pub(crate) fn recheck_time(&self) -> Option<RecheckTime> {
        match self.standing {
            Standing::Next => Some(RecheckTime::Steady(Steady::START)),
            Standing::Rests { until } => Some(RecheckTime::Steady(until)),
            Standing::Window { announces } => Some(RecheckTime::Wall(announces)),
            Standing::TenantWindow { announces, .. } => announces.map(RecheckTime::Wall),
            Standing::Works(_)
            | Standing::Room(_)
            | Standing::Unwell
            | Standing::Unconfirmed
            | Standing::Brake
            | Standing::Paused => None,
        }
    }

    /// Returns true if it waits for another host or tenant, so that a change of those needs a recheck.
    pub(crate) fn waits_for_room(&self) -> bool {
        matches!(self.standing, Standing::Room(_) | Standing::TenantWindow { .. })
    }

    /// Returns true if the terms need a confirmation that no operator has given.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        match self.terms.confirm {
            Confirm::Never => false,
            Confirm::First => self.groups > 0 && self.confirmed == 0,
            Confirm::Each => self.groups > self.confirmed,
        }
    }

    /// End of the pause after the last group.
    pub(crate) fn rests_until(&self) -> Option<Steady> {
        self.group_over.map(|over| over.plus(self.terms.pause_between))
    }

    /// Returns true if the next failed impact pauses the rollout.
    pub(crate) fn stops_at_next_failure(&self) -> bool {
        let stop = self.terms.stop_after.is_some_and(|max| self.failures + 1 >= u32::from(max.get()));
        stop && self.pause.is_none() && !self.waiting.is_empty()
    }
}
