//! A later state of a stream is installed, and the audit entries before it come afterwards.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{
    AuditEntry, Chain, ClusterEntry, ClusterId, ControlState, NewAuditEntry, Record, Stream,
};
use forewarn_lifecycle::{Change, HostId, MaintenanceId, Name, Now, Seed, Timestamp};
use forewarn_store::{
    AppendError, AuditQuery, Direction, InstalledState, Journal, Options, Recovered, StreamState,
    UnreadEntries, check,
};
use forewarn_testkit::{Random, wait_for_io_calls};
use forewarn_types::Moment;

const SEED: Seed = Seed([7; 16]);
const CLUSTER: Stream = Stream::Cluster(ClusterId::DEFAULT);

/// The stream of a cluster: batch `n` has one record, and the entries `2n - 1` and `2n`.
struct Log {
    states: Vec<ControlState>,
    entries: Vec<Arc<AuditEntry>>,
}

fn options() -> Options {
    Options { file_after: 4, ..Options::new(SEED, Now::at_millis(0)) }
}

fn open(directory: &Path) -> (Journal, Recovered) {
    Journal::open(directory, &options()).unwrap()
}

fn told(stream: Stream, number: u64) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(i64::try_from(number).unwrap() * 60_000)),
        cluster: if stream == Stream::Shared { String::new() } else { "default".to_owned() },
        by: "alice".to_owned(),
        kind: "command".to_owned(),
        text: format!("entry {number} of {stream}"),
        hosts: vec![format!("h{}", number % 3)],
        ..NewAuditEntry::default()
    }
}

fn host(number: usize) -> Record {
    let name = Name::new(&format!("h{number}")).unwrap();
    let change = Change::HostAdmitted { host: HostId(u32::try_from(number).unwrap()), name, zone: None };
    Record::rules(Now::at_millis(i64::try_from(number).unwrap()), ClusterId::DEFAULT, change)
}

impl Log {
    fn new(batches: usize) -> Self {
        let (mut chain, mut states) = (Chain::default(), vec![ControlState::new(SEED)]);
        for number in 1..=batches {
            let mut state = states[number - 1].clone();
            drop(state.apply(&host(number)));
            states.push(state);
        }
        let seal = |number| Arc::new(chain.seal(told(CLUSTER, number)));
        Self { states, entries: (1..=2 * batches as u64).map(seal).collect() }
    }

    /// Appends these batches.
    fn append(&self, journal: &Journal, batches: std::ops::RangeInclusive<usize>) {
        for number in batches {
            let entries = &self.entries[2 * number - 2..2 * number];
            journal.append(CLUSTER, &[host(number)], entries).unwrap();
        }
    }

    fn chain(&self, number: u64) -> Chain {
        let index = usize::try_from(number).unwrap().checked_sub(1);
        index.map_or_else(Chain::default, |index| Chain::at(&self.entries[index]).unwrap())
    }

    fn installed(&self, batch: usize) -> InstalledState {
        InstalledState {
            state: StreamState::Cluster(self.states[batch].cluster_arc(ClusterId::DEFAULT).unwrap()),
            records: batch as u64,
            chain: self.chain(2 * batch as u64),
            clock: Now::at_millis(i64::try_from(batch).unwrap()),
        }
    }

    fn install(&self, journal: &Journal, batch: usize) -> Result<(), AppendError> {
        journal.install(CLUSTER, self.installed(batch)).map(drop)
    }

    /// Fills in the last entries that are missing, up to that many. Returns their number.
    fn fill(&self, journal: &Journal, count: u64) -> usize {
        let Some(missing) = journal.missing_entries().remove(&CLUSTER) else { return 0 };
        let before = (missing.end() - count.min(*missing.end())).max(missing.start() - 1);
        let entries =
            &self.entries[usize::try_from(before).unwrap()..usize::try_from(*missing.end()).unwrap()];
        journal.fill(CLUSTER, self.chain(before), entries).unwrap();
        entries.len()
    }
}

