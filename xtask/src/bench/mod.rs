//! `cargo xtask bench …`: what things cost, printed, and kept with `--save`.

mod agent;
mod core;
mod hostile;
mod metadata;
mod results;

use anyhow::Result;

use crate::steps::Outcome;
use crate::words::{Usage, Words};

/// Where the numbers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Nothing,
    Save,
}

impl Keep {
    /// What whoever asks for numbers has said of them.
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
        Some("metadata") => metadata::command(words),
        Some("hostile") => hostile::run(Keep::read(words)?),
        Some("agent") => agent::run(Keep::read(words)?),
        Some(other) => Err(Usage::unknown(other).into()),
        None => {
            let hint = "cargo xtask bench core, metadata, hostile, or agent";
            Err(Usage::new(&format!("no benchmark named\n  hint: {hint}")).into())
        }
    }
}

/// What the rules cost.
pub(crate) fn measure_rules() -> Result<Outcome> {
    core::run(Keep::Nothing)
}

/// What a poll costs.
pub(crate) fn measure_polls() -> Result<Outcome> {
    metadata::run(Keep::Nothing, None)
}

/// What a hostile machine costs its neighbours.
pub(crate) fn measure_hostile() -> Result<Outcome> {
    hostile::run(Keep::Nothing)
}

/// What an agent costs its machine.
pub(crate) fn measure_agent() -> Result<Outcome> {
    agent::run(Keep::Nothing)
}
