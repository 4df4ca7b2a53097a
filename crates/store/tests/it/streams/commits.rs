//! Commits of many streams: together, and a large one does not hold up small ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};

use forewarn_control::{Chain, ClusterEntry, ClusterId, MachineDetails, NewAuditEntry, Record, Stream};
use forewarn_lifecycle::{MachineId, Now};
use forewarn_store::{AppendError, Appended, Journal};
use tempfile::tempdir;

use super::{ExpectedJournal, cluster, host, open, told};
use crate::support::hold;

const STREAMS: u32 = 1_000;

/// Commits in the log of a journal.
fn commits(directory: &Path) -> usize {
    let log = fs::read(directory.join("journal.db-wal")).unwrap();
    // A commit ends with a frame that has the size of the database.
    log[32..].chunks_exact(24 + 4_096).filter(|frame| frame[4..8] != [0; 4]).count()
}

/// promise: D1
#[test]
fn a_thousand_streams_share_a_few_commits_and_no_sender_waits() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, STREAMS);
    let before = commits(directory.path());
    let release = hold(&journal);
    let (tell, told) = mpsc::channel();
    // The committer does nothing meanwhile: a sender that waited for it would wait for ever.
    for id in 1..=STREAMS {
        let records = [host(id, id)];
        let entries = world.seal(cluster(id), 1);
        world.apply(&records);
        let tell = tell.clone();
        journal.append_then(cluster(id), &records, &entries, move |result| tell.send((id, result)).unwrap());
    }
    drop((tell, release));
    let answers: Vec<_> = told.iter().collect();
    let expected = (1..=STREAMS).map(|id| (id, Ok(Appended { first_position: u64::from(STREAMS + id) })));
    assert!(answers.into_iter().eq(expected), "each has its position, in the order of the commits");
    let commits = commits(directory.path()) - before;
    assert!((1..=3).contains(&commits), "{commits}");
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

fn described(id: u32, bytes: usize) -> Record {
    let tags = [("key".to_owned(), "v".repeat(bytes))].into();
    let details = MachineDetails { tags, ..MachineDetails::default() };
    let change = ClusterEntry::Described { machine: MachineId(0), details };
    Record::in_cluster(Now::at_millis(1_000), ClusterId(id), change)
}

/// promise: D1, C7
#[test]
fn small_appends_are_committed_before_a_large_one_that_came_first() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 4);
    let many: Vec<_> = (100..400).map(|number| host(2, number)).collect();
    let appends = [
        ("large", 1, vec![described(1, 100_000)]),
        ("many", 2, many),
        ("small", 3, vec![host(3, 1)]),
        ("after large", 1, vec![host(1, 1)]),
        ("also small", 4, vec![host(4, 1)]),
    ];
    let before = commits(directory.path());
    let release = hold(&journal);
    let (tell, told) = mpsc::channel();
    for (name, id, records) in appends {
        world.apply(&records);
        let tell = tell.clone();
        journal.append_then(cluster(id), &records, &[], move |result| tell.send((name, result)).unwrap());
    }
    drop((tell, release));
    let order: Vec<_> = told.iter().map(|(name, result)| result.map(|_| name)).collect();
    let expected = ["small", "also small", "large", "after large", "many"];
    assert_eq!(order, expected.map(Ok), "those of one stream keep their order");
    assert_eq!(commits(directory.path()) - before, 6, "a large one is written in slices");
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

/// A copy of a directory while its committer does nothing, which is all that a kill at that moment leaves.
fn copy_directory(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// promise: D1, D2, C7
#[test]
fn a_large_append_is_whole_or_not_there_and_small_ones_are_committed_between_its_slices() {
    const RECORDS: u32 = 10_000;
    let (directory, killed) = (tempdir().unwrap(), tempdir().unwrap());
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    let release = hold(&journal);
    let large: Vec<_> = (100..100 + RECORDS).map(|number| host(1, number)).collect();
    let entries = world.clone().seal(cluster(1), 1);
    let (tell, told) = mpsc::channel();
    let tell_large = tell.clone();
    journal.append_then(cluster(1), &large, &entries, move |result| {
        tell_large.send(("large", result.is_ok())).unwrap();
    });
    let (from, to) = (directory.path().to_owned(), killed.path().to_owned());
    let small = [host(2, 1)];
    journal.append_then(cluster(2), &small, &[], move |result| {
        copy_directory(&from, &to);
        tell.send(("small", result.is_ok())).unwrap();
    });
    drop(release);
    assert!(told.iter().eq([("small", true), ("large", true)]));
    drop(journal);
    world.apply(&small);
    let mut after_kill = world.clone();
    world.apply(&large);
    world.seal(cluster(1), 1);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);

    let lost = tempdir().unwrap();
    copy_directory(killed.path(), lost.path());
    let (journal, found) = open(killed.path());
    after_kill.assert_recovered(&journal, &found);
    // Its first records are gone: others take their numbers.
    after_kill.append(&journal, cluster(1), &[host(1, 7)], 1);
    drop(journal);
    let (journal, found) = open(killed.path());
    after_kill.assert_recovered(&journal, &found);
    drop(journal);
    assert_eq!(forewarn_store::check(killed.path()).unwrap().entries, 3);

    fs::write(lost.path().join("journal.reach"), b"damaged").unwrap();
    forewarn_store::accept_loss(lost.path(), &super::options()).unwrap();
    let (journal, found) = open(lost.path());
    assert_eq!(found.state.cluster(ClusterId(1)).unwrap().rules().hosts().count(), 0);
    let (first, second) = (journal.length(), found.audit_ends[&cluster(1)]);
    assert_eq!((first, second), (after_kill.records - 1, Chain::default()));
}

