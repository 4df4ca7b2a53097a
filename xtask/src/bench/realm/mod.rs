//! `cargo xtask bench realm`: three servers on three members of etcd, all on loopback: gaps without writes when parts are
//! lost, commits per second, takeovers, latencies, and an outage of etcd.
//!
//! Each figure has a realm of its own. `--only TEXT` measures the figures with TEXT in their name; `--program FILE`
//! measures another build of the program.

mod report;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::metadata::rounds::wait;
use super::metadata::{build, kernel};
use super::{Keep, results};
use crate::steps::Outcome;
use crate::tree;
use crate::words::{Usage, Words};

use report::{Figure, RealmReport};

/// Its section in the results.
const NAME: &str = "realm";

/// Longest time of one figure: a large fleet is created first.
const FIGURE_TIME_MAX: Duration = Duration::from_mins(15);

/// A figure: its name, the words of the program that measures it, and its goals.
struct FigurePlan {
    name: &'static str,
    words: &'static str,
    goals: &'static [Goal],
}

/// A number in the result of a figure, and its limit.
#[derive(Clone, Copy, Debug)]
struct Goal {
    /// Member of the result. Of a list, the largest number counts.
    member: &'static str,
    unit: &'static str,
    limit: GoalLimit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum GoalLimit {
    AtMost(f64),
    AtLeast(f64),
    /// The number is printed only.
    None,
}

const fn at_most(member: &'static str, unit: &'static str, limit: f64) -> Goal {
    Goal { member, unit, limit: GoalLimit::AtMost(limit) }
}

const fn at_least(member: &'static str, unit: &'static str, limit: f64) -> Goal {
    Goal { member, unit, limit: GoalLimit::AtLeast(limit) }
}

const fn printed(member: &'static str, unit: &'static str) -> Goal {
    Goal { member, unit, limit: GoalLimit::None }
}

const FIGURES: [FigurePlan; 11] = [
    FigurePlan {
        name: "longest gap, a server is lost",
        words: "gap --loss server --rounds 5",
        goals: &[at_most("gaps", "s", 1.5)],
    },
    FigurePlan {
        name: "longest gap, the leader of etcd is lost",
        words: "gap --loss leader --rounds 5",
        goals: &[at_most("gaps", "s", 2.5)],
    },
    FigurePlan {
        name: "longest gap, both are lost",
        words: "gap --loss both --rounds 5",
        goals: &[at_most("gaps", "s", 2.5)],
    },
    FigurePlan {
        name: "longest gap, a planned move",
        words: "gap --loss move --rounds 5",
        goals: &[at_most("gaps", "s", 0.3)],
    },
    FigurePlan {
        name: "commits in one stream",
        words: "commits --streams 1",
        goals: &[at_least("per_second", "/s", 500.0), at_most("p50", "ms", 3.0), at_most("p99", "ms", 25.0)],
    },
    FigurePlan {
        name: "commits in 16 streams",
        words: "commits --streams 16",
        goals: &[at_least("per_second", "/s", 1_500.0), printed("p50", "ms"), printed("p99", "ms")],
    },
    FigurePlan {
        name: "takeover of 10,000 VMs, without the detection",
        words: "takeover --machines 10000",
        goals: &[at_most("seconds", "s", 0.1)],
    },
    FigurePlan {
        name: "takeover of 100,000 VMs, without the detection",
        words: "takeover --machines 100000",
        goals: &[at_most("seconds", "s", 0.5)],
    },
    FigurePlan {
        name: "command of an operator, until another server shows the event",
        words: "publication",
        goals: &[printed("p50", "ms"), at_most("p99", "ms", 250.0)],
    },
    FigurePlan {
        name: "latency that forwarding adds",
        words: "forwarding",
        goals: &[printed("direct", "ms"), printed("forwarded", "ms"), at_most("added", "ms", 2.0)],
    },
    FigurePlan {
        name: "all of etcd is down for 60 s",
        words: "outage --seconds 60",
        goals: &[printed("polls", ""), at_most("failed", "", 0.0), at_most("started", "", 0.0)],
    },
];

/// The options of the benchmark.
struct RealmOptions {
    keep: Keep,
    program: Option<PathBuf>,
    only: String,
}

impl RealmOptions {
    fn read(mut words: Words) -> Result<Self> {
        let file = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_file());
        let mut options = Self { keep: Keep::Nothing, program: None, only: String::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--save" => options.keep = Keep::Save,
                "--program" => {
                    options.program = Some(words.value(&word, file, "a build of crates/forewarn")?);
                }
                "--only" => {
                    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
                    options.only = words.value(&word, text, "a part of the name of a figure")?;
                }
                _ => return Err(Usage::unknown(&word).into()),
            }
        }
        Ok(options)
    }
}

pub(super) fn command(words: Words) -> Result<Outcome> {
    let options = RealmOptions::read(words)?;
    let etcd = std::env::var_os("FOREWARN_ETCD").unwrap_or_else(|| "etcd".into());
    let version = Command::new(&etcd).arg("--version").output();
    let Ok(version) = version else {
        return Ok(Outcome::Skipped("etcd is not installed: apt install etcd-server".to_owned()));
    };
    let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
    let root = tree::root()?;
    let program = match &options.program {
        Some(program) => program.canonicalize()?,
        None => build(&root, &["--package", "forewarn", "--bin", "forewarn"])?,
    };
    let clients = build(&root, &["--package", "forewarn-bench", "--bin", "realm"])?;
    let setting =
        format!("{}, {}, {version}; load before: {}", results::machine(), kernel::release(), kernel::load());
    let mut report = RealmReport { setting, figures: Vec::new() };
    for plan in FIGURES.iter().filter(|plan| plan.name.contains(&options.only)) {
        eprintln!("{}", plan.name);
        let mut command = Command::new(&clients);
        command.args(plan.words.split(' ')).arg("--forewarn").arg(&program).arg("--etcd").arg(&etcd);
        let result = measure(command).map_err(|error| format!("{error:#}"));
        report.figures.push(Figure::of(plan, &result));
    }
    println!("{}", report.text());
    match options.keep {
        Keep::Nothing => {}
        Keep::Save => results::save(&root, NAME, &report.text())?,
    }
    Ok(report.judge())
}

/// The result of one figure, in a directory that is removed.
fn measure(mut command: Command) -> Result<Value> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    command.arg("--directory").arg(directory.path()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run the clients")?;
    let line = wait(&mut child, FIGURE_TIME_MAX)?;
    serde_json::from_str(&line).context("no result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<RealmOptions> {
        RealmOptions::read(Words::new(line.split_whitespace().map(str::to_owned)))
    }

    #[test]
    fn options_are_read() {
        let options = read("--only gap --save").unwrap();
        assert_eq!((options.keep, options.only.as_str(), options.program), (Keep::Save, "gap", None));
        for wrong in ["--program /none", "--only", "--fast"] {
            assert!(read(wrong).is_err_and(|problem| problem.is::<Usage>()), "{wrong}");
        }
    }

    #[test]
    fn every_figure_has_a_number_to_show() {
        assert!(FIGURES.iter().all(|plan| !plan.goals.is_empty() && !plan.words.is_empty()));
    }
}
