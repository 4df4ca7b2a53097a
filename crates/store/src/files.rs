//! The data directory: its lock, and the atomic creation of a journal in it.
//!
//! ```text
//!   lock             held by the process that owns the directory; marked once a journal was created
//!   journal.db       the journal
//!   journal.db-wal   commits since the last checkpoint; absent after a clean stop
//!   journal.reach    minimum end of the journal
//!   journal.new      a new journal; renamed when it is complete and durable
//!   audit.db         the audit file: audit entries that are no longer in the journal
//!   audit.db-wal     commits of the audit file since its last checkpoint
//!   audit.new        a new audit file
//!   audit.lost-N.*   the remains of an audit log that was given up
//!   before-restore-N a former copy of the log of a realm
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{AppendError, OpenError};

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The operating system releases the lock with the handle, however the process ends.
    lock: File,
}

impl Drop for Directory {
    /// A child that is being spawned may have a copy of the handle for a moment: unlock explicitly. If that fails,
    /// closing the handle releases the lock.
    fn drop(&mut self) {
        drop(self.lock.unlock());
    }
}

/// Facts from the first bytes of a `SQLite` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) application: i64,
    pub(crate) version: i64,
}

/// Maximum wait for the lock of a process that was just killed, and the pause between two attempts. A child that it was
/// spawning has a copy of the handle until its own code begins.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Content of the lock file of a directory in which a journal was created.
const MARK: &[u8] = b"a journal was made here\n";

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Directory {
    /// Creates the directory if needed, and locks it.
    pub(crate) fn own(path: &Path) -> Result<Self, OpenError> {
        Self::own_within(path, LOCK_TIMEOUT)
    }

    /// Fails if another process still holds the lock after `timeout`.
    fn own_within(path: &Path, timeout: Duration) -> Result<Self, OpenError> {
        make_directory(path).map_err(OpenError::io("create the data directory", path))?;
        let lock_path = path.join(LOCK);
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).read(true).write(true).mode(0o600).open(&lock_path);
        let lock = lock.map_err(OpenError::io("open the lock", &lock_path))?;
        let deadline = Instant::now() + timeout;
        let taken = take_lock(&lock, || {
            thread::sleep(LOCK_PAUSE);
            Instant::now() < deadline
        });
        match taken {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(OpenError::io("lock the directory", &lock_path)(error)),
        }
    }

    /// Locks a directory that has a journal. Never creates a directory.
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

    /// Returns true if a journal and the record of its reach were created in the directory; false for a directory of an
    /// earlier version.
    pub(crate) fn is_marked(&self) -> Result<bool, OpenError> {
        let found = self.lock.metadata().map_err(OpenError::io("read the lock of", &self.path))?;
        Ok(found.len() > 0)
    }

    /// Marks the directory, durably: the journal and the record of its reach exist.
    pub(crate) fn mark(&self) -> Result<(), OpenError> {
        if self.is_marked()? {
            return Ok(());
        }
        let marked = self.lock.write_all_at(MARK, 0).and_then(|()| self.lock.sync_all());
        marked.map_err(OpenError::io("mark the lock of", &self.path))
    }

    /// Removes the mark, durably: a new journal may be created.
    pub(crate) fn unmark(&self) -> Result<(), OpenError> {
        let unmarked = self.lock.set_len(0).and_then(|()| self.lock.sync_all());
        unmarked.map_err(OpenError::io("remove the mark from the lock of", &self.path))
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.path.join(AUDIT)
    }

    /// Path for a new journal; the rest of an interrupted attempt is removed.
    pub(crate) fn new_journal(&self) -> Result<PathBuf, OpenError> {
        self.new_file("journal.new")
    }

    /// Path for a new audit file; the rest of an interrupted attempt is removed.
    pub(crate) fn new_audit(&self) -> Result<PathBuf, OpenError> {
        self.new_file("audit.new")
    }

    fn new_file(&self, name: &str) -> Result<PathBuf, OpenError> {
        let path = self.path.join(name);
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let left = with_suffix(&path, suffix);
            remove_if_there(&left)
                .map_err(OpenError::io("remove the rest of an interrupted attempt", &left))?;
        }
        Ok(path)
    }

    /// Returns true if there is a journal. Fails for a directory that was in use and lacks its journal: a new one would
    /// lose all data.
    pub(crate) fn has_journal(&self) -> Result<bool, OpenError> {
        let journal = self.journal();
        if exists(&journal)? {
            return Ok(true);
        }
        if exists(&with_suffix(&journal, "-wal"))? {
            return Err(OpenError::damaged(&journal, "it is missing, and its log is still there"));
        }
        // An audit file is created after its journal.
        if self.is_marked()? || exists(&self.reach())? || exists(&self.audit())? {
            return Err(OpenError::Gone(self.path.clone()));
        }
        Ok(false)
    }

    /// Links the journal of an older format under a second name, durably. The journal keeps its first name until it is
    /// replaced.
    pub(crate) fn keep_old(&self, format: i64) -> Result<PathBuf, OpenError> {
        let (journal, kept) = (self.journal(), self.path.join(format!("journal.format-{format}.db")));
        let failed = OpenError::io("link the journal of the older format as", &kept);
        // An interrupted attempt may have left a second name of the same file.
        let keep = || {
            remove_if_there(&kept)?;
            fs::hard_link(&journal, &kept)?;
            sync_directory_of(&kept)
        };
        keep().map_err(failed)?;
        Ok(kept)
    }

    /// Renames a complete journal to its final name, durably.
    pub(crate) fn publish(&self, new: &Path) -> Result<(), OpenError> {
        let journal = self.journal();
        rename_durably(new, &journal).map_err(OpenError::io("rename the new journal", &journal))
    }

    /// Renames a complete audit file to its final name, durably. A log under that name belonged to another file.
    pub(crate) fn publish_audit(&self, new: &Path) -> Result<(), OpenError> {
        let audit = self.audit();
        let renamed =
            remove_if_there(&with_suffix(&audit, "-wal")).and_then(|()| rename_durably(new, &audit));
        renamed.map_err(OpenError::io("rename the new audit file", &audit))
    }

    /// Names for the remains of an audit log that is given up, both of which are free.
    pub(crate) fn lost_audit(&self) -> Result<LostAudit, OpenError> {
        let mut number = 1;
        loop {
            let file = self.path.join(format!("audit.lost-{number}.db"));
            let lines = self.path.join(format!("audit.lost-{number}.jsonl"));
            if !exists(&file)? && !exists(&lines)? {
                return Ok(LostAudit { file, lines });
            }
            number += 1;
        }
    }

    /// Gives the audit file and its log other names, durably: they are evidence. Nothing happens without a file.
    pub(crate) fn set_audit_aside(&self, free: &Path) -> Result<(), OpenError> {
        let audit = self.audit();
        let failed = OpenError::io("rename the audit file", &audit);
        let aside = || {
            if !audit.try_exists()? {
                return remove_if_there(&with_suffix(&audit, "-wal"));
            }
            let log = with_suffix(&audit, "-wal");
            if log.try_exists()? {
                fs::rename(&log, with_suffix(free, "-wal"))?;
            }
            fs::rename(&audit, free)?;
            sync_directory_of(&audit)
        };
        aside().map_err(failed)
    }
}

