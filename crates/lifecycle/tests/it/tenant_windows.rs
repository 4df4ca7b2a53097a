//! Windows of tenants: rollouts wait for them, nothing else does.

use std::time::Duration;

use forewarn_lifecycle::limits::WINDOWS_PER_TENANT_MAX;
use forewarn_lifecycle::*;

use crate::bare::{TestRules, approve_all, at, name, pair};

/// Sunday, 2001-09-09T00:00:00Z; the rules of a test begin at 01:46:40 of that day.
const SUNDAY: i64 = 999_993_600_000;

fn hour(hours: i64) -> Timestamp {
    Timestamp::from_millis(SUNDAY + hours * 3_600_000)
}

fn daily(from: u16, to: u16) -> Window {
    Window::new(Weekdays::ALL, from * 60, to * 60, 0).unwrap()
}

fn set_windows(bare: &mut TestRules, tenant: u32, windows: Vec<Window>) -> Vec<Change> {
    let owner = bare.cluster.window_owner(TenantId(tenant)).unwrap();
    bare.submit(Command::ChangeWindows { owner, windows }).unwrap()
}

fn update(hosts: &[u32], windows: Vec<Window>) -> Command {
    let terms = RolloutTerms { windows, ..RolloutTerms::default() };
    Command::Rollout {
        work: HostWork::Update.into(),
        hosts: hosts.iter().copied().map(HostId).collect(),
        terms,
    }
}

fn standing(bare: &TestRules) -> Standing {
    bare.cluster.rollouts().next().expect("a rollout").1.standing
}

/// Three hosts with one machine each.
fn three() -> TestRules {
    let mut bare = TestRules::with_hosts(3);
    for number in 0..3 {
        bare.standalone(&format!("vm{number}"), at(number, 0));
        bare.submit(Command::Enrol(TenantId(number))).unwrap();
    }
    bare
}

/// promise: R1
#[test]
fn a_group_is_announced_so_that_it_starts_in_windows_of_its_tenants() {
    let mut bare = three();
    set_windows(&mut bare, 0, vec![daily(4, 6)]);
    set_windows(&mut bare, 1, vec![daily(5, 6), daily(12, 13)]);
    bare.submit(update(&[0, 1], vec![])).unwrap();
    let first = hour(4).millis() - 900_000;
    let first = Timestamp::from_millis(first);
    let announces = Some(first);
    assert_eq!(standing(&bare), Standing::TenantWindow { tenant: TenantId(0), announces });
    assert_eq!(bare.cluster.next_deadline().unwrap().wait(bare.now), first.since(bare.now.wall));
    bare.advance(first.since(bare.now.wall));
    let group = bare.cluster.maintenances().next().expect("a group");
    assert_eq!((group.plan.hosts(), group.plan.not_before), (&[HostId(0)][..], hour(4)));
    bare.advance(Duration::from_mins(15));
    bare.complete_all();
    let second = Timestamp::from_millis(hour(5).millis() - 900_000);
    assert_eq!(standing(&bare), Standing::TenantWindow { tenant: TenantId(1), announces: Some(second) });
    bare.advance(second.since(bare.now.wall) + Duration::from_mins(15));
    assert_eq!(bare.cluster.unfinished().count(), 0, "the clocks passed its announcement without a stop");
    bare.advance(Duration::from_mins(15));
    assert_eq!(bare.cluster.unfinished().count(), 1);
}

/// promise: R1
#[test]
fn an_approved_group_is_held_until_windows_of_the_rollout_and_of_every_tenant_are_open() {
    let mut bare = TestRules::with_hosts(1);
    for number in 0..2 {
        bare.standalone(&format!("vm{number}"), at(0, 0));
    }
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    set_windows(&mut bare, 0, vec![daily(2, 5)]);
    set_windows(&mut bare, 1, vec![daily(3, 6)]);
    bare.submit(update(&[0], vec![daily(1, 4)])).unwrap();
    let first = Timestamp::from_millis(hour(3).millis() - 900_000);
    assert_eq!(standing(&bare), Standing::TenantWindow { tenant: TenantId(1), announces: Some(first) });
    bare.advance(first.since(bare.now.wall));
    approve_all(&mut bare);
    bare.settle();
    let group = bare.cluster.maintenances().next().unwrap();
    assert_eq!(group.wait(), Some(Wait::Held(Hold::Window { opens: hour(3) })));
    bare.advance(hour(3).since(bare.now.wall));
    assert_eq!(bare.cluster.unfinished().count(), 2);
}

#[test]
fn hosts_of_other_tenants_do_not_wait_and_a_free_host_is_found_behind_closed_ones() {
    let mut bare = three();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    bare.submit(update(&[0, 1, 2], vec![])).unwrap();
    let group = bare.cluster.maintenances().next().expect("a group");
    assert_eq!(group.plan.hosts(), [HostId(1), HostId(2)]);
}

