//! Programs from PyPI and npm, each installed into its own environment in the user's cache.
//!
//! A list in the repository names every installed package with its version. A copy of the list is written into the
//! environment last: if it is missing or differs, the environment is incomplete or outdated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::installs;
use crate::tools::{Cost, cache_directory};
use crate::tree;

/// The copy of the list.
const INSTALLED: &str = "forewarn-installed";

/// The second file that npm reads.
const NODE_PACKAGE: &str = "package.json";

/// An installed set of packages.
pub(crate) struct Environment {
    name: &'static str,
    version: &'static str,
    kind: Kind,
    /// The list of packages, with all dependencies.
    list: &'static str,
    pub(crate) cost: Cost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Python,
    /// The list is `package-lock.json`, with `package.json` beside it.
    Node,
}

/// Tests an API by its OpenAPI document. The list pins every dependency, so that a seed gives the same requests
/// everywhere.
pub(crate) const SCHEMATHESIS: Environment = Environment {
    name: "schemathesis",
    version: "4.32.5",
    kind: Kind::Python,
    list: "xtask/api/requirements.txt",
    cost: Cost { download_megabytes: 13, disk_megabytes: 60, minutes: 1 },
};

/// The command line of Azure.
pub(crate) const AZURE_CLI: Environment = Environment {
    name: "azure-cli",
    version: "2.91.0",
    kind: Kind::Python,
    list: "xtask/azure/cli.txt",
    cost: Cost { download_megabytes: 49, disk_megabytes: 900, minutes: 4 },
};

/// A version of the Azure command line that validates authorities with the real cloud, unless they end in `/adfs`.
pub(crate) const AZURE_CLI_2_50: Environment = Environment {
    name: "azure-cli",
    version: "2.50.0",
    kind: Kind::Python,
    list: "xtask/azure/cli-2.50.txt",
    cost: Cost { download_megabytes: 70, disk_megabytes: 900, minutes: 4 },
};

/// A version of the Azure command line that has its own default address for managed identities.
pub(crate) const AZURE_CLI_2_72: Environment = Environment {
    name: "azure-cli",
    version: "2.72.0",
    kind: Kind::Python,
    list: "xtask/azure/cli-2.72.txt",
    cost: Cost { download_megabytes: 64, disk_megabytes: 900, minutes: 4 },
};

/// The Azure compute client for Python. Its dependencies have other versions than those of the command line.
pub(crate) const AZURE_PYTHON: Environment = Environment {
    name: "azure-mgmt-compute",
    version: "39.0.0",
    kind: Kind::Python,
    list: "xtask/azure/sdk.txt",
    cost: Cost { download_megabytes: 7, disk_megabytes: 40, minutes: 1 },
};

/// The compute client of Azure for JavaScript.
pub(crate) const AZURE_NODE: Environment = Environment {
    name: "azure-arm-compute",
    version: "24.1.0",
    kind: Kind::Node,
    list: "xtask/azure/node/package-lock.json",
    cost: Cost { download_megabytes: 14, disk_megabytes: 78, minutes: 1 },
};

/// The runner of Python tests, and the build tool that installs the plugin for it.
pub(crate) const PYTEST: Environment = Environment {
    name: "pytest",
    version: "9.2.0",
    kind: Kind::Python,
    list: "xtask/plugins/requirements.txt",
    cost: Cost { download_megabytes: 3, disk_megabytes: 20, minutes: 1 },
};

/// A runner of JavaScript tests, and the compiler that reads the types of the plugin for it.
pub(crate) const JEST: Environment = Environment {
    name: "jest",
    version: "29.7.0",
    kind: Kind::Node,
    list: "xtask/plugins/node/package-lock.json",
    cost: Cost { download_megabytes: 63, disk_megabytes: 60, minutes: 1 },
};

/// The driver of a browser, and the checks of pages for people who cannot see them.
pub(crate) const BROWSER_TOOLS: Environment = Environment {
    name: "browser-tools",
    version: "1.65.1",
    kind: Kind::Node,
    list: "xtask/dashboard/package-lock.json",
    cost: Cost { download_megabytes: 5, disk_megabytes: 20, minutes: 1 },
};

