//! Random commands by name, changes of scale sets, and orders to the clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_control::*;
use forewarn_lifecycle::{Size, Timestamp};
use forewarn_types::{Moment, Span};
use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::json;

use super::rules::windows;
use super::{mapped, one_of, texts};

pub fn commands() -> impl Strategy<Value = NamedCommand> {
    Union::new([one_text(), fleet(), scale_sets(), hosts(), others()].concat())
}

/// Commands whose only member is the name of something.
fn one_text() -> Vec<BoxedStrategy<NamedCommand>> {
    let words = [
        (
            "host",
            &[
                "remove_host",
                "forget_host",
                "fail_host",
                "recover_host",
                "retry_host",
                "give_up_host",
                "clear_host",
                "enter_maintenance",
                "exit_maintenance",
            ][..],
        ),
        ("tenant", &["remove_tenant"]),
        ("scale_set", &["remove_scale_set", "revise_model"]),
        ("event", &["cancel", "force_start", "retry", "give_up"]),
        (
            "machine",
            &[
                "upgrade_instance",
                "forget",
                "restart",
                "redeploy",
                "delete",
                "reimage",
                "evict",
                "stop",
                "start",
                "deallocate",
                "jam",
            ],
        ),
    ];
    let all = words.into_iter().flat_map(|(member, words)| words.iter().map(move |word| (member, *word)));
    let command = |(member, word): (&'static str, &'static str)| {
        mapped(texts(), move |text| serde_json::from_value(json!({ "command": word, member: text })).unwrap())
    };
    all.map(command).collect()
}

fn fleet() -> Vec<BoxedStrategy<NamedCommand>> {
    use NamedCommand as C;
    let host = (texts(), prop::option::of(any::<u16>()), sizes());
    let set = || {
        (texts(), policies(), prop::collection::vec(machines(), 0..2))
            .prop_map(|(name, policy, machines)| SetEntry { name, policy, windows: Vec::new(), machines })
    };
    let site = (prop::option::of(texts()), prop::option::of(texts()), prop::option::of(texts()));
    vec![
        mapped(host, |(name, zone, (cpus, memory))| C::AdmitHost(HostEntry { name, zone, cpus, memory })),
        mapped((texts(), sizes()), |(host, (cpus, memory))| C::ChangeCapacity { host, cpus, memory }),
        mapped((texts(), sizes()), |(machine, (cpus, memory))| C::Resize { machine, cpus, memory }),
        mapped((texts(), sizes()), |(scale_set, (cpus, memory))| C::ResizeInstances {
            scale_set,
            cpus,
            memory,
        }),
        mapped((machines(), policies()), |(machine, policy)| C::AdmitVm(vm(machine, policy))),
        mapped(set(), C::AdmitAvailabilitySet),
        mapped(set(), C::AdmitCloudService),
        mapped((texts(), machines()), |(tenant, machine)| C::AdmitMachine { tenant, machine }),
        mapped((texts(), policies()), |(tenant, policy)| C::ChangePolicy { tenant, policy }),
        mapped((texts(), window_selections()), |(tenant, windows)| C::ChangeWindows { tenant, windows }),
        mapped((texts(), prop::option::of(spans()), any::<bool>()), |(machine, terminate, os_image)| {
            C::ChangeProfile { machine, terminate, os_image }
        }),
        mapped((texts(), texts(), any::<bool>()), |(machine, host, force)| C::Move { machine, host, force }),
        mapped((texts(), prop::option::of(addresses()), prop::option::of(tags())), |all| {
            let (machine, addresses, tags) = all;
            C::Describe { machine, addresses, tags }
        }),
        mapped(site, |(location, subscription, resource_group)| {
            C::ChangeSite(SiteChange { location, subscription, resource_group })
        }),
    ]
}

