//! The trail of a journal: what is asked for is found, nothing else, in pages; what was changed is noticed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod rewriting;
mod tampering;
mod verification;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use forewarn_control::shared::{Filter, Handshake, Progress, Webhook, WebhookChange, WebhookFormat};
use forewarn_control::{AuditEntry, BrokenLink, Chain, NewAuditEntry, Subject};
use forewarn_control::{ClusterEntry, ClusterId, Record, Stream};
use forewarn_lifecycle::{Name, Now, Seed, Timestamp};
use forewarn_store::{
    AppendError, AuditBatch, AuditLogReader, AuditQuery, Direction, Journal, Options, ReadError,
    SUBJECTS_PER_QUERY_MAX, check, export, import,
};
use forewarn_types::Moment;
use forewarn_url::Url;
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

const MINUTE: i64 = 60_000;

fn options() -> Options {
    Options::new(Seed([7; 16]), Now::at_millis(1_000))
}

fn told(number: u64, at_millis: i64) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(at_millis)),
        cluster: if number.is_multiple_of(5) { "south" } else { "default" }.to_owned(),
        by: if number.is_multiple_of(7) { "token alice" } else { "forewarn" }.to_owned(),
        kind: if number.is_multiple_of(7) { "command" } else { "started" }.to_owned(),
        text: format!("entry {number}"),
        tenants: vec![format!("t{}", number % 3)],
        machines: vec![format!("t{}/m{}", number % 3, number % 11)],
        hosts: vec![format!("h{}", number % 4), format!("h{}", number % 2)],
        work: Some(number / 2),
        ..NewAuditEntry::default()
    }
}

/// Entries at these moments.
fn sealed(moments: impl IntoIterator<Item = i64>) -> Vec<Arc<AuditEntry>> {
    let mut chain = Chain::default();
    (1..).zip(moments).map(|(number, at)| Arc::new(chain.seal(told(number, at)))).collect()
}

fn open(directory: &Path) -> Journal {
    Journal::open(directory, &options()).unwrap().0
}

/// A closed journal with that many entries, a minute after each other, and how they are.
fn with_entries(count: i64) -> (TempDir, Vec<Arc<AuditEntry>>) {
    let directory = tempdir().unwrap();
    let entries = sealed((0..count).map(|number| number * MINUTE));
    let journal = open(directory.path());
    journal.append(Stream::Shared, &[Record::clock(Now::at_millis(5))], &entries).unwrap();
    journal.close().unwrap();
    (directory, entries)
}

fn tenant(name: &str) -> Subject {
    Subject::Tenant { cluster: "default".to_owned(), name: name.to_owned() }
}

/// What a question means, said as simply as possible.
fn expected(all: &[Arc<AuditEntry>], query: &AuditQuery) -> Vec<u64> {
    let wanted = all.iter().filter(|entry| {
        query.after.is_none_or(|after| entry.number > after)
            && query.before.is_none_or(|before| entry.number < before)
            && query.since.is_none_or(|since| entry.at.0 >= since)
            && query.until.is_none_or(|until| entry.at.0 < until)
            && query.groups.iter().all(|group| group.iter().any(|subject| entry.concerns(subject)))
    });
    let mut numbers: Vec<_> = wanted.map(|entry| entry.number).collect();
    if query.direction == Direction::NewestFirst {
        numbers.reverse();
    }
    numbers
}

fn numbers(page: &AuditBatch) -> Vec<u64> {
    page.entries.iter().map(|one| one.entry.number).collect()
}

fn entries_of(page: &AuditBatch) -> Vec<Arc<AuditEntry>> {
    page.entries.iter().map(|one| Arc::clone(&one.entry)).collect()
}

