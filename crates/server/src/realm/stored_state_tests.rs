//! Logs of a realm that are stored as states and shortened, and servers that were not there meanwhile.

use std::time::Duration;

use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::Name;
use forewarn_realm::{
    CallTimes, Engine, Keyspace, ReadFrom, Realm, SimulatedEngine, StreamPosition, StreamStart,
};
use forewarn_store::{AuditQuery, check};

use super::tests::{TestServer, host, hosts, names, server_with, until};
use crate::control_handle::ControlHandle;
use crate::log_length::LogLimits;

const CLUSTER: Stream = Stream::Cluster(ClusterId::DEFAULT);

/// Small limits, so that few batches are enough.
const LIMITS: LogLimits = LogLimits { batches: 20, bytes: 1 << 20 };

async fn server(engine: &SimulatedEngine, name: &str) -> TestServer {
    server_with(tempfile::tempdir().unwrap(), engine, name, LIMITS).await
}

fn realm(engine: &SimulatedEngine) -> Realm {
    let keys = Keyspace::new("/forewarn/1/").unwrap();
    Realm::new(Engine::Simulated(engine.clone()), keys, CallTimes::default())
}

/// Adds hosts with these numbers, each by a batch of its own.
async fn add_hosts(control: &ControlHandle, numbers: std::ops::Range<usize>) {
    for number in numbers {
        control.submit(host(&format!("h{number}"))).await.unwrap();
    }
}

async fn create_clusters(control: &ControlHandle, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let create = Administration::CreateCluster(Name::new(&format!("c{number}")).unwrap());
        control.administer(create, RequestContext::default()).await.unwrap();
    }
}

/// Returns true once the log no longer has its first batch.
async fn is_shortened(realm: &Realm, stream: Stream) -> bool {
    let content = realm.read_stream(stream, ReadFrom::After(StreamPosition::default())).await.unwrap();
    matches!(content.start, StreamStart::State(..))
}

async fn until_shortened(realm: &Realm, stream: Stream) {
    for _ in 0..600 {
        if is_shortened(realm, stream).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not shortened: {stream}");
}

/// The entries of a stream that a server has, as lines.
pub(super) async fn entries(control: &ControlHandle, stream: Stream) -> Vec<String> {
    let (mut lines, mut after) = (Vec::new(), None);
    loop {
        let query = AuditQuery { stream: Some(stream), after, ..AuditQuery::default() };
        let page = control.read_audit_log(query).await.unwrap();
        lines.extend(page.entries.iter().map(|one| one.entry.to_line()));
        match page.next {
            Some(next) => after = Some(next),
            None => return lines,
        }
    }
}

/// Waits until a server has all audit entries that another one has.
pub(super) async fn until_archived(server: &ControlHandle, other: &ControlHandle, stream: Stream) {
    let expected = entries(other, stream).await;
    for _ in 0..600 {
        if entries(server, stream).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let found = entries(server, stream).await;
    panic!("{stream}: {} entries instead of {}", found.len(), expected.len());
}

async fn stop_and_check(servers: Vec<TestServer>) {
    for server in servers {
        server.control.stop().await;
        drop(server.control);
        check(server.directory.path()).unwrap();
    }
}

/// promise: D5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_joins_from_stored_states_and_copies_older_audit_entries() {
    let engine = SimulatedEngine::new();
    let realm = realm(&engine);
    let (one, two) = (server(&engine, "one").await, server(&engine, "two").await);
    add_hosts(&one.control, 0..30).await;
    add_hosts(&two.control, 30..60).await;
    create_clusters(&one.control, 0..25).await;
    until_shortened(&realm, CLUSTER).await;
    until_shortened(&realm, Stream::Shared).await;
    add_hosts(&one.control, 60..65).await;
    let three = server(&engine, "three").await;
    three.control.confirm_reads().await.unwrap();
    assert_eq!(names(&three.control), names(&one.control));
    assert_eq!(three.control.shared().clusters().count(), 26);
    add_hosts(&three.control, 65..70).await;
    three.control.confirm_reads().await.unwrap();
    assert_eq!(hosts(&three.control), 70);
    until_archived(&three.control, &one.control, CLUSTER).await;
    until_archived(&three.control, &one.control, Stream::Shared).await;
    // The copy is complete: the server starts again from its own journal, and takes over.
    one.control.stop().await;
    two.control.stop().await;
    three.control.stop().await;
    let TestServer { directory, control, .. } = three;
    drop(control);
    check(directory.path()).unwrap();
    let again = server_with(directory, &engine, "three", LIMITS).await;
    add_hosts(&again.control, 70..71).await;
    assert_eq!(hosts(&again.control), 71);
    stop_and_check(vec![again, one, two]).await;
}

/// promise: D5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_cut_off_goes_on_from_a_stored_state() {
    let engine = SimulatedEngine::new();
    let realm = realm(&engine);
    let mut servers = Vec::new();
    for name in ["one", "two", "three"] {
        servers.push(server(&engine, name).await);
    }
    add_hosts(&servers[0].control, 0..5).await;
    let owner = servers[0].control.cluster_owner(ClusterId::DEFAULT).unwrap();
    let cut = servers.iter().position(|server| server.control.realm_name() != Some(&owner)).unwrap();
    let cut = servers.remove(cut);
    until("the copy is complete", || hosts(&cut.control) == 5).await;
    cut.engine.cut();
    let revision =
        |control: &ControlHandle| control.snapshot().state.cluster(ClusterId::DEFAULT).unwrap().log_number();
    let before = revision(&cut.control);
    add_hosts(&servers[0].control, 5..50).await;
    create_clusters(&servers[0].control, 0..25).await;
    until_shortened(&realm, CLUSTER).await;
    until_shortened(&realm, Stream::Shared).await;
    assert_eq!(revision(&cut.control), before, "it cannot know them");
    cut.engine.heal();
    until("it has caught up", || hosts(&cut.control) == 50).await;
    until("it knows the clusters", || cut.control.shared().clusters().count() == 26).await;
    cut.control.confirm_reads().await.unwrap();
    add_hosts(&cut.control, 50..52).await;
    cut.control.confirm_reads().await.unwrap();
    assert_eq!(names(&cut.control), names(&servers[0].control));
    until_archived(&cut.control, &servers[0].control, CLUSTER).await;
    until_archived(&cut.control, &servers[0].control, Stream::Shared).await;
    servers.push(cut);
    stop_and_check(servers).await;
}

/// promise: D5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_removed_cluster() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    create_clusters(&one.control, 0..1).await;
    let id = one.control.shared().cluster_named("c0").unwrap();
    let stream = Stream::Cluster(id);
    until("it has an owner", || one.control.cluster_owner(id).is_some()).await;
    let of_cluster = || {
        let part = format!("/{stream}");
        let keys =
            engine.contents().into_iter().map(|entry| String::from_utf8_lossy(&entry.key).into_owned());
        keys.filter(|key| key.contains(&part)).collect::<Vec<_>>()
    };
    until("it has a log", || of_cluster().iter().any(|key| key.contains("head/"))).await;
    let remove = Administration::RemoveCluster(Name::new("c0").unwrap());
    one.control.administer(remove, RequestContext::default()).await.unwrap();
    until("its keys are gone", || of_cluster().is_empty()).await;
    let admin = one.control.realm_admin().unwrap();
    until("the server forgets it", || {
        let view = admin.view.lock();
        !view.standings.contains_key(&id) && !view.driven.contains_key(&id)
    })
    .await;
    stop_and_check(vec![one]).await;
}
