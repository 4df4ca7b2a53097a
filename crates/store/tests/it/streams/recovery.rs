//! Streams are recovered as they were written; folded, swept and forgotten one by one.

use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::shared::Change as SharedChange;
use forewarn_control::{Record, Stream};
use forewarn_lifecycle::{Now, Timestamp};
use forewarn_store::{AuditQuery, Journal, Options, check};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::tempdir;

use super::{ExpectedJournal, cluster, host, open, options, read, read_log};
use crate::support::fold;

/// One step of a life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append {
        id: u32,
        records: u32,
        entries: usize,
    },
    Clock {
        entries: usize,
    },
    Fold(u32),
    FoldShared,
    /// Stops without a close, and opens again.
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let append = (0..4u32, 0..4u32, 0..3usize).prop_map(|(id, records, entries)| Step::Append {
        id,
        records,
        entries,
    });
    let clock = (0..3usize).prop_map(|entries| Step::Clock { entries });
    let step = prop_oneof![
        8 => append,
        2 => clock,
        2 => (0..4u32).prop_map(Step::Fold),
        1 => Just(Step::FoldShared),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32)
    ))]

    /// promise: D1, C5
    #[test]
    fn interleaved_streams_are_opened_again_as_they_were(steps in steps()) {
        let directory = tempdir().unwrap();
        let (mut journal, _) = open(directory.path());
        let mut world = ExpectedJournal::with_clusters(&journal, 3);
        for step in steps {
            match step {
                Step::Append { id, records, entries } => {
                    let first = u32::try_from(world.records).unwrap();
                    let records: Vec<_> = (first..first + records).map(|number| host(id, number)).collect();
                    world.append(&journal, cluster(id), &records, entries);
                }
                Step::Clock { entries } => {
                    let clock = Record::clock(Now::at_millis(5_000));
                    world.append(&journal, Stream::Shared, &[clock], entries);
                }
                Step::Fold(id) => fold(&journal, cluster(id), &world.state),
                Step::FoldShared => fold(&journal, Stream::Shared, &world.state),
                Step::Reopen => {
                    drop(journal);
                    let (again, found) = open(directory.path());
                    world.assert_recovered(&again, &found);
                    journal = again;
                }
            }
        }
        drop(journal);
        let (journal, found) = open(directory.path());
        world.assert_recovered(&journal, &found);
        journal.close().unwrap();
        let checked = check(directory.path()).unwrap();
        prop_assert_eq!((checked.records, checked.entries), (world.records, world.log.len() as u64));
        prop_assert_eq!(checked.entries_kept, world.log.len() as u64);
    }
}

/// Rows of a table, by stream.
fn count(connection: &Connection, table: &str, column: i64) -> i64 {
    let sql = format!("SELECT count(*) FROM {table} WHERE stream = ?1");
    connection.query_row(&sql, [column], |row| row.get(0)).unwrap()
}

/// promise: D5
#[test]
fn a_fold_of_one_stream_leaves_others_alone() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    (0..10).for_each(|_| (0..3).for_each(|id| world.admit(&journal, id)));
    fold(&journal, cluster(1), &world.state);
    // The commits of other streams carry it.
    (0..3).for_each(|_| world.admit(&journal, 2));
    journal.close().unwrap();
    let file = Connection::open(directory.path().join("journal.db")).unwrap();
    let records = [0, 1, 2, 3].map(|column| count(&file, "record", column));
    assert_eq!(records, [2, 10, 0, 13]);
    // The default cluster has its first state, which is older than its records.
    assert_eq!([0, 1, 2, 3].map(|column| count(&file, "chunk", column)), [1, 1, 1, 0]);
    file.close().unwrap();
    let (journal, found) = open(directory.path());
    assert_eq!(found.replayed, 25);
    world.assert_recovered(&journal, &found);
}

