//! `cargo xtask bench agent`: what an agent costs the machine that it runs on, and how fast it is.
//!
//! The real program, as it is given away, against an endpoint that is made here ([`endpoint`]): it answers what a server would, and
//! knows when it did.
//!
//! ```text
//!   at rest:  one poll a second, no long poll, hooks in its settings    ──▶ time on a processor, memory
//!   at work:  an event is announced to a long poll ──▶ the hook writes to a pipe, 200 times
//!             └────────────── this time is what counts ──────────────┘
//! ```
//!
//! Everything is on loopback, and bounded in count and in time.

mod endpoint;
mod program;
mod report;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::metadata::kernel::{self, Busy};
use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;

use endpoint::{Endpoint, Style};
use program::{Agent, Workplace};
use report::{Latency, Report, Rest};

/// Its section in the results.
const NAME: &str = "agent";
/// An agent that has just started has something to do.
const SETTLE_TIME: Duration = Duration::from_secs(10);
const REST_TIME: Duration = Duration::from_secs(120);
const EVENTS: usize = 250;
/// The first ones find nothing in any cache.
const WARM_UP_EVENTS: usize = 10;

pub(super) fn run(keep: Keep) -> Result<Outcome> {
    if let Err(problem) = Busy::read(&[std::process::id()]) {
        return Ok(Outcome::Skipped(format!("{problem:#}")));
    }
    let root = tree::root()?;
    let mut build = cargo();
    build.current_dir(&root).args(["build", "--locked", "--profile", "agent", "--package", "forewarn-agent"]);
    let program = built_program(&mut build).context("cannot build the agent")?;
    let setting = format!("{}, {}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let report = Report {
        setting,
        program_bytes: std::fs::metadata(&program)?.len(),
        rest: rest(&program)?,
        latency: work(&program)?,
    };
    println!("{}", report.text());
    match keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

/// What it costs while nothing happens.
fn rest(program: &Path) -> Result<Rest> {
    eprintln!("at rest: {} s with one poll a second", (SETTLE_TIME + REST_TIME).as_secs());
    let endpoint = Endpoint::start(Style::Plain)?;
    let workplace = Workplace::new()?;
    let agent = Agent::start(program, &workplace, endpoint.at())?;
    std::thread::sleep(SETTLE_TIME);
    let (polls, busy, begin) = (endpoint.polls(), agent.busy()?, Instant::now());
    let instructions = count_instructions(agent.id(), REST_TIME);
    // Where nobody counts, time passes all the same.
    std::thread::sleep(REST_TIME.saturating_sub(begin.elapsed()));
    let (time, busy) = (begin.elapsed(), agent.busy()?.since(&busy));
    let polls = endpoint.polls() - polls;
    ensure!(polls > 0, "the agent does not poll\n{}", agent.log());
    Ok(Rest {
        time,
        polls,
        busy: Duration::from_nanos(busy),
        instructions,
        resident_bytes: agent.resident_bytes()?,
    })
}

/// How fast it is when something is announced.
fn work(program: &Path) -> Result<Latency> {
    eprintln!("at work: {EVENTS} events");
    let endpoint = Endpoint::start(Style::LongPoll)?;
    let workplace = Workplace::new()?;
    let mut pipe = workplace.pipe()?;
    let agent = Agent::start(program, &workplace, endpoint.at())?;
    let mut times = Vec::new();
    for number in 0..WARM_UP_EVENTS + EVENTS {
        let id = format!("{number:08X}-0000-4000-8000-000000000000");
        let sent = endpoint.announce(&id).with_context(|| agent.log())?;
        let (heard, line) = pipe.next().with_context(|| agent.log())?;
        ensure!(line == id, "the hook was run for another event: {line}, not {id}");
        endpoint.end(&id).with_context(|| agent.log())?;
        if number >= WARM_UP_EVENTS {
            times.push(heard.saturating_duration_since(sent));
        }
    }
    Latency::of(times, agent.resident_bytes()?).context("nothing was measured")
}

/// Instructions of a process in some time, where the kernel lets them be counted.
fn count_instructions(process: u32, time: Duration) -> Option<u64> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ";", "--event", "instructions", "--pid", &process.to_string()]);
    perf.args(["--", "sleep", &time.as_secs().to_string()]).stdin(Stdio::null());
    parse_instructions(&String::from_utf8_lossy(&perf.output().ok()?.stderr))
}

/// The number before the name of what was counted; perf says in words where it could not count.
fn parse_instructions(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(";instructions"))?;
    line.split(';').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_or_not() {
        assert_eq!(parse_instructions("\n1234;;instructions;120;100.00;;\n"), Some(1_234));
        assert_eq!(parse_instructions("<not supported>;;instructions;0;100.00;;\n"), None);
        assert_eq!(parse_instructions(""), None);
    }
}
