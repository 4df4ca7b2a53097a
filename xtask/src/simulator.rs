//! `cargo xtask sim`: runs seeds of the simulator in `sim`.

use std::fmt;

use anyhow::Result;

use crate::steps::{Outcome, cargo, status};
use crate::tree;
use crate::words::{Usage, Words};

/// Seeds of a long run, and the parts in which it can be resumed.
const SEEDS_IN_LONG_RUN: u64 = 20_000;
const PARTS: u64 = 20;

/// One of the parts of a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(u64);

impl Part {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..PARTS).map(Self)
    }

    /// Its first seed, and the number of its seeds.
    fn seeds(self) -> (u64, u64) {
        let seeds = SEEDS_IN_LONG_RUN / PARTS;
        (1 + self.0 * seeds, seeds)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {PARTS}", self.0 + 1)
    }
}

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let mut arguments = Vec::new();
    let number = |text: &str| text.parse::<u64>().ok();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" | "--from" => {
                let value = words.value(&word, number, "a whole number")?;
                arguments.extend([word, value.to_string()]);
            }
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    run(&arguments)
}

/// Runs one part of the seeds of a long run.
pub(crate) fn run_part(part: Part) -> Result<Outcome> {
    let (first, seeds) = part.seeds();
    run(&["--from".to_owned(), first.to_string(), "--seeds".to_owned(), seeds.to_string()])
}

fn run(arguments: &[String]) -> Result<Outcome> {
    let mut simulator = cargo();
    simulator.args(["run", "--quiet", "--package", "forewarn-sim", "--locked", "--"]).args(arguments);
    status(simulator.current_dir(tree::root()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_have_every_seed_once() {
        let seeds = Part::all().flat_map(|part| {
            let (first, seeds) = part.seeds();
            first..first + seeds
        });
        assert!(seeds.eq(1..=SEEDS_IN_LONG_RUN));
        assert_eq!(Part(2).to_string(), "part 3 of 20");
    }
}
