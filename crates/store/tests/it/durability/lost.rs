//! A log that was deleted, emptied, cut short or replaced, and a record of the reach that was: noticed, and left as found.

use std::fs;
use std::path::Path;

use forewarn_control::{ClusterId, Record, Stream};
use forewarn_lifecycle::{Brake, Now, Seed};
use forewarn_store::{
    AuditQuery, IfMissing, Journal, OpenError, Options, Recovered, SyncMode, accept_loss, check, export,
};

use crate::durability::damage::DeadJournal;
use crate::durability::disk::scratch;
use crate::durability::writer::{append, ends_after, inspect, options, record, state_after};
use crate::support::{fold_if_wanted, hold};

/// An odd number: with the options of these tests, a checkpoint follows every second commit. So the last commit is in the log only.
const RECORDS: u64 = 37;

fn open(directory: &Path) -> Result<(Journal, Recovered), OpenError> {
    Journal::open(directory, &options(SyncMode::EachCommit))
}

/// The journal is refused for a loss, by everything that reads it, and its files stay as they are.
fn is_refused(directory: &Path, what: &str) {
    let log = directory.join("journal.db-wal");
    let (before, file) =
        (fs::read(&log).unwrap_or_default(), fs::read(directory.join("journal.db")).unwrap());
    let problems = [
        open(directory).map(drop).unwrap_err(),
        check(directory).map(drop).unwrap_err(),
        export(directory, &mut Vec::new()).unwrap_err(),
    ];
    for problem in problems {
        assert!(matches!(problem, OpenError::Short { .. }), "{what}: {problem}");
        let said = problem.to_string();
        let command = format!("forewarn store accept-loss {}", directory.display());
        assert!(said.contains("hint: ") && said.ends_with(&command), "{said}");
    }
    assert!(fs::read(&log).unwrap_or_default() == before, "{what}: the log was changed");
    assert!(fs::read(directory.join("journal.db")).unwrap() == file, "{what}: the journal was changed");
}

/// promise: D4
#[test]
fn a_log_that_is_deleted_emptied_or_cut_short_is_refused_and_left_as_it_is() {
    let scratch = scratch();
    let dead = DeadJournal::with_records(&scratch.path().join("first"), RECORDS);
    let directory = scratch.path().join("second");
    fs::create_dir(&directory).unwrap();
    dead.write_to(&directory, &[]);
    is_refused(&directory, "emptied");
    fs::remove_file(directory.join("journal.db-wal")).unwrap();
    is_refused(&directory, "deleted");
    let (mut complete, mut short) = (0, 0);
    for length in (0..=dead.log.len()).step_by(997).chain([dead.log.len()]) {
        dead.write_to(&directory, &dead.log[..length]);
        match open(&directory) {
            Ok((journal, found)) => {
                assert_eq!(journal.length(), RECORDS, "{length} bytes");
                assert!(found.state == state_after(RECORDS), "{length} bytes");
                complete += 1;
            }
            Err(OpenError::Short { .. }) => short += 1,
            Err(problem) => panic!("{length} bytes: {problem}"),
        }
    }
    // The log is reused: old frames follow its end, and without them it is complete.
    assert!(complete > 0 && short > 20, "{complete} {short}");
}

/// promise: D4
#[test]
fn a_directory_of_an_earlier_version_is_opened_and_protected_from_then_on() {
    let scratch = scratch();
    let directory = scratch.path().join("data");
    let dead = DeadJournal::with_records(&scratch.path().join("first"), RECORDS);
    fs::create_dir(&directory).unwrap();
    dead.write_to(&directory, &dead.log);
    fs::remove_file(directory.join("journal.reach")).unwrap();
    assert_eq!(check(&directory).unwrap().records, RECORDS);
    assert!(!directory.join("journal.reach").exists(), "a check makes nothing");
    let (journal, _) = open(&directory).unwrap();
    append(&journal, RECORDS + 1..=RECORDS + 1).unwrap();
    let copy = scratch.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["journal.db", "journal.reach", "lock", "audit.db", "audit.db-wal"] {
        fs::copy(directory.join(name), copy.join(name)).unwrap();
    }
    is_refused(&copy, "its log is missing");
    drop(journal);
    // The earlier version writes more, and does not touch the record.
    let old = fs::read(directory.join("journal.reach")).unwrap();
    let (journal, _) = open(&directory).unwrap();
    append(&journal, RECORDS + 2..=RECORDS + 9).unwrap();
    drop(journal);
    fs::write(directory.join("journal.reach"), old).unwrap();
    assert_eq!(inspect(&directory, RECORDS + 9), Ok(RECORDS + 9));
}

