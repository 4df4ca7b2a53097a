//! Journals of an older format: they are upgraded when they are opened, and kept.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;

use forewarn_control::{AuditVerifier, Chain, ClusterId, ControlState, NewAuditEntry, Stream, Subject};
use forewarn_lifecycle::{MaintenanceId, Now, Seed};
use forewarn_store::{
    AuditBatch, AuditQuery, Direction, Journal, OpenError, Options, accept_loss, check, export, import,
};
use tempfile::TempDir;

const FILES: [&str; 4] = ["journal.db", "journal.db-wal", "journal.reach", "lock"];
const KEPT: &str = "journal.format-0.db";

/// A copy of the directory that a version of format 0 has written.
fn old_directory() -> TempDir {
    directory_of(0)
}

fn directory_of(format: i64) -> TempDir {
    let directory = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format-{format}"));
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
    let lines = page.entries.iter().map(|one| one.entry.to_line()).collect();
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

/// promise: C7, D5
#[test]
fn claims_of_an_older_journal_are_those_of_its_last_record() {
    for format in [0, 1] {
        let directory = directory_of(format);
        let (state, _) = open(directory.path());
        assert_eq!(state.clone().with_derived_claims(), state, "format {format}");
        let claims: Vec<_> = state.shared().claims().collect();
        assert!(!claims.is_empty(), "format {format}");
    }
}

/// Entries of the log of `tests/format-1`.
const COMMON: u64 = 23;

fn cluster(id: u32) -> Stream {
    Stream::Cluster(ClusterId(id))
}

fn numbers(page: &AuditBatch) -> Vec<(u64, u64)> {
    page.entries.iter().map(|one| (one.position, one.entry.number)).collect()
}

fn assert_is_the_state_of_format_1(state: &ControlState) {
    let names: Vec<_> = state.shared().clusters().map(|(_, name)| name.to_string()).collect();
    assert_eq!(names, ["default", "north", "deep-south"]);
    for (id, cluster) in state.clusters() {
        let hosts: Vec<_> = cluster.rules().hosts().map(|(id, _)| id.0).collect();
        let expected: Vec<_> = (0..20).filter(|number| number % 3 == id.0).collect();
        assert_eq!(hosts, expected, "{id:?}");
    }
    assert_eq!(state.cluster(ClusterId(1)).unwrap().site().location, "north");
    assert_eq!(state.cluster(ClusterId(2)).unwrap().site().resource_group, "forewarn-south");
}

/// promise: D5, C5
#[test]
fn a_journal_of_format_1_becomes_one_with_a_stream_for_each_cluster() {
    let directory = directory_of(1);
    let before = check(directory.path()).unwrap();
    assert_eq!((before.records, before.entries, before.entries_kept), (26, COMMON, COMMON));
    let (journal, found) = Journal::open(directory.path(), &options()).unwrap();
    assert_is_the_state_of_format_1(&found.state);
    assert_eq!(found.unread, [(ClusterId(1), MaintenanceId(4)), (ClusterId(2), MaintenanceId(1))]);
    let page = journal.audit_log_reader().read(AuditQuery::default()).unwrap();
    assert_eq!(numbers(&page), (1..=COMMON).map(|number| (number, number)).collect::<Vec<_>>());
    // Every stream continues the common log.
    let end = Chain::at(&page.entries.last().unwrap().entry).unwrap();
    let streams = [Stream::Shared, cluster(0), cluster(1), cluster(2)];
    assert_eq!(found.audit_ends, streams.map(|stream| (stream, end)).into());
    journal.close().unwrap();
    let after = check(directory.path()).unwrap();
    assert_eq!((after.hosts, after.entries, after.entries_kept), (20, COMMON, COMMON));
    assert_eq!(after.records, before.records + 2, "the announcements are named again");
    let (_journal, again) = Journal::open(directory.path(), &options()).unwrap();
    assert_eq!((&again.state, &again.unread), (&found.state, &found.unread));
    let names =
        ["journal.format-1.db", "journal.format-0.db"].map(|name| directory.path().join(name).exists());
    assert_eq!(names, [true, false]);
}

/// promise: D5, C5
#[test]
fn the_log_of_a_stream_begins_with_entries_of_the_common_log_that_concern_it() {
    let directory = directory_of(1);
    let (journal, found) = Journal::open(directory.path(), &options()).unwrap();
    let mut ends = found.audit_ends;
    for stream in [cluster(1), cluster(0), cluster(1)] {
        let Stream::Cluster(ClusterId(cluster_number)) = stream else { continue };
        let cluster = ["default", "north"][cluster_number as usize].to_owned();
        let (by, kind) = ("token bob".to_owned(), "command".to_owned());
        let told = NewAuditEntry { cluster, cluster_number, by, kind, ..NewAuditEntry::default() };
        let entry = ends.get_mut(&stream).unwrap().seal(told);
        journal.append(stream, &[], &[entry.into()]).unwrap();
    }
    let read = |query: AuditQuery| journal.audit_log_reader().read(query).unwrap();
    let of = |stream| AuditQuery { stream: Some(stream), ..AuditQuery::default() };
    // Hosts 1, 4, … of the second cluster were entries 3, 6, …; its site was entry 22.
    let north: Vec<_> = (3..=21).step_by(3).chain([22]).map(|number| (number, number)).collect();
    let page = read(of(cluster(1)));
    assert_eq!(numbers(&page), [&north[..], &[(24, 24), (26, 25)]].concat());
    assert_eq!((page.head, page.swept, page.next), (25, 0, None));
    let newest = AuditQuery { direction: Direction::NewestFirst, limit: 4, ..of(cluster(1)) };
    let page = read(newest.clone());
    assert_eq!(numbers(&page), [(26, 25), (24, 24), (22, 22), (21, 21)]);
    assert_eq!(numbers(&read(AuditQuery { before: page.next, limit: 2, ..newest })), [(18, 18), (15, 15)]);
    assert_eq!(
        numbers(&read(AuditQuery { after: Some(20), ..of(cluster(1)) })),
        [(21, 21), (22, 22), (24, 24), (26, 25)]
    );
    let groups = vec![vec![Subject::By("token bob".to_owned())]];
    assert_eq!(numbers(&read(AuditQuery { groups, ..of(cluster(1)) })), [(24, 24), (26, 25)]);
    assert_eq!(numbers(&read(of(Stream::Shared))), [(1, 1), (23, 23)]);
    let south: Vec<_> = (4..=19).step_by(3).map(|number| (number, number)).collect();
    assert_eq!(numbers(&read(of(cluster(2)))), south, "no entry of its own yet");
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, COMMON + 3);
    let (_journal, again) = Journal::open(directory.path(), &options()).unwrap();
    assert_eq!(again.audit_ends, ends);
}