/// Names for the remains of an audit log that is given up.
#[derive(Debug)]
pub(crate) struct LostAudit {
    /// The audit file.
    pub(crate) file: PathBuf,
    /// Entries that waited in the journal.
    pub(crate) lines: PathBuf,
}

const LOCK: &str = "lock";
const JOURNAL: &str = "journal.db";
const LOG: &str = "journal.db-wal";
const REACH: &str = "journal.reach";
const AUDIT: &str = "audit.db";
const AUDIT_LOG: &str = "audit.db-wal";

/// Returns true if no server has used the directory. Creates nothing in it.
fn is_untouched(path: &Path) -> Result<bool, OpenError> {
    for name in [LOCK, JOURNAL, LOG, REACH, AUDIT] {
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

/// The files of an open journal, each of which must stay under its name: a commit into a file without a name is lost
/// with the process.
#[derive(Debug)]
pub(crate) struct NamedFiles {
    /// The journal and its log, which every commit writes.
    written: [NamedFile; 2],
    /// The record of the reach, and the lock.
    others: [NamedFile; 2],
    /// The audit file and its log; none if the file cannot be used.
    audit: Vec<NamedFile>,
}

#[derive(Debug)]
struct NamedFile {
    name: &'static str,
    path: PathBuf,
    identity: (u64, u64),
}

impl NamedFiles {
    /// Records the files of a journal that was just opened.
    pub(crate) fn of(directory: &Directory, audit: AuditFileState) -> Result<Self, OpenError> {
        let named = |name: &'static str| {
            let path = directory.path.join(name);
            let identity = identity(&path).map_err(OpenError::io("inspect", &path))?;
            Ok::<_, OpenError>(NamedFile { name, path, identity })
        };
        let audit = match audit {
            AuditFileState::Used => vec![named(AUDIT_LOG)?, named(AUDIT)?],
            AuditFileState::Unusable => Vec::new(),
        };
        Ok(Self { written: [named(LOG)?, named(JOURNAL)?], others: [named(REACH)?, named(LOCK)?], audit })
    }

    /// Fails if the audit file or its log is no longer under its name.
    pub(crate) fn check_audit(&self) -> Result<(), AppendError> {
        self.audit.iter().try_for_each(NamedFile::check)
    }

    /// Fails if the journal or its log is no longer under its name.
    pub(crate) fn check_written(&self) -> Result<(), AppendError> {
        self.written.iter().try_for_each(NamedFile::check)
    }

    /// Fails if any file is no longer under its name.
    pub(crate) fn check(&self) -> Result<(), AppendError> {
        self.check_written()?;
        self.check_audit()?;
        self.others.iter().try_for_each(NamedFile::check)
    }
}

/// Usability of the audit file of an open journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditFileState {
    Used,
    Unusable,
}

