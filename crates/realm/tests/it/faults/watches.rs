//! Watches that miss events, repeat them or end, and followers that find everything all the same.

use std::time::Duration;

use forewarn_realm::{COMPARISON_INTERVAL, RealmError, RealmKey, WatchFault};
use tokio::time::Instant;

use crate::contract::following::Replica;
use crate::engines::{TestEngine, put, value};
use crate::world::{World, cluster, server};

#[tokio::test(start_paused = true)]
async fn an_event_that_a_watch_misses_is_found_by_the_next_comparison() {
    for faults in [
        vec![WatchFault::Dropped; 2],
        vec![WatchFault::Dropped; 1],
        vec![WatchFault::Repeated; 2],
        vec![WatchFault::Ended],
        vec![WatchFault::Repeated, WatchFault::Ended],
    ] {
        let engine = TestEngine::simulated();
        let realm = engine.realm();
        let mut world = World::new(cluster(0));
        let mut owned = world.create(&realm, "a").await;
        let (watching, client) = engine.faulty();
        let mut replica = Replica::new(&watching);
        replica.follow_until("everything", |one| one.current == 1).await;
        faults.iter().for_each(|fault| client.meet_in_watch(*fault));
        world.commit(&mut owned, 1, 1).await;
        let begin = Instant::now();
        replica.follow_to(&owned.known_head(), world.stream).await;
        replica.assert_follows(&world);
        assert!(begin.elapsed() <= COMPARISON_INTERVAL + Duration::from_secs(1));
        // A later event shows the gap at once.
        client.meet_in_watch(WatchFault::Dropped);
        world.commit(&mut owned, 1, 1).await;
        world.commit(&mut owned, 1, 1).await;
        replica.follow_to(&owned.known_head(), world.stream).await;
        replica.assert_follows(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gap_that_a_later_event_shows_is_repaired_at_once() {
    // The batch; the batch and its head; its head.
    for (dropped, kept) in [(1, 0), (2, 0), (1, 1)] {
        let engine = TestEngine::simulated();
        let realm = engine.realm();
        let mut world = World::new(cluster(0));
        let mut owned = world.create(&realm, "a").await;
        let (watching, client) = engine.faulty();
        let mut replica = Replica::new(&watching);
        world.commit(&mut owned, 1, 1).await;
        replica.follow_to(&owned.known_head(), world.stream).await;
        replica.follow_until("everything", |one| one.current == 1).await;
        let begin = Instant::now();
        (0..kept).for_each(|_| client.meet_in_watch(WatchFault::Repeated));
        (0..dropped).for_each(|_| client.meet_in_watch(WatchFault::Dropped));
        world.commit(&mut owned, 1, 1).await;
        if dropped + kept > 1 {
            world.commit(&mut owned, 1, 1).await;
        }
        replica.follow_to(&owned.known_head(), world.stream).await;
        replica.assert_follows(&world);
        assert!(begin.elapsed() < Duration::from_secs(5), "{dropped} after {kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_key_that_a_watch_misses_is_found_by_the_next_comparison() {
    let engine = TestEngine::simulated();
    let realm = engine.realm();
    let (watching, client) = engine.faulty();
    let mut replica = Replica::new(&watching);
    realm.set_preferred(cluster(1), Some(&server("a"))).await.unwrap();
    replica.follow_until("everything", |one| one.current == 1).await;
    client.meet_in_watch(WatchFault::Dropped);
    client.meet_in_watch(WatchFault::Dropped);
    realm.set_preferred(cluster(1), None).await.unwrap();
    realm.set_preferred(cluster(2), Some(&server("a"))).await.unwrap();
    replica.follow_until("a comparison", |one| one.current == 2).await;
    assert_eq!(replica.preferred[&cluster(1)], None);
    assert_eq!(replica.preferred[&cluster(2)], Some(server("a")));
    // A value that nobody can read does not keep others from being followed.
    put(&realm, &RealmKey::Preferred(cluster(2)), Some("nonsense".into())).await;
    replica.follow_until("it is ignored", |one| one.preferred[&cluster(2)].is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_fails_in_an_outage_and_goes_on_after_it() {
    let engine = TestEngine::simulated();
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    let (watching, client) = engine.faulty();
    let mut replica = Replica::new(&watching);
    world.commit(&mut owned, 1, 1).await;
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.follow_until("everything", |one| one.current == 1).await;
    client.cut();
    world.commit(&mut owned, 1, 1).await;
    for _ in 0..3 {
        let failed = replica.follower.next().await;
        assert!(matches!(failed, Err(RealmError::Unavailable(_))), "{failed:?}");
    }
    world.commit(&mut owned, 1, 1).await;
    client.heal();
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.assert_follows(&world);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_batch_stops_its_follower_with_the_name_of_its_key() {
    let engine = TestEngine::simulated();
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let (key, mut replica) = (RealmKey::Log(world.stream, 1), Replica::new(&engine.realm()));
    let intact = value(&realm, &key).await.unwrap();
    put(&realm, &key, Some(intact.slice(..20))).await;
    for _ in 0..2 {
        match replica.follower.next().await {
            Err(RealmError::Damaged { key: named, .. }) => assert_eq!(named, key.to_string()),
            Ok(change) => replica.take(change),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(replica.batches.is_empty());
    put(&realm, &key, Some(intact)).await;
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.assert_follows(&world);
}
