//! Audit entries or commits that are lost: each loss is noticed, and an operator can accept it.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use forewarn_control::{ControlState, Stream};
use forewarn_lifecycle::{Now, Seed};
use forewarn_store::{AuditQuery, Journal, LossKind, OpenError, Options, accept_loss, check, export};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

/// promise: D4, C5
#[test]
fn an_audit_file_that_is_missing_or_of_another_time_is_refused_until_the_loss_is_accepted() {
    let (directory, mut chain, _) = with_entries(10);
    let file = directory.path().join("audit.db");
    let older = fs::read(&file).unwrap();
    let (journal, _) = open(directory.path(), &options());
    append_each(&journal, &sealed(&mut chain, 5));
    journal.close().unwrap();
    fs::write(&file, older).unwrap();
    let refused = || {
        let opened = Journal::open(directory.path(), &options()).map(drop).unwrap_err();
        assert!(matches!(opened, OpenError::AuditLost { .. }), "{opened}");
        let checked = check(directory.path()).unwrap_err();
        assert_eq!(checked.to_string(), opened.to_string());
        let command = format!("forewarn store accept-loss {}", directory.path().display());
        assert!(opened.to_string().ends_with(&command), "{opened}");
        opened.to_string()
    };
    assert!(refused().contains("the audit log ends with entry 10 instead of 15"));
    let (other, _, _) = with_entries(20);
    fs::copy(other.path().join("audit.db"), &file).unwrap();
    let ahead = Journal::open(directory.path(), &options()).map(drop).unwrap_err();
    assert!(matches!(ahead, OpenError::Short { .. }), "{ahead}");
    fs::remove_file(&file).unwrap();
    assert!(refused().contains("the file is missing; it has audit entries 1 to 15"));
    export(directory.path(), &mut Vec::new()).unwrap();
    let accepted = accept_loss(directory.path(), &Options { seed: Seed([8; 16]), ..options() }).unwrap();
    assert_eq!(accepted.kind, LossKind::AuditEntries);
    let (journal, found) = open(directory.path(), &options());
    assert_eq!(found.state, ControlState::new(Seed([7; 16])), "the state goes on unchanged");
    let page = journal.audit_log_reader().read(AuditQuery::default()).unwrap();
    assert_eq!((page.swept, page.head, page.entries.len()), (15, 16, 1));
    assert_eq!(page.entries[0].entry.kind, "loss_accepted");
    let mut chain = found.audit_ends[&Stream::Shared];
    append_each(&journal, &sealed(&mut chain, 2));
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 3);
}

/// promise: C5
#[test]
fn entries_that_wait_in_the_journal_are_saved_when_a_loss_is_accepted() {
    let (directory, mut chain, _) = with_entries(10);
    occupy(directory.path(), 11);
    let (journal, _) = open(directory.path(), &options());
    let waiting = sealed(&mut chain, 150);
    journal.append(Stream::Shared, &[], &waiting).unwrap();
    journal.close().unwrap();
    assert_eq!(rows(directory.path()), (150, 11));
    fs::remove_file(directory.path().join("audit.db")).unwrap();
    // A name is not used twice.
    fs::write(directory.path().join("audit.lost-1.db"), b"").unwrap();
    let accepted = accept_loss(directory.path(), &options()).unwrap();
    let file = directory.path().join("audit.lost-2.jsonl");
    assert_eq!((accepted.kind, accepted.waiting.as_ref()), (LossKind::AuditEntries, Some(&file)));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = fs::read_to_string(&file).unwrap();
    assert!(lines.lines().eq(waiting.iter().map(|entry| entry.to_line())), "{lines}");
    let (journal, _) = open(directory.path(), &options());
    assert_eq!(read_all(&journal).len(), 1);
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 1);
}

/// promise: D4, C5
#[test]
fn the_audit_file_of_another_journal_is_no_sign_of_lost_commits() {
    let other = Options::new(Seed([9; 16]), Now::at_millis(2_000));
    for count in [5, 10, 20] {
        let (directory, _, _) = with_entries(10);
        let (other, _, _) = created_with_entries(&other, count);
        fs::copy(other.path().join("audit.db"), directory.path().join("audit.db")).unwrap();
        let refused = [
            Journal::open(directory.path(), &options()).map(drop).unwrap_err(),
            check(directory.path()).map(drop).unwrap_err(),
        ];
        for problem in refused {
            assert!(matches!(problem, OpenError::AuditLost { .. }), "{count}: {problem}");
            assert!(problem.to_string().contains("it is the file of another journal"), "{count}: {problem}");
        }
        let accepted = accept_loss(directory.path(), &Options { seed: Seed([8; 16]), ..options() }).unwrap();
        assert_eq!(accepted.kind, LossKind::AuditEntries);
        let (journal, found) = open(directory.path(), &options());
        assert_eq!(found.state, ControlState::new(Seed([7; 16])), "the state goes on unchanged");
        journal.close().unwrap();
        assert_eq!(check(directory.path()).unwrap().entries_kept, 1);
    }
}

