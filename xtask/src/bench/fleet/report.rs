//! The report of the fleet benchmark, its goals, and its graphs.

use crate::steps::Outcome;

use super::figures::{BASE_MACHINES, ConnectionFigures, FleetFigures, ServerWork, float, mebibytes};
use super::graph::{Graph, Series};
use super::measure::LONG_POLLS;
use super::tables;

/// The size that most goals are for.
const GOAL_MACHINES: u32 = 1_000_000;
/// The fleet with which the cost of a request is compared.
const SMALL_MACHINES: u32 = 1_000;
const APPLY_CPU_SECONDS_MAX: f64 = 20.0;
const APPLY_RATIO_MAX: f64 = 1.5;
const START_SECONDS_MAX: f64 = 1.0;
const MEBIBYTES_MAX: f64 = 400.0;
const P99_MILLISECONDS_MAX: f64 = 50.0;
const POLL_RATIO_MAX: f64 = 2.0;
const WATCHED_RATIO_MIN: f64 = 0.8;
const WATCHER_BYTES_MAX: f64 = 8_192.0;
const IDLE_BYTES_MAX: f64 = 16_384.0;
const LONG_POLL_BYTES_MAX: f64 = 4_096.0;
/// "The same cost" as measured on a computer that does other things, too.
const SAME_RATIO_MAX: f64 = 1.25;
/// The page with the graphs is in the same directory.
const GRAPH_PREFIX: &str = "docs/explanation/cost-of-a-large-fleet";

pub(super) struct FleetReport {
    pub(super) setting: String,
    pub(super) fleets: Vec<FleetFigures>,
    pub(super) connections: Option<ConnectionFigures>,
}

/// A goal, its figure, and its limit.
struct Goal {
    text: String,
    is: f64,
    limit: Limit,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

fn at_most(text: impl Into<String>, is: f64, limit: f64) -> Goal {
    Goal { text: text.into(), is, limit: Limit::AtMost(limit) }
}

impl Goal {
    fn is_met(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.is <= limit,
            Limit::AtLeast(limit) => self.is >= limit,
        }
    }

    fn line(&self) -> String {
        let met = if self.is_met() { "met" } else { "MISSED" };
        let limit = match self.limit {
            Limit::AtMost(limit) => format!("at most {limit}"),
            Limit::AtLeast(limit) => format!("at least {limit}"),
        };
        format!("- {}: {:.2} (goal: {limit}): {met}", self.text, self.is)
    }
}

impl FleetReport {
    fn fleet(&self, machines: u32) -> Option<&FleetFigures> {
        self.fleets.iter().find(|fleet| fleet.machines == machines)
    }