#[test]
fn a_change_of_windows_is_effective_at_once() {
    let mut bare = three();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    bare.submit(update(&[0], vec![])).unwrap();
    set_windows(&mut bare, 0, vec![]);
    bare.settle();
    assert!(matches!(standing(&bare), Standing::Works(_)));
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    approve_all(&mut bare);
    bare.settle();
    let wait = bare.cluster.maintenances().next().unwrap().wait();
    assert_eq!(wait, Some(Wait::Held(Hold::Window { opens: hour(12) })));
    set_windows(&mut bare, 0, vec![daily(0, 0)]);
    bare.settle();
    assert_eq!(bare.cluster.unfinished().count(), 1);
    assert_eq!(set_windows(&mut bare, 0, vec![daily(0, 0)]), [], "the same windows are no change");
}

#[test]
fn only_rollouts_wait_for_windows_of_tenants() {
    let (mut bare, [machine, _]) = pair();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    bare.submit(Command::Restart(machine)).unwrap();
    approve_all(&mut bare);
    bare.complete_all();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    approve_all(&mut bare);
    bare.settle();
    assert_eq!(bare.cluster.unfinished().count(), 2, "machines leave a degraded host at once");
    let mut bare = three();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    bare.settle();
    assert_eq!(bare.cluster.unfinished().count(), 1);
}

#[test]
fn a_forced_start_ignores_windows_of_tenants() {
    let mut bare = three();
    bare.submit(update(&[0], vec![])).unwrap();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    let group = bare.cluster.maintenances().next().unwrap().plan.id;
    bare.submit(Command::ForceStart(group)).unwrap();
    assert_eq!(bare.cluster.unfinished().count(), 1);
}

#[test]
fn a_rollout_whose_windows_never_meet_those_of_a_tenant_is_refused() {
    let mut bare = three();
    set_windows(&mut bare, 1, vec![daily(12, 13)]);
    let refused = Refusal::WindowsNeverMeet { host: name("h1"), tenants: vec![name("vm1")] };
    assert_eq!(bare.ask(&update(&[0, 1], vec![daily(22, 6)])), Err(refused.clone()));
    assert!(refused.to_string().contains("never overlap: vm1\n  hint: "), "{refused}");
    bare.submit(update(&[0], vec![daily(20, 22)])).unwrap();
    let rollout = RolloutId(0);
    let terms = RolloutTerms { windows: vec![daily(20, 22)], ..RolloutTerms::default() };
    let (add, remove) = (vec![HostId(1)], vec![]);
    assert_eq!(bare.ask(&Command::ChangeRollout { rollout, terms, add, remove }), Err(refused));
    // Windows that are changed later may leave a host without a time: the rollout says so and waits for a change.
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    bare.advance(hour(20).since(bare.now.wall));
    assert_eq!(standing(&bare), Standing::TenantWindow { tenant: TenantId(0), announces: None });
    assert_eq!(bare.cluster.rollouts().next().unwrap().1.current(), None);
    set_windows(&mut bare, 0, vec![daily(21, 23)]);
    bare.settle();
    let announces = Some(Timestamp::from_millis(hour(21).millis() - 900_000));
    assert_eq!(standing(&bare), Standing::TenantWindow { tenant: TenantId(0), announces });
}

#[test]
fn a_scale_set_has_the_windows_of_its_placement_groups() {
    let (mut bare, _) = pair();
    let tenant = WindowOwner::Tenant(TenantId(0));
    let windows = vec![daily(12, 13)];
    let refused = bare.ask(&Command::ChangeWindows { owner: tenant, windows: windows.clone() });
    assert_eq!(refused, Err(Refusal::PartOfScaleSet(name("web"))));
    set_windows(&mut bare, 0, windows.clone());
    assert_eq!(bare.cluster.windows_of_tenant(TenantId(0)), windows);
    let owner = WindowOwner::ScaleSet(ScaleSetId(0));
    assert_eq!(bare.cluster.windows_of(owner), windows);
    let many = vec![daily(12, 13); WINDOWS_PER_TENANT_MAX + 1];
    assert!(matches!(
        bare.ask(&Command::ChangeWindows { owner, windows: many }),
        Err(Refusal::TooMany { .. })
    ));
    let unknown = WindowOwner::Tenant(TenantId(9));
    assert_eq!(bare.ask(&Command::ChangeWindows { owner: unknown, windows }), Err(Refusal::NoSuchTenant));
}

#[test]
fn windows_leave_with_their_tenant_and_survive_as_rows() {
    let mut bare = three();
    set_windows(&mut bare, 0, vec![daily(12, 13)]);
    set_windows(&mut bare, 1, vec![daily(12, 13)]);
    let restored = |cluster: &Cluster| {
        let mut restoring = Restoring::new();
        cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
        restoring.finish().unwrap()
    };
    assert_eq!(restored(&bare.cluster), bare.cluster);
    bare.submit(Command::Forget(MachineId(0))).unwrap();
    assert_eq!(bare.cluster.windows_of(WindowOwner::Tenant(TenantId(0))), []);
    assert_eq!(bare.cluster.windows_of(WindowOwner::Tenant(TenantId(1))).len(), 1);
    let mut restoring = Restoring::new();
    bare.cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    let lost = Row::Windows(WindowOwner::Tenant(TenantId(0)), vec![daily(12, 13)]);
    assert!(restoring.add(lost).is_err());
}
