//! Audit entries move from the journal into their own file: each is there once, whatever happens, and an opening does
//! not depend on how many there are.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

mod loss;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use forewarn_control::{AuditEntry, Chain, ClusterId, NewAuditEntry, Record, Stream, Subject};
use forewarn_lifecycle::{Now, Seed, Timestamp};
use forewarn_store::{AuditQuery, Direction, Journal, OpenError, Options, Recovered, check};
use forewarn_types::Moment;
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use crate::support::hold;

fn options() -> Options {
    Options::new(Seed([7; 16]), Now::at_millis(1_000))
}

fn open(directory: &Path, options: &Options) -> (Journal, Recovered) {
    Journal::open(directory, options).unwrap()
}

/// The next entries of a log.
fn sealed(chain: &mut Chain, count: usize) -> Vec<Arc<AuditEntry>> {
    let told = |number: u64| NewAuditEntry {
        at: Moment(Timestamp::from_millis(i64::try_from(number).unwrap() * 1_000)),
        by: "writer".to_owned(),
        text: format!("entry {number}"),
        hosts: vec![format!("h{}", number % 1_000)],
        ..NewAuditEntry::default()
    };
    (0..count).map(|_| Arc::new(chain.seal(told(chain.number + 1)))).collect()
}

/// Appends entries one by one.
fn append_each(journal: &Journal, entries: &[Arc<AuditEntry>]) {
    for entry in entries {
        journal.append(Stream::Shared, &[], std::slice::from_ref(entry)).unwrap();
    }
}

/// Everything that readers find.
fn read_all(journal: &Journal) -> Vec<Arc<AuditEntry>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = journal.audit_log_reader().read(AuditQuery { after, ..AuditQuery::default() }).unwrap();
        found.extend(page.entries.into_iter().map(|one| one.entry));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// A copy of a directory while its committer does nothing, which is all that a kill at that moment leaves.
fn left_by_a_kill(journal: &Journal, directory: &Path) -> TempDir {
    let copy = tempdir().unwrap();
    let held = hold(journal);
    for file in fs::read_dir(directory).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    drop(held);
    copy
}

/// Rows of the journal, and of the audit file.
fn rows(directory: &Path) -> (u64, u64) {
    let count = |file: &str, table: &str| {
        let file = Connection::open(directory.join(file)).unwrap();
        let sql = format!("SELECT count(*) FROM {table}");
        file.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
    };
    (count("journal.db", "entry"), count("audit.db", "trail"))
}

/// promise: C5, D1
#[test]
fn a_kill_between_filing_and_removal_leaves_each_entry_once() {
    const COUNT: usize = 100;
    // Filed and not settled; settled and not removed; neither.
    let cases =
        [(1, 1 << 30, "filed"), (1, 0, "settled"), (7, 60_000, "some of each"), (1_000, 0, "waiting")];
    for (file_after, log_bytes, what) in cases {
        let directory = tempdir().unwrap();
        let options = Options { file_after, log_bytes, ..options() };
        let (journal, _) = open(directory.path(), &options);
        let mut chain = Chain::default();
        let entries = sealed(&mut chain, COUNT);
        append_each(&journal, &entries);
        for unsynced in ["kept", "lost"] {
            let killed = left_by_a_kill(&journal, directory.path());
            if unsynced == "lost" {
                // A power cut may take what was not synced.
                fs::write(killed.path().join("audit.db-wal"), b"").unwrap();
            }
            let (again, found) = open(killed.path(), &options);
            assert_eq!(found.audit_ends[&Stream::Shared], chain, "{what}, {unsynced}");
            assert_eq!(read_all(&again), entries, "{what}, {unsynced}");
            let mut end = chain;
            let more = sealed(&mut end, 3);
            append_each(&again, &more);
            again.close().unwrap();
            assert_eq!(check(killed.path()).unwrap().entries_kept, COUNT as u64 + 3, "{what}, {unsynced}");
            assert_eq!(
                rows(killed.path()),
                (0, COUNT as u64 + 3),
                "{what}, {unsynced}: a clean stop files all"
            );
        }
    }
}

/// Bytes that this thread has read.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// A closed journal with that many entries.
fn with_entries(count: usize) -> (TempDir, Chain, Vec<Arc<AuditEntry>>) {
    created_with_entries(&options(), count)
}

fn created_with_entries(options: &Options, count: usize) -> (TempDir, Chain, Vec<Arc<AuditEntry>>) {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path(), options);
    let mut chain = Chain::default();
    let entries = sealed(&mut chain, count);
    for batch in entries.chunks(200) {
        journal.append(Stream::Shared, &[], batch).unwrap();
    }
    journal.close().unwrap();
    (directory, chain, entries)
}

