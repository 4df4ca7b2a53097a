//! The steps of a long run that have passed, in a file: a run that was interrupted goes on where it ended.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

/// The steps that have passed, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    file: PathBuf,
    passed: BTreeMap<String, PassedStep>,
}

/// A step that passed in this run or in one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassedStep {
    pub(crate) time: Duration,
    /// The commit that was tested.
    pub(crate) commit: String,
}

impl Progress {
    /// Without earlier steps, which are forgotten.
    pub(crate) fn begin(file: PathBuf) -> Result<Self> {
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(problem) if problem.kind() == ErrorKind::NotFound => {}
            Err(problem) => {
                return Err(problem).with_context(|| format!("cannot remove: {}", file.display()));
            }
        }
        Ok(Self { file, passed: BTreeMap::new() })
    }

    /// With the steps of earlier runs, if there are any.
    pub(crate) fn resume(file: PathBuf) -> Result<Self> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(problem).with_context(|| format!("cannot read: {}", file.display())),
        };
        let passed = text.lines().map(parse).collect::<Option<_>>();
        let passed = passed
            .with_context(|| format!("not a list of passed steps: {}\n  hint: remove it", file.display()))?;
        Ok(Self { file, passed })
    }

    pub(crate) fn find(&self, step: &str) -> Option<&PassedStep> {
        self.passed.get(step)
    }

    /// Records a step that has just passed.
    pub(crate) fn record(&mut self, step: &str, time: Duration) -> Result<()> {
        self.passed.insert(step.to_owned(), PassedStep { time, commit: tested_commit() });
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory).with_context(|| format!("cannot make: {}", directory.display()))?;
        }
        let lines = self.passed.iter().map(|(name, step)| line(name, step));
        fs::write(&self.file, lines.collect::<String>())
            .with_context(|| format!("cannot write: {}", self.file.display()))
    }
}

fn line(name: &str, step: &PassedStep) -> String {
    format!("{}\t{}\t{name}\n", step.time.as_secs(), step.commit)
}

fn parse(line: &str) -> Option<(String, PassedStep)> {
    let mut fields = line.splitn(3, '\t');
    let time = Duration::from_secs(fields.next()?.parse().ok()?);
    let commit = fields.next()?.to_owned();
    Some((fields.next()?.to_owned(), PassedStep { time, commit }))
}

/// The commit of the working tree, with a plus sign if files differ from it; `unknown` without git.
fn tested_commit() -> String {
    let git = |words: &[&str]| {
        let output =
            Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let is_changed = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
    commit.map_or_else(|| "unknown".to_owned(), |commit| if is_changed { commit + "+" } else { commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_with_the_steps_that_passed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("made/when needed");
        let mut first = Progress::begin(file.clone()).unwrap();
        first.record("random fuzz: a", Duration::from_secs(600)).unwrap();
        first.record("break", Duration::from_secs(7)).unwrap();
        let resumed = Progress::resume(file.clone()).unwrap();
        assert_eq!(resumed, first);
        assert_eq!(resumed.find("break").unwrap().time, Duration::from_secs(7));
        assert!(resumed.find("random fuzz").is_none());
        assert!(Progress::begin(file.clone()).unwrap().find("break").is_none());
        assert!(Progress::resume(file).unwrap().find("break").is_none());
    }

    #[test]
    fn without_a_file_nothing_has_passed_and_a_damaged_one_is_not_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("passed");
        assert_eq!(Progress::resume(file.clone()).unwrap(), Progress::begin(file.clone()).unwrap());
        fs::write(&file, "break\n").unwrap();
        assert!(Progress::resume(file).unwrap_err().to_string().contains("hint: remove it"));
    }
}
