//! Random operations on random fleets.

use std::time::Duration;

use forewarn_lifecycle::*;
use proptest::prelude::*;

pub use super::random_fleet::{Layout, build, layouts};
use crate::ObservedCluster;
use crate::random_fleet::{random_capacity, random_size};
use crate::tenant_windows::windows_change;

/// A random operation. Numbers are taken modulo the number of existing objects.
#[derive(Clone, Debug)]
pub enum RandomOperation {
    Advance(u32),
    StepWall(i32),
    Poll(u8),
    /// Every machine polls, except one in four.
    PollMost(u8),
    User(u8, u8),
    DeleteNotified(u8),
    Power(u8, PowerChange),
    HostWork(HostTask, Vec<u8>, u16),
    PauseRollout(u8, Announced),
    ResumeRollout(u8),
    ChangeRollout(u8, u16, u8, u8),
    CancelRollout,
    Degrade(u8, u16),
    Fail(u8, u8),
    Recover(u8),
    ApproveAll(u8),
    ApproveOne(u8, u8),
    ApproveMixed(u8, u8),
    Cancel(u8),
    Force(u8),
    Complete(u8, Report),
    CompleteAll,
    Brake(Brake),
    Terminate(u8, u16),
    Upgrade(u8),
    UpgradePolicy(u8, u8),
    Revise(u8),
    Policy(u8, u8),
    Windows(u8, u8),
    Settings(u8),
    AdmitInstance(u8, u8),
    Forget(u8),
    Move(u8, u8, PlannedWork),
    Resize(u8, u8),
    Capacity(u8, u8),
    /// Everything that waits is readable only that many milliseconds later.
    Late(u32, Exposure),
    Unclear(u8, u8),
    Clear(u8),
    /// Retries the work on a host, or gives it up.
    OnHost(u8, Option<Report>),
    EnterMaintenance(u8, Leaving, StepWish),
    ExitMaintenance(u8, GuestReturn),
}

pub fn random_operations() -> impl Strategy<Value = Vec<RandomOperation>> {
    prop::collection::vec(random_operation(), 10..70)
}

