//! The driver on two clocks that know nothing of each other, and on disks that are slow.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forewarn_lifecycle::*;
use forewarn_metadata::ControlPlane;
use proptest::prelude::*;

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, CommandBatch, IdempotencyKey, Reply, RequestContext};
use forewarn_control::{Chain, ControlError, ControlState};
use forewarn_store::{AppendError, AuditLogReader, AuditQuery};
use forewarn_types::Moment;
use tokio::sync::{mpsc, oneshot};

use super::{Driver, DriverContext};
use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, Speed, later};
use crate::control_handle::ControlHandle;
use crate::hypervisor::Hypervisor;
use crate::initial_state::InitialState;
use crate::journal::JournalHandle;
use crate::message::{ClockCommand, ClusterMessage};
use crate::snapshot::Snapshot;

/// A disk, or a process, on which time passes while the driver waits: a virtual clock goes forward with every commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowDisk(Option<Arc<Delays>>);

#[derive(Debug)]
struct Delays {
    clock: Clock,
    /// Durations of the next commits.
    commits: Mutex<VecDeque<Duration>>,
    /// Delays from the last clock read to the publication of the next documents.
    publications: Mutex<VecDeque<Duration>>,
    /// The last audit entry that was readable after each commit, before publication.
    heads: Mutex<Vec<u64>>,
    /// The next commit reports that it hangs, and waits until the other end is dropped.
    hang: Mutex<Option<(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>)>>,
    is_full: AtomicBool,
}

impl SlowDisk {
    pub(super) fn new(clock: Clock) -> Self {
        let (commits, publications, heads) = <(Mutex<_>, Mutex<_>, Mutex<_>)>::default();
        let (hang, is_full) = (Mutex::default(), AtomicBool::new(false));
        Self(Some(Arc::new(Delays { clock, commits, publications, heads, hang, is_full })))
    }

    pub(super) fn delay(&self, commits: &[u64], publications: &[u64]) {
        let delays = self.0.as_ref().unwrap();
        let queue = |millis: &[u64]| millis.iter().map(|millis| Duration::from_millis(*millis)).collect();
        *delays.commits.lock().unwrap() = queue(commits);
        *delays.publications.lock().unwrap() = queue(publications);
    }

    /// The next commit hangs until the sender is dropped; the receiver gets a message when it does.
    pub(super) fn hang(&self) -> (std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) {
        let ((release, released), (hangs, hanging)) =
            (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        *self.0.as_ref().unwrap().hang.lock().unwrap() = Some((hangs, released));
        (release, hanging)
    }

    /// Makes every further commit fail.
    pub(super) fn fill(&self) {
        self.0.as_ref().unwrap().is_full.store(true, Ordering::Relaxed);
    }

    /// Called at the start of a commit.
    pub(crate) fn check(&self) -> Result<(), AppendError> {
        let is_full = self.0.as_ref().is_some_and(|delays| delays.is_full.load(Ordering::Relaxed));
        if is_full { Err(AppendError::Full) } else { Ok(()) }
    }

    /// Called at the end of a commit.
    pub(crate) fn pass(&self, reader: &AuditLogReader) {
        let hang = self.0.as_ref().and_then(|delays| delays.hang.lock().unwrap().take());
        if let Some((hangs, released)) = hang {
            hangs.send(()).unwrap();
            released.recv().ok();
        }
        self.wait(|delays| &delays.commits);
        let Some(delays) = &self.0 else { return };
        let head = reader.read(AuditQuery::default()).map_or(0, |page| page.head);
        delays.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    }

    /// The last readable audit entry after each commit since the last call.
    fn heads(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.as_ref().unwrap().heads.lock().unwrap())
    }

    /// Called when documents are published.
    pub(crate) fn pass_at_publication(&self) {
        self.wait(|delays| &delays.publications);
    }

    fn wait(&self, queue: impl Fn(&Delays) -> &Mutex<VecDeque<Duration>>) {
        let Some(delays) = &self.0 else { return };
        let delay = queue(delays).lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(delay) = delay {
            delays.clock.set(later(delays.clock.now(), delay), Speed(0));
        }
    }
}

