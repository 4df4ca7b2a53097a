//! Rounds of faults. The machines stay for ten rounds, so that notices end in later rounds.
//!
//! `FOREWARN_MACHINES_FIRST` is the seed of the first round, and `FOREWARN_MACHINES_ROUNDS` the number of rounds.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use forewarn_testkit::Random;

use super::clients::{Clients, Record};
use super::faults;
use super::history::{History, Since};
use super::site::{MachineSite, spot_fleet};

/// Rounds without a variable.
const ROUNDS: u64 = 10;

/// Rounds on the same machines.
const ROUNDS_PER_SITE: usize = 10;

fn variable(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("not a number: {name}={text}")))
}

/// promise: D1
#[test]
#[ignore = "needs root and packages; `cargo xtask machines` runs it"]
fn nothing_is_lost_early_or_done_twice_on_three_machines_under_faults() {
    let first = variable("FOREWARN_MACHINES_FIRST", 1);
    let rounds = variable("FOREWARN_MACHINES_ROUNDS", ROUNDS);
    let seeds: Vec<_> = (first..first + rounds).collect();
    seeds.chunks(ROUNDS_PER_SITE).for_each(run_rounds);
}

fn run_rounds(seeds: &[u64]) {
    let mut site = MachineSite::start(&mut Random::new(seeds[0]), spot_fleet());
    let record = Record::new();
    let guests = Clients::guests(&site, &record, seeds[0]);
    for seed in seeds {
        let begin = Instant::now();
        run_round(&mut site, &record, *seed);
        println!("round {seed}: {:.1} s", begin.elapsed().as_secs_f32());
    }
    guests.end();
}

fn run_round(site: &mut MachineSite, record: &Record, seed: u64) {
    let faults = faults::choose(seed);
    faults.iter().for_each(|fault| println!("round {seed}: {fault}"));
    let begin = record.now();
    let operators = Clients::operators(site, record, (&format!("r{seed}"), seed));
    faults::carry_out(site, &faults);
    operators.end();
    let end = Instant::now();
    let healed =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| site.heal(&format!("round-{seed}"))));
    if let Err(problem) = healed {
        let kept = keep(site, &record.copy(), seed, &["no recovery".to_owned()]);
        eprintln!("round {seed}: no recovery; logs: {}", kept.display());
        std::panic::resume_unwind(problem);
    }
    let recovery = end.elapsed().as_secs_f32();
    let mut history = record.copy();
    let newest = history.writes.iter().filter_map(|write| write.answer?.entry).max().unwrap_or(0);
    history.effects_before_logs = site.effects().len();
    history.logs = site.logs(newest);
    history.effects = site.effects();
    let mut violations = history.violations();
    let is_well = |server: usize| !faults.iter().any(|fault| fault.is_of_process(server));
    violations.extend(history.unanswered(begin, is_well));
    violations.extend(site.panics());
    if !violations.is_empty() {
        let kept = keep(site, &history, seed, &violations);
        panic!(
            "round {seed}: {} violations, the first: {}\n  kept: {}",
            violations.len(),
            violations[0],
            kept.display()
        );
    }
    let gap = longest_gap(&history, begin).as_secs_f32();
    println!(
        "round {seed}: longest time without a write {gap:.1} s, recovered in {recovery:.1} s; {}",
        summary(&history)
    );
}

/// The longest time between the answers to two writes, from a time on.
fn longest_gap(history: &History, from: Since) -> Since {
    let mut answers: Vec<_> = history.writes.iter().filter_map(|write| Some(write.answer?.at)).collect();
    answers.retain(|at| *at >= from);
    answers.sort_unstable();
    let gaps = answers.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap_or_default()
}

fn summary(history: &History) -> String {
    let acknowledged = history.writes.iter().filter(|write| write.answer.is_some()).count();
    let reads = history.host_reads.len() + history.log_reads.len();
    let events =
        history.logs[0].iter().filter(|entry| entry.kind == "started" && !entry.events.is_empty()).count();
    format!(
        "so far {acknowledged} writes acknowledged of {}, {reads} reads, {} documents, {events} events started, {} actions",
        history.writes.len(),
        history.sightings.len(),
        history.effects.len()
    )
}

/// Writes the history and the logs of all servers into a directory.
fn keep(site: &MachineSite, history: &History, seed: u64, violations: &[String]) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("forewarn-machines-{}-round-{seed}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("violations"), violations.join("\n")).unwrap();
    fs::write(directory.join("history"), format!("{history:#?}")).unwrap();
    site.keep(&directory);
    directory
}
