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

/// promise: H1
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

/// promise: H1
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

/// promise: H1
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

/// promise: H2
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

/// promise: H2
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

/// promise: H2
#[test]
fn a_machine_that_cannot_be_started_again_is_off() {
    let mut bare = four();
    start(&mut bare, HostWork::Restart, &[0]);
    [machine(0), machine(1), Target::Host(HOST)].into_iter().for_each(|target| done(&mut bare, target));
    report(&mut bare, returning(0), Report::Failed);
    assert_eq!(bare.cluster.machine(MachineId(0)).unwrap().power, Power::Stopped);
    bare.complete_all();
    assert_eq!(bare.cluster.machine(MachineId(1)).unwrap().power, Power::Running);
}

/// promise: H1
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

/// promise: H1
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

/// promise: H1
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

/// promise: H1
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
