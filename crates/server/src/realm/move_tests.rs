//! Moves and drains of servers in one process, on a simulated engine; an engine that was restored.

use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::{ClusterId, ControlError, ServerStateWord, Stream};
use forewarn_lifecycle::Name;
use forewarn_realm::{
    ArchivedNumbers, CallTimes, Engine, Keyspace, MoveOutcome, OwnedStream, Realm, ServerName,
    SimulatedEngine, StreamTime, TakeoverOutcome,
};
use tokio::sync::oneshot;

use super::takeover::{Takeover, take_over};
use super::tests::{TestServer, host, hosts, names, server, server_in, until};
use crate::message::ClusterMessage;

/// Waits until all servers say the same owner, and returns it.
pub(super) async fn agreed_owner(servers: &[TestServer], is_wanted: impl Fn(&Name) -> bool) -> Name {
    let owner =
        |server: &TestServer| server.control.cluster_owner(ClusterId::DEFAULT).filter(|one| is_wanted(one));
    until("an owner", || {
        let owners: Vec<_> = servers.iter().map(owner).collect();
        owners[0].is_some() && owners.iter().all(|one| *one == owners[0])
    })
    .await;
    owner(&servers[0]).unwrap()
}

pub(super) async fn three_servers(engine: &SimulatedEngine) -> Vec<TestServer> {
    let mut servers = Vec::new();
    for name in ["one", "two", "three"] {
        servers.push(server(engine, name).await);
    }
    let others = &servers;
    until("every server hears the others", || {
        others.iter().all(|server| {
            let admin = server.control.realm_admin().unwrap();
            admin.view.lock().peers.live(super::view::uptime()).len() == others.len()
        })
    })
    .await;
    servers
}

pub(super) async fn stop_all(servers: Vec<TestServer>) {
    for server in servers {
        server.control.stop().await;
    }
}