fn random_operation() -> impl Strategy<Value = RandomOperation> {
    use RandomOperation as H;
    let work = prop::sample::select(vec![
        HostWork::Update,
        HostWork::NetworkUpdate,
        HostWork::Migration,
        HostWork::Restart,
    ]);
    let work = (work, any::<bool>()).prop_map(|(kind, has_step)| {
        let task = HostTask::from(kind);
        if has_step { task.with_step(WorkText::new("kernel 6.12.9")) } else { task }
    });
    let leaving = prop::sample::select(vec![Leaving::Live, Leaving::Live, Leaving::Redeploy, Leaving::Stop]);
    let reboot = StepWish::Asked { operation: HostOperation::Reboot, text: None };
    let wish = prop::sample::select(vec![StepWish::Unchanged, StepWish::Declined, reboot]);
    let guests = prop::sample::select(vec![GuestReturn::Stay, GuestReturn::Return, GuestReturn::Return]);
    let power = prop::sample::select(vec![PowerChange::Stop, PowerChange::Start, PowerChange::Deallocate]);
    let announced = prop::sample::select(vec![Announced::Stays, Announced::TakenBack]);
    let report_of_host = prop::sample::select(vec![None, Some(Report::Done), Some(Report::Failed)]);
    let planned = prop::sample::select(vec![PlannedWork::Refuses, PlannedWork::GivesWay]);
    let report = prop_oneof![9 => Just(Report::Done), 1 => Just(Report::Failed)];
    prop_oneof![
        10 => prop_oneof![1u32..40, 100u32..1_000, 100u32..40_000, Just(86_500)].prop_map(H::Advance),
        2 => (-4_000i32..4_000).prop_map(H::StepWall),
        4 => any::<u8>().prop_map(H::Poll),
        4 => any::<u8>().prop_map(H::PollMost),
        14 => (any::<u8>(), 0u8..5).prop_map(|(machine, what)| H::User(machine, what)),
        8 => any::<u8>().prop_map(H::DeleteNotified),
        3 => (any::<u8>(), power).prop_map(|(machine, change)| H::Power(machine, change)),
        8 => (work, prop::collection::vec(any::<u8>(), 1..6), terms_bits()).prop_map(|(work, hosts, terms)| {
            H::HostWork(work, hosts, terms)
        }),
        2 => (any::<u8>(), announced).prop_map(|(rollout, announced)| H::PauseRollout(rollout, announced)),
        4 => any::<u8>().prop_map(H::ResumeRollout),
        2 => (any::<u8>(), terms_bits(), any::<u8>(), any::<u8>()).prop_map(|(rollout, terms, add, remove)| {
            H::ChangeRollout(rollout, terms, add, remove)
        }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(number, what)| H::Unclear(number, what)),
        2 => any::<u8>().prop_map(H::Clear),
        1 => (any::<u8>(), report_of_host).prop_map(|(host, what)| H::OnHost(host, what)),
        3 => (any::<u8>(), leaving, wish).prop_map(|(host, leaving, wish)| H::EnterMaintenance(host, leaving, wish)),
        3 => (any::<u8>(), guests).prop_map(|(host, guests)| H::ExitMaintenance(host, guests)),
        1 => Just(H::CancelRollout),
        3 => (any::<u8>(), 0u16..600).prop_map(|(host, minutes)| H::Degrade(host, minutes)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(host, fence)| H::Fail(host, fence)),
        2 => any::<u8>().prop_map(H::Recover),
        5 => any::<u8>().prop_map(H::ApproveAll),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(tenant, event)| H::ApproveOne(tenant, event)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(tenant, event)| H::ApproveMixed(tenant, event)),
        2 => any::<u8>().prop_map(H::Cancel),
        1 => any::<u8>().prop_map(H::Force),
        6 => (any::<u8>(), report).prop_map(|(action, report)| H::Complete(action, report)),
        5 => Just(H::CompleteAll),
        1 => prop::sample::select(vec![Brake::On, Brake::Off, Brake::Off]).prop_map(H::Brake),
        2 => (any::<u8>(), 250u16..950).prop_map(|(set, seconds)| H::Terminate(set, seconds)),
        2 => any::<u8>().prop_map(H::Upgrade),
        5 => (any::<u8>(), 0u8..16).prop_map(|(set, bits)| H::UpgradePolicy(set, bits)),
        6 => any::<u8>().prop_map(H::Revise),
        1 => (any::<u8>(), 0u8..8).prop_map(|(tenant, bits)| H::Policy(tenant, bits)),
        3 => (any::<u8>(), 0u8..6).prop_map(|(tenant, bits)| H::Windows(tenant, bits)),
        1 => (0u8..16).prop_map(H::Settings),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(set, host)| H::AdmitInstance(set, host)),
        2 => any::<u8>().prop_map(H::Forget),
        4 => (any::<u8>(), any::<u8>(), planned).prop_map(|(machine, host, planned)| {
            H::Move(machine, host, planned)
        }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(machine, bits)| H::Resize(machine, bits)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(host, bits)| H::Capacity(host, bits)),
        2 => (0u32..1_200_000, exposures()).prop_map(|(millis, exposure)| H::Late(millis, exposure)),
    ]
}

pub fn exposures() -> impl Strategy<Value = Exposure> {
    let margin = prop_oneof![Just(0), 0u64..100_000].prop_map(Duration::from_millis);
    prop_oneof![margin.prop_map(|margin| Exposure::Unread { margin }), Just(Exposure::PerhapsRead)]
}

fn pick<T: Copy>(all: &[T], number: u8) -> Option<T> {
    (!all.is_empty()).then(|| all[usize::from(number) % all.len()])
}

