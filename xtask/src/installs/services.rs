//! Services of Debian packages, which stay off: the tests start their own.
//!
//! Debian asks `/usr/sbin/policy-rc.d`, if there is one, before a package starts a service. For the time of an
//! installation this file answers no, and only to that installation: it looks for a variable that only ours has. So
//! nothing changes for other installations, even if a killed run leaves the file behind. Then the services of new
//! packages are disabled, so that they do not start with the computer either.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The program that Debian asks.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The variable of our installations.
const VARIABLE: (&str, &str) = ("FOREWARN_SERVICES", "off");

const TEXT: &str = "\
#!/bin/sh
# Written by `cargo xtask` of Forewarn while it installs packages for its tests, and removed afterwards: services of
# these packages do not start. Other installations are not affected. This file may be deleted at any time.
[ \"${FOREWARN_SERVICES:-}\" = off ] && exit 101
exit 0
";

/// The exit code of a policy that forbids an action.
const FORBIDDEN: i32 = 101;

/// Runs an installation that starts no service, and disables those of new packages.
pub(crate) fn install_quietly(install: impl Fn(&[(&str, &str)]) -> bool) -> Result<bool> {
    let before = packages()?;
    let policy = Policy::install(Path::new(POLICY))?;
    let is_installed = install(&[VARIABLE]);
    drop(policy);
    let new: Vec<_> = packages()?.difference(&before).cloned().collect();
    disable(&new);
    Ok(is_installed)
}

/// The policy, which is removed when this value is dropped.
struct Policy {
    /// The file that was written. None if another one forbids services anyway.
    file: Option<PathBuf>,
}

impl Policy {
    /// Never replaces the file of someone else: that one has to forbid services itself.
    fn install(path: &Path) -> Result<Self> {
        match OpenOptions::new().write(true).create_new(true).mode(0o755).open(path) {
            Ok(mut file) => {
                let policy = Self { file: Some(path.to_owned()) };
                file.write_all(TEXT.as_bytes())
                    .with_context(|| format!("cannot write: {}", path.display()))?;
                // The mask of the user may have removed permissions.
                file.set_permissions(Permissions::from_mode(0o755))?;
                Ok(policy)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::adopt(path),
            Err(error) => Err(error).with_context(|| format!("cannot write: {}", path.display())),
        }
    }

    fn adopt(path: &Path) -> Result<Self> {
        if fs::read(path).is_ok_and(|text| text == TEXT.as_bytes()) {
            return Ok(Self { file: Some(path.to_owned()) });
        }
        let answer = Command::new(path).args(["forewarn", "start"]).stdin(Stdio::null()).output();
        if answer.is_ok_and(|answer| answer.status.code() == Some(FORBIDDEN)) {
            return Ok(Self { file: None });
        }
        bail!("{} would let services start\n  hint: install the packages by hand", path.display());
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if let Some(file) = &self.file
            && let Err(error) = fs::remove_file(file)
        {
            eprintln!("cannot remove {}: {error}", file.display());
        }
    }
}

/// The installed packages.
fn packages() -> Result<BTreeSet<String>> {
    let words = ["--show", "--showformat=${db:Status-Status} ${binary:Package}\n"];
    let output = Command::new("dpkg-query").args(words).output().context("cannot run dpkg-query")?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(list.lines().filter_map(|line| line.strip_prefix("installed ")).map(str::to_owned).collect())
}

/// Disables the services of these packages, for systemd and for init scripts.
fn disable(packages: &[String]) {
    let names: BTreeSet<_> = packages.iter().flat_map(|package| services(&files(package))).collect();
    for service in &names {
        let mut command = match service {
            Service::Unit(name) => words("systemctl", &["--root=/", "disable", name]),
            Service::Script(name) => words("update-rc.d", &[name, "disable"]),
        };
        // A computer has one of the two, or both; what is missing starts nothing.
        drop(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
    let names: BTreeSet<_> = names.iter().filter_map(Service::name).collect();
    if !names.is_empty() {
        let names = names.into_iter().collect::<Vec<_>>().join(" ");
        eprintln!("installed, not started and disabled: {names}");
    }
}

fn words(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words);
    command
}

fn files(package: &str) -> String {
    let output = Command::new("dpkg-query").args(["--listfiles", package]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Something that starts with the computer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Service {
    /// A unit of systemd.
    Unit(String),
    /// A script of `/etc/init.d`.
    Script(String),
}

impl Service {
    /// The name for a person. None for a template, of which there may be instances.
    fn name(&self) -> Option<&str> {
        let name = match self {
            Self::Unit(name) => name.rsplit_once('.').map_or(name.as_str(), |(name, _)| name),
            Self::Script(name) => name,
        };
        (!name.ends_with('@')).then_some(name)
    }
}

/// The services among the files of a package.
fn services(files: &str) -> Vec<Service> {
    let service = |file: &str| {
        let (directory, name) = file.rsplit_once('/')?;
        let is_unit = [".service", ".socket", ".timer"].iter().any(|kind| name.ends_with(kind));
        match directory {
            "/lib/systemd/system" | "/usr/lib/systemd/system" if is_unit => {
                Some(Service::Unit(name.to_owned()))
            }
            "/etc/init.d" => Some(Service::Script(name.to_owned())),
            _ => None,
        }
    };
    files.lines().filter_map(service).collect()
}

#[cfg(test)]
mod trial;

#[cfg(test)]
mod tests {
    use super::*;

    fn policy_of(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let (source, path) = (directory.path().join("source"), directory.path().join("policy-rc.d"));
        fs::write(&source, text).unwrap();
        // A file that this process has open for writing, if only in a fork of another test, cannot be executed.
        let copied = Command::new("install").arg("-m755").arg(source).arg(&path).status();
        assert!(copied.unwrap().success());
        (directory, path)
    }

    fn answer(path: &Path, variable: Option<&str>) -> Option<i32> {
        let mut command = Command::new("sh");
        command.arg(path).args(["postgresql", "start"]).env_remove(VARIABLE.0);
        if let Some(value) = variable {
            command.env(VARIABLE.0, value);
        }
        command.status().unwrap().code()
    }

    #[test]
    fn a_policy_forbids_services_of_our_installation_only_and_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy-rc.d");
        let policy = Policy::install(&path).unwrap();
        assert_eq!(answer(&path, Some(VARIABLE.1)), Some(FORBIDDEN));
        assert_eq!(answer(&path, None), Some(0), "another installation");
        drop(policy);
        assert!(!path.exists());
    }

    #[test]
    fn a_policy_that_a_killed_run_has_left_is_removed() {
        let (_directory, path) = policy_of(TEXT);
        drop(Policy::install(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn the_policy_of_someone_else_stays_and_has_to_forbid_services() {
        let strict = "#!/bin/sh\nexit 101\n";
        let (_directory, path) = policy_of(strict);
        drop(Policy::install(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), strict);
        let lax = "#!/bin/sh\nexit 0\n";
        let (_directory, path) = policy_of(lax);
        let problem = Policy::install(&path).err().unwrap().to_string();
        assert!(problem.contains("would let services start"), "{problem}");
        assert_eq!(fs::read_to_string(&path).unwrap(), lax);
    }

    #[test]
    fn units_and_scripts_of_a_package_are_services() {
        let files = "/.\n/lib/systemd/system/haproxy.service\n/lib/systemd/system/a.target\n/etc/init.d/haproxy\n\
                     /usr/lib/systemd/system/b.timer\n/usr/lib/systemd/user/c.service\n/usr/sbin/haproxy\n";
        let unit = |name: &str| Service::Unit(name.to_owned());
        let expected = [unit("haproxy.service"), Service::Script("haproxy".to_owned()), unit("b.timer")];
        assert_eq!(services(files), expected);
        let names: Vec<_> = expected.iter().filter_map(Service::name).collect();
        assert_eq!((names, unit("pg_dump@.timer").name()), (vec!["haproxy", "haproxy", "b"], None));
    }
}
