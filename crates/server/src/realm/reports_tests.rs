//! Clocks, notice and polls of a cluster whose VMs poll several servers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::{
    Command, HostId, MachineId, Name, Placement, Policy, Priority, Profile, Size, Steady, TenantId,
};
use forewarn_lifecycle::{FaultDomain, UpdateDomain};
use forewarn_metadata::ControlPlane;
use forewarn_ownership::{HeadClock, ServerName};
use forewarn_realm::{
    CallTimes, Engine, Keyspace, NewStream, OwnedStream, Realm, SimulatedEngine, StreamHead, StreamPosition,
    StreamTime, TakeoverOutcome,
};

use super::join::FORMAT;
use super::tests::{KEYS, TestServer, host, server, until};
use super::view::uptime;

const CLUSTER: ClusterId = ClusterId::DEFAULT;
const NOTICE: Duration = Duration::from_mins(15);

fn realm_of(engine: &SimulatedEngine) -> Realm {
    let keys = Keyspace::new(KEYS).unwrap();
    Realm::new(Engine::Simulated(engine.client()), keys, CallTimes::default())
}

async fn head(realm: &Realm) -> StreamHead {
    *realm.head(Stream::Cluster(CLUSTER)).await.unwrap().unwrap().head
}

/// Two servers: the owner of the default cluster first.
async fn pair(engine: &SimulatedEngine) -> [TestServer; 2] {
    let (one, two) = (server(engine, "one").await, server(engine, "two").await);
    one.control.submit(host("h1")).await.unwrap();
    let owner = one.control.cluster_owner(CLUSTER).unwrap();
    if one.control.realm_name() == Some(&owner) { [one, two] } else { [two, one] }
}

/// One machine, enrolled.
async fn admit_solo(through: &TestServer) {
    let (update_domain, fault_domain) = (UpdateDomain(0), FaultDomain(0));
    let placement = Placement { host: HostId(0), update_domain, fault_domain, size: Size::NONE };
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let name = Name::new("solo").unwrap();
    let admit = Command::AdmitStandalone { name, placement, priority, profile, policy };
    through.control.submit(admit).await.unwrap();
}

fn events(server: &TestServer) -> usize {
    let count = server.control.look(|state| state.cluster.tenant(TenantId(0)).map(|one| one.events().len()));
    count.unwrap().unwrap_or(0)
}

fn is_enrolled(server: &TestServer) -> bool {
    let enrolled = server
        .control
        .look(|state| state.cluster.tenant(TenantId(0)).map(forewarn_lifecycle::Tenant::is_enrolled));
    enrolled.unwrap().unwrap_or(false)
}

fn start_of(server: &TestServer) -> Steady {
    let due = server.control.look(|state| state.cluster.maintenances().map(|one| one.plan.steady_due).max());
    due.unwrap().expect("announced")
}

/// promise: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notice_counts_from_the_moment_at_which_every_server_shows_the_event() {
    let engine = SimulatedEngine::new();
    let [owner, follower] = pair(&engine).await;
    admit_solo(&owner).await;
    owner.control.submit(Command::Enrol(TenantId(0))).await.unwrap();
    until("the follower has the machine", || is_enrolled(&follower)).await;
    // The follower is in touch with the owner and has its key, but gets no batch.
    follower.engine.cut();
    owner.control.submit(Command::Restart(MachineId(0))).await.unwrap();
    let announced = uptime();
    until("time passes", || uptime().since(announced) >= 1_500).await;
    assert_eq!((events(&owner), events(&follower)), (1, 0));
    let anchor = head(&realm_of(&engine)).await.clock.anchor.expect("a known boot");
    follower.engine.heal();
    let mut hidden = uptime();
    until("the follower shows the event", || {
        let now = uptime();
        let is_hidden = events(&follower) == 0;
        if is_hidden {
            hidden = now;
        }
        !is_hidden
    })
    .await;
    let hidden = Steady::from_millis(hidden.millis().saturating_add_signed(anchor.offset_millis));
    until("the start waits", || start_of(&owner) >= hidden.plus(NOTICE)).await;
    for server in [owner, follower] {
        server.control.stop().await;
    }
}

