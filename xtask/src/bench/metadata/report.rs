//! The report of the metadata benchmark, and its goals.

use std::fmt::Write;
use std::time::Duration;

use super::cores::Cores;
use super::rounds::PollRow;
use super::table::{Figure, Spread, table};
use crate::steps::Outcome;

const CPU_RATIO_MAX: f64 = 0.80;
const REQUESTS_RATIO_MIN: f64 = 1.10;
const START_MILLISECONDS_MAX: f64 = 50.0;
const MEMORY_MEBIBYTES_MAX: f64 = 20.0;

/// Computer, kernel and nginx of a measurement.
pub(super) struct BenchSetup {
    pub(super) machine: String,
    pub(super) kernel: String,
    pub(super) nginx: String,
    pub(super) cores: Cores,
    /// The load average before the measurement.
    pub(super) load: String,
}

/// The maximum of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    start_bytes: u64,
    load_bytes: u64,
}

impl Memory {
    pub(super) fn see_start(&mut self, bytes: u64) {
        self.start_bytes = self.start_bytes.max(bytes);
    }

    pub(super) fn see_load(&mut self, bytes: u64) {
        self.load_bytes = self.load_bytes.max(bytes);
    }
}

/// All results. The goals are about the first row.
pub(super) struct PollReport {
    pub(super) setup: BenchSetup,
    pub(super) rows: Vec<PollRow>,
    pub(super) starts: Vec<Duration>,
    pub(super) memory: Memory,
}

/// A figure with its limit.
struct PollGoal {
    what: &'static str,
    value: f64,
    unit: &'static str,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl PollReport {
    pub(super) fn text(&self) -> String {
        let BenchSetup { machine, kernel, nginx, load, .. } = &self.setup;
        let mut text = format!(
            "Measured on: {machine}, {kernel}, {nginx}; load before: {load}.\n{}\n\n",
            self.setting()
        );
        let _ = writeln!(text, "{}", table(&self.rows));
        let goals: Vec<_> = self.goals().iter().map(PollGoal::line).collect();
        text.push_str(&goals.join("\n"));
        text
    }

    /// Fails where a goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.goals().iter().filter(|goal| !goal.is_met()).map(PollGoal::line).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
    }

    fn setting(&self) -> String {
        let cores = if self.setup.cores.count() > 1 {
            "The servers have one core, the program that polls them has another."
        } else {
            "THERE IS ONE CORE: the servers share it with the program that polls them."
        };
        let lengths = self.rows.first().and_then(|row| row.rounds.first());
        let lengths = lengths.map(|round| (round.ours.answer_bytes, round.theirs.answer_bytes));
        let (ours, theirs) = lengths.unwrap_or_default();
        format!(
            "{cores} A response has {ours} bytes; one of nginx, which has another `Server` field, {theirs}."
        )
    }

    fn goals(&self) -> Vec<PollGoal> {
        let ratio = |what, figure: Figure, limit| {
            let value = self.rows.first().and_then(|row| row.ratio(figure))?.median;
            Some(PollGoal { what, value, unit: " of nginx", limit })
        };
        let start = Spread::of(self.starts.iter().map(|start| start.as_secs_f64() * 1e3));
        let memory = |what, bytes: u64| {
            let limit = Limit::AtMost(MEMORY_MEBIBYTES_MAX);
            PollGoal { what, value: bytes as f64 / 1_048_576.0, unit: " MiB", limit }
        };
        let goals = [
            ratio("CPU per poll, 64 connections", |s| s.cpu_microseconds, Limit::AtMost(CPU_RATIO_MAX)),
            ratio(
                "requests/s, 64 connections",
                |s| s.requests_per_second,
                Limit::AtLeast(REQUESTS_RATIO_MIN),
            ),
            start.map(|start| PollGoal {
                what: "from the start to the first response",
                value: start.median,
                unit: " ms",
                limit: Limit::AtMost(START_MILLISECONDS_MAX),
            }),
            Some(memory("resident memory after the start", self.memory.start_bytes)),
            Some(memory("resident memory after the load", self.memory.load_bytes)),
        ];
        goals.into_iter().flatten().collect()
    }
}

