//! The processes of this machine, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};

use rustix::process::{Pid, Signal};

use crate::Mark;

/// Bytes that are read of a file in `/proc`.
const PROC_BYTES_MAX: u64 = 64 * 1024;

/// The line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// True if the process has ended and its parent has not reaped it.
    pub has_ended: bool,
    /// Number of its parent.
    pub parent: i32,
    /// Number of its process group.
    pub group: i32,
    /// Start time, in ticks since boot.
    pub start: u64,
}

impl Stat {
    /// Parses the line. The name of the process is in brackets and may contain anything, including brackets.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self { has_ended: matches!(state, "Z" | "X" | "x"), parent, group, start })
    }
}

/// Reads the beginning of a file in `/proc`, as text.
///
/// # Errors
/// The file cannot be read: the process may have ended.
pub fn read_proc(path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(PROC_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The start time of a process.
pub(crate) fn start_of(pid: Pid) -> Option<u64> {
    stat(pid.as_raw_nonzero().get()).map(|stat| stat.start)
}

fn stat(pid: i32) -> Option<Stat> {
    Stat::parse(&read_proc(&format!("/proc/{pid}/stat")).ok()?)
}

/// A process that runs.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) stat: Stat,
}

impl Entry {
    /// Returns true if the process was started with the mark. The environment of another user's process cannot be read.
    pub(crate) fn has(&self, mark: &Mark) -> bool {
        let environment = read_proc(&format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let mut variables = environment.split('\0').filter_map(|variable| variable.split_once('='));
        variables.any(|(name, value)| name == mark.name && value == mark.value)
    }

    /// Sends a signal to this process, and to no other that has its id by now. Returns whether it was sent.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // Compared after it is held: the handle never leads to another process.
        let is_same = stat(self.pid).is_some_and(|stat| stat.start == self.stat.start);
        is_same && pidfd_send_signal(&handle, signal).is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn signal(&self, _: Signal) -> bool {
        false
    }
}

/// All processes that run.
#[derive(Debug)]
pub(crate) struct ProcessTable(BTreeMap<i32, Entry>);

impl ProcessTable {
    pub(crate) fn read() -> Self {
        let listing = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = listing.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let entries = numbers.filter_map(|pid| Some((pid, Entry { pid, stat: stat(pid)? })));
        Self(entries.filter(|(_, entry)| !entry.stat.has_ended).collect())
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Entry> {
        self.0.get(&pid)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.0.into_values()
    }

    /// Adds the children of every process in the set, and their children.
    pub(crate) fn add_descendants(&self, found: &mut BTreeSet<i32>) {
        let mut children = BTreeMap::<i32, Vec<i32>>::new();
        for entry in self.entries() {
            children.entry(entry.stat.parent).or_default().push(entry.pid);
        }
        let mut open: Vec<i32> = found.iter().copied().collect();
        while let Some(parent) = open.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                if found.insert(*child) {
                    open.push(*child);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_contain_brackets() {
        let rest = "S 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8675309 1 2 3";
        let expected = Some(Stat { has_ended: false, parent: 1, group: 2, start: 8_675_309 });
        assert_eq!(Stat::parse(&format!("42 (sh) {rest}")), expected);
        assert_eq!(Stat::parse(&format!("42 (a) Z 1 (b) {rest}")), expected);
        assert!(Stat::parse(&format!("42 (sh) {}", rest.replacen('S', "Z", 1))).unwrap().has_ended);
        for broken in ["", "42", "42 (sh", "42 (sh)", "42 (sh) S 1 2", "42 (sh) S x 2 3"] {
            assert_eq!(Stat::parse(broken), None, "{broken}");
        }
    }

    /// promise: A4
    #[test]
    fn descendants_include_grandchildren() {
        let entry = |pid, parent| {
            let stat = Stat { has_ended: false, parent, group: 0, start: 0 };
            (pid, Entry { pid, stat })
        };
        // A process may have a lower number than its parent, and a broken table may have a circle in it.
        let table = ProcessTable([entry(9, 1), entry(3, 9), entry(7, 3), entry(5, 6), entry(6, 5)].into());
        let mut found = [9].into();
        table.add_descendants(&mut found);
        assert_eq!(found, [3, 7, 9].into());
    }
}
