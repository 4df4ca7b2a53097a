//! Servers of one realm, in one process, on a simulated engine.

use std::time::Duration;

use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::{ClusterId, ControlError, NamedCommand};
use forewarn_lifecycle::{Command, Name, Size};
use forewarn_realm::{Engine, Keyspace, SimulatedEngine};
use tempfile::TempDir;

use super::RealmPlan;
use crate::api_listener::ApiListener;
use crate::clock::ClockKind;
use crate::control_handle::ControlHandle;
use crate::hypervisor::Hypervisor;
use crate::log_length::LogLimits;
use crate::message::ClockCommand;
use crate::realm_secrets::{extension_secret, share_authority};
use crate::tls::{Source, Tls};

pub(super) struct TestServer {
    pub(super) control: ControlHandle,
    /// Its own way to the engine.
    pub(super) engine: SimulatedEngine,
    is_new: bool,
    pub(super) directory: TempDir,
}

/// Longer than a server takes to stop, on the slowest machine.
const STOP_MAX: Duration = Duration::from_secs(60);

/// Less than operators wait for a decision, and longer than anything takes on a slow machine.
const ANSWER_MAX: Duration = Duration::from_secs(25);

/// Prefix of the keys.
pub(super) const KEYS: &str = "/forewarn/1/";

pub(super) async fn server(engine: &SimulatedEngine, name: &str) -> TestServer {
    server_in(tempfile::tempdir().unwrap(), engine, name).await
}

/// A server on the data of a former one.
pub(super) async fn server_in(directory: TempDir, engine: &SimulatedEngine, name: &str) -> TestServer {
    started(directory, engine, (name, None)).await.unwrap()
}

type JoinError = Box<dyn std::error::Error + Send + Sync>;

/// A server whose settings may have a speed of the clock.
pub(super) async fn started(
    directory: TempDir,
    engine: &SimulatedEngine,
    (name, clock_speed): (&str, Option<u32>),
) -> Result<TestServer, JoinError> {
    let engine = engine.client();
    let (control, is_new) = try_join(&directory, &engine, (name, clock_speed)).await?;
    control.announcements_are_settled().await;
    control.documents_are_readable().await;
    Ok(TestServer { control, engine, is_new, directory })
}

pub(super) async fn try_join(
    directory: &TempDir,
    engine: &SimulatedEngine,
    (name, clock_speed): (&str, Option<u32>),
) -> Result<(ControlHandle, bool), JoinError> {
    let limits = LogLimits::default();
    try_join_with(directory, engine, (name, clock_speed), limits, Hypervisor::simulated()).await
}

/// A server with other limits of logs.
pub(super) async fn server_with(
    directory: TempDir,
    engine: &SimulatedEngine,
    name: &str,
    log_limits: LogLimits,
) -> TestServer {
    let engine = engine.client();
    let joined = try_join_with(&directory, &engine, (name, None), log_limits, Hypervisor::simulated()).await;
    let (control, is_new) = joined.unwrap();
    control.documents_are_readable().await;
    TestServer { control, engine, is_new, directory }
}

/// A server with another hypervisor.
pub(super) async fn server_on(hypervisor: Hypervisor, engine: &SimulatedEngine, name: &str) -> TestServer {
    let (directory, engine) = (tempfile::tempdir().unwrap(), engine.client());
    let joined = try_join_with(&directory, &engine, (name, None), LogLimits::default(), hypervisor).await;
    let (control, is_new) = joined.unwrap();
    control.announcements_are_settled().await;
    control.documents_are_readable().await;
    TestServer { control, engine, is_new, directory }
}

/// The settings of a server.
pub(super) fn plan_of(engine: &SimulatedEngine, name: &str) -> RealmPlan {
    RealmPlan {
        clock_speed: None,
        name: Name::new(name).unwrap(),
        engine: Engine::Simulated(engine.clone()),
        keys: Keyspace::new(KEYS).unwrap(),
        listen: "127.0.0.1:0".parse().unwrap(),
        advertise: None,
        zone: None,
        log_limits: LogLimits::default(),
        compacts: true,
    }
}

async fn try_join_with(
    directory: &TempDir,
    engine: &SimulatedEngine,
    (name, clock_speed): (&str, Option<u32>),
    log_limits: LogLimits,
    hypervisor: Hypervisor,
) -> Result<(ControlHandle, bool), JoinError> {
    let plan = RealmPlan { clock_speed, log_limits, ..plan_of(engine, name) };
    let keep = Duration::from_secs(86_400);
    ControlHandle::join_realm(directory.path(), plan, hypervisor, keep).await
}