/// promise: C1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_does_not_wait_for_a_commit_that_hangs() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let disk = SlowDisk::new(clock.clone());
    let control = ControlHandle::on_slow_disk(Seed([5; 16]), clock, disk.clone());
    let admit = |name| Command::AdmitHost {
        name: Name::new(name).expect("a name"),
        zone: None,
        capacity: Size::NONE,
    };
    control.submit(admit("h1")).await.unwrap();
    let (release, hanging) = disk.hang();
    let (writer, command) = (control.clone(), admit("h2"));
    let writing = tokio::spawn(async move { writer.submit(command).await });
    tokio::task::spawn_blocking(move || hanging.recv().unwrap()).await.unwrap();
    let reader = control.clone();
    let hosts = move || reader.look(|state| state.cluster.hosts().count()).unwrap();
    let read = tokio::task::spawn_blocking(hosts.clone());
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    assert_eq!(read.expect("a read that does not wait").unwrap(), 1, "the write is not durable yet");
    drop(release);
    writing.await.unwrap().unwrap();
    assert_eq!(hosts(), 2, "a read after the answer sees the write");
}

/// A driver of the default cluster in memory that the test steps, and the last sender to it.
pub(super) fn driver_on(clock: Clock, disk: SlowDisk) -> (Driver, mpsc::Sender<ClusterMessage>) {
    let (journal, seed) = (JournalHandle::in_memory().with_slow_disk(disk), Seed([5; 16]));
    let found = InitialState::new(ControlState::new(seed), seed);
    let context = context_of(&found, clock);
    let (own, _) = mpsc::channel(1);
    let (_, start) = found.clusters(&journal).remove(0);
    (Driver::new(ClusterId::DEFAULT, start, context, own.downgrade()), own)
}

/// The context of drivers without a driver of the shared stream.
pub(super) fn context_of(found: &InitialState, clock: Clock) -> DriverContext {
    let broadcasts = Broadcasts::new(Snapshot::new(found.state.clone(), found.identity));
    let (shared, _) = mpsc::channel(1);
    let machines = (clock, Hypervisor::simulated());
    DriverContext::new(found.identity, machines, broadcasts, shared.downgrade(), found.readers)
}

impl Driver {
    /// Submits a command. The reply comes with the next commit.
    pub(super) async fn submit(
        &mut self,
        command: Command,
    ) -> oneshot::Receiver<Result<Reply, ControlError>> {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(ClusterRequest::Rules(command));
        self.handle(ClusterMessage::Request { request, reply }).await;
        answer
    }

    fn published_rules(&self) -> Cluster {
        let snapshot = self.context.broadcasts.snapshot.load();
        snapshot.state.cluster(ClusterId::DEFAULT).unwrap().rules().clone()
    }
}

/// promise: D3
#[tokio::test]
async fn a_snapshot_never_shows_what_could_not_be_written() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let disk = SlowDisk::new(clock.clone());
    let (mut driver, _own) = driver_on(clock.clone(), disk.clone());
    let admit = |name| Command::AdmitHost {
        name: Name::new(name).expect("a name"),
        zone: None,
        capacity: Size::NONE,
    };
    let mut written = driver.submit(admit("h1")).await;
    driver.settle(clock.now()).await;
    assert!(written.try_recv().unwrap().is_ok());
    let audit_end = driver.audit_end;
    disk.fill();
    let mut lost = driver.submit(admit("h2")).await;
    driver.settle(clock.now()).await;
    assert_eq!(lost.try_recv().unwrap(), Err(ControlError::Unavailable));
    // An impact task that repeats its order is shown although nothing can be written.
    let (work, machine) = (MaintenanceId(7), MachineId(7));
    let reason = "no answer".to_owned();
    driver.handle(ClusterMessage::ImpactDelayed { work, target: machine.into(), reason }).await;
    driver.settle(clock.now()).await;
    let delays = {
        let snapshot = driver.context.broadcasts.snapshot.load();
        Arc::clone(&snapshot.runtimes.get(&ClusterId::DEFAULT).unwrap().delays)
    };
    assert_eq!((delays.len(), driver.published_rules().hosts().count()), (1, 1));
    assert_eq!((driver.audit_end, driver.audit_shown), (audit_end, audit_end));
}

