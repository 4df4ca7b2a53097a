//! The report of the fleet benchmark, and its goals.

use std::fmt::Write;
use std::time::Duration;

use crate::steps::Outcome;

/// The size that most goals are for.
const GOAL_MACHINES: u32 = 1_000_000;
/// The fleet with which the cost of a machine is compared.
const BASE_MACHINES: u32 = 10_000;
const APPLY_CPU_MAX: Duration = Duration::from_secs(20);
const APPLY_RATIO_MAX: f64 = 1.5;
const START_MAX: Duration = Duration::from_secs(1);
const MEBIBYTE: f64 = 1_048_576.0;
const MEMORY_MAX: f64 = 400.0;

/// Time of some work, and CPU time of the server for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
}

/// Commands of 64 clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CommandCost {
    pub(super) per_second: f64,
    pub(super) cpu_microseconds: f64,
}

/// The figures of one fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FleetRow {
    pub(super) machines: u32,
    pub(super) apply: Cost,
    pub(super) applied_bytes: u64,
    pub(super) commands: CommandCost,
    /// From the start of the process to its first document.
    pub(super) start: Cost,
    pub(super) restarted_bytes: u64,
}

pub(super) struct FleetReport {
    pub(super) setting: String,
    pub(super) rows: Vec<FleetRow>,
}

/// A goal, its figure, and its limit.
struct Goal {
    text: &'static str,
    is: f64,
    at_most: f64,
}

impl FleetRow {
    fn apply_microseconds(&self) -> f64 {
        self.apply.cpu.as_secs_f64() * 1e6 / f64::from(self.machines)
    }

    fn line(&self) -> String {
        let Self { machines, apply, commands, start, .. } = self;
        let [applied, restarted] = [self.applied_bytes, self.restarted_bytes].map(mebibytes);
        format!(
            "| {machines} | {:.2} | {:.2} | {:.1} | {applied:.0} | {:.0} | {:.1} | {:.3} | {:.3} | {restarted:.0} |",
            apply.wall.as_secs_f64(),
            apply.cpu.as_secs_f64(),
            self.apply_microseconds(),
            commands.per_second,
            commands.cpu_microseconds,
            start.wall.as_secs_f64(),
            start.cpu.as_secs_f64(),
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer bytes than a float counts exactly")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / MEBIBYTE
}

impl Goal {
    fn is_met(&self) -> bool {
        self.is <= self.at_most
    }

    fn line(&self) -> String {
        let met = if self.is_met() { "met" } else { "MISSED" };
        format!("- {}: {:.2} (goal: at most {}): {met}", self.text, self.is, self.at_most)
    }
}

impl FleetReport {
    fn row(&self, machines: u32) -> Option<&FleetRow> {
        self.rows.iter().find(|row| row.machines == machines)
    }

    /// The goals of which the figures were measured.
    fn goals(&self) -> Vec<Goal> {
        let Some(largest) = self.row(GOAL_MACHINES) else { return Vec::new() };
        let mut goals = vec![
            Goal {
                text: "CPU s of an apply of a million machines",
                is: largest.apply.cpu.as_secs_f64(),
                at_most: APPLY_CPU_MAX.as_secs_f64(),
            },
            Goal {
                text: "s from the start of a million machines to the first poll",
                is: largest.start.wall.as_secs_f64(),
                at_most: START_MAX.as_secs_f64(),
            },
            Goal {
                text: "MiB of a million machines after the apply",
                is: mebibytes(largest.applied_bytes),
                at_most: MEMORY_MAX,
            },
            Goal {
                text: "MiB of a million machines after a restart",
                is: mebibytes(largest.restarted_bytes),
                at_most: MEMORY_MAX,
            },
        ];
        goals.extend(self.row(BASE_MACHINES).map(|base| Goal {
            text: "CPU of an applied machine among a million, in parts of one among ten thousand",
            is: largest.apply_microseconds() / base.apply_microseconds(),
            at_most: APPLY_RATIO_MAX,
        }));
        goals
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Measured on: {}.\n\n\
             | machines | apply s | apply CPU s | CPU µs per machine | MiB after apply | commands/s | CPU µs per command | \
             start s | start CPU s | MiB after start |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
            self.setting
        );
        self.rows.iter().for_each(|row| text.extend([row.line(), "\n".to_owned()]));
        for goal in self.goals() {
            let _ = write!(text, "\n{}", goal.line());
        }
        text
    }

    /// Fails where a goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.goals().iter().filter(|goal| !goal.is_met()).map(Goal::line).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(machines: u32, apply_cpu_seconds: u64) -> FleetRow {
        let cost = |seconds| Cost { wall: Duration::from_secs(seconds), cpu: Duration::from_secs(seconds) };
        FleetRow {
            machines,
            apply: cost(apply_cpu_seconds),
            applied_bytes: 300 << 20,
            commands: CommandCost { per_second: 9_000.0, cpu_microseconds: 80.0 },
            start: cost(1),
            restarted_bytes: 200 << 20,
        }
    }

    fn report(rows: Vec<FleetRow>) -> FleetReport {
        FleetReport { setting: "A".to_owned(), rows }
    }

    #[test]
    fn goals_are_for_the_largest_fleet() {
        assert_eq!(report(vec![row(10_000, 90)]).judge(), Outcome::Passed);
        assert_eq!(report(vec![row(1_000_000, 20)]).judge(), Outcome::Passed);
        assert!(
            matches!(report(vec![row(1_000_000, 21)]).judge(), Outcome::Failed(why) if why.contains("21.00"))
        );
        let grows = report(vec![row(10_000, 0), row(1_000_000, 1)]).judge();
        assert!(matches!(grows, Outcome::Failed(why) if why.contains("in parts of one among ten thousand")));
    }

    #[test]
    fn a_row_has_every_figure() {
        let text = report(vec![row(1_000, 2)]).text();
        assert!(
            text.ends_with("\n| 1000 | 2.00 | 2.00 | 2000.0 | 300 | 9000 | 80.0 | 1.000 | 1.000 | 200 |\n"),
            "{text}"
        );
    }
}
