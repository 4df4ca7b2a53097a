//! The step on a host: machines step aside, the step, machines return.

use crate::bare::{TestRules, at};
use forewarn_lifecycle::*;

const HOST: HostId = HostId(0);

/// Two hosts with two machines of unenrolled tenants each: 0 and 1 on the first, 2 and 3 on the second.
fn four() -> TestRules {
    let mut bare = TestRules::with_hosts(3);
    for (number, host) in [0, 0, 1, 1].into_iter().enumerate() {
        bare.standalone(&format!("vm{number}"), at(host, 0));
    }
    bare
}

fn start(bare: &mut TestRules, kind: HostWork, hosts: &[u32]) {
    let work = HostTask::from(kind).with_step(WorkText::new("kernel 6.12.9"));
    let hosts = hosts.iter().copied().map(HostId).collect();
    bare.submit(Command::Rollout { work, hosts, terms: RolloutTerms::default() }).unwrap();
}

fn targets(bare: &TestRules) -> Vec<(Target, Impact)> {
    bare.cluster.unfinished().map(|action| (action.target, action.impact)).collect()
}

fn report(bare: &mut TestRules, target: Target, report: Report) -> Vec<Change> {
    bare.submit(Command::Complete { maintenance: MaintenanceId(0), target, report }).unwrap()
}

fn done(bare: &mut TestRules, target: Target) {
    assert_ne!(report(bare, target, Report::Done), [], "{target:?}");
}

/// Ends the unfinished action on a target, of whatever work.
fn finish(bare: &mut TestRules, target: Target) {
    let action = bare.cluster.unfinished().find(|action| action.target == target).unwrap();
    bare.submit(Command::Complete { maintenance: action.maintenance, target, report: Report::Done }).unwrap();
}

fn machine(number: u32) -> Target {
    Target::Machine(MachineId(number))
}

fn returning(number: u32) -> Target {
    Target::Returning(MachineId(number))
}

fn result_of(bare: &TestRules, host: HostId) -> Option<HostResult> {
    let rollout = bare.cluster.rollout(RolloutId(0));
    let rollout = rollout.or(bare.cluster.ended_rollout(RolloutId(0)).map(|ended| &ended.rollout));
    rollout.unwrap().past.get(&host).copied()
}

const PAUSE: Impact = Impact::StepAside(Aside::Paused);
const STOP: Impact = Impact::StepAside(Aside::Stopped);
const RESUME: Impact = Impact::Return(Aside::Paused);
const START: Impact = Impact::Return(Aside::Stopped);

/// promise: E1
#[test]
fn an_update_runs_on_each_host_while_its_machines_are_paused() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0, 1]);
    assert_eq!(targets(&bare), [0, 1, 2, 3].map(|number| (machine(number), PAUSE)));
    done(&mut bare, machine(0));
    done(&mut bare, machine(2));
    done(&mut bare, machine(3));
    // The second host does not wait for the first.
    let step = Impact::OnHost(HostOperation::Update);
    assert_eq!(targets(&bare), [(machine(1), PAUSE), (Target::Host(HostId(1)), step)]);
    done(&mut bare, Target::Host(HostId(1)));
    done(&mut bare, machine(1));
    let both = [(returning(2), RESUME), (returning(3), RESUME), (Target::Host(HOST), step)];
    assert_eq!(targets(&bare), both);
    bare.complete_all();
    assert_eq!(bare.cluster.maintenances().count(), 0);
    assert_eq!([HOST, HostId(1)].map(|host| result_of(&bare, host)), [Some(HostResult::Done); 2]);
    assert!(bare.cluster.machines().all(|(_, machine)| machine.boots == 1));
}

