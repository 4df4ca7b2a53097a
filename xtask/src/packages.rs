//! Debian packages of the programs that tests run, installed where that is possible.
//!
//! Only root can install them and create the network namespaces in which they run. Without root or Debian, the step is
//! skipped with the reason. Services of the packages are not started.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

use crate::installs;
use crate::installs::services::install_quietly;

/// Packages of the clients and proxies that tests run, and of the tools that put them into a network of their own.
pub(crate) const REAL_CLIENTS: [&str; 7] =
    ["curl", "haproxy", "iproute2", "nginx-light", "python3", "resource-agents", "util-linux"];

/// Packages for tests of agents: networks, DHCP and services that are drained.
pub(crate) const AGENT_PROGRAMS: [&str; 8] =
    ["curl", "dnsmasq-base", "haproxy", "iproute2", "isc-dhcp-client", "nftables", "postgresql", "python3"];

/// The availability of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Installed, with the permission to use them.
    Ready,
    /// The reason why they are not available.
    Lacking(String),
}

/// Programs that ordinary tests run and files that they read, and the packages that contain them.
pub(crate) const PROGRAMS: [(&str, &str); 7] = [
    ("curl", "curl"),
    ("etcd", "etcd-server"),
    ("node", "nodejs"),
    ("python3", "python3"),
    ("/usr/lib/python3/dist-packages/yaml/__init__.py", "python3-yaml"),
    ("virsh", "libvirt-clients"),
    ("/usr/share/zoneinfo/Europe/Berlin", "tzdata"),
];

/// The program that records system calls.
pub(crate) const TRACER: [(&str, &str); 1] = [("strace", "strace")];

/// The program that counts instructions.
pub(crate) const VALGRIND: [(&str, &str); 1] = [("valgrind", "valgrind")];

/// The Kubernetes client that checks the test API server. Debian is one of its sources.
pub(crate) const KUBECTL: [(&str, &str); 1] = [("kubectl", "kubernetes-client")];

/// The program that checks units.
pub(crate) const SYSTEMD_ANALYZE: [(&str, &str); 1] = [("systemd-analyze", "systemd")];

/// The runner of `node` itself.
pub(crate) const NODE: [(&str, &str); 1] = [("node", "nodejs")];

/// A browser, and the runner of its tests.
pub(crate) const BROWSER: [(&str, &str); 2] = [("chromium", "chromium"), ("node", "nodejs")];

/// The package that adds `venv` to Debian's Python.
const PYTHON_VENV: &str = "python3-venv";

/// Finds programs on the path, or installs their packages.
pub(crate) fn prepare_programs(programs: &[(&'static str, &'static str)]) -> Readiness {
    let packages = missing_programs(programs);
    match install(&packages) {
        Ok(()) => Readiness::Ready,
        Err(problem) => lacking(&format!("not on the path: {}: {problem:#}", packages.join(" "))),
    }
}

/// The packages of programs that are not on the path.
pub(crate) fn missing_programs(programs: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    let missing = programs.iter().filter(|(program, _)| !is_on_path(program));
    missing.map(|(_, package)| *package).collect()
}

/// Python with `venv`, which Debian has in a separate package.
pub(crate) fn prepare_python() -> Readiness {
    match install(&missing_python()) {
        Ok(()) if missing_python().is_empty() => Readiness::Ready,
        Ok(()) => lacking("no python3 with venv, although python3-venv is installed"),
        Err(problem) => lacking(&format!("no python3 with venv: {problem:#}")),
    }
}

/// The package of `venv`, if Python does not have it.
pub(crate) fn missing_python() -> Vec<&'static str> {
    let can_make = runs(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if can_make { Vec::new() } else { vec![PYTHON_VENV] }
}

/// True if npm is installed.
pub(crate) fn has_npm() -> bool {
    runs(Command::new("npm").arg("--version"))
}

