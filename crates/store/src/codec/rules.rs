//! Changes, and the types of the rules that they contain.

use forewarn_lifecycle::{
    Action, Announcement, Approval, Approve, Approver, Brake, Cause, Change, EnrolmentRule, EventId,
    EventKind, EventSource, EvictionPolicy, FailureKind, FaultDomain, Health, Hold, HostId, Impact, Machine,
    MachineId, MaintenanceId, Name, Now, Orchestration, OsImageNotice, Part, Parts, Plan, Policy, Power,
    PowerChange, Priority, Profile, Reason, Report, RolloutId, ScaleSet, ScaleSetId, Seed, Settings, Shape,
    Size, StartCause, Steady, TenantId, TerminateNotice, Timestamp, Unenrolled, UpdateDomain, UpgradePolicy,
    Wait, Withdrawal, Zone,
};

use super::plain::{read_text, write_text};
use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

/// Stores a type that wraps one value.
macro_rules! stored_number {
    ($($type:ident)*) => { $(
        impl Stored for $type {
            fn write(&self, out: &mut Writer) {
                self.0.write(out);
            }

            fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self(Stored::read(input)?))
            }
        }
    )* };
}

pub(super) use stored_number;

stored_number!(HostId TenantId ScaleSetId MachineId MaintenanceId RolloutId UpdateDomain FaultDomain Zone Seed);

impl Stored for EventId {
    fn write(&self, out: &mut Writer) {
        self.to_bytes().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::from_bytes(Stored::read(input)?))
    }
}

impl Stored for Timestamp {
    fn write(&self, out: &mut Writer) {
        self.millis().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::from_millis(Stored::read(input)?))
    }
}

impl Stored for Steady {
    fn write(&self, out: &mut Writer) {
        self.millis().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::from_millis(Stored::read(input)?))
    }
}

