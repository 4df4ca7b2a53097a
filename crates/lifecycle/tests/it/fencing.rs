//! Fencing: machines of a failed host start elsewhere only when the old copies can no longer write.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use forewarn_lifecycle::*;

use crate::bare::{TestRules, approve_all, at, pair};

const HOST: HostId = HostId(0);
const FENCE: (Target, Impact) = (Target::Host(HOST), Impact::OnHost(HostOperation::Fence));

fn requested(bare: &TestRules) -> Vec<(Target, Impact)> {
    bare.cluster.unfinished().map(|action| (action.target, action.impact)).collect()
}

fn report(bare: &mut TestRules, target: Target, report: Report) -> Vec<Change> {
    let actions = bare.cluster.maintenances().flat_map(Maintenance::actions);
    let action = actions.into_iter().find(|action| action.target == target).unwrap();
    let changes = bare.submit(Command::Complete { maintenance: action.maintenance, target, report }).unwrap();
    bare.settle();
    changes
}

fn fence(bare: &TestRules) -> Fence {
    bare.cluster.host(HOST).unwrap().fence
}

fn holds(bare: &TestRules) -> Vec<Hold> {
    bare.cluster.held().map(|(_, hold)| hold).collect()
}

fn fail(bare: &mut TestRules) {
    bare.submit(Command::FailUnfencedHost(HOST)).unwrap();
    bare.settle();
}

/// promise: E4
#[test]
fn machines_of_a_failed_host_start_elsewhere_only_once_it_is_fenced() {
    let (mut bare, machines) = pair();
    bare.submit(Command::Brake(Brake::On)).unwrap();
    fail(&mut bare);
    assert_eq!(requested(&bare), [FENCE], "the brake does not hold the fence, and no machine is touched");
    assert_eq!(holds(&bare), [Hold::Fencing]);
    bare.submit(Command::Brake(Brake::Off)).unwrap();
    assert!(bare.events(TenantId(0)).iter().all(Event::is_scheduled));
    let held = bare.cluster.held().next().unwrap().0;
    assert!(matches!(bare.ask(&Command::ForceStart(held)), Err(Refusal::NotFenced(_))));
    approve_all(&mut bare);
    bare.advance(Duration::from_hours(1));
    assert_eq!(requested(&bare), [FENCE]);
    report(&mut bare, Target::Host(HOST), Report::Done);
    assert_eq!(fence(&bare), Fence::Confirmed);
    let started = machines.map(|machine| (machine.into(), Impact::Reboot { to: Some(HostId(1)) }));
    assert_eq!(requested(&bare), started);
    bare.complete_all();
    assert!(bare.cluster.host(HOST).unwrap().machines().is_empty());
    assert_eq!(bare.cluster.maintenances().count(), 0);
}

/// promise: E4
#[test]
fn a_fence_that_failed_releases_nothing_and_an_operator_orders_it_again_or_confirms_it() {
    let (mut bare, _) = pair();
    fail(&mut bare);
    let first = fence(&bare).order().unwrap();
    assert_eq!(bare.ask(&Command::FailUnfencedHost(HOST)), Ok(vec![]), "one order is enough");
    report(&mut bare, Target::Host(HOST), Report::Failed);
    assert_eq!((fence(&bare), requested(&bare)), (Fence::Awaited { order: None }, vec![]));
    assert_eq!(bare.cluster.host(HOST).unwrap().attention, HostAttention::Needed);
    assert_eq!(holds(&bare), [Hold::Fencing]);
    for again in [Command::RetryHost(HOST), Command::FailUnfencedHost(HOST)] {
        bare.submit(again).unwrap();
        assert_eq!(requested(&bare), [FENCE]);
        assert!(
            fence(&bare).order().unwrap() > first,
            "a failed order is final: the next one has another name"
        );
        let done = Command::CompleteHost { host: HOST, report: Report::Done };
        assert!(matches!(bare.ask(&done), Err(Refusal::NotFenced(_))), "`host done` is not enough");
        bare.submit(Command::CompleteHost { host: HOST, report: Report::Failed }).unwrap();
        bare.settle();
        assert_eq!(requested(&bare), []);
    }
    bare.submit(Command::FailFencedHost(HOST)).unwrap();
    bare.settle();
    assert_eq!((fence(&bare), requested(&bare).len()), (Fence::Confirmed, 2));
    assert_eq!(bare.ask(&Command::FailUnfencedHost(HOST)), Ok(vec![]), "it stays confirmed");
}

