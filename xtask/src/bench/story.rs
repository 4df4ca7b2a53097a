//! `cargo xtask bench story`: the cost of a large story in the rules.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;

/// Its section in the results.
const NAME: &str = "story";

/// Machines and events of the measured stories: the last one has the goal, the others show the growth.
const STORIES: [(u32, u32); 3] = [(1_000, 1_000), (10_000, 100), (10_000, 1_000)];

/// Processor time of the last story.
const MILLISECONDS_MAX: u64 = 10_000;

pub(super) fn run(keep: Keep) -> Result<Outcome> {
    let root = tree::root()?;
    let mut build = cargo();
    let words = ["build", "--release", "--locked", "--package", "forewarn-bench", "--bin", "story"];
    let program =
        built_program(build.current_dir(&root).args(words)).context("cannot build the benchmark")?;
    let mut table = String::from(
        "| machines | events | documents | ms | parse CPU ms | run CPU ms | peak KiB |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut last = 0;
    for (machines, events) in STORIES {
        let words = ["--machines", &machines.to_string(), "--events", &events.to_string()];
        let output = Command::new(&program).args(words).output().context("cannot run the benchmark")?;
        let value: Value =
            serde_json::from_slice(&output.stdout).context("the benchmark printed no result")?;
        last = row(&mut table, &value)?;
    }
    println!("{table}");
    match keep {
        Keep::Nothing => {}
        Keep::Save => {
            results::save(&root, NAME, &format!("Measured on: {}.\n\n{table}", results::machine()))?;
        }
    }
    Ok(judge(last))
}

/// Adds the row of a story. Returns its processor time.
fn row(table: &mut String, value: &Value) -> Result<u64> {
    let number = |name: &str| value[name].as_u64().with_context(|| format!("no {name} in the result"));
    let run = number("run_cpu_milliseconds")?;
    writeln!(
        table,
        "| {} | {} | {} | {} | {} | {run} | {} |",
        number("machines")?,
        number("events")?,
        number("documents")?,
        number("milliseconds")?,
        number("parse_cpu_milliseconds")?,
        number("peak_kibibytes")?
    )?;
    Ok(run)
}

fn judge(milliseconds: u64) -> Outcome {
    if milliseconds > MILLISECONDS_MAX {
        return Outcome::Failed(format!(
            "the story takes {milliseconds} ms of processor time (goal: at most {MILLISECONDS_MAX})"
        ));
    }
    Outcome::Passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_becomes_a_row() {
        let text = r#"{"machines":10,"events":2,"documents":6,"milliseconds":9,"parse_cpu_milliseconds":1,
            "run_cpu_milliseconds":7,"peak_kibibytes":512}"#;
        let mut table = String::new();
        assert_eq!(row(&mut table, &serde_json::from_str(text).unwrap()).unwrap(), 7);
        assert_eq!(table, "| 10 | 2 | 6 | 9 | 1 | 7 | 512 |\n");
        assert!(row(&mut table, &Value::Null).is_err());
    }

    #[test]
    fn a_slow_story_fails() {
        assert_eq!(judge(MILLISECONDS_MAX), Outcome::Passed);
        assert!(matches!(judge(MILLISECONDS_MAX + 1), Outcome::Failed(_)));
    }
}