/// promise: D4
#[test]
fn folds_checkpoints_and_sweeps_are_no_loss() {
    let scratch = scratch();
    let directory = scratch.path().join("data");
    let mut state = state_after(0);
    for session in 0..6 {
        let (journal, _) = open(&directory).unwrap();
        for turn in 0..40 {
            let last = journal.length();
            let batch = last + 1..=last + 1 + turn % 3;
            append(&journal, batch.clone()).unwrap();
            batch.for_each(|number| drop(state.apply(&record(number))));
            fold_if_wanted(&journal, &state);
            // A copy of the running directory, as a kill leaves it.
            let copy = scratch.path().join("copy");
            fs::create_dir_all(&copy).unwrap();
            // The committer may be filing: its files do not change while it is held.
            let held = hold(&journal);
            for file in fs::read_dir(&directory).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), copy.join(file.file_name())).unwrap();
            }
            drop(held);
            assert_eq!(inspect(&copy, journal.length()), Ok(journal.length()), "session {session}, {turn}");
            fs::remove_dir_all(&copy).unwrap();
        }
    }
}

/// promise: D4
#[test]
fn another_history_and_another_journal_are_refused() {
    let scratch = scratch();
    let place = |name: &str| scratch.path().join(name);
    drop(DeadJournal::with_records(&place("first"), RECORDS));
    // Long enough, and not the same entries.
    let (journal, _) = open(&place("second")).unwrap();
    let mut ends = ends_after(0);
    let told = |number: u64| forewarn_control::NewAuditEntry {
        text: format!("another {number}"),
        ..crate::durability::writer::told(number)
    };
    for number in 1..=RECORDS {
        let stream = record(number).stream();
        let entry = ends.entry(stream).or_default().seal(told(number)).into();
        journal.append(stream, &[record(number)], &[entry]).unwrap();
    }
    drop(journal);
    fs::copy(place("first").join("journal.reach"), place("second").join("journal.reach")).unwrap();
    is_refused(&place("second"), "another history");
    let later = Options { now: Now::at_millis(77), ..options(SyncMode::EachCommit) };
    let (journal, _) = Journal::open(&place("third"), &later).unwrap();
    append(&journal, 1..=RECORDS + 5).unwrap();
    drop(journal);
    fs::copy(place("first").join("journal.reach"), place("third").join("journal.reach")).unwrap();
    is_refused(&place("third"), "another journal");
}

