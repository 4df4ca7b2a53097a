//! The part of the contract that a stream of a realm shares with a journal in memory or in a directory.

use forewarn_control::{Chain, ClusterId, Stream};
use forewarn_lifecycle::Now;
use forewarn_realm::{
    AuditMode, BatchError, CommitError, NewBatch, OwnedStream, ReadFrom, Realm, StreamStart,
};
use forewarn_store::{AppendError, Journal, Options, StreamState};
use tempfile::TempDir;

use crate::engines::TestEngine;
use crate::world::{SEED, World, cluster, committed, initial, state_of};

const STREAM: Stream = Stream::Cluster(ClusterId::DEFAULT);

/// A journal of one stream.
trait TestJournal {
    async fn append(&mut self, batch: NewBatch) -> Result<(), Refused>;
    /// Replaces everything that was appended by the state.
    async fn fold(&mut self, world: &mut World);
    /// The state and the end of the audit log after the end of the process. None if nothing survives it.
    async fn reopen(&mut self) -> Option<(StreamState, Chain)>;
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    OtherStream,
    Unchained,
    OtherEntries,
    TooLarge,
}

/// A journal in memory, or in a directory.
struct LocalJournal {
    journal: Journal,
    directory: Option<TempDir>,
}

impl LocalJournal {
    fn in_memory() -> Self {
        Self { journal: Journal::memory(), directory: None }
    }

    fn in_directory() -> Self {
        let directory = TempDir::new().unwrap();
        let (journal, _) = Journal::open(directory.path(), &options()).unwrap();
        Self { journal, directory: Some(directory) }
    }
}

fn options() -> Options {
    Options { fold_after: 1_000_000, ..Options::new(SEED, Now::at_millis(1_000)) }
}

impl TestJournal for LocalJournal {
    async fn append(&mut self, batch: NewBatch) -> Result<(), Refused> {
        // Entries that readers have seen stay as they are.
        self.journal.hide_entries_after(STREAM, 0);
        let appended = match batch.mode {
            AuditMode::Append => self.journal.append(STREAM, &batch.records, &batch.entries),
            AuditMode::Rewrite => self.journal.rewrite(STREAM, &batch.records, &batch.entries),
        };
        appended.map(drop).map_err(|error| match error {
            AppendError::OtherStream => Refused::OtherStream,
            AppendError::Unchained(_) => Refused::Unchained,
            AppendError::OtherEntry => Refused::OtherEntries,
            AppendError::TooLarge(_) => Refused::TooLarge,
            other => panic!("{other}"),
        })
    }

    async fn fold(&mut self, world: &mut World) {
        self.journal.fold(STREAM, world.state.clone());
    }

    async fn reopen(&mut self) -> Option<(StreamState, Chain)> {
        let directory = self.directory.as_ref()?;
        self.journal.close().unwrap();
        let (journal, recovered) = Journal::open(directory.path(), &options()).unwrap();
        self.journal = journal;
        let state = recovered.state.cluster_arc(ClusterId::DEFAULT).unwrap();
        Some((StreamState::Cluster(state), recovered.audit_ends[&STREAM]))
    }
}

/// A stream of a realm, whose next owner begins at each opening.
struct RealmJournal {
    engine: TestEngine,
    realm: Realm,
    owned: OwnedStream,
    millis: u64,
}

impl RealmJournal {
    async fn new() -> Self {
        let engine = TestEngine::simulated();
        let realm = engine.realm();
        let owned = World::new(STREAM).create(&realm, "a").await;
        Self { engine, realm, owned, millis: 2_000 }
    }
}

impl TestJournal for RealmJournal {
    async fn append(&mut self, batch: NewBatch) -> Result<(), Refused> {
        self.millis += 1;
        let time = crate::world::time_at(self.millis);
        match self.owned.commit(&NewBatch { time, ..batch }).await {
            Ok(outcome) => {
                committed(outcome);
                Ok(())
            }
            Err(CommitError::Batch(BatchError::OtherStream)) => Err(Refused::OtherStream),
            Err(CommitError::Batch(BatchError::Unchained(_))) => Err(Refused::Unchained),
            Err(CommitError::Batch(BatchError::TooLarge(_))) => Err(Refused::TooLarge),
            Err(CommitError::NotTheLastEntries) => Err(Refused::OtherEntries),
            Err(other) => panic!("{other}"),
        }
    }