/// promise: D5
#[test]
fn a_copy_of_format_1_can_be_imported_and_exported() {
    let (target, export_target, source) = (TempDir::new().unwrap(), TempDir::new().unwrap(), directory_of(1));
    let file = export_target.path().join("export");
    export(source.path(), &mut fs::File::create(&file).unwrap()).unwrap();
    assert!(!source.path().join("journal.format-1.db").exists(), "an export changes nothing");
    import(&file, &export_target.path().join("data"), &options()).unwrap();
    drop(Journal::open(source.path(), &options()).unwrap());
    import(&source.path().join("journal.format-1.db"), target.path(), &options()).unwrap();
    for directory in [target.path(), &export_target.path().join("data")] {
        let (journal, found) = Journal::open(directory, &options()).unwrap();
        assert_is_the_state_of_format_1(&found.state);
        assert!(found.audit_ends.values().all(|end| *end == Chain::default()), "new logs begin");
        assert_eq!(journal.audit_log_reader().read(AuditQuery::default()).unwrap().head, 0);
    }
}

/// promise: D4, D5
#[test]
fn a_journal_of_format_1_that_has_lost_commits_is_refused_until_the_loss_is_accepted() {
    let directory = directory_of(1);
    fs::remove_file(directory.path().join("journal.db-wal")).unwrap();
    let refused = Journal::open(directory.path(), &options()).unwrap_err();
    assert!(matches!(refused, OpenError::Short { .. }), "{refused}");
    assert!(!directory.path().join("journal.format-1.db").exists());
    let accepted = accept_loss(directory.path(), &options()).unwrap();
    assert_eq!(accepted.due.map(|due| due.records), Some(26));
    assert!(accepted.found.records < 26, "{accepted:?}");
    Journal::open(directory.path(), &options()).unwrap();
    check(directory.path()).unwrap();
}

/// Lengths of a log after each of its commits: a frame that ends one has the size of the database.
fn ends_of_commits(log: &[u8]) -> Vec<usize> {
    const HEAD: usize = 32;
    const FRAME: usize = 24 + 4_096;
    let frames = log[HEAD..].chunks_exact(FRAME).enumerate();
    let commits = frames.filter(|(_, frame)| frame[4..8] != [0; 4]);
    commits.map(|(number, _)| HEAD + (number + 1) * FRAME).collect()
}

/// promise: D4, D5, C5
#[test]
fn every_loss_of_commits_of_format_1_is_noticed_and_its_audit_log_verifies() {
    let log = fs::read(directory_of(1).path().join("journal.db-wal")).unwrap();
    let ends = ends_of_commits(&log);
    assert!(ends.len() > 20, "{}", ends.len());
    for end in &ends[..ends.len() - 1] {
        let directory = directory_of(1);
        fs::write(directory.path().join("journal.db-wal"), &log[..*end]).unwrap();
        accept_loss(directory.path(), &options()).unwrap();
        let (journal, mut found) = Journal::open(directory.path(), &options()).unwrap();
        let stream = cluster(0);
        let new = NewAuditEntry { stream: Some(stream), ..NewAuditEntry::default() };
        let entry = found.audit_ends.entry(stream).or_default().seal(new);
        journal.append(stream, &[], &[entry.into()]).unwrap();
        journal.close().unwrap();
        let (_, lines) = open(directory.path());
        let mut verifier = AuditVerifier::new();
        for line in &lines {
            verifier.verify(&serde_json::from_str(line).unwrap()).unwrap();
        }
        verifier.finish().unwrap();
        assert!(lines[lines.len() - 2].contains("loss_accepted"), "{lines:?}");
    }
}