/// promise: D5
#[test]
fn folds_of_several_streams_take_turns() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    // A state of many chunks, and one of a single chunk that is folded after it.
    let many: Vec<_> = (0..20_000).map(|number| host(1, number)).collect();
    world.append(&journal, cluster(1), &many, 0);
    world.admit(&journal, 2);
    fold(&journal, cluster(1), &world.state);
    fold(&journal, cluster(2), &world.state);
    (0..2).for_each(|_| world.admit(&journal, 0));
    let replayed = |world: &ExpectedJournal| {
        let (journal, found) = open(directory.path());
        world.assert_recovered(&journal, &found);
        (journal, found.replayed)
    };
    drop(journal);
    let (journal, count) = replayed(&world);
    assert_eq!(count, 20_004, "the small one did not wait for the large one");
    fold(&journal, cluster(1), &world.state);
    (0..20).for_each(|_| world.admit(&journal, 0));
    drop(journal);
    assert_eq!(replayed(&world).1, 24, "shared: 2, cluster 0: 22");
}

/// promise: D5
#[test]
fn each_stream_says_by_itself_when_it_is_long() {
    let directory = tempdir().unwrap();
    let often = Options { fold_after: 5, ..options() };
    let (journal, _) = Journal::open(directory.path(), &often).unwrap();
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    (0..5).for_each(|_| world.admit(&journal, 1));
    world.admit(&journal, 2);
    let wanted =
        || [Stream::Shared, cluster(0), cluster(1), cluster(2)].map(|stream| journal.wants_fold(stream));
    assert_eq!(wanted(), [false, false, true, false]);
    fold(&journal, cluster(1), &world.state);
    assert_eq!(wanted(), [false; 4]);
    world.admit(&journal, 2);
    assert_eq!(wanted(), [false; 4]);
    drop(journal);
    let (journal, found) = Journal::open(directory.path(), &often).unwrap();
    world.assert_recovered(&journal, &found);
    assert_eq!(found.replayed, 4, "two of the shared stream, two of cluster 2");
}

/// The file that has a table.
fn file_of(table: &str) -> &'static str {
    if table == "trail" { "audit.db" } else { "journal.db" }
}

/// Removes a cluster from the shared state, and forgets its stream.
fn remove(journal: &Journal, world: &mut ExpectedJournal, id: u32) {
    let removed = SharedChange::ClusterRemoved(ClusterId(id));
    world.append(journal, Stream::Shared, &[Record::shared(Now::at_millis(2_000), removed)], 1);
    world.ends.remove(&cluster(id));
}

/// promise: D5, C5
#[test]
fn a_stream_that_is_forgotten_leaves_its_audit_entries_until_they_are_old() {
    let directory = tempdir().unwrap();
    let keep = Options { audit_retention: Duration::from_hours(1), ..options() };
    let (journal, _) = Journal::open(directory.path(), &keep).unwrap();
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    (0..5).for_each(|_| (1..3).for_each(|id| world.admit(&journal, id)));
    fold(&journal, cluster(1), &world.state);
    world.admit(&journal, 2);
    let former = world.state.clone();
    remove(&journal, &mut world, 1);
    // A fold that is under way ends.
    fold(&journal, cluster(1), &former);
    journal.forget(cluster(1));
    (0..8).for_each(|_| world.admit(&journal, 2));
    journal.close().unwrap();
    let count_of = |table| {
        let file = Connection::open(directory.path().join(file_of(table))).unwrap();
        count(&file, table, 2)
    };
    assert_eq!(["record", "chunk", "trail", "stream"].map(count_of), [0, 0, 5, 1]);
    let (journal, found) = Journal::open(directory.path(), &keep).unwrap();
    world.assert_recovered(&journal, &found);
    assert_eq!(check_closed(&journal, directory.path()), world.log.len() as u64);
    // Two hours later nothing is left of it.
    let (journal, _) = Journal::open(directory.path(), &keep).unwrap();
    for _ in 0..10 {
        let clock = Record::clock(Now::at_millis(3 * 3_600_000));
        journal.append(Stream::Shared, &[clock], &[]).unwrap();
    }
    journal.close().unwrap();
    assert_eq!(["record", "chunk", "trail", "stream"].map(count_of), [0; 4]);
    assert_eq!(check(directory.path()).unwrap().entries_kept, 0);
    let (_journal, found) = open(directory.path());
    assert_eq!(found.audit_ends, world.ends, "the others go on");
}

