//! The audit log is verified while the journal is in use.

use forewarn_store::{AuditCheck, Journal};
use forewarn_testkit::wait_until;
use rusqlite::Connection;

use super::{open, with_entries};

/// Waits for the end of the first pass.
fn first_pass(journal: &Journal) -> AuditCheck {
    wait_until("end of the first pass", || Some(journal.audit_check()).filter(|found| found.passes > 0))
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
