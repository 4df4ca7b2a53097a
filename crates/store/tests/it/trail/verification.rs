//! The audit log is verified while the journal is in use.

use std::time::Duration;

use forewarn_store::{AuditCheck, Journal};
use rusqlite::Connection;

use super::{open, with_entries};

/// Waits for the end of the first pass.
fn first_pass(journal: &Journal) -> AuditCheck {
    loop {
        let found = journal.audit_check();
        if found.passes > 0 {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// promise: C5
#[test]
fn a_sound_audit_log_is_verified_beside_the_journal() {
    let directory = with_entries(100).0;
    let journal = open(directory.path());
    let expected = AuditCheck { entries: 100, passes: 1, damages: 0, last_damage: None };
    assert_eq!(first_pass(&journal), expected);
}

/// promise: C5
#[test]
fn damage_is_found_beside_the_journal_and_the_rest_is_verified() {
    let directory = with_entries(100).0;
    let connection = Connection::open(directory.path().join("audit.db")).unwrap();
    connection.execute_batch("UPDATE trail SET content = zeroblob(20) WHERE position IN (3, 70)").unwrap();
    connection.execute_batch("DELETE FROM subject WHERE position = 50 AND subject LIKE 'by:%'").unwrap();
    connection.close().unwrap();
    let journal = open(directory.path());
    let found = first_pass(&journal);
    assert_eq!((found.entries, found.damages), (97, 3));
    assert_eq!(found.last_damage.unwrap(), "audit entry 70: its checksum is wrong");
}
