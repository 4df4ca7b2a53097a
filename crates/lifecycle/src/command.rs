//! Commands to the rules, and the reasons for which the rules refuse them.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{
    Approver, EventId, HostId, MachineId, MaintenanceId, Name, RolloutId, ScaleSetId, TenantId, Zone,
};
use serde::{Deserialize, Serialize};

use crate::action::Report;
use crate::capacity::Size;
use crate::fleet::{Orchestration, Placement, Power, Priority, Profile, UpgradePolicy};
use crate::host_mode::{GuestReturn, StepWish};
use crate::host_step::{HostTask, Leaving, Target};
use crate::limits;
use crate::maintenance::PowerChange;
use crate::policy::{Brake, Policy, Settings};
use crate::rollout::{Announced, RolloutTerms};
use crate::tenant_windows::WindowOwner;
use crate::window::Window;

/// The possible readers of an announcement so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Exposure {
    /// No VM has read it: its time may move.
    Unread {
        /// Time to add to the notice, because the commit of a moved time is slow too.
        margin: Duration,
    },
    /// VMs may have read it: its time stays, and its start waits.
    PerhapsRead,
}

/// A command. The rules decide its changes, or refuse it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Command {
    /// A host joins the cluster.
    AdmitHost {
        /// Its name.
        name: Name,
        /// The zone of the host; `None` if the host has no zone.
        #[serde(deserialize_with = "Option::deserialize")]
        zone: Option<Zone>,
        /// CPUs and memory; none for no limit.
        capacity: Size,
    },
    /// A host without machines leaves the cluster.
    RemoveHost(HostId),
    /// A standalone machine: the tenant and its machine in one.
    AdmitStandalone {
        /// The name of both.
        name: Name,
        /// Host, update domain and fault domain.
        placement: Placement,
        /// Regular or spot.
        priority: Priority,
        /// Notice of its deletion and of new images.
        profile: Profile,
        /// Events that need no approval.
        policy: Policy,
    },
    /// A tenant that gets its machines one by one.
    AdmitTenant {
        /// Its name.
        name: Name,
        /// Cloud service or availability set.
        set: SetShape,
        /// Events that need no approval.
        policy: Policy,
    },
    /// Changes the policy of a tenant that is not part of a scale set.
    ChangePolicy {
        /// The tenant.
        tenant: TenantId,
        /// The policy from now on.
        policy: Policy,
    },
    /// A tenant without machines leaves the cluster.
    RemoveTenant(TenantId),
    /// A machine joins a cloud service or an availability set.
    AdmitMachine {
        /// The tenant.
        tenant: TenantId,
        /// Its name.
        name: Name,
        /// Host, update domain and fault domain.
        placement: Placement,
        /// Regular or spot.
        priority: Priority,
        /// Notice of its deletion and of new images.
        profile: Profile,
    },
    /// Changes the profile of a machine that is not an instance of a scale set.
    ChangeProfile {
        /// The machine.
        machine: MachineId,
        /// The profile from now on.
        profile: Profile,
    },
    /// A scale set without instances.
    AdmitScaleSet {
        /// Its name.
        name: Name,
        /// The grouping of instances into tenants.
        orchestration: Orchestration,
        /// Regular or spot, for all instances.
        priority: Priority,
        /// Rollout of model changes to instances.
        upgrade: UpgradePolicy,
        /// The first model.
        model: Profile,
        /// Events that need no approval.
        policy: Policy,
        /// The size of its instances.
        size: Size,
    },
    /// A scale set gets another instance, of its latest model.
    AdmitInstance {
        /// The scale set.
        scale_set: ScaleSetId,
        /// Host, update domain and fault domain of the instance.
        placement: Placement,
        /// The number in its name; `None` for the next one. Numbers only grow.
        #[serde(deserialize_with = "Option::deserialize")]
        number: Option<u32>,
    },
    /// Changes the model of a scale set.
    ChangeModel {
        /// The scale set.
        scale_set: ScaleSetId,
        /// The model of future instances, and of upgraded ones.
        model: Profile,
    },
    /// The part of the model that is outside the rules has changed: an image, a size.
    ReviseModel(ScaleSetId),
    /// Changes the rollout of model changes to instances. Instances with an older model get the latest one in the new
    /// way.
    ChangeUpgradePolicy {
        /// The scale set.
        scale_set: ScaleSetId,
        /// The policy from now on.
        upgrade: UpgradePolicy,
    },
    /// Changes the policy of a scale set, effective at once.
    ChangeScaleSetPolicy {
        /// The scale set.
        scale_set: ScaleSetId,
        /// The policy from now on.
        policy: Policy,
    },
    /// Changes the windows of a tenant, or of a scale set, effective at once.
    ChangeWindows {
        /// The tenant or the scale set.
        owner: WindowOwner,
        /// The windows from now on; empty for any time.
        windows: Vec<Window>,
    },
    /// Gives an instance the latest model of its scale set.
    UpgradeInstance(MachineId),
    /// Stops managing a machine and leaves the machine itself as it is: no event, no impact.
    Forget(MachineId),
    /// Records that a machine runs on another host because an operator moved it by other means: no event, no impact.
    Move {
        /// The machine.
        machine: MachineId,
        /// The host it runs on now.
        to: HostId,
        /// Treatment of planned work that names a machine which an operator moved by other means.
        planned: PlannedWork,
    },
    /// Changes the capacity of a host.
    ChangeCapacity {
        /// The host.
        host: HostId,
        /// CPUs and memory; none for no limit.
        capacity: Size,
    },
    /// Changes the size of a machine that is not an instance of a scale set.
    Resize {
        /// The machine.
        machine: MachineId,
        /// CPUs and memory.
        size: Size,
    },
    /// Changes the size of all instances of a scale set, present and future ones.
    ResizeInstances {
        /// The scale set.
        scale_set: ScaleSetId,
        /// CPUs and memory of each.
        size: Size,
    },
    /// A scale set without instances leaves the cluster.
    RemoveScaleSet(ScaleSetId),

    /// The owner restarts a machine.
    Restart(MachineId),
    /// The owner moves a machine to another host.
    Redeploy(MachineId),
    /// The owner deletes a machine.
    Delete(MachineId),
    /// Reinstalls the operating-system image of a machine.
    Reimage(MachineId),
    /// The platform evicts a spot machine.
    Evict(MachineId),
    /// The owner stops, starts or deallocates a machine.
    ChangePower {
        /// The machine.
        machine: MachineId,
        /// Stop, start or deallocate.
        change: PowerChange,
    },

    /// Starts work on hosts, group by group.
    Rollout {
        /// The work on each host.
        work: HostTask,
        /// The hosts, in the order of preference.
        hosts: Vec<HostId>,
        /// Budgets, windows and gates.
        terms: RolloutTerms,
    },
    /// Pauses a rollout: no further host is announced until it is resumed.
    PauseRollout {
        /// The rollout.
        rollout: RolloutId,
        /// Treatment of a group that is announced and has not started.
        announced: Announced,
    },
    /// Resumes a rollout: after a pause, after failures, or past a gate.
    ResumeRollout(RolloutId),
    /// Changes the terms or the hosts of a rollout.
    ChangeRollout {
        /// The rollout.
        rollout: RolloutId,
        /// The terms for the rest of the rollout.
        terms: RolloutTerms,
        /// Hosts to append to the waiting ones. Hosts that failed or were skipped may be added again.
        add: Vec<HostId>,
        /// Waiting hosts to remove.
        remove: Vec<HostId>,
    },
    /// Cancels a rollout. Started work continues.
    CancelRollout(RolloutId),
    /// A host is expected to fail.
    DegradeHost {
        /// The host.
        host: HostId,
        /// Time until the expected failure; `None` for seven days.
        #[serde(deserialize_with = "Option::deserialize")]
        fails_in: Option<Duration>,
    },
    /// A host has failed, in a cluster that needs no fence: its machines start elsewhere at once.
    FailHost(HostId),
    /// A host has failed, and its machines may still run there: they start elsewhere once the host is fenced.
    FailUnfencedHost(HostId),
    /// A host has failed, and an operator knows that its machines can no longer write: they start elsewhere at once.
    /// Confirms the fence of a host that has failed already.
    FailFencedHost(HostId),
    /// A host is healthy again.
    RecoverHost(HostId),

    /// Approves events of a tenant: all of them or none.
    Approve {
        /// The tenant that approves.
        tenant: TenantId,
        /// The events.
        events: Vec<EventId>,
        /// The machine or the owner that approves.
        by: Approver,
    },
    /// An operator cancels a maintenance that has not started.
    Cancel(MaintenanceId),
    /// An operator starts a maintenance without waiting for its notice.
    ForceStart(MaintenanceId),
    /// An action has ended.
    Complete {
        /// The key of the action.
        maintenance: MaintenanceId,
        /// The key of the action.
        target: Target,
        /// The result of the action.
        report: Report,
    },

    /// The result of an action is unknown, and it must not be repeated before an operator wants it.
    Suspend {
        /// The key of the action.
        maintenance: MaintenanceId,
        /// The key of the action.
        target: Target,
    },
    /// Requests all unfinished actions of a maintenance again.
    Retry(MaintenanceId),
    /// Counts all unfinished actions of a maintenance as failed.
    GiveUp(MaintenanceId),
    /// Requests the step on a host again.
    RetryHost(HostId),
    /// Ends the step on a host by the word of an operator.
    CompleteHost {
        /// The host.
        host: HostId,
        /// The result of the step.
        report: Report,
    },
    /// An operator has examined a host that needed attention.
    ClearHost(HostId),

    /// Closes a host to machines, and has its machines leave. If the host is in maintenance mode already, the machines
    /// that are still there leave in this way.
    EnterMaintenance {
        /// The host.
        host: HostId,
        /// The way in which its machines leave.
        leaving: Leaving,
        /// Announced length of the interruption in seconds; `None` for the usual one.
        #[serde(deserialize_with = "Option::deserialize")]
        seconds: Option<NonZeroU16>,
        /// The step on the empty host.
        step: StepWish,
    },
    /// Opens a host in maintenance mode to machines again.
    ExitMaintenance {
        /// The host.
        host: HostId,
        /// Treatment of the machines that left.
        guests: GuestReturn,
    },

    /// A machine of the tenant requested its events for the first time.
    Enrol(TenantId),
    /// The silence deadline of a tenant is due, and its last request was that long ago.
    Heard {
        /// The tenant.
        tenant: TenantId,
        /// Time since the last request.
        ago: Duration,
    },
    /// The silence deadline of a tenant is due, and no machine of it has sent a request.
    Silent(TenantId),

    /// Holds or releases every start.
    Brake(Brake),
    /// Changes the settings of the cluster.
    ChangeSettings(Settings),
    /// Handles one due item after time has passed. Repeat while [`next_deadline`] is due and no silence is; answer
    /// silences with `Heard` or `Silent`.
    ///
    /// [`next_deadline`]: crate::Cluster::next_deadline
    Tick,
    /// Gives announcements their promised minimum notice if they became durable or readable some time after their
    /// decision. Maintenances that no longer wait are ignored.
    EnsureNotice {
        /// The announcements.
        maintenances: Vec<MaintenanceId>,
        /// Their possible readers.
        exposure: Exposure,
    },
}

