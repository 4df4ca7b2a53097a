//! `cargo xtask agent`: real agents, in machines that are network namespaces, against the program; and that what decides for
//! them needs no operating system.
//!
//! What the agents do and what has to come of it is in the ignored tests of `crates/forewarn/tests/it/agents` and `crates/agent`; here
//! the programs beside them are installed, and both of ours are built.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::packages::{self, AGENT_PROGRAMS, KUBECTL, Readiness};
use crate::steps::{Outcome, cargo, status};
use crate::tools::{PROGRAM_TESTS, run_ignored};
use crate::tree;

/// What assumes no operating system, and a target that has none.
const PORTABLE: [&str; 4] = ["forewarn-types", "forewarn-lifecycle", "forewarn-imds", "forewarn-agent-core"];
const BARE_TARGET: &str = "wasm32-unknown-unknown";

pub(crate) fn command() -> Result<Outcome> {
    match packages::prepare(&AGENT_PROGRAMS) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let root = tree::root()?;
    let build = ["build", "--locked", "--package", "forewarn", "--package", "forewarn-agent"];
    let built = status(cargo().current_dir(&root).args(build))?;
    if built != Outcome::Passed {
        return Ok(built);
    }
    // One run tells all that is wrong.
    let stories = run_ignored(&mut cargo(), &PROGRAM_TESTS, &["agents::"])?;
    let parts = match packages::prepare_programs(&KUBECTL) {
        Readiness::Ready => run_ignored(&mut cargo(), &["--package", "forewarn-agent"], &[])?,
        Readiness::Lacking(why) => Outcome::Skipped(why),
    };
    let outcomes = [stories, parts];
    let failed = outcomes.into_iter().find(|outcome| *outcome != Outcome::Passed);
    Ok(failed.unwrap_or(Outcome::Passed))
}

/// Compiles what decides for a target without an operating system, where that target is installed.
pub(crate) fn check_portable() -> Result<Outcome> {
    if !has_target() {
        eprintln!(
            "not checked: the target {BARE_TARGET} is not installed\n  hint: rustup target add {BARE_TARGET}"
        );
        return Ok(Outcome::Passed);
    }
    let mut check = cargo();
    check.args(["check", "--locked", "--target", BARE_TARGET]);
    PORTABLE.iter().for_each(|package| {
        check.args(["--package", package]);
    });
    status(check.current_dir(tree::root()?))
}

fn has_target() -> bool {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = rustc.args(["--print", "target-libdir", "--target", BARE_TARGET]).output();
    let is_directory = |text: &[u8]| Path::new(String::from_utf8_lossy(text).trim()).is_dir();
    output.is_ok_and(|output| output.status.success() && is_directory(&output.stdout))
}
