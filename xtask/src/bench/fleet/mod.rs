//! `cargo xtask bench fleet`: the cost of a fleet, from a thousand machines to a million.
//!
//! ```text
//!   forewarn serve, empty ──▶ apply the fleet ──▶ commands ──▶ stop ──▶ start ──▶ first poll
//! ```
//!
//! Everything is on loopback, and bounded in count and in time.

mod report;
mod server;

use anyhow::Result;

use super::metadata::{build, kernel};
use super::{Keep, results};
use crate::steps::Outcome;
use crate::tree;
use crate::words::{Usage, Words};

use report::{FleetReport, FleetRow};
use server::FleetServer;

/// Its section in the results.
const NAME: &str = "fleet";
const MACHINES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The fleet consists of blocks of so many VMs.
const MACHINES_PER_BLOCK: u32 = 1_000;

/// The options of the benchmark.
pub(super) struct FleetOptions {
    keep: Keep,
    /// The largest fleet.
    machines: u32,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { keep: Keep::Nothing, machines: MACHINES[MACHINES.len() - 1] }
    }
}

impl FleetOptions {
    fn read(mut words: Words) -> Result<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--save" => options.keep = Keep::Save,
                "--machines" => {
                    let machines = |text: &str| text.parse().ok().filter(|number| MACHINES.contains(number));
                    options.machines = words.value(&word, machines, "1000, 10000, 100000 or 1000000")?;
                }
                _ => return Err(Usage::unknown(&word).into()),
            }
        }
        Ok(options)
    }
}

pub(super) fn command(words: Words) -> Result<Outcome> {
    run(&FleetOptions::read(words)?)
}

pub(super) fn run(options: &FleetOptions) -> Result<Outcome> {
    let root = tree::root()?;
    let program = build(&root, &["--package", "forewarn", "--bin", "forewarn"])?;
    let clients = build(&root, &["--package", "forewarn-bench", "--bin", "streams"])?;
    let setting = format!("{}, {}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let sizes = MACHINES.into_iter().filter(|machines| *machines <= options.machines);
    let rows = sizes.map(|machines| measure(&FleetServer::new(&program, &clients)?, machines));
    let report = FleetReport { setting, rows: rows.collect::<Result<_>>()? };
    println!("{}", report.text());
    match options.keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

fn measure(server: &FleetServer<'_>, machines: u32) -> Result<FleetRow> {
    eprintln!("machines: {machines}");
    let mut running = server.start()?;
    running.prepare()?;
    let apply = running.measure(|running| running.apply(machines))?;
    let applied_bytes = running.resident_bytes()?;
    let commands = running.commands()?;
    running.stop()?;
    let (restarted, start) = server.restart()?;
    let restarted_bytes = restarted.resident_bytes()?;
    Ok(FleetRow { machines, apply, applied_bytes, commands, start, restarted_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_and_limits() {
        let read = |line: &str| FleetOptions::read(Words::new(line.split_whitespace().map(str::to_owned)));
        assert_eq!(read("").unwrap().machines, 1_000_000);
        let options = read("--machines 10000 --save").unwrap();
        assert_eq!((options.machines, options.keep), (10_000, Keep::Save));
        for wrong in ["--machines 7", "--machines", "--fast"] {
            assert!(read(wrong).is_err_and(|problem| problem.is::<Usage>()), "{wrong}");
        }
    }
}