/// promise: D4
#[test]
fn a_journal_that_is_missing_from_a_directory_that_was_in_use_is_not_made_anew() {
    let scratch = scratch();
    for keep in [&["journal.reach", "lock"][..], &["journal.reach"], &["lock"], &["audit.db"]] {
        let directory = scratch.path().join("data");
        open(&directory).unwrap().0.close().unwrap();
        for name in
            ["journal.db", "journal.reach", "lock", "audit.db"].iter().filter(|name| !keep.contains(name))
        {
            fs::remove_file(directory.join(name)).unwrap();
        }
        for missing in [IfMissing::Create, IfMissing::Refuse] {
            let problem = Journal::open(&directory, &Options { missing, ..options(SyncMode::EachCommit) });
            let problem = problem.map(drop).unwrap_err();
            assert!(matches!(problem, OpenError::Gone(_)), "{keep:?}: {problem}");
            assert!(problem.to_string().contains("hint: is the disk mounted?"), "{problem}");
        }
        assert!(!directory.join("journal.db").exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// promise: D4
#[test]
fn a_damaged_record_of_the_reach_is_told_and_does_not_block_a_journal_for_ever() {
    let scratch = scratch();
    for damage in [Some(&b"nonsense"[..]), Some(b""), None] {
        let directory = scratch.path().join("data");
        let (journal, _) = open(&directory).unwrap();
        append(&journal, 1..=5).unwrap();
        journal.close().unwrap();
        let reach = directory.join("journal.reach");
        match damage {
            Some(content) => fs::write(&reach, content).unwrap(),
            None => fs::remove_file(&reach).unwrap(),
        }
        let problem = open(&directory).map(drop).unwrap_err();
        assert!(matches!(problem, OpenError::ReachUnknown { .. }), "{problem}");
        let command = format!("forewarn store accept-loss {}", directory.display());
        assert!(problem.to_string().ends_with(&command), "{problem}");
        let accepted = accept_loss(&directory, &other_seed()).unwrap();
        assert_eq!((accepted.due, accepted.found.records), (None, 5));
        assert_eq!(open(&directory).unwrap().0.length(), 5);
        fs::remove_dir_all(&directory).unwrap();
    }
}

fn other_seed() -> Options {
    Options { seed: Seed([8; 16]), now: Now::at_millis(9_000), ..options(SyncMode::EachCommit) }
}

/// promise: D4
#[test]
fn an_accepted_loss_goes_on_with_the_brake_on_another_secret_and_an_entry_that_says_so() {
    let scratch = scratch();
    let dead = DeadJournal::with_records(&scratch.path().join("first"), RECORDS);
    let directory = scratch.path().join("second");
    fs::create_dir(&directory).unwrap();
    dead.write_to(&directory, &dead.log[..dead.log.len() / 8]);
    is_refused(&directory, "cut short");
    let accepted = accept_loss(&directory, &other_seed()).unwrap();
    let found = accepted.found.records;
    assert!((1..RECORDS).contains(&found) && accepted.due.is_some_and(|due| due.records == RECORDS));
    let problem = accept_loss(&directory, &other_seed()).unwrap_err();
    assert!(matches!(problem, OpenError::Complete(_)), "{problem}");
    let (journal, after) = open(&directory).unwrap();
    let position = journal.reach().unwrap().audit_chain.number;
    assert_eq!((journal.length(), position, after.replayed), (found, found + 1, 0));
    let number = ends_after(found)[&Stream::Shared].number + 1;
    assert_eq!(after.audit_ends[&Stream::Shared].number, number);
    let cluster = after.state.cluster(ClusterId::DEFAULT).unwrap().rules();
    assert_eq!(cluster.brake(), Brake::On);
    let before = state_after(found);
    assert!(cluster.hosts().eq(before.cluster(ClusterId::DEFAULT).unwrap().rules().hosts()));
    assert_eq!(after.identity, Seed([7; 16]), "ids of machines stay");
    let page = journal.audit_log_reader().read(AuditQuery { limit: 100, ..AuditQuery::default() }).unwrap();
    let last = page.entries.last().unwrap();
    assert_eq!((last.position, last.entry.number), (found + 1, number));
    let entry = &last.entry;
    assert_eq!((entry.kind.as_str(), entry.by.as_str()), ("loss_accepted", "shell"));
    let lost = format!("it ends with record {found} and audit entry {found}; record {RECORDS}");
    assert!(entry.text.contains(&lost), "{}", entry.text);
    // It can be written to, and is protected again.
    journal.append(Stream::Shared, &[Record::clock(Now::at_millis(9_001))], &[]).unwrap();
    drop(journal);
    assert_eq!(check(&directory).unwrap().records, found + 1);
}

/// promise: D3
#[test]
fn a_process_does_not_take_an_older_journal_for_the_one_that_it_had() {
    let scratch = scratch();
    let (data, old, away) =
        (scratch.path().join("data"), scratch.path().join("old"), scratch.path().join("away"));
    let (journal, _) = open(&data).unwrap();
    append(&journal, 1..=5).unwrap();
    fs::create_dir(&old).unwrap();
    for file in fs::read_dir(&data).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), old.join(file.file_name())).unwrap();
    }
    append(&journal, 6..=9).unwrap();
    let reached = journal.reach();
    fs::rename(&data, &away).unwrap();
    fs::rename(&old, &data).unwrap();
    let log = fs::read(data.join("journal.db-wal")).unwrap();
    let problem = append(&journal, 10..=10).unwrap_err();
    assert!(problem.to_string().contains("was removed or replaced while the server runs"), "{problem}");
    assert_eq!(journal.failure(), Some(problem));
    drop(journal);
    assert!(fs::read(data.join("journal.db-wal")).unwrap() == log, "the log of another journal was touched");
    let again = Options { reached, missing: IfMissing::Refuse, ..options(SyncMode::EachCommit) };
    let problem = Journal::open(&data, &again).map(drop).unwrap_err();
    assert!(matches!(problem, OpenError::Short { .. }), "{problem}");
    fs::rename(&data, &old).unwrap();
    assert!(matches!(Journal::open(&data, &again), Err(OpenError::Missing(_))));
    assert!(!data.exists(), "another directory was made");
    fs::rename(&away, &data).unwrap();
    let (journal, found) = Journal::open(&data, &again).unwrap();
    assert!(journal.length() >= 9 && found.state == state_after(journal.length()));
}

/// promise: D3
#[test]
fn a_log_that_is_deleted_under_a_running_journal_costs_nothing() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let (journal, _) = open(&data).unwrap();
    append(&journal, 1..=5).unwrap();
    fs::remove_file(data.join("journal.db-wal")).unwrap();
    append(&journal, 6..=6).unwrap_err();
    drop(journal);
    let (journal, found) = open(&data).unwrap();
    assert!(journal.length() >= 5 && found.state == state_after(journal.length()));
}
