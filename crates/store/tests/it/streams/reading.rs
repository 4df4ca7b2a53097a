//! Readers: by position over all streams, by number within one, and nothing from the first hidden entry on.

use std::cell::Cell;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, NewAuditEntry, Stream, Subject};
use forewarn_lifecycle::Timestamp;
use forewarn_store::{Appended, AuditBatch, AuditQuery, Direction, Journal, Reach, check};
use proptest::prelude::*;
use tempfile::tempdir;

use super::{ExpectedJournal, cluster, numbers, open, read, read_log, stream_of, told};

/// Both kinds of journals, the second in a directory.
fn journals() -> (tempfile::TempDir, [Journal; 2]) {
    let directory = tempdir().unwrap();
    let embedded = open(directory.path()).0;
    (directory, [Journal::memory(), embedded])
}

fn of(stream: Stream) -> AuditQuery {
    AuditQuery { stream: Some(stream), ..AuditQuery::default() }
}

/// promise: C5
#[test]
fn positions_are_dense_and_in_the_order_of_commits() {
    let (_directory, journals) = journals();
    for journal in journals {
        let mut world = ExpectedJournal::with_clusters(&journal, 2);
        for (id, entries) in [(1, 2), (2, 1), (1, 0), (1, 3), (0, 1), (2, 2)] {
            world.append(&journal, cluster(id), &[], entries);
        }
        assert_eq!(read_log(&journal), world.log);
        let page = read(&journal, AuditQuery { after: Some(3), before: Some(7), ..AuditQuery::default() });
        assert_eq!(page.entries.iter().map(|one| one.position).collect::<Vec<_>>(), [4, 5, 6]);
        assert_eq!((page.head, page.swept, page.next), (11, 0, None));
        let newest = AuditQuery { direction: Direction::NewestFirst, limit: 3, ..AuditQuery::default() };
        let page = read(&journal, newest);
        assert_eq!(page.entries.iter().map(|one| one.position).collect::<Vec<_>>(), [11, 10, 9]);
        assert_eq!(page.next, Some(9));
    }
}

/// promise: C5
#[test]
fn a_stream_is_read_by_its_own_numbers() {
    let (_directory, journals) = journals();
    for journal in journals {
        let mut world = ExpectedJournal::with_clusters(&journal, 2);
        (0..10).for_each(|_| [1, 2, 1].iter().for_each(|id| world.append(&journal, cluster(*id), &[], 1)));
        let page = read(&journal, AuditQuery { limit: 15, ..of(cluster(1)) });
        assert_eq!((numbers(&page), page.head, page.swept), ((1..=15).collect(), 20, 0));
        assert!(page.entries.iter().all(|one| stream_of(&one.entry) == cluster(1)));
        assert_eq!(page.entries[2].position, 6, "two of the shared stream, three before");
        let page = read(&journal, AuditQuery { after: page.next, ..of(cluster(1)) });
        assert_eq!((numbers(&page), page.next), ((16..=20).collect(), None));
        assert_eq!(numbers(&read(&journal, of(Stream::Shared))), [1, 2]);
        assert_eq!(numbers(&read(&journal, of(cluster(0)))), [0u64; 0]);
        assert_eq!(numbers(&read(&journal, of(cluster(77)))), [0u64; 0]);
        // Other streams have entries of that kind, too.
        let groups = vec![vec![Subject::Kind("kind 2".to_owned())]];
        assert_eq!(numbers(&read(&journal, AuditQuery { groups, ..of(cluster(2)) })), [2, 7]);
    }
}

/// The answer to a question about a stream, found as simply as possible.
fn expected(all: &[(Stream, Arc<AuditEntry>)], query: &AuditQuery) -> Vec<u64> {
    let wanted = all.iter().filter(|(stream, entry)| {
        query.stream == Some(*stream)
            && query.after.is_none_or(|after| entry.number > after)
            && query.before.is_none_or(|before| entry.number < before)
            && query.since.is_none_or(|since| entry.at.0 >= since)
            && query.until.is_none_or(|until| entry.at.0 < until)
            && query.groups.iter().all(|group| group.iter().any(|subject| entry.concerns(subject)))
    });
    let mut numbers: Vec<_> = wanted.map(|(_, entry)| entry.number).collect();
    if query.direction == Direction::NewestFirst {
        numbers.reverse();
    }
    numbers
}

