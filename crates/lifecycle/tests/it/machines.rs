//! Machines that have left, are off, or are on their way: what is done to them, and what waits for them.

#![allow(clippy::wildcard_enum_match_arm, clippy::unwrap_used, reason = "test support")]

use crate::bare::{TestRules, actions, approve_all, at, name, pair};
use forewarn_lifecycle::*;

#[test]
fn nothing_is_done_to_a_machine_that_has_left() {
    let (mut bare, [one, two]) = pair();
    bare.submit(Command::Redeploy(one)).unwrap();
    approve_all(&mut bare);
    bare.submit(Command::Rollout {
        work: HostWork::Restart.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    bare.complete_all();
    assert_eq!(bare.cluster.machine(one).unwrap().host, HostId(1));
    assert_eq!(actions(&approve_all(&mut bare)), [(two, Impact::Reboot { to: None })]);
    assert_eq!(bare.events(TenantId(0))[0].announcement.resources.len(), 2);
}

#[test]
fn nothing_is_done_to_a_machine_that_was_deallocated_meanwhile() {
    let (mut bare, [one, two]) = pair();
    bare.submit(Command::Rollout {
        work: HostWork::Restart.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    bare.submit(Command::ChangePower { machine: one, change: PowerChange::Deallocate }).unwrap();
    bare.complete_all();
    assert_eq!(actions(&approve_all(&mut bare)), [(two, Impact::Reboot { to: None })]);
}

#[test]
fn a_machine_off_its_host_is_not_part_of_new_work() {
    let (mut bare, [one, two]) = pair();
    bare.submit(Command::ChangePower { machine: one, change: PowerChange::Deallocate }).unwrap();
    bare.complete_all();
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    assert_eq!(bare.events(TenantId(0))[0].announcement.resources, [name("web_1")].into());
    bare.submit(Command::CancelRollout(RolloutId(0))).unwrap();
    // A machine on its way to a host is not part of its work either.
    bare.submit(Command::Redeploy(two)).unwrap();
    approve_all(&mut bare);
    assert_eq!(bare.cluster.host(HostId(1)).unwrap().machines(), [two]);
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(1)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    assert_eq!(bare.events(TenantId(0)).len(), 1);
}

#[test]
fn an_action_names_the_boot_that_must_still_be_current() {
    let (mut bare, solo) = TestRules::solo();
    for boots in 1..4 {
        bare.submit(Command::Restart(solo)).unwrap();
        approve_all(&mut bare);
        let action = bare.cluster.unfinished().next().unwrap();
        assert_eq!(
            (action.target, action.boots, action.impact),
            (solo.into(), boots, Impact::Reboot { to: None })
        );
        bare.complete_all();
        assert_eq!(bare.cluster.unfinished().count(), 0);
    }
}

#[test]
fn a_machine_that_is_being_moved_is_not_forced_to_move() {
    let mut bare = TestRules::with_hosts(3);
    let solo = bare.standalone("solo", at(0, 0));
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    bare.submit(Command::DegradeHost { host: HostId(0), fails_in: None }).unwrap();
    bare.submit(Command::Redeploy(solo)).unwrap();
    bare.submit(Command::ForceStart(MaintenanceId(1))).unwrap();
    assert_eq!(bare.ask(&Command::ForceStart(MaintenanceId(0))), Err(Refusal::UnderWay(name("solo"))));
    // A failure does not ask.
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    assert_eq!(bare.cluster.unfinished().count(), 2);
}

#[test]
fn a_machine_that_stops_while_it_is_deallocated_stays_so() {
    let mut bare = TestRules::with_hosts(1);
    let (priority, profile, policy) =
        (Priority::Spot(EvictionPolicy::Deallocate), Profile::default(), Policy::default());
    let (name, placement) = (name("cheap"), at(0, 0));
    bare.submit(Command::AdmitStandalone { name, placement, priority, profile, policy }).unwrap();
    let machine = MachineId(0);
    bare.submit(Command::ChangePower { machine, change: PowerChange::Stop }).unwrap();
    bare.submit(Command::Evict(machine)).unwrap();
    let done = |id| Command::Complete {
        maintenance: MaintenanceId(id),
        target: machine.into(),
        report: Report::Done,
    };
    bare.submit(done(1)).unwrap();
    bare.submit(done(0)).unwrap();
    assert_eq!(bare.cluster.machine(machine).unwrap().power, Power::Deallocated);
}

#[test]
fn a_machine_that_is_being_started_is_waited_for() {
    let (mut bare, [one, two]) = pair();
    let power = |machine, change| Command::ChangePower { machine, change };
    bare.submit(power(one, PowerChange::Deallocate)).unwrap();
    bare.complete_all();
    let update = Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    };
    bare.submit(power(one, PowerChange::Start)).unwrap();
    bare.submit(update.clone()).unwrap();
    assert!(bare.events(TenantId(0)).is_empty());
    bare.complete_all();
    assert_eq!(bare.events(TenantId(0))[0].announcement.resources, [name("web_0"), name("web_1")].into());
    bare.submit(Command::CancelRollout(RolloutId(0))).unwrap();
    // One that stays off, or is merely being stopped, is not.
    bare.submit(power(one, PowerChange::Deallocate)).unwrap();
    bare.complete_all();
    bare.submit(power(two, PowerChange::Stop)).unwrap();
    bare.submit(update).unwrap();
    assert_eq!(bare.events(TenantId(0)).len(), 1);
}

#[test]
fn a_migration_waits_for_a_machine_that_is_being_moved_and_other_work_does_not() {
    for (work, held) in [(HostWork::Migration, true), (HostWork::Update, false)] {
        let (mut bare, [one, _]) = pair();
        bare.submit(Command::Redeploy(one)).unwrap();
        approve_all(&mut bare);
        bare.submit(Command::Rollout {
            work: work.into(),
            hosts: vec![HostId(0)],
            terms: RolloutTerms::default(),
        })
        .unwrap();
        approve_all(&mut bare);
        let moving = bare.cluster.held().any(|(_, hold)| hold == Hold::Moving);
        assert_eq!((moving, bare.cluster.unfinished().count()), (held, if held { 1 } else { 3 }), "{work:?}");
        bare.complete_all();
        assert_eq!(bare.cluster.held().count(), 0);
    }
}

#[test]
fn a_machine_is_not_started_where_work_is_announced_that_it_was_not_told_of() {
    let (mut bare, [one, _]) = pair();
    let power = |change| Command::ChangePower { machine: one, change };
    bare.submit(power(PowerChange::Deallocate)).unwrap();
    bare.complete_all();
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    })
    .unwrap();
    let started = bare.submit(power(PowerChange::Start)).unwrap();
    assert_eq!(actions(&started), [(one, Impact::Start { to: Some(HostId(1)) })]);
}
