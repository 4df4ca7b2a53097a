//! Followers: every batch of every stream, in order, whatever happens to their watches.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_control::Stream;
use forewarn_realm::{
    AnnouncementOutcome, ArchivedNumbers, Batch, Follower, KnownHead, OwnerRecord, ReadFrom, Realm,
    RealmChange, ServerName, ServerRecord, position_of,
};
use forewarn_types::Seed;
use tokio::time::timeout;

use crate::engines::TestEngine;
use crate::world::{World, apply, cluster, committed, initial, server};

/// Longer than a comparison takes to come.
const PATIENCE: Duration = Duration::from_secs(90);

/// Everything that a follower has told.
pub struct Replica {
    pub follower: Follower,
    pub batches: BTreeMap<Stream, Vec<Batch>>,
    pub heads: BTreeMap<Stream, KnownHead>,
    pub owners: BTreeMap<Stream, Option<OwnerRecord>>,
    pub servers: BTreeMap<ServerName, Option<ServerRecord>>,
    pub preferred: BTreeMap<Stream, Option<ServerName>>,
    pub archived: BTreeMap<ServerName, Option<ArchivedNumbers>>,
    pub draining: BTreeMap<ServerName, bool>,
    pub behind: Vec<Stream>,
    pub removed: Vec<Stream>,
    pub current: u32,
}

impl Replica {
    pub fn new(realm: &Realm) -> Self {
        Self {
            follower: Follower::new(realm, BTreeMap::new()),
            batches: BTreeMap::new(),
            heads: BTreeMap::new(),
            owners: BTreeMap::new(),
            servers: BTreeMap::new(),
            preferred: BTreeMap::new(),
            archived: BTreeMap::new(),
            draining: BTreeMap::new(),
            behind: Vec::new(),
            removed: Vec::new(),
            current: 0,
        }
    }

    /// Follows until something is true.
    pub async fn follow_until(&mut self, what: &str, is_true: impl Fn(&Self) -> bool) {
        while !is_true(self) {
            let change = timeout(PATIENCE, self.follower.next()).await;
            self.take(change.unwrap_or_else(|_| panic!("waited in vain: {what}")).unwrap());
        }
    }

    pub fn take(&mut self, change: RealmChange) {
        match change {
            RealmChange::Batch(batch) => self.batches.entry(batch.stream).or_default().push(*batch),
            RealmChange::Head { stream, head } => drop(self.heads.insert(stream, head)),
            RealmChange::Behind { stream, .. } => self.behind.push(stream),
            RealmChange::Removed(stream) => self.removed.push(stream),
            RealmChange::Owner { stream, owner } => drop(self.owners.insert(stream, owner)),
            RealmChange::Preferred { stream, server } => drop(self.preferred.insert(stream, server)),
            RealmChange::Server { name, record } => drop(self.servers.insert(name, record)),
            RealmChange::Archived { name, numbers } => drop(self.archived.insert(name, numbers)),
            RealmChange::Draining { name, is_on } => drop(self.draining.insert(name, is_on)),
            RealmChange::Current(_) => self.current += 1,
        }
    }

    pub async fn follow_to(&mut self, head: &KnownHead, stream: Stream) {
        self.follow_until("the head of a stream", |one| one.heads.get(&stream) == Some(head)).await;
    }

