//! Content for streams, and the state that it should give.

use std::sync::Arc;

use forewarn_control::shared::{Change as SharedChange, SharedState};
use forewarn_control::{
    AuditEntry, Chain, ClusterEntry, ClusterId, ClusterState, NewAuditEntry, NewReceipt, Record, Site,
    StoredResponse, Stream,
};
use forewarn_lifecycle::{Change, HostId, Name, Now, Seed, Steady, Timestamp};
use forewarn_ownership::HeadClock;
use forewarn_realm::{
    AuditMode, Batch, CommitOutcome, NewBatch, NewStream, OwnedStream, Realm, RealmCompleteness, RealmRecord,
    ServerName, StreamContent, StreamPosition, StreamTime, TakeoverOutcome,
};
use forewarn_store::StreamState;
use forewarn_types::Moment;

/// The seed of the clusters of random histories.
pub const SEED: Seed = Seed([7; 16]);

pub fn cluster(id: u32) -> Stream {
    Stream::Cluster(ClusterId(id))
}

pub fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

/// The record of a realm that was never restored.
pub fn realm_record() -> RealmRecord {
    let (identity, created) = (SEED, Moment(Timestamp::from_millis(0)));
    let completeness = RealmCompleteness::Complete;
    RealmRecord { identity, created, format: 1, restores: 0, history: None, clock: None, completeness }
}

/// A stream as it should be.
#[derive(Clone, Debug)]
pub struct World {
    pub stream: Stream,
    pub state: StreamState,
    pub chain: Chain,
    pub records: u64,
    millis: u64,
}

impl World {
    pub fn new(stream: Stream) -> Self {
        Self { stream, state: initial(stream), chain: Chain::default(), records: 0, millis: 1_000 }
    }

    /// Sets the clock to a later time.
    pub fn forward(&mut self, millis: u64) {
        self.millis = millis;
    }

    /// The next time.
    pub fn time(&mut self) -> StreamTime {
        self.millis += 1;
        time_at(self.millis)
    }

    pub fn position(&self, number: u64) -> StreamPosition {
        StreamPosition { number, records: self.records, chain: self.chain }
    }

    /// The next batch, which is taken as committed.
    pub fn batch(&mut self, records: usize, entries: usize) -> NewBatch {
        let records = (0..records).map(|_| self.record()).collect::<Vec<_>>();
        self.batch_of(records, entries)
    }

    /// The next batch with these records, which is taken as committed.
    pub fn batch_of(&mut self, records: Vec<Record>, entries: usize) -> NewBatch {
        let time = self.time();
        apply(&mut self.state, &records);
        let entries = (0..entries).map(|_| self.entry("something happened")).collect();
        NewBatch { records, entries, mode: AuditMode::Append, time }
    }

    /// A batch with that many records of 200 kB.
    pub fn large_batch(&mut self, records: usize) -> NewBatch {
        let Stream::Cluster(id) = self.stream else { panic!("only a cluster") };
        let record = |number: usize| {
            let answer = StoredResponse(vec![u8::try_from(number % 256).unwrap(); 200_000].into());
            let (by, key) = ("socket".to_owned(), format!("key-{number}"));
            let receipt = NewReceipt { by, key, fingerprint: [0; 32], answer };
            Record::in_cluster(Now::at_millis(1_000), id, ClusterEntry::ReceiptKept(receipt))
        };
        let records: Vec<_> = (0..records).map(record).collect();
        self.records += records.len() as u64;
        self.batch_of(records, 1)
    }

    fn record(&mut self) -> Record {
        self.records += 1;
        let number = u32::try_from(self.records).unwrap();
        match self.stream {
            Stream::Cluster(id) => {
                let name = Name::new(&format!("h{number}")).unwrap();
                let change = Change::HostAdmitted { host: HostId(number), name, zone: None };
                Record::rules(Now::at_millis(1_000 + i64::from(number)), id, change)
            }
            Stream::Shared => {
                let (name, seed) = (Name::new(&format!("c{number}")).unwrap(), SEED.nth(number));
                let (cluster, site) = (ClusterId(number), Site::default());
                Record::shared(
                    Now::at_millis(1_000),
                    SharedChange::ClusterCreated { cluster, name, seed, site },
                )
            }
        }
    }

