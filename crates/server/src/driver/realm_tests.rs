//! The driver of an owner in a realm: what it waits for from the other servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{ClusterId, ControlError, Stream};
use forewarn_lifecycle::limits::SILENCE_MAX;
use forewarn_lifecycle::{
    Approver, Command, Event, MachineId, MaintenanceId, Name, Policy, Priority, Profile, Tenant, TenantId,
};
use forewarn_realm::{
    CallTimes, Engine, Keyspace, NewStream, OwnedStream, Realm, ServerName, SimulatedEngine, SimulatedFault,
    StreamPosition, TakeoverOutcome,
};
use tokio::sync::{Mutex, mpsc};

use super::Driver;
use super::tests::{SlowDisk, driver_on, on_first_host, solo_restart, start};
use crate::clock::{Clock, Speed, later};
use crate::message::ClusterMessage;
use crate::realm_log::{StreamLog, stream_time};
use crate::role::RealmScope;

const NOTICE: Duration = Duration::from_mins(15);

/// An owner whose first commands are done.
async fn owner(commands: usize) -> (Driver, Clock, mpsc::Sender<ClusterMessage>) {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let (mut driver, own) = driver_on(clock.clone(), SlowDisk::default());
    driver.runtime.scope = RealmScope::Realm;
    for command in solo_restart().into_iter().take(commands) {
        drop(driver.submit(command).await);
    }
    driver.settle(clock.now()).await;
    (driver, clock, own)
}

async fn pass(driver: &mut Driver, clock: &Clock, span: Duration) {
    clock.set(later(clock.now(), span), Speed(0));
    driver.settle(clock.now()).await;
}

fn is_scheduled(driver: &Driver) -> bool {
    let tenant = driver.state.rules().tenant(TenantId(0)).unwrap();
    tenant.events().iter().any(Event::is_scheduled)
}

/// promise: N3
#[tokio::test]
async fn an_event_that_a_live_server_does_not_show_does_not_start() {
    let (mut driver, clock, _own) = owner(4).await;
    let announced: BTreeSet<_> = driver.state.rules().maintenances().map(|one| one.plan.id).collect();
    assert_eq!(announced.len(), 1);
    driver.unshown.add(1, announced);
    for _ in 0..3 {
        pass(&mut driver, &clock, NOTICE).await;
        assert!(is_scheduled(&driver), "a server does not show it");
    }
    driver.handle(ClusterMessage::ShownByOthers(1)).await;
    driver.settle(clock.now()).await;
    pass(&mut driver, &clock, NOTICE - Duration::from_secs(1)).await;
    assert!(is_scheduled(&driver), "VMs of that server have not had their notice");
    pass(&mut driver, &clock, Duration::from_secs(1)).await;
    assert!(!is_scheduled(&driver));
}

/// promise: N3
#[tokio::test]
async fn an_approved_event_starts_although_a_server_does_not_show_it() {
    let (mut driver, clock, _own) = owner(4).await;
    driver.unshown.add(1, BTreeSet::from([MaintenanceId(0)]));
    drop(driver.submit(approval(&driver)).await);
    driver.settle(clock.now()).await;
    assert!(!is_scheduled(&driver));
}

/// The approval of all events by their machine.
fn approval(driver: &Driver) -> Command {
    let tenant = driver.state.rules().tenant(TenantId(0)).unwrap();
    let events = tenant.events().iter().map(Event::id).collect();
    Command::Approve { tenant: TenantId(0), events, by: Approver::Machine(MachineId(0)) }
}

#[tokio::test]
async fn heartbeats_are_asked_for_when_an_announcement_is_published() {
    let (mut driver, clock, _own) = owner(2).await;
    let prompts = driver.context.broadcasts.announcements.subscribe();
    let [.., enrol, restart] = solo_restart();
    for (command, announces) in [(enrol, false), (restart, true)] {
        drop(driver.submit(command).await);
        driver.settle(clock.now()).await;
        assert_eq!(prompts.has_changed().unwrap(), announces);
    }
}

fn is_enrolled(driver: &Driver) -> bool {
    driver.state.rules().tenant(TenantId(0)).is_some_and(Tenant::is_enrolled)
}

fn answer(driver: &Driver, server: &str, ago: Duration) {
    let millis = u64::try_from(ago.as_millis()).unwrap();
    let heard =
        BTreeMap::from([(Stream::Cluster(ClusterId::DEFAULT), BTreeMap::from([(TenantId(0), millis)]))]);
    driver.context.peer_polls.answered(&Name::new(server).unwrap(), &heard);
}

