//! Owners: one at a time, and the former one writes nothing more.

use forewarn_realm::{
    CommitFate, CommitOutcome, MoveOutcome, OwnedStream, ReadFrom, RealmError, TakeoverOutcome, TrimProgress,
};

use crate::engines::TestEngine;
use crate::world::{World, cluster, server};

pub async fn a_former_owner_is_fenced(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let (first, second) = (engine.realm(), engine.realm());
    let mut former = world.create(&first, "a").await;
    world.commit(&mut former, 1, 1).await;
    let mut owner = world.take_over(&second, "b").await;
    let lost = former.commit(&world.clone().batch(1, 1)).await.unwrap();
    let head = Some(owner.known_head());
    assert_eq!(lost, CommitOutcome::Fenced { head, fate: CommitFate::NotApplied });
    world.commit(&mut owner, 2, 1).await;
    // For good, whatever it tries.
    let deposed = former.read(ReadFrom::Beginning).await;
    assert_eq!(deposed.unwrap_err(), RealmError::Deposed(world.stream));
    assert!(former.commit(&world.clone().batch(1, 1)).await.is_err());
    assert!(former.refresh_clock(world.time()).await.is_err());
    assert_eq!(former.trim(1).await.unwrap(), TrimProgress::Done);
    assert!(!former.remove().await.unwrap());
    world.assert_content(&owner.read(ReadFrom::Beginning).await.unwrap());
    // A large batch notices it before its first part.
    let mut third = world.take_over(&first, "c").await;
    let lost = owner.commit(&world.clone().large_batch(12)).await.unwrap();
    assert!(matches!(lost, CommitOutcome::Fenced { fate: CommitFate::NotApplied, .. }), "{lost:?}");
    world.commit(&mut third, 1, 1).await;
    world.assert_content(&third.read(ReadFrom::Beginning).await.unwrap());
}

pub async fn one_of_many_takes_over(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    drop(world.create(&realm, "a").await);
    let head = realm.head(world.stream).await.unwrap().unwrap();
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (realm, head, time, stream) = (engine.realm(), head.clone(), world.time(), world.stream);
        attempts.spawn(async move {
            let name = server(&format!("s{number}"));
            OwnedStream::take_over(&realm, stream, &name, &head, time).await.unwrap()
        });
    }
    let mut owners = Vec::new();
    while let Some(outcome) = attempts.join_next().await {
        match outcome.unwrap() {
            TakeoverOutcome::Owned(owned) => owners.push(owned),
            TakeoverOutcome::Lost { head } => assert_eq!(head.unwrap().head.term.0, 2),
        }
    }
    assert_eq!(owners.len(), 1);
    world.commit(&mut owners[0], 1, 1).await;
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
}

pub async fn a_stream_moves_to_another_server(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let (first, second) = (engine.realm(), engine.realm());
    let mut former = world.create(&first, "a").await;
    world.commit(&mut former, 1, 1).await;
    let not_yet = OwnedStream::accept(&second, world.stream, &server("b")).await.unwrap();
    assert!(matches!(not_yet, TakeoverOutcome::Lost { .. }));
    let moved = former.hand_over(&server("b"), world.time()).await.unwrap();
    assert!(matches!(&moved, MoveOutcome::Moved { to, .. } if to.server == server("b") && to.term.0 == 2));
    assert_eq!(second.owner(world.stream).await.unwrap().unwrap().server, server("b"));
    assert!(former.commit(&world.clone().batch(1, 1)).await.is_err());
    let foreign = OwnedStream::accept(&first, world.stream, &server("a")).await.unwrap();
    assert!(matches!(foreign, TakeoverOutcome::Lost { .. }));
    let accepted = OwnedStream::accept(&second, world.stream, &server("b")).await.unwrap();
    let mut owner = crate::world::owned(accepted);
    world.commit(&mut owner, 1, 1).await;
    world.assert_content(&owner.read(ReadFrom::Beginning).await.unwrap());
    assert!(matches!(
        OwnedStream::accept(&second, cluster(9), &server("b")).await.unwrap(),
        TakeoverOutcome::Lost { head: None }
    ));
}
