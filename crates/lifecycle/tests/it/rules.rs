//! Single questions to the rules: what can be looked up, what is commanded, what is refused.

#![allow(clippy::wildcard_enum_match_arm, clippy::unwrap_used, reason = "test support")]

use std::time::Duration;

use crate::bare::{TestRules, actions, admission, approve_all, at, name, pair};
use forewarn_lifecycle::*;

#[test]
fn everything_can_be_looked_up() {
    let (mut bare, [one, two]) = pair();
    let rollout = Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    };
    bare.submit(rollout).unwrap();
    let cluster = &bare.cluster;
    assert_eq!(cluster.host_named("h1"), Some(HostId(1)));
    assert_eq!(cluster.tenant_named("web"), Some(TenantId(0)));
    assert_eq!(cluster.scale_set_named("web"), Some(ScaleSetId(0)));
    assert_eq!(cluster.machine_named(TenantId(0), "web_1"), Some(two));
    assert_eq!(cluster.machine_named(TenantId(0), "web_2"), None);
    assert_eq!(
        (cluster.host_named("x"), cluster.tenant_named("x"), cluster.scale_set_named("x")),
        (None, None, None)
    );
    assert_eq!(cluster.host(HostId(0)).unwrap().machines(), [one, two]);
    assert_eq!(
        cluster.maintenances().map(|maintenance| maintenance.plan.id).collect::<Vec<_>>(),
        [MaintenanceId(0)]
    );
    assert_eq!(cluster.rollouts().map(|(id, _)| id).collect::<Vec<_>>(), [RolloutId(0)]);
    assert_eq!(cluster.rollout(RolloutId(0)).unwrap().current(), Some(MaintenanceId(0)));
    assert_eq!(cluster.maintenance(MaintenanceId(0)).unwrap().wait(), Some(Wait::Notice));
    assert_eq!(
        cluster.maintenance(MaintenanceId(0)).unwrap().plan.machines().collect::<Vec<_>>(),
        [one, two]
    );
    let event = bare.events(TenantId(0))[0].clone();
    assert_eq!(cluster.event(event.id()), Some((TenantId(0), &event)));
    assert_eq!(cluster.event(EventId::nth(&Seed([9; 16]), 0)), None);
    assert_eq!(cluster.settings(), Settings::default());
    let settings = Settings { failure: FailureKind::Redeploy, ..Settings::default() };
    bare.submit(Command::ChangeSettings(settings)).unwrap();
    assert_eq!(bare.cluster.settings(), settings);
    assert_eq!(bare.submit(Command::ChangeSettings(settings)), Ok(vec![]));
    assert_eq!(bare.submit(Command::Brake(Brake::Off)), Ok(vec![]));
    bare.submit(Command::Brake(Brake::On)).unwrap();
    assert_eq!(bare.cluster.brake(), Brake::On);
    approve_all(&mut bare);
    assert_eq!(bare.cluster.held().collect::<Vec<_>>(), [(MaintenanceId(0), Hold::Brake)]);
}

#[test]
fn a_report_counts_once_and_only_for_what_is_under_way() {
    let (mut bare, solo) = TestRules::solo();
    bare.submit(Command::Restart(solo)).unwrap();
    let maintenance = MaintenanceId(0);
    let done =
        |machine: MachineId| Command::Complete { maintenance, target: machine.into(), report: Report::Done };
    assert_eq!(bare.submit(done(solo)), Ok(vec![]), "it has not started");
    approve_all(&mut bare);
    assert_eq!(bare.submit(done(MachineId(7))), Ok(vec![]), "another machine");
    assert_eq!(bare.submit(done(solo)).unwrap().len(), 1);
    assert_eq!(bare.submit(done(solo)), Ok(vec![]), "it is over");
    assert_eq!(bare.cluster.machine(solo).unwrap().boots, 2);
}