/// promise: E4
#[test]
fn the_word_of_an_operator_ends_an_order_to_fence_in_progress() {
    let (mut bare, _) = pair();
    fail(&mut bare);
    bare.submit(Command::FailFencedHost(HOST)).unwrap();
    bare.settle();
    assert_eq!(fence(&bare), Fence::Confirmed);
    assert!(!requested(&bare).contains(&FENCE), "it is not repeated");
    assert_eq!(requested(&bare).len(), 2);
    let (mut bare, _) = pair();
    let changes = bare.submit(Command::FailFencedHost(HOST)).unwrap();
    let starts = changes.iter().filter(|change| matches!(change, Change::Started { .. })).count();
    assert_eq!((starts, requested(&bare).len()), (1, 2), "a host that is known to be off is not fenced");
}

/// promise: E4
#[test]
fn machines_of_a_host_that_recovers_before_its_fence_stay_as_they_are() {
    let (mut bare, machines) = pair();
    fail(&mut bare);
    assert!(matches!(bare.ask(&Command::RecoverHost(HOST)), Err(Refusal::BeingFenced(_))));
    report(&mut bare, Target::Host(HOST), Report::Failed);
    let changes = bare.submit(Command::RecoverHost(HOST)).unwrap();
    let withdrawn =
        |change: &Change| matches!(change, Change::Withdrawn { why: Withdrawal::HostRecovered, .. });
    assert!(changes.iter().any(withdrawn));
    bare.settle();
    assert_eq!(bare.cluster.maintenances().count(), 0);
    assert_eq!((fence(&bare), bare.events(TenantId(0)).len()), (Fence::Unneeded, 0));
    for machine in machines {
        let machine = bare.cluster.machine(machine).unwrap();
        assert_eq!((machine.host, machine.boots), (HOST, 1));
    }
}

/// promise: E4
#[test]
fn owners_cannot_have_a_second_copy_either_but_may_stop_and_delete() {
    let (mut bare, [first, second]) = pair();
    let third = bare.standalone("db", at(0, 0));
    bare.submit(Command::ChangePower { machine: third, change: PowerChange::Deallocate }).unwrap();
    bare.complete_all();
    fail(&mut bare);
    bare.submit(Command::Redeploy(first)).unwrap();
    approve_all(&mut bare);
    bare.settle();
    assert_eq!((requested(&bare), holds(&bare)), (vec![FENCE], vec![Hold::Fencing; 2]));
    let start = |machine| Command::ChangePower { machine, change: PowerChange::Start };
    assert!(matches!(bare.ask(&start(third)), Err(Refusal::NotFenced(_))));
    bare.submit(Command::ChangePower { machine: second, change: PowerChange::Deallocate }).unwrap();
    report(&mut bare, second.into(), Report::Done);
    assert!(matches!(bare.ask(&start(second)), Err(Refusal::NotFenced(_))));
    bare.submit(Command::Delete(second)).unwrap();
    report(&mut bare, second.into(), Report::Done);
    report(&mut bare, Target::Host(HOST), Report::Done);
    assert_eq!(requested(&bare).len(), 1, "the failure first, the redeploy after it");
    bare.submit(start(third)).unwrap();
    bare.complete_all();
    assert_eq!(bare.cluster.machine(third).unwrap().host, HostId(1));
}

