//! `cargo xtask bench rollout`: the cost of a rolling update of every host of a fleet, in virtual time.
//!
//! Time depends on the computer and its load; instructions do not, so the goals are about instructions: a completion
//! and an approval cost the same in a large group as in a small one, and in a large fleet as in a small one. valgrind
//! counts them, where it is installed.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;

/// Its section in the results.
const NAME: &str = "rollout";
const RATIO_PERCENT_MAX: u64 = 150;
const TIMED_MACHINES: &str = "100000";
/// Processor time of the decisions of such a rollout.
const MILLISECONDS_MAX: u64 = 10_000;
/// The fleets and groups whose instructions are counted. The first is compared with each of the others.
const COUNTED: [(u64, u64); 3] = [(5_000, 100), (5_000, 1_000), (20_000, 100)];
const KINDS: [&str; 2] = ["completion", "approval"];

/// The instructions of one kind of command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted {
    kind: &'static str,
    machines: u64,
    group: u64,
    instructions: u64,
}

/// Measures a large fleet, and counts instructions.
pub(super) fn run(keep: Keep) -> Result<Outcome> {
    let root = tree::root()?;
    let program = build(&root)?;
    let mut table = String::from(
        "| enrolled tenants | starts | machines | groups | load ms | ms |\n|---|---|---:|---:|---:|---:|\n",
    );
    let mut longest = 0;
    for (enrolled, starts) in [("all", "approved"), ("all", "expired"), ("one", "approved")] {
        let words = ["--machines", TIMED_MACHINES, "--enrolled", enrolled, "--starts", starts];
        let value = result_of(Command::new(&program).args(words))?;
        let (machines, groups, load) = (&value["machines"], &value["groups"], &value["load_milliseconds"]);
        let time = value["milliseconds"].as_u64().context("no time in the result")?;
        writeln!(table, "| {enrolled} | {starts} | {machines} | {groups} | {load} | {time} |")?;
        longest = longest.max(time);
    }
    let counted = count_all(&program)?;
    write!(table, "\n{}", counted_table(&counted))?;
    println!("{table}");
    match keep {
        Keep::Nothing => {}
        Keep::Save => {
            results::save(&root, NAME, &format!("Measured on: {}.\n\n{table}", results::machine()))?;
        }
    }
    if longest > MILLISECONDS_MAX {
        return Ok(Outcome::Failed(format!(
            "a rollout takes {longest} ms (goal: at most {MILLISECONDS_MAX})"
        )));
    }
    Ok(judge(&counted))
}

/// Counts instructions only: nothing depends on the computer.
pub(super) fn count() -> Result<Outcome> {
    let counted = count_all(&build(&tree::root()?)?)?;
    println!("{}", counted_table(&counted));
    Ok(judge(&counted))
}

fn build(root: &Path) -> Result<std::path::PathBuf> {
    let mut command = cargo();
    let words = ["build", "--release", "--locked", "--package", "forewarn-bench", "--bin", "rollout"];
    built_program(command.current_dir(root).args(words)).context("cannot build the benchmark")
}

/// The instructions of every kind, in every fleet; none where valgrind is missing.
fn count_all(program: &Path) -> Result<Vec<Counted>> {
    let mut all = Vec::new();
    if !super::core::has_valgrind() {
        eprintln!("VALGRIND IS MISSING: instructions are not counted");
        return Ok(all);
    }
    for kind in KINDS {
        for (machines, group) in COUNTED {
            eprintln!("counting the instructions of each {kind}, machines: {machines}, in groups of {group}");
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            valgrind.arg(format!("--toggle-collect=*measured_{kind}*")).arg(program);
            valgrind.args(["--machines", &machines.to_string(), "--group", &group.to_string()]);
            let output = valgrind.output().context("cannot run valgrind")?;
            let instructions = instructions(
                kind,
                &String::from_utf8_lossy(&output.stdout),
                &String::from_utf8_lossy(&output.stderr),
            )?;
            all.push(Counted { kind, machines, group, instructions });
        }
    }
    Ok(all)
}

fn result_of(command: &mut Command) -> Result<Value> {
    let output = command.output().context("cannot run the benchmark")?;
    serde_json::from_slice(&output.stdout).context("the benchmark printed no result")
}

/// The instructions of one command. The benchmark prints the number of commands, valgrind the sum of instructions.
fn instructions(kind: &str, line: &str, valgrind: &str) -> Result<u64> {
    let value: Value = serde_json::from_str(line).context("the benchmark printed no result")?;
    let commands = value[format!("{kind}s")].as_u64().context("no number of commands in the result")?;
    let collected = valgrind.lines().find_map(|line| line.split_once("Collected :"));
    let (_, collected) = collected.context("valgrind printed no number of instructions")?;
    let sum: u64 = collected.trim().parse().context("not a number of instructions")?;
    ensure!(sum > 0 && commands > 0, "valgrind did not find the measured function");
    Ok(sum / commands)
}

fn counted_table(counted: &[Counted]) -> String {
    let mut table = String::from("| command | machines | group | instructions |\n|---|---:|---:|---:|\n");
    for Counted { kind, machines, group, instructions } in counted {
        let _ = writeln!(table, "| {kind} | {machines} | {group} | {instructions} |");
    }
    table
}

/// Compares each count with the one of the small fleet and the small group.
fn judge(counted: &[Counted]) -> Outcome {
    if counted.is_empty() {
        return Outcome::Skipped("instructions were not counted: valgrind is missing".to_owned());
    }
    let base = |kind| {
        let first = counted.iter().find(|one| one.kind == kind && (one.machines, one.group) == COUNTED[0]);
        first.map_or(1, |one| one.instructions.max(1))
    };
    let percent = |one: &Counted| (one.instructions * 100).div_ceil(base(one.kind));
    let missed: Vec<_> = counted
        .iter()
        .filter(|one| percent(one) > RATIO_PERCENT_MAX)
        .map(|one| {
            let Counted { kind, machines, group, .. } = one;
            let percent = percent(one);
            format!("a {kind} costs {percent} % with {machines} machines in groups of {group}")
        })
        .collect();
    if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(large_group: u64, large_fleet: u64) -> Vec<Counted> {
        let costs = [1_000, large_group, large_fleet];
        let of_kind = |kind| {
            let counted = COUNTED.into_iter().zip(costs);
            counted.map(move |((machines, group), instructions)| Counted {
                kind,
                machines,
                group,
                instructions,
            })
        };
        KINDS.into_iter().flat_map(of_kind).collect()
    }

    #[test]
    fn a_large_group_or_fleet_may_cost_half_as_much_again() {
        assert_eq!(judge(&counts(1_500, 1_500)), Outcome::Passed);
        assert!(matches!(judge(&counts(1_501, 900)), Outcome::Failed(why) if why.contains("groups of 1000")));
        assert!(matches!(judge(&counts(900, 1_501)), Outcome::Failed(why) if why.contains("20000 machines")));
        assert!(matches!(judge(&[]), Outcome::Skipped(_)));
        assert!(counted_table(&counts(7, 8)).contains("\n| approval | 20000 | 100 | 8 |\n"));
    }

    #[test]
    fn instructions_are_divided_by_commands() {
        let line = "{\"completions\":20,\"approvals\":0}";
        assert_eq!(instructions("completion", line, "==1== Collected : 4000\n").unwrap(), 200);
        assert!(instructions("approval", line, "==1== Collected : 4000\n").is_err());
        assert!(instructions("completion", line, "==1== Collected : 0\n").is_err());
    }
}
