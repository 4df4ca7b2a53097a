//! A copy of the repository in which rules may be broken.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::list::Breakage;
use crate::steps::{built_program, cargo};
use crate::tree::Tree;

const PROPERTY_CASES: &str = "256";
const TEST_TIME_MAX: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The result of a test of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The test failed, as expected.
    Failed,
    /// The test was stopped. That counts as noticed.
    Hung,
    /// The test did not notice the breakage.
    Passed,
}

/// The copy, its build directory, and the log of its tests.
pub(super) struct WorkingCopy {
    copy: PathBuf,
    build: PathBuf,
    log: PathBuf,
}

impl WorkingCopy {
    pub(super) fn open(tree: &Tree) -> Result<Self> {
        let root = tree.root().join("target/break");
        let working_copy =
            Self { copy: root.join("tree"), build: root.join("target"), log: root.join("test.log") };
        let wanted: BTreeSet<_> = tree.paths().map(PathBuf::from).collect();
        remove_others(&working_copy.copy, Path::new(""), &wanted)?;
        for path in &wanted {
            copy_if_different(&tree.root().join(path), &working_copy.copy.join(path))?;
        }
        Ok(working_copy)
    }

    /// Breaks the rule, runs its test, and restores the rule in any case.
    pub(super) fn try_breakage(&self, breakage: &Breakage) -> Result<Verdict> {
        let file = self.copy.join(&breakage.file);
        let whole = fs::read_to_string(&file).with_context(|| format!("cannot read: {}", breakage.file))?;
        write(&file, &breakage.apply(&whole)?)?;
        let verdict = self.run_test(breakage);
        write(&file, &whole)?;
        verdict
    }

    /// Runs the program of the test without cargo, so that it can be stopped.
    fn run_test(&self, breakage: &Breakage) -> Result<Verdict> {
        let packages = self.copy.join("crates");
        let target = breakage.target(|name| packages.join(name).is_dir())?;
        let mut build = cargo();
        build.current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.build);
        build.args(["test", "--locked", "--no-run"]).args(target.words());
        let program = built_program(&mut build).context("the breakage does not compile")?;
        let mut test = Command::new(program);
        test.current_dir(packages.join(target.package)).args(["--exact", target.name]);
        test.env("PROPTEST_CASES", PROPERTY_CASES).env("PROPTEST_MAX_SHRINK_ITERS", "0");
        test.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        let status = self.run(&mut test)?;
        let log = fs::read(&self.log).with_context(|| format!("cannot read: {}", self.log.display()))?;
        if !ran(&String::from_utf8_lossy(&log)) {
            bail!("no such test: {}", breakage.test);
        }
        Ok(match status {
            None => Verdict::Hung,
            Some(status) if status.success() => Verdict::Passed,
            Some(_) => Verdict::Failed,
        })
    }

    /// The status of the test. None if it was stopped.
    fn run(&self, test: &mut Command) -> Result<Option<ExitStatus>> {
        let log = File::create(&self.log).with_context(|| format!("cannot write: {}", self.log.display()))?;
        test.stdout(log.try_clone()?).stderr(log);
        let mut child = test.spawn().context("cannot run the test")?;
        let begin = Instant::now();
        while begin.elapsed() < TEST_TIME_MAX {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    }
}

/// True if exactly the requested test ran.
fn ran(log: &str) -> bool {
    log.contains("running 1 test\n")
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write: {}", file.display()))
}

/// An unchanged file keeps its time, so that cargo does not build it again.
fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read: {}", from.display()))?;
    if fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot make: {}", directory.display()))?;
    }
    fs::write(to, bytes).with_context(|| format!("cannot write: {}", to.display()))
}

/// Removes files of an earlier copy that no longer exist.
fn remove_others(copy: &Path, directory: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    let Ok(entries) = copy.join(directory).read_dir() else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(copy, &path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(entry.path()).with_context(|| format!("cannot remove: {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_counts_only_if_the_test_ran() {
        assert!(ran("\nrunning 1 test\ntest a ... FAILED\n"));
        assert!(!ran("\nrunning 0 tests\n") && !ran("\nrunning 12 tests\n") && !ran(""));
    }

    #[test]
    fn a_copy_follows_its_original() {
        let root = std::env::temp_dir().join(format!("forewarn-working_copy-{}", std::process::id()));
        let (from, copy) = (root.join("from.txt"), root.join("copy"));
        fs::create_dir_all(copy.join("old")).unwrap();
        fs::write(&from, "new").unwrap();
        fs::write(copy.join("old/gone.txt"), "").unwrap();
        copy_if_different(&from, &copy.join("a/b.txt")).unwrap();
        remove_others(&copy, Path::new(""), &BTreeSet::from([PathBuf::from("a/b.txt")])).unwrap();
        assert_eq!(fs::read_to_string(copy.join("a/b.txt")).unwrap(), "new");
        assert!(!copy.join("old/gone.txt").exists());
        fs::remove_dir_all(&root).unwrap();
    }
}