/// promise: E4
#[test]
fn a_move_that_was_in_progress_is_not_requested_again_before_the_fence() {
    let (mut bare, [first, second]) = pair();
    bare.submit(Command::Redeploy(first)).unwrap();
    approve_all(&mut bare);
    bare.settle();
    let redeploy = (Target::Machine(first), Impact::Redeploy { to: Some(HostId(1)) });
    assert_eq!(requested(&bare), [redeploy]);
    fail(&mut bare);
    assert_eq!(requested(&bare), [FENCE], "neither after a restart of the server");
    let work = bare.cluster.pending_of(first).find(|work| work.action(first).is_some()).unwrap().plan.id;
    assert!(matches!(bare.ask(&Command::Retry(work)), Err(Refusal::NotFenced(_))));
    let named: Vec<_> =
        bare.events(TenantId(0)).iter().map(|event| event.announcement.resources.len()).collect();
    assert_eq!(named, [1, 1], "the failure concerns the other machine");
    let changes = bare.ask(&Command::FailFencedHost(HOST)).unwrap();
    let mut effects = Vec::new();
    changes.iter().for_each(|change| effects.extend(bare.apply(change)));
    let again = |effect: &Effect| matches!(effect, Effect::Perform(action) if (action.target, action.impact) == redeploy);
    assert_eq!(effects.iter().filter(|effect| again(effect)).count(), 1, "then it goes on");
    bare.settle();
    assert_eq!(requested(&bare), [redeploy, (second.into(), Impact::Reboot { to: Some(HostId(1)) })]);
    report(&mut bare, first.into(), Report::Failed);
    let restart = (Target::Machine(first), Impact::Reboot { to: Some(HostId(1)) });
    assert!(requested(&bare).contains(&restart), "a move that failed leaves a machine of a failed host");
}

/// promise: E4
#[test]
fn a_host_is_fenced_again_when_a_machine_arrives_after_its_fence() {
    let mut bare = TestRules::with_hosts(3);
    let late = bare.standalone("late", at(2, 0));
    bare.submit(Command::Redeploy(late)).unwrap();
    assert_eq!(requested(&bare), [(late.into(), Impact::Redeploy { to: Some(HOST) })]);
    bare.submit(Command::FailFencedHost(HOST)).unwrap();
    report(&mut bare, late.into(), Report::Done);
    assert_eq!((requested(&bare), holds(&bare)), (vec![FENCE], vec![Hold::Fencing]));
    report(&mut bare, Target::Host(HOST), Report::Done);
    assert_eq!(requested(&bare), [(late.into(), Impact::Reboot { to: Some(HostId(1)) })]);
}

/// promise: E4
#[test]
fn work_on_a_failed_host_is_not_requested_again_before_the_host_recovers() {
    let (mut bare, _) = pair();
    let work = HostTask::from(HostWork::Restart).with_step(None);
    bare.submit(Command::Rollout { work, hosts: vec![HOST], terms: RolloutTerms::default() }).unwrap();
    approve_all(&mut bare);
    bare.settle();
    report(&mut bare, MachineId(0).into(), Report::Done);
    report(&mut bare, MachineId(1).into(), Report::Done);
    let reboot = (Target::Host(HOST), Impact::OnHost(HostOperation::Reboot));
    assert_eq!(requested(&bare), [reboot]);
    fail(&mut bare);
    assert_eq!(requested(&bare), [FENCE], "a restart could undo the fence");
    bare.submit(Command::FailFencedHost(HOST)).unwrap();
    bare.settle();
    assert!(!requested(&bare).contains(&reboot));
    assert!(matches!(bare.ask(&Command::RetryHost(HOST)), Err(Refusal::HostFailed(_))));
    bare.submit(Command::CompleteHost { host: HOST, report: Report::Failed }).unwrap();
    bare.complete_all();
    assert!(bare.cluster.host(HOST).unwrap().machines().is_empty());
}

/// promise: E4
#[test]
fn a_machine_without_another_host_waits_for_the_fence_like_the_others() {
    let (mut bare, solo) = TestRules::solo();
    fail(&mut bare);
    assert_eq!((requested(&bare), holds(&bare)), (vec![FENCE], vec![Hold::Fencing]));
    assert!(matches!(bare.ask(&Command::RemoveHost(HOST)), Err(Refusal::HostInUse { .. })));
    report(&mut bare, Target::Host(HOST), Report::Done);
    assert_eq!(requested(&bare), [(solo.into(), Impact::Reboot { to: None })]);
    let mut empty = TestRules::with_hosts(1);
    fail(&mut empty);
    assert!(matches!(empty.ask(&Command::RemoveHost(HOST)), Err(Refusal::BeingFenced(_))));
}
