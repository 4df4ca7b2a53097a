//! Maintenance mode of hosts: machines leave, the step on the empty host, machines return.

use std::time::Duration;

use crate::bare::{TestRules, approve_all, at, name};
use forewarn_lifecycle::*;

const HOST: HostId = HostId(0);
const NOTICE: Duration = Duration::from_mins(15);

/// Three hosts; on the first a machine `solo` and two of the set `web`, all enrolled.
fn fleet() -> TestRules {
    let mut bare = TestRules::with_hosts(3);
    bare.standalone("solo", at(0, 0));
    let web = bare.set("web", SetShape::AvailabilitySet);
    bare.member(web, "a", at(0, 0)).unwrap();
    bare.member(web, "b", at(0, 0)).unwrap();
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    bare.submit(Command::Enrol(web)).unwrap();
    bare
}

fn enter(bare: &mut TestRules, leaving: Leaving, step: StepWish) -> Result<Vec<Change>, Refusal> {
    bare.submit(Command::EnterMaintenance { host: HOST, leaving, seconds: None, step })
}

fn exit(bare: &mut TestRules, guests: GuestReturn) -> Result<Vec<Change>, Refusal> {
    bare.submit(Command::ExitMaintenance { host: HOST, guests })
}

fn update() -> StepWish {
    StepWish::Asked { operation: HostOperation::Update, text: WorkText::new("kernel 6.12.9") }
}

fn targets(bare: &TestRules) -> Vec<(Target, Impact)> {
    bare.cluster.unfinished().map(|action| (action.target, action.impact)).collect()
}

fn machine(number: u32) -> Target {
    Target::Machine(MachineId(number))
}

fn complete(bare: &mut TestRules, target: Target, report: Report) {
    let action = bare.cluster.unfinished().find(|action| action.target == target).expect("an action");
    bare.submit(Command::Complete { maintenance: action.maintenance, target, report }).unwrap();
    bare.settle();
}

fn announced(bare: &TestRules, tenant: u32) -> Vec<(EventKind, Reason)> {
    let events = bare.events(TenantId(tenant)).iter();
    events.map(|event| (event.announcement.kind, event.announcement.reason)).collect()
}

fn hosts(bare: &TestRules) -> Vec<u32> {
    bare.cluster.machines().map(|(_, machine)| machine.host.0).collect()
}

fn mode(bare: &TestRules) -> &MaintenanceMode {
    bare.cluster.host(HOST).unwrap().mode.as_deref().expect("maintenance mode")
}

/// promise: E4
#[test]
fn machines_leave_live_the_host_has_its_step_and_they_return() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Live, update()).unwrap();
    assert_eq!(announced(&bare, 0), [(EventKind::Freeze, Reason::LiveMigration)]);
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Entering));
    assert!(targets(&bare).is_empty(), "their notice is not over");
    bare.advance(NOTICE);
    let moved: Vec<_> = targets(&bare).iter().map(|(target, _)| *target).collect();
    assert_eq!(moved, [0, 1, 2].map(machine));
    complete(&mut bare, machine(0), Report::Done);
    complete(&mut bare, machine(1), Report::Done);
    assert_eq!(bare.cluster.remaining_on(HOST), [MachineId(2)]);
    complete(&mut bare, machine(2), Report::Done);
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Update))]);
    bare.complete_all();
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Entered));
    assert_eq!(mode(&bare).left.len(), 3);
    assert_eq!(mode(&bare).step, ModeStep::Done);
    // Nothing happens until the operator exits.
    bare.advance(Duration::from_hours(12));
    assert_eq!((bare.cluster.maintenances().count(), bare.cluster.rollouts().count()), (0, 0));
    assert!(!hosts(&bare).contains(&0));

    exit(&mut bare, GuestReturn::Return).unwrap();
    assert!(bare.cluster.host(HOST).unwrap().mode.is_none());
    assert_eq!(announced(&bare, 0), [(EventKind::Freeze, Reason::LiveMigration)]);
    assert_eq!(announced(&bare, 1).len(), 1, "one event for both machines of the set");
    assert_eq!(bare.events(TenantId(1))[0].announcement.resources.len(), 2);
    assert!(targets(&bare).is_empty());
    bare.advance(NOTICE);
    let home = Impact::Migrate { to: HOST };
    assert_eq!(targets(&bare), [0, 1, 2].map(|number| (machine(number), home)));
    bare.complete_all();
    assert_eq!(hosts(&bare), [0, 0, 0]);
    assert_eq!(bare.cluster.returns_to(HOST).count(), 0);
    assert!(bare.cluster.machines().all(|(_, machine)| machine.boots == 1));
}

