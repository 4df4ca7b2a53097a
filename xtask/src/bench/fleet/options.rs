//! The options of the benchmark.

use std::path::PathBuf;

use anyhow::Result;

use super::super::Keep;
use crate::words::{Usage, Words};

pub(super) const MACHINES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const PARTS_HINT: &str = "apply, start, audit, names, beside, watchers, polls or rollouts";

/// A part of the benchmark. The fleet is applied in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Apply,
    Start,
    Audit,
    Names,
    Beside,
    Watchers,
    Polls,
    /// The section of another benchmark: it has no server.
    Rollouts,
}

/// The parts to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    All,
    Only(Part),
}

/// The options of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bench) struct FleetOptions {
    pub(super) keep: Keep,
    /// The sizes of the fleets, ascending.
    pub(super) machines: Vec<u32>,
    pub(super) parts: Parts,
    /// The measured program, instead of the one of this tree.
    pub(super) program: Option<PathBuf>,
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "apply" => Self::Apply,
            "start" => Self::Start,
            "audit" => Self::Audit,
            "names" => Self::Names,
            "beside" => Self::Beside,
            "watchers" => Self::Watchers,
            "polls" => Self::Polls,
            "rollouts" => Self::Rollouts,
            _ => return None,
        })
    }
}

impl Parts {
    pub(super) fn has(self, part: Part) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == part,
        }
    }

    /// False if no part needs a server that was started again.
    pub(super) fn needs_restart(self) -> bool {
        [Part::Start, Part::Audit, Part::Beside, Part::Polls].iter().any(|part| self.has(*part))
    }

    /// False if no part needs a large fleet.
    pub(super) fn needs_fleet(self) -> bool {
        !matches!(self, Self::Only(Part::Watchers | Part::Rollouts))
    }
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { keep: Keep::Nothing, machines: MACHINES.to_vec(), parts: Parts::All, program: None }
    }
}

impl FleetOptions {
    pub(super) fn read(mut words: Words) -> Result<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--save" => options.keep = Keep::Save,
                "--machines" => {
                    let hint = "1000, 10000, 100000, 1000000, or several of them with commas";
                    options.machines = words.value(&word, parse_sizes, hint)?;
                }
                "--program" => {
                    let parse = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_file());
                    options.program =
                        Some(words.value(&word, parse, "a file, built from crates/forewarn")?);
                }
                "--only" => options.parts = Parts::Only(words.value(&word, Part::parse, PARTS_HINT)?),
                _ => return Err(Usage::unknown(&word).into()),
            }
        }
        if options.keep == Keep::Save && options.parts != Parts::All {
            return Err(Usage::new(
                "--only with --save would lose the other results\n  hint: save all parts",
            )
            .into());
        }
        Ok(options)
    }
}

fn parse_sizes(text: &str) -> Option<Vec<u32>> {
    let sizes = text.split(',').map(|size| size.parse().ok().filter(|size| MACHINES.contains(size)));
    let mut sizes = sizes.collect::<Option<Vec<_>>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<FleetOptions> {
        FleetOptions::read(Words::new(line.split_whitespace().map(str::to_owned)))
    }

    #[test]
    fn options_have_defaults_and_limits() {
        assert_eq!(read("").unwrap(), FleetOptions::default());
        let options = read("--machines 10000,1000 --save").unwrap();
        assert_eq!((options.machines, options.keep), (vec![1_000, 10_000], Keep::Save));
        for wrong in ["--machines 7", "--machines", "--fast", "--only x", "--only apply --save"] {
            assert!(read(wrong).is_err_and(|problem| problem.is::<Usage>()), "{wrong}");
        }
    }

    #[test]
    fn a_part_runs_alone() {
        let only = read("--only watchers").unwrap().parts;
        assert!(only.has(Part::Watchers) && !only.has(Part::Names));
        assert!(!only.needs_fleet() && !only.needs_restart());
        assert!(Parts::All.needs_fleet() && Parts::Only(Part::Polls).needs_restart());
    }
}
