//! A maintenance: one piece of work on one or more machines, and the event of each tenant it touches.
//!
//! A maintenance that touches machines of several tenants starts for all of them together. A tenant that is not enrolled
//! has a part without an event: its machines are worked on, and hold nothing up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forewarn_types::{
    Announcement, EventKind, EventSource, HostId, MachineId, MaintenanceId, Reason, RolloutId, StartCause,
    Steady, TenantId, Timestamp, UpdateDomain,
};
use serde::{Deserialize, Serialize};

use crate::fleet::{EvictionPolicy, OsImageNotice, TerminateNotice};
use crate::notice::minimum_notice;
use crate::policy::FailureKind;
use crate::tenant::WorkKind;

/// One piece of work, from its plan to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// What was decided once.
    pub plan: Plan,
    /// Where it stands.
    pub stage: Stage,
}

/// What a maintenance will do, decided once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Never used again.
    pub id: MaintenanceId,
    /// Why, and what.
    pub cause: Cause,
    /// The earliest start without approval; a whole second.
    pub not_before: Timestamp,
    /// The same on the steady clock.
    pub steady_due: Steady,
    /// What it does to each tenant; a part that is over or withdrawn leaves the list.
    pub parts: Vec<Part>,
}

/// The machines of one tenant in a maintenance. They lie in one update domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Whose machines.
    pub tenant: TenantId,
    /// Their update domain.
    pub update_domain: UpdateDomain,
    /// Which machines, in the order of `Resources`.
    pub machines: Vec<MachineId>,
    /// What the tenant is told; nothing, if it is not enrolled.
    #[serde(with = "crate::shared_announcement")]
    pub announcement: Option<Arc<Announcement>>,
}

/// Why there is a maintenance, and so what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Cause {
    /// The owner restarts a machine.
    UserRestart,
    /// The owner moves a machine to another host.
    UserRedeploy,
    /// The owner deletes a machine, with or without a Terminate event.
    UserDelete(Option<TerminateNotice>),
    /// A machine gets its operating-system image anew.
    Reimage(OsImageNotice),
    /// The owner stops, starts or deallocates a machine.
    Power(PowerChange),
    /// A spot machine is evicted.
    Eviction(EvictionPolicy),
    /// A rollout has reached these hosts.
    HostWork {
        /// The rollout.
        rollout: RolloutId,
        /// What is done to the hosts.
        work: HostWork,
        /// The hosts, ascending.
        hosts: Vec<HostId>,
    },
    /// A host is expected to fail; a machine leaves it.
    DegradedHost {
        /// The host.
        host: HostId,
        /// How long it is expected to hold.
        fails_in: Duration,
    },
    /// A host has failed; its machines are brought up elsewhere.
    FailedHost {
        /// The host.
        host: HostId,
        /// How.
        kind: FailureKind,
    },
}

/// What is done to a host, and so to its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostWork {
    /// An update that keeps memory: machines are paused.
    Update,
    /// An update of the network: machines may feel it.
    NetworkUpdate,
    /// Machines are moved live to other hosts.
    Migration,
    /// The host is restarted, and its machines with it.
    Restart,
}

/// What the owner does to the power of a machine. It never makes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerChange {
    /// Off, keeping the place on the host.
    Stop,
    /// On.
    Start,
    /// Off, giving the place up.
    Deallocate,
}

/// Where a maintenance stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has not started.
    Waiting(Wait),
    /// It has started; these machines are still being worked on.
    Running {
        /// What let it start.
        cause: StartCause,
        /// What has been commanded and not reported as finished.
        actions: BTreeMap<MachineId, Action>,
    },
}

/// What a maintenance that has not started waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// Approvals, or the end of the notice on the steady clock.
    Notice,
    /// The wall clock, which has been stepped back, to reach `not_before`.
    Wall,
    /// Nothing any more: it is looked at in the next tick.
    Nothing,
    /// It might start, but is held.
    Held(Hold),
}

/// Why a maintenance that might start does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Hold {
    /// The brake is on.
    Brake,
    /// Another update domain of one of its tenants is being worked on.
    UpdateDomain,
    /// No other host can take one of its machines.
    NoHost,
    /// One of its machines, which it would move, is being moved.
    Moving,
    /// Its rollout works in windows, and none is open.
    Window {
        /// When the next one opens, on the wall clock.
        opens: Timestamp,
    },
}

/// What is to be done to one machine, and the state it must still be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// With the machine: the key under which the action is remembered.
    pub maintenance: MaintenanceId,
    /// The machine.
    pub machine: MachineId,
    /// What is done.
    pub impact: Impact,
    /// The boot that was current when it was decided: a later one means that it has been done.
    pub boots: u32,
}

