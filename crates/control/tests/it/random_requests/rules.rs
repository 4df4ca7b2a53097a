//! Random commands of the rules.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_lifecycle::*;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::{mapped, one_of};

pub fn commands() -> impl Strategy<Value = Command> {
    Union::new([fleet(), scale_sets(), owners(), hosts_and_rollouts(), events_and_time()].concat())
}

fn fleet() -> Vec<BoxedStrategy<Command>> {
    use Command as C;
    let shapes = one_of(&[SetShape::CloudService, SetShape::AvailabilitySet]);
    let planned = one_of(&[PlannedWork::Refuses, PlannedWork::GivesWay]);
    vec![
        mapped((names(), prop::option::of(any::<u16>()), sizes()), |(name, zone, capacity)| C::AdmitHost {
            name,
            zone: zone.map(Zone),
            capacity,
        }),
        mapped((hosts(), sizes()), |(host, capacity)| C::ChangeCapacity { host, capacity }),
        mapped((machines(), sizes()), |(machine, size)| C::Resize { machine, size }),
        mapped((sets(), sizes()), |(scale_set, size)| C::ResizeInstances { scale_set, size }),
        mapped(hosts(), C::RemoveHost),
        mapped((names(), placements(), priorities(), profiles(), policies()), |all| {
            let (name, placement, priority, profile, policy) = all;
            C::AdmitStandalone { name, placement, priority, profile, policy }
        }),
        mapped((names(), shapes, policies()), |(name, set, policy)| C::AdmitTenant { name, set, policy }),
        mapped((tenants(), policies()), |(tenant, policy)| C::ChangePolicy { tenant, policy }),
        mapped(tenants(), C::RemoveTenant),
        mapped((tenants(), names(), placements(), priorities(), profiles()), |all| {
            let (tenant, name, placement, priority, profile) = all;
            C::AdmitMachine { tenant, name, placement, priority, profile }
        }),
        mapped((machines(), profiles()), |(machine, profile)| C::ChangeProfile { machine, profile }),
        mapped(machines(), C::Forget),
        mapped((machines(), hosts(), planned), |(machine, to, planned)| C::Move { machine, to, planned }),
    ]
}

fn sizes() -> BoxedStrategy<Size> {
    (any::<u16>(), any::<u32>()).prop_map(|(cpus, memory_mib)| Size { cpus, memory_mib }).boxed()
}

fn scale_sets() -> Vec<BoxedStrategy<Command>> {
    use Command as C;
    let orchestrations = one_of(&[Orchestration::Uniform, Orchestration::Flexible]);
    vec![
        mapped((names(), orchestrations, priorities(), upgrades(), profiles(), policies()), |all| {
            let (name, orchestration, priority, upgrade, model, policy) = all;
            C::AdmitScaleSet { name, orchestration, priority, upgrade, model, policy, size: Size::NONE }
        }),
        mapped((sets(), placements(), prop::option::of(any::<u32>())), |(scale_set, placement, number)| {
            C::AdmitInstance { scale_set, placement, number }
        }),
        mapped((sets(), profiles()), |(scale_set, model)| C::ChangeModel { scale_set, model }),
        mapped(sets(), C::ReviseModel),
        mapped((sets(), upgrades()), |(scale_set, upgrade)| C::ChangeUpgradePolicy { scale_set, upgrade }),
        mapped((sets(), policies()), |(scale_set, policy)| C::ChangeScaleSetPolicy { scale_set, policy }),
        mapped((window_owners(), prop::collection::vec(windows(), 0..3)), |(owner, windows)| {
            C::ChangeWindows { owner, windows }
        }),
        mapped(machines(), C::UpgradeInstance),
        mapped(sets(), C::RemoveScaleSet),
    ]
}

fn owners() -> Vec<BoxedStrategy<Command>> {
    use Command as C;
    let changes = one_of(&[PowerChange::Stop, PowerChange::Start, PowerChange::Deallocate]);
    vec![
        mapped(machines(), C::Restart),
        mapped(machines(), C::Redeploy),
        mapped(machines(), C::Delete),
        mapped(machines(), C::Reimage),
        mapped(machines(), C::Evict),
        mapped((machines(), changes), |(machine, change)| C::ChangePower { machine, change }),
    ]
}

fn hosts_and_rollouts() -> Vec<BoxedStrategy<Command>> {
    use Command as C;
    let works = one_of(&[HostWork::Update, HostWork::NetworkUpdate, HostWork::Migration, HostWork::Restart]);
    let announced = one_of(&[Announced::Stays, Announced::TakenBack]);
    let some_hosts = || prop::collection::vec(hosts(), 0..4);
    vec![
        mapped((tasks(works), some_hosts(), terms()), |(work, hosts, terms)| C::Rollout {
            work,
            hosts,
            terms,
        }),
        mapped((rollouts(), announced), |(rollout, announced)| C::PauseRollout { rollout, announced }),
        mapped(rollouts(), C::ResumeRollout),
        mapped((rollouts(), terms(), some_hosts(), some_hosts()), |(rollout, terms, add, remove)| {
            C::ChangeRollout { rollout, terms, add, remove }
        }),
        mapped(rollouts(), C::CancelRollout),
        mapped((hosts(), prop::option::of(durations())), |(host, fails_in)| C::DegradeHost {
            host,
            fails_in,
        }),
        mapped(hosts(), C::FailHost),
        mapped(hosts(), C::FailUnfencedHost),
        mapped(hosts(), C::FailFencedHost),
        mapped(hosts(), C::RecoverHost),
    ]
}

