//! The measurements of one fleet, and of connections of the operator API.

use std::time::Duration;

use anyhow::Result;

use super::MACHINES_PER_BLOCK;
use super::figures::{
    AuditedStart, BesideRow, CommandCost, ConnectionFigures, Cost, FleetFigures, LongPolls, NameFigures,
    ServerWork, WatcherRow, number,
};
use super::options::{Part, Parts};
use super::server::{FleetServer, Purpose, RunningServer};
use crate::bench::metadata::table::Spread;

/// The time of a fleet with a thousand VMs, on a slow computer.
const BLOCK_TIME_MAX: Duration = Duration::from_secs(20);
const COMMAND_TIME: Duration = Duration::from_secs(3);
const COMMAND_CLIENTS: &str = "64";
/// Work that is shorter is repeated.
const BESIDE_TIME: Duration = Duration::from_secs(5);
const BESIDE_TIME_MAX: Duration = Duration::from_secs(600);
/// Machines that join while others send requests; a smaller fleet doubles.
const ADDED_MAX: u32 = 100_000;
const PUT_ROUNDS: u32 = 5;
const PUT_TIME_MAX: Duration = Duration::from_secs(300);
const AUDIT_MEGABYTES: &str = "1024";
const AUDIT_TIME_MAX: Duration = Duration::from_secs(600);
/// Single VMs of a block, each of which is a tenant. The first ones are not new when they are measured.
const TENANTS_PER_BLOCK: u32 = 100;
const TENANTS_BEFORE: u32 = 50;
/// New tenants of one kind of work.
const TENANTS_MAX: u32 = 2_000;
/// Kinds of work beside which requests are sent.
const WORKS: u32 = 5;
pub(super) const LONG_POLLS: u32 = 18_000;
/// Long polls of one VM, as the default limit allows.
const LONG_POLLS_PER_MACHINE: u32 = 4;
pub(super) const WATCHERS: [u32; 3] = [0, 100, 1_000];
const WATCHER_ROUNDS: usize = 3;
/// Connections whose memory is counted, after a few that allocate what all of them share.
const CONNECTIONS: u32 = 900;
const CONNECTIONS_BEFORE: u32 = 50;

/// New tenants, in the order in which they are used.
struct NewTenants {
    next: u32,
    per_work: u32,
}

impl NewTenants {
    fn of(machines: u32) -> Self {
        let all = machines / MACHINES_PER_BLOCK * TENANTS_PER_BLOCK - TENANTS_BEFORE;
        Self { next: TENANTS_BEFORE, per_work: (all / WORKS).min(TENANTS_MAX) }
    }

    fn take(&mut self) -> u32 {
        let first = self.next;
        self.next += self.per_work;
        first
    }
}

/// The size of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FleetSize {
    pub(super) machines: u32,
    /// The largest one of a run also has a large audit log and long polls.
    pub(super) is_largest: bool,
}

/// Measures the parts of one fleet.
pub(super) fn fleet(
    server: &FleetServer<'_>,
    FleetSize { machines, is_largest }: FleetSize,
    parts: Parts,
) -> Result<FleetFigures> {
    eprintln!("machines: {machines}");
    let running = server.start()?;
    let (_, apply) = running.measure(|running| apply(running, machines))?;
    let applied_bytes = running.resident_bytes()?;
    let mut figures = FleetFigures {
        machines,
        apply,
        applied_bytes,
        start: None,
        audited: None,
        names: None,
        beside: Vec::new(),
        long_polls: None,
    };
    let mut new = NewTenants::of(machines);
    if parts.has(Part::Names) {
        figures.names = Some(names(&running)?);
    }
    if parts.has(Part::Beside) {
        for work in [ServerWork::Nothing, ServerWork::Site, ServerWork::Backup] {
            figures.beside.push(beside(&running, machines, work, &mut new)?);
        }
    }
    if !parts.needs_restart() {
        return Ok(figures);
    }
    let token = running.token().to_owned();
    running.stop()?;
    let (mut running, start) = server.restart(Purpose::General, &token)?;
    figures.start = Some((start, running.resident_bytes()?));
    if parts.has(Part::Audit) && is_largest {
        running.client("audit", &["--megabytes", AUDIT_MEGABYTES], AUDIT_TIME_MAX)?;
        running.stop()?;
        let (restarted, start) = server.restart(Purpose::General, &token)?;
        figures.audited = Some(AuditedStart { start, data_bytes: server.data_bytes()? });
        running = restarted;
    }
    if parts.has(Part::Beside) {
        for work in [ServerWork::Audit, ServerWork::Apply(machines.min(ADDED_MAX))] {
            figures.beside.push(beside(&running, machines, work, &mut new)?);
        }
    }
    if parts.has(Part::Polls) && is_largest {
        running.stop()?;
        let (restarted, _) = server.restart(Purpose::LongPolls, &token)?;
        figures.long_polls = Some(long_polls(&restarted, machines)?);
    }
    Ok(figures)
}

/// Creates the fleet in a cluster of its own.
fn apply(running: &RunningServer<'_>, machines: u32) -> Result<()> {
    let time_max = BLOCK_TIME_MAX * (machines / MACHINES_PER_BLOCK);
    running.client("apply", &["--machines", &machines.to_string()], time_max).map(|_| ())
}

fn names(running: &RunningServer<'_>) -> Result<NameFigures> {
    let rounds = PUT_ROUNDS.to_string();
    let words = ["--process", &running.process(), "--count", &rounds];
    let result = running.client("arm", &words, PUT_TIME_MAX)?;
    let per_round = |key: &str| {
        number(&result, key)
            .map(|nanoseconds| Duration::from_secs_f64(nanoseconds / 1e9 / f64::from(PUT_ROUNDS)))
    };
    let put = Cost { wall: per_round("nanoseconds")?, cpu: per_round("cpu_nanoseconds")? };
    Ok(NameFigures { plain: commands(running, "plain")?, qualified: commands(running, "qualified")?, put })
}