/// What is done to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Impact {
    /// Paused for that many seconds.
    Pause {
        /// How long.
        seconds: u32,
    },
    /// Moved live.
    Migrate {
        /// Where to.
        to: HostId,
    },
    /// Restarted: where it is, or on another host if its own has failed.
    Reboot {
        /// Where to, unless it stays.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Stopped, and started on another host with a new ephemeral disk; on a failed host that nobody can relieve, it stays.
    Redeploy {
        /// Where to, unless it stays.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Given its operating-system image anew.
    Reimage,
    /// Evicted.
    Evict(EvictionPolicy),
    /// Deleted.
    Delete,
    /// Switched off.
    Stop,
    /// Switched on.
    Start {
        /// Where, unless where it was.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Switched off and taken from its host.
    Deallocate,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// It was done.
    Done,
    /// It could not be done, and will not be tried again; the machine is as it was.
    Failed,
}

/// Why a part of a maintenance was taken back before it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Withdrawal {
    /// An operator cancelled it.
    Cancelled,
    /// A delete or an eviction makes it pointless.
    Superseded,
    /// None of its machines is still concerned.
    Unconcerned,
    /// The host has failed; another event says so.
    HostFailed,
    /// The degraded host is well again.
    HostRecovered,
    /// Its rollout is paused; the hosts wait for their turn again.
    Postponed,
}

/// What a tenant is told about a cause, and how long before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) kind: EventKind,
    pub(crate) source: EventSource,
    pub(crate) reason: Reason,
    pub(crate) duration_seconds: i32,
    pub(crate) notice: Duration,
}

/// The interruption is expected to last an unknown time.
const UNKNOWN: i32 = -1;

impl Cause {
    /// Whether somebody has asked for it, for a machine: not what comes with the hosts.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        match self {
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_) => true,
            Self::HostWork { .. } | Self::DegradedHost { .. } | Self::FailedHost { .. } => false,
        }
    }

    /// Whether an enrolled tenant gets an event of it.
    #[must_use]
    pub fn makes_events(&self) -> bool {
        self.told().is_some()
    }

    /// What a tenant is told; nothing, if such work makes no event.
    pub(crate) fn told(&self) -> Option<Told> {
        use {EventKind as K, EventSource::Platform, EventSource::User, Reason as R};
        let (kind, source, reason, duration_seconds) = match self {
            Self::UserRestart => (K::Reboot, User, R::UserRestart, UNKNOWN),
            Self::UserRedeploy => (K::Redeploy, User, R::UserRedeploy, UNKNOWN),
            Self::UserDelete(Some(_)) => (K::Terminate, User, R::Unspoken, UNKNOWN),
            Self::Reimage(OsImageNotice::On) => (K::Reboot, Platform, R::Unspoken, UNKNOWN),
            Self::Eviction(_) => (K::Preempt, Platform, R::Unspoken, UNKNOWN),
            Self::HostWork { work: HostWork::Update, .. } => (K::Freeze, Platform, R::HostMaintenance, 9),
            Self::HostWork { work: HostWork::NetworkUpdate, .. } => {
                (K::Freeze, Platform, R::InfrastructureMaintenance, 0)
            }
            Self::HostWork { work: HostWork::Migration, .. } => (K::Freeze, Platform, R::LiveMigration, 5),
            Self::HostWork { work: HostWork::Restart, .. } => {
                (K::Reboot, Platform, R::HostMaintenance, UNKNOWN)
            }
            Self::DegradedHost { .. } => (K::Redeploy, Platform, R::HostMaintenance, UNKNOWN),
            Self::FailedHost { kind: FailureKind::Reboot, .. } => {
                (K::Reboot, Platform, R::HostFailure, UNKNOWN)
            }
            Self::FailedHost { kind: FailureKind::Redeploy, .. } => {
                (K::Redeploy, Platform, R::HostFailure, UNKNOWN)
            }
            Self::UserDelete(None) | Self::Reimage(OsImageNotice::Off) | Self::Power(_) => return None,
        };
        Some(Told { kind, source, reason, duration_seconds, notice: self.notice(kind) })
    }

    fn notice(&self, kind: EventKind) -> Duration {
        match self {
            Self::UserDelete(Some(notice)) => notice.length(),
            Self::DegradedHost { fails_in, .. } => minimum_notice(kind).max(*fails_in),
            Self::FailedHost { .. } => Duration::ZERO,
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(None)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::HostWork { .. } => minimum_notice(kind),
        }
    }

    /// Whether this is something the owner of a machine asked for and may not ask for twice.
    pub(crate) fn is_user_operation(&self) -> bool {
        matches!(self, Self::UserRestart | Self::UserRedeploy | Self::Reimage(_))
    }

    /// Whether the machine will be gone, or at least off, when this is done.
    pub(crate) fn ends_machine(&self) -> bool {
        matches!(self, Self::UserDelete(_) | Self::Eviction(_))
    }

    /// Whether the machine will be gone when this is done.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, Self::UserDelete(_) | Self::Eviction(EvictionPolicy::Delete))
    }

    /// Whether the machine will be off, on or gone when this is done.
    pub(crate) fn changes_power(&self) -> bool {
        self.ends_machine() || matches!(self, Self::Power(_))
    }

    /// Whether this tells a machine that the host is not well.
    pub(crate) fn is_unwell(&self, id: HostId) -> bool {
        matches!(self, Self::DegradedHost { host, .. } | Self::FailedHost { host, .. } if *host == id)
    }

    /// The kind of platform work this is, if it is any.
    pub(crate) fn work_kind(&self) -> Option<WorkKind> {
        match self {
            Self::HostWork { .. } => Some(WorkKind::HostWork),
            Self::DegradedHost { .. } => Some(WorkKind::Degraded),
            Self::FailedHost { .. } => Some(WorkKind::Failure),
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_) => None,
        }
    }

    /// The rollout that this is a step of.
    #[must_use]
    pub fn rollout(&self) -> Option<RolloutId> {
        match self {
            Self::HostWork { rollout, .. } => Some(*rollout),
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::DegradedHost { .. }
            | Self::FailedHost { .. } => None,
        }
    }

    /// The hosts that this empties or interrupts.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        match self {
            Self::HostWork { hosts, .. } => hosts,
            Self::DegradedHost { host, .. } | Self::FailedHost { host, .. } => std::slice::from_ref(host),
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_) => &[],
        }
    }
}

