//! `cargo xtask mutants`: changes the rules at one place at a time, and counts how many changes the tests notice.
//!
//! A change that no test notices is either a test that is missing, or it makes no difference; those that make none are
//! listed, with the reason, in `docs/reference/testing.md`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::steps::Outcome;
use crate::tools::{CARGO_MUTANTS, has_nextest};
use crate::tree;
use crate::words::{Usage, Words};

const MUTATED: [&str; 3] = ["forewarn-types", "forewarn-lifecycle", "forewarn-imds"];
/// Packages whose tests every mutant must pass. They are built quickly.
const TESTED_FIRST: [&str; 3] = MUTATED;
/// Packages that use the mutated ones, whose tests the mutants must pass that no test has noticed so far. They take
/// longer to build.
const TESTED_THEN: [&str; 2] = ["forewarn-control", "forewarn-story"];
/// Seconds for the tests of a mutant: this, or five times as long as without a change, whichever is more. A fixed time
/// would make a slow computer take every mutant for one that is noticed, and so would a short one if the computer gets
/// other work meanwhile.
const SECONDS_PER_MUTANT: &str = "300";
const TIMES_AS_LONG: &str = "5";
/// The profile in the manifest of the workspace, and that of nextest.
const PROFILE: &str = "mutants";
/// Few, because the tests run once for every mutant.
const PROPERTY_CASES: &str = "24";
const CAUGHT_PERCENT_MIN: usize = 95;
/// Selects the part that is the sample: the same one in every run, so that two runs can be compared.
const SEED: usize = 20_200_701;
const EXPLAINED: &str = "docs/reference/testing.md";

/// The mutants to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    /// About that many, spread evenly.
    Sample(usize),
    /// `K/N`, counted from 0.
    Shard(String),
}

/// The parts of a sample in a long run. None is repeated when the run is resumed; each begins with a build of everything
/// and a run of the tests without a change, so there are few of them.
const PARTS: usize = 5;

/// One of the parts of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(usize);

impl Part {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..PARTS).map(Self)
    }

    /// The directory with its results.
    fn output(self, root: &Path) -> PathBuf {
        root.join(format!("target/mutants/part-{}", self.0 + 1))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {PARTS}", self.0 + 1)
    }
}

/// The number of mutants by result.
#[derive(Debug, Default, PartialEq, Eq)]
struct Results {
    caught: usize,
    unviable: usize,
    /// Those whose tests were stopped, by name.
    timeout: Vec<String>,
    missed: Vec<String>,
}

pub(crate) fn command(words: Words) -> Result<Outcome> {
    let (selection, jobs) = parse(words)?;
    run(selection, jobs)
}

fn parse(mut words: Words) -> Result<(Selection, Option<usize>), Usage> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let (mut selection, mut jobs) = (Selection::All, None);
    while let Some(word) = words.next() {
        let selected = match word.as_str() {
            "--sample" => Selection::Sample(words.value(&word, number, "a number")?),
            "--shard" => Selection::Shard(words.value(&word, shard, "K/N, such as 0/8")?),
            "--jobs" => {
                jobs = Some(words.value(&word, number, "a number")?);
                continue;
            }
            _ => return Err(Usage::unknown(&word)),
        };
        if std::mem::replace(&mut selection, selected) != Selection::All {
            return Err(Usage::new("more than one selection\n  hint: either --sample or --shard, once"));
        }
    }
    Ok((selection, jobs))
}

fn shard(text: &str) -> Option<String> {
    let (which, of) = text.split_once('/')?;
    let (which, of): (usize, usize) = (which.parse().ok()?, of.parse().ok()?);
    (which < of).then(|| text.to_owned())
}

pub(crate) fn run(selection: Selection, jobs: Option<usize>) -> Result<Outcome> {
    let root = tree::root()?;
    if let Err(problem) = CARGO_MUTANTS.find_or_install() {
        return Ok(Outcome::Skipped(format!("{problem:#}")));
    }
    let chosen = match selection {
        Selection::All => Chosen::All,
        Selection::Sample(wanted) => Chosen::Shard(sample(count(&root)?, wanted).to_string()),
        Selection::Shard(shard) => Chosen::Shard(shard),
    };
    let output = root.join("target/mutants");
    try_mutants(&root, &output, &TESTED_FIRST, &chosen, jobs)?;
    let first = Results::read(&output)?;
    Ok(try_missed(&root, first, jobs)?.judge(&explanations(&root)))
}