/// promise: Z5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_share_keys_of_extensions_and_the_authority_of_certificates() {
    let engine = SimulatedEngine::new();
    let (one, two) = (server(&engine, "one").await, server(&engine, "two").await);
    let mut secrets = Vec::new();
    let mut authorities = Vec::new();
    for server in [&one, &two] {
        secrets.push(extension_secret(&server.control, "arm").await.unwrap().unwrap());
        let directory = server.directory.path().join("tls");
        let source = Source::SelfSigned { directory, names: Vec::new(), address: None };
        let listener = ApiListener::Tls("127.0.0.1:0".parse().unwrap(), source.clone());
        share_authority(&server.control, &[listener], &[]).await.unwrap();
        authorities.push(Tls::open(source).unwrap().authority().unwrap());
    }
    assert_eq!((&secrets[0], &authorities[0]), (&secrets[1], &authorities[1]));
    assert_ne!(extension_secret(&one.control, "other").await.unwrap().unwrap(), secrets[0]);
    one.control.stop().await;
    two.control.stop().await;
}

pub(super) fn host(name: &str) -> Command {
    Command::AdmitHost { name: Name::new(name).unwrap(), zone: None, capacity: Size::NONE }
}

pub(super) fn hosts(control: &ControlHandle) -> usize {
    control.look(|state| state.cluster.hosts().count()).unwrap()
}

pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..400 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not reached: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_takes_requests_and_reads_what_others_have_committed() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    let two = server(&engine, "two").await;
    assert!(one.is_new && !two.is_new);
    one.control.submit(host("h1")).await.unwrap();
    two.control.submit(host("h2")).await.unwrap();
    two.control.confirm_reads().await.unwrap();
    one.control.confirm_reads().await.unwrap();
    assert_eq!((hosts(&one.control), hosts(&two.control)), (2, 2));
    one.control.stop().await;
    two.control.stop().await;
    let (place, seed) = (two.directory.path(), forewarn_lifecycle::Seed([1; 16]));
    let alone = ControlHandle::open(place, seed, crate::clock::ClockPlan::Real, Hypervisor::simulated());
    assert!(matches!(alone, Err(forewarn_store::OpenError::OfRealm(_))), "it would decide beside the others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_takes_over() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    let two = server(&engine, "two").await;
    let three = server(&engine, "three").await;
    one.control.submit(host("h1")).await.unwrap();
    let owner = one.control.cluster_owner(ClusterId::DEFAULT).unwrap();
    let mut servers: Vec<_> = [one, two, three].into_iter().collect();
    let lost = servers.iter().position(|server| server.control.realm_name() == Some(&owner)).unwrap();
    let lost = servers.remove(lost);
    lost.control.stop().await;
    let others = &servers;
    until("another owner", || {
        others.iter().all(|server| {
            server.control.cluster_owner(ClusterId::DEFAULT).is_some_and(|found| found != owner)
        })
    })
    .await;
    for (number, server) in (2..).zip(others) {
        server.control.submit(host(&format!("h{number}"))).await.unwrap();
    }
    for server in others {
        server.control.confirm_reads().await.unwrap();
        assert_eq!(hosts(&server.control), 3);
    }
    for server in servers {
        server.control.stop().await;
    }
}