fn events_and_time() -> Vec<BoxedStrategy<Command>> {
    use Command as C;
    let events = prop::collection::vec(any::<[u8; 16]>().prop_map(EventId::from_bytes), 0..4);
    let approvers = prop_oneof![machines().prop_map(Approver::Machine), Just(Approver::Owner)];
    let exposures =
        prop_oneof![durations().prop_map(|margin| Exposure::Unread { margin }), Just(Exposure::PerhapsRead)];
    vec![
        mapped((tenants(), events, approvers), |(tenant, events, by)| C::Approve { tenant, events, by }),
        mapped(works(), C::Cancel),
        mapped(works(), C::ForceStart),
        mapped((works(), targets()), |(maintenance, target)| C::Suspend { maintenance, target }),
        mapped(works(), C::Retry),
        mapped(works(), C::GiveUp),
        mapped(hosts(), C::RetryHost),
        mapped(hosts(), C::ClearHost),
        mapped((hosts(), leavings(), wishes()), |(host, leaving, step)| C::EnterMaintenance {
            host,
            leaving,
            seconds: None,
            step,
        }),
        mapped((hosts(), one_of(&[GuestReturn::Stay, GuestReturn::Return])), |(host, guests)| {
            C::ExitMaintenance { host, guests }
        }),
        mapped((hosts(), reports()), |(host, report)| C::CompleteHost { host, report }),
        mapped((works(), targets(), reports()), |(maintenance, target, report)| C::Complete {
            maintenance,
            target,
            report,
        }),
        mapped(tenants(), C::Enrol),
        mapped((tenants(), durations()), |(tenant, ago)| C::Heard { tenant, ago }),
        mapped(tenants(), C::Silent),
        mapped(machines(), C::Polled),
        mapped(one_of(&[Brake::Off, Brake::On]), C::Brake),
        mapped(settings(), C::ChangeSettings),
        Just(C::Tick).boxed(),
        mapped((prop::collection::vec(works(), 0..4), exposures), |(maintenances, exposure)| {
            C::EnsureNotice { maintenances, exposure }
        }),
    ]
}

fn leavings() -> BoxedStrategy<Leaving> {
    one_of(&[Leaving::Live, Leaving::Redeploy, Leaving::Stop]).boxed()
}

fn wishes() -> BoxedStrategy<StepWish> {
    let text = WorkText::new("kernel 6.12.9");
    let asked = StepWish::Asked { operation: HostOperation::Reboot, text };
    prop::sample::select(vec![StepWish::Unchanged, StepWish::Declined, asked]).boxed()
}

pub fn names() -> BoxedStrategy<Name> {
    "[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}".prop_map(|text| Name::new(&text).unwrap()).boxed()
}

pub fn timestamps() -> impl Strategy<Value = Timestamp> {
    prop_oneof![any::<i64>(), 0..4_000_000_000_000i64].prop_map(Timestamp::from_millis)
}

pub fn reports() -> impl Strategy<Value = Report> {
    one_of(&[Report::Done, Report::Failed])
}

pub fn machines() -> impl Strategy<Value = MachineId> {
    any::<u32>().prop_map(MachineId)
}

pub fn tenants() -> impl Strategy<Value = TenantId> {
    any::<u32>().prop_map(TenantId)
}

pub fn sets() -> impl Strategy<Value = ScaleSetId> {
    any::<u32>().prop_map(ScaleSetId)
}

pub fn works() -> impl Strategy<Value = MaintenanceId> {
    any::<u64>().prop_map(MaintenanceId)
}

fn hosts() -> impl Strategy<Value = HostId> {
    any::<u32>().prop_map(HostId)
}

fn rollouts() -> impl Strategy<Value = RolloutId> {
    any::<u64>().prop_map(RolloutId)
}

fn durations() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0..1_000_000_000u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
}

fn placements() -> BoxedStrategy<Placement> {
    (hosts(), any::<u16>(), any::<u16>())
        .prop_map(|(host, update_domain, fault_domain)| Placement {
            host,
            update_domain: UpdateDomain(update_domain),
            fault_domain: FaultDomain(fault_domain),
            size: Size::NONE,
        })
        .boxed()
}

