//! The data directory: its lock, and how a journal appears in it whole or not at all.
//!
//! ```text
//!   lock             held by the process that owns the directory
//!   journal.db       the journal
//!   journal.db-wal   what has been committed since it was last tidied up; gone after a clean stop
//!   journal.new      a journal that is being made: it is renamed when it is complete and durable
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// A data directory that is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The lock goes with the handle, however the process ends.
    lock: File,
}

impl Drop for Directory {
    /// A program that is just being started may have a copy of the handle for a moment: the lock is given up, not only
    /// the handle. If it cannot be, it goes with the handle.
    fn drop(&mut self) {
        drop(self.lock.unlock());
    }
}

/// What a file of `SQLite` says of itself in its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) application: i64,
    pub(crate) version: i64,
}

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Directory {
    /// Makes the directory if need be, and keeps every other process out.
    pub(crate) fn own(path: &Path) -> Result<Self, OpenError> {
        make_directory(path).map_err(OpenError::io("make the data directory", path))?;
        let lock_path = path.join("lock");
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
        let lock = lock.map_err(OpenError::io("open the lock", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(problem)) => {
                Err(OpenError::io("lock the directory", &lock_path)(problem))
            }
        }
    }

    /// The same, of a directory in which there is a journal. A look must not leave a new directory behind.
    pub(crate) fn with_journal(path: &Path) -> Result<Self, OpenError> {
        let missing = || OpenError::Missing(path.to_owned());
        if !path.is_dir() {
            return Err(missing());
        }
        let owned = Self::own(path)?;
        if owned.has_journal()? { Ok(owned) } else { Err(missing()) }
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal.db")
    }

    /// Where a new journal is made; whatever an interrupted attempt has left there is gone.
    pub(crate) fn new_journal(&self) -> Result<PathBuf, OpenError> {
        let path = self.path.join("journal.new");
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let left = with_suffix(&path, suffix);
            remove_if_there(&left).map_err(OpenError::io("remove what is left of an attempt", &left))?;
        }
        Ok(path)
    }

    /// Whether there is a journal. A log without its journal is not "none": somebody has taken the journal away.
    pub(crate) fn has_journal(&self) -> Result<bool, OpenError> {
        let journal = self.journal();
        if exists(&journal)? {
            return Ok(true);
        }
        if exists(&with_suffix(&journal, "-wal"))? {
            return Err(OpenError::damaged(&journal, "it is missing, and its log is still there"));
        }
        Ok(false)
    }

    /// Gives a complete journal its name, durably.
    pub(crate) fn publish(&self, new: &Path) -> Result<(), OpenError> {
        let journal = self.journal();
        rename_durably(new, &journal).map_err(OpenError::io("put the new journal in its place", &journal))
    }
}

fn exists(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(OpenError::io("look for", path))
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes an empty file that only its owner may read.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_directory(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => sync_directory_of(path),
        other => other,
    }
}

/// A name is durable when its directory is.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes a complete file durable, gives it its name, and makes the name durable.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_directory_of(to)
}

/// Looks at the first bytes of a file before `SQLite` does: what is not ours is not touched.
///
/// The caller has not opened the file with `SQLite`: closing it here would take that lock away.
pub(crate) fn read_header(path: &Path) -> Result<Option<FileHeader>, OpenError> {
    let mut header = [0; 100];
    let mut file = File::open(path).map_err(OpenError::io("open the journal", path))?;
    match file.read_exact(&mut header) {
        Err(problem) if problem.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other.map_err(OpenError::io("read the journal", path))?,
    }
    let number = |at: usize| {
        i64::from(i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    let ours = header.starts_with(MAGIC);
    Ok(ours.then(|| FileHeader { application: number(68), version: number(60) }))
}
