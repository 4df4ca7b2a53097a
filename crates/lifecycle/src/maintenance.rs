//! A maintenance: one piece of work on one or more machines, and the event of each tenant it touches.
//!
//! A maintenance that affects machines of several tenants starts for all of them together. A tenant that is not
//! enrolled has a part without an event: its machines are worked on and delay nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_types::{
    EventKind, EventSource, HostId, MachineId, MaintenanceId, Reason, RolloutId, StartCause, Steady,
    TenantId, Timestamp, Zone,
};
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::fleet::{EvictionPolicy, OsImageNotice, TerminateNotice};
use crate::host_step::{HostOperation, HostTask, HostWork, Leaving, ReturnWay, Steps, Target};
use crate::notice::minimum_notice;
use crate::paged::PagedMap;
use crate::parts::{Part, Parts};
use crate::policy::FailureKind;
use crate::tenant::WorkKind;

/// A piece of work on machines, from its plan to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// The plan, which never changes except for its notice and its withdrawn parts.
    pub plan: Plan,
    /// Waiting or running.
    pub stage: Stage,
}

/// The plan of a maintenance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Unique; never reused.
    pub id: MaintenanceId,
    /// The cause, which determines the work.
    pub cause: Cause,
    /// The earliest start without approval; a whole second.
    pub not_before: Timestamp,
    /// The same on the steady clock.
    pub steady_due: Steady,
    /// The parts, one for each tenant. A part that has ended or is withdrawn is removed.
    pub parts: Parts,
}

/// The cause of a maintenance, which determines the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Cause {
    /// The owner restarts a machine.
    UserRestart,
    /// The owner moves a machine to another host.
    UserRedeploy,
    /// The owner deletes a machine, with or without a Terminate event.
    UserDelete(Option<TerminateNotice>),
    /// The operating-system image of a machine is reinstalled.
    Reimage(OsImageNotice),
    /// The owner stops, starts or deallocates a machine.
    Power(PowerChange),
    /// A spot machine is evicted.
    Eviction(EvictionPolicy),
    /// A rollout has reached these hosts.
    HostWork {
        /// The rollout.
        rollout: RolloutId,
        /// The work on the hosts.
        work: HostTask,
        /// The hosts, ascending.
        hosts: Vec<HostId>,
    },
    /// A host is expected to fail; a machine leaves it.
    DegradedHost {
        /// The host.
        host: HostId,
        /// Time until the expected failure.
        fails_in: Duration,
    },
    /// A host has failed; its machines are brought up elsewhere.
    FailedHost {
        /// The host.
        host: HostId,
        /// The way in which they are brought up.
        kind: FailureKind,
    },
    /// A failed host is separated from the disks of its machines. It names no machine and makes no event.
    Fencing {
        /// The host.
        host: HostId,
    },
    /// A host has left maintenance mode; machines return to it.
    HostReturn {
        /// The host.
        host: HostId,
        /// The way in which they return.
        way: ReturnWay,
    },
}

/// A change of the power state by the owner. It never makes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerChange {
    /// Off, still allocated on the host.
    Stop,
    /// On.
    Start,
    /// Off and no longer allocated.
    Deallocate,
}

/// The stage of a maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has not started.
    Waiting(Wait),
    /// It has started, and is in progress.
    Running {
        /// The cause of its start.
        cause: StartCause,
        /// Actions that were requested and not reported as finished.
        actions: PagedMap<Target, Action>,
        /// Progress on its hosts, and suspended actions.
        steps: Steps,
    },
}

/// The condition for which a maintenance waits before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// Approvals, or the end of the notice on the steady clock.
    Notice,
    /// The wall clock, which has been stepped back, to reach `not_before`.
    Wall,
    /// Nothing: the next tick checks it.
    Nothing,
    /// It could start, but is held.
    Held(Hold),
    /// Its turn: it was held for lack of a host, and a host of that zone can take machines now. The next tick checks
    /// it, and then the next one that waits for a host of the zone.
    Offered {
        /// The zone of the host.
        #[serde(deserialize_with = "Option::deserialize")]
        zone: Option<Zone>,
    },
}

/// The reason why a maintenance that could start is held.
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
    /// No window of its rollout, or of one of its tenants, is open.
    Window {
        /// Next time at which they are open, on the wall clock.
        opens: Timestamp,
    },
    /// A machine that it would start elsewhere may still run on a failed host that is not fenced.
    Fencing,
}

/// The reason why a part of a maintenance was withdrawn before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Withdrawal {
    /// An operator cancelled it.
    Cancelled,
    /// A delete or an eviction makes it pointless.
    Superseded,
    /// None of its machines is still concerned.
    Unconcerned,
    /// The host has failed, which another event announces.
    HostFailed,
    /// The degraded or failed host is healthy again.
    HostRecovered,
    /// Its rollout is paused; the hosts wait again.
    Postponed,
    /// The host to which machines were to return cannot take them.
    NoReturn,
}

