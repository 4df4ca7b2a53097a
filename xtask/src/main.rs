//! The development commands of this repository: `cargo xtask …`.
//!
//! They check formatting, lints, tests and documents, run benchmarks, and mutate and break the rules to see that tests
//! fail. They need only cargo; git, nextest, valgrind and nginx are used where they are installed.

mod agent;
mod api;
mod azure;
mod bench;
mod breakages;
mod dashboard;
mod deb;
mod docs;
mod environments;
mod fuzz;
mod installs;
mod libvirt;
mod machines;
mod markdown;
mod monitoring;
mod mutants;
mod packages;
mod plan;
mod plugins;
mod ports;
mod progress;
mod properties;
mod steps;
mod suite;
mod texts;
mod tidy;
mod tools;
mod tree;
mod units;
mod unpacked;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use steps::Outcome;
use words::{Usage, Words};

const HELP: &str = "\
cargo xtask <command>

  test [--long]     run every check that a change must pass; --long takes hours, not minutes. Prints first what it
                    will install, how much, and how long it takes; asks on a terminal
        [--plan]      print only that
        [--only TEXT] run only the steps with TEXT in their name
        [--resume]    with --long: go on with the steps that have not passed since the last whole run was begun
  docs              build the documentation site in target/book, check its links, and run the guides
  clients           run real clients against the program, each in its own network; a step of test
  api               send requests generated from its OpenAPI document to the operator API; a step of test
  azure             run az and the Azure clients for Python and JavaScript against the program; a step of test
  agent             run agents, each in its own network, and the recipes against the program; a step of test
  plugins           run the plugins for pytest, node and Jest, and the files of the guide for CI; a step of test
  dashboard         run the tests of the dashboard in Chromium; a step of test. --pictures instead takes the pictures of
                    the guide, and of every page in every state, in target/dashboard/review
  libvirt           run the virsh driver with a libvirtd and guests of its own; a step of test
  machines          run three servers on etcd, each in its own network, under faults, and check every answer; run az,
                    Pacemaker's agent and curl while a server is killed; a step of test
        [--rounds N]  the number of rounds [default: 10]
        [--first N]   only rounds, from this seed on [default: 1, and the clients]
  disks             test the journal with power cuts, full disks and damaged files; steps of test
  costs             count instructions and allocations of commands, joining VMs and polls with valgrind; a step of test
  monitoring        check the alerts and the dashboard with promtool, and run the tests of the alerts; a step of test
  deb               build and check the Debian packages of server and agent; a step of test with the build of the tests
      [--check]         check packages with the build of the tests, and keep none
  tidy              check sources, manifests and documents against each other
        [--write]     first write the table of packages in ARCHITECTURE.md and the index of tests
        [--report [--json]]  print measures of the code with their goals instead
  texts help|logs|errors  prints every help text, log message or error message, to proofread them
  bench core        measure the cost of a command, with a thousand VMs and with a million
  bench rollout     measure a rolling update of every host, and count the instructions of each completion
  bench story       measure a story with 10,000 VMs and 1,000 events, in the rules
  bench metadata    measure the cost of a poll, compared with nginx sending the same bytes; two minutes
  bench hostile     measure how much a hostile VM slows down the others; two minutes
  bench agent       measure the resources and the latency of an agent; four minutes
  bench realm       measure three servers on three members of etcd: gaps, commits, takeovers, an outage; ten minutes
  bench streams     measure durable commands in several clusters, also beside an apply of a large fleet; four minutes
        [--base FILE] compare with that build of forewarn, in turn
        [--machines N] [--added M]  the large fleet, and the machines that join it [default: 100000, 10000]
        [--seconds T] the time of each measurement [default: 5]
  bench fleet       measure fleets of a thousand VMs to a million: apply, start, memory, requests beside other work
        [--machines N,…]  only fleets of these sizes [default: 1000,10000,100000,1000000]
        [--only PART]  apply, start, audit, names, beside, watchers, polls or rollouts
        [--save]      also write the results to bench/RESULTS.md
        [--program FILE]  metadata, streams and fleet only: measure that build of forewarn
  bench dashboard   measure the work of a browser with 10,000 VMs during a rollout, and the cost for the server
  fuzz [TARGET]     fuzz every parser of untrusted bytes, or one of them
        [--seconds N] for each target, from a random seed [default: 60]
        [--fixed]     use the seed and number of runs of the test command: the same inputs each time
  mutants           mutate the rules and count the mutants that the tests catch
        [--sample N]  try about N mutants, spread evenly
        [--shard K/N] try the K-th of N parts, counted from 0
        [--jobs N]    run N at a time
  break [WORDS]     break each rule in a known way and expect its test to fail; only those with WORDS in file, test or reason

  --no-install      with any command: install nothing, and skip what needs it

Exit code: 0 passed, 1 failed, 2 invalid command line. With CI=true, a skipped check has failed.";

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
    if words.take_option(installs::OPTION) {
        installs::refuse();
    }
    let command = words.next().filter(|_| !words.ask_for_help());
    let Some(command) = command else {
        println!("{HELP}");
        return Ok(Outcome::Passed);
    };
    match command.as_str() {
        "test" => suite::command(words),
        "clients" => words.done().and_then(|()| suite::run_real_clients()),
        "api" => words.done().and_then(|()| api::command()),
        "azure" => words.done().and_then(|()| azure::command()),
        "agent" => words.done().and_then(|()| agent::command()),
        "plugins" => words.done().and_then(|()| plugins::command()),
        "dashboard" => dashboard::command(words),
        "libvirt" => words.done().and_then(|()| libvirt::command()),
        "machines" => machines::command(words),
        "disks" => words.done().and_then(|()| suite::run_disks()),
        "costs" => words.done().and_then(|()| suite::count_costs()),
        "monitoring" => words.done().and_then(|()| monitoring::check()),
        "docs" => words.done().and_then(|()| docs::command()),
        "deb" => deb::command(words),
        "tidy" => tidy::command(words),
        "texts" => texts::command(words),
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
