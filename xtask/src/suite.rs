//! `cargo xtask test`: everything that must hold before a change is merged.
//!
//! Every step runs, whatever the ones before it said: one run tells all that is wrong.

use std::time::Instant;

use anyhow::Result;

use crate::deb::{self, Build};
use crate::fuzz::Effort;
use crate::packages::{self, PROGRAMS, REAL_CLIENTS, Readiness, TRACER, VALGRIND};
use crate::plan::{self, Plan};
use crate::ports::OccupiedPorts;
use crate::progress::Progress;
use crate::steps::{Extent, Outcome, Steps, built_program, cargo, status};
use crate::tools::{CARGO_DENY, PROGRAM_TESTS, has_nextest, run_ignored};
use crate::unpacked::NEWER_ETCD;
use crate::words::{Usage, Words};
use crate::{
    agent, api, azure, bench, breakages, dashboard, docs, fuzz, libvirt, machines, monitoring, mutants,
    plugins, properties, tidy, tree, units,
};

/// Enough for a rate that is right to within two percent or so; all of them take most of a day.
const MUTANTS_IN_LONG_RUN: usize = 300;
/// Seconds for each target of random fuzzing.
const FUZZ_SECONDS_IN_LONG_RUN: u32 = 600;
const PROPERTY_CASES_IN_LONG_RUN: &str = "4096";

/// Packages whose properties only compute. They are built for speed: thousands of cases take minutes instead of hours.
const RULES: [&str; 3] = ["forewarn-control", "forewarn-lifecycle", "forewarn-story"];
/// The profile in the manifest of the workspace.
const PROPERTIES_PROFILE: &str = "properties";
const USUAL_PROFILE: &str = "test";

/// The seed of property tests: the usual run tries the same cases each time.
const PROPERTY_SEED: &str = "1";

/// How often the process that writes a journal is killed.
const KILL_ROUNDS_IN_LONG_RUN: &str = "200";

/// Disks after a power cut, each of which is opened.
const POWER_CUTS: &str = "320";
const POWER_CUTS_IN_LONG_RUN: &str = "2000";

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let mut extent = Extent::Usual;
    let (mut is_plan, mut is_resumed) = (false, false);
    let mut only = String::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--long" => extent = Extent::Long,
            "--plan" => is_plan = true,
            "--resume" => is_resumed = true,
            "--only" => only = words.value(&word, is_part_of_name, "a part of the name of a step")?,
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    if is_resumed && extent == Extent::Usual {
        return Err(Usage::new("--resume without --long\n  hint: only a long run is resumed").into());
    }
    let plan = Plan::make(extent);
    if is_plan {
        println!("{plan}");
        return Ok(Outcome::Passed);
    }
    plan.announce()?;
    let begin = Instant::now();
    let _occupied = OccupiedPorts::occupy()?;
    let progress = match extent {
        Extent::Usual => None,
        Extent::Long => Some(progress(is_resumed || !only.is_empty())?),
    };
    let is_whole = only.is_empty() && !is_resumed;
    let mut steps = Steps::new(only, progress);
    usual(&mut steps);
    match extent {
        Extent::Usual => {}
        Extent::Long => long(&mut steps),
    }
    if !steps.is_any() {
        return Err(Usage::new("no step has such a name\n  hint: see docs/reference/testing.md").into());
    }
    if is_whole {
        plan::remember(extent, begin.elapsed());
    }
    Ok(steps.finish())
}

/// The steps of a long run that have passed, in the build directory.
fn progress(is_resumed: bool) -> Result<Progress> {
    let file = tree::root()?.join("target/xtask/passed-steps-of-the-long-test");
    if is_resumed { Progress::resume(file) } else { Progress::begin(file) }
}

fn is_part_of_name(text: &str) -> Option<String> {
    (!text.is_empty() && !text.starts_with('-')).then(|| text.to_owned())
}