impl ObservedCluster {
    /// Performs an operation, unless the rules refuse it.
    #[allow(clippy::too_many_lines, reason = "one arm for each operation")]
    pub fn happen(&mut self, operation: &RandomOperation) {
        use RandomOperation as Op;
        let machines: Vec<_> = self.cluster.machines().map(|(id, _)| id).collect();
        let hosts: Vec<_> = self.cluster.hosts().map(|(id, _)| id).collect();
        let tenants: Vec<_> = self.cluster.tenants().map(|(id, _)| id).collect();
        let busy: Vec<_> =
            self.cluster.tenants().filter(|(_, t)| !t.events().is_empty()).map(|(id, _)| id).collect();
        let rollouts: Vec<_> = self.cluster.rollouts().map(|(id, _)| id).collect();
        let plans: Vec<_> = self.cluster.maintenances().map(|maintenance| maintenance.plan.id).collect();
        let command = match operation {
            Op::Advance(seconds) => return self.advance(Duration::from_secs((*seconds).into())),
            Op::StepWall(seconds) => return self.step_wall((*seconds).into()),
            Op::Poll(number) => {
                if let Some(machine) = pick(&machines, *number) {
                    self.poll_as(machine);
                }
                return;
            }
            Op::PollMost(number) => {
                let silent = |machine: &&MachineId| (machine.0 + u32::from(*number)).is_multiple_of(4);
                return machines.iter().filter(|machine| !silent(machine)).for_each(|id| self.poll_as(*id));
            }
            Op::CompleteAll => return self.complete_all(),
            Op::Late(millis, exposure) => Some(self.read_late(*millis, *exposure)),
            Op::ApproveAll(tenant) => self.approval(pick(&busy, *tenant), None),
            Op::ApproveOne(tenant, event) => self.approval(pick(&busy, *tenant), Some(*event)),
            Op::ApproveMixed(tenant, event) => self.mixed_approval(pick(&tenants, *tenant), *event),
            Op::User(number, what) => pick(&machines, *number).map(|machine| user_command(machine, *what)),
            Op::DeleteNotified(number) => pick(&self.notified(), *number).map(Command::Delete),
            Op::Power(number, change) => {
                pick(&machines, *number).map(|machine| Command::ChangePower { machine, change: *change })
            }
            Op::HostWork(work, numbers, terms) => {
                let hosts = numbers.iter().filter_map(|number| pick(&hosts, *number)).collect();
                let rollout = Command::Rollout { work: work.clone(), hosts, terms: terms_of(*terms) };
                return self.roll_out(rollout, numbers);
            }
            Op::PauseRollout(number, announced) => pick(&rollouts, *number)
                .map(|rollout| Command::PauseRollout { rollout, announced: *announced }),
            Op::ResumeRollout(number) => pick(&rollouts, *number).map(Command::ResumeRollout),
            Op::ChangeRollout(number, terms, add, remove) => pick(&rollouts, *number)
                .map(|rollout| self.rollout_change(rollout, terms_of(*terms), *add, *remove)),
            Op::CancelRollout => rollouts.first().copied().map(Command::CancelRollout),
            Op::Degrade(number, minutes) => pick(&hosts, *number).map(|host| Command::DegradeHost {
                host,
                fails_in: (*minutes > 0).then(|| Duration::from_mins((*minutes).into())),
            }),
            Op::Fail(number, fence) => pick(&hosts, *number).map(match fence % 4 {
                0 => Command::FailHost,
                1 => Command::FailFencedHost,
                _ => Command::FailUnfencedHost,
            }),
            Op::Recover(number) => pick(&hosts, *number).map(Command::RecoverHost),
            Op::Cancel(number) => pick(&plans, *number).map(Command::Cancel),
            Op::Force(number) => pick(&plans, *number).map(Command::ForceStart),
            Op::Complete(number, report) => self.completion(*number, *report),
            Op::Unclear(number, what) => self.unclear(*number, *what),
            Op::Clear(number) => pick(&hosts, *number).map(Command::ClearHost),
            Op::OnHost(number, None) => pick(&hosts, *number).map(Command::RetryHost),
            Op::OnHost(number, Some(report)) => {
                pick(&hosts, *number).map(|host| Command::CompleteHost { host, report: *report })
            }
            Op::EnterMaintenance(number, leaving, step) => {
                return self.enter_maintenance(pick(&hosts, *number), (*number, *leaving), step);
            }
            Op::ExitMaintenance(number, guests) => self.exit_maintenance(*number, *guests),
            Op::Brake(brake) => Some(Command::Brake(*brake)),
            Op::Terminate(set, seconds) => Some(model_change(*set, *seconds)),
            Op::Upgrade(number) => pick(&machines, *number).map(Command::UpgradeInstance),
            Op::UpgradePolicy(set, bits) => Some(upgrade_change(*set, *bits)),
            Op::Revise(set) => Some(Command::ReviseModel(one_of_two(*set))),
            Op::Windows(number, bits) => {
                pick(&tenants, *number).and_then(|tenant| windows_change(&self.cluster, tenant, *bits))
            }
            Op::Policy(number, bits) => pick(&tenants, *number).map(|tenant| policy_change(tenant, *bits)),
            Op::Settings(bits) => Some(Command::ChangeSettings(settings_of(*bits))),
            Op::AdmitInstance(set, host) => pick(&hosts, *host).map(|host| Command::AdmitInstance {
                scale_set: one_of_two(*set),
                placement: Placement {
                    host,
                    update_domain: UpdateDomain(0),
                    fault_domain: FaultDomain(0),
                    size: Size::NONE,
                },
                number: None,
            }),
            Op::Forget(number) => pick(&machines, *number).map(Command::Forget),
            Op::Move(number, host, planned) => self.record_move(*number, *host, *planned),
            Op::Resize(number, bits) => resized(&machines, *number, *bits),
            Op::Capacity(number, bits) => resized_host(&hosts, *number, *bits),
        };
        if let Some(command) = command {
            drop(self.submit(command));
            self.settle();
        }
    }