fn priorities() -> impl Strategy<Value = Priority> {
    one_of(&[
        Priority::Regular,
        Priority::Spot(EvictionPolicy::Deallocate),
        Priority::Spot(EvictionPolicy::Delete),
    ])
}

fn profiles() -> BoxedStrategy<Profile> {
    let notices = (300..=900u64).prop_map(|seconds| TerminateNotice::from_seconds(seconds).unwrap());
    let images = one_of(&[OsImageNotice::Off, OsImageNotice::On]);
    (prop::option::of(notices), images)
        .prop_map(|(terminate, os_image)| Profile { terminate, os_image })
        .boxed()
}

fn policies() -> BoxedStrategy<Policy> {
    let approve = || one_of(&[Approve::Automatically, Approve::WhenAsked]);
    (approve(), approve(), approve())
        .prop_map(|(user_restart, user_redeploy, all_instances_down)| Policy {
            user_restart,
            user_redeploy,
            all_instances_down,
        })
        .boxed()
}

fn upgrades() -> impl Strategy<Value = UpgradePolicy> {
    prop_oneof![
        Just(UpgradePolicy::Manual),
        Just(UpgradePolicy::Automatic),
        (percents(), durations()).prop_map(|(batch, pause)| UpgradePolicy::Rolling { batch, pause }),
    ]
}

fn percents() -> impl Strategy<Value = Percent> {
    (1..=100u8).prop_map(|hundredths| Percent::new(hundredths).unwrap())
}

fn settings() -> impl Strategy<Value = Settings> {
    let unenrolled = one_of(&[Unenrolled::RunAtOnce, Unenrolled::WaitAnyway]);
    let failures = one_of(&[FailureKind::Reboot, FailureKind::Redeploy]);
    let enrolments = one_of(&[EnrolmentRule::OnFirstPoll, EnrolmentRule::Always]);
    (unenrolled, prop::option::of(any::<u16>()), failures, enrolments).prop_map(
        |(unenrolled, user_operations_max, failure, enrolment)| Settings {
            unenrolled,
            user_operations_max,
            failure,
            enrolment,
        },
    )
}

fn terms() -> BoxedStrategy<RolloutTerms> {
    let counts = || prop::option::of((1..=u16::MAX).prop_map(|count| NonZeroU16::new(count).unwrap()));
    let fault_domains = one_of(&[FaultDomains::Any, FaultDomains::OneAtATime]);
    let confirms = one_of(&[Confirm::Never, Confirm::First, Confirm::Each]);
    let gates = one_of(&[HealthGate::Awaited, HealthGate::Machines, HealthGate::Ignored]);
    let limits = (counts(), prop::option::of(percents()), fault_domains, counts());
    let pace = (prop::collection::vec(windows(), 0..3), durations(), confirms, gates);
    (limits, pace)
        .prop_map(|(limits, (windows, pause_between, confirm, health))| {
            let (hosts_at_once, tenant_share, fault_domains, stop_after) = limits;
            RolloutTerms {
                hosts_at_once,
                tenant_share,
                fault_domains,
                windows,
                pause_between,
                confirm,
                health,
                stop_after,
            }
        })
        .boxed()
}

/// Windows with an offset, and windows in a time zone.
pub fn windows() -> impl Strategy<Value = Window> {
    let change = (0..4_000_000_000_000i64, -840..=840i16)
        .prop_map(|(at, offset_minutes)| OffsetChange { at: Timestamp::from_millis(at), offset_minutes });
    let changes = prop::collection::vec(change, 0..5).prop_map(|mut changes| {
        changes.sort_by_key(|change| change.at);
        changes.dedup_by_key(|change| change.at);
        changes
    });
    let zone = prop::option::of(changes);
    (1..=127u8, 0..1440u16, 0..1440u16, -840..=840i16, zone).prop_map(|(days, from, to, offset, zone)| {
        let days = Weekdays::from_bits(days).unwrap();
        match zone {
            None => Window::new(days, from, to, offset).unwrap(),
            Some(changes) => {
                let zone = TimeZone::new("Europe/Berlin", offset, changes).unwrap();
                Window::in_zone(days, from, to, zone).unwrap()
            }
        }
    })
}

fn window_owners() -> impl Strategy<Value = WindowOwner> {
    prop_oneof![tenants().prop_map(WindowOwner::Tenant), sets().prop_map(WindowOwner::ScaleSet)]
}

fn tasks(kinds: impl Strategy<Value = HostWork>) -> impl Strategy<Value = HostTask> {
    (kinds, any::<bool>(), any::<Option<NonZeroU16>>()).prop_map(|(kind, has_step, seconds)| {
        let task = HostTask { seconds, ..HostTask::from(kind) };
        if has_step { task.with_step(WorkText::new("kernel 6.12.9")) } else { task }
    })
}

pub fn targets() -> impl Strategy<Value = Target> {
    (0u64..3, any::<u32>())
        .prop_map(|(kind, number)| Target::from_number(kind << 32 | u64::from(number)).expect("a known kind"))
}
