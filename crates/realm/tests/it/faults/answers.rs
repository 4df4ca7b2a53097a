//! Commits whose answers or requests are lost or late.

use std::time::Duration;

use forewarn_control::Stream;
use forewarn_realm::{
    CommitError, CommitFate, CommitOutcome, Engine, MoveOutcome, NewStream, OwnedStream, ReadFrom, Realm,
    RealmError, RestoreEvidence, SharedOutcome, SharedStream, SimulatedFault, StreamPosition,
    TakeoverOutcome,
};
use forewarn_realm::{EngineMemory, Follower};
use tokio::time::timeout;

use crate::contract::shared;
use crate::engines::TestEngine;
use crate::world::{World, cluster, committed, owned, realm_record, server, time_at};

const LOSSES: [SimulatedFault; 3] =
    [SimulatedFault::LostAnswer, SimulatedFault::LostRequest, SimulatedFault::Delayed];

#[tokio::test(start_paused = true)]
async fn every_step_of_an_owner_is_done_once_although_answers_are_lost() {
    for fault in LOSSES {
        let engine = TestEngine::simulated();
        let (realm, client) = engine.faulty();
        let mut world = World::new(cluster(0));
        client.meet(fault);
        let mut stream = world.create(&realm, "a").await;
        for _ in 0..3 {
            client.meet(fault);
            client.meet(fault);
            world.commit(&mut stream, 1, 1).await;
            client.deliver_delayed();
        }
        client.meet(fault);
        committed(stream.refresh_clock(world.time()).await.unwrap());
        client.meet(fault);
        let snapshot = stream.begin_snapshot(world.state.clone()).unwrap().finish(&realm).await.unwrap();
        client.meet(fault);
        committed(stream.publish_snapshot(snapshot, world.time()).await.unwrap());
        client.meet(fault);
        client.meet(fault);
        let large = world.large_batch(12);
        committed(stream.commit(&large).await.unwrap());
        client.meet(fault);
        let moved = stream.hand_over(&server("b"), world.time()).await.unwrap();
        assert!(matches!(moved, MoveOutcome::Moved { .. }));
        client.deliver_delayed();
        client.meet(fault);
        let mut next = world.take_over(&realm, "c").await;
        assert_eq!(next.head().term.0, 3);
        client.deliver_delayed();
        world.commit(&mut next, 1, 1).await;
        let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
        assert_eq!(content.head, next.known_head());
        world.assert_content(&content);
        client.meet(fault);
        assert!(next.remove().await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_takeover_or_a_creation_is_lost_only_once() {
    for fault in LOSSES {
        let engine = TestEngine::simulated();
        let (realm, client) = engine.faulty();
        let mut world = World::new(cluster(0));
        let stream = world.create(&realm, "a").await;
        let (state, position, format) = (None, StreamPosition::default(), 1);
        let again = NewStream { state, position, time: world.time(), format };
        client.meet(fault);
        let exists = OwnedStream::create(&realm, world.stream, &server("b"), again).await.unwrap();
        assert!(matches!(exists, TakeoverOutcome::Lost { head: Some(_) }));
        let (name, head) = (server("b"), stream.known_head());
        let early = OwnedStream::take_over(&realm, world.stream, &name, &head, time_at(1)).await;
        assert!(matches!(early, Err(CommitError::Begin(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_arrives_after_a_takeover_changes_nothing() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let other = engine.realm();
    let mut world = World::new(cluster(0));
    let mut former = world.create(&realm, "a").await;
    world.commit(&mut former, 1, 1).await;
    client.meet(SimulatedFault::Delayed);
    let late = world.clone().batch(1, 1);
    let waiting = tokio::spawn(async move { former.commit(&late).await });
    // It has sent its transaction, and waits.
    while client.delayed() == 0 {
        tokio::task::yield_now().await;
    }
    client.cut();
    let mut owner = world.take_over(&other, "b").await;
    client.deliver_delayed();
    world.commit(&mut owner, 2, 1).await;
    client.heal();
    let outcome = waiting.await.unwrap().unwrap();
    // The log has another batch under its number.
    let head = Some(owner.known_head());
    assert_eq!(outcome, CommitOutcome::Fenced { head, fate: CommitFate::NotApplied });
    world.assert_content(&other.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_fenced_owner_learns_that_its_batch_was_applied() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let other = engine.realm();
    let mut world = World::new(cluster(0));
    let mut former = world.create(&realm, "a").await;
    client.meet(SimulatedFault::LostAnswer);
    let batch = world.batch(1, 1);
    let waiting = tokio::spawn(async move { former.commit(&batch).await });
    while other.head(world.stream).await.unwrap().unwrap().head.number == 0 {
        tokio::task::yield_now().await;
    }
    client.cut();
    let owner = world.take_over(&other, "b").await;
    world.assert_content(&owner.read(ReadFrom::Beginning).await.unwrap());
    client.heal();
    let outcome = waiting.await.unwrap().unwrap();
    let head = Some(owner.known_head());
    assert_eq!(outcome, CommitOutcome::Fenced { head, fate: CommitFate::Applied });
}

#[tokio::test(start_paused = true)]
async fn a_shared_commit_that_was_overtaken_is_not_repeated() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let other = engine.realm();
    let mut one = shared::created(&realm).await;
    client.meet(SimulatedFault::LostAnswer);
    let batch = World::new(Stream::Shared).batch(1, 1);
    let waiting = tokio::spawn(async move {
        let outcome = one.commit(&batch).await;
        (one, outcome)
    });
    while other.head(Stream::Shared).await.unwrap().unwrap().head.number == 0 {
        tokio::task::yield_now().await;
    }
    let mut second = SharedStream::at(&other, other.head(Stream::Shared).await.unwrap().unwrap());
    shared::commit_text(&mut second, "on top of it", 2_000).await;
    let (mut one, outcome) = waiting.await.unwrap();
    assert!(matches!(outcome.unwrap(), SharedOutcome::Overtaken { number: 1, .. }));
    let missed = one.catch_up().await.unwrap();
    assert_eq!(missed.batches.iter().map(|batch| batch.number).collect::<Vec<_>>(), [1, 2]);
    shared::commit_text(&mut one, "and on", 3_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_commit_changes_nothing() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let mut world = World::new(cluster(0));
    let mut stream = world.create(&realm, "a").await;
    client.meet(SimulatedFault::Refused);
    let refused = stream.commit(&world.clone().batch(1, 1)).await;
    assert!(matches!(refused, Err(CommitError::NotCommitted(RealmError::Refused(_)))), "{refused:?}");
    // After a lost answer, a refusal of the repetition says nothing.
    client.meet(SimulatedFault::LostAnswer);
    client.meet(SimulatedFault::Refused);
    world.commit(&mut stream, 1, 1).await;
    world.assert_content(&stream.read(ReadFrom::Beginning).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_commit_waits_for_the_end_of_an_outage_and_reads_do_not() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let mut world = World::new(cluster(0));
    let mut stream = world.create(&realm, "a").await;
    client.cut();
    assert!(matches!(realm.head(world.stream).await, Err(RealmError::Unavailable(_))));
    assert!(matches!(realm.heads().await, Err(RealmError::Unavailable(_))));
    let batch = world.batch(1, 1);
    let commit = stream.commit(&batch);
    tokio::pin!(commit);
    assert!(timeout(Duration::from_hours(1), &mut commit).await.is_err());
    client.heal();
    committed(commit.await.unwrap());
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_gives_up_commits_without_an_answer() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let mut world = World::new(cluster(0));
    let mut stream = world.create(&realm, "a").await;
    client.cut();
    let batch = world.batch(1, 1);
    let waiting = tokio::spawn(async move { stream.commit(&batch).await });
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!waiting.is_finished());
    realm.give_up_commits();
    assert!(matches!(waiting.await.unwrap(), Err(CommitError::Unknown(_))));
    // A short gap is waited for.
    client.heal();
    client.meet(SimulatedFault::LostAnswer);
    World::new(cluster(1)).create(&realm, "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_commit_of_unknown_outcome_does_not_prevent_the_next_one() {
    for fault in LOSSES {
        let engine = TestEngine::simulated();
        let (realm, client) = engine.faulty();
        let mut shared = shared::created(&realm).await;
        realm.give_up_commits();
        (0..10).for_each(|_| client.meet(fault));
        let unknown = shared.commit(&World::new(Stream::Shared).batch(1, 1)).await;
        assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
        client.heal();
        shared::commit_text(&mut shared, "after it", 2_000).await;
        let content = realm.read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
        assert_eq!(content.batches.len(), if fault == SimulatedFault::LostAnswer { 2 } else { 1 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_engine_is_told_from_the_former_one() {
    let engine = TestEngine::simulated();
    let (realm, client) = engine.faulty();
    let mut world = World::new(cluster(0));
    let mut stream = world.create(&realm, "a").await;
    world.commit(&mut stream, 1, 1).await;
    let backup = client.restored();
    world.commit(&mut stream, 1, 1).await;
    let restored = Realm::new(Engine::Simulated(backup), realm.keys().clone(), *realm.times());
    let memory = EngineMemory {
        cluster_id: Some(realm.engine_status().await.unwrap().cluster_id),
        history: None,
        archived: [(world.stream, 2)].into(),
    };
    let (status, heads) = (restored.engine_status().await.unwrap(), restored.heads().await.unwrap());
    assert!(matches!(
        memory.check(&status, Some(&realm_record()), &heads),
        Err(RestoreEvidence::OtherCluster { .. })
    ));
    let position = world.position(2);
    let (stream, known, found) = (world.stream, 2, 1);
    let older = RealmError::Older { stream, known, found };
    let read = restored.read_stream(stream, ReadFrom::After(position)).await;
    assert_eq!(read.unwrap_err(), older);
    let mut follower = Follower::new(&restored, [(stream, position)].into());
    assert_eq!(follower.next().await, Err(older));
    // Nobody is confused by a head of another stream.
    let mut other = World::new(cluster(1));
    drop(owned(
        OwnedStream::create(
            &restored,
            other.stream,
            &server("a"),
            NewStream { state: None, position: StreamPosition::default(), time: other.time(), format: 1 },
        )
        .await
        .unwrap(),
    ));
}
