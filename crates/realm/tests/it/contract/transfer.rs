//! A journal of a directory that becomes a realm, and a realm that is read as a whole.

use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ClusterEntry, ClusterId, Record, Stream};
use forewarn_lifecycle::{MaintenanceId, Now};
use forewarn_realm::{
    CancelOutcome, ImportOutcome, ReadFrom, Realm, RealmCompleteness, RealmKey, RealmRecord, StreamPosition,
    StreamStart,
};
use forewarn_store::{Journal, Options, Recovered};
use forewarn_types::{Moment, Seed};
use tempfile::TempDir;

use crate::engines::{TestEngine, put};
use crate::world::{SEED, World, cluster, committed, server};

fn recovered(directory: &TempDir) -> Recovered {
    let (journal, recovered) =
        Journal::open(directory.path(), &Options::new(SEED, Now::at_millis(1_000))).unwrap();
    journal.close().unwrap();
    recovered
}

/// A journal with three clusters and an announcement that nobody may have read.
fn journal(directory: &TempDir) {
    let options = Options::new(SEED, Now::at_millis(1_000));
    let (journal, _) = Journal::open(directory.path(), &options).unwrap();
    let append = |stream, records: &[Record], entries: &[Arc<AuditEntry>]| {
        journal.append(stream, records, entries).unwrap();
    };
    let created = World::new(Stream::Shared).batch(2, 2);
    append(Stream::Shared, &created.records, &created.entries);
    for id in 0..3 {
        let batch = World::new(cluster(id)).batch(4, 3);
        append(cluster(id), &batch.records, &batch.entries);
    }
    let unread = ClusterEntry::Unread(vec![MaintenanceId(7)]);
    append(cluster(1), &[Record::in_cluster(Now::at_millis(2_000), ClusterId(1), unread)], &[]);
    journal.close().unwrap();
}

/// Leaves what an import has written when it is interrupted before its last step.
async fn interrupt_import(realm: &Realm, recovered: &Recovered) {
    let (identity, created) = (recovered.identity, Moment(recovered.created));
    let completeness = RealmCompleteness::Importing;
    let importing =
        RealmRecord { identity, created, format: 1, restores: 0, history: None, clock: None, completeness };
    realm.join(importing).await.unwrap();
    drop(World::new(cluster(9)).create(realm, "a").await);
}

pub async fn an_import_that_is_not_complete_can_be_cancelled(engine: &TestEngine) {
    let directory = TempDir::new().unwrap();
    journal(&directory);
    let recovered = recovered(&directory);
    let realm = engine.realm();
    interrupt_import(&realm, &recovered).await;
    // The journal of another server neither goes on with it nor cancels it.
    let other = Recovered { identity: Seed([9; 16]), ..self::recovered(&directory) };
    let refused = realm.import(&other, &server("b"), None, 1).await.unwrap();
    assert!(matches!(refused, ImportOutcome::Exists(record) if record.identity == recovered.identity));
    assert_eq!(realm.cancel_import(other.identity).await.unwrap(), CancelOutcome::Cancelled);
    assert!(realm.head(cluster(9)).await.unwrap().is_some());
    for _ in 0..2 {
        assert_eq!(realm.cancel_import(recovered.identity).await.unwrap(), CancelOutcome::Cancelled);
        assert!(realm.record().await.unwrap().is_none() && realm.heads().await.unwrap().heads.is_empty());
    }
}

