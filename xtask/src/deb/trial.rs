//! Trying a package out: what is in it, and whether the program that comes out of it runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::output;

/// What has to be in it, with its mode.
const EXPECTED: [(&str, &str); 10] = [
    ("-rwxr-xr-x", "./usr/bin/forewarn"),
    ("-rw-r--r--", "./etc/forewarn/serve.toml"),
    ("-rw-r--r--", "./usr/lib/systemd/system/forewarn.service"),
    ("-rw-r--r--", "./usr/lib/sysusers.d/forewarn.conf"),
    ("-rw-r--r--", "./usr/share/man/man1/forewarn.1.gz"),
    ("-rw-r--r--", "./usr/share/man/man1/forewarn-vm-restart.1.gz"),
    ("-rw-r--r--", "./usr/share/bash-completion/completions/forewarn"),
    ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_forewarn"),
    ("-rw-r--r--", "./usr/share/doc/forewarn/copyright"),
    ("-rw-r--r--", "./usr/share/doc/forewarn/changelog.gz"),
];

pub(super) fn run(package: &Path, version: &str) -> Result<()> {
    let list = output(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    for (mode, path) in EXPECTED {
        let has = |line: &str| line.starts_with(mode) && line.contains(" root/root ") && line.ends_with(path);
        ensure!(list.lines().any(has), "not in the package, or not as root's {mode}: {path}");
    }
    let fields = output(Command::new("dpkg-deb").arg("--info").arg(package))?;
    for field in [&format!("Version: {version}-"), "Depends: libc6 (>= ", "conffiles"] {
        ensure!(fields.contains(field), "the package does not say: {field}\n{fields}");
    }
    let place = tempfile::tempdir()?;
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(place.path()))?;
    start(place.path(), version)?;
    lint(package)
}

/// The program comes out whole, and finds the settings that come with it in order.
fn start(place: &Path, version: &str) -> Result<()> {
    let program = place.join("usr/bin/forewarn");
    let said = output(Command::new(&program).arg("--version"))?;
    ensure!(said.trim() == format!("forewarn {version}"), "the program says: {said}");
    // What the package brings is for the whole computer; here it is tried in a corner of it.
    for directory in ["var/lib", "run/forewarn"] {
        fs::create_dir_all(place.join(directory))?;
    }
    let settings = place.join("etc/forewarn/serve.toml");
    let text = fs::read_to_string(&settings)?;
    for path in ["/var/lib/forewarn", "/run/forewarn"] {
        ensure!(text.contains(path), "the settings do not name {path}");
    }
    let moved =
        |text: &str, path: &str| text.replace(&format!("\"{path}"), &format!("\"{}{path}", place.display()));
    fs::write(&settings, moved(&moved(&text, "/var/lib/forewarn"), "/run/forewarn"))?;
    output(Command::new(&program).args(["serve", "--check", "--config"]).arg(&settings)).map(drop)
}

/// Debian's own opinion of packages, where it is installed.
fn lint(package: &Path) -> Result<()> {
    let has = Command::new("lintian").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        eprintln!("lintian is not installed: not asked");
        return Ok(());
    }
    // No bug report asks for this package, and tags for packages of the archive do not concern it.
    let words = ["--allow-root", "--fail-on=error,warning", "--suppress-tags=initial-upload-closes-no-bugs"];
    let said = output(Command::new("lintian").args(words).arg(package))?;
    eprint!("{said}");
    Ok(())
}
