//! What has been decided. The journal holds these, each with its time, and nothing else.

use forewarn_types::{
    Approval, EventId, HostId, MachineId, MaintenanceId, Name, RolloutId, ScaleSetId, Seed, StartCause,
    Steady, TenantId, Timestamp, Zone, derived_name,
};
use serde::{Deserialize, Serialize};

use crate::fleet::{Health, Machine, Profile, ScaleSet, UpgradePolicy};
use crate::maintenance::{Action, HostWork, Plan, Report, Wait, Withdrawal};
use crate::policy::{Brake, Policy, Settings};
use crate::rollout::{Pause, RolloutEnd, RolloutTerms, Standing};
use crate::tenant::Shape;

/// One step of the state. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are what the step sets")]
pub enum Change {
    /// Event ids are made of another secret from now on: at creation, and after a restore.
    SeedSet(Seed),
    /// A host has joined.
    HostAdmitted { host: HostId, name: Name, zone: Option<Zone> },
    /// A host has left.
    HostRemoved(HostId),
    /// A host is better or worse.
    HealthChanged { host: HostId, health: Health },
    /// A tenant has joined.
    TenantAdmitted {
        tenant: TenantId,
        #[serde(with = "derived_name")]
        name: Name,
        shape: Shape,
        policy: Policy,
    },
    /// A tenant has another policy.
    PolicyChanged { tenant: TenantId, policy: Policy },
    /// A tenant has left.
    TenantRemoved(TenantId),
    /// A scale set has joined.
    ScaleSetAdmitted { scale_set: ScaleSetId, new: ScaleSet },
    /// A scale set has another model.
    ModelChanged { scale_set: ScaleSetId, version: u32, model: Profile },
    /// A change of the model reaches instances in another way.
    UpgradePolicyChanged { scale_set: ScaleSetId, upgrade: UpgradePolicy },
    /// A batch has the latest model, and others wait for the next one, from now on.
    BatchUpgraded(ScaleSetId),
    /// Nobody waits for the next batch any more.
    RollingEnded(ScaleSetId),
    /// A scale set gives other policies to its placement groups to come.
    ScaleSetPolicyChanged { scale_set: ScaleSetId, policy: Policy },
    /// A scale set has left.
    ScaleSetRemoved(ScaleSetId),
    /// A machine has joined.
    MachineAdmitted { machine: MachineId, new: Machine },
    /// A machine has another profile: its own, or that of a newer model.
    ProfileChanged { machine: MachineId, model_version: u32, profile: Profile },
    /// A machine is no longer managed. The machine itself stays as it is.
    MachineForgotten(MachineId),
    /// A machine runs on another host, to which an operator moved it by other means.
    MachineMoved { machine: MachineId, to: HostId },

    /// A rollout has been accepted.
    RolloutPlanned { rollout: RolloutId, work: HostWork, terms: RolloutTerms, hosts: Vec<HostId> },
    /// A rollout announces nothing now.
    RolloutWaits { rollout: RolloutId, standing: Standing },
    /// A rollout announces nothing more until it is resumed.
    RolloutPaused { rollout: RolloutId, why: Pause },
    /// A rollout goes on.
    RolloutResumed(RolloutId),
    /// A rollout has other terms, or other hosts.
    RolloutChanged { rollout: RolloutId, terms: RolloutTerms, added: Vec<HostId>, removed: Vec<HostId> },
    /// A rollout is over; hosts that it had left are free.
    RolloutEnded { rollout: RolloutId, how: RolloutEnd },

    /// A maintenance is planned, and announced to every enrolled tenant it touches.
    Planned(Plan),
    /// A tenant has approved.
    Approved { tenant: TenantId, event: EventId, approval: Approval },
    /// A maintenance waits for something else than before.
    Waits { maintenance: MaintenanceId, wait: Wait },
    /// A maintenance that waits gets another end of its notice. If `not_before` changes, no VM has read the former one.
    NoticeExtended { maintenance: MaintenanceId, not_before: Timestamp, steady_due: Steady },
    /// A maintenance has started.
    Started { maintenance: MaintenanceId, cause: StartCause, actions: Vec<Action> },
    /// Parts of a maintenance that has not started are taken back.
    Withdrawn { maintenance: MaintenanceId, tenants: Vec<TenantId>, why: Withdrawal },
    /// An action has ended.
    Completed { maintenance: MaintenanceId, machine: MachineId, report: Report },

    /// Scheduled Events are enabled for a tenant.
    Enrolled(TenantId),
    /// A tenant was heard of at that time.
    Heard { tenant: TenantId, at: Steady },
    /// Scheduled Events are disabled for a tenant.
    Disabled(TenantId),

    /// The brake has been pulled or let go.
    BrakeSet(Brake),
    /// The cluster has other settings.
    SettingsChanged(Settings),
}

/// What the shell owes after a change is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The document of a tenant, or its enrolment, is not what was published last.
    Publish(TenantId),
    /// The tenant is gone, and its document with it.
    Unpublish(TenantId),
    /// Something is to be done to a machine. It may be asked for again, and must happen once.
    Perform(Action),
}