    /// Starts a rollout. Half of the time its machines poll before anything else happens, and then half of the first
    /// groups are worked on at once.
    fn roll_out(&mut self, rollout: Command, numbers: &[u8]) {
        drop(self.submit(rollout));
        self.settle();
        let number = numbers.first().copied().unwrap_or_default();
        if number < 128 {
            self.happen(&RandomOperation::PollMost(number));
        }
        if number < 64 {
            self.advance(Duration::from_mins(16));
            self.complete_all();
        }
    }

    /// Lets time pass before pending announcements can be read.
    fn read_late(&mut self, millis: u32, exposure: Exposure) -> Command {
        self.pass(Duration::from_millis(millis.into()));
        let maintenances = self.cluster.maintenances().map(|maintenance| maintenance.plan.id).collect();
        Command::EnsureNotice { maintenances, exposure }
    }

    /// Completes some action in progress.
    fn completion(&self, number: u8, report: Report) -> Option<Command> {
        let actions: Vec<_> = self.cluster.unfinished().collect();
        let Action { maintenance, target, .. } = pick(&actions, number)?;
        Some(Command::Complete { maintenance, target, report })
    }

    /// Suspends, retries or gives up something in progress.
    fn unclear(&self, number: u8, what: u8) -> Option<Command> {
        let actions: Vec<_> = self.cluster.maintenances().flat_map(Maintenance::actions).collect();
        let Action { maintenance, target, .. } = pick(&actions, number)?;
        Some(match what % 4 {
            0 | 1 => Command::Suspend { maintenance, target },
            2 => Command::Retry(maintenance),
            _ => Command::GiveUp(maintenance),
        })
    }

    /// Has a host enter maintenance mode. Half of the time its machines leave before anything else
    /// happens, and then half of them are to return at once.
    fn enter_maintenance(&mut self, host: Option<HostId>, (number, leaving): (u8, Leaving), step: &StepWish) {
        let Some(host) = host else { return };
        let enter = Command::EnterMaintenance { host, leaving, seconds: None, step: step.clone() };
        drop(self.submit(enter));
        self.settle();
        if number < 128 {
            self.advance(Duration::from_mins(16));
            self.complete_all();
        }
        if number < 64 {
            drop(self.submit(Command::ExitMaintenance { host, guests: GuestReturn::Return }));
            self.settle();
        }
    }