fn read_all(journal: &Journal, query: &AuditQuery) -> Vec<u64> {
    let (mut found, mut query) = (Vec::new(), query.clone());
    loop {
        let page = read(journal, query.clone());
        found.extend(numbers(&page));
        match (page.next, query.direction) {
            (None, _) => return found,
            (next, Direction::OldestFirst) => query.after = next,
            (next, Direction::NewestFirst) => query.before = next,
        }
    }
}

fn queries() -> impl Strategy<Value = AuditQuery> {
    let subject = prop_oneof![
        prop_oneof![Just("token alice"), Just("forewarn")].prop_map(|by| Subject::By(by.to_owned())),
        (0..6).prop_map(|kind| Subject::Kind(format!("kind {kind}"))),
        prop_oneof![Just("default"), Just("#1")].prop_map(|key| Subject::Cluster(key.to_owned())),
    ];
    let groups = prop::collection::vec(prop::collection::vec(subject, 0..3), 0..3);
    let stream = prop_oneof![Just(Stream::Shared), (0..4u32).prop_map(cluster)];
    let moment = || prop::option::of((0..30i64).prop_map(|minute| Timestamp::from_millis(minute * 60_000)));
    let number = || prop::option::of(prop_oneof![0..30u64, Just(u64::MAX)]);
    let direction = prop_oneof![Just(Direction::OldestFirst), Just(Direction::NewestFirst)];
    (groups, stream, moment(), moment(), number(), number(), direction, 1..9usize).prop_map(
        |(groups, stream, since, until, after, before, direction, limit)| AuditQuery {
            groups,
            since,
            until,
            stream: Some(stream),
            after,
            before,
            direction,
            limit,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
    ))]

    /// promise: C5
    #[test]
    fn what_is_asked_of_a_stream_is_found_and_nothing_else(
        order in prop::collection::vec((0..4u32, 1..4usize), 1..40),
        queries in prop::collection::vec(queries(), 1..20),
    ) {
        let (_directory, journals) = journals();
        for journal in journals {
            let (mut world, mut all) = (ExpectedJournal::new(), Vec::new());
            for (place, count) in &order {
                let stream = if *place == 3 { Stream::Shared } else { cluster(*place) };
                let entries = world.seal(stream, *count);
                all.extend(entries.iter().map(|entry| (stream, Arc::clone(entry))));
                journal.append(stream, &[], &entries).unwrap();
            }
            for query in &queries {
                prop_assert_eq!(read_all(&journal, query), expected(&all, query), "{:?}", query);
            }
        }
    }
}

fn positions(page: &AuditBatch) -> Vec<u64> {
    page.entries.iter().map(|one| one.position).collect()
}

/// promise: N3, C5
#[test]
fn hidden_entries_bound_readers_of_all_streams_and_of_their_own() {
    let (_directory, journals) = journals();
    for journal in journals {
        let mut world = ExpectedJournal::with_clusters(&journal, 2);
        world.append(&journal, cluster(1), &[], 2);
        let newest = Cell::new(5);
        let shown = |journal: &Journal| {
            let page = read(journal, AuditQuery::default());
            assert_eq!((page.head, page.end), (page.entries.len() as u64, newest.get()));
            let heads = [Stream::Shared, cluster(1), cluster(2)].map(|stream| {
                let page = read(journal, of(stream));
                assert_eq!(page.head, page.entries.len() as u64);
                page.head
            });
            (positions(&page).len(), heads)
        };
        journal.hide_entries_after(cluster(1), 2);
        world.append(&journal, cluster(2), &[], 1);
        assert_eq!(shown(&journal), (5, [2, 2, 1]), "nothing is hidden yet");
        world.append(&journal, cluster(1), &[], 2);
        world.append(&journal, cluster(2), &[], 3);
        world.append(&journal, Stream::Shared, &[], 1);
        newest.set(11);
        assert_eq!(shown(&journal), (5, [3, 2, 4]), "a reader of all streams waits for them");
        journal.hide_entries_after(cluster(2), 2);
        journal.show_all_entries(cluster(1));
        assert_eq!(shown(&journal), (8, [3, 4, 2]), "the next hidden entry bounds them now");
        journal.show_all_entries(cluster(2));
        assert_eq!(shown(&journal), (11, [3, 4, 4]));
        assert_eq!(read_log(&journal), world.log);
    }
}

