//! Commands to the rules.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{
    Approver, EventId, HostId, MachineId, MaintenanceId, Name, RolloutId, ScaleSetId, TenantId, Zone,
};
use serde::{Deserialize, Serialize};

use crate::action::Report;
use crate::capacity::Size;
use crate::fleet::{Orchestration, Placement, Priority, Profile, UpgradePolicy};
use crate::host_mode::{GuestReturn, StepWish};
use crate::host_step::{HostTask, Leaving, Target};
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
    /// A machine has polled. Changes nothing unless a rollout waits for that.
    Polled(MachineId),

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
