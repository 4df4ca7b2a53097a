//! An engine in a directory. Its files are copied from inside the driver, at the very moment at which somebody is told something:
//! that is what a kill then would have left.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::path::Path;

use forewarn_control::ControlError;
use forewarn_control::NamedCommand;
use forewarn_lifecycle::*;
use forewarn_server::ClockCommand;
use forewarn_server::{ClockPlan, ControlHandle, Hypervisor, Speed};
use tempfile::TempDir;

/// A millisecond is a quarter of an hour.
const FASTEST: Speed = Speed(1_000_000);

fn open(place: &Path, speed: Speed) -> ControlHandle {
    let clock = ClockPlan::Virtual { start: None, speed };
    ControlHandle::open(place, Seed([5; 16]), clock, Hypervisor::Simulated).unwrap()
}

fn copy(place: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        fs::copy(place.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// What the clock shows, and what a kill would have left then.
async fn look(engine: &ControlHandle, place: &Path) -> (Now, TempDir) {
    let place = place.to_owned();
    engine.look(move |state| (state.now, copy(&place))).unwrap()
}

async fn check((shown, left): (Now, TempDir)) {
    let found = open(left.path(), Speed(0)).look(|state| state.now).unwrap();
    assert!(found.wall >= shown.wall && found.steady >= shown.steady, "{found:?} after {shown:?}");
}

#[tokio::test]
async fn what_a_clock_shows_that_runs_has_been_written_down() {
    let directory = tempfile::tempdir().unwrap();
    check(look(&open(directory.path(), FASTEST), directory.path()).await).await;
}

#[tokio::test]
async fn what_a_clock_shows_that_was_just_set_running_has_been_written_down() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Speed(0));
    let run = engine.drive(ClockCommand::Run(FASTEST));
    let (driven, seen) = tokio::join!(run, look(&engine, directory.path()));
    driven.unwrap();
    check(seen).await;
}

#[tokio::test]
async fn an_address_is_given_to_one_machine_also_when_two_ask_for_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Speed(0));
    let order = |json: &str| engine.order(vec![serde_json::from_str::<NamedCommand>(json).unwrap()]);
    order(r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    let one = order(r#"{"command":"admit_vm","name":"one","host":"h1","addresses":["10.0.0.1"]}"#);
    let two = order(r#"{"command":"admit_vm","name":"two","host":"h1","addresses":["::ffff:10.0.0.1"]}"#);
    let (one, two) = tokio::join!(one, two);
    one.unwrap();
    let taken =
        ControlError::AddressTaken { address: "10.0.0.1".parse().unwrap(), machine: "one".to_owned() };
    assert_eq!(two, Err(taken));
}