impl Stored for Name {
    fn write(&self, out: &mut Writer) {
        write_text(self.as_str(), out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::restored(read_text(input)?).map_err(|_| Malformed::Impossible("a name"))
    }
}

impl Stored for TerminateNotice {
    fn write(&self, out: &mut Writer) {
        self.length().as_secs().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_seconds(input.number()?).ok_or(Malformed::Impossible("notice of a deletion"))
    }
}

stored_struct! {
    Now { wall, steady }
    Policy { user_restart, user_redeploy, all_instances_down }
    Profile { terminate, os_image }
    Machine {
        name, tenant, host, update_domain, fault_domain, priority, power, boots, ephemeral_generation,
        model_version, profile,
    }
    ScaleSet {
        name, orchestration, priority, upgrade, model_version, model, policy, next_instance, groups,
        rolling,
    }
    Plan { id, cause, not_before, steady_due, parts }
    Part { tenant, update_domain, machines, announcement }
    Announcement { id, kind, source, reason, duration_seconds, resources }
    Approval { by, at }
    Action { maintenance, target, impact, boots }
    Size { cpus, memory_mib }
}

stored_enum!(Change {
    0 => SeedSet(seed),
    1 => HostAdmitted { host, name, zone },
    2 => HostRemoved(host),
    3 => HealthChanged { host, health },
    4 => TenantAdmitted { tenant, name, shape, policy },
    5 => PolicyChanged { tenant, policy },
    6 => TenantRemoved(tenant),
    7 => ScaleSetAdmitted { scale_set, new },
    8 => ModelChanged { scale_set, version, model },
    9 => ScaleSetPolicyChanged { scale_set, policy },
    10 => ScaleSetRemoved(scale_set),
    11 => MachineAdmitted { machine, new },
    12 => ProfileChanged { machine, model_version, profile },
    13 => RolloutPlanned { rollout, work, terms, hosts },
    14 => RolloutWaits { rollout, standing },
    15 => RolloutEnded { rollout, how },
    16 => Planned(plan),
    17 => Approved { tenant, event, approval },
    18 => Waits { maintenance, wait },
    19 => Started { maintenance, cause, actions },
    20 => Withdrawn { maintenance, tenants, why },
    21 => Completed { maintenance, target, report },
    22 => Enrolled(tenant),
    23 => Heard { tenant, at },
    24 => Disabled(tenant),
    25 => BrakeSet(brake),
    26 => SettingsChanged(settings),
    27 => RolloutPaused { rollout, why },
    28 => RolloutResumed(rollout),
    29 => RolloutChanged { rollout, terms, added, removed },
    30 => UpgradePolicyChanged { scale_set, upgrade },
    31 => BatchUpgraded(scale_set),
    32 => RollingEnded(scale_set),
    45 => MachineForgotten(machine),
    46 => MachineMoved { machine, to },
    47 => HostAdvanced { maintenance, host, actions },
    48 => AttentionChanged { host, attention },
    55 => FenceChanged { host, fence },
    49 => Suspended { maintenance, target },
    50 => Retried { maintenance, target },
    60 => WindowsChanged { owner, windows },
    70 => CapacityChanged { host, capacity },
    71 => MachineResized { machine, size },
    72 => InstancesResized { scale_set, size },
    56 => ModeEntered { host, work, rollout, away },
    57 => ModeExited { host, staying },
    80 => Polled(machine),
    40 => NoticeExtended { maintenance, not_before, steady_due },
});

stored_enum!(Cause {
    0 => UserRestart,
    1 => UserRedeploy,
    2 => UserDelete(notice),
    3 => Reimage(notice),
    4 => Power(change),
    5 => Eviction(policy),
    6 => HostWork { rollout, work, hosts },
    7 => DegradedHost { host, fails_in },
    8 => FailedHost { host, kind },
    12 => Fencing { host },
    10 => HostReturn { host, way },
});

stored_enum!(Impact {
    0 => Pause { seconds },
    1 => Migrate { to },
    2 => Reboot { to },
    3 => Redeploy { to },
    4 => Reimage,
    5 => Evict(policy),
    6 => Delete,
    7 => Stop,
    8 => Start { to },
    9 => Deallocate,
    10 => StepAside(aside),
    11 => Return(aside),
    12 => OnHost(operation),
});

stored_enum!(Health { 0 => Healthy, 1 => Degraded, 2 => Failed });
stored_enum!(Shape { 0 => StandaloneMachine, 1 => CloudService, 2 => AvailabilitySet, 3 => PlacementGroup(set) });
stored_enum!(Approve { 0 => Automatically, 1 => WhenAsked });
stored_enum!(FailureKind { 0 => Reboot, 1 => Redeploy });
stored_enum!(Brake { 0 => Off, 1 => On });
stored_enum!(Orchestration { 0 => Uniform, 1 => Flexible });
stored_enum!(Priority { 0 => Regular, 1 => Spot(policy) });
stored_enum!(EvictionPolicy { 0 => Deallocate, 1 => Delete });
stored_enum!(UpgradePolicy { 0 => Manual, 1 => Automatic, 2 => Rolling { batch, pause } });
stored_enum!(OsImageNotice { 0 => Off, 1 => On });
stored_enum!(Power { 0 => Running, 1 => Stopped, 2 => Deallocated });
stored_enum!(PowerChange { 0 => Stop, 1 => Start, 2 => Deallocate });
stored_enum!(EventKind { 0 => Freeze, 1 => Reboot, 2 => Redeploy, 3 => Preempt, 4 => Terminate });
stored_enum!(EventSource { 0 => Platform, 1 => User });
stored_enum!(Reason {
    0 => HostMaintenance,
    1 => InfrastructureMaintenance,
    2 => LiveMigration,
    3 => HostFailure,
    4 => UserRestart,
    5 => UserRedeploy,
    6 => Unspoken,
});
stored_enum!(Approver { 0 => Machine(machine), 1 => Owner });
stored_enum!(StartCause { 0 => Approved, 1 => Expired, 2 => Automatic, 3 => Failure, 4 => Forced, 5 => AtOnce });
stored_enum!(Wait { 0 => Notice, 1 => Wall, 2 => Nothing, 3 => Held(hold), 4 => Offered { zone } });
stored_enum!(Hold { 0 => Brake, 1 => UpdateDomain, 2 => NoHost, 3 => Moving, 4 => Window { opens }, 8 => Fencing });
stored_enum!(Report { 0 => Done, 1 => Failed });
stored_enum!(Withdrawal {
    0 => Cancelled,
    1 => Superseded,
    2 => Unconcerned,
    3 => HostFailed,
    4 => HostRecovered,
    5 => Postponed,
    7 => NoReturn,
});

/// One number for two choices, then the others: clusters without the younger choice have the bytes that they always
/// had.
impl Stored for Settings {
    fn write(&self, out: &mut Writer) {
        let Self { unenrolled, user_operations_max, failure, enrolment } = self;
        out.byte(match (enrolment, unenrolled) {
            (EnrolmentRule::OnFirstPoll, Unenrolled::RunAtOnce) => 0,
            (EnrolmentRule::OnFirstPoll, Unenrolled::WaitAnyway) => 1,
            (EnrolmentRule::Always, Unenrolled::RunAtOnce) => 2,
            (EnrolmentRule::Always, Unenrolled::WaitAnyway) => 3,
        });
        user_operations_max.write(out);
        failure.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (enrolment, unenrolled) = match input.byte()? {
            0 => (EnrolmentRule::OnFirstPoll, Unenrolled::RunAtOnce),
            1 => (EnrolmentRule::OnFirstPoll, Unenrolled::WaitAnyway),
            2 => (EnrolmentRule::Always, Unenrolled::RunAtOnce),
            3 => (EnrolmentRule::Always, Unenrolled::WaitAnyway),
            _ => return Err(Malformed::Impossible("settings")),
        };
        let (user_operations_max, failure) = (Stored::read(input)?, Stored::read(input)?);
        Ok(Self { unenrolled, user_operations_max, failure, enrolment })
    }
}

/// A length, then every part. Older versions wrote the parts in another order.
impl Stored for Parts {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|part| part.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let parts = Vec::<Part>::read(input)?;
        let (length, parts) = (parts.len(), parts.into_iter().collect::<Self>());
        if parts.len() == length { Ok(parts) } else { Err(Malformed::Impossible("second part of a tenant")) }
    }
}
