//! `cargo xtask bench streams`: durable commands in several clusters, and the effect of one cluster on another.
//!
//! `forewarn serve` stores its data on disk. The report has two tables:
//!
//! ```text
//!   commands:      64 clients ──▶ 1, 4 or 16 clusters
//!   interference:  4 clients ──▶ one cluster, [ alone | while another cluster applies a large fleet ] …
//! ```
//!
//! With `--base FILE` another build of the program runs beside this one, and both get requests in turn, so that other
//! load affects both.
//!
//! Everything is on loopback, and bounded in count and in time.

mod load;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::metadata::{build, kernel};
use super::{Keep, results};
use crate::steps::Outcome;
use crate::tree;
use crate::words::{Usage, Words};

use load::LoadedServer;
use report::{CommandRow, InterferenceRow, PerBuild, StreamsReport};

/// Its section in the results.
const NAME: &str = "streams";
const ROUNDS: usize = 3;
/// Rounds with an apply: each is short, and its slowest commands differ from round to round.
const APPLY_ROUNDS: usize = 9;
const CLIENTS: u32 = 64;
const CLUSTERS: [u32; 3] = [1, 4, 16];
/// Clients in one cluster, while another one applies a fleet.
const CLIENTS_BESIDE: u32 = 4;
/// The fleet consists of blocks of so many VMs.
const MACHINES_PER_BLOCK: u32 = 1_000;
const MACHINES_MAX: u32 = 1_000_000;
const SECONDS_MAX: u64 = 600;

/// The options of the benchmark.
pub(super) struct StreamsOptions {
    keep: Keep,
    /// The measured program, instead of the one of this tree.
    program: Option<PathBuf>,
    /// The program that it is compared with.
    base: Option<PathBuf>,
    /// The existing fleet.
    machines: u32,
    /// VMs that join in one request.
    added: u32,
    /// The time of one measurement.
    time: Duration,
}

impl Default for StreamsOptions {
    fn default() -> Self {
        Self {
            keep: Keep::Nothing,
            program: None,
            base: None,
            machines: 100_000,
            added: 10_000,
            time: Duration::from_secs(5),
        }
    }
}

impl StreamsOptions {
    fn read(mut words: Words) -> Result<Self> {
        let file = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_file());
        let machines = |text: &str| {
            let number = text.parse().ok().filter(|number| (1..=MACHINES_MAX).contains(number));
            number.filter(|number: &u32| number.is_multiple_of(MACHINES_PER_BLOCK))
        };
        let seconds = |text: &str| text.parse().ok().filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
        let blocks = "a multiple of 1000, at most 1000000";
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--save" => options.keep = Keep::Save,
                "--program" => {
                    options.program = Some(words.value(&word, file, "a build of crates/forewarn")?);
                }
                "--base" => options.base = Some(words.value(&word, file, "a build of crates/forewarn")?),
                "--machines" => options.machines = words.value(&word, machines, blocks)?,
                "--added" => options.added = words.value(&word, machines, blocks)?,
                "--seconds" => {
                    options.time =
                        Duration::from_secs(words.value(&word, seconds, "a number from 1 to 600")?);
                }
                _ => return Err(Usage::unknown(&word).into()),
            }
        }
        Ok(options)
    }
}

pub(super) fn command(words: Words) -> Result<Outcome> {
    run(&StreamsOptions::read(words)?)
}

pub(super) fn run(options: &StreamsOptions) -> Result<Outcome> {
    let root = tree::root()?;
    let program = match &options.program {
        Some(program) => program.canonicalize()?,
        None => build(&root, &["--package", "forewarn", "--bin", "forewarn"])?,
    };
    let base = options.base.as_deref().map(Path::canonicalize).transpose()?;
    let clients = build(&root, &["--package", "forewarn-bench", "--bin", "streams"])?;
    let setting = format!("{}, {}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let bench = StreamsBench { programs: PerBuild { new: program, base }, clients, options };
    let report = StreamsReport {
        setting,
        machines: options.machines,
        added: options.added,
        commands: CLUSTERS.into_iter().map(|clusters| bench.commands(clusters)).collect::<Result<_>>()?,
        interference: bench.interference()?,
    };
    println!("{}", report.text());
    match options.keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

struct StreamsBench<'a> {
    programs: PerBuild<PathBuf>,
    clients: PathBuf,
    options: &'a StreamsOptions,
}

impl StreamsBench<'_> {
    /// The commands of all clients, spread evenly over the clusters.
    fn commands(&self, clusters: u32) -> Result<CommandRow> {
        let time = self.options.time;
        eprintln!("clusters: {clusters}; {ROUNDS} rounds of {} s for each build", time.as_secs());
        let builds = self.start(clusters, CLIENTS)?;
        builds.each(LoadedServer::warm_up)?;
        let rounds = (0..ROUNDS).map(|_| builds.each(|server| server.commands(time)));
        Ok(CommandRow { clusters, rounds: rounds.collect::<Result<_>>()? })
    }

    /// The commands of a few clients, while another cluster does nothing, and while it applies a fleet.
    fn interference(&self) -> Result<InterferenceRow> {
        let StreamsOptions { machines, added, time, .. } = *self.options;
        let builds = self.start(1, CLIENTS_BESIDE)?;
        builds.each(LoadedServer::warm_up)?;
        let before = builds.each(|server| server.commands(time))?;
        eprintln!("a fleet of {machines} machines for each build");
        builds.each(|server| server.build_fleet(machines))?;
        eprintln!(
            "{APPLY_ROUNDS} rounds of {} s without an apply of {added} machines, and with it",
            time.as_secs()
        );
        let mut rounds = Vec::new();
        let mut first = machines;
        for _ in 0..APPLY_ROUNDS {
            rounds.push(builds.each(|server| server.interference(time, first, added))?);
            first += added;
        }
        Ok(InterferenceRow { before, rounds })
    }

    /// Starts each build, with clusters for that many clients.
    fn start(&self, clusters: u32, clients: u32) -> Result<PerBuild<LoadedServer<'_>>> {
        self.programs.each(|program| LoadedServer::start(program, &self.clients, clusters, clients))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<StreamsOptions> {
        StreamsOptions::read(Words::new(line.split_whitespace().map(str::to_owned)))
    }

    #[test]
    fn options_have_defaults_and_limits() {
        let options = read("").unwrap();
        assert_eq!((options.machines, options.added, options.time.as_secs()), (100_000, 10_000, 5));
        let options = read("--machines 2000 --added 1000 --seconds 1 --save").unwrap();
        assert_eq!((options.machines, options.added, options.time.as_secs()), (2_000, 1_000, 1));
        assert_eq!(options.keep, Keep::Save);
        for wrong in ["--machines 1500", "--added 0", "--seconds 601", "--base /none", "--base", "--fast"] {
            assert!(read(wrong).is_err_and(|problem| problem.is::<Usage>()), "{wrong}");
        }
    }
}
