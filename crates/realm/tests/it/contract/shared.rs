//! The shared stream: many writers, and nothing is lost.

use std::collections::BTreeSet;

use forewarn_control::{Chain, Stream};
use forewarn_realm::{
    AuditMode, Batch, NewBatch, NewStream, ReadFrom, Realm, SharedCreation, SharedOutcome, SharedStream,
    StreamPosition,
};

use crate::engines::TestEngine;
use crate::world::{World, assert_chain, initial, log_of, time_at};

fn new_stream() -> NewStream {
    let state = Some(initial(Stream::Shared));
    NewStream { state, position: StreamPosition::default(), time: time_at(1), format: 1 }
}

pub async fn created(realm: &Realm) -> SharedStream {
    match SharedStream::create(realm, new_stream()).await.unwrap() {
        SharedCreation::Created(shared) => *shared,
        SharedCreation::Exists(head) => SharedStream::at(realm, head),
    }
}

/// A batch with one entry, which says who wrote it.
fn told(chain: Chain, text: &str, millis: u64) -> NewBatch {
    let mut world = World::new(Stream::Shared);
    world.chain = chain;
    let entries = vec![world.entry(text)];
    NewBatch { records: Vec::new(), entries, mode: AuditMode::Append, time: time_at(millis) }
}

/// Commits a text, again and again until it is there. Returns its number.
pub async fn commit_text(shared: &mut SharedStream, text: &str, millis: u64) -> u64 {
    loop {
        let chain = shared.head().unwrap().details.chain;
        match shared.commit(&told(chain, text, millis)).await.unwrap() {
            SharedOutcome::Committed { number, .. } => return number,
            SharedOutcome::Overtaken { number, .. } => {
                shared.catch_up().await.unwrap();
                return number;
            }
            SharedOutcome::Behind { .. } => drop(shared.catch_up().await.unwrap()),
        }
    }
}

/// Asserts that every acknowledged text is in the log under its number, and nothing is there twice.
pub fn assert_texts(batches: &[Batch], acknowledged: &[(u64, String)]) {
    let log = log_of(batches);
    assert_chain(&log);
    let texts: BTreeSet<_> = log.iter().map(|entry| &entry.text).collect();
    assert_eq!(texts.len(), log.len(), "a text is there twice");
    for (number, text) in acknowledged {
        let batch = batches.iter().find(|batch| batch.number == *number).expect("the batch is there");
        assert_eq!(&batch.entries[0].text, text);
    }
}

pub async fn concurrent_writers_lose_nothing(engine: &TestEngine) {
    let commits = engine.share(40, 15);
    drop(created(&engine.realm()).await);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..3_u64 {
        let realm = engine.realm();
        writers.spawn(async move {
            let mut shared = SharedStream::at(&realm, realm.head(Stream::Shared).await.unwrap().unwrap());
            let mut acknowledged = Vec::new();
            for number in 0..commits {
                let text = format!("{number} of writer {writer}");
                // Clocks of servers differ.
                acknowledged.push((commit_text(&mut shared, &text, 1_000 - writer * 300).await, text));
                tokio::task::yield_now().await;
            }
            acknowledged
        });
    }
    let acknowledged = writers.join_all().await.concat();
    let content = engine.realm().read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
    assert_eq!(content.batches.len(), 3 * commits);
    assert_texts(&content.batches, &acknowledged);
}

pub async fn a_writer_that_is_behind_is_told(engine: &TestEngine) {
    let mut world = World::new(Stream::Shared);
    let (first, second) = (engine.realm(), engine.realm());
    let mut one = created(&first).await;
    let mut other = SharedStream::at(&second, second.head(Stream::Shared).await.unwrap().unwrap());
    let batch = world.batch(2, 1);
    assert!(matches!(one.commit(&batch).await.unwrap(), SharedOutcome::Committed { number: 1, .. }));
    let late = World::new(Stream::Shared).batch(1, 1);
    let SharedOutcome::Behind { head } = other.commit(&late).await.unwrap() else { panic!("not behind") };
    assert_eq!(head.as_ref().map(|head| head.revision), Some(one.revision()));
    let missed = other.catch_up().await.unwrap();
    assert_eq!(missed.batches.len(), 1);
    let batch = world.batch(1, 1);
    assert!(matches!(other.commit(&batch).await.unwrap(), SharedOutcome::Committed { number: 2, .. }));
    // A state by the one that is behind, and then by a current one.
    let stale = one.begin_snapshot(initial(Stream::Shared)).unwrap().finish(&first).await.unwrap();
    assert!(matches!(
        one.publish_snapshot(stale, time_at(5_000)).await.unwrap(),
        SharedOutcome::Behind { .. }
    ));
    let snapshot = other.begin_snapshot(world.state.clone()).unwrap().finish(&second).await.unwrap();
    other.publish_snapshot(snapshot, time_at(5_000)).await.unwrap();
    while other.trim(u64::MAX).await.unwrap() == forewarn_realm::TrimProgress::Goes {}
    drop(one.catch_up().await.unwrap());
    let unchanged = one.publish_snapshot(stale, time_at(5_000)).await.unwrap();
    assert!(matches!(unchanged, SharedOutcome::Committed { number: 2, .. }));
    let content = first.read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
    assert!(content.batches.is_empty());
    world.assert_content(&content);
}

pub async fn the_shared_stream_is_created_once(engine: &TestEngine) {
    let mut creations = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let realm = engine.realm();
        creations.spawn(async move { SharedStream::create(&realm, new_stream()).await.unwrap() });
    }
    let outcomes = creations.join_all().await;
    let created = outcomes.iter().filter(|one| matches!(one, SharedCreation::Created(_))).count();
    assert_eq!(created, 1);
    let realm = engine.realm();
    let content = realm.read_stream(Stream::Shared, ReadFrom::Beginning).await.unwrap();
    World::new(Stream::Shared).assert_content(&content);
}