impl PollGoal {
    fn is_met(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.value <= limit,
            Limit::AtLeast(limit) => self.value >= limit,
        }
    }

    fn line(&self) -> String {
        let Self { what, value, unit, limit } = self;
        let goal = match limit {
            Limit::AtMost(limit) => format!("at most {limit:.2}"),
            Limit::AtLeast(limit) => format!("at least {limit:.2}"),
        };
        let met = if self.is_met() { "met" } else { "MISSED" };
        format!("- {what}: {value:.2}{unit} (goal: {goal}): {met}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::{ConnectionMode, PollRound, Polling, Sample};
    use super::*;

    fn sample(requests_per_second: f64, cpu_microseconds: f64) -> Sample {
        Sample {
            requests_per_second,
            p50_microseconds: 500.0,
            p99_microseconds: 900.0,
            cpu_microseconds,
            generator_percent: 80.0,
            answer_bytes: 200,
        }
    }

    fn report(requests_per_second: f64, cpu_microseconds: f64, start: Duration) -> PollReport {
        let theirs = sample(100_000.0, 10.0);
        let round = |factor: f64| {
            let ours = sample(requests_per_second * factor, cpu_microseconds * factor);
            PollRound { ours, theirs }
        };
        let polling = Polling { title: "64 connections", connections: 64, mode: ConnectionMode::KeepAlive };
        let mut memory = Memory::default();
        memory.see_start(5 << 20);
        memory.see_load(10 << 20);
        memory.see_load(9 << 20);
        let setup = BenchSetup {
            machine: "A, 2 cores".to_owned(),
            kernel: "Linux 1".to_owned(),
            nginx: "nginx/1".to_owned(),
            cores: Cores::parse("0-1").unwrap(),
            load: "0.10".to_owned(),
        };
        let rounds = vec![round(0.5), round(1.0), round(2.0)];
        PollReport { setup, rows: vec![PollRow { polling, rounds }], starts: vec![start], memory }
    }

    #[test]
    fn goals_are_met_up_to_their_limit() {
        let judge = |requests, cpu, start| report(requests, cpu, Duration::from_millis(start)).judge();
        assert_eq!(judge(110_001.0, 7.99, 50), Outcome::Passed);
        let fails = |outcome, why| matches!(outcome, Outcome::Failed(text) if text.contains(why));
        assert!(fails(judge(109_000.0, 7.99, 50), "requests/s, 64 connections: 1.09 of nginx"));
        assert!(fails(judge(110_001.0, 8.1, 50), "CPU per poll, 64 connections: 0.81 of nginx"));
        assert!(fails(judge(110_001.0, 7.99, 51), "first response: 51.00 ms (goal: at most 50.00): MISSED"));
    }

    #[test]
    fn a_text_shows_both_servers_and_how_far_rounds_lie_apart() {
        let text = report(120_000.0, 7.0, Duration::from_millis(5)).text();
        assert!(
            text.starts_with("Measured on: A, 2 cores, Linux 1, nginx/1; load before: 0.10.\nThe servers")
        );
        let rows = "\n| 64 connections | forewarn | 120000 | 500 | 900 | 7.00 | 80 % |\n\
                    | | nginx | 100000 | 500 | 900 | 10.00 | 80 % |\n\
                    | | forewarn / nginx | 1.20 (0.60 to 2.40) | 1.00 (1.00 to 1.00) | 1.00 (1.00 to 1.00) | \
                    0.70 (0.35 to 1.40) | |\n";
        assert!(text.contains(rows), "{text}");
        assert!(text.ends_with("\n- resident memory after the load: 10.00 MiB (goal: at most 20.00): met"));
    }
}
