//! Programs that are not part of cargo: found on the path, or installed once into the user's cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::installs;
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
    /// The features to build, instead of the default ones.
    features: Option<&'static str>,
    pub(crate) cost: Cost,
}

/// The approximate cost of an installation, on a computer with two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) download_megabytes: u64,
    pub(crate) disk_megabytes: u64,
    pub(crate) minutes: u64,
}

pub(crate) const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    series: "0.20.",
    version_words: &["--version"],
    features: None,
    cost: Cost { download_megabytes: 45, disk_megabytes: 25, minutes: 5 },
};

pub(crate) const CARGO_FUZZ: Tool = Tool {
    name: "cargo-fuzz",
    version: "0.13.2",
    series: "0.13.",
    version_words: &["--version"],
    features: None,
    cost: Cost { download_megabytes: 8, disk_megabytes: 6, minutes: 1 },
};

pub(crate) const CARGO_MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
    series: "27.",
    version_words: &["mutants", "--version"],
    features: None,
    cost: Cost { download_megabytes: 30, disk_megabytes: 15, minutes: 3 },
};

/// Builds the documentation site. Without the features that serve a site and watch files.
pub(crate) const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    series: "v0.5.",
    version_words: &["--version"],
    features: Some("search"),
    cost: Cost { download_megabytes: 15, disk_megabytes: 15, minutes: 2 },
};

impl Tool {
    /// The program, ready for its arguments.
    pub(crate) fn find_or_install(&self) -> Result<Command> {
        if let Some(program) = self.find() {
            return Ok(Command::new(program));
        }
        self.install(&self.root()?)?;
        Ok(Command::new(self.find().with_context(|| format!("does not run: {}", self.name))?))
    }

    /// A suitable program: on the path, or installed by an earlier run.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        let installed = self.root().ok().map(|root| root.join("bin").join(self.name));
        [Some(self.name.into()), installed].into_iter().flatten().find(|program| self.is_suitable(program))
    }

    /// The name with the version to install.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    fn root(&self) -> Result<PathBuf> {
        Ok(cache_directory()?.join("forewarn/tools").join(format!("{}-{}", self.name, self.version)))
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
        installs::permit(&self.title())?;
        eprintln!("installing {name} {version} into {}", root.display());
        let mut install = cargo();
        install.args(["install", "--locked", name, "--version", version, "--root"]).arg(root);
        install.args(
            self.features.iter().flat_map(|features| ["--no-default-features", "--features", features]),
        );
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
        assert!(MDBOOK.is_in_series("mdbook v0.5.4\n"));
    }
}