/// A journal that has lost that many commits, which its audit file shows.
fn with_a_lead(count: usize) -> TempDir {
    let (directory, mut chain, _) = with_entries(10);
    let files = ["journal.db", "journal.reach"].map(|name| directory.path().join(name));
    let older = files.each_ref().map(|file| fs::read(file).unwrap());
    let (journal, _) = open(directory.path(), &options());
    append_each(&journal, &sealed(&mut chain, count));
    journal.close().unwrap();
    files.iter().zip(older).for_each(|(file, older)| fs::write(file, older).unwrap());
    directory
}

fn refuse_short(directory: &Path) {
    let problem = Journal::open(directory, &options()).map(drop).unwrap_err();
    assert!(matches!(problem, OpenError::Short { .. }), "{problem}");
}

/// promise: D4, C5
#[test]
fn an_interrupted_acceptance_of_lost_commits_can_be_repeated() {
    for lost in [1, 2, 3, 20] {
        let directory = with_a_lead(lost);
        refuse_short(directory.path());
        let unchanged = ["audit.db", "journal.reach"].map(|name| directory.path().join(name));
        let content = unchanged.each_ref().map(|file| fs::read(file).unwrap());
        for _ in 0..2 {
            assert_eq!(accept_loss(directory.path(), &options()).unwrap().kind, LossKind::Commits);
            // The journal was written, and nothing else.
            unchanged.iter().zip(&content).for_each(|(file, content)| fs::write(file, content).unwrap());
        }
        refuse_short(directory.path());
        accept_loss(directory.path(), &options()).unwrap();
        let (journal, _) = open(directory.path(), &options());
        let entries = read_all(&journal);
        let kinds: Vec<_> = entries.iter().skip(10).map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds, ["loss_accepted"; 3], "{lost}");
        assert_eq!(journal.audit_check().damages, 0, "{lost}");
        journal.close().unwrap();
        assert_eq!(check(directory.path()).unwrap().entries_kept, entries.len() as u64, "{lost}");
    }
}

/// promise: D4, C5
#[test]
fn lost_commits_can_be_accepted_although_the_audit_file_is_damaged() {
    let directory = with_a_lead(2);
    let file = directory.path().join("audit.db");
    let page: usize = {
        let file = Connection::open(&file).unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'subject'";
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().try_into().unwrap()
    };
    let mut bytes = fs::read(&file).unwrap();
    bytes[(page - 1) * 4_096..page * 4_096].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    refuse_short(directory.path());
    assert_eq!(accept_loss(directory.path(), &options()).unwrap().kind, LossKind::Commits);
    assert_eq!(fs::read(directory.path().join("audit.lost-1.db")).unwrap(), bytes);
    let (journal, _) = open(directory.path(), &options());
    assert_eq!(read_all(&journal).len(), 1);
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 1);
}

/// promise: C5, D4
#[test]
fn entries_are_removed_when_no_loss_of_the_log_can_bring_them_back() {
    let (directory, mut chain, entries) = with_entries(50);
    let retention = Duration::from_secs(30);
    let options = Options { file_after: 1, log_bytes: 1 << 30, audit_retention: retention, ..options() };
    let (journal, _) = open(directory.path(), &options);
    for entry in sealed(&mut chain, 20) {
        // Entries are swept once they are filed, which a reader waits for.
        journal.audit_log_reader().read(AuditQuery::default()).unwrap();
        append_each(&journal, &[entry]);
    }
    let first = journal.audit_log_reader().read(AuditQuery::default()).unwrap().swept;
    assert!(first > 30, "{first}");
    let lost = left_by_a_kill(&journal, directory.path());
    journal.close().unwrap();
    assert!(rows(directory.path()).1 < 35, "they are removed");
    fs::write(lost.path().join("journal.db-wal"), b"").unwrap();
    refuse_short(lost.path());
    assert_eq!(accept_loss(lost.path(), &options).unwrap().kind, LossKind::Commits);
    let (journal, _) = open(lost.path(), &options);
    assert_eq!(read_all(&journal)[..50], entries[..]);
    assert_eq!(journal.audit_check().damages, 0);
    journal.close().unwrap();
    check(lost.path()).unwrap();
}
