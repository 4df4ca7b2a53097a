//! `cargo xtask bench metadata`: the cost of a poll, compared with nginx sending the same bytes.
//!
//! Both servers run at the same time and get requests in turn, so that other load affects both. The report compares the
//! halves of a round and shows the median ratio over the rounds. CPU time is the steadiest figure: the kernel counts it
//! over all threads of a server.
//!
//! ```text
//!   core A: one thread of forewarn, one worker of nginx      core B: the program that polls
//!   round:  [ polls of forewarn | polls of nginx ] [ polls of forewarn | polls of nginx ] …
//! ```
//!
//! Everything is on loopback, and bounded in count and in time.

pub(in crate::bench) mod cores;
pub(in crate::bench) mod forewarn;
pub(in crate::bench) mod kernel;
mod nginx;
mod report;
mod response;
pub(in crate::bench) mod rounds;
pub(in crate::bench) mod server;
pub(in crate::bench) mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;
use crate::unpacked;
use crate::words::{Usage, Words};

use cores::{Cores, CpuPlacement};
use forewarn::Forewarn;
use kernel::Busy;
use response::Response;

use report::{BenchSetup, Memory, PollReport};
use rounds::{Bench, ConnectionMode, Deadline, Pair, PollRow, Polling};
use server::Server;

/// Its section in the results.
const NAME: &str = "metadata";
/// Everything but the builds.
const TIME_MAX: Duration = Duration::from_secs(165);
const STARTS: usize = 11;

const KEPT_64: Polling =
    Polling { title: "64 connections", connections: 64, mode: ConnectionMode::KeepAlive };
const KEPT_512: Polling =
    Polling { title: "512 connections", connections: 512, mode: ConnectionMode::KeepAlive };
const PER_REQUEST: Polling = Polling {
    title: "a connection per request, 64 at a time",
    connections: 64,
    mode: ConnectionMode::PerRequest,
};
const EVERYWHERE: Polling =
    Polling { title: "512 connections, on all cores", connections: 512, mode: ConnectionMode::KeepAlive };

pub(super) fn command(mut words: Words) -> Result<Outcome> {
    let (mut keep, mut program) = (Keep::Nothing, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--save" => keep = Keep::Save,
            "--program" => {
                let parse = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_file());
                program = Some(words.value("--program", parse, "a file, built from crates/forewarn")?);
            }
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    run(keep, program)
}

/// Measures that program, or the one of this tree.
pub(super) fn run(keep: Keep, program: Option<PathBuf>) -> Result<Outcome> {
    let (cores, nginx) = match find_needed() {
        Ok(needed) => needed,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let root = tree::root()?;
    let program = match program {
        Some(program) => program.canonicalize()?,
        None => build(&root, &["--package", "forewarn", "--bin", "forewarn"])?,
    };
    let poll = build(&root, &["--package", "forewarn-bench", "--bin", "poll"])?;
    let setup = BenchSetup {
        machine: results::machine(),
        kernel: kernel::release(),
        nginx: nginx::version(&nginx)?,
        cores,
        load: kernel::load(),
    };
    let bench = MetadataBench { forewarn: Forewarn { program }, nginx, poll, cores };
    let report = bench.measure(setup)?;
    println!("{}", report.text());
    match keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

/// The requirements that cannot be built here. Without them, nothing can be measured.
fn find_needed() -> Result<(Cores, PathBuf)> {
    Busy::read(&[std::process::id()])?;
    Ok((cores::allowed()?, unpacked::NGINX.find_or_unpack()?))
}

pub(in crate::bench) fn build(root: &Path, words: &[&str]) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(root).args(["build", "--release", "--locked"]).args(words);
    built_program(&mut command).with_context(|| format!("cannot build: {}", words.join(" ")))
}

/// The programs and their cores.
struct MetadataBench {
    forewarn: Forewarn,
    nginx: PathBuf,
    poll: PathBuf,
    cores: Cores,
}

impl MetadataBench {
    fn measure(&self, setup: BenchSetup) -> Result<PollReport> {
        let deadline = Deadline(Instant::now() + TIME_MAX);
        let starts = (0..STARTS).map(|_| self.forewarn.time_to_first_response()).collect::<Result<_>>()?;
        let (server, generator) = self.cores.apart();
        let mut memory = Memory::default();
        let polls = [KEPT_64, KEPT_512, PER_REQUEST];
        let mut rows = self.measure_pair(Pair { server, generator }, &polls, deadline, &mut memory)?;
        // With one core, the measurement above used all cores.
        if self.cores.count() > 1 {
            let everywhere = CpuPlacement::Anywhere { cores: self.cores.count() };
            let pair = Pair { server: everywhere, generator: everywhere };
            rows.extend(self.measure_pair(pair, &[EVERYWHERE], deadline, &mut memory)?);
        }
        Ok(PollReport { setup, rows, starts, memory })
    }

    /// Starts both servers and runs each kind of polling.
    fn measure_pair(
        &self,
        pair: Pair,
        pollings: &[Polling],
        deadline: Deadline,
        memory: &mut Memory,
    ) -> Result<Vec<PollRow>> {
        let forewarn = self.forewarn.start(pair.server)?;
        memory.see_start(forewarn.resident_bytes()?);
        let response = Response::get(forewarn.at())?;
        let nginx = nginx::start(&self.nginx, &response, pair.server)?;
        check_same(&response, &nginx)?;
        let bench =
            Bench { poll: &self.poll, generator: pair.generator, servers: [&forewarn, &nginx], deadline };
        let rows = pollings.iter().map(|polling| bench.row(*polling)).collect::<Result<_>>()?;
        memory.see_load(forewarn.resident_bytes()?);
        Ok(rows)
    }
}

/// The comparison needs equal responses.
fn check_same(response: &Response, nginx: &Server) -> Result<()> {
    let other = Response::get(nginx.at())?;
    anyhow::ensure!(response.is_like(&other), "nginx sends another response: {other:?}, not {response:?}");
    Ok(())
}
