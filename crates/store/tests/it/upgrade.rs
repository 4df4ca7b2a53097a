//! Journals of an older format: they are upgraded when they are opened, and kept.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;

use forewarn_control::{ClusterId, ControlState};
use forewarn_lifecycle::{Now, Seed};
use forewarn_store::{AuditQuery, Direction, Journal, Options, check, export, import};
use tempfile::TempDir;

const FILES: [&str; 4] = ["journal.db", "journal.db-wal", "journal.reach", "lock"];
const KEPT: &str = "journal.format-0.db";

/// A copy of the directory that the previous version has written.
fn old_directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-0");
    for name in FILES {
        fs::copy(source.join(name), directory.path().join(name)).unwrap();
    }
    directory
}

fn options() -> Options {
    Options::new(Seed([3; 16]), Now::at_millis(0))
}

fn open(directory: &Path) -> (ControlState, Vec<String>) {
    let (journal, recovered) = Journal::open(directory, &options()).unwrap();
    let query = AuditQuery { direction: Direction::OldestFirst, ..AuditQuery::default() };
    let page = journal.audit_log_reader().read(query).unwrap();
    let lines = page.entries.iter().map(|entry| entry.to_line()).collect();
    journal.close().unwrap();
    (recovered.state, lines)
}

/// promise: D5
#[test]
fn a_journal_of_format_0_is_upgraded_once_and_kept() {
    let directory = old_directory();
    let (state, lines) = open(directory.path());
    let names: Vec<_> = state.shared().clusters().map(|(_, name)| name.to_string()).collect();
    assert_eq!(names, ["default", "north", "south"]);
    let receipts = |id| state.cluster(ClusterId(id)).unwrap().receipts().size().0;
    assert_eq!((state.shared().receipts().size().0, receipts(0), receipts(1)), (3, 0, 0));
    let keys: Vec<_> =
        state.resources_below("/").map(|(key, resource)| (key.len(), resource.cluster)).collect();
    assert_eq!(keys.len(), 2, "two resource groups: {keys:?}");
    let north = state.cluster(ClusterId(1)).unwrap();
    assert_eq!(north.site().resource_group, "forewarn-north");
    let kept = fs::read(directory.path().join(KEPT)).unwrap();
    // Opened again, nothing is upgraded.
    assert_eq!(open(directory.path()), (state, lines));
    assert_eq!(fs::read(directory.path().join(KEPT)).unwrap(), kept);
    check(directory.path()).unwrap();
}

/// promise: D5
#[test]
fn an_upgrade_that_was_interrupted_begins_anew() {
    let (whole, interrupted) = (old_directory(), old_directory());
    let expected = open(whole.path());
    // Before the rename there are two names of the old journal, and a part of the new one.
    fs::hard_link(interrupted.path().join("journal.db"), interrupted.path().join(KEPT)).unwrap();
    fs::write(interrupted.path().join("journal.new"), b"SQLite format 3\0 and no more").unwrap();
    assert_eq!(open(interrupted.path()), expected);
    assert!(interrupted.path().join(KEPT).exists() && !interrupted.path().join("journal.new").exists());
}

/// promise: D5
#[test]
fn the_journal_that_was_kept_can_be_upgraded_again() {
    let directory = old_directory();
    let expected = open(directory.path());
    let again = TempDir::new().unwrap();
    fs::copy(directory.path().join(KEPT), again.path().join("journal.db")).unwrap();
    assert_eq!(open(again.path()), expected);
}

/// promise: D5
#[test]
fn a_copy_of_format_0_can_be_imported_and_exported() {
    let (source, target, target_of_export) =
        (old_directory(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let (state, _) = open(source.path());
    import(&source.path().join(KEPT), target.path(), &options()).unwrap();
    let (imported, _) = open(target.path());
    let tags = |state: &ControlState| state.cluster(ClusterId(1)).unwrap().details().clone();
    assert_eq!(tags(&imported), tags(&state));
    let file = target_of_export.path().join("export");
    let directory = old_directory();
    export(directory.path(), &mut fs::File::create(&file).unwrap()).unwrap();
    import(&file, &target_of_export.path().join("data"), &options()).unwrap();
    let (exported, _) = open(&target_of_export.path().join("data"));
    assert_eq!(tags(&exported), tags(&state));
}

/// promise: D5
#[test]
fn a_journal_of_format_0_that_has_lost_commits_is_refused_and_left_as_it_was() {
    let directory = old_directory();
    fs::remove_file(directory.path().join("journal.db-wal")).unwrap();
    let refused = Journal::open(directory.path(), &options()).unwrap_err().to_string();
    assert!(refused.contains("acknowledged"), "{refused}");
    assert!(!directory.path().join(KEPT).exists());
}