/// Tries the mutants that no test has noticed with the tests of further packages.
fn try_missed(root: &Path, first: Results, jobs: Option<usize>) -> Result<Results> {
    if first.missed.is_empty() {
        return Ok(first);
    }
    let output = root.join("target/mutants/missed");
    try_mutants(root, &output, &TESTED_THEN, &Chosen::Named(first.missed.clone()), jobs)?;
    let mut all = Results { missed: Vec::new(), ..first };
    all.add(Results::read(&output)?);
    Ok(all)
}

/// Tries a part of a sample of that size. Its results stay in the build directory for [`judge_parts`].
pub(crate) fn try_part(wanted: usize, part: Part) -> Result<Outcome> {
    let root = tree::root()?;
    if let Err(problem) = CARGO_MUTANTS.find_or_install() {
        return Ok(Outcome::Skipped(format!("{problem:#}")));
    }
    let shard = sample(count(&root)?, wanted).part(part);
    let output = part.output(&root);
    try_mutants(&root, &output, &TESTED_FIRST, &Chosen::Shard(shard.to_string()), None)?;
    Results::read(&output)?;
    Ok(Outcome::Passed)
}

/// The result of all parts of a sample, after a second attempt with those that were missed.
pub(crate) fn judge_parts() -> Result<Outcome> {
    let root = tree::root()?;
    let mut all = Results::default();
    for part in Part::all() {
        all.add(Results::read(&part.output(&root)).with_context(|| part.to_string())?);
    }
    Ok(try_missed(&root, all, None)?.judge(&explanations(&root)))
}

fn explanations(root: &Path) -> String {
    std::fs::read_to_string(root.join(EXPLAINED)).unwrap_or_default()
}

fn mutants(root: &Path) -> Result<Command> {
    let mut command = CARGO_MUTANTS.find_or_install()?;
    command.current_dir(root).arg("mutants");
    command.args(MUTATED.iter().flat_map(|package| ["--package", package]));
    Ok(command)
}

fn count(root: &Path) -> Result<usize> {
    let output = mutants(root)?.arg("--list").output().context("cannot list the mutants")?;
    if !output.status.success() {
        bail!("cannot list the mutants: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().count())
}

/// Every `of`-th mutant, from `first` on, which is counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    first: usize,
    of: usize,
}

impl Shard {
    /// A part of this shard: a shard again, because mutants are dealt out in turn.
    fn part(self, Part(part): Part) -> Self {
        Self { first: self.first + self.of * part, of: self.of * PARTS }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.of)
    }
}

/// As many equal parts as make one about as large as wanted, and one of them.
fn sample(mutants: usize, wanted: usize) -> Shard {
    let of = mutants.div_ceil(wanted).max(1);
    Shard { first: SEED % of, of }
}

/// Mutants to try in one run of cargo-mutants.
enum Chosen {
    All,
    /// `K/N`, counted from 0.
    Shard(String),
    /// Those of these names.
    Named(Vec<String>),
}

impl Chosen {
    fn arguments(&self) -> Vec<String> {
        match self {
            Self::All => Vec::new(),
            Self::Shard(shard) => ["--sharding", "round-robin", "--shard", shard].map(str::to_owned).into(),
            Self::Named(names) => names.iter().map(|name| format!("--re=^{}$", escape(name))).collect(),
        }
    }
}

/// A regular expression that matches this text.
fn escape(text: &str) -> String {
    let literal = |letter: char| letter.is_alphanumeric() || " _/:;,<>=!\"'%&@`~".contains(letter);
    text.chars().flat_map(|letter| (!literal(letter)).then_some('\\').into_iter().chain([letter])).collect()
}