fn scale_sets() -> Vec<BoxedStrategy<NamedCommand>> {
    use NamedCommand as C;
    let orchestrations = one_of(&[OrchestrationWord::Uniform, OrchestrationWord::Flexible]);
    let notices = (prop::option::of(spans()), any::<bool>());
    let instances = prop::collection::vec(instances(), 0..2);
    let set = (texts(), orchestrations, upgrades(), spots(), notices, policies(), instances);
    vec![
        mapped(set, |(name, orchestration, upgrade, spot, (terminate, os_image), policy, instances)| {
            C::AdmitScaleSet(ScaleSetEntry {
                windows: Vec::new(),
                name,
                orchestration,
                upgrade,
                cpus: None,
                memory: None,
                spot,
                terminate,
                os_image,
                policy,
                count: None,
                placement: None,
                instances,
            })
        }),
        mapped((texts(), self::instances()), |(scale_set, instance)| C::AdmitInstance {
            scale_set,
            instance,
        }),
        mapped((texts(), prop::option::of(spans()), any::<bool>()), |(scale_set, terminate, os_image)| {
            C::ChangeModel { scale_set, terminate, os_image }
        }),
        mapped((texts(), upgrades()), |(scale_set, upgrade)| C::ChangeUpgradePolicy { scale_set, upgrade }),
    ]
}

fn host_work() -> impl Strategy<Value = HostWorkEntry> {
    let details = (some_texts(), prop::option::of(texts()), any::<bool>(), prop::option::of(spans()));
    details.prop_map(|(hosts, work, no_work, duration)| HostWorkEntry { hosts, work, no_work, duration })
}

fn hosts() -> Vec<BoxedStrategy<NamedCommand>> {
    use NamedCommand as C;
    let works = one_of(&[WorkWord::Update, WorkWord::Network, WorkWord::Migrate, WorkWord::Reboot]);
    let selection = prop_oneof![
        some_texts().prop_map(HostSelection::Names),
        Just(HostSelection::Every(AllWord::All)),
        any::<u16>().prop_map(|zone| HostSelection::Zone(ZoneSelection { zone })),
    ];
    let any_texts = || prop::collection::vec(texts(), 0..3);
    vec![
        mapped(host_work(), C::UpdateHosts),
        mapped(host_work(), C::UpdateNetwork),
        mapped(host_work(), C::MigrateHosts),
        mapped(host_work(), C::RebootHosts),
        mapped((texts(), prop::option::of(texts())), |(host, failed)| C::CompleteHost { host, failed }),
        mapped(
            (works, selection, any_texts(), terms(), host_work()),
            |(kind, hosts, except, terms, details)| {
                let HostWorkEntry { work, no_work, duration, .. } = details;
                C::StartRollout(RolloutEntry { kind, hosts, except, terms, work, no_work, duration })
            },
        ),
        mapped(any::<(u64, bool)>(), |(rollout, take_back)| C::PauseRollout { rollout, take_back }),
        mapped(any::<u64>(), |rollout| C::ResumeRollout { rollout }),
        mapped((any::<u64>(), terms(), any_texts(), any_texts()), |(rollout, terms, add, remove)| {
            C::ChangeRollout { rollout, terms, add, remove }
        }),
        mapped(any::<u64>(), |rollout| C::CancelRollout { rollout }),
        mapped((texts(), prop::option::of(spans())), |(host, fails_in)| C::DegradeHost { host, fails_in }),
    ]
}

fn others() -> Vec<BoxedStrategy<NamedCommand>> {
    use NamedCommand as C;
    let events =
        prop_oneof![some_texts().prop_map(EventSelection::Ids), Just(EventSelection::Every(AllWord::All))];
    let unenrolled = prop::option::of(one_of(&[UnenrolledWord::Runs, UnenrolledWord::Waits]));
    let failures = prop::option::of(one_of(&[FailureWord::Reboot, FailureWord::Redeploy]));
    let enrolments = prop::option::of(one_of(&[EnrolmentWord::OnFirstPoll, EnrolmentWord::Always]));
    let settings = (unenrolled, prop::option::of(any::<u16>()), failures, enrolments);
    vec![
        mapped((texts(), events), |(tenant, events)| C::Approve { tenant, events }),
        Just(C::BrakeOn {}).boxed(),
        Just(C::BrakeOff {}).boxed(),
        mapped(settings, |(unenrolled, user_operations_max, failure, enrolment)| {
            C::ChangeSettings(SettingsChange { unenrolled, user_operations_max, failure, enrolment })
        }),
    ]
}

