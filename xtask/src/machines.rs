//! `cargo xtask machines`: three servers of one realm, each with its member of etcd in a machine that is a network
//! namespace, under faults; and clients of others that keep working when one of the servers is killed.
//!
//! The rounds and their checks are in the ignored tests of `crates/forewarn/tests/it/realm_machines`; here the programs
//! beside them are installed and named.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::environments::AZURE_CLI;
use crate::packages::{self, Readiness};
use crate::steps::{Outcome, cargo, status};
use crate::tools::PROGRAM_TESTS;
use crate::tree;
use crate::words::Words;

/// Packages of the machines and of their clients.
pub(crate) const MACHINE_PROGRAMS: [&str; 8] = [
    "curl",
    "etcd-server",
    "haproxy",
    "iproute2",
    "libfaketime",
    "nftables",
    "resource-agents",
    "util-linux",
];

/// Rounds of faults in the test command. Each of them has its own seed.
pub(crate) const ROUNDS: u32 = 10;

/// Rounds of faults in the long run, and the number of them in each of its steps.
pub(crate) const ROUNDS_IN_LONG_RUN: u32 = 100;
pub(crate) const ROUNDS_IN_PART: u32 = 10;

/// `cargo xtask machines [--first N] [--rounds N]`.
pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let (mut first, mut rounds) = (None, ROUNDS);
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--first" => first = Some(words.value(&word, number, "a number from 1")?),
            "--rounds" => rounds = words.value(&word, number, "a number from 1")?,
            _ => return Err(crate::words::Usage::unknown(&word).into()),
        }
    }
    match first {
        None => run(rounds),
        Some(first) => run_rounds(first, rounds),
    }
}

/// Rounds from the first seed, and clients of others.
pub(crate) fn run(rounds: u32) -> Result<Outcome> {
    if let Readiness::Lacking(why) = prepare() {
        return Ok(Outcome::Skipped(why));
    }
    let outcome = run_tests(cargo().env(ROUNDS_VARIABLE, rounds.to_string()), "realm_machines::rounds::")?;
    let Readiness::Ready = packages::prepare_python() else {
        return Ok(outcome.and(Outcome::Skipped("az was not run: no python3 with venv".to_owned())));
    };
    let clients = match AZURE_CLI.find_or_install() {
        Ok(place) => {
            run_tests(cargo().env("FOREWARN_AZ", place.join("bin/az")), "realm_machines::real_clients::")?
        }
        Err(problem) => Outcome::Skipped(format!("{problem:#}")),
    };
    Ok(outcome.and(clients))
}

/// Only rounds, from a seed on.
pub(crate) fn run_rounds(first: u32, rounds: u32) -> Result<Outcome> {
    if let Readiness::Lacking(why) = prepare() {
        return Ok(Outcome::Skipped(why));
    }
    let mut tests = cargo();
    tests.env(FIRST_VARIABLE, first.to_string()).env(ROUNDS_VARIABLE, rounds.to_string());
    run_tests(&mut tests, "realm_machines::rounds::")
}

/// The variables with the first seed and with the number of rounds.
const FIRST_VARIABLE: &str = "FOREWARN_MACHINES_FIRST";
const ROUNDS_VARIABLE: &str = "FOREWARN_MACHINES_ROUNDS";

fn prepare() -> Readiness {
    match packages::prepare(&MACHINE_PROGRAMS) {
        Readiness::Ready if can_make_machines() => Readiness::Ready,
        Readiness::Ready => {
            Readiness::Lacking("namespaces of time and of mounts cannot be made here".to_owned())
        }
        lacking @ Readiness::Lacking(_) => lacking,
    }
}

/// Tries what a machine needs besides its network: a clock, and a small disk that is mounted only there.
fn can_make_machines() -> bool {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "--time", "--boottime", "1000"]);
    unshare.args(["mount", "-t", "tmpfs", "tmpfs"]).arg(std::env::temp_dir());
    unshare.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// One test at a time: each of them starts nine processes or more, and some measure time.
fn run_tests(cargo: &mut Command, part: &str) -> Result<Outcome> {
    cargo.args(["test", "--locked"]).args(PROGRAM_TESTS);
    cargo.args(["--", "--ignored", "--nocapture", "--test-threads", "1", part]);
    status(cargo.current_dir(tree::root()?))
}