#[test]
fn redeployed_machines_return_by_redeploy() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Redeploy, StepWish::Unchanged).unwrap();
    assert_eq!(announced(&bare, 0), [(EventKind::Redeploy, Reason::HostMaintenance)]);
    bare.advance(Duration::from_mins(10));
    bare.complete_all();
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Entered), "no step was asked for");
    exit(&mut bare, GuestReturn::Return).unwrap();
    assert_eq!(announced(&bare, 1), [(EventKind::Redeploy, Reason::HostMaintenance)]);
    bare.advance(Duration::from_mins(10));
    bare.complete_all();
    assert_eq!(hosts(&bare), [0, 0, 0]);
    assert!(bare.cluster.machines().all(|(_, machine)| machine.ephemeral_generation == 3));
}

/// promise: E4
#[test]
fn stopped_machines_stay_off_until_they_return_without_an_event() {
    let mut bare = fleet();
    bare.submit(Command::ChangePower { machine: MachineId(2), change: PowerChange::Stop }).unwrap();
    bare.complete_all();
    let reboot = StepWish::Asked { operation: HostOperation::Reboot, text: None };
    enter(&mut bare, Leaving::Stop, reboot).unwrap();
    assert_eq!(announced(&bare, 1), [(EventKind::Reboot, Reason::HostMaintenance)]);
    bare.advance(NOTICE);
    assert_eq!(targets(&bare), [0, 1].map(|number| (machine(number), Impact::Stop)), "one is off already");
    complete(&mut bare, machine(0), Report::Done);
    assert_eq!(bare.events(TenantId(0)), [], "the event ends when the machine is off");
    complete(&mut bare, machine(1), Report::Done);
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Reboot))]);
    bare.complete_all();
    let power = |bare: &TestRules| bare.cluster.machines().map(|(_, one)| one.power).collect::<Vec<_>>();
    assert_eq!((hosts(&bare), power(&bare)), (vec![0, 0, 0], vec![Power::Stopped; 3]));
    // A machine that its owner starts meanwhile starts elsewhere, and stays there.
    bare.submit(Command::ChangePower { machine: MachineId(0), change: PowerChange::Start }).unwrap();
    bare.complete_all();
    assert_ne!(hosts(&bare)[0], 0);
    let changes = exit(&mut bare, GuestReturn::Return).unwrap();
    let staying = vec![MachineId(0)];
    assert!(changes.contains(&Change::ModeExited { host: HOST, staying }), "{changes:?}");
    assert_eq!(targets(&bare), [(machine(1), Impact::Start { to: None })]);
    bare.complete_all();
    assert_eq!(power(&bare), [Power::Running, Power::Running, Power::Stopped]);
}

#[test]
fn a_host_in_maintenance_mode_takes_no_machines_and_no_other_work() {
    let mut bare = TestRules::with_hosts(2);
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    assert_eq!(bare.cluster.rollouts().count(), 0, "an empty host without a step is entered at once");
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Entered));
    let closed = Err(Refusal::HostInMaintenance(name("h0")));
    assert_eq!(bare.submit(crate::bare::admission("vm", at(0, 0))), closed);
    let (work, terms) = (HostTask::from(HostWork::Update), RolloutTerms::default());
    assert_eq!(bare.submit(Command::Rollout { work, hosts: vec![HOST], terms }), closed);
    let other = bare.standalone("vm", at(1, 0));
    let planned = PlannedWork::GivesWay;
    assert_eq!(bare.submit(Command::Move { machine: other, to: HOST, planned }), closed);
    assert_eq!(bare.submit(Command::Redeploy(other)), Err(Refusal::NoHost(name("vm"))));
    exit(&mut bare, GuestReturn::Stay).unwrap();
    bare.submit(Command::Redeploy(other)).unwrap();
    assert_eq!(exit(&mut bare, GuestReturn::Stay), Ok(vec![]), "it is in normal use");
}

