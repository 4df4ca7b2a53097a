//! A restored engine whose older state is accepted: streams are replaced in place.

use forewarn_control::{ControlState, INCARNATION_STEP, Stream};
use forewarn_lifecycle::{Brake, Cluster, Event, EventId, Seed};
use forewarn_realm::{
    BATCH_NUMBER_STEP, CancelOutcome, CommitError, CommitOutcome, NewStream, OwnedStream, ReadFrom, Realm,
    RealmCompleteness, RealmContent, RealmRecord, RestoreAcceptance, SharedCreation, SharedOutcome,
    SharedStream, StreamPosition, StreamStart, TERM_STEP, position_of,
};
use proptest::test_runner::TestRunner;

use super::snapshots::{history, trim};
use crate::engines::{TestEngine, keys_below};
use crate::world::{SEED, World, assert_chain, cluster, committed, log_of, realm_record, server, time_at};

/// Clusters that have had an owner. There are two more.
const OWNED: std::ops::RangeInclusive<u32> = 0..=2;

/// An incarnation that a copy of the lost log has: higher than some of the restored ones.
const SEEN: u64 = 3;

/// The seed after the acceptance.
const NEW_SEED: Seed = Seed([9; 16]);

/// A realm as an engine has it that was restored, and the owners that it had.
pub struct RestoredRealm {
    content: RealmContent,
    state: ControlState,
    owners: Vec<(World, OwnedStream)>,
}

impl RestoredRealm {
    pub async fn create(realm: &Realm) -> Self {
        realm.join(realm_record()).await.unwrap();
        let mut shared = World::new(Stream::Shared);
        let new = NewStream { state: None, position: StreamPosition::default(), time: time_at(1), format: 1 };
        let SharedCreation::Created(mut stream) = SharedStream::create(realm, new).await.unwrap() else {
            panic!("it exists")
        };
        let created = stream.commit(&shared.batch(4, 2)).await.unwrap();
        assert!(matches!(created, SharedOutcome::Committed { number: 1, .. }));
        let mut runner = TestRunner::deterministic();
        let mut owners = Vec::new();
        for id in OWNED {
            let mut world = World::new(cluster(id));
            let mut owned = world.create(realm, "former").await;
            let records = history(&mut runner, id);
            world.records += records.len() as u64;
            let batch = world.batch_of(records, 3);
            committed(owned.commit(&batch).await.unwrap());
            owners.push((world, owned));
        }
        let content = realm.read_all().await.unwrap();
        let (state, _) = content.clone().into_state(SEED).unwrap();
        Self { content, state, owners }
    }

    /// Checks that everything was replaced, once.
    pub async fn check_accepted(&self, realm: &Realm) {
        let record = realm.record().await.unwrap().unwrap();
        assert_eq!((record.restores, record.completeness), (1, RealmCompleteness::Complete));
        assert_eq!(RealmRecord { restores: 0, history: None, ..record }, realm_record());
        let content = realm.read_all().await.unwrap();
        assert_eq!(content.streams.len(), 6, "also of clusters without an owner");
        for (stream, found) in &content.streams {
            self.check_stream(realm, *stream, found).await;
        }
        let (state, _) = content.into_state(SEED).unwrap();
        assert!(state.clusters().all(|(id, _)| state.shared().initial_cluster(id).is_none()));
        for (id, former) in self.state.clusters() {
            check_rules(former.rules(), state.cluster(id).unwrap().rules());
        }
    }

    async fn check_stream(&self, realm: &Realm, stream: Stream, found: &forewarn_realm::StreamContent) {
        let former = self.content.streams.get(&stream).map(|content| &content.head.head);
        let (number, term) = former.map_or((0, 0), |head| (head.number, head.term.0));
        let position = former.map(|head| position_of(head)).unwrap_or_default();
        let head = &found.head.head;
        assert_eq!((head.number, found.batches.len()), (number + BATCH_NUMBER_STEP + 1, 1));
        let base = StreamPosition { number: number + BATCH_NUMBER_STEP, ..position };
        assert!(matches!(found.start, StreamStart::State(_, at) if at == base));
        let owner = realm.owner(stream).await.unwrap();
        let entries = &found.batches[0].entries;
        match stream {
            Stream::Shared => {
                assert_eq!((head.term.0, owner), (0, None));
                assert_eq!(
                    entries.iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(),
                    ["restore_accepted"]
                );
                assert!(entries[0].text.contains("a test; incarnations grew by at least 1048576"));
                let before = &self.content.streams[&stream].batches;
                assert_chain(&log_of(before.iter().chain(&found.batches)));
            }
            Stream::Cluster(_) => {
                let owner = owner.unwrap();
                assert_eq!((owner.server, owner.term), (server("new"), head.term));
                assert_eq!((head.term.0, entries.len()), (term + TERM_STEP, 0));
            }
        }
        // A copy of the lost log is behind, however long it is.
        let copy = StreamPosition { number: position.number + 500, ..position };
        let read = realm.read_stream(stream, ReadFrom::After(copy)).await.unwrap();
        assert!(matches!(read.start, StreamStart::State(_, at) if at == base));
    }