impl Plan {
    /// The part of a tenant, if the plan touches it.
    #[must_use]
    pub fn part(&self, tenant: TenantId) -> Option<&Part> {
        self.parts.iter().find(|part| part.tenant == tenant)
    }

    /// The hosts that it empties or interrupts.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        self.cause.hosts()
    }

    /// Every machine of every part.
    pub fn machines(&self) -> impl Iterator<Item = MachineId> {
        self.parts.iter().flat_map(|part| part.machines.iter().copied())
    }
}

impl Maintenance {
    /// What has been commanded and not reported as finished.
    pub fn actions(&self) -> impl Iterator<Item = Action> {
        let actions = match &self.stage {
            Stage::Running { actions, .. } => Some(actions.values().copied()),
            Stage::Waiting(_) => None,
        };
        actions.into_iter().flatten()
    }

    /// What has been commanded for a machine and not reported as finished.
    #[must_use]
    pub fn action(&self, machine: MachineId) -> Option<Action> {
        match &self.stage {
            Stage::Running { actions, .. } => actions.get(&machine).copied(),
            Stage::Waiting(_) => None,
        }
    }

    /// What it waits for, if it has not started.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        match self.stage {
            Stage::Waiting(wait) => Some(wait),
            Stage::Running { .. } => None,
        }
    }
}

impl Impact {
    /// The host to which this takes the machine, if it takes it anywhere.
    #[must_use]
    pub fn destination(self) -> Option<HostId> {
        match self {
            Self::Migrate { to } => Some(to),
            Self::Reboot { to } | Self::Redeploy { to } | Self::Start { to } => to,
            Self::Pause { .. }
            | Self::Reimage
            | Self::Evict(_)
            | Self::Delete
            | Self::Stop
            | Self::Deallocate => None,
        }
    }

    /// How long it usually takes: as long as a Freeze was announced to last; otherwise what a quick machine would need. What
    /// nobody was told of takes no time.
    #[must_use]
    pub fn usual_length(self, told: Option<&Announcement>) -> Duration {
        let Some(told) = told else { return Duration::ZERO };
        let seconds = match self {
            Self::Pause { seconds } => u64::from(seconds),
            Self::Migrate { .. } => u64::try_from(told.duration_seconds).unwrap_or(0),
            Self::Reboot { .. } | Self::Reimage => 30,
            Self::Redeploy { .. } => 120,
            Self::Evict(_) | Self::Delete => 5,
            Self::Stop | Self::Start { .. } | Self::Deallocate => 0,
        };
        Duration::from_secs(seconds)
    }

    /// Whether the machine is on, off or gone afterwards, whatever it was before.
    pub(crate) fn changes_power(self) -> bool {
        match self {
            Self::Start { .. } | Self::Stop | Self::Deallocate | Self::Evict(_) | Self::Delete => true,
            Self::Pause { .. }
            | Self::Migrate { .. }
            | Self::Reboot { .. }
            | Self::Redeploy { .. }
            | Self::Reimage => false,
        }
    }
}
