//! `cargo xtask bench …`: what things cost, printed, and kept with `--save`.

mod core;
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

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    match words.next().as_deref() {
        Some("core") => core::command(words),
        Some("metadata") => metadata::command(words),
        Some(other) => Err(Usage::unknown(other).into()),
        None => Err(Usage::new("no benchmark named\n  hint: cargo xtask bench core, or metadata").into()),
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