/// All pages, one after the other.
fn read_all(reader: &AuditLogReader, query: &AuditQuery) -> Vec<u64> {
    let (mut found, mut query) = (Vec::new(), query.clone());
    loop {
        let page = reader.read(query.clone()).unwrap();
        assert!(page.entries.len() <= query.limit);
        found.extend(numbers(&page));
        match (page.next, query.direction) {
            (None, _) => return found,
            (Some(next), Direction::OldestFirst) => {
                assert!(query.after.is_none_or(|after| next > after), "it goes on");
                query.after = Some(next);
            }
            (Some(next), Direction::NewestFirst) => {
                assert!(query.before.is_none_or(|before| next < before), "it goes on");
                query.before = Some(next);
            }
        }
    }
}

fn subjects() -> impl Strategy<Value = Subject> {
    let cluster = || prop_oneof![Just("default".to_owned()), Just("south".to_owned())];
    prop_oneof![
        (cluster(), 0..4).prop_map(|(cluster, n)| Subject::Tenant { cluster, name: format!("t{n}") }),
        (cluster(), 0..3, 0..12)
            .prop_map(|(cluster, t, m)| Subject::Machine { cluster, name: format!("t{t}/m{m}") }),
        (cluster(), 0..5).prop_map(|(cluster, n)| Subject::Host { cluster, name: format!("h{n}") }),
        (cluster(), 0..60u64).prop_map(|(cluster, number)| Subject::Work { cluster, number }),
        cluster().prop_map(Subject::Cluster),
        prop_oneof![Just("command"), Just("started")].prop_map(|kind| Subject::Kind(kind.to_owned())),
        prop_oneof![Just("token alice"), Just("nobody")].prop_map(|by| Subject::By(by.to_owned())),
    ]
}

