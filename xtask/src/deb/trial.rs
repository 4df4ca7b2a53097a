//! Checks of a package: its contents, and that its program runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::list::{DebPackage, Installation};
use super::{installation, output};

pub(super) fn run(package: &DebPackage, file: &Path, version: &str) -> Result<()> {
    let list = output(Command::new("dpkg-deb").arg("--contents").arg(file))?;
    for (mode, path) in package.expected {
        let has = |line: &str| line.starts_with(mode) && line.contains(" root/root ") && line.ends_with(path);
        ensure!(list.lines().any(has), "not in the package, or not as root's {mode}: {path}");
    }
    let fields = output(Command::new("dpkg-deb").arg("--info").arg(file))?;
    for field in [&format!("Version: {version}-"), "Depends: libc6 (>= ", "conffiles"] {
        ensure!(fields.contains(field), "the package does not say: {field}\n{fields}");
    }
    let place = tempfile::tempdir()?;
    output(Command::new("dpkg-deb").arg("--extract").arg(file).arg(place.path()))?;
    start(package, place.path(), version)?;
    match package.installation {
        Installation::Tried => installation::run(file)?,
        Installation::Extracted => {}
    }
    lint(file)
}

/// Extracts the package, starts its program, and checks its settings.
fn start(package: &DebPackage, place: &Path, version: &str) -> Result<()> {
    let program = place.join("usr/bin").join(package.name);
    let said = output(Command::new(&program).arg("--version"))?;
    ensure!(said.trim() == format!("{} {version}", package.name), "the program says: {said}");
    // The settings name system directories; the trial uses others.
    let settings = place.join(package.settings);
    let mut text = fs::read_to_string(&settings)?;
    for path in package.places {
        ensure!(text.contains(path), "the settings do not name {path}");
        fs::create_dir_all(place.join(path.trim_start_matches('/')))?;
        text = text.replace(&format!("\"{path}"), &format!("\"{}{path}", place.display()));
    }
    fs::write(&settings, text)?;
    output(Command::new(&program).args(package.check).arg(&settings)).map(drop)
}

/// Runs lintian where it is installed.
fn lint(file: &Path) -> Result<()> {
    let has = Command::new("lintian").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        eprintln!("lintian is not installed: skipped");
        return Ok(());
    }
    // No bug report asks for this package, and tags for packages of the archive do not concern it.
    let words = ["--allow-root", "--fail-on=error,warning", "--suppress-tags=initial-upload-closes-no-bugs"];
    let said = output(Command::new("lintian").args(words).arg(file))?;
    eprint!("{said}");
    Ok(())
}