fn try_mutants(
    root: &Path,
    output: &Path,
    tested: &[&str],
    chosen: &Chosen,
    jobs: Option<usize>,
) -> Result<()> {
    std::fs::create_dir_all(output).with_context(|| format!("cannot make: {}", output.display()))?;
    // Results of an earlier run must not be taken for those of this one.
    let earlier = output.join("mutants.out");
    if earlier.exists() {
        std::fs::remove_dir_all(&earlier).with_context(|| format!("cannot remove: {}", earlier.display()))?;
    }
    let mut command = mutants(root)?;
    command.args(tested.iter().flat_map(|package| ["--test-package", package]));
    command.args(["--minimum-test-timeout", SECONDS_PER_MUTANT, "--timeout-multiplier", TIMES_AS_LONG]);
    command.args(["--profile", PROFILE]).arg("--output").arg(output);
    command.args(chosen.arguments());
    command.args(jobs.map(|jobs| format!("--jobs={jobs}")));
    if has_nextest() {
        command.arg("--test-tool=nextest").env("NEXTEST_PROFILE", PROFILE);
    }
    command.env("PROPTEST_CASES", PROPERTY_CASES);
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    let status = command.status().context("cannot run cargo-mutants")?;
    match status.code() {
        // Some were missed (2) or took too long (3): the results say which.
        Some(0 | 2 | 3) => Ok(()),
        Some(4) => bail!("the tests fail without any change\n  hint: run `cargo xtask test` first"),
        Some(_) | None => bail!("cargo-mutants failed: {status}"),
    }
}

impl Results {
    /// The results in an output directory of cargo-mutants.
    fn read(output: &Path) -> Result<Self> {
        let outcomes = output.join("mutants.out/outcomes.json");
        let outcomes = std::fs::read_to_string(&outcomes)
            .with_context(|| format!("no mutant was tried\n  cannot read: {}", outcomes.display()))?;
        Self::parse(&outcomes)
    }

    fn add(&mut self, other: Self) {
        self.caught += other.caught;
        self.unviable += other.unviable;
        self.timeout.extend(other.timeout);
        self.missed.extend(other.missed);
    }

    fn parse(outcomes: &str) -> Result<Self> {
        let outcomes: Value = serde_json::from_str(outcomes).context("not the results of cargo-mutants")?;
        let mut results = Self::default();
        for outcome in outcomes["outcomes"].as_array().context("no list of outcomes")? {
            let Some(name) = outcome["scenario"]["Mutant"]["name"].as_str() else { continue };
            match outcome["summary"].as_str() {
                Some("CaughtMutant") => results.caught += 1,
                Some("Timeout") => results.timeout.push(name.to_owned()),
                Some("Unviable") => results.unviable += 1,
                Some("MissedMutant") => results.missed.push(name.to_owned()),
                Some(_) | None => bail!("unknown outcome: {}", outcome["summary"]),
            }
        }
        Ok(results)
    }

    /// A test that no longer ends has noticed, too.
    fn judge(&self, explained: &str) -> Outcome {
        let (timeout, missed) = (self.timeout.len(), self.missed.len());
        let (caught, unviable, noticed) = (self.caught, self.unviable, self.caught + timeout);
        println!("caught {caught}, missed {missed}, timeout {timeout}, unviable {unviable}");
        for timeout in &self.timeout {
            println!("stopped, because its tests took too long: {timeout}");
        }
        for missed in self.missed.iter().filter(|missed| !is_explained(missed, explained)) {
            println!("missed, and not explained in {EXPLAINED}: {missed}");
        }
        let viable = noticed + missed;
        if viable == 0 {
            return Outcome::Failed("no mutant could be tried".to_owned());
        }
        let hundredths = noticed * 10_000 / viable;
        let rate = format!("{}.{:02} % noticed", hundredths / 100, hundredths % 100);
        println!("{rate} (goal: at least {CAUGHT_PERCENT_MIN} %)");
        if hundredths >= CAUGHT_PERCENT_MIN * 100 { Outcome::Passed } else { Outcome::Failed(rate) }
    }
}

/// `crates/a/src/b.rs:7:5: replace …` becomes `crates/a/src/b.rs: replace …`.
fn without_line_numbers(name: &str) -> String {
    let (place, change) = name.split_once(": ").unwrap_or((name, ""));
    format!("{}: {change}", place.split(':').next().unwrap_or(place))
}