#[tokio::test]
async fn a_simulated_action_that_takes_no_time_is_over_before_the_answer() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let disk = SlowDisk::new(clock.clone());
    let (mut driver, _own) = driver_on(clock.clone(), disk.clone());
    let [host, machine, ..] = solo_restart();
    drop((driver.submit(host).await, driver.submit(machine).await));
    driver.settle(clock.now()).await;
    disk.delay(&[5; 5], &[]);
    let mut answer = driver.submit(Command::Delete(MachineId(0))).await;
    driver.settle(clock.now()).await;
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(driver.published_rules().machines().count(), 0);
}

#[tokio::test]
async fn a_driver_that_stops_answers_and_starts_nothing() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let (mut driver, _own) = driver_on(clock.clone(), SlowDisk::default());
    for command in solo_restart() {
        drop(driver.submit(command).await);
    }
    driver.settle(clock.now()).await;
    let mut last = driver
        .submit(Command::AdmitHost { name: Name::new("h2").unwrap(), zone: None, capacity: Size::NONE })
        .await;
    clock.set(later(clock.now(), NOTICE), Speed(0));
    let (reply, mut stopped) = oneshot::channel();
    driver.handle(ClusterMessage::Stop { reply }).await;
    assert!(driver.has_stopped().await);
    assert!(last.try_recv().unwrap().is_ok() && stopped.try_recv().is_ok());
    let rules = driver.published_rules();
    assert_eq!(rules.hosts().count(), 2);
    assert!(rules.tenant(TenantId(0)).unwrap().events().iter().all(Event::is_scheduled));
    assert_eq!((rules.maintenances().count(), rules.unfinished().count()), (1, 0));
}

/// Wall and steady clocks that differ.
pub(super) fn start() -> Now {
    Now { wall: Timestamp::from_millis(1_767_225_600_000), steady: Steady::from_millis(77) }
}

const NOTICE: Duration = Duration::from_mins(15);
const TEN_YEARS_SECONDS: i64 = 10 * 365 * 86_400;

/// A server with one announced event.
async fn announced() -> ControlHandle {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    clock.set(start(), Speed(0));
    announced_on(clock).await
}

/// The same with a given clock.
async fn announced_on(clock: Clock) -> ControlHandle {
    let control = ControlHandle::simulated(Seed([5; 16]), clock);
    for command in solo_restart() {
        control.submit(command).await.expect("a good command");
    }
    control
}

pub(super) fn on_first_host() -> Placement {
    let (update_domain, fault_domain) = (UpdateDomain(0), FaultDomain(0));
    Placement { host: HostId(0), update_domain, fault_domain, size: Size::NONE }
}

/// One host, one enrolled machine, and its restart.
pub(crate) fn solo_restart() -> [Command; 4] {
    let name = |text| Name::new(text).expect("a name");
    let placement = on_first_host();
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    [
        Command::AdmitHost { name: name("h1"), zone: None, capacity: Size::NONE },
        Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy },
        Command::Enrol(TenantId(0)),
        Command::Restart(MachineId(0)),
    ]
}

/// Returns true if the event is still scheduled, once everything that is due is done.
async fn waits(control: &ControlHandle) -> bool {
    control.settled().await.expect("a running driver");
    let waits = control.look(|state| {
        let events = state.cluster.tenant(TenantId(0)).expect("a tenant").events();
        events.iter().any(Event::is_scheduled)
    });
    waits.expect("a running driver")
}

/// Steps of the wall clock, and time that passes on both clocks.
fn steps() -> impl Strategy<Value = (i64, u64)> {
    let set = prop_oneof![
        3 => Just(0),
        2 => -2_000..2_000_i64,
        1 => Just(TEN_YEARS_SECONDS),
        1 => Just(-TEN_YEARS_SECONDS),
        1 => -TEN_YEARS_SECONDS..TEN_YEARS_SECONDS,
    ];
    (set, 0..400_u64)
}

