//! Servers that start while the log of a cluster ends with an announcement.

use std::time::Duration;

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::{Command, MachineId, Phase, Steady, Timestamp};
use forewarn_metadata::ControlPlane;
use forewarn_ownership::ServerName;
use forewarn_realm::{CallTimes, Engine, Keyspace, ReadFrom, Realm, SimulatedEngine, SimulatedFault};

use super::tests::{KEYS, TestServer, server, server_in, started, try_join, until};
use crate::control_handle::ControlHandle;
use crate::driver::{announced_at_end, solo_restart};

const CLUSTER: ClusterId = ClusterId::DEFAULT;

/// Transactions that lose their answers, until the client is healed.
const LOST_ANSWERS: usize = 10_000;

/// Speed of a clock on which a commit without an answer soon takes longer than a second.
const SPEED: u32 = 20;

/// Admits a machine whose tenant is enrolled.
async fn admit_machine(control: &ControlHandle) {
    for command in solo_restart().into_iter().take(3) {
        control.submit(command).await.unwrap();
    }
}

async fn announce(control: &ControlHandle) {
    control.submit(Command::Restart(MachineId(0))).await.unwrap();
}

/// The `NotBefore` of the event, as VMs read it.
fn shown_time(control: &ControlHandle) -> Option<Timestamp> {
    let caller = control.caller_named("solo")?;
    let document = &caller.slot.read().document;
    document.events.iter().find_map(|event| match event.phase {
        Phase::Scheduled { not_before, .. } => Some(not_before),
        Phase::Started { .. } => None,
    })
}

fn now(control: &ControlHandle) -> Steady {
    control.clock().now().steady
}

/// Waits until the log of the cluster ends with an announcement.
async fn until_announced(engine: &SimulatedEngine) {
    let keys = Keyspace::new(KEYS).unwrap();
    let realm = Realm::new(Engine::Simulated(engine.clone()), keys, CallTimes::default());
    for _ in 0..400 {
        let content = realm.read_stream(Stream::Cluster(CLUSTER), ReadFrom::Beginning).await.unwrap();
        if content.batches.last().is_some_and(|batch| !announced_at_end(&batch.records).is_empty()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing is announced");
}

async fn stop(servers: Vec<TestServer>) {
    for server in servers {
        server.control.stop().await;
    }
}

/// promise: N5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_shows_no_time_that_the_owner_is_about_to_move() {
    let engine = SimulatedEngine::new();
    let one = started(tempfile::tempdir().unwrap(), &engine, ("one", Some(SPEED))).await.unwrap();
    admit_machine(&one.control).await;
    // The announcement gets into the log, and its owner does not learn it for a while.
    (0..LOST_ANSWERS).for_each(|_| one.engine.meet(SimulatedFault::LostAnswer));
    let announcing = tokio::spawn({
        let control = one.control.clone();
        async move { announce(&control).await }
    });
    until_announced(&engine).await;
    let committed = now(&one.control);
    until("too little notice is left", || now(&one.control) > committed.plus(Duration::from_secs(2))).await;
    let directory = tempfile::tempdir().unwrap();
    let (two, _) = try_join(&directory, &engine.client(), ("two", None)).await.unwrap();
    assert_eq!(two.unsettled_clusters(), [CLUSTER]);
    let first = shown_time(&two).expect("the copy has the event");
    assert_eq!(shown_time(&one.control), None, "its owner has not shown it");
    one.engine.heal();
    two.announcements_are_settled().await;
    assert_eq!(two.unsettled_clusters(), []);
    let read = shown_time(&two).expect("VMs read the event");
    two.documents_are_readable().await;
    announcing.await.unwrap();
    until("the owner shows the event", || shown_time(&one.control).is_some()).await;
    assert_eq!((shown_time(&one.control), shown_time(&two)), (Some(read), Some(read)));
    // On a slow computer, the server that starts may have become the owner: then no time has moved.
    let is_moved = two.cluster_owner(CLUSTER).as_ref() == one.control.realm_name();
    assert!(read > first || !is_moved, "without the wait, VMs would have read {first:?}");
    two.stop().await;
    one.control.stop().await;
}

/// promise: N5, C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_alone_shows_the_last_announcement_as_the_owner() {
    let engine = SimulatedEngine::new();
    let (one, two) = (server(&engine, "one").await, server(&engine, "two").await);
    admit_machine(&one.control).await;
    announce(&one.control).await;
    for server in [&one, &two] {
        until("every server shows it", || shown_time(&server.control).is_some()).await;
    }
    let time = shown_time(&one.control);
    let TestServer { directory, control, .. } = two;
    one.control.stop().await;
    control.stop().await;
    drop(control);
    let again = server_in(directory, &engine, "two").await;
    assert_eq!((shown_time(&again.control), again.control.unsettled_clusters()), (time, vec![]));
    until("it owns the cluster", || {
        again.control.cluster_owner(CLUSTER).as_ref() == again.control.realm_name()
    })
    .await;
    assert_eq!(shown_time(&again.control), time);
    stop(vec![again]).await;
}

/// promise: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_servers_do_not_count_on_one_that_machines_cannot_ask_yet() {
    let engine = SimulatedEngine::new();
    let (one, two) = (server(&engine, "one").await, server(&engine, "two").await);
    admit_machine(&one.control).await;
    announce(&one.control).await;
    until("every server shows it", || shown_time(&two.control).is_some()).await;
    let time = shown_time(&one.control);
    let TestServer { directory, control, .. } = two;
    control.stop().await;
    drop(control);
    let (again, _) = try_join(&directory, &engine.client(), ("two", None)).await.unwrap();
    again.announcements_are_settled().await;
    assert_eq!((shown_time(&again), again.unsettled_clusters()), (time, vec![]));
    let view = &one.control.realm_admin().unwrap().view;
    let shown = || view.lock().shown.get(&ServerName::new("two").unwrap()).cloned();
    until("the new process is heard", || shown().is_some_and(|shown| !shown.contains_key(&CLUSTER))).await;
    again.documents_are_readable().await;
    until("it counts", || shown().is_some_and(|shown| shown.contains_key(&CLUSTER))).await;
    again.stop().await;
    stop(vec![one]).await;
}
