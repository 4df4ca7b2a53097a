//! The figures of a run.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::metadata::table::Spread;

/// The fleet with which the cost of a machine is compared.
pub(super) const BASE_MACHINES: u32 = 10_000;
const MEBIBYTE: f64 = 1_048_576.0;

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

/// Work of the server while others send requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerWork {
    Nothing,
    Site,
    Backup,
    Audit,
    /// So many machines join the fleet.
    Apply(u32),
}

/// Times of requests of one kind, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestTimes {
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Requests that were sent during some work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BesideRow {
    pub(super) work: ServerWork,
    pub(super) time: Duration,
    /// The number of times that the work was done.
    pub(super) rounds: u64,
    pub(super) command: RequestTimes,
    pub(super) approval: RequestTimes,
    pub(super) first_poll: RequestTimes,
    pub(super) poll: RequestTimes,
}

/// A start on a large audit log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AuditedStart {
    pub(super) start: Cost,
    /// All files of the server.
    pub(super) data_bytes: u64,
}

/// Commands by plain and by qualified names, and scale sets of 1,000 instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NameFigures {
    pub(super) plain: CommandCost,
    pub(super) qualified: CommandCost,
    /// One PUT.
    pub(super) put: Cost,
}

/// Long polls that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongPolls {
    pub(super) count: u32,
    pub(super) bytes_each: u64,
    /// Memory of each machine that has polled once.
    pub(super) enrolled_bytes_each: u64,
}

/// The figures of one fleet; a part that was not measured is absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FleetFigures {
    pub(super) machines: u32,
    pub(super) apply: Cost,
    pub(super) applied_bytes: u64,
    /// From the start of the process to its first document, and the memory then.
    pub(super) start: Option<(Cost, u64)>,
    pub(super) audited: Option<AuditedStart>,
    pub(super) names: Option<NameFigures>,
    pub(super) beside: Vec<BesideRow>,
    pub(super) long_polls: Option<LongPolls>,
}

/// Commands per second with so many watchers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WatcherRow {
    pub(super) watchers: u32,
    pub(super) per_second: Spread,
    pub(super) cpu_microseconds: f64,
}

/// Connections of the operator API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConnectionFigures {
    pub(super) rows: Vec<WatcherRow>,
    pub(super) watcher_bytes: u64,
    pub(super) idle_bytes: u64,
}

impl FleetFigures {
    pub(super) fn apply_microseconds(&self) -> f64 {
        self.apply.cpu.as_secs_f64() * 1e6 / f64::from(self.machines)
    }
}

impl ServerWork {
    /// Its name for the program of the clients.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Nothing => "idle",
            Self::Site => "site",
            Self::Backup => "backup",
            Self::Audit => "audit",
            Self::Apply(_) => "apply",
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Site => "the site is changed".to_owned(),
            Self::Backup => "a backup is written".to_owned(),
            Self::Audit => "the audit log is verified".to_owned(),
            Self::Apply(machines) => format!("{machines} machines are applied"),
        }
    }
}

impl RequestTimes {
    fn parse(times: &Value) -> Result<Self> {
        let milliseconds = |key: &str| number(times, key).map(|nanoseconds| nanoseconds / 1e6);
        Ok(Self {
            count: times["count"].as_u64().context("not in the result: count")?,
            p50: milliseconds("p50_nanoseconds")?,
            p99: milliseconds("p99_nanoseconds")?,
        })
    }
}

impl BesideRow {
    pub(super) fn parse(work: ServerWork, result: &Value) -> Result<Self> {
        let times = |key: &str| RequestTimes::parse(&result[key]);
        Ok(Self {
            work,
            time: Duration::from_secs_f64(number(result, "nanoseconds")? / 1e9),
            rounds: result["rounds"].as_u64().context("not in the result: rounds")?,
            command: times("command")?,
            approval: times("approval")?,
            first_poll: times("first_poll")?,
            poll: times("poll")?,
        })
    }

    /// The highest p99 of commands, approvals and first polls.
    pub(super) fn slowest(&self) -> f64 {
        [self.command, self.approval, self.first_poll].iter().map(|times| times.p99).fold(0.0, f64::max)
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer bytes than a float counts exactly")]
pub(super) fn float(bytes: u64) -> f64 {
    bytes as f64
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    float(bytes) / MEBIBYTE
}

pub(super) fn number(result: &Value, key: &str) -> Result<f64> {
    result[key].as_f64().with_context(|| format!("not in the result: {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let times = r#"{"count":2,"p50_nanoseconds":1000000,"p99_nanoseconds":3000000,"max_nanoseconds":9}"#;
        let slow = times.replace("3000000", "7000000");
        let line = format!(
            r#"{{"nanoseconds":2000000000,"rounds":4,"command":{times},"approval":{slow},"first_poll":{times},"poll":{times}}}"#
        );
        let row = BesideRow::parse(ServerWork::Site, &serde_json::from_str(&line).unwrap()).unwrap();
        assert_eq!((row.time, row.rounds), (Duration::from_secs(2), 4));
        assert_eq!(row.command, RequestTimes { count: 2, p50: 1.0, p99: 3.0 });
        assert!((row.slowest() - 7.0).abs() < 1e-9);
        assert!(BesideRow::parse(ServerWork::Site, &Value::Null).is_err());
    }
}
