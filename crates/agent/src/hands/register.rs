//! Programs that run for hooks, written down beside the memory of the agent.
//!
//! An agent that dies leaves them running. The next life ends those that are left before it does anything: what is run again must not
//! meet what was run before. A number alone may belong to another process by then, so that when it began and in which boot of the
//! machine is written down as well. Nothing here survives a restart of the machine, and nothing is forced to disk.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::time::{Instant, sleep};

use super::bounds::GRACE;
use crate::os::{Group, Process, boot};

/// Entries that are looked at.
const ENTRIES_MAX: usize = 1_000;

/// How often it is looked whether somebody has ended.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// A directory with a file for each program that runs.
#[derive(Clone, Debug)]
pub(super) struct Register(PathBuf);

/// A program that is written down for as long as this lives.
#[derive(Debug)]
pub(super) struct Entry(PathBuf);

impl Drop for Entry {
    fn drop(&mut self) {
        // What stays is the number of a process that is no more.
        fs::remove_file(&self.0).ok();
    }
}

impl Register {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Writes a program down. If that cannot be done, it runs all the same.
    pub(super) fn enter(&self, pid: u32) -> Option<Entry> {
        let pid = i32::try_from(pid).ok()?;
        let process = Process::find(pid).ok().flatten()?;
        let text = format!("{} {}\n", process.identity.start, boot()?);
        fs::create_dir_all(&self.0).ok()?;
        let path = self.0.join(pid.to_string());
        fs::write(&path, text).ok()?;
        Some(Entry(path))
    }

    /// Ends what an agent before this one has left running; gives how many there were.
    pub(super) async fn end_all(&self) -> usize {
        let Ok(listing) = fs::read_dir(&self.0) else { return 0 };
        let paths: Vec<_> = listing.flatten().take(ENTRIES_MAX).map(|entry| entry.path()).collect();
        let left: Vec<_> = paths.iter().filter_map(|path| read(path)).collect();
        let mut groups: Vec<_> = left.iter().map(Group::led_by).collect();
        let count = groups.len();
        groups.iter().for_each(Group::terminate);
        let begin = Instant::now();
        while !groups.is_empty() && begin.elapsed() < GRACE {
            groups.iter_mut().filter(|group| group.is_empty()).for_each(Group::leave_alone);
            groups.retain(|group| !group.is_empty());
            sleep(LOOK_EVERY).await;
        }
        // Those that are left are killed with their groups.
        drop(groups);
        paths.iter().for_each(|path| drop(fs::remove_file(path)));
        count
    }
}

/// The process that an entry is about, if it is still the same.
fn read(path: &Path) -> Option<Process> {
    let pid = path.file_name()?.to_str()?.parse().ok()?;
    let text = fs::read_to_string(path).ok()?;
    let (start, then) = text.trim().split_once(' ')?;
    let process = Process::find(pid).ok().flatten()?;
    let is_same = boot()? == then && start.parse() == Ok(process.identity.start);
    is_same.then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("600").process_group(0).spawn().unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_left_running_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().join("running"));
        let mut child = sleeper();
        // As if the agent had died: nobody takes the entry away.
        std::mem::forget(register.enter(child.id()).unwrap());
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        assert_eq!(register.end_all().await, 1);
        assert!(!reaper.join().unwrap().success());
        assert_eq!(register.end_all().await, 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn another_process_of_the_same_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().to_owned());
        let mut child = sleeper();
        let path = folder.path().join(child.id().to_string());
        fs::write(&path, format!("1 {}\n", boot().unwrap())).unwrap();
        fs::write(folder.path().join("nonsense"), "x").unwrap();
        assert_eq!(register.end_all().await, 0);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_entry_goes_with_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::new(folder.path().to_owned());
        let entry = register.enter(std::process::id()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(entry);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
