//! The systemd units: valid, and within their limits of exposure.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::packages::{Readiness, SYSTEMD_ANALYZE, prepare_programs};
use crate::steps::{Outcome, status};
use crate::tree;

const DIRECTORY: &str = "deploy/systemd";
const DROP_IN: &str = "deploy/drivers/forewarn-driver.conf";

/// Programs that units start, replaced for the check because they are not installed. The longer name first: it contains
/// the other.
const PROGRAMS: [&str; 2] = ["/usr/bin/forewarn-agent", "/usr/bin/forewarn"];

/// The limit of `systemd-analyze security` for each unit, from 0 to 100. An agent stops units, sends signals and runs
/// hooks.
const EXPOSURE_MAX: [(&str, &str); 2] =
    [("forewarn.service", "--threshold=25"), ("forewarn-agent.service", "--threshold=40")];

pub(crate) fn check() -> Result<Outcome> {
    match prepare_programs(&SYSTEMD_ANALYZE) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let files = tempfile::tempdir()?;
    for entry in std::fs::read_dir(tree::root()?.join(DIRECTORY))? {
        let unit = entry?.path();
        let name = unit.file_name().context("a unit has a name")?;
        let limit = EXPOSURE_MAX.iter().find(|(unit, _)| *unit == name);
        let (_, limit) = limit.with_context(|| format!("no limit of exposure for {}", unit.display()))?;
        let copy = files.path().join(name);
        let text = std::fs::read_to_string(&unit)?;
        let text = PROGRAMS.iter().fold(text, |text, program| text.replace(program, "/bin/true"));
        std::fs::write(&copy, text)?;
        for outcome in [verify(&copy)?, measure(&copy, limit)?] {
            if outcome != Outcome::Passed {
                return Ok(Outcome::Failed(format!("{}: {outcome:?}", unit.display())));
            }
        }
    }
    check_drop_in(files.path())
}

/// The drop-in for driver programs, beside the unit that it changes.
fn check_drop_in(files: &Path) -> Result<Outcome> {
    let directory = files.join("forewarn.service.d");
    std::fs::create_dir(&directory)?;
    std::fs::copy(tree::root()?.join(DROP_IN), directory.join("driver.conf"))?;
    let mut verify = Command::new("systemd-analyze");
    let output = verify.args(["verify", "--man=no"]).arg(files.join("forewarn.service")).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // An unknown key is only reported.
    let faults: Vec<_> = said.lines().filter(|line| line.contains("driver.conf")).collect();
    Ok(if output.status.success() && faults.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("{DROP_IN}: {said}"))
    })
}

fn verify(unit: &Path) -> Result<Outcome> {
    status(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit))
}

fn measure(unit: &Path, limit: &str) -> Result<Outcome> {
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", limit, "--no-pager"]).arg(unit).stdout(Stdio::null());
    status(&mut security)
}
