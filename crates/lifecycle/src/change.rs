//! Decided changes. The journal holds them, each with its time, and nothing else.

use forewarn_types::{
    Approval, EventId, HostId, MachineId, MaintenanceId, Name, RolloutId, ScaleSetId, Seed, StartCause,
    Steady, TenantId, Timestamp, Zone, derived_name,
};
use serde::{Deserialize, Serialize};

use crate::action::{Action, Report};
use crate::capacity::Size;
use crate::fleet::{Fence, Health, HostAttention, Machine, Profile, ScaleSet, UpgradePolicy};
use crate::host_step::{HostTask, Leaving, Target};
use crate::maintenance::{Plan, Wait, Withdrawal};
use crate::policy::{Brake, Policy, Settings};
use crate::rollout::{Pause, RolloutEnd, RolloutTerms, Standing};
use crate::tenant::Shape;
use crate::tenant_windows::WindowOwner;
use crate::window::Window;

/// One step of the state. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are what the step sets")]
pub enum Change {
    /// Event ids are derived from another secret from now on: at creation, and after a restore.
    SeedSet(Seed),
    /// A host has joined.
    HostAdmitted { host: HostId, name: Name, zone: Option<Zone> },
    /// A host has left.
    HostRemoved(HostId),
    /// The health of a host has changed.
    HealthChanged { host: HostId, health: Health },
    /// A tenant has joined.
    TenantAdmitted {
        tenant: TenantId,
        #[serde(with = "derived_name")]
        name: Name,
        shape: Shape,
        policy: Policy,
    },
    /// The policy of a tenant has changed.
    PolicyChanged { tenant: TenantId, policy: Policy },
    /// A tenant, or a scale set, has other windows.
    WindowsChanged { owner: WindowOwner, windows: Vec<Window> },
    /// A tenant has left.
    TenantRemoved(TenantId),
    /// A scale set has joined.
    ScaleSetAdmitted { scale_set: ScaleSetId, new: ScaleSet },
    /// The model of a scale set has changed.
    ModelChanged { scale_set: ScaleSetId, version: u32, model: Profile },
    /// The upgrade policy of a scale set has changed.
    UpgradePolicyChanged { scale_set: ScaleSetId, upgrade: UpgradePolicy },
    /// A batch has the latest model. Further instances wait for the next batch.
    BatchUpgraded(ScaleSetId),
    /// A rolling upgrade has ended: no instance waits for the next batch.
    RollingEnded(ScaleSetId),
    /// A scale set has another policy for its future placement groups.
    ScaleSetPolicyChanged { scale_set: ScaleSetId, policy: Policy },
    /// A scale set has left.
    ScaleSetRemoved(ScaleSetId),
    /// A machine has joined.
    MachineAdmitted { machine: MachineId, new: Machine },
    /// The profile of a machine has changed: its own, or with a newer model.
    ProfileChanged { machine: MachineId, model_version: u32, profile: Profile },
    /// A machine is no longer managed. The machine itself is left as it is.
    MachineForgotten(MachineId),
    /// A machine runs on another host because an operator moved it by other means.
    MachineMoved { machine: MachineId, to: HostId },

    /// The capacity of a host has changed.
    CapacityChanged { host: HostId, capacity: Size },
    /// The size of a machine has changed.
    MachineResized { machine: MachineId, size: Size },
    /// Future instances of a scale set have another size.
    InstancesResized { scale_set: ScaleSetId, size: Size },

    /// A rollout has been accepted.
    RolloutPlanned { rollout: RolloutId, work: HostTask, terms: RolloutTerms, hosts: Vec<HostId> },
    /// A rollout announces no group for now.
    RolloutWaits { rollout: RolloutId, standing: Standing },
    /// A rollout announces no further group until it is resumed.
    RolloutPaused { rollout: RolloutId, why: Pause },
    /// A paused rollout continues.
    RolloutResumed(RolloutId),
    /// The terms or the hosts of a rollout have changed.
    RolloutChanged { rollout: RolloutId, terms: RolloutTerms, added: Vec<HostId>, removed: Vec<HostId> },
    /// A rollout has ended. Hosts that it has not worked on are released.
    RolloutEnded { rollout: RolloutId, how: RolloutEnd },

    /// A maintenance is planned, and announced to every enrolled tenant it touches.
    Planned(Plan),
    /// A tenant has approved.
    Approved { tenant: TenantId, event: EventId, approval: Approval },
    /// The reason for which a maintenance waits has changed.
    Waits { maintenance: MaintenanceId, wait: Wait },
    /// The notice of a waiting maintenance ends later. If `not_before` changes, no VM has read the former value.
    NoticeExtended { maintenance: MaintenanceId, not_before: Timestamp, steady_due: Steady },
    /// A maintenance has started.
    Started { maintenance: MaintenanceId, cause: StartCause, actions: Vec<Action> },
    /// Parts of a maintenance that has not started are withdrawn.
    Withdrawn { maintenance: MaintenanceId, tenants: Vec<TenantId>, why: Withdrawal },
    /// An action has ended.
    Completed { maintenance: MaintenanceId, target: Target, report: Report },
    /// The work on a host of a started maintenance goes on: its step is requested, or its machines return. Machines
    /// that have stepped aside and have no action here are released.
    HostAdvanced { maintenance: MaintenanceId, host: HostId, actions: Vec<Action> },

    /// The result of an action is unknown; it is not repeated before an operator wants it.
    Suspended { maintenance: MaintenanceId, target: Target },
    /// An unfinished action is requested again.
    Retried { maintenance: MaintenanceId, target: Target },
    /// The fence of a failed host has changed.
    FenceChanged { host: HostId, fence: Fence },
    /// A host needs the attention of an operator, or no longer does.
    AttentionChanged { host: HostId, attention: HostAttention },

    /// A host is in maintenance mode: it takes no machines, and the rollout empties it. The machines of the list have
    /// left before and were about to return.
    ModeEntered { host: HostId, work: HostTask, rollout: Option<RolloutId>, away: Vec<(MachineId, Leaving)> },
    /// A host is no longer in maintenance mode. The machines of the list left because of it and are not brought back.
    ModeExited { host: HostId, staying: Vec<MachineId> },

    /// Scheduled Events are enabled for a tenant.
    Enrolled(TenantId),
    /// A machine of the tenant sent a request at that time.
    Heard { tenant: TenantId, at: Steady },
    /// Scheduled Events are disabled for a tenant.
    Disabled(TenantId),
    /// A machine that a rollout observes has polled.
    Polled(MachineId),

    /// The brake has been set or released.
    BrakeSet(Brake),
    /// The settings of the cluster have changed.
    SettingsChanged(Settings),
}

/// An obligation of the shell, due once the change is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The document of a tenant, its enrolment, or the list of its machines whose polls are awaited differs from the
    /// published one.
    Publish(TenantId),
    /// The tenant has been removed, and its document with it.
    Unpublish(TenantId),
    /// An action is to be carried out on a machine or a host. It may be requested again, and must happen once.
    Perform(Action),
}