proptest! {
    /// promise: N4
    #[test]
    fn whatever_the_wall_clock_does_nothing_starts_early_and_nothing_is_lost(
        steps in proptest::collection::vec(steps(), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let control = announced().await;
            let due = later(start(), NOTICE);
            let mut now = start();
            let mut may_start = false;
            for (set, passed) in steps {
                let passed_millis = i64::try_from(passed * 1_000).unwrap();
                let wall = Timestamp::from_millis(now.wall.millis() + set * 1_000 + passed_millis);
                now = Now { wall, steady: now.steady.plus(Duration::from_secs(passed)) };
                control.clock().set(now, Speed(0));
                may_start |= now.wall >= due.wall && now.steady >= due.steady;
                assert_eq!(waits(&control).await, !may_start, "{now:?}");
            }
        });
    }
}

/// A server on a slow disk, with an enrolled spot machine and a machine with a termination notice.
async fn on_slow_disk(fraction: i64) -> (ControlHandle, SlowDisk) {
    let clock = Clock::virtual_at(Timestamp::from_millis(start().wall.millis() + fraction), Speed(0));
    let disk = SlowDisk::new(clock.clone());
    let control = ControlHandle::on_slow_disk(Seed([5; 16]), clock, disk.clone());
    let name = |text| Name::new(text).expect("a name");
    let placement = on_first_host();
    let spot = Priority::Spot(EvictionPolicy::Deallocate);
    let notified = Profile { terminate: TerminateNotice::from_seconds(420), os_image: OsImageNotice::Off };
    let policy = Policy::default();
    let (none, regular) = (Profile::default(), Priority::Regular);
    for command in [
        Command::AdmitHost { name: name("h1"), zone: None, capacity: Size::NONE },
        Command::AdmitStandalone { name: name("spot"), placement, priority: spot, profile: none, policy },
        Command::AdmitStandalone {
            name: name("notified"),
            placement,
            priority: regular,
            profile: notified,
            policy,
        },
        Command::Enrol(TenantId(0)),
        Command::Enrol(TenantId(1)),
    ] {
        control.submit(command).await.expect("a good command");
    }
    (control, disk)
}

