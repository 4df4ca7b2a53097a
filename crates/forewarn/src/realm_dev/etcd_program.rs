//! The program etcd: found on the path, and refused in versions that have lost data.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use forewarn_server::VersionVerdict;
use rustix::fs::{Access, access};

/// The line of `etcd --version` with the version begins with it.
const VERSION_LINE: &str = "etcd Version: ";

/// A program that was found, and its version.
#[derive(Clone, Debug)]
pub(super) struct EtcdProgram {
    pub(super) path: PathBuf,
    pub(super) version: String,
}

impl EtcdProgram {
    /// The program of the option, or the first one on the path.
    pub(super) fn find(option: Option<&Path>) -> Result<Self> {
        let path = match option {
            Some(path) => path.to_owned(),
            None => on_path().context(
                "etcd is not installed\n  hint: on Debian and Ubuntu, `apt install etcd-server`; its service is not \
                 needed (`systemctl disable --now etcd`); --etcd PROGRAM names another one",
            )?,
        };
        let version = version_of(&path)?;
        match VersionVerdict::of(&version) {
            VersionVerdict::Good | VersionVerdict::Outdated => Ok(Self { path, version }),
            VersionVerdict::LosesData | VersionVerdict::Unknown => bail!(
                "{} is etcd {version}, which is known to lose data, or too old\n  hint: install 3.5.6 or newer, or \
                 3.4.22 or newer; --etcd PROGRAM names another one",
                path.display()
            ),
        }
    }
}

fn on_path() -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    env::split_paths(&paths).map(|directory| directory.join("etcd")).find(is_program)
}

fn version_of(path: &Path) -> Result<String> {
    let mut command = Command::new(path);
    super::process::clear_etcd_settings(&mut command);
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run etcd: {}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix(VERSION_LINE));
    let version =
        version.with_context(|| format!("{} --version names no version of etcd", path.display()))?;
    Ok(version.trim().to_owned())
}