fn term(server: &TestServer) -> u64 {
    server.control.realm_admin().unwrap().owner(ClusterId::DEFAULT).term
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_moves_without_a_takeover_and_loses_nothing() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("before")).await.unwrap();
    let first = agreed_owner(&servers, |_| true).await;
    let (mut owner, mut expected) = (first, vec!["before".to_owned()]);
    for turn in 0..6 {
        let to = Name::new(["one", "two", "three"].into_iter().find(|name| *name != owner.as_str()).unwrap())
            .unwrap();
        let before = term(&servers[0]);
        // Requests through every server while the cluster moves.
        let requests: Vec<_> = servers
            .iter()
            .enumerate()
            .map(|(number, server)| {
                let (control, name) = (server.control.clone(), format!("during-{turn}-{number}"));
                expected.push(name.clone());
                tokio::spawn(async move { control.submit(host(&name)).await })
            })
            .collect();
        let admin = servers[turn % 3].control.realm_admin().unwrap();
        let moved = admin.move_cluster(ClusterId::DEFAULT, to.as_str()).await.unwrap();
        assert_eq!(
            (moved.server.as_deref(), moved.preferred.as_deref()),
            (Some(to.as_str()), Some(to.as_str()))
        );
        for request in requests {
            request.await.unwrap().unwrap();
        }
        owner = agreed_owner(&servers, |found| *found == to).await;
        assert_eq!(term(&servers[0]), before + 1, "a move changes the term once");
    }
    expected.sort();
    for server in &servers {
        server.control.confirm_reads().await.unwrap();
        let mut found = names(&server.control);
        found.sort();
        assert_eq!(found, expected);
    }
    stop_all(servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_server_gives_its_clusters_away_and_takes_none() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let first = agreed_owner(&servers, |_| true).await;
    let admin = servers[0].control.realm_admin().unwrap();
    let drained = admin.set_draining(first.as_str(), true).await.unwrap();
    assert_eq!(drained.state, ServerStateWord::Draining);
    let second = agreed_owner(&servers, |found| *found != first).await;
    let refused = admin.move_cluster(ClusterId::DEFAULT, first.as_str()).await.unwrap_err();
    assert!(refused.to_string().contains("cannot own clusters now"), "{refused}");
    // It answers, and takes requests for the owner.
    let by_name =
        |name: &Name| servers.iter().find(|server| server.control.realm_name() == Some(name)).unwrap();
    by_name(&first).control.submit(host("h2")).await.unwrap();
    admin.set_draining(second.as_str(), true).await.unwrap();
    let third = agreed_owner(&servers, |found| *found != first && *found != second).await;
    // No other server may own it: it stays.
    admin.set_draining(third.as_str(), true).await.unwrap();
    by_name(&second).control.submit(host("h3")).await.unwrap();
    assert_eq!(agreed_owner(&servers, |_| true).await, third);
    admin.set_draining(first.as_str(), false).await.unwrap();
    assert_eq!(agreed_owner(&servers, |found| *found != third).await, first);
    by_name(&third).control.confirm_reads().await.unwrap();
    assert_eq!(hosts(&by_name(&third).control), 3);
    stop_all(servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_gives_its_clusters_away_first() {
    let engine = SimulatedEngine::new();
    let mut servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let first = agreed_owner(&servers, |_| true).await;
    let before = term(&servers[0]);
    let at = servers.iter().position(|server| server.control.realm_name() == Some(&first)).unwrap();
    let leaving = servers.remove(at);
    leaving.control.leave_realm().await;
    agreed_owner(&servers, |found| *found != first).await;
    assert_eq!(term(&servers[0]), before + 1);
    assert_ne!(leaving.control.cluster_owner(ClusterId::DEFAULT), Some(first));
    leaving.control.stop().await;
    servers[0].control.submit(host("h2")).await.unwrap();
    stop_all(servers).await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_to_a_server_that_is_cut_off_ends_with_one_owner() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let owner = agreed_owner(&servers, |_| true).await;
    let (to, others): (Vec<_>, Vec<_>) = servers
        .iter()
        .filter(|server| server.control.realm_name() != Some(&owner))
        .enumerate()
        .partition(|(at, _)| *at == 0);
    let (to, other) = (to[0].1, others[0].1);
    let name = to.control.realm_name().unwrap().clone();
    // It becomes the owner, and cannot accept.
    to.engine.cut();
    let admin = other.control.realm_admin().unwrap();
    drop(admin.move_cluster(ClusterId::DEFAULT, name.as_str()).await);
    other.control.submit(host("h2")).await.unwrap();
    to.engine.heal();
    until("the copy is complete", || hosts(&to.control) == 2).await;
    to.control.submit(host("h3")).await.unwrap();
    for server in &servers {
        server.control.confirm_reads().await.unwrap();
        assert_eq!(hosts(&server.control), 3);
    }
    stop_all(servers).await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_gets_its_cluster_back_while_it_is_cut_off_decides_again() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    let (stream, own) = (Stream::Cluster(ClusterId::DEFAULT), ServerName::new("one").unwrap());
    // It misses that another server takes the cluster over and gives it back: only the last owner is in the engine.
    one.engine.cut();
    let other = Realm::new(
        Engine::Simulated(engine.client()),
        Keyspace::new(super::tests::KEYS).unwrap(),
        CallTimes::default(),
    );
    let known = other.head(stream).await.unwrap().unwrap();
    let time = StreamTime { clock: known.head.clock, wall: known.head.details.wall };
    let two = ServerName::new("two").unwrap();
    let outcome = OwnedStream::take_over(&other, stream, &two, &known, time).await.unwrap();
    let TakeoverOutcome::Owned(mut taken) = outcome else { panic!("the head has changed") };
    let moved = taken.hand_over(&own, time).await.unwrap();
    let MoveOutcome::Moved { revision, .. } = moved else { panic!("{moved:?}") };
    other.compact(revision).await.unwrap();
    let term = taken.head().term.0;
    one.engine.heal();
    until("the server has the cluster again", || {
        let admin = one.control.realm_admin().unwrap();
        admin.view.lock().driven.get(&ClusterId::DEFAULT).is_some_and(|driven| *driven >= term)
    })
    .await;
    one.control.submit(host("h2")).await.unwrap();
    assert_eq!(hosts(&one.control), 2);
    one.control.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_listed_and_those_that_are_gone_are_forgotten() {
    let engine = SimulatedEngine::new();
    let mut servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let owner = agreed_owner(&servers, |_| true).await;
    let admin = servers[0].control.realm_admin().unwrap();
    let listed = admin.servers().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["one", "three", "two"]);
    assert!(listed.iter().all(|one| one.state == ServerStateWord::Active && one.formats == [super::FORMAT]));
    assert!(listed.iter().all(|one| (one.clusters == ["default"]) == (one.name == owner.as_str())));
    let refused = admin.forget_server("two").await.unwrap_err().to_string();
    assert!(refused.contains("is a member of the realm"), "{refused}");
    let unknown = admin.server("twoo").await.unwrap_err().to_string();
    assert_eq!(unknown, "no such server: twoo\n  hint: did you mean two?");
    let at =
        servers.iter().position(|server| server.control.realm_name().unwrap().as_str() == "two").unwrap();
    let two = ServerName::new("two").unwrap();
    admin.realm.record_archived(&two, &ArchivedNumbers::default()).await.unwrap();
    let gone = servers.remove(at);
    gone.control.stop().await;
    let admin = servers[0].control.realm_admin().unwrap();
    until("the server is gone", || !admin.view.lock().servers.contains_key(&two)).await;
    assert_eq!(admin.server("two").await.unwrap().state, ServerStateWord::Gone);
    let refused = admin.set_format(1).await.unwrap_err().to_string();
    assert!(refused.contains("forewarn server delete two"), "{refused}");
    admin.forget_server("two").await.unwrap();
    assert_eq!(admin.servers().await.unwrap().len(), 2);
    assert_eq!(admin.set_format(1).await.unwrap().format, 1);
    let refused = admin.set_format(2).await.unwrap_err().to_string();
    assert!(refused.contains("does not read format 2: it reads 1"), "{refused}");
    let realm = admin.describe().await.unwrap();
    assert_eq!(realm.streams.keys().collect::<Vec<_>>(), ["cluster-0", "shared"]);
    assert_eq!((realm.format, realm.restores, realm.restored), (1, 0, None));
    stop_all(servers).await;
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_finds_a_restored_engine_owns_nothing() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    let backup = engine.restored();
    one.control.submit(host("h2")).await.unwrap();
    one.control.stop().await;
    let mut directory = one.directory;
    // By the id of the engine, and without it by the end of the log.
    for expected in ["another cluster id", "ends with batch"] {
        let again = server_in(directory, &backup, "one").await;
        assert_eq!(hosts(&again.control), 2, "the copy is still shown");
        let refused = again.control.submit(host("h3")).await.unwrap_err();
        assert!(matches!(&refused, ControlError::EngineRestored(why) if why.contains(expected)), "{refused}");
        assert!(matches!(again.control.confirm_reads().await, Err(ControlError::EngineRestored(_))));
        let realm = again.control.realm_admin().unwrap().describe().await.unwrap();
        assert!(realm.restored.is_some_and(|why| why.contains(expected)));
        assert_eq!(again.control.owned_clusters(&again.control.shared()).len(), 0);
        again.control.stop().await;
        directory = again.directory;
        // The second time, there is none.
        drop(std::fs::remove_file(directory.path().join("engine.json")));
    }
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_fails_on_its_server_goes_on_on_another_one() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let first = agreed_owner(&servers, |_| true).await;
    let at = servers.iter().position(|server| server.control.realm_name() == Some(&first)).unwrap();
    servers[at]
        .control
        .realm_admin()
        .unwrap()
        .move_cluster(ClusterId::DEFAULT, first.as_str())
        .await
        .unwrap();
    servers[at].control.send_to_cluster(ClusterId::DEFAULT, ClusterMessage::Panic).await;
    let second = agreed_owner(&servers, |found| *found != first).await;
    for (number, server) in servers.iter().enumerate() {
        server.control.submit(host(&format!("h{}", number + 2))).await.unwrap();
    }
    for (number, server) in servers.iter().enumerate() {
        server.control.confirm_reads().await.unwrap();
        let expected = if number == at { 1 } else { 4 };
        assert_eq!(hosts(&server.control), expected, "its last state is shown where it has failed");
    }
    assert_eq!(agreed_owner(&servers, |_| true).await, second);
    let admin = servers[(at + 1) % 3].control.realm_admin().unwrap();
    until("the server is not preferred any more", || admin.owner(ClusterId::DEFAULT).preferred.is_none())
        .await;
    stop_all(servers).await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_takes_no_batches_delays_no_other_cluster() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let create = Administration::CreateCluster(Name::new("other").unwrap());
    servers[0].control.administer(create, RequestContext::default()).await.unwrap();
    let other = servers[0].control.shared().cluster_named("other").unwrap();
    let owner = agreed_owner(&servers, |_| true).await;
    let busy = servers.iter().find(|server| server.control.realm_name() != Some(&owner)).unwrap();
    until("every server has both", || {
        hosts(&busy.control) == 1 && busy.control.shared().clusters().count() == 2
    })
    .await;
    let link = busy.control.cluster_link(ClusterId::DEFAULT);
    let (release, released) = oneshot::channel();
    link.messages.send(ClusterMessage::Hang(released)).await.unwrap();
    while link.messages.try_send(ClusterMessage::PublishedByOwner(0)).is_ok() {}
    servers[0].control.submit(host("h2")).await.unwrap();
    servers[0].control.of(other).submit(host("there")).await.unwrap();
    until("the other cluster is copied", || hosts(&busy.control.of(other)) == 1).await;
    assert_eq!(hosts(&busy.control), 1);
    drop(release);
    until("the copy is completed", || hosts(&busy.control) == 2).await;
    stop_all(servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_was_carried_out_is_not_carried_out_again_by_a_successor() {
    let engine = SimulatedEngine::new();
    let servers = three_servers(&engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let create = Administration::CreateCluster(Name::new("other").unwrap());
    servers[0].control.administer(create, RequestContext::default()).await.unwrap();
    let other = servers[0].control.shared().cluster_named("other").unwrap();
    let preferred = agreed_owner(&servers, |_| true).await;
    let admin = |name: &Name| {
        let server = servers.iter().find(|server| server.control.realm_name() == Some(name)).unwrap();
        server.control.realm_admin().unwrap()
    };
    // It is there already.
    admin(&preferred).move_cluster(ClusterId::DEFAULT, preferred.as_str()).await.unwrap();
    let knows = |server: &TestServer| {
        let owner = server.control.realm_admin().unwrap().owner(ClusterId::DEFAULT);
        owner.preferred.as_deref() == Some(preferred.as_str())
    };
    until("every server knows the order", || servers.iter().all(knows)).await;
    let cut = servers.iter().find(|server| server.control.realm_name() == Some(&preferred)).unwrap();
    cut.engine.cut();
    let others = || servers.iter().filter(|server| server.control.realm_name() != Some(&preferred));
    let owner = |cluster: ClusterId| {
        let owners: Vec<_> = others().map(|server| server.control.cluster_owner(cluster)).collect();
        owners[0].clone().filter(|owner| *owner != preferred && owners[1].as_ref() == Some(owner))
    };
    until("another owner", || owner(ClusterId::DEFAULT).is_some()).await;
    let successor = owner(ClusterId::DEFAULT).unwrap();
    admin(&successor).move_cluster(other, successor.as_str()).await.unwrap();
    cut.engine.heal();
    until("the former owner is live", || {
        let live = admin(&successor).view.lock().peers.live(super::view::uptime());
        live.contains(&ServerName::from(preferred.clone()))
    })
    .await;
    // A new order is carried out, and the old one is not.
    admin(&successor).move_cluster(other, preferred.as_str()).await.unwrap();
    assert_eq!(owner(ClusterId::DEFAULT), Some(successor));
    stop_all(servers).await;
}

/// promise: D4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_gone_does_not_begin_anew() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    let (cluster, stream) = (ClusterId::DEFAULT, Stream::Cluster(ClusterId::DEFAULT));
    let realm = one.control.realm_admin().unwrap().realm.clone();
    let known = realm.head(stream).await.unwrap().unwrap();
    assert!(realm.remove_stream(stream, &known).await.unwrap());
    assert!(one.control.submit(host("h2")).await.is_err());
    let takeover = Takeover {
        realm: realm.clone(),
        own: ServerName::new("one").unwrap(),
        clock: one.control.clock().clone(),
        cluster,
        link: one.control.cluster_link(cluster),
        is_given: false,
    };
    let refused = take_over(takeover).await.unwrap_err();
    assert_eq!(refused, "the log of the cluster is gone");
    assert_eq!((realm.head(stream).await.unwrap(), hosts(&one.control)), (None, 1));
    one.control.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_without_its_realm_is_refused() {
    let engine = SimulatedEngine::new();
    let one = server(&engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    one.control.stop().await;
    let empty = SimulatedEngine::new();
    let joined = super::tests::try_join(&one.directory, &empty, ("one", None)).await;
    let refused = joined.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("the engine has no realm"), "{refused}");
    assert_eq!(empty.contents().len(), 0, "nothing was written");
}