fn usual(steps: &mut Steps) {
    steps.run("format", || run_cargo(&["fmt", "--all", "--check"]));
    steps.run("lints", || {
        run_cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    });
    steps.run("programs", find_programs);
    steps.run("tests", || run_tests(&["--workspace"], USUAL_PROFILE, &[]));
    steps.run("real clients", run_real_clients);
    steps.run("api", api::command);
    steps.run("azure", azure::command);
    steps.run("agent", agent::command);
    steps.run("plugins", plugins::command);
    steps.run("dashboard", dashboard::test);
    steps.run("libvirt", libvirt::command);
    steps.run("several machines", || machines::run(machines::ROUNDS));
    steps.run("portable", agent::check_portable);
    steps.run("power cuts", || cut_power(POWER_CUTS));
    steps.run("full disks", fill_disks);
    steps.run("costs", count_costs);
    steps.run("units", units::check);
    steps.run("monitoring", monitoring::check);
    steps.run("package", || deb::run(Build::Tests));
    steps.run("doctests", || run_cargo(&["test", "--workspace", "--locked", "--doc"]));
    steps.run("fuzz", || fuzz::run(None, Effort::Fixed));
    steps.run("tidy", tidy::check_all);
    steps.run("dependencies", check_dependencies);
}

fn long(steps: &mut Steps) {
    let seed = random_seed().to_string();
    match properties::packages() {
        Ok(packages) => packages.iter().for_each(|package| {
            steps.run(&format!("properties: {package}"), || try_properties(package, &seed));
        }),
        Err(problem) => steps.run("properties", || Err(problem)),
    }
    for (target, _) in fuzz::RUNS {
        let effort = Effort::Seconds(FUZZ_SECONDS_IN_LONG_RUN);
        steps.run(&format!("random fuzz: {target}"), || fuzz::run(Some(target), effort));
    }
    for first in (1..=machines::ROUNDS_IN_LONG_RUN).step_by(machines::ROUNDS_IN_PART as usize) {
        let last = first + machines::ROUNDS_IN_PART - 1;
        let step = format!("several machines, rounds {first} to {last}");
        steps.run(&step, || machines::run_rounds(first, machines::ROUNDS_IN_PART));
    }
    steps.run("more power cuts", || cut_power(POWER_CUTS_IN_LONG_RUN));
    steps.run("package to give", || deb::run(Build::Release));
    steps.run("site", docs::build);
    steps.run("break", breakages::run_all);
    for part in mutants::Part::all() {
        steps.run(&format!("mutants, {part}"), || mutants::try_part(MUTANTS_IN_LONG_RUN, part));
    }
    steps.run("mutants", mutants::judge_parts);
    steps.run("cost of rules", bench::measure_rules);
    steps.run("cost of polls", bench::measure_polls);
    steps.run("hostile machine", bench::measure_hostile);
    steps.run("cost of an agent", bench::measure_agent);
    steps.run("commands in clusters", bench::measure_streams);
    steps.run("large fleets", bench::measure_fleets);
    steps.run("cost of the dashboard", bench::measure_dashboard);
}

/// The tests of a package with more cases. They are steps of their own, so that none is repeated when the run is resumed;
/// the tests of packages without properties would try nothing that they have not tried before.
fn try_properties(package: &str, seed: &str) -> Result<Outcome> {
    eprintln!("PROPTEST_RNG_SEED={seed} FOREWARN_KILL_SEED={seed}");
    let environment = [
        ("PROPTEST_CASES", PROPERTY_CASES_IN_LONG_RUN),
        ("PROPTEST_RNG_SEED", seed),
        ("FOREWARN_KILL_ROUNDS", KILL_ROUNDS_IN_LONG_RUN),
        ("FOREWARN_KILL_SEED", seed),
    ];
    let profile = if RULES.contains(&package) { PROPERTIES_PROFILE } else { USUAL_PROFILE };
    run_tests(&["--package", package], profile, &environment)
}

/// What tests run besides cargo. Without it, the tests that need it say that they were skipped.
fn find_programs() -> Result<Outcome> {
    let programs = match packages::prepare_programs(&PROGRAMS) {
        Readiness::Ready => Outcome::Passed,
        Readiness::Lacking(why) => Outcome::Skipped(why),
    };
    let newer = match NEWER_ETCD.find_or_unpack() {
        Ok(_) => Outcome::Passed,
        Err(problem) => Outcome::Skipped(format!("{problem:#}")),
    };
    Ok(programs.and(newer))
}

fn run_cargo(words: &[&str]) -> Result<Outcome> {
    status(cargo().current_dir(tree::root()?).args(words))
}