pub fn wishes() -> BoxedStrategy<ScaleSetCommand> {
    let orchestrations = one_of(&[OrchestrationWord::Uniform, OrchestrationWord::Flexible]);
    let notices = (prop::option::of(spans()), any::<bool>());
    let new = (texts(), orchestrations, upgrades(), spots(), notices, policies(), scales());
    let create =
        new.prop_map(|(name, orchestration, upgrade, spot, (terminate, os_image), policy, scale)| {
            let Scale { capacity: instances, hosts, zones, fault_domains } = scale;
            ScaleSetCommand::CreateScaleSet(NewScaleSet {
                name,
                orchestration,
                upgrade,
                cpus: None,
                memory: None,
                spot,
                terminate,
                os_image,
                policy,
                instances,
                hosts,
                zones,
                fault_domains,
            })
        });
    let approve = || prop::option::of(approvals());
    let policy = (approve(), approve(), approve()).prop_map(|(restart, redeploy, all_down)| PolicyChange {
        restart,
        redeploy,
        all_down,
    });
    let change = (
        prop::option::of(prop::option::of(spans())),
        prop::option::of(any::<bool>()),
        prop::option::of(upgrades()),
        prop::option::of(policy),
    );
    let change = change.prop_map(|(terminate, os_image, upgrade, policy)| ScaleSetChange {
        terminate,
        os_image,
        upgrade,
        policy,
    });
    let selection = prop_oneof![
        some_texts().prop_map(InstanceSelection::Named),
        Just(InstanceSelection::Every(AllWord::All))
    ];
    prop_oneof![
        create,
        (texts(), scales()).prop_map(|(scale_set, to)| ScaleSetCommand::Scale { scale_set, to }),
        (texts(), change)
            .prop_map(|(scale_set, change)| ScaleSetCommand::ChangeScaleSet { scale_set, change }),
        (texts(), selection).prop_map(|(scale_set, instances)| {
            let upgrade = Upgrade { instances };
            ScaleSetCommand::UpgradeInstances { scale_set, upgrade }
        }),
        (texts(), some_texts()).prop_map(|(scale_set, instances)| {
            let which = DeleteInstances { instances };
            ScaleSetCommand::DeleteInstances { scale_set, which }
        }),
    ]
    .boxed()
}

pub fn clock_orders() -> impl Strategy<Value = ClockChange> {
    prop_oneof![
        Just(ClockChange::Freeze {}),
        any::<u32>().prop_map(|speed| ClockChange::Scale { speed }),
        spans().prop_map(|by| ClockChange::Advance { by }),
        prop::option::of(spans()).prop_map(|within| ClockChange::Next { within }),
        (0..253_000_000_000_i64)
            .prop_map(|seconds| ClockChange::Until { at: Moment(Timestamp::from_millis(seconds * 1_000)) }),
    ]
}

fn some_texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(texts(), 1..3)
}

/// Whole seconds, as commands have them.
fn spans() -> impl Strategy<Value = Span> {
    (0..3_000_000_000u64).prop_map(|seconds| Span(Duration::from_secs(seconds)))
}

fn addresses() -> impl Strategy<Value = Vec<IpAddr>> {
    prop::collection::vec(any::<IpAddr>(), 0..3)
}

fn tags() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map(texts(), texts(), 0..3)
}

fn approvals() -> impl Strategy<Value = ApproveWord> {
    one_of(&[ApproveWord::Automatic, ApproveWord::Asked])
}