#[test]
fn an_empty_host_has_its_step_at_once_and_unhealthy_hosts_are_treated_by_their_state() {
    let mut bare = TestRules::with_hosts(2);
    enter(&mut bare, Leaving::Live, update()).unwrap();
    assert_eq!(targets(&bare), [(Target::Host(HOST), Impact::OnHost(HostOperation::Update))]);
    let running = Err(Refusal::MaintenanceUnderWay(name("h0")));
    assert_eq!(exit(&mut bare, GuestReturn::Stay), running);
    assert_eq!(enter(&mut bare, Leaving::Stop, update()), running);
    complete(&mut bare, Target::Host(HOST), Report::Failed);
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Incomplete));
    let attention = Err(Refusal::HostNeedsAttention(name("h0")));
    assert_eq!(enter(&mut bare, Leaving::Live, StepWish::Unchanged), attention);
    bare.submit(Command::ClearHost(HOST)).unwrap();
    // The step that has not been done is taken again, until it is done or declined.
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    bare.complete_all();
    assert_eq!(mode(&bare).step, ModeStep::Done);
    assert_eq!(enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap().len(), 1, "nothing to do");
    assert_eq!(enter(&mut bare, Leaving::Live, StepWish::Unchanged), Ok(vec![]));
    bare.submit(Command::FailHost(HOST)).unwrap();
    assert_eq!(enter(&mut bare, Leaving::Live, StepWish::Unchanged), Err(Refusal::HostFailed(name("h0"))));
    exit(&mut bare, GuestReturn::Stay).unwrap();
    bare.submit(Command::RecoverHost(HOST)).unwrap();
    bare.submit(Command::DegradeHost { host: HOST, fails_in: None }).unwrap();
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
}

/// promise: E4
#[test]
fn a_machine_that_cannot_leave_keeps_the_host_from_its_step() {
    let mut bare = fleet();
    // `web` has another update domain on every other host, so its machines have nowhere to go.
    bare.member(TenantId(1), "c", at(1, 1)).unwrap();
    bare.member(TenantId(1), "d", at(2, 1)).unwrap();
    enter(&mut bare, Leaving::Live, update()).unwrap();
    bare.advance(Duration::from_hours(1));
    let waits = bare.cluster.rollouts().next().map(|(_, rollout)| rollout.standing);
    assert_eq!(waits, Some(Standing::Room(Obstacle::NoHost)), "nothing is announced in vain");
    assert_eq!(bare.cluster.machine_without_host(HOST), Some(MachineId(1)));
    // The same host, with another way to leave: the waiting work is replaced, and the step is kept.
    enter(&mut bare, Leaving::Stop, StepWish::Unchanged).unwrap();
    assert_eq!(bare.cluster.rollouts().count(), 1);
    assert_eq!(announced(&bare, 1), [(EventKind::Reboot, Reason::HostMaintenance)]);
    bare.advance(NOTICE);
    complete(&mut bare, machine(0), Report::Failed);
    complete(&mut bare, machine(1), Report::Done);
    complete(&mut bare, machine(2), Report::Done);
    assert_eq!(targets(&bare), [], "no step: a machine is still there");
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Incomplete));
    assert_eq!(bare.cluster.remaining_on(HOST), [MachineId(0)]);
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    assert_eq!(bare.cluster.rollouts().count(), 1);
    assert_eq!(announced(&bare, 0), [(EventKind::Freeze, Reason::LiveMigration)]);
    bare.advance(NOTICE);
    bare.complete_all();
    assert_eq!(bare.cluster.mode_progress(HOST), Some(ModeProgress::Entered), "two are off, one has moved");
    let left = [(0, Leaving::Live), (1, Leaving::Stop), (2, Leaving::Stop)];
    assert_eq!(mode(&bare).left, left.map(|(number, way)| (MachineId(number), way)));
}

#[test]
fn an_exit_before_the_start_withdraws_the_announced_work() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Live, update()).unwrap();
    assert_eq!(enter(&mut bare, Leaving::Live, update()), Ok(vec![]), "a repetition");
    exit(&mut bare, GuestReturn::Return).unwrap();
    assert_eq!((bare.cluster.maintenances().count(), bare.cluster.rollouts().count()), (0, 0));
    assert_eq!(bare.events(TenantId(0)), []);
    bare.advance(Duration::from_hours(1));
    assert_eq!(hosts(&bare), [0, 0, 0]);
}

