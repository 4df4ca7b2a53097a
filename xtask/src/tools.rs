//! Programs that are not part of cargo: found on the path, or installed once into the user's cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{Outcome, cargo, status};
use crate::tree;

/// A program that comes as a crate of the same name.
pub(crate) struct Tool {
    name: &'static str,
    /// The version to install if no suitable one is found.
    version: &'static str,
    /// The prefix of a suitable version.
    series: &'static str,
    /// The arguments that print its version.
    version_words: &'static [&'static str],
}

pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", series: "0.20.", version_words: &["--version"] };

pub(crate) const CARGO_FUZZ: Tool =
    Tool { name: "cargo-fuzz", version: "0.13.2", series: "0.13.", version_words: &["--version"] };

pub(crate) const CARGO_MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
    series: "27.",
    version_words: &["mutants", "--version"],
};

impl Tool {
    /// The program, ready for its arguments.
    pub(crate) fn find_or_install(&self) -> Result<Command> {
        if self.is_suitable(Path::new(self.name)) {
            return Ok(Command::new(self.name));
        }
        let root = cache_directory()?.join("forewarn/tools").join(format!("{}-{}", self.name, self.version));
        let program = root.join("bin").join(self.name);
        if !self.is_suitable(&program) {
            self.install(&root)?;
        }
        Ok(Command::new(program))
    }

    fn is_suitable(&self, program: &Path) -> bool {
        let output = Command::new(program).args(self.version_words).output();
        output.is_ok_and(|output| self.is_in_series(&String::from_utf8_lossy(&output.stdout)))
    }

    fn is_in_series(&self, answer: &str) -> bool {
        let version = answer.trim().strip_prefix(self.name).map(str::trim_start);
        version.is_some_and(|version| version.starts_with(self.series))
    }

    fn install(&self, root: &Path) -> Result<()> {
        let Self { name, version, .. } = self;
        eprintln!("installing {name} {version} into {}", root.display());
        let mut install = cargo();
        install.args(["install", "--locked", name, "--version", version, "--root"]).arg(root);
        // The build directory of the workspace may be locked by the calling cargo.
        install.env_remove("CARGO_TARGET_DIR");
        let status = install.status().context("cannot run cargo")?;
        if !status.success() {
            bail!("cannot install: {name} {version}\n  hint: install it by hand, or connect to the network");
        }
        Ok(())
    }
}

/// The user's cache directory.
pub(crate) fn cache_directory() -> Result<PathBuf> {
    let chosen = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = || std::env::home_dir().map(|home| home.join(".cache"));
    chosen.or_else(usual).context("no cache directory\n  hint: set XDG_CACHE_HOME")
}

/// True if cargo-nextest is installed.
pub(crate) fn has_nextest() -> bool {
    let mut version = cargo();
    version.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// The integration tests of the program.
pub(crate) const PROGRAM_TESTS: [&str; 4] = ["--package", "forewarn", "--test", "it"];

/// Runs the ignored tests of that target whose names have one of these parts. One run tells all that is wrong.
pub(crate) fn run_ignored(cargo: &mut Command, target: &[&str], parts: &[&str]) -> Result<Outcome> {
    let is_nextest = has_nextest();
    cargo.args(if is_nextest { &["nextest", "run", "--run-ignored", "only"][..] } else { &["test"] });
    cargo.args(["--locked", "--no-fail-fast"]).args(target).arg("--");
    cargo.args(if is_nextest { None } else { Some("--ignored") });
    status(cargo.args(parts).current_dir(tree::root()?))
}

/// nginx from the path, or from Debian, unpacked into the user's cache: an installed package would start a server.
pub(crate) fn find_or_unpack_nginx() -> Result<PathBuf> {
    let cached = cache_directory()?.join("forewarn/tools/nginx");
    let places = ["nginx".into(), "/usr/sbin/nginx".into(), cached.join("usr/sbin/nginx")];
    let find = || places.iter().find(|program| is_nginx(program)).cloned();
    if let Some(program) = find() {
        return Ok(program);
    }
    eprintln!("unpacking nginx into {}", cached.display());
    unpack_debian("nginx", &cached).context("nginx is missing\n  hint: install it by hand")?;
    find().context("nginx does not run\n  hint: install it by hand")
}

fn is_nginx(program: &Path) -> bool {
    let output = Command::new(program).arg("-v").output();
    output.is_ok_and(|output| output.status.success() && output.stderr.starts_with(b"nginx version:"))
}

/// promtool from the path, or from Debian, unpacked into the user's cache: the installed package would start Prometheus.
pub(crate) fn find_or_unpack_promtool() -> Result<PathBuf> {
    let cached = cache_directory()?.join("forewarn/tools/prometheus");
    let places = ["promtool".into(), cached.join("usr/bin/promtool")];
    let find = || places.iter().find(|program| is_promtool(program)).cloned();
    if let Some(program) = find() {
        return Ok(program);
    }
    eprintln!("unpacking promtool into {}", cached.display());
    unpack_debian("prometheus", &cached).context("promtool is missing\n  hint: install it by hand")?;
    find().context("promtool does not run\n  hint: install it by hand")
}

fn is_promtool(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"promtool, version "))
}

/// Unpacks without installing, so that no rights are needed, except to fetch a missing package list.
fn unpack_debian(package: &str, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("cannot make: {}", into.display()))?;
    let run = |program: &str, words: &[&str]| {
        let status = Command::new(program).current_dir(into).args(words).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let is_downloaded = run("apt-get", &["download", package])
        || (run("apt-get", &["update"]) && run("apt-get", &["download", package]));
    ensure!(is_downloaded, "cannot download: {package}");
    let entries = into.read_dir()?.filter_map(Result::ok).map(|entry| entry.path());
    let archive = entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).max();
    let archive = archive.with_context(|| format!("not downloaded: {package}"))?;
    ensure!(run("dpkg-deb", &["--extract", &archive.to_string_lossy(), "."]), "cannot unpack: {package}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suitable_program_is_of_the_right_name_and_series() {
        assert!(CARGO_DENY.is_in_series("cargo-deny 0.20.7\n"));
        assert!(!CARGO_DENY.is_in_series("cargo-deny 0.2.0"));
        assert!(!CARGO_DENY.is_in_series("cargo-mutants 27.1.0"));
        assert!(CARGO_MUTANTS.is_in_series("cargo-mutants 27.1.0"));
        assert!(!CARGO_MUTANTS.is_in_series(""));
    }
}