    /// Asserts that the batches are those of a stream, from its first one on.
    pub fn assert_follows(&self, world: &World) {
        let batches = &self.batches[&world.stream];
        let numbers: Vec<_> = batches.iter().map(|batch| batch.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        let mut state = initial(world.stream);
        batches.iter().for_each(|batch| apply(&mut state, &batch.records));
        assert_eq!(state, world.state);
    }
}

pub async fn followers_see_what_was_committed(engine: &TestEngine) {
    let realm = engine.realm();
    let mut early = Replica::new(&engine.realm());
    early.follow_until("an empty realm", |one| one.current == 1).await;
    let mut worlds: Vec<_> = (0..3).map(|id| World::new(cluster(id))).collect();
    let mut streams = Vec::new();
    for world in &mut worlds {
        streams.push(world.create(&realm, "a").await);
    }
    let mut late = Replica::new(&engine.realm());
    for round in 0..8 {
        for (world, owned) in worlds.iter_mut().zip(&mut streams) {
            world.commit(owned, 1 + round % 2, 1).await;
        }
        if round == 4 {
            let large = worlds[1].large_batch(12);
            committed(streams[1].commit(&large).await.unwrap());
            late.follow_until("the realm", |one| one.current == 1).await;
        }
    }
    streams[2].refresh_clock(worlds[2].time()).await.unwrap();
    for replica in [&mut early, &mut late] {
        for (world, owned) in worlds.iter().zip(&streams) {
            replica.follow_to(&owned.known_head(), world.stream).await;
            replica.assert_follows(world);
            assert_eq!(replica.owners[&world.stream].as_ref().unwrap().server, server("a"));
        }
    }
    assert_eq!(early.batches, late.batches);
}

pub async fn a_follower_goes_on_after_a_compaction(engine: &TestEngine) {
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let mut replica = Replica::new(&engine.realm());
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.follow_until("everything", |one| one.current == 1).await;
    for _ in 0..5 {
        world.commit(&mut owned, 1, 1).await;
    }
    let revision = realm.engine_status().await.unwrap().revision;
    realm.compact(revision).await.unwrap();
    world.commit(&mut owned, 1, 1).await;
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.assert_follows(&world);
    // Reads of the past are gone, and those of the present are not.
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
    realm.compact(revision).await.unwrap();
}

pub async fn a_follower_that_is_behind_reads_the_state(engine: &TestEngine) {
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    let mut replica = Replica::new(&engine.realm());
    world.commit(&mut owned, 1, 1).await;
    replica.follow_to(&owned.known_head(), world.stream).await;
    replica.follow_until("everything", |one| one.current == 1).await;
    for _ in 0..4 {
        world.commit(&mut owned, 1, 1).await;
    }
    let snapshot = owned.begin_snapshot(world.state.clone()).unwrap().finish(&realm).await.unwrap();
    owned.publish_snapshot(snapshot, world.time()).await.unwrap();
    super::snapshots::trim(&mut owned, u64::MAX).await;
    let revision = realm.engine_status().await.unwrap().revision;
    realm.compact(revision).await.unwrap();
    // The old follower has missed batches, and a new one has no state yet.
    for mut replica in [replica, Replica::new(&engine.realm())] {
        replica.follow_until("it is behind", |one| one.behind == [world.stream]).await;
        let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
        world.assert_content(&content);
        replica.follower.resume(world.stream, position_of(&content.head.head));
        replica.batches.clear();
        let number = world.commit(&mut owned, 2, 1).await;
        replica.follow_to(&owned.known_head(), world.stream).await;
        let numbers: Vec<_> = replica.batches[&world.stream].iter().map(|batch| batch.number).collect();
        assert_eq!(numbers, [number]);
        assert_eq!(replica.behind, [world.stream]);
    }
}

pub async fn small_keys_are_followed(engine: &TestEngine) {
    let realm = engine.realm();
    let (name, stream) = (server("a"), cluster(0));
    let record = ServerRecord {
        address: "127.0.0.1:7".to_owned(),
        version: "1".to_owned(),
        formats: vec![1],
        zone: None,
        instance: Some(Seed([1; 16])),
        process: Some(1),
    };
    let lease = realm.grant_lease().await.unwrap();
    let former = ServerRecord { process: Some(2), ..record.clone() };
    realm.announce_server(&name, &former, lease).await.unwrap();
    // A restart of the same server is no other one.
    let again = realm.announce_server(&name, &record, lease).await.unwrap();
    assert!(matches!(again, AnnouncementOutcome::Announced(_)), "{again:?}");
    let other = ServerRecord { instance: Some(Seed([2; 16])), ..record.clone() };
    let refused = realm.announce_server(&name, &other, lease).await.unwrap();
    assert_eq!(refused, AnnouncementOutcome::Taken(record.clone()));
    assert_eq!(realm.server(&name).await.unwrap().as_ref(), Some(&record));
    let mut replica = Replica::new(&engine.realm());
    let found = Some(record.clone());
    replica.follow_until("a server", |one| one.servers.get(&name) == Some(&found)).await;
    realm.keep_lease_alive(lease).await.unwrap();
    realm.set_preferred(stream, Some(&name)).await.unwrap();
    let numbers = ArchivedNumbers { streams: [(stream, 4)].into() };
    realm.record_archived(&name, &numbers).await.unwrap();
    let expected = Some(numbers.clone());
    replica.follow_until("an archive", |one| one.archived.get(&name) == Some(&expected)).await;
    assert_eq!(realm.archives().await.unwrap(), [(name.clone(), numbers)].into());
    realm.set_draining(&name, true).await.unwrap();
    replica.follow_until("a drain", |one| one.draining.get(&name) == Some(&true)).await;
    let preferred = Some(name.clone());
    replica.follow_until("a preference", |one| one.preferred.get(&stream) == Some(&preferred)).await;
    realm.revoke_lease(lease).await.unwrap();
    replica.follow_until("no server", |one| one.servers.get(&name) == Some(&None)).await;
    assert!(realm.keep_lease_alive(lease).await.is_err());
    assert!(realm.announce_server(&name, &record, lease).await.is_err());
    realm.set_preferred(stream, None).await.unwrap();
    realm.forget_archive(&name).await.unwrap();
    realm.set_draining(&name, false).await.unwrap();
    replica.follow_until("no drain", |one| one.draining.get(&name) == Some(&false)).await;
    replica.follow_until("no archive", |one| one.archived.get(&name) == Some(&None)).await;
    replica.follow_until("no preference", |one| one.preferred.get(&stream) == Some(&None)).await;
}

pub async fn a_removed_stream_is_told(engine: &TestEngine) {
    let realm = engine.realm();
    let mut world = World::new(cluster(0));
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let mut replica = Replica::new(&engine.realm());
    replica.follow_to(&owned.known_head(), world.stream).await;
    assert!(owned.remove().await.unwrap());
    replica.follow_until("it is removed", |one| one.removed == [world.stream]).await;
    let gone = |one: &Replica| one.owners.get(&world.stream) == Some(&None);
    replica.follow_until("its owner is gone", gone).await;
    let mut fresh = Replica::new(&engine.realm());
    fresh.follow_until("an empty realm", |one| one.current == 1).await;
    assert!(fresh.heads.is_empty() && fresh.batches.is_empty());
}
