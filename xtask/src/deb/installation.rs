//! The package of the server, really installed: in a copy of this system that only the trial sees.
//!
//! `installation.sh` has the steps. They run in a mount and a network namespace of their own, on an overlay of `/`, so that
//! neither the package nor its user is left behind, and no port is taken.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::output;

const STEPS: &str = include_str!("installation.sh");

/// Installs the package and uses it. Without root or without overlays, says that this was skipped.
pub(super) fn run(package: &Path) -> Result<()> {
    let place = tempfile::tempdir()?;
    if let Err(why) = output(
        isolated(
            "mount -t tmpfs trial \"$1\" && mkdir \"$1/u\" \"$1/w\" \"$1/r\" && \
         mount -t overlay -o lowerdir=/,upperdir=\"$1/u\",workdir=\"$1/w\" overlay \"$1/r\"",
        )
        .arg(place.path()),
    ) {
        let why = why.to_string();
        eprintln!(
            "cannot install the package in a root of its own: skipped: {}",
            why.lines().last().unwrap_or_default()
        );
        return Ok(());
    }
    eprint!("{}", output(isolated(STEPS).arg(place.path()).arg(package))?);
    Ok(())
}

/// A script in namespaces of its own: its mounts and processes end with it.
fn isolated(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["sh", "-c", script, "sh"]);
    command
}
