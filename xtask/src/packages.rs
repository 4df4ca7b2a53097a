//! Debian packages of the programs that tests run, installed where that is possible.
//!
//! Only root can install them and create the network namespaces in which they run. Without root or Debian, the step is
//! skipped with the reason.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

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
pub(crate) const PROGRAMS: [(&str, &str); 6] = [
    ("curl", "curl"),
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

/// Finds programs on the path, or installs their packages.
pub(crate) fn prepare_programs(programs: &[(&str, &str)]) -> Readiness {
    let is_missing = |program: &str| !is_on_path(program);
    let missing: Vec<_> = programs.iter().filter(|(program, _)| is_missing(program)).collect();
    if missing.is_empty() {
        return Readiness::Ready;
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    if is_root() && runs(Command::new("dpkg-query").arg("--version")) && install(&packages) {
        return Readiness::Ready;
    }
    lacking(&format!("not on the path, and cannot be installed: {}", packages.join(" ")))
}

/// Python with `venv`, which Debian has in a separate package.
pub(crate) fn prepare_python() -> Readiness {
    let can_make = || runs(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if can_make() {
        return Readiness::Ready;
    }
    if is_root()
        && runs(Command::new("dpkg-query").arg("--version"))
        && install(&["python3-venv"])
        && can_make()
    {
        return Readiness::Ready;
    }
    lacking("no python3 with venv, and it cannot be installed: python3-venv")
}

/// True if npm is installed.
pub(crate) fn has_npm() -> bool {
    runs(Command::new("npm").arg("--version"))
}

/// Finds packages, or installs them.
pub(crate) fn prepare(packages: &[&str]) -> Readiness {
    if !is_root() {
        return lacking("only root on Linux can make network namespaces");
    }
    if !runs(Command::new("dpkg-query").arg("--version")) {
        return lacking("this is not Debian: there is no dpkg");
    }
    let missing: Vec<_> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if !missing.is_empty() && !install(&missing) {
        return lacking(&format!("cannot install: {}", missing.join(" ")));
    }
    if !can_make_namespaces() {
        return lacking("network namespaces cannot be made here");
    }
    Readiness::Ready
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

fn install(packages: &[&str]) -> bool {
    eprintln!("installing from Debian: {}", packages.join(" "));
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(words).stdin(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    // Lists may be old, or none; if new ones cannot be had, the old ones may still do.
    apt(&["update", "--quiet"]);
    apt(&[&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat())
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
    fn a_missing_program_does_not_run() {
        assert!(!runs(&mut Command::new("no-program-of-this-name")));
    }
}