impl NamedFile {
    fn check(&self) -> Result<(), AppendError> {
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err(AppendError::Moved(self.name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(AppendError::Moved(self.name)),
            Err(error) => Err(AppendError::from(&error)),
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Creates an empty file that only its owner may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_directory(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => sync_directory_of(path),
        other => other,
    }
}

/// Makes the name of a file durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes a complete file durable, renames it, and makes the name durable.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_directory_of(to)
}

/// Reads the first bytes of a file before `SQLite` opens it: other files are not touched.
///
/// The caller must not have opened the file with `SQLite`: closing it here would release that lock.
pub(crate) fn read_header(path: &Path) -> Result<Option<FileHeader>, OpenError> {
    let mut header = [0; 100];
    let mut file = File::open(path).map_err(OpenError::io("open the journal", path))?;
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
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

    /// promise: D5
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

    /// promise: D5
    #[test]
    fn a_directory_is_taken_over_from_a_child_of_a_killed_process() {
        let scratch = tempfile::tempdir().unwrap();
        let lock = File::create_new(scratch.path().join(LOCK)).unwrap();
        lock.lock().unwrap();
        // Only the child holds the lock now, like a program that the killed process was spawning.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(lock).spawn().unwrap();
        let refused = Directory::own_within(scratch.path(), Duration::ZERO);
        assert!(matches!(refused, Err(OpenError::InUse(_))), "{refused:?}");
        // It exits by itself, a little later.
        drop(child.stdin.take());
        Directory::own_within(scratch.path(), Duration::from_secs(60)).unwrap();
        child.wait().unwrap();
    }

    /// promise: D3
    #[test]
    fn a_file_that_is_removed_replaced_or_moved_with_its_directory_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let (data, away) = (scratch.path().join("data"), scratch.path().join("away"));
        let directory = Directory::own(&data).unwrap();
        for name in [JOURNAL, LOG, REACH, AUDIT, AUDIT_LOG] {
            fs::write(data.join(name), b"").unwrap();
        }
        let files = NamedFiles::of(&directory, AuditFileState::Used).unwrap();
        assert_eq!((files.check_written(), files.check()), (Ok(()), Ok(())));
        for name in [LOCK, JOURNAL, LOG, REACH, AUDIT, AUDIT_LOG] {
            let kept = scratch.path().join("kept");
            fs::rename(data.join(name), &kept).unwrap();
            assert_eq!(files.check(), Err(AppendError::Moved(name)));
            fs::write(data.join(name), b"").unwrap();
            assert_eq!(files.check(), Err(AppendError::Moved(name)), "another file");
            fs::rename(&kept, data.join(name)).unwrap();
            assert_eq!(files.check(), Ok(()));
        }
        fs::rename(&data, &away).unwrap();
        assert_eq!(files.check_written(), Err(AppendError::Moved(LOG)));
        fs::create_dir(&data).unwrap();
        assert_eq!(files.check_written(), Err(AppendError::Moved(LOG)), "another directory");
    }
}
