//! Damage to one stream is found, whichever it is.

use forewarn_control::Chain;
use forewarn_store::{Journal, OpenError, check};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use super::{ExpectedJournal, cluster, open, options, told};
use crate::support::fold;

/// A closed journal with three clusters: 1 is folded in the middle, 2 is not.
fn written() -> TempDir {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    (0..5).for_each(|_| (0..3).for_each(|id| world.admit(&journal, id)));
    fold(&journal, cluster(1), &world.state);
    (0..5).for_each(|_| (0..3).for_each(|id| world.admit(&journal, id)));
    journal.close().unwrap();
    directory
}

/// Changes the tables, and returns what an opening and a check say.
fn after(sql: &str) -> (Option<String>, Option<String>) {
    let directory = written();
    let name = if sql.contains(" trail ") { "audit.db" } else { "journal.db" };
    let file = Connection::open(directory.path().join(name)).unwrap();
    file.execute_batch(sql).unwrap();
    file.close().unwrap();
    let what = |problem: OpenError| {
        let (OpenError::Damaged { what, .. } | OpenError::AuditDamaged { what, .. }) = problem else {
            panic!("{problem}")
        };
        what
    };
    let checked = check(directory.path()).err().map(what);
    (Journal::open(directory.path(), &options()).err().map(what), checked)
}

/// Both say the same.
fn found_by_both(sql: &str) -> String {
    let (opened, checked) = after(sql);
    assert_eq!(opened, checked, "{sql}");
    opened.unwrap_or_else(|| panic!("unnoticed: {sql}"))
}

/// promise: D4
#[test]
fn a_torn_or_missing_record_of_one_stream_is_found() {
    assert_eq!(after(""), (None, None));
    let missing = found_by_both("DELETE FROM record WHERE stream = 3 AND number = 4");
    assert_eq!(missing, "record 4 of cluster 2 is missing");
    let cut_off = found_by_both("DELETE FROM record WHERE stream = 2 AND number = 10");
    assert_eq!(cut_off, "cluster 1 ends with record 9 instead of 10");
    let all = found_by_both("DELETE FROM record WHERE stream = 3");
    assert_eq!(all, "cluster 2 ends with record 0 instead of 10");
    let torn =
        "UPDATE record SET content = substr(content, 1, length(content) - 1) WHERE stream = 3 AND number = 2";
    assert_eq!(found_by_both(torn), "record 2 of cluster 2: its checksum is wrong");
    let other = "UPDATE record SET content = (SELECT content FROM record WHERE stream = 1 AND number = 7) \
                 WHERE stream = 2 AND number = 7";
    assert_eq!(found_by_both(other), "record 7 of cluster 1: its checksum is wrong");
}

/// promise: D4
#[test]
fn a_damaged_state_or_heading_of_one_stream_is_found() {
    let part = found_by_both("DELETE FROM chunk WHERE stream = 2");
    assert_eq!(part, "a part of the stored state of cluster 1 is missing");
    let moved = "UPDATE chunk SET content = (SELECT content FROM chunk WHERE stream = 1) WHERE stream = 2";
    assert_eq!(found_by_both(moved), "part 0 of the stored state of cluster 1: its checksum is wrong");
    assert_eq!(found_by_both("DELETE FROM stream WHERE stream = 3"), "the heading of a stream is missing");
    assert_eq!(found_by_both("DELETE FROM heading"), "it has no heading");
    let moved = "UPDATE stream SET content = (SELECT content FROM stream WHERE stream = 2) WHERE stream = 3";
    assert_eq!(found_by_both(moved), "the heading of cluster 2: its checksum is wrong");
}

/// promise: C5
#[test]
fn a_log_of_one_stream_that_was_tampered_with_is_found() {
    // Position 31 is the last entry of cluster 1, and not the last of all.
    let cut = "UPDATE trail SET number = 99 WHERE position = 31";
    let (opened, checked) = after(cut);
    assert_eq!(opened, None, "not all of it is read whenever it is opened");
    assert_eq!(checked.unwrap(), "audit entry 31: it is in the place of another one");
    let (opened, checked) = after("UPDATE trail SET stream = 4 WHERE position = 7");
    assert_eq!(opened, None, "not all of it is read whenever it is opened");
    assert_eq!(checked.unwrap(), "audit entry 7: its checksum is wrong");
    let (_, checked) = after("DELETE FROM trail WHERE position = 7; DELETE FROM subject WHERE position = 7");
    assert_eq!(checked.unwrap(), "audit entry 7 is missing: entry 8 comes next");
}

/// An entry that another stream would accept, too, is verified by the chain of its own.
/// promise: C5
#[test]
fn entries_continue_the_log_of_their_stream() {
    let directory = written();
    let (journal, found) = open(directory.path());
    let mut end = found.audit_ends[&cluster(1)];
    let next = std::sync::Arc::new(end.seal(told(cluster(1), end.number + 1)));
    assert!(journal.append(cluster(2), &[], &[std::sync::Arc::clone(&next)]).is_err());
    drop(journal);
    let (journal, _) = open(directory.path());
    journal.append(cluster(1), &[], &[next]).unwrap();
    journal.close().unwrap();
    let (_journal, found) = open(directory.path());
    assert_eq!(found.audit_ends[&cluster(1)], end);
    assert_ne!(found.audit_ends[&cluster(2)], Chain::default());
}