/// Numbers of the entries of the cluster that a reader finds: by number, and by position.
fn found(journal: &Journal, direction: Direction) -> (Vec<u64>, Vec<u64>) {
    let read = |stream| {
        let (mut numbers, mut place) = (Vec::new(), None);
        loop {
            let (after, before) = match direction {
                Direction::OldestFirst => (place, None),
                Direction::NewestFirst => (None, place),
            };
            let query = AuditQuery { stream, after, before, direction, limit: 7, ..AuditQuery::default() };
            let page = journal.audit_log_reader().read(query).unwrap();
            let of_cluster = page.entries.iter().filter(|one| !one.entry.cluster.is_empty());
            numbers.extend(of_cluster.map(|one| one.entry.number));
            match page.next {
                Some(next) => place = Some(next),
                None => break,
            }
        }
        if direction == Direction::NewestFirst {
            numbers.reverse();
        }
        numbers
    };
    (read(Some(CLUSTER)), read(None))
}

fn assert_found(journal: &Journal, expected: &[u64]) {
    for direction in [Direction::OldestFirst, Direction::NewestFirst] {
        let (by_number, by_position) = found(journal, direction);
        assert_eq!((by_number.as_slice(), by_position.as_slice()), (expected, expected), "{direction:?}");
    }
    let host = forewarn_control::Subject::Host { cluster: "default".to_owned(), name: "h1".to_owned() };
    let query = AuditQuery { stream: Some(CLUSTER), groups: vec![vec![host]], ..AuditQuery::default() };
    let page = journal.audit_log_reader().read(query).unwrap();
    let numbers: Vec<_> = page.entries.iter().map(|one| one.entry.number).collect();
    let of_host: Vec<_> = expected.iter().copied().filter(|number| number % 3 == 1).collect();
    assert_eq!(numbers, of_host);
}

/// promise: D5
#[test]
fn a_state_is_installed_and_older_audit_entries_come_later() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::new(30);
    let (journal, _) = open(directory.path());
    let mut shared = Chain::default();
    let mut tell = |journal: &Journal| {
        let entry = Arc::new(shared.seal(told(Stream::Shared, shared.number + 1)));
        journal.append(Stream::Shared, &[Record::clock(Now::at_millis(5))], &[entry]).unwrap();
    };
    tell(&journal);
    log.append(&journal, 1..=5);
    tell(&journal);
    log.install(&journal, 20).unwrap();
    assert_eq!(journal.missing_entries(), [(CLUSTER, 11..=40)].into());
    tell(&journal);
    log.append(&journal, 21..=30);
    let expected: Vec<u64> = (1..=10).chain(41..=60).collect();
    assert_found(&journal, &expected);
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 33);
    let mut missing = 30;
    while missing > 0 {
        let (journal, recovered) = open(directory.path());
        assert_eq!(
            recovered.state.cluster_arc(ClusterId::DEFAULT),
            log.states[30].cluster_arc(ClusterId::DEFAULT)
        );
        assert_eq!(recovered.audit_ends[&CLUSTER], log.chain(60));
        missing -= log.fill(&journal, 7);
        let present: Vec<u64> = (1..=10).chain(11 + missing as u64..=60).collect();
        assert_found(&journal, &present);
        tell(&journal);
        journal.close().unwrap();
        check(directory.path()).unwrap();
    }
    let (journal, _) = open(directory.path());
    assert_eq!(journal.missing_entries(), [].into());
    assert_found(&journal, &(1..=60).collect::<Vec<_>>());
    drop(journal);
    assert_eq!(check(directory.path()).unwrap().entries_kept, 63 + 5);
}

