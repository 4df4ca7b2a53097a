//! Rounds: each server gets requests for a while, then the other one.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::cores::CpuPlacement;
use super::server::Server;

const ROUNDS: usize = 7;
/// Fewer rounds are not significant.
const ROUNDS_MIN: usize = 3;
const ROUND_TIME: Duration = Duration::from_secs(2);
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// The extra time that the program that polls may take.
const GRACE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A way to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Polling {
    pub(super) title: &'static str,
    pub(super) connections: u32,
    pub(super) mode: ConnectionMode,
}

/// The lifetime of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionMode {
    /// Many requests.
    KeepAlive,
    /// One request.
    PerRequest,
}

/// The cores of the servers and of the program that polls them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) server: CpuPlacement,
    pub(super) generator: CpuPlacement,
}

/// No round begins after this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Instant);

/// Two servers, and the program that polls them.
pub(super) struct Bench<'a> {
    pub(super) poll: &'a Path,
    pub(super) generator: CpuPlacement,
    /// Forewarn, and the server for comparison.
    pub(super) servers: [&'a Server; 2],
    pub(super) deadline: Deadline,
}

/// All rounds of one way to poll.
pub(super) struct PollRow {
    pub(super) polling: Polling,
    pub(super) rounds: Vec<PollRound>,
}

/// The samples of both servers, taken one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollRound {
    pub(super) ours: Sample,
    pub(super) theirs: Sample,
}

/// The figures of one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) requests_per_second: f64,
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
    /// CPU time of the server for each request.
    pub(super) cpu_microseconds: f64,
    /// CPU use of the program that polls: at 100, it was the bottleneck.
    pub(super) generator_percent: f64,
    pub(super) answer_bytes: u64,
}

impl ConnectionMode {
    fn word(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive",
            Self::PerRequest => "per-request",
        }
    }
}

impl Bench<'_> {
    pub(super) fn row(&self, polling: Polling) -> Result<PollRow> {
        eprintln!("{}: {ROUNDS} rounds of {} s for each server", polling.title, ROUND_TIME.as_secs());
        let [ours, theirs] = self.servers;
        for server in self.servers {
            self.poll_server(server, polling, WARM_UP_TIME)?;
        }
        let mut rounds = Vec::new();
        while rounds.len() < ROUNDS {
            if Instant::now() + 2 * ROUND_TIME > self.deadline.0 {
                eprintln!("{}: NO TIME LEFT after {} rounds", polling.title, rounds.len());
                break;
            }
            let ours = self.poll_server(ours, polling, ROUND_TIME)?;
            rounds.push(PollRound { ours, theirs: self.poll_server(theirs, polling, ROUND_TIME)? });
        }
        if rounds.len() < ROUNDS_MIN {
            bail!("not enough rounds in time: {}", rounds.len());
        }
        Ok(PollRow { polling, rounds })
    }

    fn poll_server(&self, server: &Server, polling: Polling, time: Duration) -> Result<Sample> {
        let mut command = self.generator.command(self.poll);
        command.args(["--at", &server.at().to_string(), "--mode", polling.mode.word()]);
        command.args(["--connections", &polling.connections.to_string()]);
        command.args(["--milliseconds", &time.as_millis().to_string()]);
        let before = server.busy()?;
        let mut child =
            command.stdout(Stdio::piped()).spawn().context("cannot run the program that polls")?;
        let line =
            wait(&mut child, time + GRACE).with_context(|| format!("polling failed: {}", server.name()))?;
        let busy = server.busy()?.since(&before);
        Sample::parse(&line, busy)
    }
}

/// The output of the program: one line at its end, which a pipe can hold.
pub(in crate::bench) fn wait(child: &mut Child, time_max: Duration) -> Result<String> {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > time_max {
            child.kill()?;
            child.wait()?;
            bail!("timed out");
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        bail!("failed: {status}");
    }
    let mut line = String::new();
    child.stdout.take().context("no output")?.read_to_string(&mut line)?;
    Ok(line)
}

impl Sample {
    fn parse(line: &str, busy_nanoseconds: u64) -> Result<Self> {
        let value: Value = serde_json::from_str(line).context("no result")?;
        let integer = |key: &str| value[key].as_u64().with_context(|| format!("not in the result: {key}"));
        let number = |key: &str| integer(key).map(|number| number as f64);
        let (answers, nanoseconds) = (number("answers")?.max(1.0), number("nanoseconds")?.max(1.0));
        Ok(Self {
            requests_per_second: answers / nanoseconds * 1e9,
            p50_microseconds: number("p50_nanoseconds")? / 1e3,
            p99_microseconds: number("p99_nanoseconds")? / 1e3,
            cpu_microseconds: busy_nanoseconds as f64 / answers / 1e3,
            generator_percent: number("busy_nanoseconds")? / nanoseconds * 100.0,
            answer_bytes: integer("answer_bytes")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_request() {
        let line = r#"{"answers":1000,"nanoseconds":500000000,"p50_nanoseconds":2000,"p99_nanoseconds":9000,
                       "answer_bytes":200,"busy_nanoseconds":250000000}"#;
        let sample = Sample::parse(line, 7_000_000).unwrap();
        let expected = Sample {
            requests_per_second: 2_000.0,
            p50_microseconds: 2.0,
            p99_microseconds: 9.0,
            cpu_microseconds: 7.0,
            generator_percent: 50.0,
            answer_bytes: 200,
        };
        assert_eq!(sample, expected);
        assert!(Sample::parse("", 1).is_err());
        assert!(Sample::parse("{}", 1).unwrap_err().to_string().contains("answers"));
    }
}
