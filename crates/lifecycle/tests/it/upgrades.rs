//! How a change of the model reaches instances: when they are upgraded, at once, or batch by batch.

#![allow(clippy::unwrap_used, reason = "test support")]

use std::time::Duration;

use crate::bare::{TestRules, at};
use forewarn_lifecycle::*;

const SET: ScaleSetId = ScaleSetId(0);
const HOUR: Duration = Duration::from_hours(1);

fn rolling(percent: u8, pause: Duration) -> UpgradePolicy {
    UpgradePolicy::Rolling { batch: Percent::new(percent).expect("a share"), pause }
}

fn notice(seconds: u64) -> Profile {
    Profile { terminate: TerminateNotice::from_seconds(seconds), ..Profile::default() }
}

/// A scale set with that many instances, which get notice of their deletion.
fn with_instances(count: u32, upgrade: UpgradePolicy) -> TestRules {
    let mut bare = TestRules::with_hosts(1);
    bare.scale_set("web", Orchestration::Uniform, notice(300));
    for _ in 0..count {
        bare.submit(Command::AdmitInstance { scale_set: SET, placement: at(0, 0), number: None }).unwrap();
    }
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    change(&mut bare, upgrade);
    bare
}

fn change(bare: &mut TestRules, upgrade: UpgradePolicy) {
    bare.submit(Command::ChangeUpgradePolicy { scale_set: SET, upgrade }).unwrap();
    bare.settle();
}

fn model(bare: &mut TestRules, seconds: u64) {
    bare.submit(Command::ChangeModel { scale_set: SET, model: notice(seconds) }).unwrap();
    bare.settle();
}

/// The versions that the instances have.
fn versions(bare: &TestRules) -> Vec<u32> {
    bare.cluster.machines().map(|(_, machine)| machine.model_version).collect()
}

fn set(bare: &TestRules) -> &ScaleSet {
    bare.cluster.scale_set(SET).unwrap()
}

#[test]
fn a_model_reaches_instances_as_the_policy_of_the_moment_says() {
    let mut bare = with_instances(2, UpgradePolicy::Manual);
    model(&mut bare, 600);
    assert_eq!(versions(&bare), [1, 1]);
    change(&mut bare, UpgradePolicy::Automatic);
    assert_eq!(versions(&bare), [2, 2], "what they were owed they get");
    model(&mut bare, 700);
    assert_eq!(versions(&bare), [3, 3]);
    assert!(bare.cluster.machines().all(|(_, machine)| machine.profile == notice(700)));
    change(&mut bare, UpgradePolicy::Manual);
    model(&mut bare, 800);
    assert_eq!(versions(&bare), [3, 3]);
    assert_eq!(bare.cluster.next_deadline().map(|deadline| deadline.is_due(bare.now)), Some(false));
}

/// promise: T5
#[test]
fn batches_follow_each_other_in_the_order_of_numbers_with_a_pause_between() {
    let mut bare = with_instances(5, rolling(30, HOUR));
    model(&mut bare, 600);
    assert_eq!(versions(&bare), [2, 2, 1, 1, 1], "30 % of 5, rounded up");
    let begun = bare.now;
    let due = Now { wall: begun.wall.plus(HOUR), steady: begun.steady.plus(HOUR) };
    assert_eq!(set(&bare).next_batch(), Some(due));
    bare.advance(HOUR - Duration::from_millis(1));
    assert_eq!(versions(&bare), [2, 2, 1, 1, 1]);
    bare.advance(Duration::from_millis(1));
    assert_eq!(versions(&bare), [2, 2, 2, 2, 1]);
    bare.advance(HOUR);
    assert_eq!((versions(&bare), set(&bare).next_batch()), (vec![2; 5], None));
    // It is over: another one begins at once.
    model(&mut bare, 700);
    assert_eq!(versions(&bare), [3, 3, 2, 2, 2]);
}

/// promise: T5
#[test]
fn another_model_begins_anew_when_the_pause_is_over() {
    let mut bare = with_instances(4, rolling(25, HOUR));
    model(&mut bare, 600);
    bare.advance(HOUR);
    assert_eq!(versions(&bare), [2, 2, 1, 1]);
    bare.advance(HOUR / 2);
    bare.submit(Command::ReviseModel(SET)).unwrap();
    bare.settle();
    assert_eq!((versions(&bare), set(&bare).model_version), (vec![2, 2, 1, 1], 3), "it rests");
    let mut seen = Vec::new();
    for _ in 0..4 {
        bare.advance(HOUR);
        seen.push(versions(&bare));
    }
    assert_eq!(
        seen,
        [[3, 2, 1, 1], [3, 3, 1, 1], [3, 3, 3, 1], [3, 3, 3, 3]],
        "no instance gets model 2 any more"
    );
    assert_eq!(set(&bare).rolling, None);
}

/// promise: T5
#[test]
fn a_revised_model_is_another_one_though_the_rules_see_no_difference() {
    for (upgrade, expected) in [
        (UpgradePolicy::Manual, [1, 1]),
        (UpgradePolicy::Automatic, [2, 2]),
        (rolling(50, HOUR), [2, 1]),
        (rolling(50, Duration::ZERO), [2, 2]),
    ] {
        let mut bare = with_instances(2, upgrade);
        bare.submit(Command::ReviseModel(SET)).unwrap();
        bare.settle();
        assert_eq!((versions(&bare), set(&bare).model_version), (expected.to_vec(), 2), "{upgrade:?}");
        assert!(bare.cluster.machines().all(|(_, machine)| machine.profile == notice(300)));
    }
    let bare = TestRules::new();
    assert_eq!(bare.ask(&Command::ReviseModel(SET)), Err(Refusal::NoSuchScaleSet));
}

