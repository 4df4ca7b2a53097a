//! SIGKILL at random moments, and a second process beside the first.

use std::fs;
use std::path::Path;
use std::process::Child;

use forewarn_store::{Journal, OpenError, SyncMode, check};

use crate::durability::writer::{append, command, inspect, options};
use forewarn_testkit::{Random, io_calls, wait_for_io_calls, wait_until};

/// Reads and writes of some commits.
const CALLS_BEFORE_KILL: usize = 100;

/// How often; a longer run sets it.
fn rounds() -> usize {
    std::env::var("FOREWARN_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// The last number that was answered.
fn last_ack(acks: &Path) -> Option<u64> {
    let text = fs::read_to_string(acks).ok()?;
    // A last line without an end was being written when the process died.
    text.rsplit_once('\n')?.0.lines().last()?.parse().ok()
}

fn start(directory: &Path, acks: &Path) -> Child {
    drop(fs::remove_file(acks));
    let child = command(directory, acks, 1_000_000, SyncMode::EachCommit).spawn().unwrap();
    wait_for_ack(acks, 0);
    child
}

/// Waits until the writer has answered that number.
fn wait_for_ack(acks: &Path, number: u64) {
    wait_until("the writer goes on", || last_ack(acks).filter(|last| *last >= number));
}

/// promise: D1, D4, C5
#[test]
fn whatever_was_answered_survives_the_death_of_the_process() {
    let scratch = tempfile::tempdir().unwrap();
    let (directory, acks) = (scratch.path().join("data"), scratch.path().join("acks"));
    let mut random = Random::new(4);
    let mut most = 0;
    for round in 0..rounds() {
        let mut child = start(&directory, &acks);
        // Some commits, however slow the disk is, and then a random point between its reads and writes.
        let wanted = last_ack(&acks).unwrap() + 5 + random.index(10) as u64;
        wait_for_ack(&acks, wanted);
        wait_for_io_calls(child.id(), io_calls(child.id()) + random.index(CALLS_BEFORE_KILL) as u64);
        child.kill().unwrap();
        child.wait().unwrap();
        let acked = last_ack(&acks).unwrap();
        let found = inspect(&directory, acked).unwrap_or_else(|problem| panic!("round {round}: {problem}"));
        assert!(found >= most, "round {round}: {found} records, and there were {most}");
        most = found + 1;
    }
    assert!(most > 100, "{most}");
    assert_eq!(check(&directory).unwrap().records, most);
}

/// promise: D5
#[test]
fn two_processes_cannot_own_one_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let (directory, acks) = (scratch.path().join("data"), scratch.path().join("acks"));
    let open = || Journal::open(&directory, &options(SyncMode::EachCommit));
    let (journal, _) = open().unwrap();
    append(&journal, 1..=1).unwrap();
    let other = command(&directory, &acks, 1, SyncMode::EachCommit).output().unwrap();
    let printed = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success() && printed.contains("InUse"), "{printed}");
    assert_eq!(last_ack(&acks), None, "the other process has written something");
    let problem = open().unwrap_err();
    assert!(matches!(problem, OpenError::InUse(_)), "{problem}");
    assert!(problem.to_string().contains("hint: one server owns a data directory"), "{problem}");
    append(&journal, 2..=2).unwrap();
    journal.close().unwrap();
    inspect(&directory, 2).unwrap();
}