    /// Has a host leave maintenance mode, preferably one that machines have left.
    fn exit_maintenance(&self, number: u8, guests: GuestReturn) -> Option<Command> {
        let of = |left: usize| {
            let in_mode = self
                .cluster
                .hosts()
                .filter(move |(_, host)| host.mode.as_ref().is_some_and(|mode| mode.left.len() >= left));
            in_mode.map(|(id, _)| id).collect::<Vec<_>>()
        };
        let host = pick(&of(1), number).or_else(|| pick(&of(0), number))?;
        Some(Command::ExitMaintenance { host, guests })
    }

    /// Records a move of some machine to some host.
    fn record_move(&self, machine: u8, host: u8, planned: PlannedWork) -> Option<Command> {
        let machines: Vec<_> = self.cluster.machines().map(|(id, _)| id).collect();
        let hosts: Vec<_> = self.cluster.hosts().map(|(id, _)| id).collect();
        Some(Command::Move { machine: pick(&machines, machine)?, to: pick(&hosts, host)?, planned })
    }

    /// The machines with a Terminate notice.
    fn notified(&self) -> Vec<MachineId> {
        let notified = self.cluster.machines().filter(|(_, machine)| machine.profile.terminate.is_some());
        notified.map(|(id, _)| id).collect()
    }

    /// Adds some hosts, removes some, or neither.
    fn rollout_change(&self, rollout: RolloutId, terms: RolloutTerms, add: u8, remove: u8) -> Command {
        let hosts: Vec<_> = self.cluster.hosts().map(|(id, _)| id).collect();
        let known = self.cluster.rollout(rollout).into_iter();
        let waiting: Vec<_> = known.flat_map(|known| known.waiting.iter()).collect();
        let remove = pick(&waiting, remove).into_iter().filter(|_| remove.is_multiple_of(3)).collect();
        let add = pick(&hosts, add).into_iter().filter(|_| add.is_multiple_of(2)).collect();
        Command::ChangeRollout { rollout, terms, add, remove }
    }

    fn approval(&self, tenant: Option<TenantId>, which: Option<u8>) -> Option<Command> {
        let tenant = tenant?;
        let all: Vec<_> = self.cluster.tenant(tenant)?.events().iter().map(Event::id).collect();
        let events = match which {
            Some(number) => vec![pick(&all, number)?],
            None => all,
        };
        Some(Command::Approve { tenant, events, by: self.approver(tenant) })
    }

    /// Own events, and one of another tenant or of none.
    fn mixed_approval(&self, tenant: Option<TenantId>, number: u8) -> Option<Command> {
        let tenant = tenant?;
        let others = self.cluster.tenants().filter(|(id, _)| *id != tenant);
        let mut foreign: Vec<_> =
            others.flat_map(|(_, other)| other.events().iter().map(Event::id)).collect();
        foreign.push(EventId::parse("00000000-0000-4000-8000-000000000000").expect("a GUID"));
        let mut events: Vec<_> = self.cluster.tenant(tenant)?.events().iter().map(Event::id).collect();
        events.push(pick(&foreign, number)?);
        Some(Command::Approve { tenant, events, by: self.approver(tenant) })
    }

    fn approver(&self, tenant: TenantId) -> Approver {
        let machines = self.cluster.tenant(tenant).map_or(&[][..], Tenant::machines);
        machines.first().map_or(Approver::Owner, |machine| Approver::Machine(*machine))
    }
}

/// Resizes a machine, or sometimes all instances of a scale set.
fn resized(machines: &[MachineId], number: u8, bits: u8) -> Option<Command> {
    let size = random_size(bits);
    if bits < 32 {
        return Some(Command::ResizeInstances { scale_set: one_of_two(number), size });
    }
    pick(machines, number).map(|machine| Command::Resize { machine, size })
}