/// promise: T5
#[test]
fn a_rolling_upgrade_is_stopped_finished_or_paced_by_another_policy() {
    let upgrading = || {
        let mut bare = with_instances(4, rolling(25, HOUR));
        model(&mut bare, 600);
        bare
    };
    let mut stopped = upgrading();
    change(&mut stopped, UpgradePolicy::Manual);
    assert_eq!((stopped.cluster.scale_set(SET).unwrap().rolling, versions(&stopped)[1]), (None, 1));
    stopped.advance(HOUR);
    assert_eq!(versions(&stopped), [2, 1, 1, 1]);
    change(&mut stopped, rolling(50, HOUR));
    assert_eq!(versions(&stopped), [2, 2, 2, 1], "it goes on where it was stopped");

    let mut finished = upgrading();
    change(&mut finished, UpgradePolicy::Automatic);
    assert_eq!((versions(&finished), set(&finished).rolling), (vec![2; 4], None));

    let mut faster = upgrading();
    faster.advance(HOUR / 2);
    change(&mut faster, rolling(50, HOUR / 2));
    assert_eq!(versions(&faster), [2, 2, 2, 1], "the pause is over");
    let mut slower = upgrading();
    change(&mut slower, rolling(25, 2 * HOUR));
    slower.advance(HOUR);
    assert_eq!(versions(&slower), [2, 1, 1, 1]);
    slower.advance(HOUR);
    assert_eq!(versions(&slower), [2, 2, 1, 1]);
}

/// promise: T5
#[test]
fn who_is_leaving_is_passed_over_and_who_stays_after_all_is_not_forgotten() {
    let mut bare = with_instances(3, rolling(34, HOUR));
    bare.submit(Command::Delete(MachineId(0))).unwrap();
    model(&mut bare, 600);
    assert_eq!(versions(&bare), [1, 2, 1], "34 % of the two that stay");
    bare.advance(HOUR);
    bare.complete_all();
    assert_eq!((versions(&bare), set(&bare).rolling), (vec![2, 2], None), "it is gone");

    bare.submit(Command::Delete(MachineId(1))).unwrap();
    model(&mut bare, 700);
    assert_eq!((versions(&bare), set(&bare).rolling), (vec![2, 3], None));
    let work = bare.cluster.maintenances().next().unwrap().plan.id;
    bare.submit(Command::Cancel(work)).unwrap();
    bare.advance(HOUR);
    assert_eq!((versions(&bare), set(&bare).rolling), (vec![3, 3], None));
}

#[test]
fn an_upgrade_that_nobody_waits_for_is_over_with_its_pause_and_leaves_none_behind() {
    let mut bare = with_instances(2, rolling(50, HOUR));
    model(&mut bare, 600);
    bare.submit(Command::Delete(MachineId(1))).unwrap();
    crate::bare::approve_all(&mut bare);
    bare.complete_all();
    assert_eq!((versions(&bare), set(&bare).rolling.is_some()), (vec![2], true), "it rests");
    bare.advance(HOUR);
    assert_eq!(set(&bare).rolling, None);
    change(&mut bare, rolling(50, 12 * HOUR));
    model(&mut bare, 700);
    assert_eq!(versions(&bare), [3], "the longer pause has nothing to follow");
}

#[test]
fn who_comes_or_is_upgraded_meanwhile_has_the_latest_model() {
    let mut bare = with_instances(3, rolling(33, HOUR));
    model(&mut bare, 600);
    bare.submit(Command::AdmitInstance { scale_set: SET, placement: at(0, 0), number: None }).unwrap();
    bare.submit(Command::UpgradeInstance(MachineId(2))).unwrap();
    assert_eq!(versions(&bare), [2, 1, 2, 2]);
    bare.advance(HOUR);
    assert_eq!((versions(&bare), set(&bare).rolling), (vec![2; 4], None));
}

#[test]
fn a_pause_is_at_most_seven_days() {
    let week = Duration::from_hours(7 * 24);
    let mut bare = with_instances(1, rolling(100, week));
    let longer = rolling(1, week + Duration::from_secs(1));
    let asked = Command::ChangeUpgradePolicy { scale_set: SET, upgrade: longer };
    assert_eq!(bare.ask(&asked), Err(Refusal::PauseTooLong));
    let new = Command::AdmitScaleSet {
        name: crate::bare::name("db"),
        orchestration: Orchestration::Flexible,
        priority: Priority::Regular,
        upgrade: longer,
        model: Profile::default(),
        policy: Policy::default(),
        size: Size::NONE,
    };
    assert_eq!(bare.submit(new), Err(Refusal::PauseTooLong));
}

#[test]
fn a_scale_set_that_is_gone_is_not_waited_for() {
    let mut bare = with_instances(2, rolling(50, HOUR));
    bare.submit(Command::ReviseModel(SET)).unwrap();
    assert!(set(&bare).next_batch().is_some());
    for machine in [0, 1] {
        bare.submit(Command::Delete(MachineId(machine))).unwrap();
    }
    crate::bare::approve_all(&mut bare);
    bare.complete_all();
    bare.submit(Command::RemoveScaleSet(SET)).unwrap();
    assert_eq!(bare.cluster.next_deadline(), None);
}
