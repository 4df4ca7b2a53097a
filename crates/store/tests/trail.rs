//! The trail of a journal: what is asked for is found, nothing else, in pages; what was changed is noticed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::Record;
use forewarn_control::shared::{Filter, Handshake, Progress, Schema, Webhook, WebhookChange};
use forewarn_control::{BrokenLink, Chain, Subject, Told, TrailEntry};
use forewarn_lifecycle::{MaintenanceId, Name, Now, Seed, Timestamp};
use forewarn_store::{
    AppendFailed, Direction, Journal, OpenError, Options, ReadFailed, SUBJECTS_PER_QUERY_MAX, TrailPage,
    TrailQuery, TrailReader, check, export, import,
};
use forewarn_types::Moment;
use forewarn_url::Url;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

const MINUTE: i64 = 60_000;

fn options() -> Options {
    Options::new(Seed([7; 16]), Now::at_millis(1_000))
}

fn told(number: u64, at_millis: i64) -> Told {
    Told {
        at: Moment(Timestamp::from_millis(at_millis)),
        cluster: if number.is_multiple_of(5) { "south" } else { "default" }.to_owned(),
        by: if number.is_multiple_of(7) { "token alice" } else { "forewarn" }.to_owned(),
        kind: if number.is_multiple_of(7) { "command" } else { "started" }.to_owned(),
        text: format!("entry {number}"),
        tenants: vec![format!("t{}", number % 3)],
        machines: vec![format!("t{}/m{}", number % 3, number % 11)],
        hosts: vec![format!("h{}", number % 4), format!("h{}", number % 2)],
        work: Some(number / 2),
        ..Told::default()
    }
}

/// Entries at these moments.
fn sealed(moments: impl IntoIterator<Item = i64>) -> Vec<Arc<TrailEntry>> {
    let mut chain = Chain::default();
    (1..).zip(moments).map(|(number, at)| Arc::new(chain.seal(told(number, at)))).collect()
}

fn open(directory: &Path) -> Journal {
    Journal::open(directory, &options()).unwrap().0
}

/// A closed journal with that many entries, a minute after each other, and how they are.
fn with_entries(count: i64) -> (TempDir, Vec<Arc<TrailEntry>>) {
    let directory = tempdir().unwrap();
    let entries = sealed((0..count).map(|number| number * MINUTE));
    let mut journal = open(directory.path());
    journal.append(&[Record::clock(Now::at_millis(5))], &entries).unwrap();
    journal.close().unwrap();
    (directory, entries)
}

fn tenant(name: &str) -> Subject {
    Subject::Tenant { cluster: "default".to_owned(), name: name.to_owned() }
}

/// What a question means, said as simply as possible.
fn expected(all: &[Arc<TrailEntry>], query: &TrailQuery) -> Vec<u64> {
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

fn numbers(page: &TrailPage) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.number).collect()
}

