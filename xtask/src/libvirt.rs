//! `cargo xtask libvirt`: the virsh driver with a real libvirtd and guests on QEMU without KVM.
//!
//! The packages are not installed: their files are unpacked into the user's cache, and the tests put them over `/usr` and
//! `/etc` in a mount namespace of their own. So nothing starts, no package of the computer is replaced, and a libvirtd that
//! runs is not touched.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::installs;
use crate::packages::{self, Readiness};
use crate::steps::{Outcome, cargo};
use crate::tools::{PROGRAM_TESTS, cache_directory, run_ignored};

/// Programs that make namespaces and run the driver.
pub(crate) const INSTALLED: [&str; 3] = ["iproute2", "python3", "util-linux"];

/// Packages to unpack, with all packages that they need and that are not installed.
const UNPACKED: [&str; 5] =
    ["busybox-static", "libvirt-clients", "libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86"];

/// The package whose dependency is the newest kernel for guests.
const KERNEL: &str = "linux-image-cloud-amd64";

/// The file that lists the unpacked packages.
const LIST: &str = "forewarn-packages";

pub(crate) fn command() -> Result<Outcome> {
    if std::env::consts::ARCH != "x86_64" {
        return Ok(Outcome::Skipped("guests have a kernel for amd64".to_owned()));
    }
    if let Readiness::Lacking(why) = packages::prepare(&INSTALLED) {
        return Ok(Outcome::Skipped(why));
    }
    let root = match unpack() {
        Ok(root) => root,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    run_ignored(cargo().env("FOREWARN_LIBVIRT_ROOT", root), &PROGRAM_TESTS, &["drivers::libvirt::"])
}

/// The packages to unpack, unless all are. None if apt does not know them.
pub(crate) fn missing() -> Option<Vec<String>> {
    let plan = plan().ok()?;
    let is_complete = root().is_ok_and(|root| is_complete(&root, &plan));
    Some(if is_complete { Vec::new() } else { plan })
}

fn root() -> Result<PathBuf> {
    Ok(cache_directory()?.join("forewarn/tools/libvirt"))
}

fn is_complete(root: &Path, plan: &[String]) -> bool {
    std::fs::read_to_string(root.join(LIST)).is_ok_and(|list| list.lines().eq(plan.iter()))
}

/// The directory with the files of all packages.
fn unpack() -> Result<PathBuf> {
    let root = root()?;
    let plan = match plan() {
        Ok(plan) if is_complete(&root, &plan) => return Ok(root),
        Ok(plan) => plan,
        // Lists of packages may be missing, or too old.
        Err(_) => {
            installs::permit("libvirt")?;
            run(Command::new("apt-get").arg("update"))?;
            plan()?
        }
    };
    installs::permit("libvirt")?;
    eprintln!("unpacking {} packages into {}", plan.len(), root.display());
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    let archives = root.join("archives");
    std::fs::create_dir_all(&archives)?;
    let mut download = Command::new("apt-get");
    download.arg("download").args(&plan).current_dir(&archives);
    if run(&mut download).is_err() {
        run(Command::new("apt-get").arg("update"))?;
        run(&mut download)?;
    }
    for archive in archives.read_dir()? {
        run(Command::new("dpkg-deb").arg("--extract").arg(archive?.path()).arg(&root))?;
    }
    std::fs::remove_dir_all(&archives)?;
    // Where everything is installed, only the kernel was unpacked.
    for part in ["etc", "usr"] {
        std::fs::create_dir_all(root.join(part))?;
    }
    std::fs::write(root.join(LIST), plan.join("\n"))?;
    Ok(root)
}

/// The packages to unpack, as `NAME=VERSION`: those that an installation would add.
fn plan() -> Result<Vec<String>> {
    let mut simulate = Command::new("apt-get");
    let said = output(simulate.args(["install", "--simulate", "--no-install-recommends"]).args(UNPACKED))?;
    let mut plan = planned(&said);
    let depends = output(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let kernel = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    plan.push(kernel.with_context(|| format!("not in the lists of apt: {KERNEL}"))?.to_owned());
    Ok(plan)
}

/// Lines such as `Inst NAME [OLD] (VERSION ORIGIN [ARCH])`.
fn planned(said: &str) -> Vec<String> {
    let package = |line: &str| {
        let name = line.strip_prefix("Inst ")?.split(' ').next()?;
        let version = line.split_once('(')?.1.split(' ').next()?;
        Some(format!("{name}={version}"))
    };
    said.lines().filter_map(package).collect()
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.env("LC_ALL", "C").stderr(Stdio::null()).output().context("this is not Debian")?;
    ensure!(output.status.success(), "{} failed", display(command));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("this is not Debian")?;
    if !status.success() {
        bail!("{} failed", display(command));
    }
    Ok(())
}

fn display(command: &Command) -> String {
    let name = Path::new(command.get_program()).display().to_string();
    let first = command.get_args().next().map(|word| word.to_string_lossy().into_owned());
    format!("{name} {}", first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_new_and_replaced_packages_and_no_removed_ones() {
        let said = "Reading package lists...\nRemv qemu-utils [1:10.0.2]\nInst dmidecode (3.4-1 Debian:12.15/oldstable [amd64])\n\
            Inst libvirt0 [8.0-1] (9.0.0-4 Debian:12 [amd64])\nConf dmidecode (3.4-1 Debian:12.15/oldstable [amd64])\n";
        assert_eq!(planned(said), ["dmidecode=3.4-1", "libvirt0=9.0.0-4"]);
    }
}
