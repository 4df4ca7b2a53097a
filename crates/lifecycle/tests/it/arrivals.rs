//! Machines that come to a host that is not well, or not alone, any more.

#![allow(clippy::unwrap_used, reason = "test support")]

use std::time::Duration;

use crate::bare::{TestRules, at, name};
use forewarn_lifecycle::*;

fn power(machine: MachineId, change: PowerChange) -> Command {
    Command::ChangePower { machine, change }
}

fn done(action: Action) -> Command {
    Command::Complete { maintenance: action.maintenance, target: action.target, report: Report::Done }
}

fn first_action(bare: &TestRules) -> Action {
    bare.cluster.unfinished().next().unwrap()
}

#[test]
fn whoever_starts_where_it_was_is_told_that_the_host_is_not_well_any_more() {
    for (misfortune, kind) in [
        (Command::FailHost(HostId(0)), EventKind::Reboot),
        (Command::DegradeHost { host: HostId(0), fails_in: None }, EventKind::Redeploy),
    ] {
        let mut bare = TestRules::with_hosts(2);
        let solo = bare.standalone("solo", at(0, 0));
        bare.submit(Command::Enrol(TenantId(0))).unwrap();
        bare.submit(power(solo, PowerChange::Deallocate)).unwrap();
        bare.complete_all();
        bare.submit(power(solo, PowerChange::Start)).unwrap();
        bare.submit(misfortune).unwrap();
        assert!(bare.events(TenantId(0)).is_empty());
        bare.submit(done(first_action(&bare))).unwrap();
        bare.settle();
        assert_eq!(bare.events(TenantId(0))[0].announcement.kind, kind);
        bare.settle();
        assert_eq!(bare.events(TenantId(0)).len(), 1);
    }
}

#[test]
fn nobody_is_told_of_a_misfortune_that_is_over_or_does_not_concern_it() {
    let mut bare = TestRules::with_hosts(2);
    let solo = bare.standalone("solo", at(0, 0));
    bare.submit(Command::Redeploy(solo)).unwrap();
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    let degrade = Command::DegradeHost { host: HostId(1), fails_in: None };
    bare.submit(degrade.clone()).unwrap();
    bare.submit(done(first_action(&bare))).unwrap();
    // It has come, and the host is well again before anybody looked.
    bare.submit(Command::RecoverHost(HostId(1))).unwrap();
    assert_eq!(bare.submit(Command::Tick), Ok(vec![]));
    // It was switched off while it was on its way.
    bare.submit(Command::FailHost(HostId(1))).unwrap();
    let rescue = first_action(&bare);
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    bare.submit(power(solo, PowerChange::Deallocate)).unwrap();
    let off = bare.cluster.unfinished().find(|action| action.impact == Impact::Deallocate).unwrap();
    bare.submit(done(off)).unwrap();
    bare.submit(done(rescue)).unwrap();
    bare.settle();
    assert!(bare.events(TenantId(0)).is_empty(), "{:?}", bare.events(TenantId(0)));
}

#[test]
fn a_machine_that_cannot_be_told_for_want_of_room_is_told_all_the_same() {
    let mut bare = TestRules::with_hosts(5);
    let db = bare.set("db", SetShape::AvailabilitySet);
    for number in 0..999 {
        bare.member(db, &format!("vm{number}"), at(2 + number / 500, 0)).unwrap();
    }
    bare.member(db, "late", at(0, 0)).unwrap();
    let late = bare.cluster.machine_named(db, "late").unwrap();
    bare.submit(power(late, PowerChange::Deallocate)).unwrap();
    bare.complete_all();
    bare.submit(Command::Enrol(db)).unwrap();
    for number in 0..999 {
        bare.submit(Command::Restart(MachineId(number))).unwrap();
    }
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(2)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    bare.submit(power(late, PowerChange::Start)).unwrap();
    let start = first_action(&bare);
    bare.submit(Command::DegradeHost { host: start.impact.destination().unwrap(), fails_in: None }).unwrap();
    bare.submit(done(start)).unwrap();
    bare.settle();
    assert_eq!(bare.events(db).len(), limits::EVENTS_PER_TENANT_MAX + 1);
}

