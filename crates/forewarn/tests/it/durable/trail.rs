//! SIGKILL while clients send commands: every one that was answered is in the trail, once, with what it did; and the trail is whole.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::durable::place::{MACHINES, Place};
use crate::program;
use forewarn_testkit::operator::{machine, read, value, write};
use forewarn_testkit::{TestServer, wait_until};

const ROUNDS: u64 = 6;

/// What one machine was described as, by whom it was answered.
type Answered = Mutex<BTreeSet<u64>>;

/// Describes a machine again and again, each time with another number, until the server is gone.
fn describe(server: &TestServer, machine: &str, numbers: &AtomicU64, answered: &Answered) {
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let command =
            json!({ "command": "describe", "machine": machine, "tags": { "written": number.to_string() } });
        match write(server.api(), "/v1/commands", &command) {
            Ok(answer) if answer.status() == 200 => drop(answered.lock().unwrap().insert(number)),
            Ok(answer) => panic!("{answer:?}"),
            // It was killed; whether this one was written, nobody knows.
            Err(_) => return,
        }
    }
}

/// Every entry of that kind, the oldest first.
fn entries(server: &TestServer, kind: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = value(
            &read(server.api(), &format!("/v1/audit?kind={kind}&order=oldest&limit=50{after}")).unwrap(),
        );
        all.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

fn written(entry: &Value) -> Option<u64> {
    entry["command"]["tags"]["written"].as_str()?.parse().ok()
}

/// promise: C5
#[test]
fn every_command_that_was_answered_is_in_the_trail_after_a_kill() {
    let place = Place::new();
    let (numbers, answered) = (AtomicU64::new(1), Answered::default());
    for round in 1..=ROUNDS {
        let server = place.start();
        std::thread::scope(|scope| {
            for machine in MACHINES {
                let (server, numbers, answered) = (&server, &numbers, &answered);
                scope.spawn(move || describe(server, machine, numbers, answered));
            }
            let wanted = answered.lock().unwrap().len() + 10;
            wait_until("enough is answered", || (answered.lock().unwrap().len() >= wanted).then_some(()));
            server.signal(rustix::process::Signal::KILL);
        });
        server.end();
        let checked = Command::new(program()).args(["store", "check"]).arg(place.data()).output().unwrap();
        assert!(checked.status.success(), "round {round}: {checked:?}");
    }
    let server = place.start();
    let told: Vec<_> = entries(&server, "command").iter().filter_map(written).collect();
    let once: BTreeSet<_> = told.iter().copied().collect();
    assert_eq!(once.len(), told.len(), "nothing is told twice");
    let missing: Vec<_> = answered.lock().unwrap().difference(&once).copied().collect();
    assert_eq!(missing, [0; 0], "what was answered is told");
    // And neither is there without the other: the last that is told of each machine is what it is.
    for name in MACHINES {
        let of_machine = |entry: &&Value| entry["command"]["machine"] == name && written(entry).is_some();
        let commands = entries(&server, "command");
        let last = commands.iter().rev().find(of_machine).expect("it was described");
        assert_eq!(machine(&server, name)["tags"], last["command"]["tags"], "{name}");
    }
}
