//! Commits, and reads of them.

use forewarn_control::{Chain, Stream};
use forewarn_ownership::BeginError;
use forewarn_realm::{AuditMode, BatchError, CommitError, NewBatch, ReadFrom, RealmError, StreamStart};

use crate::engines::{TestEngine, keys_below};
use crate::world::{World, assert_chain, cluster, committed, log_of, state_of, time_at};

pub async fn batches_are_read_as_they_were_committed(engine: &TestEngine) {
    let mut world = World::new(cluster(3));
    let realm = engine.realm();
    assert_eq!(realm.head(world.stream).await.unwrap(), None);
    let absent = realm.read_stream(world.stream, ReadFrom::Beginning).await;
    assert_eq!(absent.unwrap_err(), RealmError::NoStream(world.stream));
    let mut owned = world.create(&realm, "a").await;
    let mut sent = Vec::new();
    for (records, entries) in [(1, 1), (0, 2), (3, 0), (0, 0), (2, 1)] {
        let batch = world.batch(records, entries);
        sent.push(batch.clone());
        assert_eq!(committed(owned.commit(&batch).await.unwrap()), sent.len() as u64);
    }
    let other = engine.realm();
    let content = other.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    assert_eq!(content.start, StreamStart::Initial);
    assert_eq!(content.head, owned.known_head());
    world.assert_content(&content);
    for (batch, sent) in content.batches.iter().zip(&sent) {
        assert_eq!((&batch.records, &batch.entries), (&sent.records, &sent.entries));
    }
    assert_chain(&log_of(&content.batches));
    let middle = content.batches[1].records_after();
    let position = forewarn_realm::StreamPosition {
        number: 2,
        records: middle,
        chain: content.batches[1].chain_after().unwrap(),
    };
    let rest = other.read_stream(world.stream, ReadFrom::After(position)).await.unwrap();
    assert_eq!(rest.start, StreamStart::After(position));
    assert_eq!(rest.batches, content.batches[2..]);
    let end = ReadFrom::After(world.position(5));
    assert_eq!(other.read_stream(world.stream, end).await.unwrap().batches, []);
    let beyond = other.read_stream(world.stream, ReadFrom::After(world.position(6))).await.unwrap_err();
    assert_eq!(beyond, RealmError::Older { stream: world.stream, known: 6, found: 5 });
    let heads = other.heads().await.unwrap();
    assert_eq!(heads.heads.into_iter().collect::<Vec<_>>(), [(world.stream, owned.known_head())]);
    assert_eq!(heads.owners[&world.stream].server, crate::world::server("a"));
}

pub async fn the_next_owner_continues_the_stream(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    drop(world.create(&realm, "a").await);
    for round in 0..4 {
        let realm = engine.realm();
        let mut owned = world.take_over(&realm, ["b", "a"][round % 2]).await;
        assert_eq!(owned.head().term.0, 2 + round as u64);
        let content = owned.read(ReadFrom::Beginning).await.unwrap();
        world.assert_content(&content);
        for _ in 0..3 {
            world.commit(&mut owned, 2, 1).await;
        }
    }
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    assert_eq!(content.batches.len(), 12);
    assert_eq!(content.batches.iter().map(|batch| batch.term.0).max(), Some(5));
    world.assert_content(&content);
}

pub async fn the_last_entries_are_rewritten(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 2).await;
    let last = world.batch(1, 3);
    let ends: Vec<_> = last.entries.iter().map(|entry| Chain::at(entry).unwrap()).collect();
    committed(owned.commit(&last).await.unwrap());
    // One after the other, as for an announcement that moves twice.
    for (before, count) in [(ends[0], 2), (ends[0], 2), (ends[0], 2)] {
        let rewrite = world.rewrite(before, count, "it happened later");
        committed(owned.commit(&rewrite).await.unwrap());
    }
    let too_many = world.clone().rewrite(Chain::default(), 5, "everything");
    assert_eq!(owned.commit(&too_many).await, Err(CommitError::NotTheLastEntries));
    let mut other = world.clone();
    other.chain = ends[0];
    let mut entries: Vec<_> = (0..2).map(|_| other.entry("text")).collect();
    let mut changed = (*entries[1]).clone();
    changed.by = "token eve".to_owned();
    entries[1] = changed.into();
    let (records, mode, time) = (Vec::new(), AuditMode::Rewrite, time_at(9_000));
    let refused = owned.commit(&NewBatch { records, entries, mode, time }).await;
    assert_eq!(refused, Err(CommitError::NotTheLastEntries));
    world.commit(&mut owned, 1, 1).await;
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    world.assert_content(&content);
    let log = log_of(&content.batches);
    assert_chain(&log);
    let later = log.iter().filter(|entry| entry.text == "it happened later").map(|entry| entry.number);
    assert_eq!((log.len(), later.collect::<Vec<_>>()), (6, vec![4, 5]));
}

pub async fn a_commit_that_does_not_follow_changes_nothing(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let head = owned.known_head();
    let mut unchained = world.clone().batch(1, 2);
    unchained.entries.remove(0);
    let refused = owned.commit(&unchained).await.unwrap_err();
    assert!(matches!(refused, CommitError::Batch(BatchError::Unchained(_))), "{refused}");
    let foreign = World::new(Stream::Shared).batch(1, 0);
    let refused = owned.commit(&NewBatch { time: world.time(), ..foreign }).await;
    assert_eq!(refused, Err(CommitError::Batch(BatchError::OtherStream)));
    let early = NewBatch { time: time_at(1), ..world.clone().batch(1, 1) };
    assert_eq!(owned.commit(&early).await, Err(CommitError::Begin(BeginError::EarlierClock)));
    assert_eq!(owned.known_head(), head);
    assert_eq!(keys_below(&realm, "log/").await.len(), 1);
    world.commit(&mut owned, 1, 1).await;
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
}

pub async fn a_refreshed_clock_changes_the_head_only(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    let number = world.commit(&mut owned, 1, 1).await;
    let time = time_at(77_000);
    assert_eq!(committed(owned.refresh_clock(time).await.unwrap()), number);
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    assert_eq!((content.head.head.clock, content.head.head.details.wall), (time.clock, time.wall));
    assert_eq!(state_of(&content, crate::world::initial(world.stream)), world.state);
    assert_eq!(content.batches.len(), 1);
}