/// Commands that announce an event, with its type and notice.
const ANNOUNCED: [(&str, &str, u64); 4] = [
    (r#"{"command":"evict","machine":"spot"}"#, "Preempt", 30),
    (r#"{"command":"delete","machine":"notified"}"#, "Terminate", 420),
    (r#"{"command":"restart","machine":"notified"}"#, "Reboot", 900),
    // A group of a rollout: the tick after the command announces it.
    (r#"{"command":"update_hosts","hosts":["h1"]}"#, "Freeze", 900),
];

/// Times in the published documents.
fn published(control: &ControlHandle) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for tenant in ["spot/spot", "notified/notified"] {
        let caller = control.caller_named(tenant).expect("a machine");
        for event in &caller.slot.read().document.events {
            let Phase::Scheduled { not_before, .. } = event.phase else { continue };
            times.push(not_before);
        }
    }
    times
}

proptest! {
    /// promise: N3
    #[test]
    fn documents_replies_receipts_and_audit_log_give_the_whole_notice_however_slow_commits_are(
        fraction in 0..1_000_i64,
        which in 0..ANNOUNCED.len(),
        commits in proptest::collection::vec(prop_oneof![0..5_000_u64, 0..2_000_000_u64], 0..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (control, disk) = on_slow_disk(fraction).await;
            let (command, kind, notice) = ANNOUNCED[which];
            disk.delay(&commits, &[]);
            let command: forewarn_control::NamedCommand = serde_json::from_str(command).unwrap();
            let once = IdempotencyKey { key: "k".to_owned(), fingerprint: [1; 32] };
            let order = || CommandBatch {
                commands: vec![command.clone()],
                context: RequestContext { by: "socket".to_owned(), once: Some(once.clone()), ..RequestContext::default() },
            };
            let decided = control.clock().now();
            let outcome = control.run_commands(order()).await.expect("announced");
            let times = published(&control);
            assert!(!times.is_empty());
            let now = control.clock().now();
            for time in &times {
                assert!(time.since(now.wall) >= Duration::from_secs(notice), "{time:?} is read at {now:?}");
                assert_eq!(time.millis() % 1_000, 0);
            }
            let usual = decided.wall.plus(Duration::from_secs(notice)).rounded_up();
            if commits.first().is_none_or(|millis| *millis == 0) {
                assert!(times.iter().all(|time| *time == usual), "nothing moves without need");
            }
            let answered: Vec<_> = outcome.events.iter().filter_map(|event| event.not_before).collect();
            let shown: Vec<_> = times.iter().copied().map(Moment).collect();
            assert!(answered.is_empty() || answered == shown, "{answered:?}");
            // A repeated request under the same key gets the same response.
            let again = control.run_commands(order()).await.expect("the receipt");
            assert_eq!(again.events, outcome.events);
            let page = control.read_audit_log(AuditQuery::default()).await.expect("an audit log");
            let mut chain = Chain::default();
            page.entries.iter().for_each(|entry| chain.verify(&entry.entry).expect("the chain holds"));
            let announced = page.entries.iter().map(|logged| &logged.entry).find(|entry| entry.kind == "announced").expect("an entry");
            assert!(announced.text.starts_with(kind) && announced.text.ends_with(&shown[0].to_string()), "{}", announced.text);
            let pushed: Vec<_> = announced.notices.iter().filter_map(|notice| notice.not_before).collect();
            assert_eq!(pushed, shown);
        });
    }

    /// promise: N3
    #[test]
    fn a_process_that_is_stopped_before_it_publishes_starts_nothing_before_a_whole_notice(
        fraction in 0..1_000_i64,
        commit in 0..100_000_u64,
        stopped in 0..200_000_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (control, disk) = on_slow_disk(fraction).await;
            // The clock is read before the stop: the shown time cannot move any more.
            disk.delay(&[commit], &[stopped]);
            control.submit(Command::Evict(MachineId(0))).await.expect("announced");
            let readable = control.clock().now();
            let times = published(&control);
            let step = Duration::from_millis(500);
            let mut now = readable;
            while now.steady.since(readable.steady) + step < Duration::from_secs(30) {
                now = later(now, step);
                control.clock().set(now, Speed(0));
                assert!(waits(&control).await, "it has started {:?} after", now.steady.since(readable.steady));
                assert_eq!(published(&control), times, "a time that was shown has moved");
            }
            control.clock().set(later(now, Duration::from_secs(40)), Speed(0));
            assert!(!waits(&control).await, "it has not started");
        });
    }
}

/// promise: N3, C5
#[tokio::test]
async fn audit_entries_are_hidden_until_their_times_are_final() {
    let (control, disk) = on_slow_disk(0).await;
    let before = control.read_audit_log(AuditQuery::default()).await.unwrap().head;
    disk.delay(&[60_000, 60_000], &[]);
    disk.heads();
    let mut entries = control.entries();
    control.submit(Command::Evict(MachineId(0))).await.unwrap();
    assert_eq!(disk.heads(), [before; 3], "a reader saw an entry whose time could still move");
    let heard = entries.recv().await.unwrap().entry;
    assert!(heard.number > before && heard.text.ends_with(&Moment(published(&control)[0]).to_string()));
    assert!(
        matches!(entries.try_recv(), Err(tokio::sync::broadcast::error::TryRecvError::Empty)),
        "broadcast once"
    );
}

proptest! {
    /// promise: N4
    #[test]
    fn a_clock_that_is_set_forward_by_a_notice_reaches_its_end_wherever_it_stands(
        fraction in 0..1_000_i64,
        steps in proptest::collection::vec(1..400_u64, 0..3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = Clock::virtual_at(Timestamp::from_millis(start().wall.millis() + fraction), Speed(0));
            let control = announced_on(clock).await;
            let mut left = NOTICE;
            for step in steps {
                let step = Duration::from_secs(step).min(left.saturating_sub(Duration::from_secs(1)));
                control.drive(ClockCommand::Advance(step)).await.expect("a virtual clock");
                left -= step;
            }
            assert!(left.is_zero() || waits(&control).await, "it has started early");
            let now = control.drive(ClockCommand::Advance(left)).await.expect("a virtual clock");
            assert!(!waits(&control).await, "it has not started at {now:?}");
        });
    }
}
