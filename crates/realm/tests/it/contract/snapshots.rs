//! Stored states, trims and removals.

use forewarn_control::{ClusterId, Record};
use forewarn_observer::random::{build, layouts, random_operations};
use forewarn_realm::{OwnedStream, ReadFrom, SnapshotProgress, StreamStart, TrimProgress};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::engines::{TestEngine, keys, keys_below};
use crate::world::{World, cluster, committed, initial, state_of};

/// Trims until nothing is left to delete.
pub async fn trim(owned: &mut OwnedStream, upto: u64) {
    while owned.trim(upto).await.unwrap() == TrimProgress::Goes {}
}

/// The records of a random history of a cluster.
pub fn history(runner: &mut TestRunner, id: u32) -> Vec<Record> {
    let (layout, operations) = (layouts(), random_operations()).new_tree(runner).unwrap().current();
    let mut world = build(&layout);
    operations.iter().for_each(|operation| world.happen(operation));
    world.journal.into_iter().map(|(now, change)| Record::rules(now, ClusterId(id), change)).collect()
}

pub async fn state_and_log_give_the_state_of_any_history(engine: &TestEngine) {
    let mut runner = TestRunner::deterministic();
    let realm = engine.realm();
    for number in 0..engine.share(40, 6) {
        let id = u32::try_from(number).unwrap();
        let records = history(&mut runner, id);
        let mut world = World::new(cluster(id));
        let mut owned = world.create(&realm, "a").await;
        let mut writing = None;
        for (place, part) in (number..).zip(records.chunks(7)) {
            world.records += part.len() as u64;
            let batch = world.batch_of(part.to_vec(), place % 3);
            committed(owned.commit(&batch).await.unwrap());
            // A state is written beside commits, a little after each.
            if writing.is_none() && place % 4 == 0 {
                writing = Some(owned.begin_snapshot(world.state.clone()).unwrap());
            }
            if let Some(going) = &mut writing
                && let SnapshotProgress::Done(snapshot) = going.go_on(&realm).await.unwrap()
            {
                owned.publish_snapshot(snapshot, world.time()).await.unwrap();
                owned.trim(owned.head().number).await.unwrap();
                writing = None;
            }
        }
        let content = engine.realm().read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
        world.assert_content(&content);
    }
}

pub async fn a_trim_deletes_what_the_state_covers(engine: &TestEngine) {
    let mut world = World::new(cluster(1));
    let realm = engine.realm();
    let mut neighbour = World::new(cluster(11));
    let mut other = neighbour.create(&realm, "a").await;
    neighbour.commit(&mut other, 1, 1).await;
    let mut owned = world.create(&realm, "a").await;
    for _ in 0..6 {
        world.commit(&mut owned, 2, 1).await;
    }
    assert_eq!(owned.trim(6).await.unwrap(), TrimProgress::Done, "nothing is covered");
    // A state that nobody names, as a crash leaves it.
    owned.begin_snapshot(world.state.clone()).unwrap().finish(&realm).await.unwrap();
    let covered = world.clone();
    let snapshot = owned.begin_snapshot(world.state.clone()).unwrap().finish(&realm).await.unwrap();
    world.commit(&mut owned, 1, 1).await;
    owned.publish_snapshot(snapshot, world.time()).await.unwrap();
    assert_eq!(keys_below(&realm, "snapshot/").await.len(), 2);
    trim(&mut owned, 4).await;
    assert_eq!(keys_below(&realm, "log/cluster-1/").await.len(), 3);
    assert_eq!(keys_below(&realm, "snapshot/").await.len(), 1);
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    assert!(matches!(&content.start, StreamStart::State(state, _) if *state == covered.state));
    world.assert_content(&content);
    // Someone who is too far behind gets the state instead.
    let early = ReadFrom::After(World::new(world.stream).position(2));
    let content = realm.read_stream(world.stream, early).await.unwrap();
    assert!(matches!(content.start, StreamStart::State(..)));
    trim(&mut owned, u64::MAX).await;
    assert_eq!(keys_below(&realm, "log/cluster-1/").await, [format!("log/cluster-1/{:020}", 7)]);
    let content = realm.read_stream(world.stream, ReadFrom::After(covered.position(6))).await.unwrap();
    assert_eq!(state_of(&content, covered.state), world.state);
    neighbour.assert_content(&realm.read_stream(neighbour.stream, ReadFrom::Beginning).await.unwrap());
}

pub async fn a_removed_stream_leaves_nothing(engine: &TestEngine) {
    let mut world = World::new(cluster(1));
    let realm = engine.realm();
    let mut neighbour = World::new(cluster(10));
    drop(neighbour.create(&realm, "a").await);
    let kept = keys(&realm).await;
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let large = world.large_batch(12);
    committed(owned.commit(&large).await.unwrap());
    let snapshot = owned.begin_snapshot(world.state.clone()).unwrap().finish(&realm).await.unwrap();
    owned.publish_snapshot(snapshot, world.time()).await.unwrap();
    realm.set_preferred(world.stream, Some(&crate::world::server("b"))).await.unwrap();
    assert!(!realm.delete_leftovers(world.stream).await.unwrap(), "the stream exists");
    assert!(owned.remove().await.unwrap());
    assert_eq!(keys(&realm).await, kept);
    assert!(realm.delete_leftovers(world.stream).await.unwrap());
    assert_eq!(
        state_of(&neighbour_content(&realm, &neighbour).await, initial(neighbour.stream)),
        neighbour.state
    );
}

async fn neighbour_content(realm: &forewarn_realm::Realm, world: &World) -> forewarn_realm::StreamContent {
    realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap()
}
