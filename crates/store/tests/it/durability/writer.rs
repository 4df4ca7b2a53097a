//! A program that opens a journal and appends, and says in a file what was answered.
//!
//! It is a test that does nothing unless it is told to by its environment: so that the tests can start it.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::{AuditEntry, Chain, MachineDetails, NewAuditEntry, Site};
use forewarn_control::{ClusterEntry, ControlState, Record};
use forewarn_lifecycle::{Change, HostId, MachineId, Name, Now, Seed};
use forewarn_store::{AppendError, Journal, Options, SyncMode, check};
use forewarn_types::Moment;

use forewarn_testkit::Random;

const DIRECTORY: &str = "FOREWARN_TEST_DIRECTORY";
const ACKS: &str = "FOREWARN_TEST_ACKS";
const COUNT: &str = "FOREWARN_TEST_COUNT";
const SYNC: &str = "FOREWARN_TEST_SYNC";

/// Entries of the trail that are not too old.
const ENTRIES_KEPT: u64 = 40;

const SEED: Seed = Seed([7; 16]);

pub(crate) fn options(sync: SyncMode) -> Options {
    // Folding, tidying up and sweeping happen all the time.
    let audit_retention = Duration::from_millis(10 * ENTRIES_KEPT);
    let new = Options::new(SEED, Now::at_millis(0));
    Options { fold_after: 20, log_bytes: 100_000, sync, audit_retention, ..new }
}

/// The record of that number: always the same.
pub(crate) fn record(number: u64) -> Record {
    let mut random = Random::new(number);
    let now = Now::at_millis(i64::try_from(number).unwrap() * 10);
    let change = match random.index(5) {
        0 | 1 => {
            let name = Name::new(&format!("h{number}")).unwrap();
            let host = HostId(u32::try_from(number).unwrap());
            ClusterEntry::Rules(Change::HostAdmitted { host, name, zone: None })
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
    Record::in_cluster(now, ClusterId::DEFAULT, change)
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
    NewAuditEntry {
        at: Moment(record(number).now.wall),
        cluster: "default".to_owned(),
        by: "writer".to_owned(),
        kind: "command".to_owned(),
        text: format!("record {number}"),
        hosts: (0..random.index(4)).map(|host| format!("h{host}")).collect(),
        ..NewAuditEntry::default()
    }
}

/// The entries of these numbers.
pub(crate) fn entries(numbers: RangeInclusive<u64>) -> Vec<Arc<AuditEntry>> {
    let mut chain = chain_after(numbers.start() - 1);
    numbers.map(|number| Arc::new(chain.seal(told(number)))).collect()
}

/// Where the trail is after that many entries. Others ask for it again and again.
pub(crate) fn chain_after(count: u64) -> Chain {
    static KNOWN: Mutex<Vec<Chain>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap();
    let count = usize::try_from(count).unwrap();
    while known.len() <= count {
        let mut chain = known.last().copied().unwrap_or_default();
        if !known.is_empty() {
            chain.seal(told(known.len() as u64));
        }
        known.push(chain);
    }
    known[count]
}

/// Appends the records of these numbers, each with its entry of the trail.
pub(crate) fn append(journal: &mut Journal, numbers: RangeInclusive<u64>) -> Result<(), AppendError> {
    let records: Vec<_> = numbers.clone().map(record).collect();
    journal.append(&records, &entries(numbers))
}

/// Opens a journal, and sees that everything is there that was answered, that it is nothing else than was written, and
/// that it can be written to. The trail tells of every record that is there, and of no other. Says how many records there were.
pub(crate) fn inspect(directory: &Path, acked: u64) -> Result<u64, String> {
    let open =
        || Journal::open(directory, &options(SyncMode::EachCommit)).map_err(|problem| problem.to_string());
    let (mut journal, found) = open()?;
    let count = journal.length();
    if count < acked {
        return Err(format!("{acked} records were acknowledged, and {count} are there"));
    }
    if found.state != state_after(count) {
        return Err(format!("the state after {count} records is another"));
    }
    if found.audit_chain != chain_after(count) {
        return Err(format!("{count} records are there, and the trail is another: {:?}", found.audit_chain));
    }
    append(&mut journal, count + 1..=count + 1).map_err(|problem| problem.to_string())?;
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
        let (mut journal, found) = Journal::open(&directory, &options(sync)).unwrap();
        let mut state = found.state;
        assert_eq!(state, state_after(journal.length()), "what is found is what was written");
        ack(journal.length());
        let session = left.min(40);
        left -= session;
        for turn in 0..session {
            let last = journal.length();
            let batch = last + 1..=last + 1 + turn % 3;
            append(&mut journal, batch.clone()).unwrap();
            ack(*batch.end());
            batch.for_each(|number| drop(state.apply(&record(number))));
            if journal.wants_fold() {
                journal.fold(state.clone());
            }
        }
        journal.close().unwrap();
    }
}
