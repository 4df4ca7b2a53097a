//! A program that opens a journal and appends, and says in a file what was answered.
//!
//! It is a test that does nothing unless it is told to by its environment: so that the tests can start it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forewarn_control::shared::Change;
use forewarn_control::{AuditEntry, Chain, MachineDetails, NewAuditEntry, Site};
use forewarn_control::{ClusterEntry, ClusterId, ControlState, Entry, Record, Stream};
use forewarn_lifecycle::{Change as RulesChange, HostId, MachineId, Name, Now, Seed};
use forewarn_store::{AppendError, Journal, Options, SyncMode, check};
use forewarn_types::Moment;

use crate::support::fold_if_wanted;
use forewarn_testkit::Random;

const DIRECTORY: &str = "FOREWARN_TEST_DIRECTORY";
const ACKS: &str = "FOREWARN_TEST_ACKS";
const COUNT: &str = "FOREWARN_TEST_COUNT";
const SYNC: &str = "FOREWARN_TEST_SYNC";

/// Entries of the trail that are not too old.
const ENTRIES_KEPT: u64 = 40;

const SEED: Seed = Seed([7; 16]);

pub(crate) fn options(sync: SyncMode) -> Options {
    // Folding, filing, tidying up and sweeping happen all the time.
    let audit_retention = Duration::from_millis(10 * ENTRIES_KEPT);
    let new = Options::new(SEED, Now::at_millis(0));
    Options { fold_after: 20, log_bytes: 100_000, file_after: 3, sync, audit_retention, ..new }
}

/// The record of that number: always the same. Streams alternate at random; the first records create two clusters.
pub(crate) fn record(number: u64) -> Record {
    let mut random = Random::new(number);
    let now = Now::at_millis(i64::try_from(number).unwrap() * 10);
    if let 1 | 2 = number {
        let id = u32::try_from(number).unwrap();
        let name = Name::new(&format!("cluster-{number}")).unwrap();
        let (cluster, seed, site) = (ClusterId(id), SEED.nth(id), Site::default());
        return Record::shared(now, Change::ClusterCreated { cluster, name, seed, site });
    }
    let change = match random.index(5) {
        0 | 1 => {
            let name = Name::new(&format!("h{number}")).unwrap();
            let host = HostId(u32::try_from(number).unwrap());
            ClusterEntry::Rules(RulesChange::HostAdmitted { host, name, zone: None })
        }
        2 => {
            let value = "v".repeat(random.index(3_000));
            let details =
                MachineDetails { tags: [(number.to_string(), value)].into(), ..MachineDetails::default() };
            ClusterEntry::Described { machine: MachineId(u32::try_from(number % 40).unwrap()), details }
        }
        3 => ClusterEntry::Site(Site { location: format!("place {number}"), ..Site::default() }),
        _ => return Record::clock(now),
    };
    Record::in_cluster(now, ClusterId(u32::try_from(random.index(3)).unwrap()), change)
}

/// The state after that many records.
pub(crate) fn state_after(count: u64) -> ControlState {
    let mut state = ControlState::new(SEED);
    (1..=count).for_each(|number| drop(state.apply(&record(number))));
    state
}

/// What the trail tells of the record of that number.
pub(crate) fn told(number: u64) -> NewAuditEntry {
    let mut random = Random::new(number);
    let (cluster, cluster_number) = match record(number).stream() {
        Stream::Shared => (String::new(), 0),
        Stream::Cluster(ClusterId::DEFAULT) => ("default".to_owned(), 0),
        Stream::Cluster(ClusterId(id)) => (format!("cluster-{id}"), id),
    };
    NewAuditEntry {
        at: Moment(record(number).now.wall),
        cluster,
        cluster_number,
        by: "writer".to_owned(),
        kind: "command".to_owned(),
        text: format!("record {number}"),
        hosts: (0..random.index(4)).map(|host| format!("h{host}")).collect(),
        ..NewAuditEntry::default()
    }
}

/// The entries of these numbers, each in the log of its stream.
pub(crate) fn entries(numbers: RangeInclusive<u64>) -> Vec<Arc<AuditEntry>> {
    let mut ends = ends_after(numbers.start() - 1);
    let mut seal = |number| ends.entry(record(number).stream()).or_default().seal(told(number));
    numbers.map(|number| Arc::new(seal(number))).collect()
}