/// promise: D1
#[test]
fn everything_that_was_appended_before_a_close_is_durable_and_nothing_after_it() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    let release = hold(&journal);
    let (tell, told) = mpsc::channel();
    for (id, records) in [(1, vec![described(1, 100_000)]), (2, vec![host(2, 1)]), (1, vec![host(1, 1)])] {
        world.apply(&records);
        let tell = tell.clone();
        journal.append_then(cluster(id), &records, &[], move |result| tell.send(result.is_ok()).unwrap());
    }
    drop((tell, release));
    journal.close().unwrap();
    assert_eq!(told.iter().collect::<Vec<_>>(), [true; 3]);
    assert_eq!(journal.append(cluster(2), &[host(2, 2)], &[]), Err(AppendError::Closed));
    assert_eq!(journal.close(), Err(AppendError::Closed));
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

#[test]
fn an_append_of_another_stream_is_refused_and_the_journal_goes_on() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    let wrong = [host(1, 1), host(2, 1)];
    assert_eq!(journal.append(cluster(1), &wrong, &[]), Err(AppendError::OtherStream));
    assert_eq!(journal.append(Stream::Shared, &wrong[..1], &[]), Err(AppendError::OtherStream));
    let entry = NewAuditEntry { stream: Some(cluster(2)), ..told(cluster(1), 1) };
    let entry = Arc::new(Chain::default().seal(entry));
    for journal in [&journal, &Journal::memory()] {
        let refused = journal.append(cluster(1), &[], &[Arc::clone(&entry)]);
        assert_eq!(refused, Err(AppendError::OtherStream));
        assert_eq!(journal.rewrite(cluster(1), &[], &[Arc::clone(&entry)]), Err(AppendError::OtherStream));
    }
    world.admit(&journal, 1);
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

/// promise: C7
#[test]
fn a_wrong_append_of_one_stream_fails_alone() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    let mut elsewhere = world.clone();
    elsewhere.seal(cluster(1), 1);
    let gap = elsewhere.seal(cluster(1), 1);
    let large: Vec<_> = (100..1_000).map(|number| host(1, number)).collect();
    for (number, wrong) in (1..).zip([&[host(1, 1)][..], &large]) {
        let release = hold(&journal);
        let (tell, told) = mpsc::channel();
        let tell_wrong = tell.clone();
        journal.append_then(cluster(1), wrong, &gap, move |result| tell_wrong.send((1, result)).unwrap());
        let (records, entries) = ([host(2, number)], world.seal(cluster(2), 1));
        world.apply(&records);
        journal.append_then(cluster(2), &records, &entries, move |result| tell.send((2, result)).unwrap());
        drop(release);
        let mut results: Vec<_> = told.iter().collect();
        results.sort_by_key(|(id, _)| *id);
        assert!(
            matches!(&results[..], [(1, Err(error)), (2, Ok(_))] if error.is_of_the_append()),
            "{results:?}"
        );
    }
    // The numbers of its records are free again.
    world.append(&journal, cluster(1), &large[..3], 1);
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

/// promise: D1, C5
#[test]
fn threads_that_write_to_their_own_streams_need_no_agreement() {
    const APPENDS: u32 = 30;
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 8);
    let write = |id: u32, mut world: ExpectedJournal| {
        let mut log = Vec::new();
        for number in 0..APPENDS {
            let (records, entries) = ([host(id, number)], world.seal(cluster(id), 2));
            let Appended { first_position } = journal.append(cluster(id), &records, &entries).unwrap();
            log.extend((first_position..).zip(entries.iter().map(|entry| (cluster(id), entry.number))));
        }
        (world.ends[&cluster(id)], log)
    };
    let mut positions: BTreeMap<_, _> = (1..).zip(world.log.clone()).collect();
    std::thread::scope(|scope| {
        let begin = |id| {
            (
                id,
                scope.spawn({
                    let (write, world) = (&write, world.clone());
                    move || write(id, world)
                }),
            )
        };
        let threads: Vec<_> = (1..=8).map(begin).collect();
        for (id, thread) in threads {
            let (end, log) = thread.join().unwrap();
            world.ends.insert(cluster(id), end);
            positions.extend(log);
        }
    });
    (1..=8).for_each(|id| (0..APPENDS).for_each(|number| world.apply(&[host(id, number)])));
    assert!(positions.keys().copied().eq(1..=8 + 8 * 2 * u64::from(APPENDS)), "each position once");
    world.log = positions.into_values().collect();
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}