    /// The former owners cannot write, and new ones go on.
    async fn check_owners(self, realm: &Realm) {
        for (mut world, mut owned) in self.owners {
            world.forward(50_000);
            let lost = owned.commit(&world.batch(1, 0)).await.unwrap();
            assert!(matches!(lost, CommitOutcome::Fenced { .. }), "{lost:?}");
            let stream = world.stream;
            let content = realm.read_stream(stream, ReadFrom::Beginning).await.unwrap();
            let details = &content.head.head.details;
            (world.chain, world.records) = (details.chain, details.records);
            world.state = content.into_state(world.state);
            let mut owned = world.take_over(realm, "next").await;
            let number = world.commit(&mut owned, 1, 1).await;
            world.assert_content(&owned.read(ReadFrom::Beginning).await.unwrap());
            // Nothing of the former log stays for ever.
            trim(&mut owned, number).await;
            let logged = keys_below(realm, &format!("log/{stream}/")).await;
            assert_eq!(logged.len(), 2, "{logged:?}");
            world.assert_content(&owned.read(ReadFrom::Beginning).await.unwrap());
        }
    }
}

fn check_rules(former: &Cluster, rules: &Cluster) {
    assert_eq!(rules.brake(), Brake::On);
    for ((id, tenant), (also, before)) in rules.tenants().zip(former.tenants()) {
        assert_eq!((id, &tenant.name, tenant.events().len()), (also, &before.name, before.events().len()));
        assert_eq!(tenant.incarnation, before.incarnation.max(SEEN) + INCARNATION_STEP);
    }
    let ids = |cluster: &Cluster| -> Vec<EventId> {
        cluster.tenants().flat_map(|(_, tenant)| tenant.events()).map(Event::id).collect()
    };
    let known = ids(former);
    assert!(ids(rules).iter().all(|id| !known.contains(id)));
    // Ids of the former seed are not used again.
    assert_ne!(rules.seed(), former.seed());
}

/// Accepts, or goes on.
pub async fn accept(realm: &Realm) -> Result<RealmRecord, CommitError> {
    let known = realm.record().await.map_err(CommitError::NotCommitted)?.unwrap();
    let accepting = match known.completeness {
        RealmCompleteness::Complete => {
            realm.begin_acceptance(&known, 1).await.map_err(CommitError::NotCommitted)?.unwrap()
        }
        RealmCompleteness::Accepting => known,
        RealmCompleteness::Importing => panic!("it is not being imported"),
    };
    let (server, seed, reason) = (server("new"), NEW_SEED, "a test".to_owned());
    let acceptance = RestoreAcceptance { server, seed, seen: SEEN, time: time_at(40_000), reason };
    realm.accept(&accepting, &acceptance).await.map(|(record, _)| record)
}

pub async fn an_accepted_state_continues_with_other_ids_and_later_documents(engine: &TestEngine) {
    let realm = engine.realm();
    let restored = RestoredRealm::create(&realm).await;
    assert!(
        restored.state.clusters().any(|(_, one)| one.rules().tenants().any(|(_, t)| !t.events().is_empty()))
    );
    let begun = realm.begin_acceptance(&realm_record(), 1).await.unwrap().unwrap();
    assert!(!begun.completeness.is_complete(), "no server joins");
    // Nor does the move of a journal begin anew, as after one that was interrupted.
    assert_eq!(realm.cancel_import(SEED).await.unwrap(), CancelOutcome::Complete);
    let record = accept(&realm).await.unwrap();
    assert_eq!(record.history(), begun.history());
    assert_eq!(realm.record().await.unwrap(), Some(record));
    restored.check_accepted(&realm).await;
    restored.check_owners(&realm).await;
    let stale = RealmRecord { restores: 0, ..record };
    assert_eq!(realm.begin_acceptance(&stale, 1).await.unwrap(), None, "it is another record");
}

pub async fn servers_are_listed_by_their_keys(engine: &TestEngine) {
    let realm = engine.realm();
    assert!(realm.server_names().await.unwrap().is_empty());
    let lease = realm.grant_lease().await.unwrap();
    let record = forewarn_realm::ServerRecord {
        address: "10.0.0.1:7".to_owned(),
        version: "1".to_owned(),
        formats: vec![1],
        zone: None,
        instance: None,
        process: None,
    };
    for name in ["b", "a"] {
        realm.announce_server(&server(name), &record, lease).await.unwrap();
    }
    assert_eq!(realm.server_names().await.unwrap(), [server("a"), server("b")]);
}
