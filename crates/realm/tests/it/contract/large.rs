//! Batches above a mebibyte: completely there, or not at all.

use std::time::Duration;

use forewarn_realm::{BatchError, CommitError, KeySpan, ReadFrom, Revision};

use crate::engines::{TestEngine, keys_below};
use crate::world::{World, cluster, committed};

const LIMIT: Duration = Duration::from_secs(10);

pub async fn a_large_batch_is_there_completely(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let large = world.large_batch(25);
    committed(owned.commit(&large).await.unwrap());
    assert_eq!(keys_below(&realm, "part/").await.len(), 5);
    world.commit(&mut owned, 1, 1).await;
    let content = engine.realm().read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    world.assert_content(&content);
    assert_eq!(content.batches.len(), 3);
}

pub async fn a_large_batch_that_was_interrupted_is_not_there(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let lost = world.clone().large_batch(100);
    let parts = KeySpan::prefix(&format!("{}part/", realm.keys().prefix()));
    let Revision(now) = realm.engine_status().await.unwrap().revision;
    let mut watch = realm.engine().watch(parts, Revision(now + 1), LIMIT).await.unwrap();
    // The server ends after the first of twenty parts.
    tokio::select! {
        biased;
        events = watch.next() => assert!(!events.unwrap().is_empty()),
        outcome = owned.commit(&lost) => panic!("committed: {outcome:?}"),
    }
    drop(owned);
    let other = engine.realm();
    let mut next = world.take_over(&other, "b").await;
    let content = next.read(ReadFrom::Beginning).await.unwrap();
    world.assert_content(&content);
    assert_eq!(content.batches.len(), 1);
    let large = world.large_batch(12);
    assert_eq!(committed(next.commit(&large).await.unwrap()), 2);
    world.assert_content(&next.read(ReadFrom::Beginning).await.unwrap());
    let snapshot = next.begin_snapshot(world.state.clone()).unwrap().finish(&other).await.unwrap();
    next.publish_snapshot(snapshot, world.time()).await.unwrap();
    super::snapshots::trim(&mut next, u64::MAX).await;
    assert_eq!(keys_below(&other, "part/").await, Vec::<String>::new());
    assert_eq!(keys_below(&other, "log/").await, Vec::<String>::new());
    world.assert_content(&next.read(ReadFrom::Beginning).await.unwrap());
}

pub async fn a_batch_that_is_too_large_is_refused(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    let refused = owned.commit(&world.clone().large_batch(340)).await;
    assert!(matches!(refused, Err(CommitError::Batch(BatchError::TooLarge(_)))), "{refused:?}");
    assert_eq!(keys_below(&realm, "part/").await, Vec::<String>::new());
    world.commit(&mut owned, 1, 1).await;
    world.assert_content(&owned.read(ReadFrom::Beginning).await.unwrap());
}
