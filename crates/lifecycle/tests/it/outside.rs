//! Machines that are forgotten, or that an operator moved by other means.

#![allow(clippy::unwrap_used, reason = "test support")]

use crate::bare::{TestRules, actions, approve_all, at, name, pair};
use forewarn_lifecycle::*;

const WEB: TenantId = TenantId(0);

fn recorded(machine: MachineId, to: u32, planned: PlannedWork) -> Command {
    Command::Move { machine, to: HostId(to), planned }
}

fn update(hosts: &[u32]) -> Command {
    let hosts = hosts.iter().copied().map(HostId).collect();
    Command::Rollout { work: HostWork::Update.into(), hosts, terms: RolloutTerms::default() }
}

/// promise: E6
#[test]
fn a_forgotten_machine_leaves_its_tenant_and_takes_its_events_along() {
    let (mut bare, [first, second]) = pair();
    bare.submit(Command::Restart(first)).unwrap();
    bare.submit(Command::Restart(second)).unwrap();
    let changes = bare.submit(Command::Forget(first)).unwrap();
    assert!(
        matches!(changes[..], [Change::Withdrawn { .. }, Change::MachineForgotten(gone)] if gone == first)
    );
    assert_eq!(bare.cluster.machine(first), None);
    assert_eq!(bare.cluster.tenant(WEB).unwrap().machines(), [second]);
    assert_eq!(bare.cluster.host(HostId(0)).unwrap().machines(), [second]);
    assert_eq!(bare.events(WEB).len(), 1);
    assert_eq!(bare.events(WEB)[0].announcement.resources[..], [name("web_1")]);
    assert_eq!(bare.submit(Command::Forget(first)), Err(Refusal::NoSuchMachine));
}

/// promise: E6
#[test]
fn work_that_names_other_machines_too_goes_on_without_the_forgotten_one() {
    let (mut bare, [first, second]) = pair();
    bare.submit(update(&[0])).unwrap();
    bare.settle();
    assert_eq!(bare.events(WEB)[0].announcement.resources.len(), 2);
    assert_eq!(bare.submit(Command::Forget(first)), Ok(vec![Change::MachineForgotten(first)]));
    assert_eq!(bare.events(WEB)[0].announcement.resources.len(), 2, "what was announced never changes");
    let started = approve_all(&mut bare);
    assert_eq!(actions(&started).iter().map(|(machine, _)| *machine).collect::<Vec<_>>(), [second]);
}

/// promise: E6
#[test]
fn a_forgotten_standalone_machine_takes_its_tenant_along() {
    let (mut bare, solo) = TestRules::solo();
    bare.submit(Command::Restart(solo)).unwrap();
    let mut effects = Vec::new();
    for change in bare.ask(&Command::Forget(solo)).unwrap() {
        effects.extend(bare.apply(&change));
    }
    assert!(effects.contains(&Effect::Unpublish(TenantId(0))), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Perform(_))), "{effects:?}");
    assert_eq!(bare.cluster.tenants().count(), 0);
    assert_eq!(bare.cluster.maintenances().count(), 0);
    bare.submit(Command::RemoveHost(HostId(0))).unwrap();
}

/// promise: E6
#[test]
fn what_the_driver_carries_out_is_neither_forgotten_nor_moved() {
    let mut bare = TestRules::with_hosts(3);
    let solo = bare.standalone("solo", at(0, 0));
    bare.submit(Command::Redeploy(solo)).unwrap();
    assert_eq!(bare.cluster.unfinished().count(), 1);
    let under_way = Err(Refusal::UnderWay(name("solo")));
    assert_eq!(bare.ask(&Command::Forget(solo)), under_way);
    for to in [0, 1, 2] {
        assert_eq!(bare.ask(&recorded(solo, to, PlannedWork::GivesWay)), under_way, "h{to}");
    }
    bare.complete_all();
    bare.submit(Command::Forget(solo)).unwrap();
}

/// promise: E6
#[test]
fn planned_work_refuses_a_move_unless_it_is_forced() {
    let (mut bare, [first, second]) = pair();
    bare.submit(Command::AdmitHost { name: name("h2"), zone: None, capacity: Size::NONE }).unwrap();
    bare.submit(update(&[0])).unwrap();
    bare.settle();
    let event = bare.events(WEB)[0].id();
    let refusal = Refusal::Planned { machine: name("web_0"), event: Some(event) };
    assert_eq!(bare.ask(&recorded(first, 1, PlannedWork::Refuses)), Err(refusal.clone()));
    assert!(refusal.to_string().contains(&event.to_string()), "{refusal}");
    // The other machine is still on the host: the event stays for it, and is withdrawn when that has left, too.
    let moved = Change::MachineMoved { machine: first, to: HostId(1) };
    assert_eq!(bare.submit(recorded(first, 1, PlannedWork::GivesWay)), Ok(vec![moved]));
    assert_eq!(bare.events(WEB).len(), 1);
    let changes = bare.submit(recorded(second, 1, PlannedWork::GivesWay)).unwrap();
    assert!(matches!(
        changes[..],
        [Change::MachineMoved { .. }, Change::Withdrawn { why: Withdrawal::Unconcerned, .. }]
    ));
    assert!(bare.events(WEB).is_empty());
    bare.settle();
    assert_eq!(bare.cluster.host(HostId(0)).unwrap().work, None);
}