fn check_closed(journal: &Journal, directory: &std::path::Path) -> u64 {
    journal.close().unwrap();
    check(directory).unwrap().entries_kept
}

/// promise: D5
#[test]
fn a_stream_without_a_cluster_is_forgotten_when_the_journal_is_opened() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    (0..5).for_each(|_| (1..3).for_each(|id| world.admit(&journal, id)));
    remove(&journal, &mut world, 1);
    // A stop between the two steps.
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
    (0..8).for_each(|_| world.admit(&journal, 2));
    journal.close().unwrap();
    let count_of = |table| count(&Connection::open(directory.path().join(file_of(table))).unwrap(), table, 2);
    assert_eq!(["record", "trail"].map(count_of), [0, 5]);
}

/// promise: C5
#[test]
fn what_is_too_old_is_swept_over_all_streams_and_the_rest_of_each_is_verified_from_there() {
    let directory = tempdir().unwrap();
    let keep = Options { audit_retention: Duration::from_mins(20), ..options() };
    let (journal, _) = Journal::open(directory.path(), &keep).unwrap();
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    for _ in 0..50 {
        // Entries are swept once they are filed, which a reader waits for.
        read(&journal, AuditQuery::default());
        (1..3).for_each(|id| world.admit(&journal, id));
    }
    let page = read(&journal, AuditQuery::default());
    assert_eq!((page.head, page.swept), (102, 62));
    assert_eq!(page.entries.len(), 40);
    for id in [1, 2] {
        let of_stream = read(&journal, AuditQuery { stream: Some(cluster(id)), ..AuditQuery::default() });
        assert_eq!((of_stream.swept, of_stream.head, of_stream.entries.len()), (30, 50, 20));
    }
    journal.close().unwrap();
    let checked = check(directory.path()).unwrap();
    assert_eq!((checked.entries, checked.entries_kept), (102, 40));
    let (journal, found) = Journal::open(directory.path(), &keep).unwrap();
    assert_eq!(found.audit_ends, world.ends);
    // The next entry of a stream whose entries are all swept follows the last one.
    assert_eq!(found.audit_ends[&Stream::Shared].number, 2);
    let at = Timestamp::from_millis(50 * 60_000);
    let mut chain = world.ends[&Stream::Shared];
    let new =
        forewarn_control::NewAuditEntry { at: forewarn_types::Moment(at), ..super::told(Stream::Shared, 3) };
    journal.append(Stream::Shared, &[], &[chain.seal(new).into()]).unwrap();
    assert_eq!(check_closed(&journal, directory.path()), 41);
}

/// promise: D5
#[test]
fn leftovers_beyond_a_heading_are_removed() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 1);
    world.admit(&journal, 1);
    journal.close().unwrap();
    let file = Connection::open(directory.path().join("journal.db")).unwrap();
    let rows = "INSERT INTO record VALUES (2, 2, x'00'), (2, 9, x'00'), (9, 1, x'00'); \
                INSERT INTO chunk VALUES (9, 1, 0, x'00')";
    file.execute_batch(rows).unwrap();
    file.close().unwrap();
    check(directory.path()).unwrap();
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
    world.admit(&journal, 1);
    journal.close().unwrap();
    let file = Connection::open(directory.path().join("journal.db")).unwrap();
    let counts =
        [("record", 2), ("record", 9), ("chunk", 9)].map(|(table, column)| count(&file, table, column));
    assert_eq!(counts, [2, 0, 0]);
    file.close().unwrap();
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
    assert_eq!(read_log(&journal).len(), 3);
}