/// promise: D5
#[test]
fn an_opening_reads_as_much_of_a_long_audit_log_as_of_a_short_one() {
    let [(short, _), (long, bytes)] = [500, 20_000].map(|count| {
        let (directory, _, _) = with_entries(count);
        let before = bytes_read();
        let journal = open(directory.path(), &options());
        let read = bytes_read() - before;
        drop(journal);
        (read, fs::metadata(directory.path().join("audit.db")).unwrap().len())
    });
    assert!(bytes > 5_000_000, "{bytes}");
    // A few pages more: the trees are higher.
    assert!(long < short + 10 * 4_096, "{long} instead of {short} bytes");
}

/// Overwrites the pages of a file from that one on.
fn damage(file: &Path, from: usize) -> Vec<u8> {
    let sound = fs::read(file).unwrap();
    let mut bytes = sound.clone();
    bytes[from * 4_096..].fill(0xa5);
    fs::write(file, bytes).unwrap();
    sound
}

/// promise: C5, D5
#[test]
fn a_damaged_audit_file_is_reported_and_prevents_neither_a_start_nor_commits() {
    for from in [0, 1, 3, 40] {
        let (directory, mut chain, mut entries) = with_entries(1_000);
        let file = directory.path().join("audit.db");
        let sound = damage(&file, from);
        let problem = check(directory.path()).unwrap_err();
        assert!(matches!(problem, OpenError::AuditDamaged { .. }), "{problem}");
        let (journal, found) = open(directory.path(), &options());
        assert_eq!(found.audit_ends[&Stream::Shared], chain);
        let more = sealed(&mut chain, 200);
        append_each(&journal, &more);
        let query = AuditQuery { direction: Direction::NewestFirst, ..AuditQuery::default() };
        journal.audit_log_reader().read(query).unwrap_err();
        assert!(journal.audit_check().damages > 0, "{from}");
        journal.close().unwrap();
        // They wait in the journal until they can be filed.
        assert!(check(directory.path()).is_err());
        fs::write(&file, sound).unwrap();
        drop(fs::remove_file(directory.path().join("audit.db-wal")));
        entries.extend(more);
        let (journal, _) = open(directory.path(), &options());
        assert_eq!(read_all(&journal), entries, "{from}");
        journal.close().unwrap();
        assert_eq!(check(directory.path()).unwrap().entries_kept, 1_200);
    }
}

/// Occupies a position of the audit file of a closed journal: the entry there cannot be filed.
fn occupy(directory: &Path, position: u64) {
    let file = Connection::open(directory.join("audit.db")).unwrap();
    let sql = "INSERT INTO trail (position, stream, number, at, content) VALUES (?1, -9, ?1, 0, x'00')";
    file.execute(sql, [position.cast_signed()]).unwrap();
}

/// promise: C5
#[test]
fn readers_do_not_pass_entries_that_cannot_be_filed() {
    let (directory, mut chain, entries) = with_entries(10);
    occupy(directory.path(), 12);
    let (journal, _) = open(directory.path(), &Options { file_after: 1, ..options() });
    let more = sealed(&mut chain, 5);
    append_each(&journal, &more);
    let known = [&entries[..], &more[..1]].concat();
    for stream in [None, Some(Stream::Shared)] {
        let query = AuditQuery { stream, ..AuditQuery::default() };
        let page = journal.audit_log_reader().read(query.clone()).unwrap();
        assert!(page.entries.iter().map(|one| &one.entry).eq(&known), "{stream:?}");
        assert_eq!((page.head, page.end), (11, 15), "{stream:?}");
        // Its index is not there: without a limit the page would be empty, and complete.
        let host = vec![Subject::Host { cluster: String::new(), name: "h13".to_owned() }];
        let page = journal.audit_log_reader().read(AuditQuery { groups: vec![host], ..query }).unwrap();
        assert_eq!((page.entries.len(), page.head, page.next), (0, 11, None), "{stream:?}");
    }
    assert!(journal.audit_check().damages > 0);
    journal.close().unwrap();
}