/// Finds packages, or installs them. Root on Debian is needed anyway.
pub(crate) fn prepare(packages: &[&'static str]) -> Readiness {
    if !is_root() {
        return lacking("only root on Linux can make network namespaces");
    }
    if !is_debian() {
        return lacking(NOT_DEBIAN);
    }
    if let Err(problem) = install(&missing(packages)) {
        return lacking(&format!("{problem:#}"));
    }
    if !can_make_namespaces() {
        return lacking("network namespaces cannot be made here");
    }
    Readiness::Ready
}

/// The packages that are not installed.
pub(crate) fn missing(packages: &[&'static str]) -> Vec<&'static str> {
    packages.iter().copied().filter(|package| !is_installed(package)).collect()
}

/// True if packages can be installed, by this user on this system.
pub(crate) fn can_install() -> bool {
    is_root() && is_debian()
}

const NOT_DEBIAN: &str = "this is not Debian: there is no dpkg";

fn is_debian() -> bool {
    runs(Command::new("dpkg-query").arg("--version"))
}

fn lacking(why: &str) -> Readiness {
    Readiness::Lacking(why.to_owned())
}

/// True if `/proc/self` belongs to root. Without `/proc`, there are no namespaces either.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|output| output.stdout == b"installed")
}

fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    installs::permit(&names)?;
    if !is_root() {
        bail!("only root can install: {names}");
    }
    ensure!(is_debian(), NOT_DEBIAN);
    eprintln!("installing from Debian: {names}");
    let apt = |words: &[&str], environment: &[(&str, &str)]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").envs(environment.iter().copied());
        apt.args(words).stdin(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    // Lists may be old, or none; if new ones cannot be had, the old ones may still do.
    apt(&["update", "--quiet"], &[]);
    let words = [&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat();
    ensure!(install_quietly(|environment| apt(&words, environment))?, "cannot install: {names}");
    Ok(())
}

/// The bytes that apt would download for these words. None if it does not know: its lists may be missing.
pub(crate) fn download_bytes(words: &[&str]) -> Option<u64> {
    let mut apt = Command::new("apt-get");
    apt.args(["--print-uris", "--quiet=2", "--yes", "--no-install-recommends"]).args(words);
    let output = apt.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| listed_bytes(&String::from_utf8_lossy(&output.stdout)))
}

/// The sum of the third words: `'http://…' name.deb 1234 MD5Sum:…`.
fn listed_bytes(uris: &str) -> u64 {
    let lines = uris.lines().filter(|line| line.starts_with('\''));
    lines.filter_map(|line| line.split(' ').nth(2)?.parse::<u64>().ok()).sum()
}

/// False even for root in most containers.
fn can_make_namespaces() -> bool {
    let name = format!("forewarn-probe-{}", std::process::id());
    let made = runs(Command::new("ip").args(["netns", "add", &name]));
    made && runs(Command::new("ip").args(["netns", "del", &name]))
}

/// Checks that small disks can be mounted: by root, outside of most containers.
pub(crate) fn prepare_disks() -> Readiness {
    let place = std::env::temp_dir().join(format!("forewarn-probe-{}", std::process::id()));
    let mount = |place: &Path| runs(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(place));
    let mounted = std::fs::create_dir(&place).is_ok() && mount(&place);
    let gone = !mounted || runs(Command::new("umount").arg(&place));
    // If it stays, it is an empty directory among temporary files.
    drop(std::fs::remove_dir(&place));
    if mounted && gone {
        Readiness::Ready
    } else {
        lacking("small disks cannot be mounted here: only root can")
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn runs(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_package_is_not_installed() {
        assert!(!is_installed("no-package-of-this-name"));
    }

    #[test]
    fn a_download_is_the_sum_of_the_sizes() {
        let said = "Reading package lists...\n'http://a.example/b_1%3a2_all.deb' b_1%3a2_all.deb 1200 MD5Sum:00\n\
                    'http://a.example/c.deb' c.deb 34 SHA256:00\n";
        assert_eq!(listed_bytes(said), 1234);
    }

    #[test]
    fn programs_that_are_not_on_the_path_have_packages() {
        let programs = [("sh", "dash"), ("no-program-of-this-name", "a-package")];
        assert_eq!(missing_programs(&programs), ["a-package"]);
    }

    #[test]
    fn a_missing_program_does_not_run() {
        assert!(!runs(&mut Command::new("no-program-of-this-name")));
    }
}
