//! `cargo xtask bench metadata`: what a poll costs, beside nginx answering the same bytes.
//!
//! Both servers run at the same time, and rounds take turns, so that whatever else the machine does meets both. What is
//! compared is the two halves of a round; the ratio that is shown is the median over the rounds. Time on the processor is
//! the steadiest figure: it is counted by the kernel, over all threads of a server.
//!
//! ```text
//!   core A: one thread of forewarn, one worker of nginx      core B: the program that polls
//!   round:  [ forewarn is asked | nginx is asked ] [ forewarn is asked | nginx is asked ] …
//! ```
//!
//! Everything is on loopback, and bounded in count and in time.

mod answer;
mod cores;
mod forewarn;
mod kernel;
mod nginx;
mod report;
mod rounds;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tools;
use crate::tree;
use crate::words::{Usage, Words};

use answer::Answer;
use cores::{Cores, Place};
use forewarn::Forewarn;
use kernel::Busy;

use report::{Facts, Memory, Report};
use rounds::{Bench, Deadline, Mode, Pair, Polling, Row};
use server::Server;

/// Its section in the results.
const NAME: &str = "metadata";
/// Everything but the builds.
const TIME_MAX: Duration = Duration::from_secs(165);
const STARTS: usize = 11;

const KEPT_64: Polling = Polling { title: "64 connections", connections: 64, mode: Mode::KeepAlive };
const KEPT_512: Polling = Polling { title: "512 connections", connections: 512, mode: Mode::KeepAlive };
const PER_REQUEST: Polling =
    Polling { title: "a connection per request, 64 at a time", connections: 64, mode: Mode::PerRequest };
const EVERYWHERE: Polling =
    Polling { title: "512 connections, on all cores", connections: 512, mode: Mode::KeepAlive };

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
    let facts = Facts {
        machine: results::machine(),
        kernel: kernel::release(),
        nginx: nginx::version(&nginx)?,
        cores,
        load: kernel::load(),
    };
    let workplace = Workplace { forewarn: Forewarn { program }, nginx, poll, cores };
    let report = workplace.measure(facts)?;
    println!("{}", report.text());
    match keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

/// What cannot be built here. Without it, nothing can be measured.
fn find_needed() -> Result<(Cores, PathBuf)> {
    Busy::read(&[std::process::id()])?;
    Ok((cores::allowed()?, tools::find_or_unpack_nginx()?))
}

fn build(root: &Path, words: &[&str]) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(root).args(["build", "--release", "--locked"]).args(words);
    built_program(&mut command).with_context(|| format!("cannot build: {}", words.join(" ")))
}

/// The programs, and where they run.
struct Workplace {
    forewarn: Forewarn,
    nginx: PathBuf,
    poll: PathBuf,
    cores: Cores,
}

impl Workplace {
    fn measure(&self, facts: Facts) -> Result<Report> {
        let deadline = Deadline(Instant::now() + TIME_MAX);
        let starts = (0..STARTS).map(|_| self.forewarn.time_to_first_answer()).collect::<Result<_>>()?;
        let (server, generator) = self.cores.apart();
        let mut memory = Memory::default();
        let polls = [KEPT_64, KEPT_512, PER_REQUEST];
        let mut rows = self.measure_pair(Pair { server, generator }, &polls, deadline, &mut memory)?;
        // With one core, all cores are what has just been measured.
        if self.cores.count() > 1 {
            let everywhere = Place::Anywhere { cores: self.cores.count() };
            let pair = Pair { server: everywhere, generator: everywhere };
            rows.extend(self.measure_pair(pair, &[EVERYWHERE], deadline, &mut memory)?);
        }
        Ok(Report { facts, rows, starts, memory })
    }

    /// Starts both servers, and puts each kind of polling to them.
    fn measure_pair(
        &self,
        pair: Pair,
        pollings: &[Polling],
        deadline: Deadline,
        memory: &mut Memory,
    ) -> Result<Vec<Row>> {
        let forewarn = self.forewarn.start(pair.server)?;
        memory.see_start(forewarn.resident_bytes()?);
        let answer = Answer::get(forewarn.at())?;
        let nginx = nginx::start(&self.nginx, &answer, pair.server)?;
        check_same(&answer, &nginx)?;
        let bench =
            Bench { poll: &self.poll, generator: pair.generator, servers: [&forewarn, &nginx], deadline };
        let rows = pollings.iter().map(|polling| bench.row(*polling)).collect::<Result<_>>()?;
        memory.see_load(forewarn.resident_bytes()?);
        Ok(rows)
    }
}

/// Nobody is compared with a server that says something else.
fn check_same(answer: &Answer, nginx: &Server) -> Result<()> {
    let other = Answer::get(nginx.at())?;
    anyhow::ensure!(answer.is_like(&other), "nginx answers something else: {other:?}, not {answer:?}");
    Ok(())
}