pub async fn a_journal_becomes_a_realm_as_it_was(engine: &TestEngine) {
    let directory = TempDir::new().unwrap();
    journal(&directory);
    let recovered = recovered(&directory);
    let realm = engine.realm();
    interrupt_import(&realm, &recovered).await;
    let imported = realm.import(&recovered, &server("a"), None, 1).await.unwrap();
    assert_eq!(imported, ImportOutcome::Imported);
    assert_eq!(realm.cancel_import(recovered.identity).await.unwrap(), CancelOutcome::Complete);
    let content = realm.read_all().await.unwrap();
    assert_eq!(content.streams.len(), 4);
    assert_eq!(content.streams[&cluster(1)].unread(), [MaintenanceId(7)]);
    assert!(content.streams[&cluster(0)].unread().is_empty());
    for (stream, content) in &content.streams {
        let position = StreamPosition {
            number: 0,
            records: recovered.record_ends[stream],
            chain: recovered.audit_ends[stream],
        };
        assert!(matches!(content.start, StreamStart::State(_, at) if at == position));
        // The copy of the journal goes on with the first batch, which gives its place.
        let after = realm.read_stream(*stream, ReadFrom::After(position)).await.unwrap();
        assert_eq!((after.start, &after.batches), (StreamStart::After(position), &content.batches));
        assert_eq!((content.batches.len(), content.head.head.number), (1, 1));
    }
    let mut copied = recovered.state.clone();
    let batches = content.streams.values().flat_map(|content| &content.batches);
    batches.flat_map(|batch| &batch.records).for_each(|record| drop(copied.apply(record)));
    assert_eq!(copied.shared().log_number(), 1);
    assert!(copied.clusters().all(|(_, cluster)| cluster.log_number() == 1));
    let placed = content.streams[&cluster(0)].batches[0].records.clone();
    assert_eq!(content.unread(), [(ClusterId(1), MaintenanceId(7))]);
    let (state, clock) = content.into_state(recovered.identity).unwrap();
    assert_eq!((state, clock), (copied, recovered.clock));
    let record = realm.record().await.unwrap().unwrap();
    assert_eq!((record.identity, record.created.0), (recovered.identity, recovered.created));
    assert!(record.completeness.is_complete());
    // Streams go on where the journal has ended.
    let mut world = World::new(cluster(0));
    drop(world.batch(4, 3));
    drop(world.batch_of(placed, 0));
    world.records += 1;
    world.forward(5_000);
    let mut owned = world.take_over(&realm, "b").await;
    world.commit(&mut owned, 1, 1).await;
    world.assert_content(&owned.read(ReadFrom::Beginning).await.unwrap());
    let again = realm.import(&recovered, &server("a"), None, 1).await.unwrap();
    assert_eq!(again, ImportOutcome::Exists(record));
    world.assert_content(&owned.read(ReadFrom::Beginning).await.unwrap());
}

pub async fn a_replica_finds_its_place_in_the_log(engine: &TestEngine) {
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    let mut places = vec![world.position(0)];
    for (records, entries) in [(2, 1), (1, 2), (0, 2), (3, 0)] {
        let number = world.commit(&mut owned, records, entries).await;
        places.push(world.position(number));
    }
    let last = world.batch(1, 2);
    let before = last.entries.first().map(|entry| Chain::at(entry).unwrap()).unwrap();
    places.push(world.position(committed(owned.commit(&last).await.unwrap())));
    let mut rewrite = world.rewrite(before, 1, "later");
    rewrite.records = world.batch(1, 0).records;
    rewrite.time = world.time();
    places.push(world.position(committed(owned.commit(&rewrite).await.unwrap())));
    places.push({
        let number = world.commit(&mut owned, 1, 1).await;
        world.position(number)
    });
    for place in &places {
        let found = realm.locate(world.stream, place.records, place.chain).await.unwrap();
        assert_eq!(found.as_ref(), Some(place));
    }
    assert_eq!(realm.locate(world.stream, 4, Chain::default()).await.unwrap(), None);
    // The log begins with the rewrite.
    for number in 1..=5 {
        put(&realm, &RealmKey::Log(world.stream, number), None).await;
    }
    for place in &places[1..6] {
        assert_eq!(realm.locate(world.stream, place.records, place.chain).await.unwrap(), None);
    }
    let found = realm.locate(world.stream, places[6].records, places[6].chain).await.unwrap();
    assert_eq!(found, Some(places[6]));
}
