//! A disk as it may be after a power cut: what was synced is there, of the rest any part.
//!
//! Names are kept in order, as a file system with a journal keeps them, but they are durable only when their directory was
//! synced: a sync of the file does not do it. Bytes are kept by sectors, in any combination.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::durability::trace::Step;
use forewarn_testkit::Random;

const SECTOR: usize = 512;

/// What happens to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All of it is lost.
    Lost,
    /// A part is there, from the beginning.
    Prefix,
    /// Any sectors are there.
    Torn,
    /// All of it is there.
    Kept,
}

pub(crate) const CUTS: [Cut; 4] = [Cut::Lost, Cut::Prefix, Cut::Torn, Cut::Kept];

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    names: BTreeMap<PathBuf, usize>,
    /// What programs see.
    seen: BTreeMap<PathBuf, usize>,
    /// What is durable of each file.
    files: Vec<Vec<u8>>,
    pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
enum Pending {
    Data { file: usize, offset: usize, data: Vec<u8> },
    Length { file: usize, length: usize },
    Link { path: PathBuf, file: usize },
    Unlink { path: PathBuf },
}

/// In memory where there is such a place: what is durable is modelled here, not tried out.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

impl Disk {
    /// A disk that holds what is in a directory, durably.
    pub(crate) fn of(directory: &Path) -> Self {
        let mut disk = Self::default();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            disk.files.push(fs::read(&path).unwrap());
            disk.names.insert(path, disk.files.len() - 1);
        }
        disk.seen = disk.names.clone();
        disk
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Open { path, truncate } => {
                if !self.seen.contains_key(path) {
                    self.files.push(Vec::new());
                    let file = self.files.len() - 1;
                    self.seen.insert(path.clone(), file);
                    self.pending.push(Pending::Link { path: path.clone(), file });
                }
                if *truncate {
                    self.pending.push(Pending::Length { file: self.seen[path], length: 0 });
                }
            }
            Step::Write { path, offset, data } => {
                // A file that was renamed since it was opened is found by its new name: strace tells that one.
                let file = self.seen[path];
                self.pending.push(Pending::Data { file, offset: *offset, data: data.clone() });
            }
            Step::Truncate { path, length } => {
                self.pending.push(Pending::Length { file: self.seen[path], length: *length });
            }
            Step::Sync { path } => self.sync(path),
            Step::Rename { from, to } => {
                let file = self.seen.remove(from).unwrap();
                self.seen.insert(to.clone(), file);
                // Both or none: a name that was given away and not received would be a file system that loses files.
                self.pending.push(Pending::Link { path: to.clone(), file });
                self.pending.push(Pending::Unlink { path: from.clone() });
            }
            Step::Remove { path } => {
                self.seen.remove(path);
                self.pending.push(Pending::Unlink { path: path.clone() });
            }
            Step::Ack(_) => {}
        }
    }

    fn sync(&mut self, path: &Path) {
        let synced = self.seen.get(path).copied();
        let pending = std::mem::take(&mut self.pending);
        for one in pending {
            let durable = match &one {
                Pending::Data { file, .. } | Pending::Length { file, .. } => synced == Some(*file),
                // What is no file is the directory.
                Pending::Link { .. } | Pending::Unlink { .. } => synced.is_none(),
            };
            if durable { self.keep(&one) } else { self.pending.push(one) }
        }
    }

    fn keep(&mut self, pending: &Pending) {
        match pending {
            Pending::Data { file, offset, data } => {
                let content = &mut self.files[*file];
                content.resize(content.len().max(offset + data.len()), 0);
                content[*offset..offset + data.len()].copy_from_slice(data);
            }
            Pending::Length { file, length } => self.files[*file].resize(*length, 0),
            Pending::Link { path, file } => drop(self.names.insert(path.clone(), *file)),
            Pending::Unlink { path } => drop(self.names.remove(path)),
        }
    }

    /// The power is cut.
    pub(crate) fn cut(mut self, cut: Cut, random: &mut Random) -> Self {
        let pending = std::mem::take(&mut self.pending);
        let is_name = |one: &Pending| matches!(one, Pending::Link { .. } | Pending::Unlink { .. });
        let names_kept = match cut {
            Cut::Kept => usize::MAX,
            Cut::Lost | Cut::Prefix | Cut::Torn => {
                random.index(pending.iter().filter(|one| is_name(one)).count() + 1)
            }
        };
        let prefix = random.index(pending.len() + 1);
        let mut names = 0;
        for (number, one) in pending.iter().enumerate() {
            if is_name(one) {
                names += 1;
                if names <= names_kept {
                    self.keep(one);
                }
                continue;
            }
            match cut {
                Cut::Lost => {}
                Cut::Prefix if number >= prefix => {}
                Cut::Prefix | Cut::Kept => self.keep(one),
                Cut::Torn => self.keep_sectors(one, random),
            }
        }
        self
    }

    fn keep_sectors(&mut self, one: &Pending, random: &mut Random) {
        let Pending::Data { file, offset, data } = one else {
            if random.coin() {
                self.keep(one);
            }
            return;
        };
        let mut begin = 0;
        while begin < data.len() {
            let end = (begin + SECTOR - (offset + begin) % SECTOR).min(data.len());
            if random.coin() {
                let data = data[begin..end].to_vec();
                self.keep(&Pending::Data { file: *file, offset: offset + begin, data });
            } else if random.coin() {
                // The file has grown, and nothing was written there.
                let content = &mut self.files[*file];
                content.resize(content.len().max(offset + end), 0);
            }
            begin = end;
        }
    }

    /// Puts the disk into an empty directory; names that were in `from` are there now.
    pub(crate) fn write_to(&self, from: &Path, to: &Path) {
        for (path, file) in &self.names {
            fs::write(to.join(path.strip_prefix(from).unwrap()), &self.files[*file]).unwrap();
        }
    }
}