/// promise: T2
#[tokio::test]
async fn a_tenant_is_unenrolled_once_every_server_knows_that_it_is_silent() {
    let minute = Duration::from_mins(1);
    let (mut driver, clock, _own) = owner(3).await;
    let others = ["b", "c"].map(|name| Name::new(name).unwrap());
    driver.context.peer_polls.set_others(others.into_iter().collect());
    pass(&mut driver, &clock, SILENCE_MAX).await;
    assert!(is_enrolled(&driver), "the others have not been asked yet");
    answer(&driver, "b", SILENCE_MAX);
    pass(&mut driver, &clock, minute).await;
    assert!(is_enrolled(&driver), "one of them does not answer");
    answer(&driver, "b", SILENCE_MAX);
    answer(&driver, "c", minute);
    pass(&mut driver, &clock, minute).await;
    assert!(is_enrolled(&driver), "it has polled another server");
    pass(&mut driver, &clock, SILENCE_MAX - 2 * minute).await;
    assert!(is_enrolled(&driver), "its silence counts from that poll");
    pass(&mut driver, &clock, 2 * minute).await;
    for server in ["b", "c"] {
        answer(&driver, server, SILENCE_MAX);
    }
    assert!(is_enrolled(&driver));
    pass(&mut driver, &clock, minute).await;
    assert!(!is_enrolled(&driver), "no server has been polled");
}

/// promise: N3
#[tokio::test]
async fn a_server_whose_clock_differs_starts_nothing_and_says_so() {
    let (mut driver, clock, _own) = owner(4).await;
    let mut entries = driver.context.broadcasts.audit_entries.subscribe();
    let mut kinds = || {
        let entries = std::iter::from_fn(|| entries.try_recv().ok());
        entries.map(|logged| logged.entry.kind.clone()).collect::<Vec<_>>()
    };
    assert!(driver.context.clock_hold.set(Some(-2_500)));
    pass(&mut driver, &clock, NOTICE).await;
    assert!(is_scheduled(&driver));
    assert_eq!(kinds(), ["clock_held"]);
    pass(&mut driver, &clock, NOTICE).await;
    assert!(is_scheduled(&driver) && kinds().is_empty(), "it is said once");
    for start in [approval(&driver), Command::ForceStart(MaintenanceId(0))] {
        let mut refused = driver.submit(start).await;
        driver.settle(clock.now()).await;
        assert_eq!(refused.try_recv().unwrap(), Err(ControlError::Unavailable));
        assert!(is_scheduled(&driver) && kinds().is_empty());
    }
    assert!(driver.context.clock_hold.set(None));
    pass(&mut driver, &clock, Duration::from_secs(1)).await;
    assert!(!is_scheduled(&driver));
    assert_eq!(kinds().first().map(String::as_str), Some("clock_agrees"));
}

/// The log of the cluster, which is empty, on an engine of its own.
async fn own_log(engine: &SimulatedEngine, clock: &Clock) -> StreamLog {
    let keys = Keyspace::new("/forewarn/1/").unwrap();
    let realm = Realm::new(Engine::Simulated(engine.clone()), keys, CallTimes::default());
    let time = stream_time(clock);
    let new = NewStream { state: None, position: StreamPosition::default(), time, format: 1 };
    let (stream, own) = (Stream::Cluster(ClusterId::DEFAULT), ServerName::new("a").unwrap());
    match OwnedStream::create(&realm, stream, &own, new).await.unwrap() {
        TakeoverOutcome::Owned(owned) => StreamLog::Owned(Arc::new(Mutex::new(*owned))),
        TakeoverOutcome::Lost { .. } => panic!("it exists"),
    }
}

/// promise: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_of_a_batch_begin_although_the_engine_refuses_to_move_its_times() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let (disk, engine) = (SlowDisk::new(clock.clone()), SimulatedEngine::new());
    let (mut driver, _own) = driver_on(clock.clone(), disk.clone());
    driver.runtime.scope = RealmScope::Realm;
    driver.journal.set_log(own_log(&engine, &clock).await);
    let [host, machine, enrol, restart] = solo_restart();
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let (name, placement) = (Name::new("gone").unwrap(), on_first_host());
    let other = Command::AdmitStandalone { name, placement, priority, profile, policy };
    for command in [host, machine, enrol, other] {
        drop(driver.submit(command).await);
    }
    driver.settle(clock.now()).await;
    assert_eq!(driver.state.rules().machines().count(), 2);
    // The commit takes so long that the times of the restart have to be moved, and that is refused.
    let (release, hanging) = disk.hang();
    disk.delay(&[60_000], &[]);
    drop((driver.submit(restart).await, driver.submit(Command::Delete(MachineId(1))).await));
    let now = clock.now();
    let committing = tokio::spawn(async move {
        driver.settle(now).await;
        driver
    });
    tokio::task::spawn_blocking(move || hanging.recv().unwrap()).await.unwrap();
    engine.meet(SimulatedFault::Refused);
    drop(release);
    let mut driver = committing.await.unwrap();
    assert!(is_scheduled(&driver), "it is announced");
    pass(&mut driver, &clock, Duration::from_mins(5)).await;
    assert_eq!(driver.state.rules().machines().count(), 1, "the machine is deleted");
    assert!(is_scheduled(&driver), "it has its whole notice");
}