#[test]
fn returns_are_withdrawn_with_their_host() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    bare.advance(NOTICE);
    bare.complete_all();
    exit(&mut bare, GuestReturn::Return).unwrap();
    assert_eq!(bare.cluster.returns_to(HOST).count(), 2);
    // A second entry withdraws them; the next exit brings them back.
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    assert_eq!((bare.cluster.returns_to(HOST).count(), bare.events(TenantId(0)).len()), (0, 0));
    assert_eq!(mode(&bare).left.len(), 3);
    exit(&mut bare, GuestReturn::Return).unwrap();
    assert_eq!(bare.cluster.returns_to(HOST).count(), 2);
    bare.submit(Command::RemoveHost(HOST)).unwrap();
    bare.advance(NOTICE);
    assert!(!hosts(&bare).contains(&0));
}

#[test]
fn machines_stay_where_they_are_if_their_host_cannot_take_them_back() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    bare.advance(NOTICE);
    bare.complete_all();
    exit(&mut bare, GuestReturn::Return).unwrap();
    bare.submit(Command::FailHost(HOST)).unwrap();
    bare.advance(NOTICE);
    assert_eq!((targets(&bare).len(), bare.cluster.maintenances().count()), (0, 0));
    assert!(!hosts(&bare).contains(&0));
    bare.submit(Command::RecoverHost(HOST)).unwrap();
}

#[test]
fn a_degraded_host_takes_no_machine_back() {
    let mut bare = fleet();
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    bare.advance(NOTICE);
    bare.complete_all();
    bare.submit(Command::DegradeHost { host: HOST, fails_in: None }).unwrap();
    assert_eq!(exit(&mut bare, GuestReturn::Return), Err(Refusal::HostNotHealthy(name("h0"))));
    exit(&mut bare, GuestReturn::Stay).unwrap();
}

/// A machine of `web` on each of two hosts, in different update domains, and two more hosts.
fn two_domains() -> (TestRules, TenantId) {
    let mut bare = TestRules::with_hosts(4);
    let web = bare.set("web", SetShape::AvailabilitySet);
    bare.member(web, "a", at(0, 0)).unwrap();
    bare.member(web, "b", at(1, 1)).unwrap();
    bare.submit(Command::Enrol(web)).unwrap();
    (bare, web)
}

fn degrade(bare: &mut TestRules, host: u32) {
    bare.submit(Command::DegradeHost { host: HostId(host), fails_in: None }).unwrap();
}

/// promise: N2
#[test]
fn a_return_that_does_not_happen_delays_no_other_update_domain() {
    let (mut bare, web) = two_domains();
    enter(&mut bare, Leaving::Live, StepWish::Unchanged).unwrap();
    bare.advance(NOTICE);
    bare.complete_all();
    exit(&mut bare, GuestReturn::Return).unwrap();
    degrade(&mut bare, 0);
    degrade(&mut bare, 1);
    assert_eq!(bare.events(web).len(), 2, "the return, and the redeployment from the second host");
    approve_all(&mut bare);
    assert_eq!(bare.cluster.held().collect::<Vec<_>>(), []);
    assert_eq!(targets(&bare).iter().map(|(target, _)| *target).collect::<Vec<_>>(), [machine(1)]);
}

/// promise: N2
#[test]
fn work_without_actions_delays_no_other_update_domain() {
    let (mut bare, web) = two_domains();
    enter(&mut bare, Leaving::Stop, StepWish::Unchanged).unwrap();
    degrade(&mut bare, 1);
    let stop = Command::ChangePower { machine: MachineId(0), change: PowerChange::Stop };
    bare.submit(stop).unwrap();
    bare.complete_all();
    assert_eq!(bare.events(web).len(), 2, "the work on the first host, which has nothing to stop any more");
    approve_all(&mut bare);
    assert_eq!(bare.cluster.held().collect::<Vec<_>>(), []);
    assert_eq!(targets(&bare).iter().map(|(target, _)| *target).collect::<Vec<_>>(), [machine(1)]);
}
