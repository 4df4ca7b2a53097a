//! Steps that pass, fail or are skipped, and the summary of them.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::progress::{PassedStep, Progress};

/// The amount of a run of the test command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Usual,
    Long,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// The reason of the failure.
    Failed(String),
    /// The reason why the step could not run.
    Skipped(String),
}

impl Outcome {
    /// The outcome of two parts of a step.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed(one), Self::Failed(other)) => Self::Failed(format!("{one}\n{other}")),
            (failed @ Self::Failed(_), _) | (_, failed @ Self::Failed(_)) => failed,
            (skipped @ Self::Skipped(_), _) | (_, skipped @ Self::Skipped(_)) => skipped,
            (Self::Passed, Self::Passed) => Self::Passed,
        }
    }
}

/// The treatment of skipped steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skips {
    /// Skipped steps are printed and do not fail the run.
    AreLoud,
    /// Skipped steps fail the run: the log of a passed CI run is not read.
    AreFailures,
}

/// The completed steps.
pub(crate) struct Steps {
    skips: Skips,
    /// Only steps whose name contains this run.
    only: String,
    /// Where steps that pass are recorded.
    progress: Option<Progress>,
    done: Vec<Step>,
}

struct Step {
    name: String,
    time: Duration,
    outcome: Outcome,
    /// The commit of an earlier run in which the step passed.
    earlier: Option<String>,
}

/// True in CI, where a skipped step counts as failed.
pub(crate) fn skips_are_failures() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// The cargo that runs this program. In CI nothing is built twice, so the files for incremental builds, gigabytes of
/// them, are not written.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if skips_are_failures() {
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// Runs a program to its end; its output goes to ours.
pub(crate) fn status(command: &mut Command) -> Result<Outcome> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run: {program}"))?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) })
}

/// Runs a build and returns the last program that cargo reports.
pub(crate) fn built_program(build: &mut Command) -> Result<PathBuf> {
    build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = build.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("build failed: {}", output.status);
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut values = messages.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = values.find_map(|value| value["executable"].as_str().map(PathBuf::from));
    program.context("cargo has built no program")
}

impl Steps {
    /// `only` selects steps by a part of their name. Steps that passed according to `progress` are not repeated.
    pub(crate) fn new(only: String, progress: Option<Progress>) -> Self {
        let skips = if skips_are_failures() { Skips::AreFailures } else { Skips::AreLoud };
        Self { skips, only, progress, done: Vec::new() }
    }

    /// Runs a step under a heading. A failure does not stop later steps.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Outcome>) {
        if !name.contains(&self.only) {
            return;
        }
        if let Some(PassedStep { time, commit }) = self.progress.as_ref().and_then(|all| all.find(name)) {
            eprintln!("\n=== {name}: passed before, at {commit}");
            let (time, earlier) = (*time, Some(commit.clone()));
            self.done.push(Step { name: name.to_owned(), time, outcome: Outcome::Passed, earlier });
            return;
        }
        eprintln!("\n=== {name}");
        let begin = Instant::now();
        let outcome = step().unwrap_or_else(|problem| Outcome::Failed(format!("{problem:#}")));
        match &outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => eprintln!("=== {name}: FAILED: {why}"),
            Outcome::Skipped(why) => eprintln!("=== {name}: SKIPPED: {why}"),
        }
        let time = begin.elapsed();
        if let (Outcome::Passed, Some(progress)) = (&outcome, &mut self.progress)
            && let Err(problem) = progress.record(name, time)
        {
            eprintln!("the step is not recorded as passed: {problem:#}");
        }
        self.done.push(Step { name: name.to_owned(), time, outcome, earlier: None });
    }

    /// True if a step was selected.
    pub(crate) fn is_any(&self) -> bool {
        !self.done.is_empty()
    }

    /// Prints the summary and returns the result of the whole run.
    pub(crate) fn finish(&self) -> Outcome {
        eprintln!("\n{}", self.summary());
        let (_, failed, skipped) = self.counts();
        match self.skips {
            Skips::AreFailures if skipped > 0 => {
                Outcome::Failed(format!("{failed} failed, {skipped} skipped, which CI does not allow"))
            }
            Skips::AreFailures | Skips::AreLoud if failed > 0 => {
                Outcome::Failed(format!("{failed} of {}", self.done.len()))
            }
            Skips::AreFailures | Skips::AreLoud => Outcome::Passed,
        }
    }

    fn summary(&self) -> String {
        let mut lines: Vec<_> = self.done.iter().map(Step::line).collect();
        let (passed, failed, skipped) = self.counts();
        let minutes = self.done.iter().map(|step| step.time).sum::<Duration>().as_secs().div_ceil(60);
        lines.push(format!("{passed} ok, {failed} FAILED, {skipped} skipped, {minutes} minutes"));
        lines.join("\n")
    }

    fn counts(&self) -> (usize, usize, usize) {
        let count =
            |wanted: fn(&Outcome) -> bool| self.done.iter().filter(|step| wanted(&step.outcome)).count();
        (
            count(|outcome| matches!(outcome, Outcome::Passed)),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        )
    }
}

