//! `cargo xtask bench hostile`: the effect of a hostile VM on others.
//!
//! `forewarn serve` runs with its default limits. A hundred VMs poll; in the second half of each round, another VM
//! floods the endpoint. The report compares the halves of a round.
//!
//! ```text
//!   core A: forewarn      core B: the good VMs and the hostile one
//!   round:  [ good VMs alone | good VMs beside the hostile one ] …
//! ```
//!
//! The third row is the operator API: operators send requests while clients hold more connections than it accepts, each
//! with a header that never ends.
//!
//! Everything is on loopback, and bounded in count and in time.

mod report;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::metadata::cores::{self, CpuPlacement};
use super::metadata::forewarn::ADDRESSES;
use super::metadata::rounds::wait;
use super::metadata::server::{Server, Start};
use super::metadata::{build, kernel};
use super::{Keep, results};
use crate::steps::Outcome;
use crate::tree;

use report::{Attack, AttackReport, AttackRound, AttackRow, LatencyGoal, PollLatency};

/// Its section in the results.
const NAME: &str = "hostile";
const ROUNDS: usize = 5;
const ROUND_TIME: Duration = Duration::from_secs(4);
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// The hostile VM starts this much earlier, and ends this much later.
const MARGIN: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(10);
const GOOD_MACHINES: u32 = 100;

/// One attack: its target, settings and clients.
struct Case {
    title: &'static str,
    /// The limits of one VM.
    limits: &'static str,
    /// The attacked listener, as in the addresses file.
    side: &'static str,
    good: &'static str,
    bad: &'static str,
    goal: LatencyGoal,
}

/// The hostile VM has the default limits, or so many connections that all of them stay open; hostile clients of the
/// operator API have the default limits.
const CASES: [Case; 3] = [
    Case {
        title: "the usual limits",
        limits: "",
        side: "metadata",
        good: "good",
        bad: "bad",
        goal: LatencyGoal::Ratio(2.0),
    },
    Case {
        title: "as many connections as it likes",
        limits: "connections = 4000\n",
        side: "metadata",
        good: "good",
        bad: "bad",
        goal: LatencyGoal::Ratio(2.0),
    },
    Case {
        title: "slow connections to the operator API",
        limits: "",
        side: "api",
        good: "ask",
        bad: "hold",
        goal: LatencyGoal::Milliseconds(100.0),
    },
];