#[test]
fn what_is_unknown_is_refused() {
    let mut bare = TestRules::with_hosts(1);
    let (host, machine, tenant) = (HostId(7), MachineId(7), TenantId(7));
    for (command, refusal) in [
        (Command::RemoveHost(host), Refusal::NoSuchHost),
        (Command::FailHost(host), Refusal::NoSuchHost),
        (Command::RecoverHost(host), Refusal::NoSuchHost),
        (Command::DegradeHost { host, fails_in: None }, Refusal::NoSuchHost),
        (
            Command::Rollout {
                work: HostWork::Update.into(),
                hosts: vec![host],
                terms: RolloutTerms::default(),
            },
            Refusal::NoSuchHost,
        ),
        (admission("vm", at(7, 0)), Refusal::NoSuchHost),
        (Command::Restart(machine), Refusal::NoSuchMachine),
        (Command::Redeploy(machine), Refusal::NoSuchMachine),
        (Command::Delete(machine), Refusal::NoSuchMachine),
        (Command::Evict(machine), Refusal::NoSuchMachine),
        (Command::Reimage(machine), Refusal::NoSuchMachine),
        (Command::UpgradeInstance(machine), Refusal::NoSuchMachine),
        (Command::Forget(machine), Refusal::NoSuchMachine),
        (Command::Move { machine, to: HostId(0), planned: PlannedWork::GivesWay }, Refusal::NoSuchMachine),
        (Command::Enrol(tenant), Refusal::NoSuchTenant),
        (Command::Silent(tenant), Refusal::NoSuchTenant),
        (Command::Heard { tenant, ago: Duration::ZERO }, Refusal::NoSuchTenant),
        (Command::RemoveTenant(tenant), Refusal::NoSuchTenant),
        (Command::RemoveScaleSet(ScaleSetId(7)), Refusal::NoSuchScaleSet),
        (Command::Cancel(MaintenanceId(7)), Refusal::NoSuchMaintenance),
        (Command::ForceStart(MaintenanceId(7)), Refusal::NoSuchMaintenance),
        (Command::CancelRollout(RolloutId(7)), Refusal::NoSuchRollout),
    ] {
        assert_eq!(bare.submit(command.clone()), Err(refusal), "{command:?}");
    }
    assert_eq!(bare.submit(Command::Tick), Ok(vec![]));
}

#[test]
fn only_a_machine_of_the_tenant_approves() {
    let (mut bare, solo) = TestRules::solo();
    let other = bare.standalone("other", at(0, 0));
    bare.submit(Command::Restart(solo)).unwrap();
    let events = vec![bare.events(TenantId(0))[0].id()];
    let by = |machine| Command::Approve {
        tenant: TenantId(0),
        events: events.clone(),
        by: Approver::Machine(machine),
    };
    assert_eq!(bare.ask(&by(other)), Err(Refusal::NoSuchMachine));
    assert_eq!(bare.ask(&by(MachineId(9))), Err(Refusal::NoSuchMachine));
    assert!(bare.ask(&by(solo)).is_ok());
}

#[test]
fn silence_is_a_day_without_a_word_and_without_an_event() {
    let (mut bare, solo) = TestRules::solo();
    let tenant = TenantId(0);
    let disabled = Ok(vec![Change::Disabled(tenant)]);
    assert_eq!(bare.ask(&Command::Silent(tenant)), Ok(vec![]), "too early");
    let day = Duration::from_hours(24);
    bare.now.steady = bare.now.steady.plus(day);
    assert_eq!(bare.cluster.silences_due(bare.now).collect::<Vec<_>>(), [tenant]);
    assert_eq!(bare.ask(&Command::Silent(tenant)), disabled);
    // Something was heard a moment before: the day starts there.
    let moment = Duration::from_millis(1);
    bare.submit(Command::Heard { tenant, ago: day - moment }).unwrap();
    assert_eq!(bare.cluster.silences_due(bare.now).count(), 0);
    bare.now.steady = bare.now.steady.plus(moment);
    assert_eq!(bare.ask(&Command::Heard { tenant, ago: day }), disabled, "that was long ago");
    // While a tenant can see an event, its silence is not checked, and a tenant that is not enrolled has no silence
    // check.
    bare.submit(Command::Restart(solo)).unwrap();
    assert_eq!(bare.cluster.silences_due(bare.now).count(), 0);
    assert_eq!(bare.ask(&Command::Silent(tenant)), Ok(vec![]));
    approve_all(&mut bare);
    let (maintenance, machine, report) = (MaintenanceId(0), solo, Report::Done);
    bare.submit(Command::Complete { maintenance, target: machine.into(), report }).unwrap();
    assert_eq!(bare.cluster.silences_due(bare.now).collect::<Vec<_>>(), [tenant]);
    bare.submit(Command::Silent(tenant)).unwrap();
    assert_eq!(bare.ask(&Command::Silent(tenant)), Ok(vec![]));
    assert_eq!(bare.ask(&Command::Heard { tenant, ago: Duration::ZERO }), Ok(vec![]));
    assert_eq!(bare.cluster.next_deadline(), None);
}

