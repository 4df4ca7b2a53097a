//! The figures as tables.

use std::fmt::Write;

use super::figures::{
    BASE_MACHINES, BesideRow, ConnectionFigures, FleetFigures, RequestTimes, ServerWork, mebibytes,
};

const MISSING: &str = "-";

/// The apply and the start of every fleet.
pub(super) fn fleets(fleets: &[FleetFigures]) -> String {
    let base = fleets.iter().find(|fleet| fleet.machines == BASE_MACHINES);
    let mut text = String::from(
        "| machines | apply s | apply CPU s | CPU µs per machine | in parts of 10,000 | MiB after apply | start s | \
         start CPU s | MiB after start |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for fleet in fleets {
        let cost = fleet.apply_microseconds();
        let ratio = base.map(|base| format!("{:.2}", cost / base.apply_microseconds()));
        let start = fleet.start.map(|(start, bytes)| {
            let (wall, cpu) = (start.wall.as_secs_f64(), start.cpu.as_secs_f64());
            format!("{wall:.3} | {cpu:.2} | {:.0}", mebibytes(bytes))
        });
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {cost:.1} | {} | {:.0} | {} |",
            fleet.machines,
            fleet.apply.wall.as_secs_f64(),
            fleet.apply.cpu.as_secs_f64(),
            ratio.unwrap_or(MISSING.to_owned()),
            mebibytes(fleet.applied_bytes),
            start.unwrap_or("- | - | -".to_owned()),
        );
    }
    text
}

/// Starts with a large audit log.
pub(super) fn audited(fleets: &[FleetFigures]) -> Option<String> {
    let mut text = String::from(
        "| machines | MiB on disk, with the audit log | start s | start CPU s |\n|---:|---:|---:|---:|\n",
    );
    let before = text.len();
    for fleet in fleets {
        let Some(audited) = fleet.audited else { continue };
        let (wall, cpu) = (audited.start.wall.as_secs_f64(), audited.start.cpu.as_secs_f64());
        let megabytes = mebibytes(audited.data_bytes);
        let _ = writeln!(text, "| {} | {megabytes:.0} | {wall:.3} | {cpu:.2} |", fleet.machines);
    }
    (text.len() > before).then_some(text)
}

/// Commands by name, and scale sets.
pub(super) fn names(fleets: &[FleetFigures]) -> Option<String> {
    let mut text = String::from(
        "| machines | commands/s, plain name | CPU µs per command | commands/s, with tenant | CPU µs per command | \
         PUT of 1,000 instances, s | CPU s |\n|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let before = text.len();
    for fleet in fleets {
        let Some(names) = fleet.names else { continue };
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.1} | {:.0} | {:.1} | {:.3} | {:.3} |",
            fleet.machines,
            names.plain.per_second,
            names.plain.cpu_microseconds,
            names.qualified.per_second,
            names.qualified.cpu_microseconds,
            names.put.wall.as_secs_f64(),
            names.put.cpu.as_secs_f64(),
        );
    }
    (text.len() > before).then_some(text)
}

/// Requests during other work.
pub(super) fn beside(fleets: &[FleetFigures]) -> Option<String> {
    let mut text = String::from(
        "| machines | meanwhile | s, times | command p99 ms | approval p99 ms | first poll p99 ms | \
         other poll p50 ms | p99 ms | p99 / idle |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let before = text.len();
    for fleet in fleets {
        for row in &fleet.beside {
            let ratio = poll_ratio(fleet, row).map_or(MISSING.to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = writeln!(
                text,
                "| {} | {} | {:.1}, {} | {} | {} | {} | {:.3} | {:.3} ({}) | {ratio} |",
                fleet.machines,
                row.work.text(),
                row.time.as_secs_f64(),
                row.rounds,
                p99(row.command),
                p99(row.approval),
                p99(row.first_poll),
                row.poll.p50,
                row.poll.p99,
                row.poll.count,
            );
        }
    }
    (text.len() > before).then_some(text)
}

/// p99 of other polls, in parts of that without any work.
pub(super) fn poll_ratio(fleet: &FleetFigures, row: &BesideRow) -> Option<f64> {
    let idle = fleet.beside.iter().find(|row| row.work == ServerWork::Nothing)?;
    (row.work != ServerWork::Nothing && idle.poll.p99 > 0.0).then(|| row.poll.p99 / idle.poll.p99)
}

/// With the number of requests.
fn p99(times: RequestTimes) -> String {
    format!("{:.1} ({})", times.p99, times.count)
}

/// Commands beside watchers.
pub(super) fn watchers(connections: &ConnectionFigures) -> String {
    let mut text = String::from(
        "| watchers | commands/s | in parts of those without | CPU µs per command |\n|---:|---:|---:|---:|\n",
    );
    let first = connections.rows.first().map(|row| row.per_second.median);
    for row in &connections.rows {
        let ratio = first.map_or(MISSING.to_owned(), |first| format!("{:.2}", row.per_second.median / first));
        let spread = row.per_second;
        let _ = writeln!(
            text,
            "| {} | {:.0} ({:.0} to {:.0}) | {ratio} | {:.1} |",
            row.watchers, spread.median, spread.min, spread.max, row.cpu_microseconds
        );
    }
    text
}

/// Memory of connections.
pub(super) fn memory(connections: Option<&ConnectionFigures>, fleets: &[FleetFigures]) -> Option<String> {
    let mut text = String::from("| connection | number | bytes each |\n|---|---:|---:|\n");
    let before = text.len();
    if let Some(connections) = connections {
        let (watcher, idle) = (connections.watcher_bytes, connections.idle_bytes);
        let _ = writeln!(
            text,
            "| watcher | 900 | {watcher} |\n| idle connection of the operator API | 900 | {idle} |"
        );
    }
    for fleet in fleets {
        let Some(polls) = fleet.long_polls else { continue };
        let _ = writeln!(
            text,
            "| long poll, {} machines | {} | {} |",
            fleet.machines, polls.count, polls.bytes_each
        );
        let _ = writeln!(text, "| the first poll of its tenant, before | | {} |", polls.enrolled_bytes_each);
    }
    (text.len() > before).then_some(text)
}
