//! A register of the programs that run for hooks, stored beside the memory of the agent.
//!
//! A crashed agent leaves its programs running. The next one kills them before it does anything else, because hooks
//! that run again must not overlap. Each program has a unique id in its environment. The id is registered before the
//! start and removed after the exit; every process with a registered id is a leftover. Processes that a hook leaves
//! running on purpose have no registered id.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forewarn_processes::Mark;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::time_limit::GRACE;
use crate::{clock, os};

/// The variable with the id.
const VARIABLE: &str = "FOREWARN_RUN";

/// Limit of entries that are read.
const ENTRIES_MAX: usize = 1_000;

/// Interval of checks for the exit of a process.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// A directory with one file per running program.
#[derive(Clone, Debug)]
pub(super) struct Register(PathBuf);

/// The entry of a running program. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct RegisterEntry {
    /// The file of the entry; `None` if it could not be written.
    path: Option<PathBuf>,
    id: String,
}

impl RegisterEntry {
    /// The environment variable of the program.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.id)
    }

    /// The mark of every process that the program starts.
    pub(super) fn mark(&self) -> Mark {
        Mark { name: VARIABLE, value: self.id.clone() }
    }
}

impl Drop for RegisterEntry {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be removed has an id that no process uses.
            fs::remove_file(path).ok();
        }
    }
}

impl Register {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Registers a program. If the entry cannot be written, the program runs all the same.
    pub(super) fn enter(&self) -> RegisterEntry {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{}-{count}", clock::wall().millis(), std::process::id());
        let path = self.0.join(&id);
        let written = fs::create_dir_all(&self.0).and_then(|()| fs::write(&path, ""));
        RegisterEntry { path: written.is_ok().then_some(path), id }
    }

    /// Kills programs of a previous agent; returns the number of processes.
    pub(super) async fn kill_all(&self) -> usize {
        let Ok(listing) = fs::read_dir(&self.0) else { return 0 };
        let names =
            listing.flatten().take(ENTRIES_MAX).filter_map(|entry| entry.file_name().into_string().ok());
        let ids: Vec<_> = names.collect();
        if ids.is_empty() {
            return 0;
        }
        let mut left = os::with_variable(VARIABLE, &ids);
        let count = left.len();
        let begin = Instant::now();
        send_signal(&left, Signal::TERM);
        while !left.is_empty() && begin.elapsed() < GRACE {
            sleep(CHECK_EVERY).await;
            left.retain(|process| !process.has_exited());
        }
        // Processes that ignore SIGTERM, and those started meanwhile.
        send_signal(&os::with_variable(VARIABLE, &ids), Signal::KILL);
        ids.iter().for_each(|id| drop(fs::remove_file(self.0.join(id))));
        count
    }
}

fn send_signal(processes: &[os::Process], signal: Signal) {
    // Processes that have exited meanwhile are ignored.
    processes.iter().for_each(|process| drop(process.signal(signal)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper(entry: &RegisterEntry) -> Child {
        Command::new("/bin/sleep").arg("600").envs([entry.variable()]).spawn().unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_left_running_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().join("running"));
        let entry = register.enter();
        let mut child = sleeper(&entry);
        // As after a crash: the entry is not removed.
        std::mem::forget(entry);
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        assert_eq!(register.kill_all().await, 1);
        assert!(!reaper.join().unwrap().success());
        assert_eq!(register.kill_all().await, 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_meant_to_stay_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().to_owned());
        let entry = register.enter();
        let mut child = sleeper(&entry);
        drop(entry);
        std::mem::forget(register.enter());
        assert_eq!(register.kill_all().await, 0);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
