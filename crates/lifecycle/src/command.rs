//! What the rules can be asked, and what they can say no to.

use std::time::Duration;

use forewarn_types::{
    Approver, EventId, HostId, MachineId, MaintenanceId, Name, RolloutId, ScaleSetId, TenantId, Zone,
};
use serde::{Deserialize, Serialize};

use crate::fleet::{Orchestration, Placement, Power, Priority, Profile, UpgradePolicy};
use crate::limits;
use crate::maintenance::{HostWork, PowerChange, Report};
use crate::policy::{Brake, Policy, Settings};
use crate::rollout::{Announced, RolloutTerms};

/// The readers that an announcement can have had so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Exposure {
    /// None: its time may move.
    Unread {
        /// Time to add to the notice, because the commit of a moved time is slow too.
        margin: Duration,
    },
    /// Perhaps some: its time stays, and its start waits.
    PerhapsRead,
}

/// A wish. The rules answer with the changes it makes, or refuse it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Command {
    /// A host joins the cluster.
    AdmitHost {
        /// Its name.
        name: Name,
        /// The zone it stands in.
        #[serde(deserialize_with = "Option::deserialize")]
        zone: Option<Zone>,
    },
    /// A host without machines leaves the cluster.
    RemoveHost(HostId),
    /// A standalone machine: the tenant and its machine in one.
    AdmitStandalone {
        /// The name of both.
        name: Name,
        /// Where it goes.
        placement: Placement,
        /// Regular or spot.
        priority: Priority,
        /// What it is told of its own deletion.
        profile: Profile,
        /// Which events approve themselves.
        policy: Policy,
    },
    /// A tenant that gets its machines one by one.
    AdmitTenant {
        /// Its name.
        name: Name,
        /// What it is.
        set: SetShape,
        /// Which events approve themselves.
        policy: Policy,
    },
    /// Another policy for a tenant that is not part of a scale set.
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
        /// Where it goes.
        placement: Placement,
        /// Regular or spot.
        priority: Priority,
        /// What it is told of its own deletion.
        profile: Profile,
    },
    /// Another profile for a machine that is not an instance of a scale set.
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
        /// How instances are grouped into tenants.
        orchestration: Orchestration,
        /// Regular or spot, for all instances.
        priority: Priority,
        /// How a change of the model reaches instances.
        upgrade: UpgradePolicy,
        /// The first model.
        model: Profile,
        /// Which events approve themselves.
        policy: Policy,
    },
    /// A scale set gets another instance, of its latest model.
    AdmitInstance {
        /// The scale set.
        scale_set: ScaleSetId,
        /// Where the instance goes.
        placement: Placement,
        /// The number in its name; `None`: the next one. Numbers only grow.
        #[serde(deserialize_with = "Option::deserialize")]
        number: Option<u32>,
    },
    /// Another model for a scale set.
    ChangeModel {
        /// The scale set.
        scale_set: ScaleSetId,
        /// The model of later instances, and of those that are upgraded.
        model: Profile,
    },
    /// The part of the model that the rules do not know has changed: an image, a size.
    ReviseModel(ScaleSetId),
    /// How a change of the model reaches the instances of a scale set from now on. Those that have an older one are seen to.
    ChangeUpgradePolicy {
        /// The scale set.
        scale_set: ScaleSetId,
        /// How.
        upgrade: UpgradePolicy,
    },
    /// Another policy for a scale set; it holds at once.
    ChangeScaleSetPolicy {
        /// The scale set.
        scale_set: ScaleSetId,
        /// The policy from now on.
        policy: Policy,
    },
    /// An instance gets the latest model of its scale set.
    UpgradeInstance(MachineId),
    /// Stops managing a machine and leaves the machine itself as it is: no event, no impact.
    Forget(MachineId),
    /// Records that a machine runs on another host because an operator moved it by other means: no event, no impact.
    Move {
        /// The machine.
        machine: MachineId,
        /// The host it runs on now.
        to: HostId,
        /// Treatment of planned work that names the machine.
        planned: PlannedWork,
    },
    /// A scale set without instances leaves the cluster.
    RemoveScaleSet(ScaleSetId),

    /// The owner restarts a machine.
    Restart(MachineId),
    /// The owner moves a machine to another host.
    Redeploy(MachineId),
    /// The owner deletes a machine.
    Delete(MachineId),
    /// A machine gets its operating-system image anew.
    Reimage(MachineId),
    /// The platform wants the place of a spot machine.
    Evict(MachineId),
    /// The owner stops, starts or deallocates a machine.
    ChangePower {
        /// The machine.
        machine: MachineId,
        /// What to do.
        change: PowerChange,
    },

    /// Work on hosts, group by group.
    Rollout {
        /// What is done to each.
        work: HostWork,
        /// The hosts, in the order of preference.
        hosts: Vec<HostId>,
        /// How it is done.
        terms: RolloutTerms,
    },
    /// No further host of a rollout is announced until it is resumed.
    PauseRollout {
        /// The rollout.
        rollout: RolloutId,
        /// What becomes of a group that is announced and has not started.
        announced: Announced,
    },
    /// A rollout goes on: after a pause, after failures, or past a gate.
    ResumeRollout(RolloutId),
    /// Other terms, other hosts, for a rollout that is under way.
    ChangeRollout {
        /// The rollout.
        rollout: RolloutId,
        /// How the rest of it is done.
        terms: RolloutTerms,
        /// Hosts that come after those that wait; those that failed or were skipped may come again.
        add: Vec<HostId>,
        /// Hosts that wait and shall not be worked on.
        remove: Vec<HostId>,
    },
    /// No further host of a rollout; what has started goes on.
    CancelRollout(RolloutId),
    /// A host is expected to fail.
    DegradeHost {
        /// The host.
        host: HostId,
        /// When; `None`: in seven days.
        #[serde(deserialize_with = "Option::deserialize")]
        fails_in: Option<Duration>,
    },
    /// A host has failed.
    FailHost(HostId),
    /// A host is well again.
    RecoverHost(HostId),

    /// Someone of the tenant is ready. Whole or not at all.
    Approve {
        /// The tenant of whoever approves.
        tenant: TenantId,
        /// The events.
        events: Vec<EventId>,
        /// Who approves.
        by: Approver,
    },
    /// The operator takes back what has not started.
    Cancel(MaintenanceId),
    /// The operator does not want to wait.
    ForceStart(MaintenanceId),
    /// An action has ended.
    Complete {
        /// The key of the action.
        maintenance: MaintenanceId,
        /// The key of the action.
        machine: MachineId,
        /// How.
        report: Report,
    },

    /// A machine of the tenant asked for its events for the first time.
    Enrol(TenantId),
    /// The silence deadline of a tenant is due, and it was heard that long ago.
    Heard {
        /// The tenant.
        tenant: TenantId,
        /// How long ago.
        ago: Duration,
    },
    /// The silence deadline of a tenant is due, and nothing was heard of it.
    Silent(TenantId),

    /// Holds or lets go every start.
    Brake(Brake),
    /// Other settings.
    ChangeSettings(Settings),
    /// Time has passed: one thing that is due is done. Repeat while [`next_deadline`] is due and no silence is; silences are
    /// answered with `Heard` or `Silent`.
    ///
    /// [`next_deadline`]: crate::Cluster::next_deadline
    Tick,
    /// Gives announcements that were durable, or could be read, only some time after their decision the minimum notice that
    /// they promise. Names of maintenances that wait no longer are ignored.
    EnsureNotice {
        /// The announcements.
        maintenances: Vec<MaintenanceId>,
        /// The readers that they can have had.
        exposure: Exposure,
    },
}