/// promise: E6
#[test]
fn a_machine_that_was_moved_is_as_it_was_on_another_host() {
    let (mut bare, [first, second]) = pair();
    let before = bare.cluster.machine(first).unwrap().clone();
    bare.submit(recorded(first, 1, PlannedWork::Refuses)).unwrap();
    assert_eq!(bare.submit(recorded(first, 1, PlannedWork::Refuses)), Ok(vec![]), "it is there already");
    let after = bare.cluster.machine(first).unwrap();
    assert_eq!(*after, Machine { host: HostId(1), ..before });
    assert_eq!(bare.cluster.host(HostId(0)).unwrap().machines(), [second]);
    assert_eq!(bare.cluster.host(HostId(1)).unwrap().machines(), [first]);
    assert!(bare.events(WEB).is_empty());
    // Only machines that are on the host get the event of its work.
    bare.submit(update(&[1])).unwrap();
    bare.settle();
    assert_eq!(bare.events(WEB)[0].announcement.resources[..], [name("web_0")]);
}

/// promise: E6
#[test]
fn a_move_keeps_the_rules_of_placement() {
    let mut bare = TestRules::with_hosts(2);
    bare.submit(Command::AdmitHost { name: name("far"), zone: Some(Zone(2)), capacity: Size::NONE }).unwrap();
    let db = bare.set("db", SetShape::AvailabilitySet);
    bare.member(db, "db-0", at(0, 0)).unwrap();
    bare.member(db, "db-1", at(1, 1)).unwrap();
    let refused = |bare: &TestRules, to| bare.ask(&recorded(MachineId(0), to, PlannedWork::GivesWay));
    assert!(matches!(refused(&bare, 1), Err(Refusal::UpdateDomainClash { .. })));
    assert_eq!(refused(&bare, 2), Err(Refusal::OtherZone { machine: name("db-0"), host: name("far") }));
    assert_eq!(refused(&bare, 7), Err(Refusal::NoSuchHost));
    bare.submit(Command::AdmitHost { name: name("h3"), zone: None, capacity: Size::NONE }).unwrap();
    bare.submit(Command::FailHost(HostId(3))).unwrap();
    assert_eq!(refused(&bare, 3), Err(Refusal::HostFailed(name("h3"))));
    bare.submit(Command::RecoverHost(HostId(3))).unwrap();
    bare.standalone("solo", at(3, 0));
    bare.submit(Command::Enrol(TenantId(1))).unwrap();
    bare.submit(update(&[3])).unwrap();
    bare.settle();
    assert_eq!(refused(&bare, 3), Err(Refusal::HostBusy(name("h3"))), "it would have missed the event");
}

/// promise: E6
#[test]
fn a_machine_that_was_moved_has_left_its_degraded_host() {
    let (mut bare, [first, second]) = pair();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    assert_eq!(bare.events(WEB).len(), 2);
    assert!(matches!(
        bare.ask(&recorded(first, 1, PlannedWork::Refuses)),
        Err(Refusal::Planned { event: Some(_), .. })
    ));
    bare.submit(recorded(first, 1, PlannedWork::GivesWay)).unwrap();
    assert_eq!(bare.events(WEB).len(), 1);
    assert_eq!(bare.events(WEB)[0].announcement.resources[..], [name("web_1")]);
    // If the host fails, only the other machine is brought up elsewhere.
    let failed = bare.submit(Command::FailHost(HostId(0))).unwrap();
    assert_eq!(actions(&failed).iter().map(|(machine, _)| *machine).collect::<Vec<_>>(), [second]);
}

/// promise: E6
#[test]
fn a_machine_that_was_moved_to_a_degraded_host_is_told_so() {
    let (mut bare, [first, _]) = pair();
    bare.submit(Command::DegradeHost { host: HostId(1), fails_in: None }).unwrap();
    bare.submit(recorded(first, 1, PlannedWork::Refuses)).unwrap();
    bare.settle();
    assert_eq!(bare.events(WEB)[0].announcement.kind, EventKind::Redeploy);
    assert_eq!(bare.events(WEB)[0].announcement.resources[..], [name("web_0")]);
}

/// promise: E6
#[test]
fn a_machine_that_failed_to_leave_a_failed_host_can_be_moved_from_it() {
    let (mut bare, solo) = TestRules::solo();
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    let Action { maintenance, target, .. } = bare.cluster.unfinished().next().unwrap();
    bare.submit(Command::Complete { maintenance, target, report: Report::Failed }).unwrap();
    bare.submit(Command::AdmitHost { name: name("h1"), zone: None, capacity: Size::NONE }).unwrap();
    bare.submit(recorded(solo, 1, PlannedWork::Refuses)).unwrap();
    bare.settle();
    assert_eq!(bare.cluster.machine(solo).unwrap().host, HostId(1));
    assert!(bare.events(TenantId(0)).is_empty());
    assert_eq!(bare.cluster.unfinished().count(), 0);
}

/// promise: T1
#[test]
fn a_host_that_is_in_use_is_refused_with_the_names_of_its_machines() {
    let mut bare = TestRules::with_hosts(1);
    let machines: Vec<_> = (0..7).map(|number| bare.standalone(&format!("vm{number}"), at(0, 0))).collect();
    let said = bare.ask(&Command::RemoveHost(HostId(0))).unwrap_err().to_string();
    let names = "h0: vm0/vm0, vm1/vm1, vm2/vm2, vm3/vm3, vm4/vm4 and 2 more\n  hint: ";
    assert!(said.starts_with(&format!("the host still has machines: {names}")), "{said}");
    for machine in machines {
        bare.submit(Command::Forget(machine)).unwrap();
    }
    bare.submit(Command::RemoveHost(HostId(0))).unwrap();
}