#[test]
fn a_new_seed_gives_new_ids() {
    let (mut bare, solo) = TestRules::solo();
    let mut other = TestRules { cluster: bare.cluster.clone(), now: bare.now };
    other.apply(&Change::SeedSet(Seed([4; 16])));
    bare.submit(Command::Restart(solo)).unwrap();
    other.submit(Command::Restart(solo)).unwrap();
    assert_ne!(bare.events(TenantId(0))[0].id(), other.events(TenantId(0))[0].id());
}

/// promise: D2
#[test]
fn action_names_differ_by_secret_work_and_machine() {
    let mut names = std::collections::BTreeSet::new();
    for seed in 0..4 {
        for (work, machine) in (0..20).flat_map(|work| (0..20).map(move |machine| (work, machine))) {
            let name = ActionName::of(&Seed([seed; 16]), MaintenanceId(work), MachineId(machine));
            assert!(names.insert(name.to_string()), "{seed} {work} {machine}");
        }
    }
    assert!(names.iter().all(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let again = ActionName::of(&Seed([3; 16]), MaintenanceId(7), MachineId(9));
    assert!(names.contains(&again.to_string()), "a name is the same every time");
}

/// promise: D2
#[test]
fn work_keeps_its_action_names_when_the_secret_is_replaced() {
    let (mut bare, [one, two]) = pair();
    let name = |bare: &TestRules, work: u64, machine| {
        bare.cluster.action_name(MaintenanceId(work), Target::Machine(machine))
    };
    bare.submit(Command::Restart(one)).unwrap();
    let (first, second) = (name(&bare, 0, one), name(&bare, 1, two));
    for seed in 4..7 {
        bare.apply(&Change::SeedSet(Seed([seed; 16])));
        assert_eq!(name(&bare, 0, one), first, "the work is known");
        assert_ne!(name(&bare, 1, two), second, "the work is not known");
        assert_eq!(bare.cluster.seeds_in_use().len(), 1, "secrets that name nothing are forgotten");
        let mut restoring = Restoring::new();
        bare.cluster.clone().into_rows().try_for_each(|row| restoring.add(row)).unwrap();
        assert_eq!(restoring.finish().unwrap(), bare.cluster);
    }
}

#[test]
fn documents_are_published_when_they_change_and_withdrawn_with_their_tenant() {
    let (mut bare, solo) = TestRules::solo();
    let effects = |bare: &mut TestRules, command: &Command| {
        let changes = bare.ask(command).unwrap();
        changes.iter().flat_map(|change| bare.apply(change)).collect::<Vec<_>>()
    };
    let publish = Effect::Publish(TenantId(0));
    assert_eq!(effects(&mut bare, &Command::Restart(solo)), [publish]);
    let started = effects(&mut bare, &Command::ForceStart(MaintenanceId(0)));
    assert!(matches!(started[..], [first, Effect::Perform(_)] if first == publish));
    let (maintenance, machine, report) = (MaintenanceId(0), solo, Report::Done);
    assert_eq!(
        effects(&mut bare, &Command::Complete { maintenance, target: machine.into(), report }),
        [publish]
    );
    let deleted = effects(&mut bare, &Command::Delete(solo));
    assert!(matches!(deleted[..], [Effect::Perform(_)]));
    let maintenance = MaintenanceId(1);
    let gone = effects(&mut bare, &Command::Complete { maintenance, target: machine.into(), report });
    assert_eq!(gone, [Effect::Unpublish(TenantId(0))]);
    // The name is free again.
    assert_eq!(bare.cluster.tenant_named("solo"), None);
    bare.standalone("solo", at(0, 0));
}

#[test]
fn what_is_already_so_changes_nothing() {
    let (mut bare, solo) = TestRules::solo();
    let scale_set = bare.scale_set("web", Orchestration::Uniform, Profile::default());
    bare.submit(Command::AdmitInstance { scale_set, placement: at(0, 0), number: None }).unwrap();
    let web_0 = bare.cluster.machine_named(TenantId(1), "web_0").unwrap();
    let (profile, policy) = (Profile::default(), Policy::default());
    for command in [
        Command::ChangeProfile { machine: solo, profile },
        Command::ChangePolicy { tenant: TenantId(0), policy },
        Command::ChangeModel { scale_set, model: profile },
        Command::ChangeScaleSetPolicy { scale_set, policy },
        Command::ChangeUpgradePolicy { scale_set, upgrade: UpgradePolicy::Manual },
        Command::UpgradeInstance(web_0),
        Command::Enrol(TenantId(0)),
        Command::RecoverHost(HostId(0)),
        Command::ChangePower { machine: solo, change: PowerChange::Start },
    ] {
        assert_eq!(bare.ask(&command), Ok(vec![]), "{command:?}");
    }
    let profile = Profile { terminate: Some(TerminateNotice::MAX), ..profile };
    bare.submit(Command::ChangeProfile { machine: solo, profile }).unwrap();
    assert_eq!(bare.cluster.machine(solo).unwrap().profile, profile);
    for (command, refusal) in [
        (Command::ChangeProfile { machine: web_0, profile }, Refusal::PartOfScaleSet(name("web_0"))),
        (Command::ChangePolicy { tenant: TenantId(1), policy }, Refusal::PartOfScaleSet(name("web"))),
        (Command::UpgradeInstance(solo), Refusal::NotAnInstance(name("solo"))),
    ] {
        assert_eq!(bare.ask(&command), Err(refusal), "{command:?}");
    }
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    assert_eq!(bare.ask(&Command::FailHost(HostId(0))), Ok(vec![]));
}

#[test]
fn a_notice_is_a_notice_even_at_the_end_of_time() {
    let (mut bare, solo) = TestRules::solo();
    bare.now.wall = Timestamp::from_millis(i64::MAX);
    bare.submit(Command::Restart(solo)).unwrap();
    assert!(bare.events(TenantId(0))[0].is_scheduled());
    bare.now.steady = bare.now.steady.plus(Duration::from_mins(15));
    bare.settle();
    assert!(!bare.events(TenantId(0))[0].is_scheduled());
}

#[test]
fn a_degraded_host_may_be_named_again_for_those_that_are_still_there() {
    let mut bare = TestRules::with_hosts(2);
    let one = bare.standalone("one", at(0, 0));
    let two = bare.standalone("two", at(0, 0));
    for tenant in [TenantId(0), TenantId(1)] {
        bare.submit(Command::Enrol(tenant)).unwrap();
    }
    let degrade = Command::DegradeHost { host: HostId(0), fails_in: None };
    bare.submit(degrade.clone()).unwrap();
    assert_eq!(bare.ask(&degrade), Ok(vec![]));
    bare.submit(Command::ForceStart(MaintenanceId(0))).unwrap();
    let (maintenance, machine, report) = (MaintenanceId(0), one, Report::Failed);
    bare.submit(Command::Complete { maintenance, target: machine.into(), report }).unwrap();
    let planned = bare.submit(degrade).unwrap();
    assert!(matches!(&planned[..], [Change::Planned(plan)] if plan.machines().eq([one])), "{planned:?}");
    assert_eq!(bare.cluster.machine(two).unwrap().host, HostId(0));
}

#[test]
fn nothing_is_left_of_a_history_that_is_over() {
    let (mut bare, [one, two]) = pair();
    let before = bare.cluster.clone();
    bare.submit(Command::Restart(one)).unwrap();
    bare.submit(Command::Redeploy(two)).unwrap();
    bare.submit(Command::Rollout {
        work: HostWork::Migration.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    bare.submit(Command::CancelRollout(RolloutId(0))).unwrap();
    bare.submit(Command::Cancel(MaintenanceId(0))).unwrap();
    bare.submit(Command::Cancel(MaintenanceId(1))).unwrap();
    // But for numbers that are not used again, incarnations and ended ids, the state is as it was.
    assert_eq!(bare.cluster.next_deadline(), before.next_deadline());
    assert_eq!(bare.cluster.maintenances().count() + bare.cluster.rollouts().count(), 0);
    assert!(bare.cluster.hosts().eq(before.hosts()) && bare.cluster.machines().eq(before.machines()));
}

#[test]
fn scale_sets_are_told_apart() {
    let mut bare = TestRules::with_hosts(1);
    let sets =
        ["one", "two", "three"].map(|set| bare.scale_set(set, Orchestration::Uniform, Profile::default()));
    assert_eq!(sets, [ScaleSetId(0), ScaleSetId(1), ScaleSetId(2)]);
    let policy = Policy { user_restart: Approve::Automatically, ..Policy::default() };
    bare.submit(Command::ChangeScaleSetPolicy { scale_set: ScaleSetId(1), policy }).unwrap();
    assert_eq!(bare.cluster.scale_set(ScaleSetId(1)).unwrap().policy, policy);
    assert_eq!(bare.cluster.tenant(TenantId(1)).unwrap().policy, policy);
    assert_eq!(bare.cluster.scale_set(ScaleSetId(0)).unwrap().policy, Policy::default());
    bare.submit(Command::RemoveScaleSet(ScaleSetId(2))).unwrap();
    assert_eq!((bare.cluster.scale_set(ScaleSetId(2)), bare.cluster.scale_set_named("three")), (None, None));
    assert_eq!(bare.scale_set("four", Orchestration::Uniform, Profile::default()), ScaleSetId(3));
}

#[test]
fn a_tenant_that_nobody_listens_for_is_afterwards_as_it_was() {
    let mut bare = TestRules::with_hosts(1);
    bare.standalone("solo", at(0, 0));
    let before = bare.cluster.tenant(TenantId(0)).cloned();
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    assert_ne!(bare.cluster.tenant(TenantId(0)).cloned(), before);
    bare.complete_all();
    assert_eq!(bare.cluster.tenant(TenantId(0)).cloned(), before);
}

#[test]
fn what_is_held_is_not_held_again() {
    let mut bare = TestRules::with_hosts(1);
    let terminate = Profile { terminate: Some(TerminateNotice::MIN), ..Profile::default() };
    let scale_set = bare.scale_set("web", Orchestration::Uniform, terminate);
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    bare.submit(Command::Brake(Brake::On)).unwrap();
    for number in 0..2 {
        bare.submit(Command::AdmitInstance { scale_set, placement: at(0, 0), number: None }).unwrap();
        bare.submit(Command::Delete(MachineId(number))).unwrap();
        // One approval, one hold; nothing more of those that were held before.
        let kinds: Vec<_> = approve_all(&mut bare).iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 2, "{number}");
    }
    assert_eq!(bare.cluster.held().count(), 2);
}

#[test]
fn only_host_work_in_another_update_domain_keeps_host_work_waiting() {
    let update = |host| Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(host)],
        terms: RolloutTerms::default(),
    };
    let mut bare = TestRules::with_hosts(4);
    let db = bare.set("db", SetShape::AvailabilitySet);
    for (text, host, domain) in [("a", 0, 0), ("b", 1, 0), ("c", 2, 1)] {
        bare.member(db, text, at(host, domain)).unwrap();
    }
    bare.submit(Command::Enrol(db)).unwrap();
    // The same update domain, and what is announced days ahead, do not.
    bare.submit(Command::DegradeHost { host: HostId(2), fails_in: None }).unwrap();
    bare.submit(update(0)).unwrap();
    bare.submit(update(1)).unwrap();
    assert_eq!(bare.events(db).len(), 3);
    bare.submit(update(2)).unwrap();
    assert_eq!(bare.events(db).len(), 3);
}

#[test]
fn an_approved_terminate_waits_while_another_waits_for_its_approval() {
    let mut bare = TestRules::with_hosts(1);
    let terminate = Profile { terminate: Some(TerminateNotice::MIN), ..Profile::default() };
    let scale_set = bare.scale_set("web", Orchestration::Uniform, terminate);
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    for number in 0..2 {
        bare.submit(Command::AdmitInstance { scale_set, placement: at(0, 0), number: None }).unwrap();
        bare.submit(Command::Delete(MachineId(number))).unwrap();
    }
    let ids: Vec<_> = bare.events(TenantId(0)).iter().map(Event::id).collect();
    let approve = |id| Command::Approve { tenant: TenantId(0), events: vec![id], by: Approver::Owner };
    assert!(actions(&bare.submit(approve(ids[1])).unwrap()).is_empty());
    assert_eq!(actions(&bare.submit(approve(ids[0])).unwrap()).len(), 2);
}

/// A spot machine whose eviction is announced, with 30 seconds of notice.
fn evicted() -> (TestRules, MaintenanceId) {
    let mut bare = TestRules::with_hosts(1);
    let (placement, profile, policy) = (at(0, 0), Profile::default(), Policy::default());
    let priority = Priority::Spot(EvictionPolicy::Deallocate);
    let admit = Command::AdmitStandalone { name: name("spot"), placement, priority, profile, policy };
    bare.submit(admit).unwrap();
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    bare.submit(Command::Evict(MachineId(0))).unwrap();
    let id = bare.cluster.maintenances().next().unwrap().plan.id;
    (bare, id)
}

fn pass(bare: &mut TestRules, millis: u64) {
    let span = Duration::from_millis(millis);
    bare.now = Now { wall: bare.now.wall.plus(span), steady: bare.now.steady.plus(span) };
}

fn ensure_notice(bare: &mut TestRules, id: MaintenanceId, exposure: Exposure) -> Vec<Change> {
    bare.submit(Command::EnsureNotice { maintenances: vec![id], exposure }).unwrap()
}

/// promise: N3
#[test]
fn a_time_that_no_vm_has_read_moves_and_one_that_vms_may_have_read_stays() {
    let unread = Exposure::Unread { margin: Duration::ZERO };
    let (mut bare, id) = evicted();
    assert_eq!(ensure_notice(&mut bare, id, unread), [], "its notice is whole");
    let decided = bare.now;
    pass(&mut bare, 20_300);
    let incarnation = bare.cluster.tenant(TenantId(0)).unwrap().incarnation;
    ensure_notice(&mut bare, id, unread);
    let plan = &bare.cluster.maintenance(id).unwrap().plan;
    assert_eq!(plan.not_before, decided.wall.plus(Duration::from_secs(51)), "rounded up to a second");
    assert_eq!(plan.steady_due, decided.steady.plus(Duration::from_secs(51)));
    assert_eq!(bare.cluster.tenant(TenantId(0)).unwrap().incarnation, incarnation, "no VM saw another one");
    // The process stops until long after that time, and only then is the document there for VMs that may read it.
    pass(&mut bare, 60_000);
    ensure_notice(&mut bare, id, Exposure::PerhapsRead);
    let plan = bare.cluster.maintenance(id).unwrap().plan.clone();
    assert_eq!(plan.not_before, decided.wall.plus(Duration::from_secs(51)), "it may have been read");
    bare.settle();
    pass(&mut bare, 29_999);
    bare.settle();
    assert!(bare.events(TenantId(0))[0].is_scheduled(), "its notice is not over");
    pass(&mut bare, 1);
    bare.settle();
    assert!(!bare.events(TenantId(0))[0].is_scheduled());
}

/// promise: N3
#[test]
fn an_approved_start_waits_for_no_notice() {
    let (mut bare, id) = evicted();
    approve_all(&mut bare);
    assert!(!bare.events(TenantId(0))[0].is_scheduled(), "it has started");
    assert_eq!(ensure_notice(&mut bare, id, Exposure::PerhapsRead), []);
    assert_eq!(ensure_notice(&mut bare, id, Exposure::Unread { margin: Duration::from_secs(9) }), []);
    assert_eq!(ensure_notice(&mut bare, MaintenanceId(99), Exposure::PerhapsRead), [], "it is not known");
}

/// promise: N3
#[test]
fn a_long_notice_moves_only_when_less_than_the_minimum_is_left() {
    let (mut bare, _) = TestRules::solo();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: Some(Duration::from_mins(30)) }).unwrap();
    let plan = bare.cluster.maintenances().next().unwrap().plan.clone();
    let unread = Exposure::Unread { margin: Duration::ZERO };
    pass(&mut bare, 20 * 60_000);
    assert_eq!(ensure_notice(&mut bare, plan.id, unread), [], "ten minutes are left");
    pass(&mut bare, 1);
    ensure_notice(&mut bare, plan.id, unread);
    let moved = bare.cluster.maintenance(plan.id).unwrap().plan.not_before;
    assert_eq!(moved, plan.not_before.plus(Duration::from_secs(1)));
}

