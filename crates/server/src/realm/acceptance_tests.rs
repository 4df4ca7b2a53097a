//! Restored engines whose older state is accepted, and the servers afterwards.

use std::path::Path;
use std::time::Duration;

use forewarn_control::{ClusterId, ControlError, INCARNATION_STEP, Stream};
use forewarn_lifecycle::{
    Brake, Command, EventId, FaultDomain, HostId, MachineId, Name, Placement, Policy, Priority, Profile,
    Size, TenantId, UpdateDomain,
};
use forewarn_realm::{
    CallTimes, Engine, Keyspace, Realm, RealmCompleteness, RestoreAcceptance, ServerName, SimulatedEngine,
};
use forewarn_store::check;
use tempfile::TempDir;

use super::stored_state_tests::{entries, until_archived};
use super::tests::{KEYS, TestServer, host, hosts, names, plan_of, server, server_in, try_join, until};
use super::{AcceptanceError, AcceptanceReport, RestoredRealm};
use crate::control_handle::ControlHandle;

const CLUSTER: Stream = Stream::Cluster(ClusterId::DEFAULT);

fn realm(engine: &SimulatedEngine) -> Realm {
    let keys = Keyspace::new(KEYS).unwrap();
    Realm::new(Engine::Simulated(engine.client()), keys, CallTimes::default())
}

/// One host, and one enrolled machine with an announced restart.
async fn announce(through: &ControlHandle) {
    let name = Name::new("solo").unwrap();
    let (update_domain, fault_domain) = (UpdateDomain(0), FaultDomain(0));
    let placement = Placement { host: HostId(0), update_domain, fault_domain, size: Size::NONE };
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let admit = Command::AdmitStandalone { name, placement, priority, profile, policy };
    for command in [host("h1"), admit, Command::Enrol(TenantId(0)), Command::Restart(MachineId(0))] {
        through.submit(command).await.unwrap();
    }
}

/// The incarnation and the event of the machine.
fn shown(control: &ControlHandle) -> (u64, EventId) {
    let shown = control.look(|state| {
        let tenant = state.cluster.tenant(TenantId(0)).unwrap();
        (tenant.incarnation, tenant.events()[0].id())
    });
    shown.unwrap()
}

fn brake(control: &ControlHandle) -> Brake {
    control.look(|state| state.cluster.brake()).unwrap()
}

async fn stopped(server: TestServer) -> TempDir {
    server.control.stop().await;
    let TestServer { directory, control, .. } = server;
    drop(control);
    directory
}

async fn inspect(directory: &Path, engine: &SimulatedEngine) -> Result<RestoredRealm, AcceptanceError> {
    RestoredRealm::inspect(directory, &plan_of(&engine.client(), "one")).await
}

async fn accept(directory: &Path, engine: &SimulatedEngine) -> AcceptanceReport {
    inspect(directory, engine).await.unwrap().accept().await.unwrap()
}

async fn refused(directory: &Path, engine: &SimulatedEngine) -> String {
    inspect(directory, engine).await.unwrap_err().to_string()
}

