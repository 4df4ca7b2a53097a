//! The data directory: its lock, and how a journal appears in it whole or not at all.
//!
//! ```text
//!   lock             held by the process that owns the directory; marked once a journal was made there
//!   journal.db       the journal
//!   journal.db-wal   what has been committed since it was last tidied up; gone after a clean stop
//!   journal.reach    how far the journal must go
//!   journal.new      a journal that is being made: it is renamed when it is complete and durable
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{AppendFailed, OpenError};

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

/// How long a process that was just killed may take to give up the lock, and how long to wait between two attempts. A program
/// that the process was starting has a copy of the handle until its own code begins.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The content of the lock of a directory in which a journal was made.
const MARK: &[u8] = b"a journal was made here\n";

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Directory {
    /// Makes the directory if need be, and keeps every other process out.
    pub(crate) fn own(path: &Path) -> Result<Self, OpenError> {
        Self::own_within(path, LOCK_PATIENCE)
    }

    /// Fails if another process still holds the lock after `patience`.
    fn own_within(path: &Path, patience: Duration) -> Result<Self, OpenError> {
        make_directory(path).map_err(OpenError::io("make the data directory", path))?;
        let lock_path = path.join(LOCK);
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).read(true).write(true).mode(0o600).open(&lock_path);
        let lock = lock.map_err(OpenError::io("open the lock", &lock_path))?;
        let deadline = Instant::now() + patience;
        let taken = take_lock(&lock, || {
            thread::sleep(LOCK_PAUSE);
            Instant::now() < deadline
        });
        match taken {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(problem)) => {
                Err(OpenError::io("lock the directory", &lock_path)(problem))
            }
        }
    }

    /// The same, of a directory in which there is a journal. A look must not leave a new directory behind.
    pub(crate) fn with_journal(path: &Path) -> Result<Self, OpenError> {
        if !path.is_dir() || is_untouched(path)? {
            return Err(OpenError::Missing(path.to_owned()));
        }
        let owned = Self::own(path)?;
        if owned.has_journal()? { Ok(owned) } else { Err(OpenError::Missing(path.to_owned())) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    pub(crate) fn reach(&self) -> PathBuf {
        self.path.join(REACH)
    }

    /// Tells a directory in which a journal and the record of its reach were made from one of an earlier version.
    pub(crate) fn is_marked(&self) -> Result<bool, OpenError> {
        let found = self.lock.metadata().map_err(OpenError::io("look at the lock of", &self.path))?;
        Ok(found.len() > 0)
    }

    /// Marks the directory, durably: the journal and the record of its reach are there.
    pub(crate) fn mark(&self) -> Result<(), OpenError> {
        if self.is_marked()? {
            return Ok(());
        }
        let marked = self.lock.write_all_at(MARK, 0).and_then(|()| self.lock.sync_all());
        marked.map_err(OpenError::io("mark the lock of", &self.path))
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

    /// Whether there is a journal. A directory that was in use and lacks its journal is refused: a new journal would forget
    /// everything.
    pub(crate) fn has_journal(&self) -> Result<bool, OpenError> {
        let journal = self.journal();
        if exists(&journal)? {
            return Ok(true);
        }
        if exists(&with_suffix(&journal, "-wal"))? {
            return Err(OpenError::damaged(&journal, "it is missing, and its log is still there"));
        }
        if self.is_marked()? || exists(&self.reach())? {
            return Err(OpenError::Gone(self.path.clone()));
        }
        Ok(false)
    }

    /// Keeps the journal of an older format under another name, durably, while it still has its own: at no moment is there none.
    pub(crate) fn keep_old(&self, format: i64) -> Result<PathBuf, OpenError> {
        let (journal, kept) = (self.journal(), self.path.join(format!("journal.format-{format}.db")));
        let failed = OpenError::io("keep the journal of the older format as", &kept);
        // An interrupted attempt may have left another name of the same file.
        let keep = || {
            remove_if_there(&kept)?;
            fs::hard_link(&journal, &kept)?;
            sync_directory_of(&kept)
        };
        keep().map_err(failed)?;
        Ok(kept)
    }

    /// Gives a complete journal its name, durably.
    pub(crate) fn publish(&self, new: &Path) -> Result<(), OpenError> {
        let journal = self.journal();
        rename_durably(new, &journal).map_err(OpenError::io("put the new journal in its place", &journal))
    }
}

/// The names of the files.
const LOCK: &str = "lock";
const JOURNAL: &str = "journal.db";
const LOG: &str = "journal.db-wal";
const REACH: &str = "journal.reach";

/// Tells a directory in which no server has been, without leaving anything in it.
fn is_untouched(path: &Path) -> Result<bool, OpenError> {
    for name in [LOCK, JOURNAL, LOG, REACH] {
        if exists(&path.join(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tries to take a lock until `wait` returns false.
fn take_lock(lock: &File, mut wait: impl FnMut() -> bool) -> Result<(), TryLockError> {
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if wait() => {}
            other => return other,
        }
    }
}

/// The files of an open journal, each of which must stay under its name: a commit into a file without a name is lost with the
/// process.
#[derive(Debug)]
pub(crate) struct NamedFiles {
    /// The journal and its log: every commit goes into them.
    written: [NamedFile; 2],
    /// The record of the reach, and the lock.
    others: [NamedFile; 2],
}

#[derive(Debug)]
struct NamedFile {
    name: &'static str,
    path: PathBuf,
    /// The device and the number of the file.
    identity: (u64, u64),
}

impl NamedFiles {
    /// Notes the files of a journal that was just opened.
    pub(crate) fn of(directory: &Directory) -> Result<Self, OpenError> {
        let named = |name: &'static str| {
            let path = directory.path.join(name);
            let identity = identity(&path).map_err(OpenError::io("look at", &path))?;
            Ok::<_, OpenError>(NamedFile { name, path, identity })
        };
        Ok(Self { written: [named(LOG)?, named(JOURNAL)?], others: [named(REACH)?, named(LOCK)?] })
    }

    /// Fails if the journal or its log is not under its name any more.
    pub(crate) fn check_written(&self) -> Result<(), AppendFailed> {
        self.written.iter().try_for_each(NamedFile::check)
    }

    /// Fails if any file is not under its name any more.
    pub(crate) fn check(&self) -> Result<(), AppendFailed> {
        self.check_written()?;
        self.others.iter().try_for_each(NamedFile::check)
    }
}

impl NamedFile {
    fn check(&self) -> Result<(), AppendFailed> {
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err(AppendFailed::Moved(self.name)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Err(AppendFailed::Moved(self.name)),
            Err(problem) => Err(AppendFailed::from(&problem)),
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_lock_that_is_given_up_a_little_later_is_taken() {
        let scratch = tempfile::tempdir().unwrap();
        let owner = Directory::own(scratch.path()).unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(scratch.path().join(LOCK)).unwrap();
        let mut attempts = 0;
        let refused = take_lock(&open(), || {
            attempts += 1;
            attempts < 5
        });
        assert!(matches!(refused, Err(TryLockError::WouldBlock)) && attempts == 5, "{refused:?} {attempts}");
        let mut owner = Some(owner);
        take_lock(&open(), || owner.take().is_some()).unwrap();
        assert!(owner.is_none(), "the lock was held at first");
    }

    #[test]
    fn a_directory_is_taken_over_from_a_child_of_a_killed_process() {
        let scratch = tempfile::tempdir().unwrap();
        let lock = File::create_new(scratch.path().join(LOCK)).unwrap();
        lock.lock().unwrap();
        // Only the child holds the lock now, as a program does that the killed process was starting.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(lock).spawn().unwrap();
        let refused = Directory::own_within(scratch.path(), Duration::ZERO);
        assert!(matches!(refused, Err(OpenError::InUse(_))), "{refused:?}");
        // It ends by itself, a little later.
        drop(child.stdin.take());
        Directory::own_within(scratch.path(), Duration::from_secs(60)).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_file_that_is_removed_replaced_or_moved_with_its_directory_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let (data, away) = (scratch.path().join("data"), scratch.path().join("away"));
        let directory = Directory::own(&data).unwrap();
        for name in [JOURNAL, LOG, REACH] {
            fs::write(data.join(name), b"").unwrap();
        }
        let files = NamedFiles::of(&directory).unwrap();
        assert_eq!((files.check_written(), files.check()), (Ok(()), Ok(())));
        for name in [LOCK, JOURNAL, LOG, REACH] {
            let kept = scratch.path().join("kept");
            fs::rename(data.join(name), &kept).unwrap();
            assert_eq!(files.check(), Err(AppendFailed::Moved(name)));
            fs::write(data.join(name), b"").unwrap();
            assert_eq!(files.check(), Err(AppendFailed::Moved(name)), "another file");
            fs::rename(&kept, data.join(name)).unwrap();
            assert_eq!(files.check(), Ok(()));
        }
        fs::rename(&data, &away).unwrap();
        assert_eq!(files.check_written(), Err(AppendFailed::Moved(LOG)));
        fs::create_dir(&data).unwrap();
        assert_eq!(files.check_written(), Err(AppendFailed::Moved(LOG)), "another directory");
    }
}
