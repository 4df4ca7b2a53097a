//! A disk that is full or cannot be written: writes stop, nothing that was answered is lost, and they go on when they can.
//!
//! The disks here are small ones in memory, which only root can mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use forewarn_store::{AppendError, AuditQuery, Journal, OpenError, SyncMode};
use tempfile::TempDir;

use crate::durability::writer::{append, inspect, options};

const DISK_BYTES: usize = 1 << 20;
const PAGE: usize = 4_096;

/// A disk of a megabyte.
struct SmallDisk {
    place: TempDir,
}

impl SmallDisk {
    fn mount() -> Self {
        let place = tempfile::tempdir().unwrap();
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "tmpfs"])
            .arg(place.path()));
        Self { place }
    }

    fn remount(&self, how: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(self.place.path()));
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Leaves that many pages free.
    fn fill_but(&self, pages: usize) {
        let used: usize = files_in(&self.data()).iter().map(|path| pages_of(path)).sum();
        let filler = DISK_BYTES / PAGE - used - pages;
        fs::write(self.place.path().join("filler"), vec![1; filler * PAGE]).unwrap();
    }

    /// Frees the space of the filler. A child that another test is starting may still have the file open, and a removed
    /// file keeps its space until it is closed everywhere; a truncated one does not.
    fn make_room(&self) {
        fs::write(self.place.path().join("filler"), []).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.place.path()).status());
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn pages_of(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap().div_ceil(PAGE)
}

/// promise: D3
#[test]
#[ignore = "it needs root"]
fn a_full_disk_stops_writes_and_loses_nothing() {
    let mut refused_to_open = 0;
    for pages in 0..48 {
        let disk = SmallDisk::mount();
        let (journal, _) = Journal::open(&disk.data(), &options(SyncMode::EachCommit)).unwrap();
        (1..=10).for_each(|number| append(&journal, number..=number).unwrap());
        // A reader waits until the entries are filed: nothing grows while the disk is filled.
        journal.audit_log_reader().read(AuditQuery::default()).unwrap();
        disk.fill_but(pages);
        let mut acked = 10;
        let problem = loop {
            match append(&journal, acked + 1..=acked + 1) {
                Ok(()) => acked += 1,
                Err(problem) => break problem,
            }
            assert!(acked < 5_000, "the disk does not get full");
        };
        assert_eq!(problem, AppendError::Full, "{pages}");
        assert_eq!(append(&journal, acked + 1..=acked + 1), Err(AppendError::Full), "nothing is tried again");
        drop(journal);
        // While there is no room it may be that not even what is there can be tidied up.
        match Journal::open(&disk.data(), &options(SyncMode::EachCommit)) {
            Ok((journal, _)) => assert!(journal.length() >= acked),
            Err(OpenError::Full(_)) => refused_to_open += 1,
            Err(problem) => panic!("{pages}: {problem}"),
        }
        disk.make_room();
        inspect(&disk.data(), acked).unwrap_or_else(|problem| panic!("{pages}: {problem}"));
    }
    eprintln!("48 full disks, {refused_to_open} not opened before there was room");
}

/// promise: D3
#[test]
#[ignore = "it needs root"]
fn a_first_start_on_a_full_disk_is_started_again_when_there_is_room() {
    for pages in 0..12 {
        let disk = SmallDisk::mount();
        fs::create_dir(disk.data()).unwrap();
        disk.fill_but(pages);
        match Journal::open(&disk.data(), &options(SyncMode::EachCommit)) {
            Ok((journal, _)) => assert_eq!(journal.length(), 0),
            Err(OpenError::Full(_)) => {}
            Err(problem) => panic!("{pages}: {problem}"),
        }
        disk.make_room();
        assert_eq!(inspect(&disk.data(), 0), Ok(0), "{pages}");
    }
}

/// promise: D3
#[test]
#[ignore = "it needs root"]
fn a_disk_that_cannot_be_written_is_refused_and_left_as_it_is() {
    let disk = SmallDisk::mount();
    let (journal, _) = Journal::open(&disk.data(), &options(SyncMode::EachCommit)).unwrap();
    append(&journal, 1..=1).unwrap();
    drop(journal);
    disk.remount("ro");
    let problem = Journal::open(&disk.data(), &options(SyncMode::EachCommit)).unwrap_err();
    assert!(matches!(problem, OpenError::Io { .. }), "{problem}");
    assert!(problem.to_string().contains("hint: the directory must belong to the user"), "{problem}");
    disk.remount("rw");
    inspect(&disk.data(), 1).unwrap();
}