impl Environment {
    /// The directory of the environment.
    pub(crate) fn find_or_install(&self) -> Result<PathBuf> {
        let (place, list) = (self.place()?, tree::root()?.join(self.list));
        let wanted = fs::read(&list).with_context(|| format!("cannot read: {}", self.list))?;
        if self.is_installed() {
            return Ok(place);
        }
        let title = self.title();
        installs::permit(&title)?;
        eprintln!("installing {title} into {}; that may take minutes", place.display());
        match self.kind {
            Kind::Python => install_python(&place, &list),
            Kind::Node => install_node(&place, &list),
        }
        .with_context(|| format!("cannot install: {title}"))?;
        fs::write(place.join(INSTALLED), wanted)?;
        Ok(place)
    }

    /// True if everything on the list is installed.
    pub(crate) fn is_installed(&self) -> bool {
        let wanted = tree::root().and_then(|root| Ok(fs::read(root.join(self.list))?));
        let found = self.place().and_then(|place| Ok(fs::read(place.join(INSTALLED))?));
        matches!((wanted, found), (Ok(wanted), Ok(found)) if wanted == found)
    }

    /// The name with the version.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The repository of the packages.
    pub(crate) fn source(&self) -> &'static str {
        match self.kind {
            Kind::Python => "PyPI",
            Kind::Node => "npm",
        }
    }

    fn place(&self) -> Result<PathBuf> {
        Ok(cache_directory()?.join(format!("forewarn/tools/{}-{}", self.name, self.version)))
    }
}

fn install_python(place: &Path, list: &Path) -> Result<()> {
    let hint = "hint: it takes python3 with venv, and the network";
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place), hint)?;
    // The list is complete: with nothing to resolve, an installation takes half the time.
    let words = ["install", "--quiet", "--no-deps", "--requirement"];
    run(Command::new(place.join("bin/pip")).args(words).arg(list), hint)
}

fn install_node(place: &Path, list: &Path) -> Result<()> {
    fs::create_dir_all(place)?;
    for file in [list, &list.with_file_name(NODE_PACKAGE)] {
        let name = file.file_name().context("a list is a file")?;
        fs::copy(file, place.join(name)).with_context(|| format!("cannot copy: {}", file.display()))?;
    }
    let words = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"];
    run(Command::new("npm").args(words).current_dir(place), "hint: it takes npm, and the network")
}

fn run(command: &mut Command, hint: &str) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    ensure!(status.is_ok_and(|status| status.success()), "{:?} failed\n  {hint}", command.get_program());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&Environment; 8] = [
        &SCHEMATHESIS,
        &AZURE_CLI,
        &AZURE_CLI_2_50,
        &AZURE_CLI_2_72,
        &AZURE_PYTHON,
        &AZURE_NODE,
        &PYTEST,
        &JEST,
    ];

    #[test]
    fn every_environment_has_a_directory_of_its_own() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|one| (one.name, one.version)).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_list_has_what_it_is_for_in_the_version_that_is_said() {
        for Environment { name, version, kind, list, .. } in ALL {
            let text = fs::read_to_string(tree::root().unwrap().join(list)).unwrap();
            let line = match kind {
                Kind::Python => format!("{name}=={version}\n"),
                Kind::Node => {
                    format!("\"{}\": \"{version}\"", name.replace("azure-arm-compute", "@azure/arm-compute"))
                }
            };
            assert!(text.contains(&line), "{list}");
        }
    }

    #[test]
    fn a_list_does_not_say_from_where() {
        for Environment { list, .. } in ALL {
            let text = fs::read_to_string(tree::root().unwrap().join(list)).unwrap();
            for word in ["\"resolved\"", "--index-url", "--find-links", " @ "] {
                assert!(!text.contains(word), "{list}: {word}");
            }
        }
    }
}