/// The contents of the event that a cause makes, and its notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTemplate {
    pub(crate) kind: EventKind,
    pub(crate) source: EventSource,
    pub(crate) reason: Reason,
    pub(crate) duration_seconds: i32,
    pub(crate) notice: Duration,
}

/// The expected duration of the interruption is unknown.
const UNKNOWN: i32 = -1;

/// The announced length of the interruption of a machine that returns live, in seconds.
const RETURN_SECONDS: i32 = 5;

impl Cause {
    /// Returns true if a caller requested it for a machine: not host work or host failures.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        match self {
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_) => true,
            Self::HostWork { .. }
            | Self::DegradedHost { .. }
            | Self::FailedHost { .. }
            | Self::Fencing { .. }
            | Self::HostReturn { .. } => false,
        }
    }

    /// Returns true if an enrolled tenant gets an event.
    #[must_use]
    pub fn makes_events(&self) -> bool {
        self.event_template().is_some()
    }

    /// The kind of the event that an enrolled tenant gets; `None` if the cause makes no event.
    #[must_use]
    pub fn event_kind(&self) -> Option<EventKind> {
        self.event_template().map(|template| template.kind)
    }

    /// The event that an enrolled tenant gets; `None` if the cause makes no event.
    pub(crate) fn event_template(&self) -> Option<EventTemplate> {
        use {EventKind as K, EventSource::Platform, EventSource::User, Reason as R};
        let (kind, source, reason, duration_seconds) = match self {
            Self::UserRestart => (K::Reboot, User, R::UserRestart, UNKNOWN),
            Self::UserRedeploy => (K::Redeploy, User, R::UserRedeploy, UNKNOWN),
            Self::UserDelete(Some(_)) => (K::Terminate, User, R::Unspoken, UNKNOWN),
            Self::Reimage(OsImageNotice::On) => (K::Reboot, Platform, R::Unspoken, UNKNOWN),
            Self::Eviction(_) => (K::Preempt, Platform, R::Unspoken, UNKNOWN),
            Self::HostWork { work, .. } => {
                let (kind, reason) = match work.kind {
                    HostWork::Update => (K::Freeze, R::HostMaintenance),
                    HostWork::NetworkUpdate => (K::Freeze, R::InfrastructureMaintenance),
                    HostWork::Migration => (K::Freeze, R::LiveMigration),
                    HostWork::Restart => (K::Reboot, R::HostMaintenance),
                    HostWork::Maintenance { leaving, .. } => match leaving {
                        Leaving::Live => (K::Freeze, R::LiveMigration),
                        Leaving::Redeploy => (K::Redeploy, R::HostMaintenance),
                        Leaving::Stop => (K::Reboot, R::HostMaintenance),
                    },
                };
                (kind, Platform, reason, work.duration_seconds())
            }
            Self::DegradedHost { .. } => (K::Redeploy, Platform, R::HostMaintenance, UNKNOWN),
            Self::FailedHost { kind: FailureKind::Reboot, .. } => {
                (K::Reboot, Platform, R::HostFailure, UNKNOWN)
            }
            Self::FailedHost { kind: FailureKind::Redeploy, .. } => {
                (K::Redeploy, Platform, R::HostFailure, UNKNOWN)
            }
            Self::HostReturn { way: ReturnWay::Live, .. } => {
                (K::Freeze, Platform, R::LiveMigration, RETURN_SECONDS)
            }
            Self::HostReturn { way: ReturnWay::Redeploy, .. } => {
                (K::Redeploy, Platform, R::HostMaintenance, UNKNOWN)
            }
            Self::UserDelete(None)
            | Self::Reimage(OsImageNotice::Off)
            | Self::Power(_)
            | Self::Fencing { .. } => return None,
        };
        Some(EventTemplate { kind, source, reason, duration_seconds, notice: self.notice(kind) })
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
            | Self::HostWork { .. }
            | Self::Fencing { .. }
            | Self::HostReturn { .. } => minimum_notice(kind),
        }
    }

    /// Returns true if this is an operation of the owner that may be pending only once.
    pub(crate) fn is_user_operation(&self) -> bool {
        matches!(self, Self::UserRestart | Self::UserRedeploy | Self::Reimage(_))
    }

    /// Returns true if the machine is deleted or at least off afterwards.
    pub(crate) fn ends_machine(&self) -> bool {
        matches!(self, Self::UserDelete(_) | Self::Eviction(_))
    }

    /// Returns true if the machine is deleted afterwards.
    #[must_use]
    pub fn deletes_machine(&self) -> bool {
        matches!(self, Self::UserDelete(_) | Self::Eviction(EvictionPolicy::Delete))
    }

    /// Returns true if the machine is switched on, switched off or deleted.
    pub(crate) fn changes_power(&self) -> bool {
        self.ends_machine() || matches!(self, Self::Power(_))
    }

    /// Returns true if this announces that the host is degraded or has failed.
    pub(crate) fn announces_unhealthy_host(&self, id: HostId) -> bool {
        matches!(self, Self::DegradedHost { host, .. } | Self::FailedHost { host, .. } if *host == id)
    }

    /// The kind of platform work; `None` for operations on a machine.
    pub(crate) fn work_kind(&self) -> Option<WorkKind> {
        match self {
            Self::HostWork { .. } => Some(WorkKind::HostWork),
            Self::DegradedHost { .. } => Some(WorkKind::Degraded),
            Self::FailedHost { .. } => Some(WorkKind::Failure),
            Self::HostReturn { .. } => Some(WorkKind::Return),
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::Fencing { .. } => None,
        }
    }

    /// The rollout of host work; `None` for other causes.
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
            | Self::FailedHost { .. }
            | Self::Fencing { .. }
            | Self::HostReturn { .. } => None,
        }
    }

    /// The work on hosts; `None` for other causes.
    #[must_use]
    pub fn host_task(&self) -> Option<&HostTask> {
        if let Self::HostWork { work, .. } = self { Some(work) } else { None }
    }

    /// The operation on each host itself; `None` if there is none.
    #[must_use]
    pub fn host_operation(&self) -> Option<HostOperation> {
        match self {
            Self::Fencing { .. } => Some(HostOperation::Fence),
            Self::HostWork { work, .. } => work.operation(),
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::DegradedHost { .. }
            | Self::FailedHost { .. }
            | Self::HostReturn { .. } => None,
        }
    }

    /// Returns true if there is a step on each host itself.
    #[must_use]
    pub fn has_step(&self) -> bool {
        self.host_operation().is_some()
    }

    /// The hosts that this empties or interrupts.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        match self {
            Self::HostWork { hosts, .. } => hosts,
            Self::DegradedHost { host, .. } | Self::FailedHost { host, .. } | Self::Fencing { host } => {
                std::slice::from_ref(host)
            }
            Self::UserRestart
            | Self::UserRedeploy
            | Self::UserDelete(_)
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::HostReturn { .. } => &[],
        }
    }
}