pub(super) fn run(keep: Keep) -> Result<Outcome> {
    let cores = match cores::allowed() {
        Ok(cores) => cores,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let root = tree::root()?;
    let program = build(&root, &["--package", "forewarn", "--bin", "forewarn"])?;
    let machines = build(&root, &["--package", "forewarn-bench", "--bin", "hostile"])?;
    let (server, generator) = cores.apart();
    let setting = format!("{}, {}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let bench = HostileBench { program, machines, server, generator };
    let rows = CASES.iter().map(|case| bench.row(case)).collect::<Result<_>>()?;
    let report = AttackReport { setting, rows };
    println!("{}", report.text());
    match keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

struct HostileBench {
    program: PathBuf,
    machines: PathBuf,
    server: CpuPlacement,
    generator: CpuPlacement,
}

impl HostileBench {
    fn row(&self, case: &Case) -> Result<AttackRow> {
        let Case { title, limits, good, bad, goal, .. } = *case;
        eprintln!(
            "{title}: {ROUNDS} rounds of {} s without the hostile machine, and with it",
            ROUND_TIME.as_secs()
        );
        let server = self.start(limits, case.side)?;
        self.good(good, &server, WARM_UP_TIME)?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let alone = self.good(good, &server, ROUND_TIME)?;
            let mut bad = self.spawn(bad, &server, ROUND_TIME + 2 * MARGIN)?;
            std::thread::sleep(MARGIN);
            let beside = self.good(good, &server, ROUND_TIME);
            let attack =
                Attack::parse(&wait(&mut bad, MARGIN + GRACE).context("the hostile machine failed")?)?;
            rounds.push(AttackRound { alone, beside: beside?, attack });
        }
        Ok(AttackRow { title, goal, rounds })
    }

    fn good(&self, role: &str, server: &Server, time: Duration) -> Result<PollLatency> {
        let mut good = self.spawn(role, server, time)?;
        PollLatency::parse(&wait(&mut good, time + GRACE).context("the good machines failed")?)
    }

    fn spawn(&self, role: &str, server: &Server, time: Duration) -> Result<Child> {
        let mut command = self.generator.command(&self.machines);
        command.args([role, "--at", &server.at().to_string()]);
        command.args(["--milliseconds", &time.as_millis().to_string()]);
        command.stdout(Stdio::piped()).spawn().context("cannot run the program of the machines")
    }

    fn start(&self, limits: &str, side: &str) -> Result<Server> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let settings = write_settings(directory.path(), limits, self.server.threads())?;
        let mut command = self.server.command(&self.program);
        command.args(["serve", "--config"]).arg(settings);
        command.arg("--addresses-file").arg(directory.path().join(ADDRESSES));
        Start { name: "forewarn", command, stop: None, directory }
            .run(|directory| find_address(directory, side))
    }
}

/// The hostile VM is 127.0.0.2, the others are 127.0.1.1 and so on; all of them are on one host.
fn write_settings(directory: &Path, limits: &str, threads: u32) -> Result<PathBuf> {
    let vm = |name: String, address: String| {
        format!("[[vm]]\nname = '{name}'\nhost = 'h'\naddresses = ['{address}']\n")
    };
    let good = (1..=GOOD_MACHINES).map(|number| vm(format!("good-{number}"), format!("127.0.1.{number}")));
    let fleet: String = std::iter::once("[[host]]\nname = 'h'\n".to_owned())
        .chain([vm("bad".to_owned(), "127.0.0.2".to_owned())])
        .chain(good)
        .collect();
    let (fleet_file, file) = (directory.join("fleet.toml"), directory.join("serve.toml"));
    let settings = format!(
        "in_memory = true\nfleet = '{}'\n[metadata]\nthreads = {threads}\nlisten = [{{ address = '127.0.0.1:0' }}]\n\
         [metadata.limits]\n{limits}[api]\nlisten = '127.0.0.1:0'\nsocket = '{}'\n[driver]\nkind = 'simulated'\n",
        fleet_file.display(),
        directory.join("api.sock").display()
    );
    std::fs::write(&fleet_file, fleet).context("cannot write the fleet")?;
    std::fs::write(&file, settings).context("cannot write the settings")?;
    Ok(file)
}

/// The address of a listener. None until the server has written it.
pub(in crate::bench) fn find_address(directory: &Path, side: &str) -> Option<SocketAddr> {
    let text = std::fs::read_to_string(directory.join(ADDRESSES)).ok()?;
    let addresses: Value = serde_json::from_str(&text).ok()?;
    addresses[side].as_str()?.strip_prefix("http://")?.parse().ok()
}

fn number(line: &str, key: &str) -> Result<f64> {
    let value: Value = serde_json::from_str(line).context("no result")?;
    value[key].as_f64().with_context(|| format!("not in the result: {key}"))
}

impl PollLatency {
    fn parse(line: &str) -> Result<Self> {
        Ok(Self {
            p50_microseconds: number(line, "p50_nanoseconds")? / 1e3,
            p99_microseconds: number(line, "p99_nanoseconds")? / 1e3,
        })
    }
}

impl Attack {
    fn parse(line: &str) -> Result<Self> {
        Ok(Self {
            requests: number(line, "requests")?,
            connections: number(line, "connections")?,
            half_open: number(line, "half_open")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let latency =
            PollLatency::parse(r#"{"answers":1,"p50_nanoseconds":2000,"p99_nanoseconds":3000}"#).unwrap();
        assert_eq!(latency, PollLatency { p50_microseconds: 2.0, p99_microseconds: 3.0 });
        assert!(Attack::parse("{}").is_err());
    }
}