#[test]
fn a_migration_that_waits_for_room_goes_on_when_a_host_joins() {
    let mut bare = TestRules::with_hosts(2);
    bare.standalone("one", at(0, 0));
    bare.standalone("two", at(1, 0));
    let hosts = vec![HostId(0), HostId(1)];
    let terms = RolloutTerms { health: HealthGate::Ignored, ..RolloutTerms::default() };
    bare.submit(Command::Rollout { work: HostWork::Migration.into(), hosts, terms }).unwrap();
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    bare.complete_all();
    assert_eq!(bare.cluster.rollouts().count(), 1);
    bare.submit(Command::AdmitHost { name: name("new"), zone: None, capacity: Size::NONE }).unwrap();
    bare.settle();
    bare.complete_all();
    assert_eq!(bare.cluster.machine(MachineId(1)).unwrap().host, HostId(2));
}

#[test]
fn a_machine_that_is_gone_does_not_hide_one_that_moves() {
    let mut bare = TestRules::with_hosts(4);
    let db = bare.set("db", SetShape::AvailabilitySet);
    for number in 0..3 {
        bare.member(db, &format!("vm{number}"), at(0, 0)).unwrap();
    }
    bare.submit(Command::Enrol(db)).unwrap();
    let policy = Policy { user_redeploy: Approve::Automatically, ..Policy::default() };
    bare.submit(Command::ChangePolicy { tenant: db, policy }).unwrap();
    bare.submit(Command::Rollout {
        work: HostWork::Migration.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    for number in 0..2 {
        bare.submit(Command::Redeploy(MachineId(number))).unwrap();
    }
    bare.submit(Command::Delete(MachineId(0))).unwrap();
    let delete = bare.cluster.unfinished().find(|action| action.impact == Impact::Delete).unwrap();
    bare.submit(done(delete)).unwrap();
    bare.advance(Duration::from_mins(15));
    assert_eq!(bare.cluster.held().map(|(_, hold)| hold).collect::<Vec<_>>(), [Hold::Moving]);
    bare.complete_all();
    assert_eq!(bare.cluster.held().count(), 0);
}

#[test]
fn a_machine_that_an_earlier_failure_moves_is_not_moved_by_the_next() {
    let mut bare = TestRules::with_hosts(2);
    let solo = bare.standalone("solo", at(0, 0));
    for command in
        [Command::FailHost(HostId(0)), Command::RecoverHost(HostId(0)), Command::FailHost(HostId(0))]
    {
        bare.submit(command).unwrap();
    }
    assert_eq!(bare.cluster.unfinished().map(|action| action.target).collect::<Vec<_>>(), [solo.into()]);
    assert_eq!(bare.ask(&power(solo, PowerChange::Start)), Err(Refusal::UnderWay(name("solo"))));
}

#[test]
fn what_waits_for_its_notice_is_not_looked_at_for_every_completion() {
    let mut bare = TestRules::with_hosts(1);
    let db = bare.set("db", SetShape::AvailabilitySet);
    bare.member(db, "one", at(0, 0)).unwrap();
    bare.member(db, "two", at(0, 0)).unwrap();
    bare.submit(Command::Enrol(db)).unwrap();
    bare.submit(Command::Restart(MachineId(0))).unwrap();
    bare.submit(power(MachineId(0), PowerChange::Stop)).unwrap();
    bare.submit(done(first_action(&bare))).unwrap();
    assert!(!bare.cluster.next_deadline().unwrap().is_due(bare.now));
}

#[test]
fn who_was_told_is_not_told_again() {
    let mut bare = TestRules::with_hosts(2);
    let db = bare.set("db", SetShape::AvailabilitySet);
    bare.member(db, "one", at(0, 0)).unwrap();
    bare.member(db, "two", at(1, 0)).unwrap();
    bare.submit(Command::Enrol(db)).unwrap();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    bare.submit(power(MachineId(0), PowerChange::Stop)).unwrap();
    bare.complete_all();
    assert_eq!(bare.events(db).len(), 1);
}

#[test]
fn what_an_operator_took_back_does_not_come_back_with_the_next_restart() {
    let mut bare = TestRules::with_hosts(2);
    let solo = bare.standalone("solo", at(0, 0));
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    bare.submit(Command::Cancel(MaintenanceId(0))).unwrap();
    bare.submit(Command::Restart(solo)).unwrap();
    bare.submit(Command::ForceStart(MaintenanceId(1))).unwrap();
    bare.complete_all();
    assert!(bare.events(TenantId(0)).is_empty());
}
