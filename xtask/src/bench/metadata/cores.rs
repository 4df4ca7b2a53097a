//! The cores of programs: one core each, if there are two, or any core.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The first, the last and the number of the usable cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) struct Cores {
    first: u32,
    last: u32,
    count: u32,
}

/// The core of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum CpuPlacement {
    Core(u32),
    /// Any of so many cores.
    Anywhere {
        cores: u32,
    },
}

/// The cores that this process may use. Needs `taskset` to use them one by one.
pub(in crate::bench) fn allowed() -> Result<Cores> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read: /proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cores = list.and_then(|list| Cores::parse(list.trim())).context("the kernel does not list cores")?;
    let mut version = Command::new("taskset");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = version.status().is_ok_and(|status| status.success());
    ensure!(is_there, "taskset is missing\n  hint: install util-linux");
    Ok(cores)
}

impl Cores {
    /// Reads `0-3,8`.
    pub(in crate::bench) fn parse(list: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let count = last.checked_sub(first)? + 1;
            found = Some(match found {
                None => Self { first, last, count },
                Some(before) => Self { first: before.first, last, count: before.count + count },
            });
        }
        found
    }

    pub(in crate::bench) fn count(self) -> u32 {
        self.count
    }

    /// A core for the servers and one for the program that polls; the same, if there is only one.
    pub(in crate::bench) fn apart(self) -> (CpuPlacement, CpuPlacement) {
        (CpuPlacement::Core(self.first), CpuPlacement::Core(self.last))
    }
}

impl CpuPlacement {
    /// The number of threads or workers of a server.
    pub(in crate::bench) fn threads(self) -> u32 {
        match self {
            Self::Core(_) => 1,
            Self::Anywhere { cores } => cores,
        }
    }

    /// A command that runs there. `taskset` becomes the program, so the process id stays the same.
    pub(in crate::bench) fn command(self, program: &Path) -> Command {
        match self {
            Self::Core(core) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &core.to_string()]).arg(program);
                command
            }
            Self::Anywhere { .. } => Command::new(program),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_by_ranges() {
        let cores = |first, last, count| Some(Cores { first, last, count });
        assert_eq!(Cores::parse("0-3"), cores(0, 3, 4));
        assert_eq!(Cores::parse("2,4-5,9"), cores(2, 9, 4));
        assert_eq!(Cores::parse("7"), cores(7, 7, 1));
        for wrong in ["", "a", "3-1", "1-"] {
            assert_eq!(Cores::parse(wrong), None, "{wrong}");
        }
    }
}
