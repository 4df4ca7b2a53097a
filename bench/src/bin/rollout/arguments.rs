//! The command line: `--machines N --group M --enrolled all|one --starts approved|expired`.

use std::ops::RangeInclusive;

use crate::fleet::{Enrolled, MACHINES_PER_BLOCK, MACHINES_PER_HOST};

const MACHINES_MAX: u32 = 1_000_000;
/// The rules have no larger groups.
const GROUP_MAX: u32 = 1_000;

/// The size of a fleet, and the course of its rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) machines: u32,
    /// Machines of one group of the rollout.
    pub(crate) group: u32,
    pub(crate) enrolled: Enrolled,
    pub(crate) starts: Starts,
}

/// The reason for which a group starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// Every tenant approves its event at once.
    Approved,
    /// No tenant approves: the notice runs out.
    Expired,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (enrolled, starts) = (Enrolled::All, Starts::Approved);
        let mut arguments = Self { machines: 1_000, group: GROUP_MAX, enrolled, starts };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_default();
            match (word.as_str(), value.as_str()) {
                ("--machines", _) => {
                    let range = MACHINES_PER_BLOCK..=MACHINES_MAX;
                    arguments.machines = multiple(&word, &value, &range, MACHINES_PER_BLOCK)?;
                }
                ("--group", _) => {
                    let range = MACHINES_PER_HOST..=GROUP_MAX;
                    arguments.group = multiple(&word, &value, &range, MACHINES_PER_HOST)?;
                }
                ("--enrolled", "all") => arguments.enrolled = Enrolled::All,
                ("--enrolled", "one") => arguments.enrolled = Enrolled::One,
                ("--starts", "approved") => arguments.starts = Starts::Approved,
                ("--starts", "expired") => arguments.starts = Starts::Expired,
                _ => {
                    let hint = "rollout --machines N --group M --enrolled all|one --starts approved|expired";
                    return Err(format!("unknown words: {word} {value}\n  hint: {hint}"));
                }
            }
        }
        Ok(arguments)
    }
}

fn multiple(word: &str, value: &str, range: &RangeInclusive<u32>, of: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number: &u32| range.contains(number));
    number.filter(|number| number.is_multiple_of(of)).ok_or_else(|| {
        let (first, last) = (range.start(), range.end());
        format!("not a value for {word}: {value:?}\n  hint: a multiple of {of} from {first} to {last}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn words_are_taken_within_their_limits() {
        let (enrolled, starts) = (Enrolled::One, Starts::Expired);
        let words = ["--machines", "200", "--group", "40", "--enrolled", "one", "--starts", "expired"];
        assert_eq!(parse(&words), Ok(Arguments { machines: 200, group: 40, enrolled, starts }));
        for wrong in [["--machines", "150"], ["--group", "1020"], ["--enrolled", "none"], ["--what", "5"]] {
            assert!(parse(&wrong).unwrap_err().contains("hint: "), "{wrong:?}");
        }
        assert!(parse(&["--group"]).is_err());
    }
}
