//! The command line: a part and its options.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use forewarn_bench::blocks::MACHINES_PER_BLOCK;
use forewarn_bench::program::GivenOption;

use crate::gaps::Loss;

const ROUNDS: RangeInclusive<u32> = 1..=1_000;
const STREAMS: RangeInclusive<u32> = 1..=1_000;
const MACHINES: RangeInclusive<u32> = 1_000..=1_000_000;
const SECONDS: RangeInclusive<u32> = 1..=3_600;
const HINT: &str = "realm gap|commits|takeover|forwarding|publication|outage --forewarn PROGRAM --etcd PROGRAM \
                    --directory DIRECTORY [--loss server|leader|both|move] [--rounds N] [--streams N] [--machines N] \
                    [--seconds N]";

/// The figure that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Gap,
    Commits,
    Takeover,
    Forwarding,
    Publication,
    Outage,
}

/// A part with its options; a part ignores those of the others.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) part: Part,
    pub(crate) forewarn: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) loss: Loss,
    pub(crate) rounds: u32,
    pub(crate) streams: u32,
    pub(crate) machines: u32,
    pub(crate) seconds: u32,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let part = match words.next().unwrap_or_default().as_str() {
            "gap" => Part::Gap,
            "commits" => Part::Commits,
            "takeover" => Part::Takeover,
            "forwarding" => Part::Forwarding,
            "publication" => Part::Publication,
            "outage" => Part::Outage,
            other => return Err(format!("unknown part: {other:?}\n  hint: {HINT}")),
        };
        let mut arguments = Self {
            part,
            forewarn: PathBuf::new(),
            etcd: PathBuf::from("etcd"),
            directory: PathBuf::new(),
            loss: Loss::Server,
            rounds: 1,
            streams: 1,
            machines: MACHINES_PER_BLOCK,
            seconds: 60,
        };
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_default();
            let option = GivenOption { word: &word, value: &value, hint: HINT };
            match word.as_str() {
                "--forewarn" => arguments.forewarn = value.into(),
                "--etcd" => arguments.etcd = value.into(),
                "--directory" => arguments.directory = value.into(),
                "--loss" => arguments.loss = option.parsed(Loss::of(&value))?,
                "--rounds" => arguments.rounds = option.number(ROUNDS)?,
                "--streams" => arguments.streams = option.number(STREAMS)?,
                "--machines" => arguments.machines = option.multiple(MACHINES_PER_BLOCK, MACHINES)?,
                "--seconds" => arguments.seconds = option.number(SECONDS)?,
                _ => return Err(option.unknown()),
            }
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn a_part_has_its_options() {
        let arguments = parse("gap --loss both --rounds 5 --forewarn f --etcd e --directory d").unwrap();
        assert_eq!((arguments.part, arguments.loss, arguments.rounds), (Part::Gap, Loss::Both, 5));
        for wrong in
            ["", "gaps", "gap --loss all", "commits --streams 0", "takeover --machines 1500", "gap --fast 1"]
        {
            assert!(parse(wrong).unwrap_err().contains("hint: realm gap|"), "{wrong}");
        }
    }
}
