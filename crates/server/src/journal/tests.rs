//! A journal that fails again and again.

use std::fs;

use forewarn_store::IfMissing;

use super::*;
use crate::reopening::PAUSE_MIN;

fn options() -> Options {
    Options::new(Seed([5; 16]), Now::at_millis(0))
}

fn reopen(journal: &mut JournalHandle) {
    while journal.is_broken() {
        let wait = journal.until_retry().unwrap();
        std::thread::sleep(wait);
        journal.reopen(Seed([5; 16]), Now::at_millis(0));
    }
}

/// promise: D3
#[tokio::test]
async fn pauses_grow_until_something_is_written() {
    let place = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(place.path(), &options()).unwrap();
    let mut journal = JournalHandle::in_directory(place.path().to_owned(), journal, AUDIT_RETENTION);
    for failures in 1..4 {
        journal.give_up();
        assert_eq!(journal.retry.pause, PAUSE_MIN * 2_u32.pow(failures));
        reopen(&mut journal);
    }
    let clock = Clock::real(forewarn_lifecycle::Steady::START);
    let mut records = vec![Record::clock(Now::at_millis(1))];
    journal.of(Stream::Shared).append(&mut records, &[], &clock).await.unwrap();
    journal.give_up();
    assert_eq!(journal.retry.pause, PAUSE_MIN * 2);
    reopen(&mut journal);
    journal.close();
}

/// promise: D3
#[test]
fn a_copy_is_not_opened_again_where_no_batch_could_be_written() {
    let place = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(place.path(), &options()).unwrap();
    journal.close().unwrap();
    drop(journal);
    // It takes the place of the file that is written.
    let obstacle = place.path().join("journal.room");
    fs::create_dir(&obstacle).unwrap();
    let refused = open_copy(place.path(), options()).unwrap_err().to_string();
    assert!(refused.contains("cannot write a file"), "{refused}");
    fs::remove_dir(&obstacle).unwrap();
    drop(open_copy(place.path(), options()).unwrap());
    assert!(!obstacle.exists());
    let missing = Options { missing: IfMissing::Refuse, ..options() };
    drop(Journal::open(place.path(), &missing).unwrap());
}