fn queries() -> impl Strategy<Value = AuditQuery> {
    let groups = prop::collection::vec(prop::collection::vec(subjects(), 0..4), 0..4);
    let moment = || prop::option::of((0..9_000_000i64).prop_map(Timestamp::from_millis));
    let number = || prop::option::of(prop_oneof![0..130u64, Just(u64::MAX)]);
    let direction = prop_oneof![Just(Direction::OldestFirst), Just(Direction::NewestFirst)];
    (groups, moment(), moment(), number(), number(), direction, 1..30usize).prop_map(
        |(groups, since, until, after, before, direction, limit)| AuditQuery {
            groups,
            since,
            until,
            stream: None,
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

    // The clock may be set back.
    /// promise: C5
    #[test]
    fn what_is_asked_for_is_found_and_nothing_else(
        moments in prop::collection::vec(0..8_000_000i64, 1..120),
        queries in prop::collection::vec(queries(), 1..20),
    ) {
        let entries = sealed(moments);
        let directory = tempdir().unwrap();
        let kept = open(directory.path());
        let memory = Journal::memory();
        for batch in entries.chunks(17) {
            kept.append(Stream::Shared, &[], batch).unwrap();
            memory.append(Stream::Shared, &[], batch).unwrap();
        }
        for query in queries {
            let expected = expected(&entries, &query);
            prop_assert_eq!(&read_all(&kept.audit_log_reader(), &query), &expected, "{:?}", query);
            prop_assert_eq!(&read_all(&memory.audit_log_reader(), &query), &expected, "{:?}", query);
        }
        kept.close().unwrap();
        prop_assert_eq!(check(directory.path()).unwrap().entries_kept, entries.len() as u64);
    }
}

/// promise: C5
#[test]
fn a_page_says_whether_there_is_another_and_where_the_trail_ends() {
    let (directory, entries) = with_entries(25);
    let journal = open(directory.path());
    let reader = journal.audit_log_reader();
    let first = reader.read(AuditQuery { limit: 20, ..AuditQuery::default() }).unwrap();
    assert_eq!(entries_of(&first), entries[..20]);
    assert_eq!((first.next, first.head, first.swept), (Some(20), 25, 0));
    let rest = reader.read(AuditQuery { after: first.next, limit: 5, ..AuditQuery::default() }).unwrap();
    assert_eq!((rest.entries.len(), rest.next), (5, None));
    let newest = AuditQuery { direction: Direction::NewestFirst, limit: 2, ..AuditQuery::default() };
    let page = reader.read(newest).unwrap();
    assert_eq!((numbers(&page), page.next), (vec![25, 24], Some(24)));
    let none = reader.read(AuditQuery { after: Some(25), ..AuditQuery::default() }).unwrap();
    assert_eq!((none.entries.len(), none.next, none.head), (0, None, 25));
}

/// promise: C5
#[test]
fn a_question_that_takes_long_is_answered_in_parts() {
    let directory = tempdir().unwrap();
    let mut chain = Chain::default();
    let journal = open(directory.path());
    // Two groups that never meet: one looks at every entry to find nothing.
    let entries: Vec<_> = (0..6_000u64)
        .map(|number| {
            let tenants = vec![if number.is_multiple_of(2) { "even" } else { "odd" }.to_owned()];
            let by = if number.is_multiple_of(2) { "odd one" } else { "even one" }.to_owned();
            Arc::new(chain.seal(NewAuditEntry { by, tenants, cluster: "default".to_owned(), ..told(1, 0) }))
        })
        .collect();
    journal.append(Stream::Shared, &[], &entries).unwrap();
    let groups = vec![vec![tenant("even")], vec![Subject::By("even one".to_owned())]];
    let query = AuditQuery { groups, limit: 10, ..AuditQuery::default() };
    let page = journal.audit_log_reader().read(query.clone()).unwrap();
    assert!(page.entries.is_empty());
    assert!(page.next.is_some_and(|next| next > 100 && next < 6_000), "{:?}", page.next);
    assert_eq!(read_all(&journal.audit_log_reader(), &query), [0u64; 0]);
    let many = vec![(0..=SUBJECTS_PER_QUERY_MAX).map(|number| tenant(&number.to_string())).collect()];
    let refused = journal.audit_log_reader().read(AuditQuery { groups: many, ..AuditQuery::default() });
    assert_eq!(refused, Err(ReadError::TooMany(SUBJECTS_PER_QUERY_MAX + 1)));
}

/// promise: C5
#[test]
fn reading_does_not_keep_a_journal_open_and_is_told_when_it_is_closed() {
    let (directory, _) = with_entries(3);
    let journal = open(directory.path());
    let reader = journal.audit_log_reader();
    assert_eq!(reader.clone().read(AuditQuery::default()).unwrap().entries.len(), 3);
    journal.close().unwrap();
    assert_eq!(reader.read(AuditQuery::default()), Err(ReadError::Closed));
    assert_eq!(AuditLogReader::closed().read(AuditQuery::default()), Err(ReadError::Closed));
    let again = open(directory.path());
    assert_eq!(
        reader.read(AuditQuery::default()),
        Err(ReadError::Closed),
        "another journal has another reader"
    );
    let reader = again.audit_log_reader();
    drop(again);
    assert_eq!(reader.read(AuditQuery::default()), Err(ReadError::Closed));
    let memory = Journal::memory();
    let reader = memory.audit_log_reader();
    assert_eq!(reader.read(AuditQuery::default()).unwrap().head, 0);
    drop(memory);
    assert_eq!(reader.read(AuditQuery::default()), Err(ReadError::Closed));
}

/// promise: C5
#[test]
fn everybody_who_asks_is_answered_while_others_write_and_when_it_ends() {
    let (directory, _) = with_entries(500);
    let journal = open(directory.path());
    let mut chain = Chain::at(&sealed((0..500).map(|number| number * MINUTE))[499]).unwrap();
    let (tell, told_pages) = mpsc::channel();
    let (tell_written, written) = mpsc::channel();
    for number in 0..300 {
        let tell = tell.clone();
        let reader = journal.audit_log_reader();
        reader.read_then(AuditQuery::default(), move |page| tell.send(page).unwrap());
        let tell = tell_written.clone();
        let entry = Arc::new(chain.seal(told(number, 500 * MINUTE)));
        journal.append_then(Stream::Shared, &[], &[entry], move |result| tell.send(result).unwrap());
    }
    // On a slow computer, the journal could end before the first page is read.
    let mut pages = Vec::new();
    while !pages.iter().any(Result::is_ok) {
        pages.push(told_pages.recv().unwrap());
    }
    drop(journal);
    drop((tell, tell_written));
    pages.extend(told_pages.iter());
    assert_eq!(pages.len(), 300, "each is answered once");
    assert!(pages.iter().flatten().all(|page| page.head >= 500));
    let refused = pages.into_iter().filter_map(Result::err);
    assert!(refused.into_iter().all(|problem| matches!(problem, ReadError::Busy | ReadError::Closed)));
    assert_eq!(written.iter().filter(Result::is_ok).count(), 300);
    assert_eq!(check(directory.path()).unwrap().entries, 800);
}

/// promise: C5
#[test]
fn a_trail_goes_on_where_it_stopped() {
    let (directory, entries) = with_entries(3);
    let (journal, found) = Journal::open(directory.path(), &options()).unwrap();
    let mut chain = found.audit_ends[&Stream::Shared];
    assert_eq!(chain, Chain::at(&entries[2]).unwrap());
    journal.append(Stream::Shared, &[], &[Arc::new(chain.seal(told(4, 0)))]).unwrap();
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries, 4);
}

/// promise: C1, C5
#[test]
fn an_entry_that_does_not_follow_is_not_written_and_neither_are_its_records() {
    let record = Record::clock(Now::at_millis(5));
    let (directory, entries) = with_entries(3);
    let mut later = Chain::at(&entries[2]).unwrap();
    later.seal(told(4, 0));
    let gap = Arc::new(later.seal(told(5, 0)));
    let forged = Arc::new(AuditEntry { text: "something else".to_owned(), ..(*entries[0]).clone() });
    let missing = BrokenLink::Missing { expected: 4, found: 5 };
    let again = BrokenLink::Again { expected: 4, found: 1 };
    for (wrong, why) in [(&gap, missing), (&forged, again)] {
        let journal = open(directory.path());
        let refused = journal.append(Stream::Shared, std::slice::from_ref(&record), &[Arc::clone(wrong)]);
        assert_eq!(refused, Err(AppendError::Unchained(why)));
        assert_eq!(journal.audit_log_reader().read(AuditQuery::default()).unwrap().head, 3);
        journal.close().unwrap();
        assert_eq!(check(directory.path()).unwrap().records, 1);
    }
    let memory = Journal::memory();
    assert!(memory.append(Stream::Shared, &[record], &[gap]).is_err());
    assert_eq!(memory.length(), 0);
}

/// promise: C5
#[test]
fn what_is_too_old_is_swept_and_the_rest_is_verified_from_there() {
    let directory = tempdir().unwrap();
    let keep = Options { audit_retention: Duration::from_secs(100 * 60), ..options() };
    let entries = sealed((0..1_000).map(|number| number * MINUTE));
    let journal = Journal::open(directory.path(), &keep).unwrap().0;
    for batch in entries.chunks(10) {
        // Entries are swept once they are filed, which a reader waits for.
        journal.audit_log_reader().read(AuditQuery::default()).unwrap();
        journal.append(Stream::Shared, &[], batch).unwrap();
    }
    let page = journal.audit_log_reader().read(AuditQuery::default()).unwrap();
    assert_eq!((page.swept, page.head), (900, 1_000));
    assert_eq!(entries_of(&page), entries[900..]);
    let query = AuditQuery { groups: vec![vec![tenant("t1")]], ..AuditQuery::default() };
    assert_eq!(read_all(&journal.audit_log_reader(), &query), expected(&entries[900..], &query));
    let query = AuditQuery { since: Some(Timestamp::from_millis(950 * MINUTE)), ..AuditQuery::default() };
    assert_eq!(read_all(&journal.audit_log_reader(), &query), expected(&entries, &query));
    journal.close().unwrap();
    let checked = check(directory.path()).unwrap();
    assert_eq!((checked.entries, checked.entries_kept), (1_000, 100));
    // Records alone let time pass, too; in the end all of it is gone, and the next entry still follows the last.
    let (journal, found) = Journal::open(directory.path(), &keep).unwrap();
    for _ in 0..10 {
        let record = Record::clock(Now::at_millis(2_000 * MINUTE));
        journal.append(Stream::Shared, &[record], &[]).unwrap();
        journal.audit_log_reader().read(AuditQuery::default()).unwrap();
    }
    assert_eq!(journal.audit_log_reader().read(AuditQuery::default()).unwrap().swept, 1_000);
    drop(journal);
    assert_eq!(check(directory.path()).unwrap().entries_kept, 0);
    let (journal, again) = Journal::open(directory.path(), &keep).unwrap();
    assert_eq!(again.audit_ends[&Stream::Shared], found.audit_ends[&Stream::Shared]);
    let mut chain = again.audit_ends[&Stream::Shared];
    journal.append(Stream::Shared, &[], &[Arc::new(chain.seal(told(1, 2_000 * MINUTE)))]).unwrap();
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 1);
}