/// promise: D5
#[test]
fn entries_that_do_not_lead_to_the_installed_state_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::new(12);
    let (journal, _) = open(directory.path());
    log.append(&journal, 1..=2);
    log.install(&journal, 10).unwrap();
    let fill = |before: u64, entries: &[Arc<AuditEntry>]| journal.fill(CLUSTER, log.chain(before), entries);
    assert_eq!(fill(10, &log.entries[10..19]), Err(AppendError::OtherEntry), "the last one is missing");
    assert_eq!(fill(2, &log.entries[2..20]), Err(AppendError::OtherEntry), "some of them are there");
    assert_eq!(fill(20, &[]), Err(AppendError::OtherEntry));
    let mut changed = log.entries[10..20].to_vec();
    changed[3] = Arc::new(AuditEntry { text: "nothing".to_owned(), ..AuditEntry::clone(&changed[3]) });
    assert!(matches!(fill(10, &changed), Err(AppendError::Unchained(_))));
    // A chain that is sound in itself, and another one.
    let mut other = log.chain(10);
    let other: Vec<_> = (0..10).map(|_| Arc::new(other.seal(told(CLUSTER, 1)))).collect();
    assert_eq!(fill(10, &other), Err(AppendError::OtherEntry));
    assert_eq!(journal.missing_entries(), [(CLUSTER, 5..=20)].into());
    assert_eq!(log.install(&journal, 9), Err(AppendError::Earlier));
    let foreign = InstalledState { chain: Chain { number: 20, hash: [1; 32] }, ..log.installed(11) };
    assert_eq!(journal.install(CLUSTER, foreign).map(drop), Err(AppendError::Earlier));
    assert_eq!(Journal::memory().install(CLUSTER, log.installed(1)).map(drop), Err(AppendError::Memory));
    // The journal goes on.
    assert_eq!(log.fill(&journal, 100), 16);
    log.append(&journal, 11..=12);
    assert_found(&journal, &(1..=24).collect::<Vec<_>>());
    journal.close().unwrap();
    check(directory.path()).unwrap();
}

/// promise: D5
#[test]
fn missing_entries_that_would_be_too_old_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::new(40);
    let keep = Options { audit_retention: Duration::from_secs(600), ..options() };
    let (journal, _) = Journal::open(directory.path(), &keep).unwrap();
    log.append(&journal, 1..=3);
    log.install(&journal, 20).unwrap();
    log.append(&journal, 21..=40);
    journal.close().unwrap();
    let (journal, _) = Journal::open(directory.path(), &keep).unwrap();
    for _ in 0..8 {
        journal.append(Stream::Shared, &[Record::clock(Now::at_millis(80 * 60_000))], &[]).unwrap();
        // The next commit sweeps entries that are filed.
        found(&journal, Direction::OldestFirst);
    }
    assert_eq!(journal.missing_entries(), [].into());
    assert_found(&journal, &(71..=80).collect::<Vec<_>>());
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 10);
}

fn unread(number: usize) -> Vec<Record> {
    let unread = ClusterEntry::Unread(vec![MaintenanceId(1)]);
    vec![host(number), Record::in_cluster(Now::at_millis(50), ClusterId::DEFAULT, unread)]
}

/// The last entries say something else.
fn rewritten(log: &Log, from: usize) -> Vec<Arc<AuditEntry>> {
    let mut chain = log.chain(from as u64);
    let again = |entry: &Arc<AuditEntry>| {
        let new = NewAuditEntry { text: "later".to_owned(), ..NewAuditEntry::from(AuditEntry::clone(entry)) };
        Arc::new(chain.seal(new))
    };
    log.entries[from..].iter().map(again).collect()
}

/// promise: N3
#[test]
fn a_copy_that_was_killed_between_an_announcement_and_its_rewrite_goes_on() {
    let log = Log::new(3);
    let copy = Options { unread: UnreadEntries::Hidden, ..options() };
    for closes in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(directory.path(), &copy).unwrap();
        log.append(&journal, 1..=2);
        assert_found(&journal, &[1, 2, 3, 4]);
        journal.hide_entries_after(CLUSTER, 4);
        journal.append(CLUSTER, &unread(3), &log.entries[4..]).unwrap();
        if closes {
            journal.close().unwrap();
        } else {
            // As after a kill: the files as they are.
            let killed = tempfile::tempdir().unwrap();
            for file in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
                std::fs::copy(file.path(), killed.path().join(file.file_name())).unwrap();
            }
            drop(journal);
            std::fs::remove_dir_all(directory.path()).unwrap();
            std::fs::rename(killed.keep(), directory.path()).unwrap();
        }
        let (journal, found_again) = Journal::open(directory.path(), &copy).unwrap();
        assert_eq!(found_again.unread.len(), 1);
        let (by_number, by_position) = found(&journal, Direction::OldestFirst);
        assert!(by_number.iter().chain(&by_position).all(|number| *number <= 4), "{by_number:?}");
        journal.hide_entries_after(CLUSTER, 6);
        journal.rewrite(CLUSTER, &unread(3)[1..], &rewritten(&log, 4)).unwrap();
        journal.show_all_entries(CLUSTER);
        assert_found(&journal, &[1, 2, 3, 4, 5, 6]);
        journal.close().unwrap();
        assert_eq!(check(directory.path()).unwrap().entries_kept, 6);
    }
}