fn policies() -> BoxedStrategy<PolicyEntry> {
    (approvals(), approvals(), approvals())
        .prop_map(|(restart, redeploy, all_down)| PolicyEntry { restart, redeploy, all_down })
        .boxed()
}

fn spots() -> impl Strategy<Value = Option<Eviction>> {
    one_of(&[None, Some(Eviction::Delete), Some(Eviction::Deallocate)])
}

fn upgrades() -> BoxedStrategy<UpgradeWord> {
    let rolling = (any::<u8>(), spans())
        .prop_map(|(batch_percent, pause)| UpgradeWord::Rolling(RollingEntry { batch_percent, pause }));
    prop_oneof![Just(UpgradeWord::Manual), Just(UpgradeWord::Automatic), rolling].boxed()
}

fn scales() -> BoxedStrategy<Scale> {
    let hosts = prop::option::of(some_texts());
    let zones = prop::collection::vec(any::<u16>(), 0..3);
    (any::<u16>(), hosts, zones, prop::option::of(any::<u16>()))
        .prop_map(|(capacity, hosts, zones, fault_domains)| Scale { capacity, hosts, zones, fault_domains })
        .boxed()
}

fn machines() -> BoxedStrategy<MachineEntry> {
    let place = (texts(), texts(), any::<u16>(), any::<u16>(), sizes());
    let notices = (prop::option::of(spans()), any::<bool>());
    (place, spots(), notices, addresses(), tags())
        .prop_map(|(place, spot, notices, addresses, tags)| {
            let (name, host, update_domain, fault_domain, (cpus, memory)) = place;
            let (terminate, os_image) = notices;
            MachineEntry {
                name,
                host,
                update_domain,
                fault_domain,
                cpus,
                memory,
                spot,
                terminate,
                os_image,
                addresses,
                tags,
            }
        })
        .boxed()
}

fn vm(machine: MachineEntry, policy: PolicyEntry) -> VmEntry {
    VmEntry::of(machine, policy)
}

fn sizes() -> BoxedStrategy<(Option<NonZeroU16>, Option<Memory>)> {
    (any::<u16>(), 0..1_000_000u32)
        .prop_map(|(cpus, memory_mib)| cpus_and_memory(Size { cpus, memory_mib }))
        .boxed()
}

fn instances() -> BoxedStrategy<InstanceEntry> {
    (prop::option::of(any::<u32>()), machines())
        .prop_map(|(id, machine)| {
            let MachineEntry { host, update_domain, fault_domain, addresses, tags, .. } = machine;
            InstanceEntry { id, host, update_domain, fault_domain, addresses, tags }
        })
        .boxed()
}

fn window_selections() -> impl Strategy<Value = WindowSelection> {
    prop_oneof![
        prop::collection::vec(windows().prop_map(|window| WindowEntry::from(&window)), 1..3)
            .prop_map(WindowSelection::Windows),
        Just(WindowSelection::Any(AnyWord::Any)),
    ]
}

fn terms() -> BoxedStrategy<TermsEntry> {
    let limits =
        (prop::option::of(any::<u16>()), prop::option::of(any::<u8>()), prop::option::of(any::<bool>()));
    let pace = (
        prop::option::of(window_selections()),
        prop::option::of(spans()),
        prop::option::of(one_of(&[ConfirmWord::Never, ConfirmWord::First, ConfirmWord::Each])),
        prop::option::of(one_of(&[HealthWord::Awaited, HealthWord::Machines, HealthWord::Ignored])),
        prop::option::of(any::<u16>()),
    );
    (limits, pace)
        .prop_map(|(limits, (windows, pause_between, confirm, health, stop_after))| {
            let (at_once, tenant_share, one_fault_domain) = limits;
            TermsEntry {
                at_once,
                tenant_share,
                one_fault_domain,
                windows,
                pause_between,
                confirm,
                health,
                stop_after,
            }
        })
        .boxed()
}
