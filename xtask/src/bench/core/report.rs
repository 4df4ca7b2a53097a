//! The report of the core benchmark, and its goals.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::steps::Outcome;

const RATIO_PERCENT_MAX: u64 = 150;
const BYTES_PER_MACHINE_MAX: u64 = 300;
const ORDER_NANOSECONDS_MAX: u64 = 1_000_000;
const SMALL: u64 = 1_000;
const LARGE: u64 = 1_000_000;

/// A run of the benchmark without valgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    machines: u64,
    commands: u64,
    nanoseconds: u64,
    bytes_per_machine: u64,
    changes: String,
    copy: Copied,
    order: Copied,
    /// Each kind of command, with its time.
    kinds: Vec<(String, u64)>,
}

/// The cost of one copy of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    nanoseconds: u64,
    bytes: u64,
}

/// A run of the benchmark under valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    machines: u64,
    instructions_per_command: u64,
}

/// A number and its maximum.
struct CostGoal {
    what: &'static str,
    value: u64,
    max: u64,
}

/// All results.
pub(super) struct CostReport {
    pub(super) timed: Vec<Timed>,
    /// Empty where valgrind is missing.
    pub(super) counted: Vec<Counted>,
}

impl Timed {
    pub(super) fn parse(line: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(line).context("the benchmark printed no result")?;
        let number = |key: &str| value[key].as_u64().with_context(|| format!("not in the result: {key}"));
        let copied = |key: &str| {
            let numbers = (value[key]["nanoseconds"].as_u64(), value[key]["bytes"].as_u64());
            let (Some(nanoseconds), Some(bytes)) = numbers else { bail!("not in the result: {key}") };
            Ok(Copied { nanoseconds, bytes })
        };
        let kinds = value["kinds"].as_array().context("not in the result: kinds")?.iter();
        let kinds = kinds.filter_map(|kind| {
            Some((kind["kind"].as_str()?.to_owned(), kind["nanoseconds_per_command"].as_u64()?))
        });
        Ok(Self {
            machines: number("machines")?,
            commands: number("commands")?,
            nanoseconds: number("nanoseconds_per_command")?,
            bytes_per_machine: number("resident_bytes_per_machine")?,
            changes: value["changes_per_command"].to_string(),
            copy: copied("copy")?,
            order: copied("order")?,
            kinds: kinds.collect(),
        })
    }

    pub(super) fn nanoseconds(&self) -> u64 {
        self.nanoseconds
    }
}

impl Counted {
    /// The benchmark prints the number of commands, valgrind the number of instructions.
    pub(super) fn parse(line: &str, valgrind: &str) -> Result<Self> {
        let timed = Timed::parse(line)?;
        let collected = valgrind.lines().find_map(|line| line.split_once("Collected :"));
        let (_, collected) = collected.context("valgrind printed no number of instructions")?;
        let instructions: u64 = collected.trim().parse().context("not a number of instructions")?;
        anyhow::ensure!(instructions > 0, "valgrind did not find the measured function");
        Ok(Self { machines: timed.machines, instructions_per_command: instructions / timed.commands.max(1) })
    }
}

impl CostReport {
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        text.push_str("| machines | ns per command | instructions per command | changes per command | bytes per machine |\n");
        text.push_str("|---:|---:|---:|---:|---:|\n");
        for timed in &self.timed {
            let instructions = self.instructions(timed.machines).map_or("-".to_owned(), |n| n.to_string());
            let Timed { machines, nanoseconds, changes, bytes_per_machine, .. } = timed;
            let _ = writeln!(
                text,
                "| {machines} | {nanoseconds} | {instructions} | {changes} | {bytes_per_machine} |"
            );
        }
        let _ = write!(text, "\n{}\n{}", self.kinds_table(), self.copies_table());
        for goal in self.goals() {
            let _ = write!(text, "\n{}", goal.line());
        }
        text
    }

    fn kinds_table(&self) -> String {
        let mut text = String::from("| ns per command, machines: |");
        for timed in &self.timed {
            let _ = write!(text, " {} |", timed.machines);
        }
        let _ = write!(text, "\n|---|{}", "---:|".repeat(self.timed.len()));
        let names = self.timed.first().map_or(&[][..], |timed| &timed.kinds);
        for (place, (name, _)) in names.iter().enumerate() {
            let _ = write!(text, "\n| {name} |");
            for timed in &self.timed {
                let _ =
                    write!(text, " {} |", timed.kinds.get(place).map_or(0, |(_, nanoseconds)| *nanoseconds));
            }
        }
        text.push('\n');
        text
    }

    fn copies_table(&self) -> String {
        let mut text = String::from(
            "| machines | clone of a cluster, ns | bytes | order of two commands on a copy, ns | bytes |\n",
        );
        text.push_str("|---:|---:|---:|---:|---:|\n");
        for Timed { machines, copy, order, .. } in &self.timed {
            let _ = write!(text, "| {machines} | {} | {} |", copy.nanoseconds, copy.bytes);
            let _ = writeln!(text, " {} | {} |", order.nanoseconds, order.bytes);
        }
        text
    }

    /// Fails where a goal is missed; a goal that could not be measured is a skip.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.goals().iter().filter(|goal| !goal.is_met()).map(CostGoal::line).collect();
        if !missed.is_empty() {
            return Outcome::Failed(missed.join("; "));
        }
        if self.counted.is_empty() {
            return Outcome::Skipped("instructions were not counted: valgrind is missing".to_owned());
        }
        Outcome::Passed
    }

    /// Each goal that was measured.
    fn goals(&self) -> Vec<CostGoal> {
        let small_and_large = self.instructions(SMALL).zip(self.instructions(LARGE));
        let ratio = small_and_large.map(|(small, large)| CostGoal {
            what: "instructions at 1,000,000 machines, in percent of those at 1,000",
            value: (large * 100).div_ceil(small.max(1)),
            max: RATIO_PERCENT_MAX,
        });
        let large = self.timed.iter().find(|timed| timed.machines == LARGE);
        let memory = large.map(|large| CostGoal {
            what: "bytes per machine at 1,000,000 machines",
            value: large.bytes_per_machine,
            max: BYTES_PER_MACHINE_MAX,
        });
        let order = large.map(|large| CostGoal {
            what: "ns for an order of two commands on a copy at 1,000,000 machines",
            value: large.order.nanoseconds,
            max: ORDER_NANOSECONDS_MAX,
        });
        ratio.into_iter().chain(memory).chain(order).collect()
    }

    fn instructions(&self, machines: u64) -> Option<u64> {
        let counted = self.counted.iter().find(|counted| counted.machines == machines);
        counted.map(|counted| counted.instructions_per_command)
    }
}

