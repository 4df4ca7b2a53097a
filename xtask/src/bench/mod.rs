//! `cargo xtask bench …`: benchmarks; `--save` stores the results.

mod agent;
mod core;
mod dashboard;
mod fleet;
mod hostile;
mod metadata;
pub(crate) mod poll_cost;
mod realm;
mod results;
mod rollout;
mod story;
mod streams;

use anyhow::Result;

use crate::steps::Outcome;
use crate::words::{Usage, Words};

/// The treatment of results, besides printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Nothing,
    Save,
}

impl Keep {
    /// Reads the options of a benchmark.
    fn read(words: Words) -> Result<Self> {
        let mut keep = Self::Nothing;
        for word in words {
            match word.as_str() {
                "--save" => keep = Self::Save,
                _ => return Err(Usage::unknown(&word).into()),
            }
        }
        Ok(keep)
    }
}

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    match words.next().as_deref() {
        Some("core") => core::run(Keep::read(words)?),
        Some("rollout") => rollout::run(Keep::read(words)?),
        Some("story") => story::run(Keep::read(words)?),
        Some("metadata") => metadata::command(words),
        Some("hostile") => hostile::run(Keep::read(words)?),
        Some("agent") => agent::run(Keep::read(words)?),
        Some("streams") => streams::command(words),
        Some("fleet") => fleet::command(words),
        Some("realm") => realm::command(words),
        Some("dashboard") => dashboard::run(Keep::read(words)?),
        Some(other) => Err(Usage::unknown(other).into()),
        None => {
            let hint = "cargo xtask bench core, rollout, story, metadata, hostile, agent, streams, fleet, realm, or dashboard";
            Err(Usage::new(&format!("no benchmark named\n  hint: {hint}")).into())
        }
    }
}

/// Measures the dashboard.
pub(crate) fn measure_dashboard() -> Result<Outcome> {
    dashboard::run(Keep::Nothing)
}

/// Measures the rules.
pub(crate) fn measure_rules() -> Result<Outcome> {
    core::run(Keep::Nothing)
}

/// Counts the instructions of a rollout.
pub(crate) fn count_rollouts() -> Result<Outcome> {
    rollout::count()
}

/// Measures a poll.
pub(crate) fn measure_polls() -> Result<Outcome> {
    metadata::run(Keep::Nothing, None)
}

/// Measures the effect of a hostile VM on others.
pub(crate) fn measure_hostile() -> Result<Outcome> {
    hostile::run(Keep::Nothing)
}

/// Measures an agent.
pub(crate) fn measure_agent() -> Result<Outcome> {
    agent::run(Keep::Nothing)
}

/// Measures fleets of a thousand machines to a million.
pub(crate) fn measure_fleets() -> Result<Outcome> {
    fleet::run(&fleet::FleetOptions::default())
}

/// Measures commands in several clusters.
pub(crate) fn measure_streams() -> Result<Outcome> {
    streams::run(&streams::StreamsOptions::default())
}