/// promise: D1, C5
#[test]
fn small_appends_are_committed_between_the_entries_of_a_large_one() {
    const ENTRIES: usize = 5_000;
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path(), &options());
    let mut chain = Chain::default();
    let entries = sealed(&mut chain, ENTRIES);
    let cluster = Stream::Cluster(ClusterId::DEFAULT);
    let release = hold(&journal);
    let (tell, told) = mpsc::channel();
    let tell_large = tell.clone();
    let clock = Record::clock(Now::at_millis(5));
    journal.append_then(Stream::Shared, &[clock], &entries, move |result| {
        tell_large.send(("large", result.unwrap().first_position)).unwrap();
    });
    let mut of_cluster = Chain::default();
    let (from, killed) = (directory.path().to_owned(), tempdir().unwrap());
    let to = killed.path().to_owned();
    let small = sealed(&mut of_cluster, 1);
    journal.append_then(cluster, &[], &small, move |result| {
        for file in fs::read_dir(&from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        tell.send(("small", result.unwrap().first_position)).unwrap();
    });
    drop(release);
    assert!(told.iter().eq([("small", 1), ("large", 2)]), "a position is given with the last slice");
    assert_eq!(read_all(&journal).len(), ENTRIES + 1, "a reader waits until they are filed");
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, ENTRIES as u64 + 1);
    // Nothing of it was there when the small one was answered.
    let (again, found) = open(killed.path(), &options());
    assert_eq!(found.audit_ends[&Stream::Shared], Chain::default());
    assert_eq!((again.length(), read_all(&again).len()), (0, 1));
    again.close().unwrap();
    assert_eq!(rows(killed.path()), (0, 1));
}

/// promise: C5
#[test]
fn hidden_entries_wait_in_the_journal_and_others_are_filed() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path(), &Options { file_after: 1, ..options() });
    let cluster = Stream::Cluster(ClusterId::DEFAULT);
    let (mut shared, mut of_cluster) = (Chain::default(), Chain::default());
    journal.hide_entries_after(Stream::Shared, 2);
    let hidden = sealed(&mut shared, 5);
    append_each(&journal, &hidden);
    sealed(&mut of_cluster, 4).iter().for_each(|entry| {
        journal.append(cluster, &[], std::slice::from_ref(entry)).unwrap();
    });
    let query = AuditQuery { stream: Some(cluster), ..AuditQuery::default() };
    assert_eq!(journal.audit_log_reader().read(query).unwrap().entries.len(), 4);
    assert_eq!(read_all(&journal).len(), 2);
    let killed = left_by_a_kill(&journal, directory.path());
    assert_eq!(rows(killed.path()).1, 6);
    journal.show_all_entries(Stream::Shared);
    assert_eq!(read_all(&journal).len(), 9);
    let (again, _) = open(killed.path(), &options());
    assert_eq!(read_all(&again).len(), 9, "nothing is hidden after a start");
}

/// promise: D5
#[test]
fn damaged_numbers_end_neither_filing_nor_a_copy() {
    let (directory, mut chain, _) = with_entries(10);
    let file = Connection::open(directory.path().join("audit.db")).unwrap();
    file.execute_batch("UPDATE trail SET position = 0 WHERE position = 1").unwrap();
    file.execute_batch("UPDATE trail SET number = -1 WHERE position = 5").unwrap();
    file.close().unwrap();
    let (journal, _) = open(directory.path(), &Options { file_after: 1, ..options() });
    append_each(&journal, &sealed(&mut chain, 3));
    let last = AuditQuery { after: Some(10), ..AuditQuery::default() };
    assert_eq!(journal.audit_log_reader().read(last).unwrap().entries.len(), 3);
    let copy = directory.path().join("copy.db");
    let (tell, told) = mpsc::channel();
    journal.copy_then(&copy, move |copied| tell.send(copied).unwrap());
    told.recv().unwrap().unwrap();
    journal.append(Stream::Shared, &[], &sealed(&mut chain, 1)).unwrap();
    journal.close().unwrap();
    let copy = Connection::open(copy).unwrap();
    let numbers = "SELECT group_concat(number, ' ') FROM (SELECT number FROM entry ORDER BY number)";
    let numbers: String = copy.query_row(numbers, [], |row| row.get(0)).unwrap();
    assert_eq!(numbers, "2 3 4 6 7 8 9 10 11 12 13", "the others are in the copy");
}

/// promise: C5
#[test]
fn a_reader_is_served_while_entries_are_written() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path(), &options());
    let is_read = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut chain = Chain::default();
            while !is_read.load(Ordering::Relaxed) {
                append_each(&journal, &sealed(&mut chain, 100));
            }
        });
        // Each page has at least the entries of the pages before it, although more and more are written.
        let mut head = 0;
        for _ in 0..20 {
            let page = journal.audit_log_reader().read(AuditQuery::default()).unwrap();
            assert!(page.head >= head, "{} < {head}", page.head);
            head = page.head;
        }
        is_read.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    journal.close().unwrap();
    check(directory.path()).unwrap();
}
