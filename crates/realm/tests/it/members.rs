//! Members of etcd that stop or end: each acknowledged commit is there exactly once, and followers see all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forewarn_control::Stream;
use forewarn_realm::{CommitOutcome, ReadFrom, SharedStream};
use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::wait_until;
use tokio::task::{JoinHandle, block_in_place};

use crate::contract::following::Replica;
use crate::contract::shared;
use crate::engines::TestEngine;
use crate::world::{World, cluster};

/// Commits that must succeed while a member is away.
const COMMITS: u64 = 20;

/// The progress of a writer, and its end.
#[derive(Default)]
struct Progress {
    commits: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    fn add(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until more commits were acknowledged.
    fn wait(&self) {
        let enough = self.commits.load(Ordering::Relaxed) + COMMITS;
        wait_until("commits", || (self.commits.load(Ordering::Relaxed) >= enough).then_some(()));
    }
}

type Acknowledged = Vec<(u64, String)>;

/// The owner of a stream, which commits all the time.
fn spawn_owner(engine: &TestEngine, progress: Arc<Progress>) -> JoinHandle<(World, Acknowledged)> {
    let realm = engine.realm();
    tokio::spawn(async move {
        let mut world = World::new(cluster(0));
        let mut owned = world.create(&realm, "a").await;
        let mut acknowledged = Vec::new();
        for commit in 0.. {
            if progress.is_over() {
                break;
            }
            let text = format!("commit {commit}");
            let mut batch = world.batch(1, 0);
            batch.entries = vec![world.entry(&text)];
            match owned.commit(&batch).await.unwrap() {
                CommitOutcome::Committed { number, .. } => acknowledged.push((number, text)),
                CommitOutcome::Fenced { head, .. } => panic!("nobody else wants it: {head:?}"),
            }
            progress.add();
        }
        (world, acknowledged)
    })
}

/// A writer of the shared stream.
fn spawn_writer(engine: &TestEngine, writer: u64, progress: Arc<Progress>) -> JoinHandle<Acknowledged> {
    let realm = engine.realm();
    tokio::spawn(async move {
        let head = realm.head(Stream::Shared).await.unwrap().unwrap();
        let mut stream = SharedStream::at(&realm, head);
        let mut acknowledged = Vec::new();
        for commit in 0.. {
            if progress.is_over() {
                break;
            }
            let text = format!("commit {commit} of {writer}");
            acknowledged.push((shared::commit_text(&mut stream, &text, 2_000).await, text));
            progress.add();
        }
        acknowledged
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_of_etcd_that_stops_or_ends_loses_no_acknowledged_commit() {
    let Some(mut members) = EtcdCluster::start(3) else { return };
    let engine = TestEngine::on_etcd(members.endpoints());
    drop(shared::created(&engine.realm()).await);
    // Writers of the shared stream are counted together: one may win for a while.
    let progress = [Arc::<Progress>::default(), Arc::default()];
    let owner = spawn_owner(&engine, Arc::clone(&progress[0]));
    let writers = [1, 2].map(|writer| spawn_writer(&engine, writer, Arc::clone(&progress[1])));
    let wait = || progress.iter().for_each(|one| one.wait());
    block_in_place(|| {
        wait();
        for _ in 0..2 {
            let leader = members.leader();
            members.stop(leader);
            wait();
            members.resume(leader);
            wait();
        }
        let leader = members.leader();
        members.kill(leader);
        wait();
        members.restart(leader);
        wait();
    });
    progress.iter().for_each(|one| one.is_over.store(true, Ordering::Relaxed));
    let (world, acknowledged) = owner.await.unwrap();
    let realm = engine.realm();
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    world.assert_content(&content);
    assert_eq!(content.batches.len(), acknowledged.len());
    shared::assert_texts(&content.batches, &acknowledged);
    let mut shared_acknowledged = Vec::new();
    for writer in writers {
        shared_acknowledged.extend(writer.await.unwrap());
    }
    let shared_content = realm.read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
    assert_eq!(shared_content.batches.len(), shared_acknowledged.len());
    shared::assert_texts(&shared_content.batches, &shared_acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_goes_on_when_its_member_ends() {
    let Some(mut members) = EtcdCluster::start(3) else { return };
    let engine = TestEngine::on_etcd(members.endpoints());
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    let mut replica = Replica::new(&engine.realm());
    for member in 0..3 {
        world.commit(&mut owned, 1, 1).await;
        replica.follow_to(&owned.known_head(), world.stream).await;
        // The first one ends, the second one stops: whoever has the watch.
        block_in_place(|| match member {
            0 => members.kill(0),
            1 => members.restart(0),
            _ => members.stop(1),
        });
        world.commit(&mut owned, 1, 1).await;
        let head = owned.known_head();
        // Calls fail as long as there is no leader.
        while replica.heads.get(&world.stream) != Some(&head) {
            if let Ok(change) = replica.follower.next().await {
                replica.take(change);
            }
        }
        replica.assert_follows(&world);
    }
}
