//! A program and all processes that it has started.
//!
//! A process group is not enough: a process that calls `setsid` leaves it. Here a process belongs to a program
//!
//! - if it is in the program's process group,
//! - if its parent, or the parent of that one, is the program, or
//! - if it has the program's [`Mark`]: a variable in its environment, which every process inherits from its parent. The
//!   mark finds processes whose parent has ended.
//!
//! It needs no privileges. Deliberately absent: processes that were started by another program on request
//! (`systemd-run`, `at`), and those that have both lost their parent and cleared their environment; only a cgroup would
//! find them.
//!
//! This is for Linux. On another system only the process group is signalled.

mod table;

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use table::{Entry, ProcessTable};
pub use table::{Stat, read_proc};

/// Scans of all processes until killing is given up: a program may start processes faster than they are killed.
const KILL_ROUNDS_MAX: usize = 20;

/// A variable with a value that no other program has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Name of the variable.
    pub name: &'static str,
    pub value: String,
}

/// A program and the processes that it has started. Those that run when this is dropped are killed.
#[derive(Debug)]
pub struct ProcessTree {
    root: Option<Root>,
}

#[derive(Debug)]
struct Root {
    pid: Pid,
    /// Start time of the program; distinguishes it from another process with the same id.
    start: Option<u64>,
    mark: Option<Mark>,
}

impl ProcessTree {
    /// The tree of a program that was started as the first of its own process group, with the mark in its environment.
    /// Without an id the program has ended already, and the tree is empty.
    #[must_use]
    pub fn of(id: Option<u32>, mark: Option<Mark>) -> Self {
        let pid = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let root = pid.map(|pid| Root { pid, start: table::start_of(pid), mark });
        Self { root }
    }

    /// Asks all of its processes to end.
    pub fn terminate(&self) {
        if let Some(root) = &self.root {
            root.signal(Signal::TERM);
        }
    }

    /// Kills all of its processes, and those that they start meanwhile.
    pub fn kill(&self) {
        let Some(root) = &self.root else { return };
        // A process with a pending kill cannot fork again, but stays in the table until the kernel is done with it.
        let mut killed = BTreeSet::new();
        for _ in 0..KILL_ROUNDS_MAX {
            let Some(members) = root.members() else { return root.signal_group(Signal::KILL) };
            let fresh =
                members.into_iter().filter(|member| !killed.contains(&(member.pid, member.stat.start)));
            let fresh: Vec<_> = fresh.collect();
            if fresh.is_empty() {
                return;
            }
            for member in fresh {
                if member.signal(Signal::KILL) {
                    killed.insert((member.pid, member.stat.start));
                }
            }
        }
    }

    /// Returns true if none of its processes runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.as_ref().is_none_or(Root::is_empty)
    }

    /// Releases all of its processes: the program has ended by itself, and left them running on purpose.
    pub fn leave_alone(&mut self) {
        self.root = None;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Root {
    /// Sends a signal to every process.
    fn signal(&self, signal: Signal) {
        match self.members() {
            Some(members) => members.iter().for_each(|member| {
                member.signal(signal);
            }),
            None => self.signal_group(signal),
        }
    }

    /// Sends a signal to the process group. If no process is left in it, the signal reaches none.
    fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal).ok();
    }

    fn is_empty(&self) -> bool {
        self.members()
            .map_or_else(|| test_kill_process_group(self.pid).is_err(), |members| members.is_empty())
    }

    /// Every process that belongs to the program and has not ended. `None` if processes cannot be listed: the system is
    /// another one, or no file descriptor is left.
    fn members(&self) -> Option<Vec<Entry>> {
        let table = ProcessTable::read();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        table.get(own)?;
        let pid = self.pid.as_raw_nonzero().get();
        // The number may belong to another process by now. A number that names a group with processes in it is not
        // given away.
        let is_ours = |entry: &Entry| entry.pid == pid && Some(entry.stat.start) == self.start;
        let is_foreign = table.get(pid).is_some_and(|entry| !is_ours(entry));
        let is_marked = |entry: &Entry| {
            // A process that began before the program is none of its own: its environment need not be read.
            self.start.is_none_or(|start| entry.stat.start >= start)
                && self.mark.as_ref().is_some_and(|mark| entry.has(mark))
        };
        let mut found: BTreeSet<i32> = BTreeSet::new();
        for entry in table.entries() {
            if is_ours(entry) || (!is_foreign && entry.stat.group == pid) || is_marked(entry) {
                found.insert(entry.pid);
            }
        }
        table.add_descendants(&mut found);
        Some(table.into_entries().filter(|entry| found.contains(&entry.pid) && entry.pid != own).collect())
    }
}