fn start_cause(changes: &[Change]) -> Option<StartCause> {
    changes.iter().find_map(|change| match change {
        Change::Started { cause, .. } => Some(*cause),
        _ => None,
    })
}

#[test]
fn the_cause_of_a_start_is_the_approval_of_a_tenant_if_there_is_one() {
    let (mut bare, [one, two]) = pair();
    let solo = bare.standalone("solo", at(0, 0));
    let solo_tenant = bare.cluster.machine(solo).unwrap().tenant;
    bare.submit(Command::Enrol(solo_tenant)).unwrap();
    let update = || Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    };
    let stop = |machine| Command::ChangePower { machine, change: PowerChange::Stop };
    bare.submit(stop(solo)).unwrap();
    bare.complete_all();
    bare.submit(update()).unwrap();
    assert_eq!(bare.events(solo_tenant).len(), 1, "it is announced to a tenant that is down, too");
    let started = approve_all(&mut bare);
    assert_eq!(start_cause(&started), Some(StartCause::Approved), "one tenant approved, the other is down");
    bare.complete_all();
    for machine in [one, two] {
        bare.submit(stop(machine)).unwrap();
        bare.complete_all();
    }
    let started = bare.submit(update()).unwrap();
    assert_eq!(start_cause(&started), Some(StartCause::Automatic), "every tenant is down");
}