impl Plan {
    /// The part of a tenant, if the plan touches it.
    #[must_use]
    pub fn part(&self, tenant: TenantId) -> Option<&Part> {
        self.parts.get(tenant)
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
    /// Actions that were requested and not reported as finished.
    pub fn actions(&self) -> impl Iterator<Item = Action> {
        let actions = match &self.stage {
            Stage::Running { actions, .. } => Some(actions.values().copied()),
            Stage::Waiting(_) => None,
        };
        actions.into_iter().flatten()
    }

    /// The action on a machine that was requested and not reported as finished.
    #[must_use]
    pub fn action(&self, machine: MachineId) -> Option<Action> {
        let returning = || self.action_on(Target::Returning(machine)).filter(|_| self.plan.cause.has_step());
        self.action_on(Target::Machine(machine)).or_else(returning)
    }

    /// The action on a target that was requested and not reported as finished.
    #[must_use]
    pub fn action_on(&self, target: Target) -> Option<Action> {
        match &self.stage {
            Stage::Running { actions, .. } => actions.get(&target).copied(),
            Stage::Waiting(_) => None,
        }
    }

    /// Progress on its hosts; `None` if it has not started.
    #[must_use]
    pub fn steps(&self) -> Option<&Steps> {
        match &self.stage {
            Stage::Running { steps, .. } => Some(steps),
            Stage::Waiting(_) => None,
        }
    }

    /// Returns true if an action is not repeated before an operator wants it.
    #[must_use]
    pub fn is_suspended(&self, target: Target) -> bool {
        self.steps().is_some_and(|steps| steps.suspended.contains(&target))
    }

    /// Actions that are to be carried out: requested, unfinished and not suspended.
    pub(crate) fn requested(&self) -> impl Iterator<Item = Action> {
        self.actions().filter(|action| !self.is_suspended(action.target))
    }

    /// The machines that have stepped aside for the step on a host.
    pub fn machines_aside(&self, host: HostId) -> impl Iterator<Item = MachineId> {
        let all = (host, MachineId(0))..=(host, MachineId(u32::MAX));
        let steps = self.steps().into_iter();
        steps.flat_map(move |steps| steps.aside.range(all.clone())).map(|(_, machine)| *machine)
    }

    /// The machines that have stepped aside for the steps on all hosts.
    pub(crate) fn all_aside(&self) -> BTreeSet<MachineId> {
        self.steps().into_iter().flat_map(|steps| steps.aside.iter()).map(|(_, machine)| *machine).collect()
    }

    /// Returns true if a machine has stepped aside for the step on that host.
    #[must_use]
    pub fn is_aside(&self, machine: MachineId, host: HostId) -> bool {
        self.steps().is_some_and(|steps| steps.aside.contains(&(host, machine)))
    }

    /// The reason to wait; `None` if it has started.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        match self.stage {
            Stage::Waiting(wait) => Some(wait),
            Stage::Running { .. } => None,
        }
    }
}