/// With nextest where it is installed: it runs the tests of all packages side by side.
fn run_tests(packages: &[&str], profile: &str, environment: &[(&str, &str)]) -> Result<Outcome> {
    let words: &[_] = if has_nextest() {
        &["nextest", "run", "--locked", "--no-fail-fast", "--cargo-profile", profile]
    } else {
        &["test", "--locked", "--all-targets", "--no-fail-fast", "--profile", profile]
    };
    let mut tests = cargo();
    // A variable of the caller's would make the promises weaker than they read, or one run unlike the next.
    std::env::vars_os().filter(|(name, _)| is_of_tests(&name.to_string_lossy())).for_each(|(name, _)| {
        tests.env_remove(name);
    });
    tests.env("PROPTEST_RNG_SEED", PROPERTY_SEED).envs(environment.iter().copied());
    if let Some(etcd) = NEWER_ETCD.find() {
        tests.env("FOREWARN_ETCD_NEW", etcd);
    }
    status(tests.current_dir(tree::root()?).args(words).args(packages))
}

/// Whether a variable changes the amount or the seed of a test.
fn is_of_tests(name: &str) -> bool {
    ["PROPTEST_", "FOREWARN_KILL_", "FOREWARN_POWER_", "FOREWARN_MACHINES_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// A seed that no earlier run had.
fn random_seed() -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    let bytes = RandomState::new().hash_one(std::process::id()).to_le_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Programs of others against ours, in networks of their own: the ignored tests of the endpoint, and proxies in front of operators.
pub(crate) fn run_real_clients() -> Result<Outcome> {
    match packages::prepare(&REAL_CLIENTS) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    run_ignored(&mut cargo(), &PROGRAM_TESTS, &["endpoint::", "pressure::"])
}

/// Instructions and allocations, which do not depend on time: of commands and of machines that join, in a small fleet
/// and in a large one, of a poll of the program, and of a rollout.
pub(crate) fn count_costs() -> Result<Outcome> {
    match packages::prepare_programs(&VALGRIND) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let tests = ["--package", "forewarn-bench", "--test", "costs"];
    let commands = run_ignored(&mut cargo(), &tests, &["instructions_of_"])?;
    if commands != Outcome::Passed {
        return Ok(commands);
    }
    let mut build = cargo();
    build.current_dir(tree::root()?).args([
        "build",
        "--package",
        "forewarn",
        "--bin",
        "forewarn",
        "--locked",
    ]);
    let poll = bench::poll_cost::check(&built_program(&mut build)?)?;
    if poll != Outcome::Passed {
        return Ok(poll);
    }
    bench::count_rollouts()
}

/// Both steps that take the disk away from the journal.
pub(crate) fn run_disks() -> Result<Outcome> {
    let cut = cut_power(POWER_CUTS)?;
    if cut != Outcome::Passed {
        return Ok(cut);
    }
    fill_disks()
}

/// Disks as a power cut may leave them, built from a run that strace has seen.
fn cut_power(states: &str) -> Result<Outcome> {
    match packages::prepare_programs(&TRACER) {
        Readiness::Ready => run_ignored_of_store("durability::power::", &[("FOREWARN_POWER_STATES", states)]),
        Readiness::Lacking(why) => Ok(Outcome::Skipped(why)),
    }
}

/// Disks that are full or cannot be written, and files of which every byte is another in turn.
fn fill_disks() -> Result<Outcome> {
    let bytes = run_ignored_of_store("durability::damage::", &[])?;
    if bytes != Outcome::Passed {
        return Ok(bytes);
    }
    match packages::prepare_disks() {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let store = run_ignored_of_store("durability::faults::", &[])?;
    if store != Outcome::Passed {
        return Ok(store);
    }
    if let Readiness::Lacking(why) = packages::prepare_programs(&TRACER) {
        return Ok(Outcome::Skipped(why));
    }
    // The program itself, on such disks, on slow ones and in a time of its own.
    let ignored = ["--", "--ignored", "durable::", "doctor::"];
    run_cargo(&[&["test", "--locked"], &PROGRAM_TESTS[..], &ignored].concat())
}

fn run_ignored_of_store(filter: &str, environment: &[(&str, &str)]) -> Result<Outcome> {
    let mut tests = cargo();
    tests.args(["test", "--package", "forewarn-store", "--locked", "--test", "it", filter]);
    tests.args(["--", "--ignored", "--nocapture"]);
    status(tests.envs(environment.iter().copied()).current_dir(tree::root()?))
}

fn check_dependencies() -> Result<Outcome> {
    let mut deny = match CARGO_DENY.find_or_install() {
        Ok(deny) => deny,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let words = ["--all-features", "--locked", "check", "bans", "licenses", "sources"];
    status(deny.current_dir(tree::root()?).args(words))
}
