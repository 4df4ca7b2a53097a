//! Directories on which the program does not start: each with a reason, a hint and exit 1, and left as they are.

use std::fs;
use std::process::Output;

use crate::durable::place::Place;
use forewarn_testkit::operator::clock;
use forewarn_testkit::wait_until;
use rustix::process::Signal;

/// It has ended with these words.
fn check(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words.iter().chain(&["hint: "]) {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
    assert!(output.stdout.is_empty(), "nothing was served");
}

/// A directory in which a server has been, and has stopped.
fn used() -> Place {
    let place = Place::new();
    let server = place.start();
    server.enrol(&["vm-0"]);
    server.restart("vm-0");
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), Some(0));
    place
}

/// Changes the journal; a server refuses it with these words, and leaves it as it is.
fn refuses(change: impl FnOnce(&mut Vec<u8>), words: &[&str]) {
    let place = used();
    let journal = place.data().join("journal.db");
    let mut bytes = fs::read(&journal).unwrap();
    change(&mut bytes);
    fs::write(&journal, &bytes).unwrap();
    check(&place.fail(), words);
    assert!(fs::read(&journal).unwrap() == bytes, "it was changed");
}

/// Where a file of SQLite keeps the number of its format, and whose it is.
const FORMAT: std::ops::Range<usize> = 60..64;
const OWNER: std::ops::Range<usize> = 68..72;

/// promise: D4
#[test]
fn a_journal_of_a_later_format_is_refused() {
    refuses(|bytes| bytes[FORMAT].copy_from_slice(&[0, 0, 1, 0]), &["a later format", "256"]);
}

/// promise: D4
#[test]
fn a_file_of_others_is_refused() {
    refuses(|bytes| *bytes = b"Dear diary".to_vec(), &["not a journal of forewarn"]);
    refuses(|bytes| bytes[OWNER].copy_from_slice(&[0; 4]), &["not a journal of forewarn"]);
}

/// promise: D4
#[test]
fn a_journal_with_a_flipped_byte_is_refused() {
    let flip = |bytes: &mut Vec<u8>| {
        let name = bytes.windows(4).position(|bytes| bytes == b"vm-0").expect("the name of a machine");
        bytes[name] ^= 1;
    };
    refuses(flip, &["the journal is damaged"]);
}

/// promise: D4
#[test]
fn a_journal_without_its_end_is_refused() {
    refuses(|bytes| bytes.truncate(bytes.len() / 2), &["the journal is damaged"]);
}

/// promise: D4
#[test]
fn a_directory_that_cannot_be_is_refused() {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("file");
    fs::write(&file, "").unwrap();
    check(&Place::at(file.join("data")).fail(), &["cannot create the data directory"]);
}

/// promise: D4
#[test]
fn a_second_server_on_the_same_directory_is_refused_and_the_first_goes_on() {
    let place = Place::new();
    let first = place.start();
    first.enrol(&["vm-0"]);
    check(&place.fail(), &["in use by another process", "one server owns a data directory"]);
    first.restart("vm-0");
    let shown = clock(&first);
    first.kill();
    // The lock went with its owner.
    let second = wait_until("another one starts", || Some(place.start()));
    assert_eq!((second.status("vm-0").as_str(), clock(&second)), ("Scheduled", shown));
}