fn resized_host(hosts: &[HostId], number: u8, bits: u8) -> Option<Command> {
    pick(hosts, number).map(|host| Command::ChangeCapacity { host, capacity: random_capacity(bits) })
}

/// Half of the rollouts have almost no terms.
fn terms_bits() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), any::<u16>()]
}

/// Every pair of bits is one of the terms.
fn terms_of(bits: u16) -> RolloutTerms {
    let pair = |place: u16| usize::from(bits >> (2 * place) & 3);
    let nights = Window::new(Weekdays::ALL, 22 * 60, 2 * 60, 60).expect("a window");
    let mornings =
        Window::new(Weekdays::from_bits(0b1_1111).expect("days"), 300, 420, -300).expect("a window");
    let limit = |number: usize| u16::try_from(number).ok().and_then(std::num::NonZeroU16::new);
    RolloutTerms {
        hosts_at_once: limit(pair(0)),
        tenant_share: [None, Percent::new(30), Percent::new(50), Percent::new(100)][pair(1)],
        fault_domains: [FaultDomains::Any, FaultDomains::OneAtATime][pair(2) % 2],
        windows: [vec![], vec![], vec![nights.clone()], vec![mornings, nights]][pair(3)].clone(),
        pause_between: Duration::from_secs([0, 0, 300, 7_200][pair(4)]),
        confirm: [Confirm::Never, Confirm::Never, Confirm::First, Confirm::Each][pair(5)],
        health: [HealthGate::Machines, HealthGate::Awaited, HealthGate::Ignored, HealthGate::Machines]
            [pair(6)],
        stop_after: [limit(1), None, limit(2), limit(3)][pair(7)],
    }
}

fn user_command(machine: MachineId, what: u8) -> Command {
    match what {
        0 => Command::Restart(machine),
        1 => Command::Redeploy(machine),
        2 => Command::Delete(machine),
        3 => Command::Evict(machine),
        _ => Command::Reimage(machine),
    }
}

fn model_change(set: u8, seconds: u16) -> Command {
    let terminate = TerminateNotice::from_seconds(seconds.into());
    let model = Profile { terminate, os_image: OsImageNotice::On };
    Command::ChangeModel { scale_set: one_of_two(set), model }
}

/// Mostly batches: of all sizes, with and without a pause.
fn upgrade_change(set: u8, bits: u8) -> Command {
    let percent = [1, 20, 50, 100][usize::from(bits & 3)];
    let pause = Duration::from_secs([0, 30, 600, 43_200][usize::from(bits >> 2 & 3)]);
    let upgrade = match bits {
        0 => UpgradePolicy::Manual,
        3 => UpgradePolicy::Automatic,
        _ => UpgradePolicy::Rolling { batch: Percent::new(percent).expect("a share"), pause },
    };
    Command::ChangeUpgradePolicy { scale_set: one_of_two(set), upgrade }
}

fn one_of_two(set: u8) -> ScaleSetId {
    ScaleSetId(u32::from(set % 2))
}

fn policy_change(tenant: TenantId, bits: u8) -> Command {
    let chosen = |bit: u8| if bits & bit == 0 { Approve::WhenAsked } else { Approve::Automatically };
    let policy = Policy { user_restart: chosen(1), user_redeploy: chosen(2), all_instances_down: chosen(4) };
    Command::ChangePolicy { tenant, policy }
}

fn settings_of(bits: u8) -> Settings {
    Settings {
        unenrolled: if bits & 1 == 0 { Unenrolled::RunAtOnce } else { Unenrolled::WaitAnyway },
        user_operations_max: (bits & 2 != 0).then_some(3),
        failure: if bits & 4 == 0 { FailureKind::Reboot } else { FailureKind::Redeploy },
        enrolment: if bits & 8 == 0 { EnrolmentRule::OnFirstPoll } else { EnrolmentRule::Always },
    }
}