/// promise: E1
#[test]
fn a_host_restarts_while_its_machines_are_stopped() {
    let mut bare = TestRules::with_hosts(1);
    let tenant = bare.set("web", SetShape::AvailabilitySet);
    bare.member(tenant, "a", at(0, 0)).unwrap();
    bare.member(tenant, "b", at(0, 0)).unwrap();
    bare.submit(Command::Enrol(tenant)).unwrap();
    start(&mut bare, HostWork::Restart, &[0]);
    bare.submit(Command::ForceStart(MaintenanceId(0))).unwrap();
    assert_eq!(targets(&bare), [0, 1].map(|number| (machine(number), STOP)));
    done(&mut bare, machine(0));
    done(&mut bare, machine(1));
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Reboot))]);
    done(&mut bare, Target::Host(HOST));
    assert_eq!(targets(&bare), [0, 1].map(|number| (returning(number), START)));
    done(&mut bare, returning(0));
    assert_eq!(bare.events(tenant).len(), 1, "one machine does not run yet");
    done(&mut bare, returning(1));
    assert_eq!(bare.events(tenant).len(), 0);
    assert!(
        bare.cluster.machines().all(|(_, machine)| (machine.boots, machine.power) == (2, Power::Running))
    );
}

#[test]
fn the_part_of_a_tenant_ends_if_none_of_its_machines_aside_returns() {
    let mut bare = TestRules::with_hosts(1);
    let tenant = bare.set("web", SetShape::AvailabilitySet);
    bare.member(tenant, "a", at(0, 0)).unwrap();
    bare.member(tenant, "b", at(0, 0)).unwrap();
    start(&mut bare, HostWork::Restart, &[0]);
    done(&mut bare, machine(0));
    done(&mut bare, machine(1));
    let maintenance = MaintenanceId(0);
    let action = |target, impact| Action { maintenance, target, impact, boots: 0 };
    let released = |actions: &[Action]| bare.cluster.parts_released(maintenance, HOST, actions);
    assert_eq!(released(&[]), [tenant].into());
    assert_eq!(released(&[action(returning(0), START)]), [].into(), "one of the two returns");
    let step = Impact::OnHost(HostOperation::Reboot);
    assert_eq!(released(&[action(Target::Host(HOST), step)]), [].into(), "the step begins again");
}

/// promise: E1
#[test]
fn a_host_without_running_machines_has_its_step_at_once() {
    let mut bare = four();
    bare.submit(Command::ChangePower { machine: MachineId(2), change: PowerChange::Stop }).unwrap();
    bare.submit(Command::ChangePower { machine: MachineId(3), change: PowerChange::Stop }).unwrap();
    bare.complete_all();
    let works = bare.cluster.maintenances().count();
    start(&mut bare, HostWork::Restart, &[1, 2]);
    let step = Impact::OnHost(HostOperation::Reboot);
    let both = [(Target::Host(HostId(1)), step), (Target::Host(HostId(2)), step)];
    assert_eq!((works, targets(&bare)), (0, both.to_vec()));
    bare.complete_all();
    assert_eq!(bare.cluster.maintenances().count(), 0);
    assert_eq!(result_of(&bare, HostId(2)), Some(HostResult::Done));
    let off = [2, 3].map(|number| bare.cluster.machine(MachineId(number)).unwrap());
    assert!(off.iter().all(|machine| (machine.boots, machine.power) == (1, Power::Stopped)));
}

/// promise: E1
#[test]
fn a_machine_that_is_started_during_the_step_does_not_return() {
    let mut bare = four();
    bare.submit(Command::ChangePower { machine: MachineId(0), change: PowerChange::Stop }).unwrap();
    bare.complete_all();
    start(&mut bare, HostWork::Update, &[0]);
    finish(&mut bare, machine(1));
    bare.submit(Command::ChangePower { machine: MachineId(0), change: PowerChange::Start }).unwrap();
    finish(&mut bare, machine(0));
    finish(&mut bare, Target::Host(HOST));
    assert_eq!(targets(&bare), [(returning(1), RESUME)]);
    bare.complete_all();
    assert_eq!(bare.cluster.maintenances().count(), 0);
}

/// promise: R2
#[test]
fn there_is_no_step_if_a_machine_cannot_step_aside() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0]);
    done(&mut bare, machine(0));
    report(&mut bare, machine(1), Report::Failed);
    assert_eq!(targets(&bare), [(returning(0), RESUME)]);
    bare.complete_all();
    assert_eq!(result_of(&bare, HOST), Some(HostResult::Failed));
    // The other order: the last one steps aside, and returns.
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0]);
    report(&mut bare, machine(1), Report::Failed);
    done(&mut bare, machine(0));
    assert_eq!(targets(&bare), [(returning(0), RESUME)]);
    bare.complete_all();
    assert_eq!(bare.cluster.maintenances().count(), 0);
}