/// promise: C5, W2
#[test]
fn an_import_begins_a_new_trail() {
    let (directory, _) = with_entries(3);
    let journal = open(directory.path());
    let webhook = Webhook {
        number: 0,
        name: Name::new("ops").unwrap(),
        url: Url::parse("https://h/x").unwrap(),
        format: WebhookFormat::CloudEvents,
        filter: Filter::default(),
        authorization: None,
        created: Timestamp::from_millis(0),
        by: "socket".to_owned(),
        handshake: Handshake::Wanted,
    };
    let added = forewarn_control::shared::Change::Webhook(WebhookChange::Added(Arc::new(webhook)));
    journal.append(Stream::Shared, &[Record::shared(Now::at_millis(6), added)], &[]).unwrap();
    let advanced = ClusterEntry::WebhookAdvanced { webhook: 0, progress: Progress::from(3) };
    let advanced = Record::in_cluster(Now::at_millis(6), ClusterId::DEFAULT, advanced);
    journal.append(Stream::Cluster(ClusterId::DEFAULT), &[advanced], &[]).unwrap();
    journal.close().unwrap();
    let (to, file) = (tempdir().unwrap(), directory.path().join("export"));
    export(directory.path(), &mut std::fs::File::create(&file).unwrap()).unwrap();
    import(&file, to.path(), &options()).unwrap();
    let imported = Journal::open(to.path(), &options()).unwrap().1;
    let begins =
        [Stream::Shared, Stream::Cluster(ClusterId::DEFAULT)].map(|stream| (stream, Chain::default()));
    assert_eq!(imported.audit_ends, begins.into());
    assert_eq!(imported.state.shared().find_webhook(0).unwrap().name.as_str(), "ops");
    let progress = imported.state.cluster(ClusterId::DEFAULT).unwrap().webhook_progress(0);
    assert_eq!(progress, Some(Progress::from(0)), "it is told all of the new one");
}

/// promise: C5
#[test]
fn a_copy_has_the_trail() {
    let (directory, entries) = with_entries(3);
    let journal = open(directory.path());
    let place = tempdir().unwrap();
    let copy = place.path().join("journal.db");
    let (tell, told) = mpsc::channel();
    journal.copy_then(&copy, move |result| tell.send(result).unwrap());
    told.recv().unwrap().unwrap();
    assert_eq!(check(place.path()).unwrap().entries, 3);
    let page = open(place.path()).audit_log_reader().read(AuditQuery::default()).unwrap();
    assert_eq!(entries_of(&page), entries);
}
