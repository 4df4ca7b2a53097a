//! The unit files: understood by systemd, and as closed as they claim to be.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::packages::{Readiness, prepare_programs};
use crate::steps::{Outcome, status};
use crate::tree;

/// Where they are.
const DIRECTORY: &str = "deploy/systemd";

/// The program that units start; it is not installed where they are checked.
const PROGRAM: &str = "/usr/bin/forewarn";

/// How exposed a unit may be, by systemd's own measure: 0 is not at all, 100 entirely.
const EXPOSURE_MAX: &str = "--threshold=25";

pub(crate) fn check() -> Result<Outcome> {
    match prepare_programs(&[("systemd-analyze", "systemd")]) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let files = tempfile::tempdir()?;
    for entry in std::fs::read_dir(tree::root()?.join(DIRECTORY))? {
        let unit = entry?.path();
        let name = unit.file_name().context("a unit has a name")?;
        let copy = files.path().join(name);
        let text = std::fs::read_to_string(&unit)?.replace(PROGRAM, "/bin/true");
        std::fs::write(&copy, text)?;
        for outcome in [verify(&copy)?, measure(&copy)?] {
            if outcome != Outcome::Passed {
                return Ok(Outcome::Failed(format!("{}: {outcome:?}", unit.display())));
            }
        }
    }
    Ok(Outcome::Passed)
}

fn verify(unit: &Path) -> Result<Outcome> {
    status(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit))
}

fn measure(unit: &Path) -> Result<Outcome> {
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", EXPOSURE_MAX, "--no-pager"]).arg(unit).stdout(Stdio::null());
    status(&mut security)
}
