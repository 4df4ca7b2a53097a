//! `cargo xtask fuzz`: random inputs for everything that parses untrusted bytes.
//!
//! The test command runs a fixed number of inputs from a fixed seed: it replays the corpus and tries the same inputs
//! each time, on every computer. `--seconds` fuzzes by time and from a random seed; new inputs stay in the build
//! directory, where the next such run goes on.
//!
//! On a stable compiler, without a sanitizer: the product has no unsafe code. An input that fails is saved in
//! `fuzz/artifacts`, beside a text file with the commands that reproduce it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::steps::{Outcome, cargo};
use crate::tools::CARGO_FUZZ;
use crate::tree;
use crate::words::{Usage, Words};

const DIRECTORY: &str = "fuzz";

/// Seconds for each target, if the command line names none.
const SECONDS: u32 = 60;
const SECONDS_MAX: u32 = 24 * 60 * 60;

/// The longest time for one input; a slower one is a finding.
const INPUT_SECONDS_MAX: u32 = 10;
const MEBIBYTES_MAX: u32 = 1_024;
const INPUT_BYTES_MAX: u32 = 16 * 1_024;

/// The seed of libFuzzer for a fixed number of runs.
const SEED: u32 = 1;

/// The targets, with the runs of each in the test command; together they take about as long as 15 seconds for each target.
pub(crate) const RUNS: [(&str, u32); 8] = [
    ("control_request", 100_000),
    ("document", 100_000),
    ("fleet", 20_000),
    ("record", 100_000),
    ("request", 20_000),
    ("start_requests", 100_000),
    ("story", 10_000),
    ("template", 20_000),
];

/// Options of libFuzzer that make two runs with one seed alike: no periodic look at the directory of new inputs, which
/// depends on time, and no inputs made of values that were compared, which may be addresses. What remains is the random
/// order of the standard library's hash maps: targets that use them find slightly different edges in each run, with the
/// same seed and number of runs.
const REPEATABLE: [&str; 2] = ["-reload=0", "-use_cmp=0"];

/// Amount of fuzzing for each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The fixed number of runs of the target, from the fixed seed and the corpus alone.
    Fixed,
    /// That many seconds, from a random seed, the corpus, and the new inputs of earlier runs.
    Seconds(u32),
}

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let (mut wanted, mut effort) = (None, Effort::Seconds(SECONDS));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let parse =
                    |text: &str| text.parse().ok().filter(|number| (1..=SECONDS_MAX).contains(number));
                let hint = "a number of seconds, up to a day";
                effort = Effort::Seconds(words.value("--seconds", parse, hint)?);
            }
            "--fixed" => effort = Effort::Fixed,
            name if wanted.is_none() && !name.starts_with('-') => wanted = Some(name.to_owned()),
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    run(wanted.as_deref(), effort)
}