/// Treatment of planned work that names a machine which an operator moved by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannedWork {
    /// The move is refused.
    Refuses,
    /// The move is recorded; work that no longer concerns any of its machines is withdrawn.
    GivesWay,
}

/// The kinds of tenants that get their machines one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetShape {
    /// A cloud service.
    CloudService,
    /// An availability set.
    AvailabilitySet,
}

/// The reason why a command was refused. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains each variant and names its fields")]
pub enum Refusal {
    #[error("no such host")]
    NoSuchHost,
    #[error("no such tenant")]
    NoSuchTenant,
    #[error("no such machine")]
    NoSuchMachine,
    #[error("no such scale set")]
    NoSuchScaleSet,
    #[error("no such rollout")]
    NoSuchRollout,
    #[error("no such maintenance: it has ended or never existed")]
    NoSuchMaintenance,
    #[error("the name is taken: {0}")]
    NameTaken(Name),
    #[error(
        "the host still has machines: {host}: {machines}\n  hint: `forewarn vm move` records that they run on another host, \
         `forewarn vm forget` stops managing them, `forewarn vm delete` destroys them"
    )]
    HostInUse { host: Name, machines: String },
    #[error("the tenant still has machines or events: {0}")]
    TenantInUse(Name),
    #[error("the scale set still has instances or events: {0}")]
    ScaleSetInUse(Name),
    #[error("managed by its scale set: {0}")]
    PartOfScaleSet(Name),
    #[error("a standalone machine is its own tenant: {0}")]
    Standalone(Name),
    #[error(
        "the instance number has been used: {name}\n  hint: instance numbers are never reused; the next one is {next}"
    )]
    InstanceNumberPassed { name: Name, next: u32 },
    #[error("not an instance of a scale set: {0}")]
    NotAnInstance(Name),
    #[error(
        "on host {host}, {tenant} already has update domain {present}, so {update_domain} cannot go there"
    )]
    UpdateDomainClash { host: Name, tenant: Name, present: u16, update_domain: u16 },
    #[error("update and fault domains are numbered 0 to 999")]
    DomainOutOfRange,
    #[error("the host is not healthy: {0}")]
    HostNotHealthy(Name),
    #[error("the host has failed: {0}\n  hint: recover it first")]
    HostFailed(Name),
    #[error(
        "the host needs attention: {0}\n  hint: `forewarn host show` has the reason; examine the host, then run `forewarn host clear`"
    )]
    HostNeedsAttention(Name),
    #[error(
        "the failed host is not fenced, and its machines may still run: {0}\n  hint: `forewarn host fail --fenced` confirms that they \
         can no longer write to their disks"
    )]
    NotFenced(Name),
    #[error(
        "the host is being fenced: {0}\n  hint: wait for the end of the order, or end it with `forewarn host give-up`"
    )]
    BeingFenced(Name),
    #[error(
        "the host is in maintenance mode: {0}\n  hint: `forewarn host maintenance exit` ends it, `forewarn host show` has its progress"
    )]
    HostInMaintenance(Name),
    #[error(
        "the host is not in maintenance mode: {0}\n  hint: `forewarn host maintenance enter` has its machines leave"
    )]
    HostNotInMaintenance(Name),
    #[error(
        "machines are leaving the host, or work on the host itself is in progress: {0}\n  hint: wait until it has ended; \
         `forewarn host show` has its progress, `forewarn event give-up` or `forewarn host give-up` ends it"
    )]
    MaintenanceUnderWay(Name),
    #[error("the host cannot take the machines back now: {0}\n  hint: `forewarn host show` has its state")]
    NoReturn(Name),
    #[error("no work on the host itself is in progress: {0}")]
    NoStep(Name),
    #[error("no action of it is in progress")]
    NothingUnfinished,
    #[error("planned work on the host is announced or in progress: {0}")]
    HostBusy(Name),
    #[error(
        "no other host can take the machine: {0}\n  hint: it needs a healthy host in the same zone, without another update domain of its tenant"
    )]
    NoHost(Name),
    #[error(
        "no other host can take {machine}: it needs {size}; {hosts}\n  hint: free room on a host of its zone, or add a host"
    )]
    NoRoom { machine: Name, size: Size, hosts: String },
    #[error(
        "the host has no room: the machine needs {size}; {free}\n  hint: choose another host, or free room on this one: {host}"
    )]
    HostFull { host: Name, size: Size, free: String },
    #[error("terminate notification is not available for spot machines: {0}")]
    TerminateOnSpot(Name),
    #[error("not a spot machine: {0}")]
    NotSpot(Name),
    #[error("the machine is not running: {0}")]
    NotRunning(Name),
    #[error("the machine is deallocated: {0}\n  hint: start it first")]
    Deallocated(Name),
    #[error("an operation is already pending for {machine}: event {event}")]
    Pending { machine: Name, event: EventId },
    #[error("an operation is already in progress for {0}")]
    UnderWay(Name),
    #[error(
        "the machine is part of planned work: {machine}{}\n  hint: cancel the work or wait until it ends; \
         `forewarn vm move --force` records the move anyway",
        the_event(*event)
    )]
    Planned { machine: Name, event: Option<EventId> },
    #[error(
        "host {host} is not in the zone of the machine: {machine}\n  hint: machines never leave their zone"
    )]
    OtherZone { machine: Name, host: Name },
    #[error("too many user operations are pending for {tenant}: the limit is {max}")]
    TooManyUserOperations { tenant: Name, max: u16 },
    #[error("unknown event id among the start requests")]
    UnknownEvent,
    #[error("no event id given")]
    NoEvents,
    #[error("the maintenance has started and cannot be cancelled")]
    AlreadyStarted,
    #[error("the brake is on, so nothing can start\n  hint: release the brake first")]
    BrakeOn,
    #[error("no hosts given")]
    NoHosts,
    #[error(
        "the host is not waiting in the rollout: {0}\n  hint: only hosts that have not been announced can be removed"
    )]
    NotWaiting(Name),
    #[error("the rollout has already processed the host: {0}")]
    AlreadyDone(Name),
    #[error(
        "the windows of the rollout and of the tenants on host {host} never overlap: {}\n  hint: leave the host out, or \
         change the windows of the rollout or of these tenants (`forewarn tenant set`)",
        listed(tenants)
    )]
    WindowsNeverMeet { host: Name, tenants: Vec<Name> },
    #[error("the pause is too long: at most 7 days")]
    PauseTooLong,
    #[error("the expected failure is too far ahead: at most 7 days")]
    FailureTooFar,
    #[error("too many {what}: at most {max}")]
    TooMany { what: &'static str, max: usize },
}