/// Where the log of each stream is after that many entries. Others ask for it again and again.
pub(crate) fn ends_after(count: u64) -> BTreeMap<Stream, Chain> {
    static KNOWN: Mutex<Vec<BTreeMap<Stream, Chain>>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap();
    let count = usize::try_from(count).unwrap();
    while known.len() <= count {
        let number = known.len() as u64;
        let mut ends = known.last().cloned().unwrap_or_default();
        if number == 0 {
            let streams = [Stream::Shared, Stream::Cluster(ClusterId::DEFAULT)];
            ends.extend(streams.map(|stream| (stream, Chain::default())));
        } else {
            ends.entry(record(number).stream()).or_default().seal(told(number));
        }
        if let Entry::Shared(Change::ClusterCreated { cluster, .. }) = record(number).entry {
            ends.insert(Stream::Cluster(cluster), Chain::default());
        }
        known.push(ends);
    }
    known[count].clone()
}

/// Appends the records of these numbers in their order, each with its entry of the trail.
pub(crate) fn append(journal: &Journal, numbers: RangeInclusive<u64>) -> Result<(), AppendError> {
    let records: Vec<_> = numbers.clone().map(record).collect();
    let entries = entries(numbers);
    let mut rest = &entries[..];
    for run in records.chunk_by(|one, other| one.stream() == other.stream()) {
        let (of_run, later) = rest.split_at(run.len());
        journal.append(run[0].stream(), run, of_run)?;
        rest = later;
    }
    Ok(())
}

/// Opens a journal, and sees that everything is there that was answered, that it is nothing else than was written, and
/// that it can be written to. The trail tells of every record that is there, and of no other. Says how many records there were.
pub(crate) fn inspect(directory: &Path, acked: u64) -> Result<u64, String> {
    let open =
        || Journal::open(directory, &options(SyncMode::EachCommit)).map_err(|problem| problem.to_string());
    let (journal, found) = open()?;
    let count = journal.length();
    if count < acked {
        return Err(format!("{acked} records were acknowledged, and {count} are there"));
    }
    if found.state != state_after(count) {
        return Err(format!("the state after {count} records is another"));
    }
    if found.audit_ends != ends_after(count) {
        return Err(format!("{count} records are there, and the trail is another: {:?}", found.audit_ends));
    }
    append(&journal, count + 1..=count + 1).map_err(|problem| problem.to_string())?;
    drop(journal);
    let (journal, found) = open()?;
    if journal.length() != count + 1 || found.state != state_after(count + 1) {
        return Err(format!("record {} was written and is not there", count + 1));
    }
    drop(journal);
    let checked = check(directory).map_err(|problem| problem.to_string())?;
    if checked.entries != count + 1 {
        return Err(format!("entry {} was written and is not there", count + 1));
    }
    Ok(count)
}

/// The command that starts the writer.
pub(crate) fn command(directory: &Path, acks: &Path, count: u64, sync: SyncMode) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "durability::writer::the_writer",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    let sync = match sync {
        SyncMode::EachCommit => "full",
        SyncMode::Later => "normal",
    };
    command.env(DIRECTORY, directory).env(ACKS, acks).env(COUNT, count.to_string()).env(SYNC, sync);
    command.stdout(std::process::Stdio::null());
    command
}

#[test]
#[ignore = "it is a program that other tests start"]
fn the_writer() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let sync = if std::env::var(SYNC).unwrap() == "normal" { SyncMode::Later } else { SyncMode::EachCommit };
    let mut acks =
        OpenOptions::new().create(true).append(true).open(std::env::var_os(ACKS).unwrap()).unwrap();
    let mut ack = |number: u64| acks.write_all(format!("{number}\n").as_bytes()).unwrap();
    let mut left: u64 = std::env::var(COUNT).unwrap().parse().unwrap();
    // It stops and starts again on the way.
    while left > 0 {
        let (journal, found) = Journal::open(&directory, &options(sync)).unwrap();
        let mut state = found.state;
        assert_eq!(state, state_after(journal.length()), "what is found is what was written");
        ack(journal.length());
        let session = left.min(40);
        left -= session;
        for turn in 0..session {
            let last = journal.length();
            let batch = last + 1..=last + 1 + turn % 3;
            append(&journal, batch.clone()).unwrap();
            ack(*batch.end());
            batch.for_each(|number| drop(state.apply(&record(number))));
            fold_if_wanted(&journal, &state);
        }
        journal.close().unwrap();
    }
}