/// promise: R2
#[test]
fn machines_return_after_a_failed_step_and_the_rollout_counts_it() {
    let mut bare = four();
    start(&mut bare, HostWork::Restart, &[0]);
    done(&mut bare, machine(0));
    done(&mut bare, machine(1));
    report(&mut bare, Target::Host(HOST), Report::Failed);
    assert_eq!(targets(&bare), [0, 1].map(|number| (returning(number), START)));
    bare.complete_all();
    assert_eq!(result_of(&bare, HOST), Some(HostResult::Failed));
    assert_eq!(bare.cluster.ended_rollout(RolloutId(0)).unwrap().rollout.failures, 1);
}

/// promise: E1
#[test]
fn a_host_is_worked_on_after_its_machines_have_left() {
    let mut bare = four();
    start(&mut bare, HostWork::Migration, &[0]);
    done(&mut bare, machine(0));
    assert_eq!(targets(&bare).len(), 1, "one machine is still there");
    done(&mut bare, machine(1));
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Update))]);
    done(&mut bare, Target::Host(HOST));
    assert_eq!(bare.cluster.maintenances().count(), 0);
    assert!(bare.cluster.host(HOST).unwrap().machines().is_empty());
}

/// promise: E1
#[test]
fn a_late_report_of_one_phase_does_not_end_another() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0]);
    [machine(0), machine(1), Target::Host(HOST)].into_iter().for_each(|target| done(&mut bare, target));
    for late in [machine(0), Target::Host(HOST)] {
        assert_eq!(report(&mut bare, late, Report::Done), []);
        assert_eq!(report(&mut bare, late, Report::Failed), []);
    }
    assert_eq!(targets(&bare).len(), 2);
}

/// promise: E1
#[test]
fn a_machine_that_left_by_other_work_does_not_return() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0]);
    done(&mut bare, machine(0));
    done(&mut bare, machine(1));
    bare.submit(Command::Delete(MachineId(0))).unwrap();
    bare.submit(Command::Complete {
        maintenance: MaintenanceId(1),
        target: machine(0),
        report: Report::Done,
    })
    .unwrap();
    let to = HostId(2);
    let moved = bare.submit(Command::Move { machine: MachineId(1), to, planned: PlannedWork::GivesWay });
    assert!(matches!(moved, Err(Refusal::UnderWay(_))), "{moved:?}");
    done(&mut bare, Target::Host(HOST));
    assert_eq!(targets(&bare), [(returning(1), RESUME)]);
    bare.complete_all();
    assert_eq!(bare.cluster.maintenances().count(), 0);
}

/// promise: E1
#[test]
fn each_phase_has_its_own_action_name_and_that_of_a_machine_stays() {
    let bare = four();
    let name = |target| bare.cluster.action_name(MaintenanceId(5), target);
    let own = ActionName::of(&bare.cluster.seed(), MaintenanceId(5), MachineId(0));
    assert_eq!(name(machine(0)), own);
    assert_ne!(name(returning(0)), own);
    assert_ne!(name(Target::Host(HOST)), own);
    assert_ne!(name(Target::Host(HOST)), name(returning(0)));
}

#[test]
fn a_host_whose_only_machine_goes_before_the_start_still_has_its_step() {
    let mut bare = TestRules::with_hosts(1);
    let solo = bare.standalone("solo", at(0, 0));
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    start(&mut bare, HostWork::Update, &[0]);
    assert_eq!(targets(&bare), []);
    bare.submit(Command::Forget(solo)).unwrap();
    bare.settle();
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Update))]);
    bare.complete_all();
    assert_eq!(result_of(&bare, HOST), Some(HostResult::Done));
}

