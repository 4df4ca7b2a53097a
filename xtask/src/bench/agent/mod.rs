//! `cargo xtask bench agent`: resources and latency of an agent.
//!
//! The release build of the agent runs against an endpoint that records the time of its responses ([`endpoint`]).
//!
//! ```text
//!   at rest:  one poll a second, no long poll, hooks in its settings    ──▶ time on a processor, memory
//!   at work:  an event is announced to a long poll ──▶ the hook writes to a pipe, 200 times
//!             └───────────────── the measured time ─────────────────┘
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
use program::{Agent, AgentDirectory};
use report::{AgentReport, HookLatency, Rest};

/// Its section in the results.
const NAME: &str = "agent";
/// The time that an agent needs to start.
const SETTLE_TIME: Duration = Duration::from_secs(10);
const REST_TIME: Duration = Duration::from_secs(120);
const EVENTS: usize = 250;
/// Events that fill the caches and do not count.
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
    let report = AgentReport {
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

/// Measures an agent without events.
fn rest(program: &Path) -> Result<Rest> {
    eprintln!("at rest: {} s with one poll a second", (SETTLE_TIME + REST_TIME).as_secs());
    let endpoint = Endpoint::start(Style::Plain)?;
    let directory = AgentDirectory::new()?;
    let agent = Agent::start(program, &directory, endpoint.at())?;
    std::thread::sleep(SETTLE_TIME);
    let (polls, busy, begin) = (endpoint.polls(), agent.busy()?, Instant::now());
    let instructions = count_instructions(agent.id(), REST_TIME);
    // Without perf, the time passes here.
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

/// Measures the time from announcement to hook.
fn work(program: &Path) -> Result<HookLatency> {
    eprintln!("at work: {EVENTS} events");
    let endpoint = Endpoint::start(Style::LongPoll)?;
    let directory = AgentDirectory::new()?;
    let mut pipe = directory.pipe()?;
    let agent = Agent::start(program, &directory, endpoint.at())?;
    let mut times = Vec::new();
    for number in 0..WARM_UP_EVENTS + EVENTS {
        let id = format!("{number:08X}-0000-4000-8000-000000000000");
        let sent = endpoint.announce(&id).with_context(|| agent.log())?;
        let (heard, line) = pipe.next().with_context(|| agent.log())?;
        ensure!(line == id, "the hook ran for another event: {line}, not {id}");
        endpoint.end(&id).with_context(|| agent.log())?;
        if number >= WARM_UP_EVENTS {
            times.push(heard.saturating_duration_since(sent));
        }
    }
    HookLatency::of(times, agent.resident_bytes()?).context("nothing was measured")
}

/// Instructions of a process, where the kernel allows counting.
fn count_instructions(process: u32, time: Duration) -> Option<u64> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ";", "--event", "instructions", "--pid", &process.to_string()]);
    perf.args(["--", "sleep", &time.as_secs().to_string()]).stdin(Stdio::null());
    parse_instructions(&String::from_utf8_lossy(&perf.output().ok()?.stderr))
}

/// The number before the name of the counter. None where perf prints a text instead.
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