    async fn fold(&mut self, world: &mut World) {
        self.millis += 1;
        let writing = self.owned.begin_snapshot(world.state.clone()).unwrap();
        let snapshot = writing.finish(&self.realm).await.unwrap();
        let time = crate::world::time_at(self.millis);
        self.owned.publish_snapshot(snapshot, time).await.unwrap();
        crate::contract::snapshots::trim(&mut self.owned, u64::MAX).await;
    }

    async fn reopen(&mut self) -> Option<(StreamState, Chain)> {
        self.realm = self.engine.realm();
        let head = self.realm.head(STREAM).await.unwrap().unwrap();
        self.millis += 1;
        let (name, time) = (crate::world::server("b"), crate::world::time_at(self.millis));
        let taken = OwnedStream::take_over(&self.realm, STREAM, &name, &head, time).await.unwrap();
        self.owned = crate::world::owned(taken);
        let content = self.owned.read(ReadFrom::Beginning).await.unwrap();
        assert!(!matches!(content.start, StreamStart::After(_)));
        Some((state_of(&content, initial(STREAM)), content.head.head.details.chain))
    }
}

/// Asserts that nothing is lost, if the journal stores anything.
async fn assert_reopened(journal: &mut impl TestJournal, world: &World) {
    if let Some(found) = journal.reopen().await {
        assert_eq!(found, (world.state.clone(), world.chain));
    }
}

async fn appends_survive(journal: &mut impl TestJournal) {
    let mut world = World::new(STREAM);
    assert_reopened(journal, &world).await;
    for round in 0..4 {
        for (records, entries) in [(1, 1), (0, 2), (3, 0), (0, 0)] {
            journal.append(world.batch(records, entries)).await.unwrap();
        }
        if round == 1 {
            journal.fold(&mut world).await;
            journal.append(world.batch(1, 1)).await.unwrap();
        }
        assert_reopened(journal, &world).await;
    }
}

async fn rewrites_survive(journal: &mut impl TestJournal) {
    let mut world = World::new(STREAM);
    journal.append(world.batch(1, 2)).await.unwrap();
    let last = world.batch(1, 3);
    let before = Chain::at(&last.entries[0]).unwrap();
    journal.append(last).await.unwrap();
    journal.append(world.rewrite(before, 2, "later")).await.unwrap();
    journal.append(world.rewrite(before, 2, "later still")).await.unwrap();
    journal.append(world.batch(1, 1)).await.unwrap();
    assert_reopened(journal, &world).await;
}

async fn refusals_change_nothing(journal: &mut impl TestJournal) {
    let mut world = World::new(STREAM);
    journal.append(world.batch(1, 2)).await.unwrap();
    let mut unchained = world.clone().batch(1, 2);
    unchained.entries.remove(0);
    assert_eq!(journal.append(unchained).await, Err(Refused::Unchained));
    let foreign = World::new(cluster(8)).batch(1, 0);
    assert_eq!(journal.append(foreign).await, Err(Refused::OtherStream));
    let mut other = world.clone().rewrite(Chain::default(), 2, "text");
    let mut changed = (*other.entries[1]).clone();
    changed.by = "token eve".to_owned();
    other.entries[1] = changed.into();
    assert!(matches!(journal.append(other).await, Err(Refused::OtherEntries | Refused::Unchained)));
    journal.append(world.batch(1, 1)).await.unwrap();
    assert_reopened(journal, &world).await;
}

#[tokio::test(start_paused = true)]
async fn appends_survive_in_every_journal() {
    appends_survive(&mut LocalJournal::in_memory()).await;
    appends_survive(&mut LocalJournal::in_directory()).await;
    appends_survive(&mut RealmJournal::new().await).await;
}

#[tokio::test(start_paused = true)]
async fn rewrites_survive_in_every_journal() {
    rewrites_survive(&mut LocalJournal::in_memory()).await;
    rewrites_survive(&mut LocalJournal::in_directory()).await;
    rewrites_survive(&mut RealmJournal::new().await).await;
}

#[tokio::test(start_paused = true)]
async fn refusals_change_nothing_in_any_journal() {
    refusals_change_nothing(&mut LocalJournal::in_memory()).await;
    refusals_change_nothing(&mut LocalJournal::in_directory()).await;
    refusals_change_nothing(&mut RealmJournal::new().await).await;
}
