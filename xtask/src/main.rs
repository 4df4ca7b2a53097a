//! Everything that is done to this repository by a command: `cargo xtask …`.
//!
//! Checks what a person would have to remember: formatting, lints, tests, and that the documents still speak of what is
//! there. Measures, mutates and breaks the rules to see that their tests notice. Needs nothing but cargo; git, nextest,
//! valgrind and nginx are used where they are installed.

mod agent;
mod api;
mod azure;
mod bench;
mod breakages;
mod deb;
mod environments;
mod fuzz;
mod mutants;
mod packages;
mod ports;
mod steps;
mod suite;
mod tidy;
mod tools;
mod tree;
mod units;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use steps::Outcome;
use words::{Usage, Words};

const HELP: &str = "\
cargo xtask <command>

  test [--long]     everything that must hold before a change is merged; --long takes hours, not minutes
  clients           real clients against the program, in networks of their own; a step of test
  api               requests that nobody thought of, put to the operator API by its own document; a step of test
  azure             az and the clients of Azure for Python and JavaScript against the program; a step of test
  agent             agents in networks of their own against the program, and its recipes; a step of test
  disks             power cuts, full disks and damaged files against the journal; steps of test
  deb               Debian packages of the server and of the agent, tried out; with the build of the tests a step of test
  tidy              checks sources, manifests and documents against each other
        [--write]     first writes the table of packages in ARCHITECTURE.md
        [--report [--json]]  instead prints measures of the code, each with its goal
  bench core        what a command costs, at a thousand machines and at a million
  bench metadata    what a poll costs, beside nginx answering the same bytes; two minutes
  bench hostile     what a machine that means no good costs its neighbours; two minutes
  bench agent       what an agent costs its machine, and how fast it is; four minutes
        [--save]      of all: and writes it to bench/RESULTS.md
        [--program FILE]  of metadata: measures that build of forewarn
  fuzz [TARGET]     bytes that nobody thought of, put to everything that takes bytes from strangers
        [--seconds N] for each target, from a random seed; 60 unless said
        [--fixed]     the seed and the runs of the test command: the same inputs each time
  mutants           changes the rules at random places: how many changes do the tests notice?
        [--sample N]  about N mutants, spread evenly
        [--shard K/N] the K-th of N parts, counted from 0
        [--jobs N]    that many at a time
  break [WORDS]     breaks each rule in a known way: does its test fail? Or only those with WORDS in file, test or reason

Exit code: 0 done, 1 failed, 2 not understood. With CI=true, a check that could not be made has failed.";

fn main() -> ExitCode {
    let outcome = run(Words::new(std::env::args().skip(1)));
    match outcome {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Skipped(why)) if !steps::skips_are_failures() => {
            eprintln!("skipped: {why}");
            ExitCode::SUCCESS
        }
        Ok(Outcome::Failed(why) | Outcome::Skipped(why)) => {
            eprintln!("failed: {why}");
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("{problem:#}");
            ExitCode::from(if problem.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn run(mut words: Words) -> Result<Outcome> {
    let Some(command) = words.next() else {
        println!("{HELP}");
        return Ok(Outcome::Passed);
    };
    match command.as_str() {
        "test" => suite::command(words),
        "clients" => words.done().and_then(|()| suite::run_real_clients()),
        "api" => words.done().and_then(|()| api::command()),
        "azure" => words.done().and_then(|()| azure::command()),
        "agent" => words.done().and_then(|()| agent::command()),
        "disks" => words.done().and_then(|()| suite::run_disks()),
        "deb" => words.done().and_then(|()| deb::run(deb::Build::Release)),
        "tidy" => tidy::command(words),
        "bench" => bench::command(words),
        "fuzz" => fuzz::command(words),
        "mutants" => mutants::command(words),
        "break" => breakages::command(words),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(Outcome::Passed)
        }
        _ => Err(Usage::unknown(&command).into()),
    }
}
