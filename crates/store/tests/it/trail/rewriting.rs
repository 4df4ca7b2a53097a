//! Entries that no reader has seen are written again with later times.

use std::fs;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ClusterEntry, ClusterId, NewAuditEntry, Record, Site, Stream};
use forewarn_lifecycle::{MaintenanceId, Now};
use forewarn_store::{AuditQuery, Journal, check};
use tempfile::tempdir;

use super::{MINUTE, open, options, sealed, told};

/// The same entries, sealed again; those from the one of that number on say something else.
fn sealed_again(entries: &[Arc<AuditEntry>], from: u64) -> Vec<Arc<AuditEntry>> {
    let mut chain = Chain::default();
    let again = |entry: &Arc<AuditEntry>| {
        let mut told = NewAuditEntry::from(AuditEntry::clone(entry));
        if entry.number >= from {
            told.text = format!("{}, not before later", told.text);
        }
        Arc::new(chain.seal(told))
    };
    entries.iter().map(again).collect()
}

/// What a reader finds, and the number of the newest entry that it knows of.
fn texts(journal: &Journal) -> (Vec<String>, u64) {
    let page = journal.audit_log_reader().read(AuditQuery::default()).unwrap();
    (page.entries.iter().map(|one| one.entry.text.clone()).collect(), page.head)
}

/// promise: N3, C5
#[test]
fn entries_that_are_hidden_are_rewritten_before_a_reader_sees_them() {
    let directory = tempdir().unwrap();
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    for journal in [Journal::memory(), open(directory.path())] {
        journal.append(Stream::Shared, std::slice::from_ref(&clock), &entries[..3]).unwrap();
        journal.hide_entries_after(Stream::Shared, 3);
        journal.append(Stream::Shared, std::slice::from_ref(&clock), &entries[3..]).unwrap();
        assert_eq!((texts(&journal).0.len(), texts(&journal).1), (3, 3), "the rest is hidden");
        let again = sealed_again(&entries, 5);
        journal.rewrite(Stream::Shared, std::slice::from_ref(&clock), &again[4..]).unwrap();
        assert_eq!((texts(&journal).0.len(), texts(&journal).1), (3, 3));
        journal.show_all_entries(Stream::Shared);
        let expected: Vec<_> = again.iter().map(|entry| entry.text.clone()).collect();
        assert_eq!(texts(&journal), (expected, 6));
        assert_eq!(journal.length(), 3);
        // What comes next is chained to what was rewritten.
        let next = Chain::at(&again[5]).unwrap().seal(told(7, 9 * MINUTE));
        journal.append(Stream::Shared, &[], &[Arc::new(next)]).unwrap();
        journal.close().unwrap();
    }
    assert_eq!(check(directory.path()).unwrap().entries_kept, 7, "the chain holds, and the index does");
}

/// promise: D4
#[test]
fn a_kill_right_after_entries_were_rewritten_is_no_loss() {
    let directory = tempdir().unwrap();
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    let journal = open(directory.path());
    journal.append(Stream::Shared, std::slice::from_ref(&clock), &entries[..3]).unwrap();
    journal.hide_entries_after(Stream::Shared, 3);
    journal.append(Stream::Shared, std::slice::from_ref(&clock), &entries[3..]).unwrap();
    // The commit of the rewritten entries is durable, and its record is not written yet.
    let reach = directory.path().join("journal.reach");
    let before = fs::read(&reach).unwrap();
    journal.rewrite(Stream::Shared, std::slice::from_ref(&clock), &sealed_again(&entries, 5)[4..]).unwrap();
    journal.close().unwrap();
    fs::write(reach, before).unwrap();
    let (journal, _) = Journal::open(directory.path(), &options()).unwrap();
    assert_eq!(journal.length(), 3);
}

/// promise: N3, C5
#[test]
fn only_the_last_entries_are_rewritten_and_by_entries_about_the_same() {
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    let others: Vec<_> = sealed((0..6).map(|number| number * MINUTE + 1));
    let again = sealed_again(&entries, 1);
    for wrong in [&again[2..5], &others[..], &again[5..]] {
        let directory = tempdir().unwrap();
        for journal in [Journal::memory(), open(directory.path())] {
            journal.append(Stream::Shared, std::slice::from_ref(&clock), &entries).unwrap();
            // The last one alone is not chained to the fifth as it was written.
            assert!(
                journal.rewrite(Stream::Shared, std::slice::from_ref(&clock), wrong).is_err(),
                "{wrong:?}"
            );
        }
    }
}

/// promise: N3
#[test]
fn a_journal_that_ends_with_announcements_names_them_until_something_follows() {
    let directory = tempdir().unwrap();
    let recovered = || {
        let (journal, found) = Journal::open(directory.path(), &options()).unwrap();
        journal.close().unwrap();
        found.unread
    };
    let cluster = Stream::Cluster(ClusterId::DEFAULT);
    let other =
        Record::in_cluster(Now::at_millis(5), ClusterId::DEFAULT, ClusterEntry::Site(Site::default()));
    // More than one record can hold.
    let all: Vec<_> = (0..25_000).map(|work| (ClusterId::DEFAULT, MaintenanceId(work))).collect();
    let mut records = vec![other.clone()];
    records.extend(all.chunks(10_000).map(|part| {
        let unread = ClusterEntry::Unread(part.iter().map(|(_, work)| *work).collect());
        Record::in_cluster(Now::at_millis(6), ClusterId::DEFAULT, unread)
    }));
    assert!(records.len() > 2);
    let journal = open(directory.path());
    journal.append(cluster, &records, &[]).unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(), all);
    assert_eq!(recovered(), all, "looking changes nothing");
    let journal = open(directory.path());
    journal.append(Stream::Shared, &[Record::clock(Now::at_millis(6))], &[]).unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(), all, "another stream says nothing about them");
    let journal = open(directory.path());
    journal.append(cluster, &[other], &[]).unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(), []);
}