/// promise: T2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_of_any_server_enrols_and_is_reported_to_the_owner() {
    let engine = SimulatedEngine::new();
    let [owner, follower] = pair(&engine).await;
    admit_solo(&owner).await;
    until("the follower has the machine", || follower.control.caller_named("solo").is_some()).await;
    follower.control.enrol(CLUSTER, TenantId(0)).await.unwrap();
    until("the owner has enrolled it", || is_enrolled(&owner)).await;
    let caller = follower.control.caller_named("solo").expect("a known machine");
    let polled = Instant::now();
    caller.slot.record_request(follower.control.clock().now().steady);
    let polls = Arc::clone(owner.control.peer_polls());
    let mut ago = None;
    until("the follower has answered", || {
        ago = polls.last_poll(CLUSTER, TenantId(0));
        ago.is_some()
    })
    .await;
    let most = polled.elapsed() + Duration::from_millis(20);
    assert!(ago.is_some_and(|ago| ago <= most), "{ago:?} of {most:?}");
    follower.control.report_poll(caller.id()).await.unwrap();
    for server in [owner, follower] {
        server.control.stop().await;
    }
}

/// promise: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_head_has_the_clock_while_something_waits_and_no_batch_is_written() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    admit_solo(&one).await;
    one.control.submit(Command::Enrol(TenantId(0))).await.unwrap();
    one.control.submit(Command::Restart(MachineId(0))).await.unwrap();
    let realm = realm_of(&engine);
    let mut before = head(&realm).await;
    let mut refreshed = 0;
    while refreshed < 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = head(&realm).await;
        assert!(now.clock.steady.since(before.clock.steady) < Duration::from_mins(1));
        if now.number == before.number && now.clock.steady > before.clock.steady {
            refreshed += 1;
        }
        before = now;
    }
    one.control.stop().await;
}

/// promise: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_continues_from_the_clock_of_the_head() {
    let engine = SimulatedEngine::new();
    let first = server(&engine, "first").await;
    first.control.stop().await;
    // A server of another computer has owned the cluster: its uptime says nothing here.
    let (realm, lost) = (realm_of(&engine), ServerName::new("lost").unwrap());
    let stream = Stream::Cluster(CLUSTER);
    let clock = HeadClock { steady: Steady::from_millis(5_000_000_000_000), anchor: None };
    let time = StreamTime { clock, wall: crate::clock::wall() };
    let owned = match realm.head(stream).await.unwrap() {
        Some(known) => OwnedStream::take_over(&realm, stream, &lost, &known, time).await,
        None => {
            let position = StreamPosition::default();
            OwnedStream::create(
                &realm,
                stream,
                &lost,
                NewStream { state: None, position, time, format: FORMAT },
            )
            .await
        }
    };
    assert!(matches!(owned.unwrap(), TakeoverOutcome::Owned(_)));
    let begun = Instant::now();
    let next = server(&engine, "next").await;
    next.control.submit(host("h1")).await.unwrap();
    let after = head(&realm).await.clock.steady;
    let passed = after.since(clock.steady);
    assert!(after >= clock.steady && passed <= begun.elapsed() + Duration::from_millis(5), "{passed:?}");
    next.control.stop().await;
}

/// promise: D3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_write_its_journal_gives_its_clusters_to_others() {
    let engine = SimulatedEngine::new();
    let [broken, other] = pair(&engine).await;
    broken.control.fail_journal("no space left");
    until("another server owns the cluster", || {
        other.control.cluster_owner(CLUSTER).as_ref() == other.control.realm_name()
    })
    .await;
    other.control.submit(host("h2")).await.unwrap();
    for server in [broken, other] {
        server.control.stop().await;
    }
}