/// promise: D5
#[test]
fn entries_that_were_rewritten_elsewhere_count_as_missing() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = Log::new(3);
    let copy = Options { unread: UnreadEntries::Hidden, ..options() };
    let (journal, _) = Journal::open(directory.path(), &copy).unwrap();
    log.append(&journal, 1..=2);
    journal.hide_entries_after(CLUSTER, 4);
    journal.append(CLUSTER, &unread(3), &log.entries[4..]).unwrap();
    journal.append(Stream::Shared, &[], &[Arc::new(Chain::default().seal(told(Stream::Shared, 1)))]).unwrap();
    let changed = rewritten(&log, 4);
    log.entries.truncate(4);
    log.entries.extend(changed);
    let state = log.states[3].cluster_arc(ClusterId::DEFAULT).unwrap();
    let mut chain = log.chain(6);
    log.entries.extend((7..=9).map(|number| Arc::new(chain.seal(told(CLUSTER, number)))));
    let installed = InstalledState {
        state: StreamState::Cluster(state),
        records: 7,
        chain: log.chain(9),
        clock: Now::at_millis(60),
    };
    journal.install(CLUSTER, installed).unwrap();
    assert_eq!(journal.missing_entries(), [(CLUSTER, 5..=9)].into());
    assert_found(&journal, &[1, 2, 3, 4]);
    journal.close().unwrap();
    check(directory.path()).unwrap();
    let (journal, _) = Journal::open(directory.path(), &copy).unwrap();
    assert_eq!(log.fill(&journal, 4), 4);
    assert_eq!(log.fill(&journal, 4), 1);
    assert_found(&journal, &(1..=9).collect::<Vec<_>>());
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 10);
}

const DIRECTORY: &str = "FOREWARN_TEST_INSTALLS";
const BATCHES: usize = 500;

#[test]
#[ignore = "it is a program that other tests start"]
fn the_installing_program() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let log = Log::new(BATCHES);
    let (journal, _) = open(&directory);
    drop(log.install(&journal, BATCHES));
    while log.fill(&journal, 50) > 0 {}
}

/// promise: D4
#[test]
fn an_installation_that_is_killed_has_happened_or_not() {
    let log = Log::new(BATCHES);
    let mut random = Random::new(3);
    let (mut before, mut partly) = (0, 0);
    for round in 0..12 {
        let scratch = tempfile::tempdir().unwrap();
        let (journal, _) = open(scratch.path());
        log.append(&journal, 1..=2);
        journal.close().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "installing::the_installing_program", "--ignored", "--test-threads=1"]);
        command.env(DIRECTORY, scratch.path()).stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_for_io_calls(child.id(), 40 + random.index(300) as u64);
        child.kill().unwrap();
        child.wait().unwrap();
        let (journal, found) = open(scratch.path());
        let hosts = found.state.cluster(ClusterId::DEFAULT).unwrap().rules().hosts().count();
        let missing = journal.missing_entries().remove(&CLUSTER);
        match hosts {
            2 => {
                before += 1;
                assert_eq!((found.audit_ends[&CLUSTER], missing), (log.chain(4), None), "round {round}");
            }
            BATCHES => {
                let end = 2 * BATCHES as u64;
                assert_eq!(found.audit_ends[&CLUSTER], log.chain(end), "round {round}");
                partly += usize::from(missing.is_some_and(|missing| *missing.end() < end));
            }
            other => panic!("round {round}: {other} hosts"),
        }
        drop(log.install(&journal, BATCHES));
        while log.fill(&journal, 500) > 0 {}
        journal.close().unwrap();
        assert_eq!(check(scratch.path()).unwrap().entries_kept, 2 * BATCHES as u64, "round {round}");
    }
    assert!(before < 12, "no installation was reached");
    println!("{before} before it, {partly} between its entries");
}