/// Names of tenants in a sentence: at most eight, and the number of the others.
fn listed(tenants: &[Name]) -> String {
    const NAMED_MAX: usize = 8;
    let named: Vec<_> = tenants.iter().take(NAMED_MAX).map(Name::as_str).collect();
    match tenants.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The event of planned work, as the end of a message.
fn the_event(event: Option<EventId>) -> String {
    event.map(|event| format!(", event {event}")).unwrap_or_default()
}

impl Refusal {
    /// The hosts that lack room for a machine, as a part of a sentence.
    pub(crate) fn lack_of_room(&self) -> Option<String> {
        let Self::NoRoom { machine, size, hosts } = self else { return None };
        Some(format!("{machine} needs {size}; {hosts}"))
    }

    pub(crate) fn check(count: usize, max: usize, what: &'static str) -> Result<(), Self> {
        if count > max { Err(Self::TooMany { what, max }) } else { Ok(()) }
    }

    pub(crate) fn check_domains(placement: Placement) -> Result<(), Self> {
        let fits = placement.update_domain.0 < limits::UPDATE_DOMAINS_MAX
            && placement.fault_domain.0 < limits::FAULT_DOMAINS_MAX;
        if fits { Ok(()) } else { Err(Self::DomainOutOfRange) }
    }

    pub(crate) fn check_allocated(name: &Name, power: Power) -> Result<(), Self> {
        match power {
            Power::Deallocated => Err(Self::Deallocated(name.clone())),
            Power::Running | Power::Stopped => Ok(()),
        }
    }
}