    /// The goals of which the figures were measured.
    fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        if let Some(largest) = self.fleet(GOAL_MACHINES) {
            goals.extend(self.size_goals(largest));
            goals.extend(beside_goals(largest));
            goals.extend(self.name_goals(largest));
        }
        goals.extend(self.connections.iter().flat_map(connection_goals));
        let polls = self.fleets.iter().filter_map(|fleet| fleet.long_polls);
        goals.extend(polls.filter(|polls| polls.count == LONG_POLLS).map(|polls| {
            at_most("bytes of each of 18,000 long polls", float(polls.bytes_each), LONG_POLL_BYTES_MAX)
        }));
        goals
    }

    fn size_goals(&self, largest: &FleetFigures) -> Vec<Goal> {
        let cpu = largest.apply.cpu.as_secs_f64();
        let mut goals = vec![
            at_most("CPU s of an apply of a million machines", cpu, APPLY_CPU_SECONDS_MAX),
            at_most(
                "MiB of a million machines after the apply",
                mebibytes(largest.applied_bytes),
                MEBIBYTES_MAX,
            ),
        ];
        if let Some((start, bytes)) = largest.start {
            let (wall, text) =
                (start.wall.as_secs_f64(), "s from the start of a million machines to the first poll");
            goals.push(at_most(text, wall, START_SECONDS_MAX));
            goals.push(at_most("MiB of a million machines after a restart", mebibytes(bytes), MEBIBYTES_MAX));
        }
        if let Some(audited) = largest.audited {
            let (wall, text) = (audited.start.wall.as_secs_f64(), "the same with an audit log of 1 GiB");
            goals.push(at_most(text, wall, START_SECONDS_MAX));
        }
        goals.extend(self.fleet(BASE_MACHINES).map(|base| {
            at_most(
                "CPU of an applied machine among a million, in parts of one among ten thousand",
                largest.apply_microseconds() / base.apply_microseconds(),
                APPLY_RATIO_MAX,
            )
        }));
        goals
    }

    fn name_goals(&self, largest: &FleetFigures) -> Vec<Goal> {
        let small = self.fleet(SMALL_MACHINES).and_then(|fleet| fleet.names);
        let Some((small, large)) = small.zip(largest.names) else { return Vec::new() };
        let command = large.plain.cpu_microseconds / small.plain.cpu_microseconds;
        let put = large.put.cpu.as_secs_f64() / small.put.cpu.as_secs_f64();
        vec![
            at_most(
                "CPU of a command by plain name, in parts of that at 1,000 machines",
                command,
                SAME_RATIO_MAX,
            ),
            at_most(
                "CPU of a PUT of 1,000 instances, in parts of that at 1,000 machines",
                put,
                SAME_RATIO_MAX,
            ),
        ]
    }

    pub(super) fn text(&self) -> String {
        let mut parts = vec![format!("Measured on: {}.\n", self.setting)];
        if !self.fleets.is_empty() {
            parts.push(tables::fleets(&self.fleets));
        }
        let tables = [tables::audited, tables::names, tables::beside];
        parts.extend(tables.into_iter().filter_map(|table| table(&self.fleets)));
        parts.extend(self.connections.iter().map(tables::watchers));
        parts.extend(tables::memory(self.connections.as_ref(), &self.fleets));
        let goals: Vec<_> = self.goals().iter().map(Goal::line).collect();
        parts.extend((!goals.is_empty()).then(|| goals.join("\n")));
        parts.join("\n").trim_end().to_owned()
    }

    /// Fails where a goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.goals().iter().filter(|goal| !goal.is_met()).map(Goal::line).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("\n")) }
    }

    /// Cost against the size of the fleet, with the file of each graph.
    pub(super) fn graphs(&self) -> Vec<(String, String)> {
        let series = |name, figure: &dyn Fn(&FleetFigures) -> Option<f64>| Series {
            name,
            points: self
                .fleets
                .iter()
                .filter_map(|fleet| Some((f64::from(fleet.machines), figure(fleet)?)))
                .collect(),
        };
        let time = Graph {
            title: "CPU time to apply, and time to start, in seconds",
            series: vec![
                series("apply, CPU s", &|fleet| Some(fleet.apply.cpu.as_secs_f64())),
                series("start to first poll, s", &|fleet| Some(fleet.start?.0.wall.as_secs_f64())),
            ],
        };
        let memory = Graph {
            title: "Memory of the server, in MiB",
            series: vec![
                series("after the apply", &|fleet| Some(mebibytes(fleet.applied_bytes))),
                series("after a restart", &|fleet| Some(mebibytes(fleet.start?.1))),
            ],
        };
        let request = Graph {
            title: "CPU time of one request or machine, in microseconds",
            series: vec![
                series("command by plain name", &|fleet| Some(fleet.names?.plain.cpu_microseconds)),
                series("applied machine", &|fleet| Some(fleet.apply_microseconds())),
                // A PUT has 1,000 instances.
                series("instance of a scale set", &|fleet| Some(fleet.names?.put.cpu.as_secs_f64() * 1e3)),
            ],
        };
        let graphs = [("time", time), ("memory", memory), ("request", request)];
        graphs
            .into_iter()
            .map(|(name, graph)| (format!("{GRAPH_PREFIX}-{name}.svg"), graph.to_svg()))
            .collect()
    }
}

fn beside_goals(fleet: &FleetFigures) -> Vec<Goal> {
    let mut goals = Vec::new();
    for row in fleet.beside.iter().filter(|row| row.work != ServerWork::Nothing) {
        let work = row.work.text();
        let text = format!("p99 ms of commands, approvals and first polls while {work}");
        goals.push(at_most(text, row.slowest(), P99_MILLISECONDS_MAX));
        let text = format!("p99 of other polls while {work}, in parts of that without");
        goals.extend(tables::poll_ratio(fleet, row).map(|ratio| at_most(text, ratio, POLL_RATIO_MAX)));
    }
    goals
}

fn connection_goals(connections: &ConnectionFigures) -> Vec<Goal> {
    let mut goals = vec![
        at_most("bytes of a watcher", float(connections.watcher_bytes), WATCHER_BYTES_MAX),
        at_most(
            "bytes of an idle connection of the operator API",
            float(connections.idle_bytes),
            IDLE_BYTES_MAX,
        ),
    ];
    if let [first, .., last] = &connections.rows[..] {
        goals.push(Goal {
            text: format!("commands/s with {} watchers, in parts of those without", last.watchers),
            is: last.per_second.median / first.per_second.median,
            limit: Limit::AtLeast(WATCHED_RATIO_MIN),
        });
    }
    goals
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
