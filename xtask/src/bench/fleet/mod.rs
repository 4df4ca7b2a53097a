//! `cargo xtask bench fleet`: the cost of a fleet, from a thousand machines to a million.
//!
//! ```text
//!   forewarn serve, empty ──▶ apply the fleet ──▶ names: commands, scale sets ──▶ beside: other work
//!                         ──▶ stop, start, first poll ──▶ audit: a large log, start again ──▶ beside
//!                         ──▶ polls: long polls          watchers: on a fleet of its own
//!   rollouts: `bench rollout`, in virtual time
//! ```
//!
//! Everything is on loopback, and bounded in count and in time.

mod figures;
mod graph;
mod measure;
mod options;
mod report;
mod server;
mod tables;

use anyhow::{Context, Result};

use super::metadata::{build, kernel};
use super::{Keep, results, rollout};
use crate::steps::Outcome;
use crate::tree;
use crate::words::Words;

pub(super) use options::FleetOptions;
use options::{Part, Parts};
use report::FleetReport;
use server::FleetServer;

/// Its section in the results.
const NAME: &str = "fleet";
/// The fleet consists of blocks of so many VMs.
const MACHINES_PER_BLOCK: u32 = 1_000;

pub(super) fn command(words: Words) -> Result<Outcome> {
    run(&FleetOptions::read(words)?)
}

pub(super) fn run(options: &FleetOptions) -> Result<Outcome> {
    let root = tree::root()?;
    let program = match &options.program {
        Some(program) => program.canonicalize()?,
        None => build(&root, &["--package", "forewarn", "--bin", "forewarn"])?,
    };
    let clients = build(&root, &["--package", "forewarn-bench", "--bin", "fleet"])?;
    let setting = format!("{}, {}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let mut report = FleetReport { setting, fleets: Vec::new(), connections: None };
    if options.parts.has(Part::Watchers) {
        report.connections = Some(measure::connections(|| FleetServer::new(&program, &clients))?);
    }
    let sizes = options.machines.iter().filter(|_| options.parts.needs_fleet());
    for machines in sizes {
        let size =
            measure::FleetSize { machines: *machines, is_largest: options.machines.last() == Some(machines) };
        report.fleets.push(measure::fleet(&FleetServer::new(&program, &clients)?, size, options.parts)?);
    }
    if options.parts != Parts::Only(Part::Rollouts) {
        println!("{}", report.text());
    }
    match options.keep {
        Keep::Nothing => {}
        Keep::Save => {
            results::save(&root, NAME, &report.text())?;
            for (file, graph) in report.graphs() {
                let file = root.join(file);
                std::fs::write(&file, graph).with_context(|| format!("cannot write: {}", file.display()))?;
            }
        }
    }
    let judged = report.judge();
    if options.parts.has(Part::Rollouts) { Ok(judged.and(rollout::run(options.keep)?)) } else { Ok(judged) }
}
