//! Programs that run for hooks, written down beside the memory of the agent.
//!
//! An agent that dies leaves them running. The next life ends those that are left before it does anything: what is run again must not
//! meet what was run before. Each has a word of its own in its environment, which is written down before it is started and crossed
//! out when it has ended; whoever still has a word that is not crossed out was left, whatever its number. What a hook has left
//! running when it ended, it has meant to.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forewarn_processes::Mark;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::bounds::GRACE;
use crate::{clock, os};

/// The variable that has the word.
const VARIABLE: &str = "FOREWARN_RUN";

/// Entries that are looked at.
const ENTRIES_MAX: usize = 1_000;

/// How often it is looked whether somebody has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A directory with a file for each program that runs.
#[derive(Clone, Debug)]
pub(super) struct Register(PathBuf);

/// A program that is written down for as long as this lives.
#[derive(Debug)]
pub(super) struct Entry {
    /// The file that names it; `None` if it could not be written.
    path: Option<PathBuf>,
    word: String,
}

impl Entry {
    /// What the program gets in its environment.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.word)
    }

    /// The mark of every process that the program starts.
    pub(super) fn mark(&self) -> Mark {
        Mark { name: VARIABLE, value: self.word.clone() }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that stays names a word that no process has.
            fs::remove_file(path).ok();
        }
    }
}

impl Register {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Writes a program down. If that cannot be done, the program runs all the same, with its word.
    pub(super) fn enter(&self) -> Entry {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let word = format!("{}-{}-{count}", clock::wall().millis(), std::process::id());
        let path = self.0.join(&word);
        let written = fs::create_dir_all(&self.0).and_then(|()| fs::write(&path, ""));
        Entry { path: written.is_ok().then_some(path), word }
    }

    /// Ends what an agent before this one has left running; gives how many processes there were.
    pub(super) async fn end_all(&self) -> usize {
        let Ok(listing) = fs::read_dir(&self.0) else { return 0 };
        let names =
            listing.flatten().take(ENTRIES_MAX).filter_map(|entry| entry.file_name().into_string().ok());
        let words: Vec<_> = names.collect();
        if words.is_empty() {
            return 0;
        }
        let mut left = os::with_variable(VARIABLE, &words);
        let count = left.len();
        let begin = Instant::now();
        tell(&left, Signal::TERM);
        while !left.is_empty() && begin.elapsed() < GRACE {
            sleep(LOOK_EVERY).await;
            left.retain(|process| !process.has_gone());
        }
        // Those that do not want to, and those that they have started meanwhile.
        tell(&os::with_variable(VARIABLE, &words), Signal::KILL);
        words.iter().for_each(|word| drop(fs::remove_file(self.0.join(word))));
        count
    }
}

fn tell(processes: &[os::Process], signal: Signal) {
    // Who has ended by now needs no telling.
    processes.iter().for_each(|process| drop(process.signal(signal)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper(entry: &Entry) -> Child {
        Command::new("/bin/sleep").arg("600").envs([entry.variable()]).spawn().unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_left_running_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().join("running"));
        let entry = register.enter();
        let mut child = sleeper(&entry);
        // As if the agent had died: nobody crosses it out.
        std::mem::forget(entry);
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        assert_eq!(register.end_all().await, 1);
        assert!(!reaper.join().unwrap().success());
        assert_eq!(register.end_all().await, 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_meant_to_stay_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().to_owned());
        let entry = register.enter();
        let mut child = sleeper(&entry);
        drop(entry);
        std::mem::forget(register.enter());
        assert_eq!(register.end_all().await, 0);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
