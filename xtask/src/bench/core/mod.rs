//! `cargo xtask bench core`: the cost of a command in the rules, and the memory of a VM.
//!
//! Time depends on the computer and its load; instructions do not, so the goal is about instructions. valgrind counts
//! them, where it is installed.

mod report;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Keep, results};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;

use report::{CostReport, Counted, Timed};

/// Its section in the results.
const NAME: &str = "core";
const TIMED_MACHINES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const TIMED_COMMANDS: &str = "20000";
const TIMED_RUNS: usize = 5;
const COUNTED_MACHINES: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Fewer: valgrind is about fifty times slower.
const COUNTED_COMMANDS: &str = "2000";

pub(super) fn run(keep: Keep) -> Result<Outcome> {
    let root = tree::root()?;
    let program = build(&root)?;
    let timed = TIMED_MACHINES.into_iter().map(|machines| time(&program, machines)).collect::<Result<_>>()?;
    let counted = if has_valgrind() {
        COUNTED_MACHINES.into_iter().map(|machines| count(&program, machines)).collect::<Result<_>>()?
    } else {
        eprintln!("VALGRIND IS MISSING: instructions are not counted, only time is measured");
        Vec::new()
    };
    let report = CostReport { timed, counted };
    println!("{}", report.table());
    match keep {
        Keep::Nothing => {}
        Keep::Save => {
            let section = format!("Measured on: {}.\n\n{}", results::machine(), report.table());
            results::save(&root, NAME, &section)?;
        }
    }
    Ok(report.judge())
}

fn build(root: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(root).args([
        "build",
        "--release",
        "--locked",
        "--package",
        "forewarn-bench",
        "--bin",
        "core",
    ]);
    built_program(&mut command).context("cannot build the benchmark")
}

/// The fastest of some runs: other load can only make a run slower.
fn time(program: &Path, machines: u64) -> Result<Timed> {
    eprintln!("timing {TIMED_COMMANDS} commands {TIMED_RUNS} times, machines: {machines}");
    let runs = (0..TIMED_RUNS).map(|_| time_once(program, machines)).collect::<Result<Vec<_>>>()?;
    runs.into_iter().min_by_key(Timed::nanoseconds).context("nothing was run")
}

fn time_once(program: &Path, machines: u64) -> Result<Timed> {
    let output = Command::new(program)
        .args(["--machines", &machines.to_string(), "--commands", TIMED_COMMANDS])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run the benchmark")?;
    Timed::parse(&String::from_utf8_lossy(&output.stdout))
}

fn count(program: &Path, machines: u64) -> Result<Counted> {
    eprintln!("counting the instructions of {COUNTED_COMMANDS} commands, machines: {machines}");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*measured*", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--machines", &machines.to_string(), "--commands", COUNTED_COMMANDS])
        .output()
        .context("cannot run valgrind")?;
    Counted::parse(&String::from_utf8_lossy(&output.stdout), &String::from_utf8_lossy(&output.stderr))
}

pub(super) fn has_valgrind() -> bool {
    let mut version = Command::new("valgrind");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}
