//! Tests of the report.

use std::time::Duration;

use super::*;
use crate::bench::fleet::figures::{
    AuditedStart, BesideRow, CommandCost, Cost, LongPolls, NameFigures, RequestTimes, WatcherRow,
};
use crate::bench::metadata::table::Spread;

fn cost(seconds: u64) -> Cost {
    Cost { wall: Duration::from_secs(seconds), cpu: Duration::from_secs(seconds) }
}

fn beside(work: ServerWork, p99: f64) -> BesideRow {
    let times = RequestTimes { count: 9, p50: 0.5, p99 };
    let time = Duration::from_secs(3);
    BesideRow { work, time, rounds: 4, command: times, approval: times, first_poll: times, poll: times }
}

fn fleet(machines: u32, apply_seconds: u64) -> FleetFigures {
    let command = CommandCost { per_second: 9_000.0, cpu_microseconds: 80.0 };
    FleetFigures {
        machines,
        apply: cost(apply_seconds),
        applied_bytes: 300 << 20,
        start: Some((cost(1), 200 << 20)),
        audited: Some(AuditedStart { start: cost(1), data_bytes: 2 << 30 }),
        names: Some(NameFigures { plain: command, qualified: command, put: cost(2) }),
        beside: vec![beside(ServerWork::Nothing, 25.0), beside(ServerWork::Apply(100_000), 50.0)],
        long_polls: Some(LongPolls { count: 18_000, bytes_each: 4_096, enrolled_bytes_each: 700 }),
    }
}

fn watcher_row(watchers: u32, per_second: f64) -> WatcherRow {
    let per_second = Spread { min: per_second, median: per_second, max: per_second };
    WatcherRow { watchers, per_second, cpu_microseconds: 80.0 }
}

fn report(fleets: Vec<FleetFigures>) -> FleetReport {
    let rows = vec![watcher_row(0, 1_000.0), watcher_row(1_000, 800.0)];
    let connections = Some(ConnectionFigures { rows, watcher_bytes: 8_192, idle_bytes: 16_384 });
    FleetReport { setting: "A".to_owned(), fleets, connections }
}

fn missed(report: &FleetReport) -> String {
    match report.judge() {
        Outcome::Failed(why) => why,
        Outcome::Passed | Outcome::Skipped(_) => String::new(),
    }
}

#[test]
fn goals_are_met_up_to_their_limit() {
    let all = report(vec![fleet(1_000, 1), fleet(1_000_000, 20)]);
    assert_eq!((all.judge(), all.goals().len()), (Outcome::Passed, 14));
    assert!(missed(&report(vec![fleet(1_000_000, 21)])).contains("21.00"));
    let grows = report(vec![fleet(10_000, 0), fleet(1_000_000, 1)]);
    assert!(missed(&grows).contains("in parts of one among ten thousand"));
    // A smaller fleet has no goals of its own, except for its long polls.
    let mut small = fleet(10_000, 90);
    assert_eq!(report(vec![small.clone()]).judge(), Outcome::Passed);
    small.long_polls = Some(LongPolls { count: 18_000, bytes_each: 4_097, enrolled_bytes_each: 0 });
    assert!(missed(&report(vec![small])).contains("4097.00"));
}

#[test]
fn each_kind_of_goal_can_be_missed() {
    let mut slow = report(vec![fleet(1_000, 1), fleet(1_000_000, 20)]);
    slow.fleets[1].beside[1] = beside(ServerWork::Apply(100_000), 51.0);
    slow.fleets[1].names = slow.fleets[1].names.map(|names| NameFigures { put: cost(3), ..names });
    let why = missed(&slow);
    assert!(why.contains("while 100000 machines are applied: 51.00 (goal: at most 50)"), "{why}");
    assert!(why.contains("2.04 (goal: at most 2)") && why.contains("1.50 (goal: at most 1.25)"), "{why}");
    let mut watched = report(Vec::new());
    let connections = watched.connections.as_mut().unwrap();
    (connections.rows[1], connections.idle_bytes) = (watcher_row(1_000, 799.0), 16_385);
    let why = missed(&watched);
    assert!(why.contains("commands/s with 1000 watchers") && why.contains("16385"), "{why}");
}

#[test]
fn a_row_has_every_figure() {
    let text = report(vec![fleet(10_000, 2)]).text();
    for row in [
        "\n| 10000 | 2.00 | 2.00 | 200.0 | 1.00 | 300 | 1.000 | 1.00 | 200 |\n",
        "\n| 10000 | 2048 | 1.000 | 1.00 |\n",
        "\n| 10000 | 9000 | 80.0 | 9000 | 80.0 | 2.000 | 2.000 |\n",
        "\n| 10000 | nothing | 3.0, 4 | 25.0 (9) | 25.0 (9) | 25.0 (9) | 0.500 | 25.000 (9) | - |\n",
        "\n| 10000 | 100000 machines are applied | 3.0, 4 | 50.0 (9) | 50.0 (9) | 50.0 (9) | 0.500 | 50.000 (9) | 2.00 |\n",
        "\n| 1000 | 800 (800 to 800) | 0.80 | 80.0 |\n",
        "\n| watcher | 900 | 8192 |\n| idle connection of the operator API | 900 | 16384 |\n",
        "\n| long poll, 10000 machines | 18000 | 4096 |\n",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
}

#[test]
fn graphs_show_every_fleet() {
    let graphs = report(vec![fleet(1_000, 1), fleet(1_000_000, 20)]).graphs();
    assert_eq!(graphs.len(), 3);
    for (file, graph) in graphs {
        assert!(file.starts_with("docs/explanation/") && file.ends_with(".svg"), "{file}");
        assert!(graph.contains("1,000,000") && graph.matches("<circle").count() >= 4, "{graph}");
    }
}