/// Waits until a server has the first audit entry of a stream.
async fn until_complete(control: &ControlHandle, stream: Stream) {
    for _ in 0..600 {
        if entries(control, stream).await.first().is_some_and(|line| line.contains("\"number\":1,")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("older entries of {stream} are missing");
}

fn copies(directory: &TempDir) -> usize {
    forewarn_store::copies_set_aside(directory.path()).unwrap().len()
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_state_is_accepted_and_all_servers_go_on() {
    let engine = SimulatedEngine::new();
    let (one, two) = (server(&engine, "one").await, server(&engine, "two").await);
    announce(&one.control).await;
    let before = shown(&one.control);
    let kept = entries(&one.control, CLUSTER).await;
    let engine = engine.restored();
    one.control.submit(host("lost")).await.unwrap();
    two.control.confirm_reads().await.unwrap();
    let (one, two) = (stopped(one).await, stopped(two).await);
    let found = inspect(one.path(), &engine).await.unwrap();
    assert!(found.reason().contains("another cluster id"), "{}", found.reason());
    let losses = found.losses();
    let of_cluster = losses.iter().find(|loss| loss.stream == CLUSTER).unwrap();
    assert_eq!(of_cluster.cluster.as_deref(), Some("default"));
    assert!(of_cluster.lost.is_some_and(|lost| lost > 0), "{losses:?}");
    let report = found.accept().await.unwrap();
    assert_eq!((report.restores, report.clusters, report.hosts, report.machines), (1, 1, 1, 1));
    // The copies are still there: each server sets its own aside.
    let (one, two) = (server_in(one, &engine, "one").await, server_in(two, &engine, "two").await);
    for server in [&one, &two] {
        server.control.confirm_reads().await.unwrap();
        assert_eq!((hosts(&server.control), brake(&server.control)), (1, Brake::On));
        let after = shown(&server.control);
        assert!(after.0 >= before.0 + INCARNATION_STEP && after.1 != before.1);
        assert_eq!(copies(&server.directory), 1);
    }
    // Audit entries of before come from the former copies, without those that were lost.
    two.control.submit(host("h2")).await.unwrap();
    one.control.confirm_reads().await.unwrap();
    for stream in [CLUSTER, Stream::Shared] {
        until_complete(&one.control, stream).await;
        until_archived(&two.control, &one.control, stream).await;
    }
    let all = entries(&one.control, CLUSTER).await;
    assert_eq!(all[..kept.len()], kept[..]);
    assert!(all.iter().all(|line| !line.contains("lost")), "{all:?}");
    let shared = entries(&one.control, Stream::Shared).await;
    let accepted: Vec<_> = shared.iter().filter(|line| line.contains("restore_accepted")).collect();
    assert!(accepted.len() == 1 && accepted[0].contains("another cluster id"), "{shared:?}");
    let described = two.control.realm_admin().unwrap().describe().await.unwrap();
    assert_eq!((described.restores, described.restored), (1, None));
    // They start again from their new copies.
    let (one, two) = (stopped(one).await, stopped(two).await);
    check(one.path()).unwrap();
    let one = server_in(one, &engine, "one").await;
    one.control.submit(host("h3")).await.unwrap();
    assert_eq!((names(&one.control).len(), copies(&one.directory)), (3, 1));
    let _ = (stopped(one).await, two);
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acceptance_goes_on_above_the_one_before() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    announce(&one.control).await;
    let directory = stopped(one).await;
    // Nothing is missing: only the engine is another one.
    let backup = engine.restored();
    let first = backup.restored();
    let report = accept(directory.path(), &first).await;
    assert_eq!(report.restores, 1);
    let one = server_in(directory, &first, "one").await;
    let (incarnation, event) = shown(&one.control);
    let directory = stopped(one).await;
    // The same backup again: it knows nothing of the acceptance.
    let second = backup.restored();
    let halted = server_in(directory, &second, "one").await;
    let restored = halted.control.realm_admin().unwrap().restored().unwrap();
    assert!(restored.contains("0 accepted restores instead of 1"), "{restored}");
    let directory = stopped(halted).await;
    let found = inspect(directory.path(), &second).await.unwrap();
    assert!(found.losses().iter().all(|loss| loss.lost.is_none()), "numbers of another history");
    assert_eq!(found.accept().await.unwrap().restores, 2);
    let one = server_in(directory, &second, "one").await;
    let (later, other) = shown(&one.control);
    assert!(later >= incarnation + INCARNATION_STEP && other != event, "{later} {incarnation}");
    assert_eq!(copies(&one.directory), 2);
    until_complete(&one.control, CLUSTER).await;
    drop(stopped(one).await);
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_starts_before_an_acceptance_is_complete() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    announce(&one.control).await;
    let directory = stopped(one).await;
    let engine = engine.restored();
    // Killed before the first stream was replaced.
    let known = realm(&engine).record().await.unwrap().unwrap();
    let begun = realm(&engine).begin_acceptance(&known, 1).await.unwrap().unwrap();
    assert_eq!(begun.completeness, RealmCompleteness::Accepting);
    for place in [&directory, &tempfile::tempdir().unwrap()] {
        let started = try_join(place, &engine, ("one", None)).await;
        let error = started.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("is being accepted") && error.contains("accept-restore"), "{error}");
    }
    // It goes on, on any computer.
    let elsewhere = tempfile::tempdir().unwrap();
    let found = inspect(elsewhere.path(), &engine).await.unwrap();
    assert_eq!(found.reason(), "an earlier acceptance was interrupted");
    assert_eq!(found.accept().await.unwrap().restores, 1);
    let error = refused(directory.path(), &engine).await;
    assert!(error.contains("an older state was accepted already"), "{error}");
    let one = server_in(directory, &engine, "one").await;
    assert_eq!(brake(&one.control), Brake::On);
    let directory = stopped(one).await;
    let error = refused(directory.path(), &engine).await;
    assert!(error.contains("nothing to accept") && error.contains("hint: "), "{error}");
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acceptance_is_refused_while_servers_run_or_without_a_realm() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    let two = server(&engine, "two").await;
    let engine = engine.restored();
    let error = refused(one.directory.path(), &engine).await;
    assert!(error.contains("in use by another process"), "its servers have no key there: {error}");
    let directory = stopped(one).await;
    let again = server_in(tempfile::tempdir().unwrap(), &engine, "three").await;
    let error = refused(directory.path(), &engine).await;
    assert!(error.contains("servers of the realm are running: three\n  hint: "), "{error}");
    drop((stopped(again).await, stopped(two).await));
    let error = refused(directory.path(), &SimulatedEngine::new()).await;
    assert!(error.contains("the engine has no realm: /forewarn/1/\n  hint: "), "{error}");
    let other = SimulatedEngine::new();
    drop(stopped(server(&other, "one").await).await);
    let error = refused(directory.path(), &other).await;
    assert!(error.contains("belongs to another server or realm"), "{error}");
    // Without a copy, nothing can be compared, and the operator decides.
    let empty = tempfile::tempdir().unwrap();
    let found = inspect(empty.path(), &other).await.unwrap();
    assert_eq!(found.reason(), "this computer has no copy to compare etcd with");
    assert!(found.losses().iter().all(|loss| loss.restored.is_some() && loss.lost.is_none()));
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ran_during_an_acceptance_owns_nothing() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    announce(&one.control).await;
    // It was cut off, and its key is gone: the command cannot know of it.
    one.engine.cut();
    let realm = realm(&engine);
    let known = realm.record().await.unwrap().unwrap();
    let accepting = realm.begin_acceptance(&known, 1).await.unwrap().unwrap();
    let acceptance = RestoreAcceptance {
        server: ServerName::new("two").unwrap(),
        seed: forewarn_lifecycle::Seed([9; 16]),
        seen: 0,
        time: crate::realm_log::stream_time(one.control.clock()),
        reason: "a test".to_owned(),
    };
    realm.accept(&accepting, &acceptance).await.unwrap();
    one.engine.heal();
    until("it is halted", || one.control.realm_admin().unwrap().restored().is_some()).await;
    let refused = one.control.submit(host("h2")).await.unwrap_err();
    assert!(matches!(&refused, ControlError::EngineRestored(why) if why.contains("restart it")), "{refused}");
    let directory = stopped(one).await;
    let one = server_in(directory, &engine, "one").await;
    assert_eq!((hosts(&one.control), brake(&one.control), copies(&one.directory)), (1, Brake::On, 1));
    drop(stopped(one).await);
}