pub(super) fn names(control: &ControlHandle) -> Vec<String> {
    let names = control.look(|state| state.cluster.hosts().map(|(_, host)| host.name.to_string()).collect());
    names.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_loses_the_engine_is_fenced_and_follows() {
    let engine = SimulatedEngine::new();
    let mut servers = Vec::new();
    for name in ["one", "two", "three"] {
        servers.push(server(&engine, name).await);
    }
    servers[0].control.submit(host("before")).await.unwrap();
    let owner = servers[0].control.cluster_owner(ClusterId::DEFAULT).unwrap();
    let cut = servers.iter().position(|server| server.control.realm_name() == Some(&owner)).unwrap();
    let cut = servers.remove(cut);
    cut.engine.cut();
    // A request that the owner takes now is not acknowledged before the engine answers.
    let lost = tokio::spawn({
        let control = cut.control.clone();
        async move { control.submit(host("during")).await }
    });
    let others = &servers;
    until("another owner", || {
        others.iter().all(|server| {
            server.control.cluster_owner(ClusterId::DEFAULT).is_some_and(|found| found != owner)
        })
    })
    .await;
    servers[0].control.submit(host("after")).await.unwrap();
    assert!(cut.control.confirm_reads().await.is_err(), "it does not know what was committed");
    until("the server is not ready", || cut.control.engine_silence().is_some()).await;
    assert_eq!(servers[0].control.engine_silence(), None, "the others are");
    cut.engine.heal();
    let acknowledged = lost.await.unwrap().is_ok();
    until("the copy is complete", || names(&cut.control).contains(&"after".to_owned())).await;
    until("the server is ready again", || cut.control.engine_silence().is_none()).await;
    let mut expected = vec!["before".to_owned(), "after".to_owned()];
    expected.extend(acknowledged.then(|| "during".to_owned()));
    expected.sort();
    servers.push(cut);
    for server in &servers {
        server.control.confirm_reads().await.unwrap();
        let mut found = names(&server.control);
        found.sort();
        let missing: Vec<_> = expected.iter().filter(|name| !found.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{found:?}");
    }
    for server in servers {
        server.control.stop().await;
    }
}

/// promise: D3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_wait_no_longer_for_an_engine_that_is_silent() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("before")).await.unwrap();
    one.engine.cut();
    let command = serde_json::from_value(serde_json::json!({ "command": "admit_host", "name": "h1" }));
    let commands: Vec<NamedCommand> = vec![command.unwrap()];
    // The first one is under way when the silence is noticed; the driver is busy with it when the second one comes.
    for _ in 0..2 {
        let answer = tokio::time::timeout(ANSWER_MAX, one.control.run_commands(commands.clone())).await;
        assert_eq!(answer.expect("it waits for the engine").err(), Some(ControlError::Unavailable));
    }
    assert_eq!(one.control.confirm_reads().await, Err(ControlError::Unavailable));
    one.engine.heal();
    until("the engine answers", || one.control.engine_silence().is_none()).await;
    until("the server writes again", || hosts(&one.control) == 2).await;
    one.control.stop().await;
}

/// promise: X2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_stops_although_the_engine_is_away() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("before")).await.unwrap();
    one.engine.cut();
    let lost = tokio::spawn({
        let control = one.control.clone();
        async move { control.submit(host("during")).await }
    });
    until("the commit has no answer", || one.control.engine_silence().is_some()).await;
    let stopped = tokio::time::timeout(STOP_MAX, one.control.stop()).await;
    assert!(stopped.is_ok(), "it waits for the engine");
    assert_eq!(lost.await.unwrap().err(), Some(ControlError::Unavailable));
}

/// promise: N4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_realm_belongs_to_the_realm() {
    let engine = SimulatedEngine::new();
    let place = || tempfile::tempdir().unwrap();
    let one = started(place(), &engine, ("one", Some(100))).await.unwrap();
    let two = server(&engine, "two").await;
    for other in [1, 60] {
        let refused = started(place(), &engine, ("three", Some(other))).await.err().unwrap().to_string();
        assert!(refused.contains("another speed than the settings: 100 instead of"), "{refused}");
    }
    let (first, second) = (one.control.clock(), two.control.clock());
    let (before, between, after) = (first.now().wall, second.now().wall, first.now().wall);
    assert!(before <= between && between <= after, "{before:?} {between:?} {after:?}");
    assert!(matches!(second.kind(), ClockKind::Accelerated { .. }));
    let set = two.control.drive(ClockCommand::Advance(Duration::from_secs(1))).await;
    assert_eq!(set, Err(ControlError::RealClock), "it cannot be set");
    // The cluster goes on with the time that has passed, and no more.
    one.control.submit(host("h1")).await.unwrap();
    one.control.stop().await;
    let begin = first.now();
    until("the other server decides", || {
        two.control.cluster_owner(ClusterId::DEFAULT) == two.control.realm_name().cloned()
    })
    .await;
    two.control.submit(host("h2")).await.unwrap();
    let (now, end) = (two.control.look(|state| state.now).unwrap(), first.now());
    assert!(now.steady >= begin.steady && now.wall <= end.wall, "{begin:?} {now:?} {end:?}");
    two.control.stop().await;
}

/// promise: D1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_write_the_shared_stream_in_turn() {
    let engine = SimulatedEngine::new();
    let servers = [server(&engine, "one").await, server(&engine, "two").await];
    for turn in 0..6 {
        let name = Name::new(&format!("c{turn}")).unwrap();
        let create = Administration::CreateCluster(name);
        servers[turn % 2].control.administer(create, RequestContext::default()).await.unwrap();
        // The batch arrives at the other server before that one writes.
        for server in &servers {
            until("every server has the cluster", || server.control.shared().clusters().count() == turn + 2)
                .await;
        }
    }
    for server in servers {
        server.control.stop().await;
    }
}