/// promise: N3, C5
#[test]
fn a_reader_of_one_stream_does_not_wait_for_hidden_entries_of_another() {
    let (_directory, journals) = journals();
    for journal in journals {
        let mut world = ExpectedJournal::with_clusters(&journal, 2);
        journal.hide_entries_after(cluster(2), 0);
        world.append(&journal, cluster(2), &[], 1);
        world.append(&journal, cluster(1), &[], 2);
        world.append(&journal, cluster(2), &[], 1);
        world.append(&journal, cluster(1), &[], 1);
        let newest = AuditQuery { direction: Direction::NewestFirst, ..of(cluster(1)) };
        let found = AuditQuery { groups: vec![vec![Subject::Kind("kind 3".to_owned())]], ..of(cluster(1)) };
        assert_eq!(numbers(&read(&journal, of(cluster(1)))), [1, 2, 3]);
        assert_eq!(numbers(&read(&journal, newest.clone())), [3, 2, 1]);
        assert_eq!(numbers(&read(&journal, found.clone())), [3]);
        assert!(numbers(&read(&journal, of(cluster(2)))).is_empty());
        journal.hide_entries_after(cluster(1), 1);
        assert_eq!(numbers(&read(&journal, of(cluster(1)))), [1], "its own hidden entries are invisible");
        assert_eq!(numbers(&read(&journal, newest)), [1]);
        assert!(numbers(&read(&journal, found)).is_empty());
    }
}

/// promise: D4
#[test]
fn a_reach_ends_before_the_first_hidden_entry() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let mut world = ExpectedJournal::with_clusters(&journal, 2);
    let end = |journal: &Journal| {
        let Reach { records, audit_chain, .. } = journal.reach().unwrap();
        (records, audit_chain.number)
    };
    assert_eq!(end(&journal), (2, 2));
    journal.hide_entries_after(cluster(1), 0);
    world.admit(&journal, 2);
    assert_eq!(end(&journal), (3, 3), "nothing is hidden yet");
    world.admit(&journal, 1);
    world.admit(&journal, 2);
    assert_eq!(end(&journal), (5, 3), "all records count, and entries before the hidden one");
    journal.show_all_entries(cluster(1));
    world.admit(&journal, 2);
    assert_eq!(end(&journal), (6, 6));
    drop(journal);
    let (journal, found) = open(directory.path());
    world.assert_recovered(&journal, &found);
}

/// promise: N3, C5
#[test]
fn entries_of_one_stream_are_rewritten_between_those_of_others() {
    let (directory, journals) = journals();
    for journal in journals {
        let mut world = ExpectedJournal::with_clusters(&journal, 2);
        world.append(&journal, cluster(1), &[], 1);
        let before = world.ends[&cluster(1)];
        journal.hide_entries_after(cluster(1), 1);
        world.append(&journal, cluster(1), &[], 2);
        world.append(&journal, cluster(2), &[], 1);
        world.append(&journal, cluster(1), &[], 1);
        world.append(&journal, cluster(2), &[], 1);
        let mut chain: Chain = before;
        let again = |number| {
            let text = format!("later {number}");
            Arc::new(chain.seal(NewAuditEntry { text, ..told(cluster(1), number) }))
        };
        let entries: Vec<_> = (2..=4).map(again).collect();
        let rewritten = journal.rewrite(cluster(1), &[], &entries).unwrap();
        assert_eq!(rewritten, Appended { first_position: 4 });
        journal.show_all_entries(cluster(1));
        assert_eq!(read_log(&journal), world.log, "each is in its place");
        let page = read(&journal, of(cluster(1)));
        let texts: Vec<_> = page.entries.iter().skip(1).map(|one| one.entry.text.as_str()).collect();
        assert_eq!(texts, ["later 2", "later 3", "later 4"]);
        // What comes next is chained to what was rewritten.
        world.ends.insert(cluster(1), chain);
        world.append(&journal, cluster(1), &[], 1);
        journal.close().unwrap();
    }
    assert_eq!(check(directory.path()).unwrap().entries_kept, 9);
}
