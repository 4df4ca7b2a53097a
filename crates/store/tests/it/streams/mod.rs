//! Streams: each has its own records, state and audit log, and all of them share commits, files and positions.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod commits;
mod damaged;
mod reading;
mod recovery;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forewarn_control::shared::Change as SharedChange;
use forewarn_control::{AuditEntry, Chain, ClusterId, ControlState, NewAuditEntry, Record, Site, Stream};
use forewarn_lifecycle::{Change, HostId, Name, Now, Seed, Timestamp};
use forewarn_store::{Appended, AuditBatch, AuditQuery, Journal, Options, Recovered};
use forewarn_types::Moment;

const SEED: Seed = Seed([7; 16]);

/// Options with which streams are folded by the tests only, and the log is not checkpointed.
fn options() -> Options {
    Options { fold_after: 1_000_000, log_bytes: 1 << 30, ..Options::new(SEED, Now::at_millis(1_000)) }
}

fn open(directory: &Path) -> (Journal, Recovered) {
    Journal::open(directory, &options()).unwrap()
}

fn cluster(id: u32) -> Stream {
    Stream::Cluster(ClusterId(id))
}

/// The content that a journal should have, told as simply as possible.
#[derive(Clone, Debug)]
struct ExpectedJournal {
    state: ControlState,
    ends: BTreeMap<Stream, Chain>,
    /// Stream and number of each entry, by position.
    log: Vec<(Stream, u64)>,
    records: u64,
}

impl ExpectedJournal {
    /// Without records: one cluster.
    fn new() -> Self {
        let ends = [Stream::Shared, cluster(0)].map(|stream| (stream, Chain::default())).into();
        Self { state: ControlState::new(SEED), ends, log: Vec::new(), records: 0 }
    }

    /// A new journal with that many clusters beside the default one.
    fn with_clusters(journal: &Journal, count: u32) -> Self {
        let mut world = Self::new();
        let records: Vec<_> = (1..=count).map(created).collect();
        world.append(journal, Stream::Shared, &records, records.len());
        world
    }

    /// The next entries of a stream.
    fn seal(&mut self, stream: Stream, count: usize) -> Vec<Arc<AuditEntry>> {
        let chain = self.ends.entry(stream).or_default();
        let entries: Vec<_> =
            (0..count).map(|_| Arc::new(chain.seal(told(stream, chain.number + 1)))).collect();
        self.log.extend(entries.iter().map(|entry| (stream, entry.number)));
        entries
    }

    /// Records that records are appended.
    fn apply(&mut self, records: &[Record]) {
        for record in records {
            self.state.apply(record);
            self.records += 1;
        }
        for (id, _) in self.state.clusters() {
            self.ends.entry(Stream::Cluster(id)).or_default();
        }
    }

    /// Appends records and some entries.
    fn append(&mut self, journal: &Journal, stream: Stream, records: &[Record], entries: usize) {
        let position = self.log.len() as u64 + 1;
        let entries = self.seal(stream, entries);
        self.apply(records);
        let appended = journal.append(stream, records, &entries).unwrap();
        assert_eq!(appended, Appended { first_position: position });
    }

    /// Appends a host and an entry.
    fn admit(&mut self, journal: &Journal, id: u32) {
        let number = u32::try_from(self.records).unwrap();
        self.append(journal, cluster(id), &[host(id, number)], 1);
    }

    /// Asserts that everything that was appended was recovered, and nothing else.
    fn assert_recovered(&self, journal: &Journal, found: &Recovered) {
        assert_eq!(found.state, self.state);
        assert_eq!(found.audit_ends, self.ends);
        assert_eq!(found.audit_head, self.log.len() as u64);
        assert_eq!(journal.length(), self.records);
        assert_eq!(read_log(journal), self.log);
    }
}

fn created(id: u32) -> Record {
    let (name, seed) = (Name::new(&format!("c{id}")).unwrap(), SEED.nth(id));
    let change = SharedChange::ClusterCreated { cluster: ClusterId(id), name, seed, site: Site::default() };
    Record::shared(Now::at_millis(1_000), change)
}

fn host(id: u32, number: u32) -> Record {
    let name = Name::new(&format!("h{number}")).unwrap();
    let change = Change::HostAdmitted { host: HostId(number), name, zone: None };
    Record::rules(Now::at_millis(1_000 + i64::from(number)), ClusterId(id), change)
}

fn told(stream: Stream, number: u64) -> NewAuditEntry {
    let (cluster, cluster_number) = match stream {
        Stream::Shared => (String::new(), 0),
        Stream::Cluster(ClusterId::DEFAULT) => ("default".to_owned(), 0),
        Stream::Cluster(ClusterId(id)) => (format!("c{id}"), id),
    };
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(i64::try_from(number).unwrap() * 60_000)),
        cluster,
        cluster_number,
        by: if number.is_multiple_of(3) { "token alice" } else { "forewarn" }.to_owned(),
        kind: format!("kind {}", number % 5),
        text: format!("entry {number} of {stream:?}"),
        ..NewAuditEntry::default()
    }
}

fn read(journal: &Journal, query: AuditQuery) -> AuditBatch {
    journal.audit_log_reader().read(query).unwrap()
}

/// Stream and number of every visible entry, in the order of positions, which have no gaps.
fn read_log(journal: &Journal) -> Vec<(Stream, u64)> {
    let (mut log, mut after) = (Vec::new(), None);
    loop {
        let page = read(journal, AuditQuery { after, ..AuditQuery::default() });
        for one in &page.entries {
            assert_eq!(one.position, log.len() as u64 + 1, "positions have no gaps");
            log.push((stream_of(&one.entry), one.entry.number));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return log,
        }
    }
}

/// The stream that [`told`] has named.
fn stream_of(entry: &AuditEntry) -> Stream {
    if entry.cluster.is_empty() { Stream::Shared } else { cluster(entry.cluster_number) }
}

fn numbers(page: &AuditBatch) -> Vec<u64> {
    page.entries.iter().map(|one| one.entry.number).collect()
}