fn is_explained(missed: &str, explained: &str) -> bool {
    let missed = without_line_numbers(missed);
    let within_package = missed.find("src/").map_or(missed.as_str(), |at| &missed[at..]);
    explained.contains(within_package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Selection, Option<usize>), Usage> {
        parse(Words::new(text.split_whitespace().map(str::to_owned)))
    }

    #[test]
    fn one_selection_is_understood() {
        assert_eq!(parsed("").unwrap(), (Selection::All, None));
        assert_eq!(parsed("--sample 300 --jobs 2").unwrap(), (Selection::Sample(300), Some(2)));
        assert_eq!(parsed("--shard 1/4").unwrap(), (Selection::Shard("1/4".to_owned()), None));
        for wrong in ["--sample 0", "--shard 4/4", "--shard 1", "--jobs x", "--sample 3 --shard 1/4", "all"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sample_is_one_of_equal_parts() {
        assert_eq!(sample(589, 300), Shard { first: SEED % 2, of: 2 });
        assert_eq!(sample(200, 300).to_string(), "0/1");
        assert_eq!(sample(0, 300).to_string(), "0/1");
    }

    #[test]
    fn the_parts_of_a_sample_are_the_sample() {
        let shard = Shard { first: 2, of: 7 };
        let of = |shard: Shard| (0..1_000_usize).filter(move |mutant| mutant % shard.of == shard.first);
        let mut parts: Vec<_> = Part::all().flat_map(|part| of(shard.part(part))).collect();
        parts.sort_unstable();
        assert_eq!(parts, of(shard).collect::<Vec<_>>());
    }

    const OUTCOMES: &str = r#"{"outcomes": [
        {"scenario": "Baseline", "summary": "Success"},
        {"scenario": {"Mutant": {"name": "crates/a/src/b.rs:7:5: replace f with ()"}}, "summary": "MissedMutant"},
        {"scenario": {"Mutant": {"name": "crates/a/src/b.rs:8:5: replace || with &&"}}, "summary": "CaughtMutant"},
        {"scenario": {"Mutant": {"name": "crates/a/src/b.rs:9:5: x"}}, "summary": "Timeout"},
        {"scenario": {"Mutant": {"name": "crates/a/src/b.rs:9:6: x"}}, "summary": "Unviable"}]}"#;

    #[test]
    fn outcomes_are_counted_and_doubtful_ones_named() {
        let results = Results::parse(OUTCOMES).unwrap();
        let missed = vec!["crates/a/src/b.rs:7:5: replace f with ()".to_owned()];
        let timeout = vec!["crates/a/src/b.rs:9:5: x".to_owned()];
        assert_eq!(results, Results { caught: 1, unviable: 1, timeout, missed });
        assert_eq!(results.judge(""), Outcome::Failed("66.66 % noticed".to_owned()));
        assert!(is_explained(&results.missed[0], "- `src/b.rs: replace f with ()` makes no difference"));
        assert!(!is_explained(&results.missed[0], "src/c.rs: replace f with ()"));
    }

    #[test]
    fn mutants_are_chosen_by_their_names() {
        let chosen =
            Chosen::Named(vec!["crates/a/src/b.rs:7:5: replace a::f -> Vec<u8> with vec![0]".to_owned()]);
        let expected = r"--re=^crates/a/src/b\.rs:7:5: replace a::f \-> Vec<u8> with vec!\[0\]$";
        assert_eq!(chosen.arguments(), [expected]);
        assert_eq!(escape("a.b (c|d) {e}"), r"a\.b \(c\|d\) \{e\}");
    }

    #[test]
    fn the_goal_is_met_from_95_percent_on() {
        let results = |caught| Results { caught, missed: vec!["a: b".to_owned()], ..Results::default() };
        assert_eq!(results(19).judge(""), Outcome::Passed);
        assert_eq!(results(18).judge(""), Outcome::Failed("94.73 % noticed".to_owned()));
        assert!(matches!(Results::default().judge(""), Outcome::Failed(_)));
    }
}
