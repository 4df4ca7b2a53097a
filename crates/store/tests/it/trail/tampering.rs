//! An audit log that was changed from outside: each change is noticed.

use std::path::Path;
use std::sync::Arc;

use forewarn_control::{Chain, Stream};
use forewarn_store::{AuditQuery, Journal, OpenError, ReadError, check};
use rusqlite::Connection;
use tempfile::tempdir;

use super::{MINUTE, numbers, open, options, told, with_entries};

fn database(directory: &Path) -> Connection {
    Connection::open(directory.join("audit.db")).unwrap()
}

/// Somebody who knows how checksums are made changes an entry, and even its own hash.
/// promise: C5
#[test]
fn a_forged_entry_breaks_the_chain() {
    let forged = tempdir().unwrap();
    let mut chain = Chain::default();
    let mut entries: Vec<_> = (1..).zip(0..5).map(|(number, at)| told(number, at * MINUTE)).collect();
    entries[2].text = "nobody was here".to_owned();
    let entries: Vec<_> = entries.into_iter().map(|told| Arc::new(chain.seal(told))).collect();
    open(forged.path()).append(Stream::Shared, &[], &entries).unwrap();
    let (directory, _) = with_entries(5);
    let read = "SELECT content FROM trail WHERE position = 3";
    let content: Vec<u8> = database(forged.path()).query_row(read, [], |row| row.get(0)).unwrap();
    let write = "UPDATE trail SET content = ?1 WHERE position = 3";
    database(directory.path()).execute(write, [content]).unwrap();
    let problem = check(directory.path()).unwrap_err().to_string();
    let expected = "audit entry 4, or the one before it, was changed: its hash is wrong";
    assert!(problem.contains(expected), "{problem}");
}

/// Does something to the tables of a journal with five entries, as somebody might who knows `SQLite`, and what is said of it
/// when it is opened and when it is checked.
fn tampered(sql: &str) -> (Option<String>, String) {
    let (directory, _) = with_entries(5);
    let connection = database(directory.path());
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    let what = |problem: OpenError| match problem {
        OpenError::AuditDamaged { ref what, .. } | OpenError::AuditLost { ref what, .. } => what.clone(),
        OpenError::Damaged { .. }
        | OpenError::InUse(_)
        | OpenError::Missing(_)
        | OpenError::Foreign(_)
        | OpenError::Newer { .. }
        | OpenError::Exists(_)
        | OpenError::OfRealm(_)
        | OpenError::Moving(_)
        | OpenError::LossOfCopy(_)
        | OpenError::Full(_)
        | OpenError::Io { .. }
        | OpenError::Database { .. }
        | OpenError::Gone(_)
        | OpenError::Short { .. }
        | OpenError::ReachUnknown { .. }
        | OpenError::Complete(_) => panic!("{problem}"),
    };
    let opened = Journal::open(directory.path(), &options()).err().map(what);
    (opened, what(check(directory.path()).unwrap_err()))
}

/// promise: C5
#[test]
fn a_trail_that_was_tampered_with_is_found_out() {
    let cut = "DELETE FROM trail WHERE position = 5; DELETE FROM subject WHERE position = 5";
    let (opened, checked) = tampered(cut);
    assert_eq!(checked, "the audit log ends with entry 4 instead of 5");
    assert_eq!(opened, Some(checked), "an end that was cut off is missed at once");

    let (opened, checked) = tampered("DELETE FROM trail; DELETE FROM subject; DELETE FROM hour");
    assert_eq!(checked, "the audit log ends with entry 0 instead of 5");
    assert_eq!(opened, Some(checked));

    let (opened, checked) = tampered("DELETE FROM trail WHERE position = 1");
    assert_eq!(checked, "the audit log begins with entry 2 instead of 1");
    assert_eq!(opened, None, "it is reported, and prevents no start");

    let (opened, checked) = tampered("DELETE FROM trail WHERE position = 3");
    assert_eq!(checked, "audit entry 3 is missing: entry 4 comes next");
    assert_eq!(opened, None, "not all of it is read whenever it is opened");

    let changed = "UPDATE trail SET content = CAST(replace(content, 'forewarn', 'somebody') AS BLOB) WHERE position = 3";
    let (_, checked) = tampered(changed);
    assert_eq!(checked, "audit entry 3: its checksum is wrong");

    let (_, checked) = tampered("UPDATE trail SET at = at + 1 WHERE position = 2");
    assert_eq!(checked, "audit entry 2: it is in the place of another one");

    let (_, checked) = tampered("DELETE FROM subject WHERE subject = 'default/tenant:t1' AND position = 4");
    assert_eq!(checked, "audit entry 4 is missing from the index");

    let (_, checked) = tampered("INSERT INTO subject VALUES ('default/tenant:t9', 4)");
    assert_eq!(checked, "the index of the audit log has entries that do not exist");

    let (_, checked) = tampered("UPDATE hour SET first = 4");
    assert_eq!(checked, "audit entry 1 is missing from the index");
}

/// promise: C5
#[test]
fn a_damaged_entry_is_told_of_and_the_others_are_read() {
    let (directory, _) = with_entries(5);
    let connection = database(directory.path());
    connection.execute_batch("UPDATE trail SET content = zeroblob(20) WHERE position = 3").unwrap();
    connection.close().unwrap();
    let journal = open(directory.path());
    let reader = journal.audit_log_reader();
    let problem = reader.read(AuditQuery::default()).unwrap_err();
    assert!(matches!(&problem, ReadError::Damaged(what) if what.starts_with("audit entry 3")), "{problem}");
    assert_eq!(
        numbers(&reader.read(AuditQuery { after: Some(3), ..AuditQuery::default() }).unwrap()),
        [4, 5]
    );
    assert_eq!(
        numbers(&reader.read(AuditQuery { before: Some(3), ..AuditQuery::default() }).unwrap()),
        [1, 2]
    );
}