    /// The next audit entry.
    pub fn entry(&mut self, text: &str) -> Arc<AuditEntry> {
        Arc::new(self.chain.seal(told(self.stream, text)))
    }

    /// A batch that replaces the last entries by others with another text.
    pub fn rewrite(&mut self, before: Chain, count: usize, text: &str) -> NewBatch {
        self.chain = before;
        let time = self.time();
        let entries = (0..count).map(|_| self.entry(text)).collect();
        NewBatch { records: Vec::new(), entries, mode: AuditMode::Rewrite, time }
    }

    /// Creates the stream, owned by a server.
    pub async fn create(&mut self, realm: &Realm, name: &str) -> OwnedStream {
        let new =
            NewStream { state: None, position: StreamPosition::default(), time: self.time(), format: 1 };
        owned(OwnedStream::create(realm, self.stream, &server(name), new).await.unwrap())
    }

    /// Makes a server the owner, whoever it was before.
    pub async fn take_over(&mut self, realm: &Realm, name: &str) -> OwnedStream {
        let head = realm.head(self.stream).await.unwrap().unwrap();
        let taken = OwnedStream::take_over(realm, self.stream, &server(name), &head, self.time()).await;
        owned(taken.unwrap())
    }

    /// Commits the next batch.
    pub async fn commit(&mut self, owned: &mut OwnedStream, records: usize, entries: usize) -> u64 {
        let batch = self.batch(records, entries);
        committed(owned.commit(&batch).await.unwrap())
    }

    /// Asserts that this is the content of the stream.
    pub fn assert_content(&self, content: &StreamContent) {
        let details = &content.head.head.details;
        assert_eq!((details.records, details.chain), (self.records, self.chain));
        assert_eq!(state_of(content, initial(self.stream)), self.state);
    }
}

fn told(stream: Stream, text: &str) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(60_000)),
        by: "socket".to_owned(),
        kind: "command".to_owned(),
        text: text.to_owned(),
        stream: Some(stream),
        ..NewAuditEntry::default()
    }
}

pub fn time_at(millis: u64) -> StreamTime {
    let clock = HeadClock { steady: Steady::from_millis(millis), anchor: None };
    StreamTime { clock, wall: Timestamp::from_millis(millis.cast_signed()) }
}

pub fn owned(outcome: TakeoverOutcome) -> OwnedStream {
    match outcome {
        TakeoverOutcome::Owned(owned) => *owned,
        TakeoverOutcome::Lost { head } => panic!("not the owner: {head:?}"),
    }
}

pub fn committed(outcome: CommitOutcome) -> u64 {
    match outcome {
        CommitOutcome::Committed { number, .. } => number,
        CommitOutcome::Fenced { head, fate } => panic!("fenced: {head:?}, {fate:?}"),
    }
}

/// The state with which a stream is created.
pub fn initial(stream: Stream) -> StreamState {
    match stream {
        Stream::Shared => SharedState::new(SEED).into(),
        Stream::Cluster(_) => ClusterState::new(SEED, Site::default()).into(),
    }
}

pub fn apply(state: &mut StreamState, records: &[Record]) {
    records.iter().for_each(|record| state.apply(record));
}

/// The state that a content gives, if `known` is the state before it.
pub fn state_of(content: &StreamContent, known: StreamState) -> StreamState {
    content.clone().into_state(known)
}

/// The audit log that batches give.
pub fn log_of<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Vec<Arc<AuditEntry>> {
    let mut log: Vec<Arc<AuditEntry>> = Vec::new();
    for batch in batches {
        if batch.mode == AuditMode::Rewrite {
            log.truncate(log.len() - batch.entries.len());
        }
        log.extend(batch.entries.iter().cloned());
    }
    log
}

/// Asserts that entries are a chain from its beginning.
pub fn assert_chain(log: &[Arc<AuditEntry>]) {
    let mut chain = Chain::default();
    log.iter().for_each(|entry| chain.verify(entry).unwrap());
}
