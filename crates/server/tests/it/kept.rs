//! A control handle in a directory. Its files are copied at the moment of a response, as a crash would leave them.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;

use forewarn_control::ControlError;
use forewarn_control::NamedCommand;
use forewarn_lifecycle::*;
use forewarn_server::ClockCommand;
use forewarn_server::{ClockPlan, ControlHandle, Hypervisor, Speed};
use tempfile::TempDir;

/// One millisecond is a quarter of an hour.
const FASTEST: Speed = Speed(1_000_000);

fn open(directory: &Path, speed: Speed) -> ControlHandle {
    let clock = ClockPlan::Virtual { start: None, speed };
    ControlHandle::open(directory, Seed([5; 16]), clock, Hypervisor::simulated()).unwrap()
}

fn copy(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal", "audit.db", "audit.db-wal"] {
        fs::copy(directory.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// The time of the clock, and the files that a crash would leave.
async fn look(control: &ControlHandle, directory: &Path) -> (Now, TempDir) {
    let directory = directory.to_owned();
    control.look(move |state| (state.now, copy(&directory))).unwrap()
}

async fn check((shown, left): (Now, TempDir)) {
    let found = open(left.path(), Speed(0)).look(|state| state.now).unwrap();
    assert!(found.wall >= shown.wall && found.steady >= shown.steady, "{found:?} after {shown:?}");
}

/// promise: N4
#[tokio::test]
async fn what_a_clock_shows_that_runs_has_been_written_down() {
    let directory = tempfile::tempdir().unwrap();
    check(look(&open(directory.path(), FASTEST), directory.path()).await).await;
}

/// promise: N4
#[tokio::test]
async fn what_a_clock_shows_that_was_just_set_running_has_been_written_down() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path(), Speed(0));
    let run = control.drive(ClockCommand::Run(FASTEST));
    let (driven, seen) = tokio::join!(run, look(&control, directory.path()));
    driven.unwrap();
    check(seen).await;
}

/// promise: M3
#[tokio::test]
async fn an_address_is_given_to_one_machine_also_when_two_ask_for_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path(), Speed(0));
    let order = |json: &str| control.run_commands(vec![serde_json::from_str::<NamedCommand>(json).unwrap()]);
    order(r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    let one = order(r#"{"command":"admit_vm","name":"one","host":"h1","addresses":["10.0.0.1"]}"#);
    let two = order(r#"{"command":"admit_vm","name":"two","host":"h1","addresses":["::ffff:10.0.0.1"]}"#);
    let (one, two) = tokio::join!(one, two);
    one.unwrap();
    let taken =
        ControlError::AddressTaken { address: "10.0.0.1".parse().unwrap(), machine: "one".to_owned() };
    assert_eq!(two, Err(taken));
}
