//! Random faults, from seeds: every acknowledged commit is in the log exactly once.

use std::collections::BTreeMap;

use forewarn_control::Stream;
use forewarn_realm::{
    CommitFate, CommitOutcome, FaultRates, NewBatch, OwnedStream, ReadFrom, Realm, RealmError, SharedStream,
    SimulatedEngine, TakeoverOutcome,
};

use crate::contract::following::Replica;
use crate::contract::shared;
use crate::engines::TestEngine;
use crate::world::{World, assert_chain, cluster, log_of, server, state_of, time_at};

/// Seeds that are tried.
const SEEDS: u64 = 25;

fn rates(seed: u64) -> FaultRates {
    FaultRates { seed, transactions: 300, reads: 50, events: 100 }
}

/// A server that commits whenever it owns the stream, and takes it over whenever it does not.
struct Contender {
    realm: Realm,
    client: SimulatedEngine,
    name: String,
    owned: Option<OwnedStream>,
    /// Texts that were acknowledged, by number.
    acknowledged: BTreeMap<u64, String>,
}

const STREAM: u32 = 4;

impl Contender {
    fn new(engine: &TestEngine, name: &str, seed: u64) -> Self {
        let (realm, client) = engine.faulty();
        client.meet_randomly(rates(seed));
        let (owned, acknowledged) = (None, BTreeMap::new());
        Self { realm, client, name: name.to_owned(), owned, acknowledged }
    }

    /// The world of the stream as its owner reads it. None if it is no longer the owner.
    async fn read(&self, owned: &OwnedStream) -> Option<World> {
        let mut world = World::new(cluster(STREAM));
        let content = match owned.read(ReadFrom::Beginning).await {
            Err(RealmError::Deposed(_)) => return None,
            content => content.unwrap(),
        };
        world.state = state_of(&content, world.state);
        (world.chain, world.records) = (owned.head().details.chain, owned.head().details.records);
        Some(world)
    }

    async fn commit(&mut self, owned: &mut OwnedStream, world: &mut World, text: &str) -> bool {
        let mut batch = world.batch(1, 0);
        batch.entries = vec![world.entry(text)];
        let steady = owned.head().clock.steady.millis() + 1;
        let batch = NewBatch { time: time_at(steady), ..batch };
        let next = owned.head().number + 1;
        let number = match owned.commit(&batch).await.unwrap() {
            CommitOutcome::Committed { number, .. } => Some(number),
            CommitOutcome::Fenced { fate: CommitFate::Applied, .. } => Some(next),
            CommitOutcome::Fenced { fate: CommitFate::NotApplied, .. } => None,
            CommitOutcome::Fenced { fate: CommitFate::Unknown, .. } => panic!("nothing was trimmed"),
        };
        self.acknowledged.extend(number.map(|number| (number, text.to_owned())));
        self.client.deliver_delayed();
        number == Some(owned.head().number)
    }

    /// A term as the owner, with some commits.
    async fn serve(&mut self, round: u32) {
        let head = self.realm.head(cluster(STREAM)).await.unwrap().unwrap();
        let time = time_at(head.head.clock.steady.millis() + 1);
        let name = server(&self.name);
        let taken = OwnedStream::take_over(&self.realm, cluster(STREAM), &name, &head, time).await;
        let TakeoverOutcome::Owned(mut owned) = taken.unwrap() else { return };
        let Some(mut world) = self.read(&owned).await else { return };
        for commit in 0..5 {
            let text = format!("{} {round} {commit}", self.name);
            if !self.commit(&mut owned, &mut world, &text).await {
                return;
            }
        }
        self.owned = Some(*owned);
    }
}

#[tokio::test(start_paused = true)]
async fn owners_that_fight_lose_no_acknowledged_commit() {
    for seed in 0..SEEDS {
        let engine = TestEngine::simulated();
        drop(World::new(cluster(STREAM)).create(&engine.realm(), "first").await);
        let mut servers = tokio::task::JoinSet::new();
        for number in 0..3_u64 {
            let mut contender = Contender::new(&engine, &format!("s{number}"), seed * 10 + number);
            servers.spawn(async move {
                for round in 0..6 {
                    contender.serve(round).await;
                }
                contender.acknowledged
            });
        }
        let (watching, client) = engine.faulty();
        client.meet_randomly(FaultRates { transactions: 0, ..rates(seed) });
        let (over, mut is_over) = tokio::sync::oneshot::channel();
        let following = tokio::spawn(async move {
            let mut replica = Replica::new(&watching);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut is_over => return replica,
                    change = replica.follower.next() => change.into_iter().for_each(|one| replica.take(one)),
                }
            }
        });
        let acknowledged: Vec<_> = servers.join_all().await.into_iter().flatten().collect();
        over.send(()).unwrap();
        let mut replica = following.await.unwrap();
        let content = engine.realm().read_stream(cluster(STREAM), ReadFrom::Beginning).await.unwrap();
        shared::assert_texts(&content.batches, &acknowledged);
        assert_chain(&log_of(&content.batches));
        assert!(!acknowledged.is_empty(), "seed {seed}");
        replica.follow_to(&content.head, cluster(STREAM)).await;
        assert_eq!(replica.batches[&cluster(STREAM)], content.batches, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn writers_of_the_shared_stream_lose_no_acknowledged_commit() {
    for seed in 0..SEEDS {
        let engine = TestEngine::simulated();
        drop(shared::created(&engine.realm()).await);
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..3_u64 {
            let (realm, client) = engine.faulty();
            client.meet_randomly(rates(seed * 10 + number));
            writers.spawn(async move {
                let mut stream = SharedStream::at(&realm, realm.head(Stream::Shared).await.unwrap().unwrap());
                let mut acknowledged = Vec::new();
                for commit in 0..8 {
                    let text = format!("{number} {commit}");
                    acknowledged.push((shared::commit_text(&mut stream, &text, 2_000).await, text));
                    client.deliver_delayed();
                }
                acknowledged
            });
        }
        let acknowledged = writers.join_all().await.concat();
        let content = engine.realm().read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
        assert_eq!((content.batches.len(), acknowledged.len()), (24, 24), "seed {seed}");
        shared::assert_texts(&content.batches, &acknowledged);
    }
}