impl Step {
    fn line(&self) -> String {
        let outcome = match &self.outcome {
            Outcome::Passed => match &self.earlier {
                None => "ok".to_owned(),
                Some(commit) => format!("ok before, at {commit}"),
            },
            Outcome::Failed(_) => "FAILED".to_owned(),
            Outcome::Skipped(why) => format!("SKIPPED: {}", why.lines().next().unwrap_or_default()),
        };
        format!("{:<28} {:>8.1} s  {outcome}", self.name, self.time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(skips: Skips, outcomes: &[Outcome]) -> Steps {
        let mut steps = Steps { skips, only: String::new(), progress: None, done: Vec::new() };
        outcomes.iter().for_each(|outcome| steps.run("a step", || Ok(outcome.clone())));
        steps
    }

    #[test]
    fn one_failure_fails_the_whole_and_the_rest_still_runs() {
        let failed = Outcome::Failed("why".to_owned());
        let steps = steps(Skips::AreLoud, &[Outcome::Passed, failed, Outcome::Passed]);
        assert_eq!(steps.finish(), Outcome::Failed("1 of 3".to_owned()));
        assert!(steps.summary().ends_with("2 ok, 1 FAILED, 0 skipped, 0 minutes"));
    }

    #[test]
    fn a_skip_is_counted_and_fails_only_in_ci() {
        let outcomes = [Outcome::Passed, Outcome::Skipped("no tool\nmore".to_owned())];
        let loud = steps(Skips::AreLoud, &outcomes);
        assert_eq!(loud.finish(), Outcome::Passed);
        assert!(loud.summary().contains("SKIPPED: no tool\n1 ok, 0 FAILED, 1 skipped,"));
        assert!(matches!(steps(Skips::AreFailures, &outcomes).finish(), Outcome::Failed(_)));
    }

    #[test]
    fn an_error_is_a_failure() {
        let mut steps = Steps::new(String::new(), None);
        steps.run("a step", || Err(anyhow::anyhow!("no disk")));
        assert_eq!(steps.done[0].outcome, Outcome::Failed("no disk".to_owned()));
    }

    #[test]
    fn only_selected_steps_run_and_those_that_passed_are_not_repeated() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("passed");
        let mut first = Steps::new("fuzz".to_owned(), Some(Progress::begin(file.clone()).unwrap()));
        first.run("break", || panic!("not selected"));
        first.run("fuzz: a", || Ok(Outcome::Passed));
        first.run("fuzz: b", || Ok(Outcome::Failed("found".to_owned())));
        assert!(first.is_any());
        let mut second = Steps::new(String::new(), Some(Progress::resume(file).unwrap()));
        second.run("fuzz: a", || panic!("it passed before"));
        second.run("fuzz: b", || Ok(Outcome::Passed));
        assert_eq!(second.finish(), Outcome::Passed);
        assert!(second.summary().contains("ok before, at "), "{}", second.summary());
    }
}