/// All pages, one after the other.
fn read_all(reader: &TrailReader, query: &TrailQuery) -> Vec<u64> {
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

fn queries() -> impl Strategy<Value = TrailQuery> {
    let groups = prop::collection::vec(prop::collection::vec(subjects(), 0..4), 0..4);
    let moment = || prop::option::of((0..9_000_000i64).prop_map(Timestamp::from_millis));
    let number = || prop::option::of(prop_oneof![0..130u64, Just(u64::MAX)]);
    let direction = prop_oneof![Just(Direction::OldestFirst), Just(Direction::NewestFirst)];
    (groups, moment(), moment(), number(), number(), direction, 1..30usize).prop_map(
        |(groups, since, until, after, before, direction, limit)| TrailQuery {
            groups,
            since,
            until,
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
    #[test]
    fn what_is_asked_for_is_found_and_nothing_else(
        moments in prop::collection::vec(0..8_000_000i64, 1..120),
        queries in prop::collection::vec(queries(), 1..20),
    ) {
        let entries = sealed(moments);
        let directory = tempdir().unwrap();
        let mut kept = open(directory.path());
        let mut memory = Journal::memory();
        for batch in entries.chunks(17) {
            kept.append(&[], batch).unwrap();
            memory.append(&[], batch).unwrap();
        }
        for query in queries {
            let expected = expected(&entries, &query);
            prop_assert_eq!(&read_all(&kept.trail_reader(), &query), &expected, "{:?}", query);
            prop_assert_eq!(&read_all(&memory.trail_reader(), &query), &expected, "{:?}", query);
        }
        kept.close().unwrap();
        prop_assert_eq!(check(directory.path()).unwrap().entries_kept, entries.len() as u64);
    }
}

#[test]
fn a_page_says_whether_there_is_another_and_where_the_trail_ends() {
    let (directory, entries) = with_entries(25);
    let journal = open(directory.path());
    let reader = journal.trail_reader();
    let first = reader.read(TrailQuery { limit: 20, ..TrailQuery::default() }).unwrap();
    assert_eq!(first.entries, entries[..20]);
    assert_eq!((first.next, first.head, first.swept), (Some(20), 25, 0));
    let rest = reader.read(TrailQuery { after: first.next, limit: 5, ..TrailQuery::default() }).unwrap();
    assert_eq!((rest.entries.len(), rest.next), (5, None));
    let newest = TrailQuery { direction: Direction::NewestFirst, limit: 2, ..TrailQuery::default() };
    let page = reader.read(newest).unwrap();
    assert_eq!((numbers(&page), page.next), (vec![25, 24], Some(24)));
    let none = reader.read(TrailQuery { after: Some(25), ..TrailQuery::default() }).unwrap();
    assert_eq!((none.entries.len(), none.next, none.head), (0, None, 25));
}

#[test]
fn a_question_that_takes_long_is_answered_in_parts() {
    let directory = tempdir().unwrap();
    let mut chain = Chain::default();
    let mut journal = open(directory.path());
    // Two groups that never meet: one looks at every entry to find nothing.
    let entries: Vec<_> = (0..6_000u64)
        .map(|number| {
            let tenants = vec![if number.is_multiple_of(2) { "even" } else { "odd" }.to_owned()];
            let by = if number.is_multiple_of(2) { "odd one" } else { "even one" }.to_owned();
            Arc::new(chain.seal(Told { by, tenants, cluster: "default".to_owned(), ..told(1, 0) }))
        })
        .collect();
    journal.append(&[], &entries).unwrap();
    let groups = vec![vec![tenant("even")], vec![Subject::By("even one".to_owned())]];
    let query = TrailQuery { groups, limit: 10, ..TrailQuery::default() };
    let page = journal.trail_reader().read(query.clone()).unwrap();
    assert!(page.entries.is_empty());
    assert!(page.next.is_some_and(|next| next > 100 && next < 6_000), "{:?}", page.next);
    assert_eq!(read_all(&journal.trail_reader(), &query), [0u64; 0]);
    let many = vec![(0..=SUBJECTS_PER_QUERY_MAX).map(|number| tenant(&number.to_string())).collect()];
    let refused = journal.trail_reader().read(TrailQuery { groups: many, ..TrailQuery::default() });
    assert_eq!(refused, Err(ReadFailed::TooMany(SUBJECTS_PER_QUERY_MAX + 1)));
}

#[test]
fn reading_does_not_keep_a_journal_open_and_is_told_when_it_is_closed() {
    let (directory, _) = with_entries(3);
    let journal = open(directory.path());
    let reader = journal.trail_reader();
    assert_eq!(reader.clone().read(TrailQuery::default()).unwrap().entries.len(), 3);
    journal.close().unwrap();
    assert_eq!(reader.read(TrailQuery::default()), Err(ReadFailed::Closed));
    assert_eq!(TrailReader::closed().read(TrailQuery::default()), Err(ReadFailed::Closed));
    let again = open(directory.path());
    assert_eq!(
        reader.read(TrailQuery::default()),
        Err(ReadFailed::Closed),
        "another journal has another reader"
    );
    let reader = again.trail_reader();
    drop(again);
    assert_eq!(reader.read(TrailQuery::default()), Err(ReadFailed::Closed));
    let memory = Journal::memory();
    let reader = memory.trail_reader();
    assert_eq!(reader.read(TrailQuery::default()).unwrap().head, 0);
    drop(memory);
    assert_eq!(reader.read(TrailQuery::default()), Err(ReadFailed::Closed));
}

#[test]
fn everybody_who_asks_is_answered_while_others_write_and_when_it_ends() {
    let (directory, _) = with_entries(500);
    let mut journal = open(directory.path());
    let mut chain = Chain::at(&sealed((0..500).map(|number| number * MINUTE))[499]).unwrap();
    let (tell, told_pages) = mpsc::channel();
    let (tell_written, written) = mpsc::channel();
    for number in 0..300 {
        let tell = tell.clone();
        let reader = journal.trail_reader();
        reader.read_then(TrailQuery::default(), move |page| tell.send(page).unwrap());
        let tell = tell_written.clone();
        let entry = Arc::new(chain.seal(told(number, 500 * MINUTE)));
        journal.append_then(&[], &[entry], move |result| tell.send(result).unwrap());
    }
    drop(journal);
    drop((tell, tell_written));
    let pages: Vec<_> = told_pages.iter().collect();
    assert_eq!(pages.len(), 300, "each is answered once");
    assert!(pages.iter().any(Result::is_ok));
    assert!(pages.iter().flatten().all(|page| page.head >= 500));
    let refused = pages.into_iter().filter_map(Result::err);
    assert!(refused.into_iter().all(|problem| matches!(problem, ReadFailed::Busy | ReadFailed::Closed)));
    assert_eq!(written.iter().filter(Result::is_ok).count(), 300);
    assert_eq!(check(directory.path()).unwrap().entries, 800);
}

#[test]
fn a_trail_goes_on_where_it_stopped() {
    let (directory, entries) = with_entries(3);
    let (mut journal, found) = Journal::open(directory.path(), &options()).unwrap();
    let mut chain = found.trail;
    assert_eq!(chain, Chain::at(&entries[2]).unwrap());
    journal.append(&[], &[Arc::new(chain.seal(told(4, 0)))]).unwrap();
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries, 4);
}

#[test]
fn an_entry_that_does_not_follow_is_not_written_and_neither_are_its_records() {
    let record = Record::clock(Now::at_millis(5));
    let (directory, entries) = with_entries(3);
    let mut later = Chain::at(&entries[2]).unwrap();
    later.seal(told(4, 0));
    let gap = Arc::new(later.seal(told(5, 0)));
    let forged = Arc::new(TrailEntry { text: "something else".to_owned(), ..(*entries[0]).clone() });
    let missing = BrokenLink::Missing { expected: 4, found: 5 };
    let again = BrokenLink::Again { expected: 4, found: 1 };
    for (wrong, why) in [(&gap, missing), (&forged, again)] {
        let mut journal = open(directory.path());
        let refused = journal.append(std::slice::from_ref(&record), &[Arc::clone(wrong)]);
        assert_eq!(refused, Err(AppendFailed::Unchained(why)));
        assert_eq!(journal.trail_reader().read(TrailQuery::default()), Err(ReadFailed::Closed));
        drop(journal);
        assert_eq!(check(directory.path()).unwrap().records, 1);
    }
    let mut memory = Journal::memory();
    assert!(memory.append(&[record], &[gap]).is_err());
    assert_eq!(memory.length(), 0);
}

#[test]
fn what_is_too_old_is_swept_and_the_rest_is_verified_from_there() {
    let directory = tempdir().unwrap();
    let keep = Options { trail_keep: Duration::from_secs(100 * 60), ..options() };
    let entries = sealed((0..1_000).map(|number| number * MINUTE));
    let mut journal = Journal::open(directory.path(), &keep).unwrap().0;
    for batch in entries.chunks(10) {
        journal.append(&[], batch).unwrap();
    }
    let page = journal.trail_reader().read(TrailQuery::default()).unwrap();
    assert_eq!((page.swept, page.head), (900, 1_000));
    assert_eq!(page.entries, entries[900..]);
    let query = TrailQuery { groups: vec![vec![tenant("t1")]], ..TrailQuery::default() };
    assert_eq!(read_all(&journal.trail_reader(), &query), expected(&entries[900..], &query));
    let query = TrailQuery { since: Some(Timestamp::from_millis(950 * MINUTE)), ..TrailQuery::default() };
    assert_eq!(read_all(&journal.trail_reader(), &query), expected(&entries, &query));
    journal.close().unwrap();
    let checked = check(directory.path()).unwrap();
    assert_eq!((checked.entries, checked.entries_kept), (1_000, 100));
    // Records alone let time pass, too; in the end all of it is gone, and the next entry still follows the last.
    let (mut journal, found) = Journal::open(directory.path(), &keep).unwrap();
    for _ in 0..10 {
        let record = Record::clock(Now::at_millis(2_000 * MINUTE));
        journal.append(&[record], &[]).unwrap();
    }
    assert_eq!(journal.trail_reader().read(TrailQuery::default()).unwrap().swept, 1_000);
    drop(journal);
    assert_eq!(check(directory.path()).unwrap().entries_kept, 0);
    let (mut journal, again) = Journal::open(directory.path(), &keep).unwrap();
    assert_eq!(again.trail, found.trail);
    let mut chain = again.trail;
    journal.append(&[], &[Arc::new(chain.seal(told(1, 2_000 * MINUTE)))]).unwrap();
    journal.close().unwrap();
    assert_eq!(check(directory.path()).unwrap().entries_kept, 1);
}

#[test]
fn an_import_begins_a_new_trail() {
    let (directory, _) = with_entries(3);
    let mut journal = open(directory.path());
    let webhook = Webhook {
        number: 0,
        name: Name::new("ops").unwrap(),
        url: Url::parse("https://h/x").unwrap(),
        schema: Schema::CloudEvents,
        filter: Filter::default(),
        authorization: None,
        created: Timestamp::from_millis(0),
        by: "socket".to_owned(),
        handshake: Handshake::Wanted,
        progress: Progress::from(3),
    };
    let added = forewarn_control::shared::Change::Webhook(WebhookChange::Added(Arc::new(webhook)));
    journal.append(&[Record::shared(Now::at_millis(6), added)], &[]).unwrap();
    journal.close().unwrap();
    let (to, file) = (tempdir().unwrap(), directory.path().join("export"));
    export(directory.path(), &mut std::fs::File::create(&file).unwrap()).unwrap();
    import(&file, to.path(), &options()).unwrap();
    let imported = Journal::open(to.path(), &options()).unwrap().1;
    assert_eq!(imported.trail, Chain::default());
    let webhook = imported.state.shared().find_webhook(0).unwrap();
    assert_eq!((webhook.name.as_str(), webhook.progress.cursor), ("ops", 0), "it is told all of the new one");
}

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
    assert_eq!(open(place.path()).trail_reader().read(TrailQuery::default()).unwrap().entries, entries);
}

fn database(directory: &Path) -> Connection {
    Connection::open(directory.join("journal.db")).unwrap()
}

/// Somebody who knows how checksums are made changes an entry, and even its own hash.
#[test]
fn a_forged_entry_breaks_the_chain() {
    let forged = tempdir().unwrap();
    let mut chain = Chain::default();
    let mut entries: Vec<_> = (1..).zip(0..5).map(|(number, at)| told(number, at * MINUTE)).collect();
    entries[2].text = "nobody was here".to_owned();
    let entries: Vec<_> = entries.into_iter().map(|told| Arc::new(chain.seal(told))).collect();
    open(forged.path()).append(&[], &entries).unwrap();
    let (directory, _) = with_entries(5);
    let read = "SELECT content FROM trail WHERE number = 3";
    let content: Vec<u8> = database(forged.path()).query_row(read, [], |row| row.get(0)).unwrap();
    let write = "UPDATE trail SET content = ?1 WHERE number = 3";
    database(directory.path()).execute(write, [content]).unwrap();
    let problem = check(directory.path()).unwrap_err().to_string();
    let expected = "entry 4 of the trail, or the one before it, is not what was written: its hash is wrong";
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
        OpenError::Damaged { ref what, .. } => what.clone(),
        OpenError::InUse(_)
        | OpenError::Missing(_)
        | OpenError::Foreign(_)
        | OpenError::Newer { .. }
        | OpenError::Exists(_)
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

#[test]
fn a_trail_that_was_tampered_with_is_found_out() {
    let cut = "DELETE FROM trail WHERE number = 5; DELETE FROM subject WHERE number = 5";
    let (opened, checked) = tampered(cut);
    assert_eq!(checked, "the trail ends with entry 4, and should with 5");
    assert_eq!(opened, Some(checked), "an end that was cut off is missed at once");

    let (opened, checked) = tampered("DELETE FROM trail; DELETE FROM subject; DELETE FROM hour");
    assert_eq!(checked, "the trail ends with entry 0, and should with 5");
    assert_eq!(opened, Some(checked));

    let (opened, checked) = tampered("DELETE FROM trail WHERE number = 1");
    assert_eq!(checked, "the trail begins with entry 2, and should with 1");
    assert_eq!(opened, Some(checked));

    let (opened, checked) = tampered("DELETE FROM trail WHERE number = 3");
    assert_eq!(checked, "entry 3 of the trail is missing: entry 4 comes next");
    assert_eq!(opened, None, "not all of it is read whenever it is opened");

    let changed =
        "UPDATE trail SET content = CAST(replace(content, 'forewarn', 'somebody') AS BLOB) WHERE number = 3";
    let (_, checked) = tampered(changed);
    assert_eq!(checked, "entry 3 of the trail: its checksum is wrong");

    let (_, checked) = tampered("UPDATE trail SET at = at + 1 WHERE number = 2");
    assert_eq!(checked, "entry 2 of the trail: it stands where another should");

    let (_, checked) = tampered("DELETE FROM subject WHERE subject = 'default/tenant:t1' AND number = 4");
    assert_eq!(checked, "entry 4 of the trail is not found where it should be");

    let (_, checked) = tampered("INSERT INTO subject VALUES ('default/tenant:t9', 4)");
    assert_eq!(checked, "the index of the trail names what is not there");

    let (_, checked) = tampered("UPDATE hour SET first = 4");
    assert_eq!(checked, "entry 1 of the trail is not found where it should be");
}

#[test]
fn a_damaged_entry_is_told_of_and_the_others_are_read() {
    let (directory, _) = with_entries(5);
    let connection = database(directory.path());
    connection.execute_batch("UPDATE trail SET content = zeroblob(20) WHERE number = 3").unwrap();
    connection.close().unwrap();
    let journal = open(directory.path());
    let reader = journal.trail_reader();
    let problem = reader.read(TrailQuery::default()).unwrap_err();
    assert!(matches!(&problem, ReadFailed::Damaged(what) if what.starts_with("entry 3")), "{problem}");
    assert_eq!(
        numbers(&reader.read(TrailQuery { after: Some(3), ..TrailQuery::default() }).unwrap()),
        [4, 5]
    );
    assert_eq!(
        numbers(&reader.read(TrailQuery { before: Some(3), ..TrailQuery::default() }).unwrap()),
        [1, 2]
    );
}

/// The same entries, sealed again; those from the one of that number on say something else.
fn sealed_again(entries: &[Arc<TrailEntry>], from: u64) -> Vec<Arc<TrailEntry>> {
    let mut chain = Chain::default();
    let again = |entry: &Arc<TrailEntry>| {
        let mut told = Told::from(TrailEntry::clone(entry));
        if entry.number >= from {
            told.text = format!("{}, not before later", told.text);
        }
        Arc::new(chain.seal(told))
    };
    entries.iter().map(again).collect()
}

/// What a reader finds, and the number of the newest entry that it knows of.
fn texts(journal: &Journal) -> (Vec<String>, u64) {
    let page = journal.trail_reader().read(TrailQuery::default()).unwrap();
    (page.entries.iter().map(|entry| entry.text.clone()).collect(), page.head)
}

#[test]
fn entries_that_are_hidden_are_rewritten_before_a_reader_sees_them() {
    let directory = tempdir().unwrap();
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    for mut journal in [Journal::memory(), open(directory.path())] {
        journal.append(std::slice::from_ref(&clock), &entries[..3]).unwrap();
        journal.hide_trail_after(3);
        journal.append(std::slice::from_ref(&clock), &entries[3..]).unwrap();
        assert_eq!((texts(&journal).0.len(), texts(&journal).1), (3, 3), "the rest is hidden");
        let again = sealed_again(&entries, 5);
        journal.rewrite(std::slice::from_ref(&clock), &again[4..]).unwrap();
        assert_eq!((texts(&journal).0.len(), texts(&journal).1), (3, 3));
        journal.show_trail();
        let expected: Vec<_> = again.iter().map(|entry| entry.text.clone()).collect();
        assert_eq!(texts(&journal), (expected, 6));
        assert_eq!(journal.length(), 3);
        // What comes next is chained to what was rewritten.
        let next = Chain::at(&again[5]).unwrap().seal(told(7, 9 * MINUTE));
        journal.append(&[], &[Arc::new(next)]).unwrap();
        journal.close().unwrap();
    }
    assert_eq!(check(directory.path()).unwrap().entries_kept, 7, "the chain holds, and the index does");
}

#[test]
fn a_kill_right_after_entries_were_rewritten_is_no_loss() {
    let directory = tempdir().unwrap();
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    let mut journal = open(directory.path());
    journal.append(std::slice::from_ref(&clock), &entries[..3]).unwrap();
    journal.hide_trail_after(3);
    journal.append(std::slice::from_ref(&clock), &entries[3..]).unwrap();
    // The commit of the rewritten entries is durable, and its record is not written yet.
    let reach = directory.path().join("journal.reach");
    let before = fs::read(&reach).unwrap();
    journal.rewrite(std::slice::from_ref(&clock), &sealed_again(&entries, 5)[4..]).unwrap();
    journal.close().unwrap();
    fs::write(reach, before).unwrap();
    let (journal, _) = Journal::open(directory.path(), &options()).unwrap();
    assert_eq!(journal.length(), 3);
}

#[test]
fn only_the_last_entries_are_rewritten_and_by_entries_about_the_same() {
    let clock = Record::clock(Now::at_millis(5));
    let entries = sealed((0..6).map(|number| number * MINUTE));
    let others: Vec<_> = sealed((0..6).map(|number| number * MINUTE + 1));
    let again = sealed_again(&entries, 1);
    for wrong in [&again[2..5], &others[..], &again[5..]] {
        let directory = tempdir().unwrap();
        for mut journal in [Journal::memory(), open(directory.path())] {
            journal.append(std::slice::from_ref(&clock), &entries).unwrap();
            // The last one alone is not chained to the fifth as it was written.
            assert!(journal.rewrite(std::slice::from_ref(&clock), wrong).is_err(), "{wrong:?}");
        }
    }
}

#[test]
fn a_journal_that_ends_with_announcements_names_them_until_something_follows() {
    let directory = tempdir().unwrap();
    let recovered = || {
        let (journal, found) = Journal::open(directory.path(), &options()).unwrap();
        journal.close().unwrap();
        found.unread
    };
    let announced = |works: std::ops::Range<u64>| -> Vec<_> {
        works.map(|work| (ClusterId::DEFAULT, MaintenanceId(work))).collect()
    };
    let clock = Record::clock(Now::at_millis(5));
    // More than one record can hold.
    let all = announced(0..25_000);
    let mut records = vec![clock.clone()];
    records.extend(Record::unread(Now::at_millis(6), &all));
    assert!(records.len() > 2);
    let mut journal = open(directory.path());
    journal.append(&records, &[]).unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(), all);
    assert_eq!(recovered(), all, "looking changes nothing");
    let mut journal = open(directory.path());
    journal.append(&[clock], &[]).unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(), []);
}