/// promise: R2
#[test]
fn a_failed_step_calls_for_attention_which_holds_work_and_machines_until_it_is_cleared() {
    let mut bare = TestRules::with_hosts(2);
    start(&mut bare, HostWork::Update, &[0]);
    report(&mut bare, Target::Host(HOST), Report::Failed);
    bare.settle();
    let host = bare.cluster.host(HOST).unwrap();
    assert_eq!((host.attention, host.health), (HostAttention::Needed, Health::Healthy));
    let update =
        Command::Rollout { work: HostWork::Update.into(), hosts: vec![HOST], terms: RolloutTerms::default() };
    assert!(matches!(bare.ask(&update), Err(Refusal::HostNeedsAttention(_))));
    let refused = bare.ask(&crate::bare::admission("new", at(0, 0)));
    assert!(matches!(refused, Err(Refusal::HostNeedsAttention(_))), "{refused:?}");
    assert!(bare.cluster.open_hosts_by_load(None).all(|(id, _)| id != HOST));
    bare.submit(Command::ClearHost(HOST)).unwrap();
    assert_eq!(bare.ask(&Command::ClearHost(HOST)), Ok(vec![]));
    assert!(bare.ask(&update).is_ok());
}

/// promise: R2
#[test]
fn a_rollout_waits_for_a_host_that_needs_attention() {
    let mut bare = TestRules::with_hosts(2);
    let terms = RolloutTerms { hosts_at_once: std::num::NonZeroU16::new(1), ..RolloutTerms::default() };
    let work = HostTask::from(HostWork::Update).with_step(None);
    bare.submit(Command::Rollout { work, hosts: vec![HostId(1), HOST], terms }).unwrap();
    bare.apply(&Change::AttentionChanged { host: HOST, attention: HostAttention::Needed });
    bare.complete_all();
    let standing = bare.cluster.rollout(RolloutId(0)).unwrap().standing;
    assert_eq!(standing, Standing::Room(Obstacle::NeedsAttention));
    bare.submit(Command::ClearHost(HOST)).unwrap();
    bare.settle();
    bare.complete_all();
    assert_eq!(result_of(&bare, HOST), Some(HostResult::Done));
}

/// promise: R2
#[test]
fn a_suspended_action_waits_for_an_operator() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0]);
    done(&mut bare, machine(0));
    let (maintenance, target) = (MaintenanceId(0), machine(1));
    let suspended = bare.submit(Command::Suspend { maintenance, target }).unwrap();
    assert_eq!(suspended, [Change::Suspended { maintenance, target }]);
    assert_eq!(bare.ask(&Command::Suspend { maintenance, target }), Ok(vec![]));
    assert_eq!(targets(&bare), [], "after a crash it is not requested again");
    let retried = bare.ask(&Command::Retry(maintenance)).unwrap();
    assert_eq!(retried, [Change::Retried { maintenance, target }]);
    let effects = bare.apply(&retried[0]);
    assert!(matches!(effects[..], [Effect::Perform(action)] if action.target == target), "{effects:?}");
    done(&mut bare, target);
    let step = Target::Host(HOST);
    bare.submit(Command::Suspend { maintenance, target: step }).unwrap();
    bare.submit(Command::RetryHost(HOST)).unwrap();
    bare.submit(Command::CompleteHost { host: HOST, report: Report::Done }).unwrap();
    assert_eq!(targets(&bare).len(), 2, "both machines return");
    assert!(matches!(bare.ask(&Command::RetryHost(HOST)), Err(Refusal::NoStep(_))));
    bare.complete_all();
    assert_eq!(bare.ask(&Command::Retry(maintenance)), Err(Refusal::NoSuchMaintenance));
}

/// promise: R2
#[test]
fn giving_up_counts_every_unfinished_action_as_failed() {
    let mut bare = four();
    start(&mut bare, HostWork::Update, &[0, 1]);
    done(&mut bare, machine(0));
    done(&mut bare, machine(2));
    done(&mut bare, machine(3));
    // One machine of the first host and the step on the second.
    bare.submit(Command::GiveUp(MaintenanceId(0))).unwrap();
    let returns = [returning(0), returning(2), returning(3)].map(|target| (target, RESUME));
    assert_eq!(targets(&bare), returns);
    bare.complete_all();
    assert_eq!([HOST, HostId(1)].map(|host| result_of(&bare, host)), [Some(HostResult::Failed); 2]);
    let attention = |host| bare.cluster.host(host).unwrap().attention;
    assert_eq!(attention(HOST), HostAttention::Unneeded, "there was no step");
    assert_eq!(attention(HostId(1)), HostAttention::Needed);
}