/// Fuzzes that target, or all of them, one after the other.
pub(crate) fn run(wanted: Option<&str>, effort: Effort) -> Result<Outcome> {
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
    let runner = match CARGO_FUZZ.find_or_install() {
        Ok(tool) => FuzzRunner { root, tool: tool.get_program().into() },
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let mut found = Vec::new();
    for name in names {
        found.extend(runner.fuzz(&name, effort)?);
    }
    Ok(if found.is_empty() {
        Outcome::Passed
    } else {
        let hint = "hint: fix it, then keep the file in fuzz/corpus";
        Outcome::Failed(format!("fuzzing found:\n  {}\n  {hint}", found.join("\n  ")))
    })
}

/// The names of the fuzz targets, one file each.
fn targets(root: &Path) -> Result<Vec<String>> {
    let directory = root.join(DIRECTORY).join("fuzz_targets");
    let entries = directory.read_dir().with_context(|| format!("cannot read: {}", directory.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut names: Vec<_> = paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

struct FuzzRunner {
    root: PathBuf,
    tool: PathBuf,
}

impl FuzzRunner {
    /// Fuzzes one target. Returns the command that reproduces a finding.
    fn fuzz(&self, name: &str, effort: Effort) -> Result<Option<String>> {
        let mut build = self.command("build", name);
        if !build.status().context("cannot run cargo-fuzz")?.success() {
            bail!("build failed: fuzz_{name}");
        }
        let own = tempfile::tempdir().context("no temporary directory")?;
        let mut command = self.command("run", name);
        match effort {
            Effort::Fixed => {
                let runs = RUNS.iter().find(|(target, _)| *target == name);
                let (_, runs) = runs.with_context(|| format!("no number of runs: {name}"))?;
                eprintln!("{name}: {runs} runs");
                // A directory lists its files in an order of its own, on which the run would depend.
                let list = own.path().join("corpus.list");
                fs::write(&list, self.corpus(name)?.join(","))?;
                let new = own.path().join("new");
                fs::create_dir(&new)?;
                command.arg(new).arg("--").arg(format!("-seed_inputs=@{}", list.display()));
                command.arg(format!("-seed={SEED}")).arg(format!("-runs={runs}")).args(REPEATABLE);
            }
            Effort::Seconds(seconds) => {
                eprintln!("{name}: {seconds} s");
                let new = self.build_directory()?.join("fuzz-corpus").join(name);
                fs::create_dir_all(&new).with_context(|| format!("cannot make: {}", new.display()))?;
                command.arg(new).arg(format!("{DIRECTORY}/corpus/{name}"));
                command.arg("--").arg(format!("-max_total_time={seconds}"));
            }
        }
        command.arg("-print_final_stats=1");
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}")).arg(format!("-rss_limit_mb={MEBIBYTES_MAX}"));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        let dictionary = format!("{DIRECTORY}/dictionaries/{name}.dict");
        if self.root.join(&dictionary).is_file() {
            command.arg(format!("-dict={dictionary}"));
        }
        let output = command.stdin(Stdio::null()).output().context("cannot run cargo-fuzz")?;
        let report = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            let executions = executions(&report).context("no number of executions")?;
            eprintln!("{name}: {executions} executions, {}", coverage(&report).context("no coverage")?);
            return Ok(None);
        }
        eprintln!("{report}");
        self.save(name, &report).map(Some)
    }

    /// The files of a corpus, by name, from the root of the repository: libFuzzer takes a comma in a path for the end
    /// of it.
    fn corpus(&self, name: &str) -> Result<Vec<String>> {
        let directory = self.root.join(DIRECTORY).join("corpus").join(name);
        let entries =
            directory.read_dir().with_context(|| format!("cannot read: {}", directory.display()))?;
        let mut files: Vec<_> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        Ok(files.iter().map(|file| format!("{DIRECTORY}/corpus/{name}/{file}")).collect())
    }

    /// Writes the commands that reproduce a finding beside its input. Returns the first of them.
    fn save(&self, name: &str, report: &str) -> Result<String> {
        let Some(input) = saved_input(report) else {
            // Something else than an input went wrong, and the report says it.
            return Ok(format!("cargo xtask fuzz {name}"));
        };
        let input = Path::new(input);
        let shown = input.strip_prefix(&self.root).unwrap_or(input).display();
        let examine = format!("cargo run -p forewarn-fuzz --bin fuzz_{name} {shown}");
        let text = format!(
            "Reproduce:  {examine}\n\
             Keep:       cp {shown} {DIRECTORY}/corpus/{name}/NAME\n\n{}\n",
            report.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"),
        );
        let file = self.root.join(format!("{}.txt", input.display()));
        fs::write(&file, text).with_context(|| format!("cannot write: {}", file.display()))?;
        Ok(examine)
    }

    fn command(&self, verb: &str, name: &str) -> Command {
        let mut command = Command::new(&self.tool);
        command.current_dir(&self.root).args([verb, "--sanitizer", "none", "--fuzz-dir", DIRECTORY]);
        // What optimizing across packages wins is less than what it costs to build.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").arg(format!("fuzz_{name}"));
        command
    }

    /// The build directory of cargo.
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

/// Edges, features and inputs of the last line of the report that has them: two runs that were the same agree on them.
fn coverage(report: &str) -> Option<&str> {
    let line = report.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: "))?;
    let (_, rest) = line.split_once(" cov: ")?;
    Some(rest.split_once(" exec/s:").map_or(rest, |(coverage, _)| coverage.trim()))
}

/// The file into which libFuzzer has written the input of a finding.
fn saved_input(report: &str) -> Option<&str> {
    report.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: X1
    #[test]
    fn every_target_has_a_corpus_and_a_number_of_runs() {
        let root = tree::root().unwrap();
        let names = targets(&root).unwrap();
        assert!(names.contains(&"request".to_owned()), "{names:?}");
        for name in &names {
            assert!(root.join("fuzz/corpus").join(name).is_dir(), "{name}");
        }
        assert_eq!(RUNS.map(|(name, _)| name.to_owned()).to_vec(), names);
    }

    #[test]
    fn executions_and_coverage_are_read_from_the_report() {
        let report = "INFO: Seed: 1\n#9\tNEW    cov: 8 ft: 9 corp: 2/7b lim: 4 exec/s: 0 rss: 40Mb L: 4/4\n\
                      #20\tDONE   cov: 12 ft: 15 corp: 3/9b lim: 4 exec/s: 7 rss: 41Mb\nDone 20 runs in 2 second(s)\n\
                      stat::number_of_executed_units: 1234\nx";
        assert_eq!(executions(report), Some(1_234));
        assert_eq!(coverage(report), Some("12 ft: 15 corp: 3/9b lim: 4"));
        assert_eq!((executions("Done"), coverage("Done")), (None, None));
    }

    /// promise: X1
    #[test]
    fn a_finding_is_saved_with_the_command_that_reproduces_it() {
        let root = tempfile::tempdir().unwrap();
        let runner = FuzzRunner { root: root.path().to_owned(), tool: PathBuf::new() };
        let input = root.path().join("fuzz/artifacts/fuzz_fleet/crash-1");
        fs::create_dir_all(input.parent().unwrap()).unwrap();
        let report = format!("panicked\n#1 stack\nTest unit written to {}\n", input.display());
        let command = runner.save("fleet", &report).unwrap();
        assert_eq!(command, "cargo run -p forewarn-fuzz --bin fuzz_fleet fuzz/artifacts/fuzz_fleet/crash-1");
        let saved = fs::read_to_string(input.with_extension("txt")).unwrap();
        assert!(saved.contains(&command) && saved.contains("panicked") && !saved.contains("#1"), "{saved}");
        assert_eq!(runner.save("fleet", "out of disk").unwrap(), "cargo xtask fuzz fleet");
    }
}
