//! Data of the kernel: its release and load, and CPU time, memory and children of a process.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// The unit of CPU times in `/proc/…/stat`, which programs can rely on.
const TICK: Duration = Duration::from_millis(10);

/// CPU time in nanoseconds, by thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::bench) struct Busy(BTreeMap<u32, u64>);

impl Busy {
    /// Reads the CPU time of all threads of the processes.
    pub(in crate::bench) fn read(processes: &[u32]) -> Result<Self> {
        let mut busy = Self::default();
        for process in processes {
            let directory = format!("/proc/{process}/task");
            for thread in numbers_in(Path::new(&directory))? {
                // A thread may end meanwhile.
                let text =
                    std::fs::read_to_string(format!("{directory}/{thread}/schedstat")).unwrap_or_default();
                busy.0.extend(parse_busy(&text).map(|nanoseconds| (thread, nanoseconds)));
            }
        }
        anyhow::ensure!(!busy.0.is_empty(), "the kernel does not count time: /proc/…/schedstat");
        Ok(busy)
    }

    /// The time added since `before`, without threads that have ended.
    pub(in crate::bench) fn since(&self, before: &Self) -> u64 {
        let added = self.0.iter().map(|(thread, nanoseconds)| {
            nanoseconds.saturating_sub(before.0.get(thread).copied().unwrap_or_default())
        });
        added.sum()
    }
}

/// CPU time of a process in user mode and in the kernel, also of its threads that have ended.
pub(in crate::bench) fn cpu_time(process: u32) -> Result<Duration> {
    let file = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&file).with_context(|| format!("cannot read: {file}"))?;
    parse_cpu_time(&stat).with_context(|| format!("no CPU time in: {file}"))
}

/// The fields `utime` and `stime`. The name before them, in parentheses, may contain anything.
fn parse_cpu_time(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(TICK * user + TICK * system)
}

/// Its name and version.
pub(in crate::bench) fn release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// The load average of the last minute.
pub(in crate::bench) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().unwrap_or("unknown").to_owned()
}

/// The first of three numbers: CPU time, waiting time, number of time slices.
fn parse_busy(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

/// The process and its children.
pub(in crate::bench) fn family(process: u32) -> Result<Vec<u32>> {
    let mut family = vec![process];
    for other in numbers_in(Path::new("/proc"))? {
        let status = std::fs::read_to_string(format!("/proc/{other}/status")).unwrap_or_default();
        if field(&status, "PPid:") == Some(u64::from(process)) {
            family.push(other);
        }
    }
    Ok(family)
}

pub(in crate::bench) fn resident_bytes(process: u32) -> Result<u64> {
    let file = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&file).with_context(|| format!("cannot read: {file}"))?;
    let kibibytes = field(&status, "VmRSS:").with_context(|| format!("no resident size in: {file}"))?;
    Ok(kibibytes * 1_024)
}

/// The number after a name in the status of a process.
fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

/// The entries of a directory that are numbers.
fn numbers_in(directory: &Path) -> Result<Vec<u32>> {
    let entries = directory.read_dir().with_context(|| format!("cannot read: {}", directory.display()))?;
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_the_first_number() {
        assert_eq!(parse_busy("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(parse_busy(""), None);
    }

    #[test]
    fn the_time_of_a_process_has_two_parts() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 13 14";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_millis(420)));
        assert_eq!(parse_cpu_time("7 (a) S 1 2"), None);
        assert!(cpu_time(std::process::id()).is_ok());
    }

    #[test]
    fn time_is_added_up_over_threads_that_are_still_there() {
        let before = Busy(BTreeMap::from([(1, 100), (2, 50)]));
        let after = Busy(BTreeMap::from([(1, 130), (3, 7)]));
        assert_eq!(after.since(&before), 37);
    }

    #[test]
    fn a_status_has_numbers_behind_names() {
        let status = "Name:\tx\nPPid:\t17\nVmRSS:\t    2048 kB\n";
        assert_eq!((field(status, "PPid:"), field(status, "VmRSS:")), (Some(17), Some(2_048)));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_has_memory_and_a_family() {
        let this = std::process::id();
        assert!(resident_bytes(this).unwrap() > 0);
        assert!(family(this).unwrap().contains(&this));
    }
}