/// Treatment of planned work that names a machine which was moved by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannedWork {
    /// Such work refuses the move.
    Refuses,
    /// The move is recorded; work that no longer concerns any of its machines is withdrawn.
    GivesWay,
}

/// The shapes of tenants that get their machines one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetShape {
    /// A cloud service.
    CloudService,
    /// An availability set.
    AvailabilitySet,
}

/// Why a command was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says what it is; its fields are what the message names")]
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
    #[error("no such maintenance: it is over, or never was")]
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
    #[error("the machines of this tenant come with their scale set: {0}")]
    PartOfScaleSet(Name),
    #[error("a standalone machine is its own tenant: {0}")]
    Standalone(Name),
    #[error(
        "the number of this instance has been passed: {name}\n  hint: numbers are given once; the next one is {next}"
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
    #[error("planned work on the host is announced or under way: {0}")]
    HostBusy(Name),
    #[error(
        "no other host can take the machine: {0}\n  hint: it needs a healthy host in the same zone, without another update domain of its tenant"
    )]
    NoHost(Name),
    #[error("terminate notification is not available for spot machines: {0}")]
    TerminateOnSpot(Name),
    #[error("not a spot machine: {0}")]
    NotSpot(Name),
    #[error("the machine is not running: {0}")]
    NotRunning(Name),
    #[error("the machine is deallocated: {0}\n  hint: start it first")]
    Deallocated(Name),
    #[error("something is already pending for {machine}: event {event}")]
    Pending { machine: Name, event: EventId },
    #[error("something is already under way for {0}")]
    UnderWay(Name),
    #[error(
        "planned work names the machine: {machine}{}\n  hint: cancel the work or wait until it is over; \
         `forewarn vm move --force` records the move all the same",
        the_event(*event)
    )]
    Planned { machine: Name, event: Option<EventId> },
    #[error(
        "host {host} is in another zone than the machine: {machine}\n  hint: machines never leave their zone"
    )]
    OtherZone { machine: Name, host: Name },
    #[error("{tenant} has {max} operations by users already, which is the limit")]
    TooManyUserOperations { tenant: Name, max: u16 },
    #[error("unknown event id among the start requests")]
    UnknownEvent,
    #[error("no event id given")]
    NoEvents,
    #[error("it has started, and cannot be taken back")]
    AlreadyStarted,
    #[error("the brake is on: nothing starts\n  hint: let it go first")]
    BrakeOn,
    #[error("no hosts given")]
    NoHosts,
    #[error(
        "the rollout does not wait for this host: {0}\n  hint: only hosts that have not been announced can be taken away"
    )]
    NotWaiting(Name),
    #[error("the rollout has worked on this host already: {0}")]
    AlreadyDone(Name),
    #[error("the pause is too long: at most 7 days")]
    PauseTooLong,
    #[error("the expected failure lies too far ahead: at most 7 days")]
    FailureTooFar,
    #[error("too many {what}: at most {max}")]
    TooMany { what: &'static str, max: usize },
}

/// The event by which a tenant knows of planned work, as the end of a message.
fn the_event(event: Option<EventId>) -> String {
    event.map(|event| format!(", event {event}")).unwrap_or_default()
}

impl Refusal {
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