/// The cost of commands of many clients.
fn commands(running: &RunningServer<'_>, names: &str) -> Result<CommandCost> {
    let time = COMMAND_TIME.as_millis().to_string();
    let words = ["--names", names, "--count", COMMAND_CLIENTS, "--milliseconds", &time];
    let (result, cost) = running.measure(|running| running.client("commands", &words, COMMAND_TIME))?;
    let commands = number(&result, "answers")?.max(1.0);
    Ok(CommandCost {
        per_second: commands / number(&result, "nanoseconds")? * 1e9,
        cpu_microseconds: cost.cpu.as_secs_f64() * 1e6 / commands,
    })
}

/// Requests during some work.
fn beside(
    running: &RunningServer<'_>,
    machines: u32,
    work: ServerWork,
    new: &mut NewTenants,
) -> Result<BesideRow> {
    eprintln!("requests while: {}", work.text());
    let added = match work {
        ServerWork::Apply(added) => added,
        ServerWork::Nothing | ServerWork::Site | ServerWork::Backup | ServerWork::Audit => MACHINES_PER_BLOCK,
    };
    let numbers = [machines, added, new.take(), new.per_work].map(|number| number.to_string());
    let [first, added, new_tenants, tenants] = &numbers;
    let time = BESIDE_TIME.as_millis().to_string();
    let words = [
        ["--work", work.word()],
        ["--milliseconds", &time],
        ["--first", first],
        ["--count", added],
        ["--new-tenants", new_tenants],
        ["--tenants", tenants],
    ];
    let result = running.client("beside", words.as_flattened(), BESIDE_TIME_MAX)?;
    BesideRow::parse(work, &result)
}

/// Memory of long polls, as many as the fleet allows.
fn long_polls(running: &RunningServer<'_>, machines: u32) -> Result<LongPolls> {
    let tenants = machines / MACHINES_PER_BLOCK * TENANTS_PER_BLOCK;
    let count = LONG_POLLS.min(tenants * LONG_POLLS_PER_MACHINE);
    eprintln!("long polls: {count}");
    let numbers = [machines, count].map(|number| number.to_string());
    let begin = running.resident_bytes()?;
    let mut holder = running.hold(&["--kind", "poll", "--machines", &numbers[0], "--count", &numbers[1]])?;
    holder.wait()?;
    let enrolled = running.resident_bytes()?;
    holder.go_on()?;
    holder.wait()?;
    let held = running.resident_bytes()?;
    Ok(LongPolls {
        count,
        bytes_each: held.saturating_sub(enrolled) / u64::from(count),
        enrolled_bytes_each: enrolled.saturating_sub(begin) / u64::from(tenants.min(count)),
    })
}

/// Measures watchers and idle connections, on fleets of one block.
pub(super) fn connections<'a>(new: impl Fn() -> Result<FleetServer<'a>>) -> Result<ConnectionFigures> {
    eprintln!("watchers and idle connections");
    // Each on a server of its own: memory that one kind has returned would hide the need of another.
    let [idle, watched, server] = [new()?, new()?, new()?];
    let idle_bytes = bytes_each(&idle.start()?, "idle")?;
    let watcher_bytes = bytes_each(&watched.start()?, "watch")?;
    let running = server.start()?;
    apply(&running, MACHINES_PER_BLOCK)?;
    let mut rounds = WATCHERS.map(|_| Vec::new());
    for _ in 0..WATCHER_ROUNDS {
        for (watchers, costs) in WATCHERS.into_iter().zip(&mut rounds) {
            costs.push(beside_watchers(&running, watchers)?);
        }
    }
    let row = |(watchers, costs): (u32, Vec<CommandCost>)| {
        let cpu_microseconds = Spread::of(costs.iter().map(|cost| cost.cpu_microseconds))?.median;
        let per_second = Spread::of(costs.iter().map(|cost| cost.per_second))?;
        Some(WatcherRow { watchers, per_second, cpu_microseconds })
    };
    let rows = WATCHERS.into_iter().zip(rounds).filter_map(row).collect();
    Ok(ConnectionFigures { rows, watcher_bytes, idle_bytes })
}

/// Memory of each of many connections.
fn bytes_each(running: &RunningServer<'_>, kind: &str) -> Result<u64> {
    let hold = |count: u32| {
        let mut holder = running.hold(&["--kind", kind, "--count", &count.to_string()])?;
        holder.wait().map(|()| holder)
    };
    let _first = hold(CONNECTIONS_BEFORE)?;
    let before = running.resident_bytes()?;
    let _held = hold(CONNECTIONS)?;
    Ok(running.resident_bytes()?.saturating_sub(before) / u64::from(CONNECTIONS))
}

fn beside_watchers(running: &RunningServer<'_>, watchers: u32) -> Result<CommandCost> {
    let _holder = match watchers {
        0 => None,
        _ => {
            let mut holder = running.hold(&["--kind", "watch", "--count", &watchers.to_string()])?;
            holder.wait()?;
            Some(holder)
        }
    };
    commands(running, "qualified")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_tenants_last_for_all_work() {
        for machines in [1_000, 10_000, 1_000_000] {
            let mut new = NewTenants::of(machines);
            let firsts: Vec<_> = (0..WORKS).map(|_| new.take()).collect();
            assert!(firsts.windows(2).all(|two| two[1] - two[0] == new.per_work) && new.per_work >= 10);
            assert!(new.next <= machines / 10, "{machines}");
        }
    }
}