#[test]
fn a_host_is_added_to_a_rollout_once() {
    let (mut bare, _) = pair();
    let terms = RolloutTerms::default();
    let (work, hosts) = (HostWork::Update.into(), vec![HostId(0)]);
    bare.submit(Command::Rollout { work, hosts, terms: terms.clone() }).unwrap();
    let rollout = RolloutId(0);
    let add = |add| Command::ChangeRollout { rollout, terms: terms.clone(), add, remove: vec![] };
    let (added, removed) = (vec![HostId(1)], vec![]);
    let changed = Change::RolloutChanged { rollout, terms: terms.clone(), added: added.clone(), removed };
    assert_eq!(bare.submit(add(added.clone())), Ok(vec![changed]));
    assert_eq!(bare.submit(add(added)), Ok(vec![]), "it waits already");
    assert_eq!(bare.submit(add(vec![])), Ok(vec![]));
}

#[test]
fn a_rollout_counts_its_groups() {
    let (mut bare, _) = pair();
    bare.standalone("solo", at(1, 0));
    let terms = RolloutTerms { hosts_at_once: std::num::NonZeroU16::new(1), ..RolloutTerms::default() };
    let (work, hosts) = (HostWork::Update.into(), vec![HostId(0), HostId(1)]);
    bare.submit(Command::Rollout { work, hosts, terms }).unwrap();
    bare.submit(Command::Enrol(TenantId(1))).unwrap();
    let groups = |bare: &TestRules| bare.cluster.rollout(RolloutId(0)).map(|rollout| rollout.groups);
    assert_eq!(groups(&bare), Some(0));
    approve_all(&mut bare);
    bare.complete_all();
    assert_eq!(groups(&bare), Some(1), "the second one is announced");
}
