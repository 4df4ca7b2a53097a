//! `cargo xtask fuzz`: bytes that nobody thought of, for a bounded time, put to everything that takes bytes from strangers.
//!
//! On a stable compiler, without a sanitizer: there is no unsafe code of ours for one to look at. What is found is written to
//! `fuzz/artifacts`; what is merely new stays in the build directory, and is where the next run goes on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::steps::{Outcome, cargo};
use crate::tools::CARGO_FUZZ;
use crate::tree;
use crate::words::{Usage, Words};

const DIRECTORY: &str = "fuzz";

/// For each target, unless said.
const SECONDS: u32 = 60;
const SECONDS_MAX: u32 = 24 * 60 * 60;

/// The longest that one input may take, before it counts as found.
const INPUT_SECONDS_MAX: u32 = 10;
const MEBIBYTES_MAX: u32 = 1_024;
const INPUT_BYTES_MAX: u32 = 16 * 1_024;

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let (mut wanted, mut seconds) = (None, SECONDS);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let parse =
                    |text: &str| text.parse().ok().filter(|number| (1..=SECONDS_MAX).contains(number));
                seconds = words.value("--seconds", parse, "a number of seconds, up to a day")?;
            }
            name if wanted.is_none() && !name.starts_with('-') => wanted = Some(name.to_owned()),
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    run(wanted.as_deref(), seconds)
}

/// Fuzzes that target, or all of them, one after the other.
pub(crate) fn run(wanted: Option<&str>, seconds: u32) -> Result<Outcome> {
    let root = tree::root()?;
    let mut names = targets(&root)?;
    if let Some(wanted) = wanted {
        let all = names.join(", ");
        names.retain(|name| name == wanted);
        if names.is_empty() {
            return Err(Usage::new(&format!("no such target: {wanted}\n  hint: one of {all}")).into());
        }
    }
    let mut version = Command::new("c++");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        return Ok(Outcome::Skipped("libFuzzer needs a C++ compiler: c++".to_owned()));
    }
    let workshop = match CARGO_FUZZ.find_or_install() {
        Ok(tool) => Workshop { root, tool: tool.get_program().into() },
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let mut found = Vec::new();
    for name in names {
        if !workshop.fuzz(&name, seconds)? {
            found.push(name);
        }
    }
    Ok(if found.is_empty() {
        Outcome::Passed
    } else {
        let hint = "cargo run -p forewarn-fuzz --bin fuzz_TARGET FILE; then keep the file in fuzz/corpus";
        Outcome::Failed(format!("something was found: {}\n  hint: {hint}", found.join(", ")))
    })
}

/// A file for each.
fn targets(root: &Path) -> Result<Vec<String>> {
    let directory = root.join(DIRECTORY).join("fuzz_targets");
    let entries = directory.read_dir().with_context(|| format!("cannot read: {}", directory.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut names: Vec<_> = paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

struct Workshop {
    root: PathBuf,
    tool: PathBuf,
}

impl Workshop {
    /// Fuzzes one target; says whether everything held.
    fn fuzz(&self, name: &str, seconds: u32) -> Result<bool> {
        let kept = self.build_directory()?.join("fuzz-corpus").join(name);
        std::fs::create_dir_all(&kept).with_context(|| format!("cannot make: {}", kept.display()))?;
        let mut build = self.command("build", name);
        if !build.status().context("cannot run cargo-fuzz")?.success() {
            bail!("it does not compile: fuzz_{name}");
        }
        let mut command = self.command("run", name);
        command.arg(&kept).arg(format!("{DIRECTORY}/corpus/{name}"));
        command.arg("--").arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}")).arg(format!("-rss_limit_mb={MEBIBYTES_MAX}"));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        let dictionary = format!("{DIRECTORY}/dictionaries/{name}.dict");
        if self.root.join(&dictionary).is_file() {
            command.arg(format!("-dict={dictionary}"));
        }
        eprintln!("{name}: {seconds} s");
        let output = command.stdin(Stdio::null()).output().context("cannot run cargo-fuzz")?;
        let report = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            eprintln!("{name}: {} executions", executions(&report).context("no number of executions")?);
        } else {
            eprintln!("{report}");
        }
        Ok(output.status.success())
    }

    fn command(&self, verb: &str, name: &str) -> Command {
        let mut command = Command::new(&self.tool);
        command.current_dir(&self.root).args([verb, "--sanitizer", "none", "--fuzz-dir", DIRECTORY]);
        // What optimizing across packages wins is less than what it costs to build.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").arg(format!("fuzz_{name}"));
        command
    }

    /// Where cargo builds: it is nobody's but ours to fill.
    fn build_directory(&self) -> Result<PathBuf> {
        let mut metadata = cargo();
        metadata.current_dir(&self.root).args(["metadata", "--no-deps", "--format-version", "1"]);
        let output = metadata.output().context("cannot run cargo")?;
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).context("no metadata")?;
        let directory = value["target_directory"].as_str().context("no build directory")?;
        Ok(PathBuf::from(directory))
    }
}

fn executions(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_corpus() {
        let root = tree::root().unwrap();
        let names = targets(&root).unwrap();
        assert!(names.contains(&"request".to_owned()), "{names:?}");
        for name in names {
            assert!(root.join("fuzz/corpus").join(&name).is_dir(), "{name}");
        }
    }

    #[test]
    fn executions_are_read_from_the_report() {
        assert_eq!(executions("Done\nstat::number_of_executed_units: 1234\nx"), Some(1_234));
        assert_eq!(executions("Done"), None);
    }
}