impl CostGoal {
    fn is_met(&self) -> bool {
        self.value <= self.max
    }

    fn line(&self) -> String {
        let met = if self.is_met() { "met" } else { "MISSED" };
        format!("- {}: {} (goal: at most {}): {met}", self.what, self.value, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(machines: u64, bytes: u64) -> String {
        format!(
            "{{\"machines\":{machines},\"commands\":20,\"nanoseconds_per_command\":7,\"changes_per_command\":1.15,\
             \"resident_bytes_per_machine\":{bytes},\"copy\":{{\"nanoseconds\":3,\"bytes\":4}},\
             \"order\":{{\"nanoseconds\":5,\"bytes\":6}},\"kinds\":[{{\"kind\":\"tick\",\"commands\":1,\
             \"nanoseconds_per_command\":9}}]}}"
        )
    }

    fn report(instructions: u64, bytes: u64) -> CostReport {
        let counted = |machines, instructions| {
            let valgrind = format!("==1== Events    : Ir\n==1== Collected : {instructions}\n");
            Counted::parse(&line(machines, 0), &valgrind).unwrap()
        };
        CostReport {
            timed: vec![Timed::parse(&line(SMALL, 900)).unwrap(), Timed::parse(&line(LARGE, bytes)).unwrap()],
            counted: vec![counted(SMALL, 20_000), counted(LARGE, instructions)],
        }
    }

    #[test]
    fn goals_are_met_up_to_their_limit() {
        assert_eq!(report(30_000, 300).judge(), Outcome::Passed);
        assert!(matches!(report(30_200, 300).judge(), Outcome::Failed(why) if why.contains("151")));
        assert!(matches!(report(30_000, 301).judge(), Outcome::Failed(why) if why.contains("301")));
        let mut slow = report(30_000, 300);
        slow.timed[1].order.nanoseconds = 1_000_001;
        assert!(matches!(slow.judge(), Outcome::Failed(why) if why.contains("1000001")));
        let uncounted = CostReport { counted: Vec::new(), ..report(30_000, 300) };
        assert!(matches!(uncounted.judge(), Outcome::Skipped(_)));
    }

    #[test]
    fn a_table_has_a_row_for_each_size_and_says_whether_goals_are_met() {
        let table = report(30_200, 250).table();
        assert!(table.contains("\n| 1000 | 7 | 1000 | 1.15 | 900 |\n| 1000000 | 7 | 1510 | 1.15 | 250 |\n"));
        assert!(table.contains("\n| tick | 9 | 9 |\n"), "{table}");
        assert!(table.contains("in percent of those at 1,000: 151 (goal: at most 150): MISSED"));
        assert!(table.contains("\n| 1000 | 3 | 4 | 5 | 6 |\n| 1000000 | 3 | 4 | 5 | 6 |\n"), "{table}");
        assert!(table.contains("bytes per machine at 1,000,000 machines: 250 (goal: at most 300): met"));
        assert!(table.ends_with("on a copy at 1,000,000 machines: 5 (goal: at most 1000000): met"));
    }

    #[test]
    fn a_count_of_nothing_is_no_count() {
        assert!(Counted::parse(&line(1_000, 1), "==1== Collected : 0\n").is_err());
        assert!(Counted::parse(&line(1_000, 1), "").is_err());
    }
}
