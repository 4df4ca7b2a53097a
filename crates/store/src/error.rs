//! Errors of a journal.

use std::path::{Path, PathBuf};

/// Reason why a journal cannot be opened. It has not been changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked it.
    #[error(
        "the journal is in use by another process: {}\n  hint: one server owns a data directory; stop it first",
        .0.display()
    )]
    InUse(PathBuf),
    /// The directory has no journal.
    #[error("there is no journal: {}\n  hint: is the disk mounted, and is this the data directory?", .0.display())]
    Missing(PathBuf),
    /// The directory has had a journal, and it is gone.
    #[error(
        "the journal is missing from a data directory that was in use: {}\n  hint: is the disk mounted? import the last backup into an empty directory, or remove `lock` and `journal.reach` to start empty",
        .0.display()
    )]
    Gone(PathBuf),
    /// The journal ends before acknowledged commits: its log was lost, truncated or replaced by an older one.
    #[error(
        "the journal has lost acknowledged commits: {}: {what}\n  hint: put the missing journal.db-wal back; to continue without it: forewarn store accept-loss {0}",
        path.display()
    )]
    Short { path: PathBuf, what: String },
    /// The audit file is missing, truncated, or another one.
    #[error(
        "the audit log has lost entries: {}: {what}\n  hint: put the missing file back; to continue without its entries: forewarn store accept-loss {}",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    AuditLost { path: PathBuf, what: String },
    /// The audit file is damaged. The state is not, and a server starts.
    #[error(
        "the audit log is damaged: {}: {what}\n  hint: keep a copy of the file; a server starts, and can still read the other entries",
        path.display()
    )]
    AuditDamaged { path: PathBuf, what: String },
    /// The record of the journal's end is missing or damaged, so that lost commits would go unnoticed.
    #[error(
        "cannot tell whether the journal is complete: {}: {what}\n  hint: put the file back; to continue without it: forewarn store accept-loss {}",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    ReachUnknown { path: PathBuf, what: String },
    /// Nothing is missing from the journal, so there is no loss to accept.
    #[error("the journal is complete: {}\n  hint: start the server; there is no loss to accept", .0.display())]
    Complete(PathBuf),
    /// Forewarn did not create it.
    #[error(
        "not a journal of forewarn: {}\n  hint: name an empty directory, or one that a server has created",
        .0.display()
    )]
    Foreign(PathBuf),
    /// A later version of Forewarn created it.
    #[error(
        "the journal has a later format than this program knows: {}: {found}, not {known}\n  hint: use the forewarn that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        /// The latest format of this program.
        known: i64,
    },
    #[error(
        "the journal is damaged: {}: {what}\n  hint: keep a copy of the directory, then import the last backup into a new one",
        path.display()
    )]
    Damaged { path: PathBuf, what: String },
    /// The journal is the copy of a server in a realm.
    #[error(
        "the journal is a copy of the log of several servers: {}\n  hint: start the server with the [engine] of its realm",
        .0.display()
    )]
    OfRealm(PathBuf),
    /// A journal already exists at the destination.
    #[error("a journal already exists: {}\n  hint: import into an empty directory", .0.display())]
    Exists(PathBuf),
    #[error("the disk is full: {}\n  hint: free some space; no acknowledged commit is lost", .0.display())]
    Full(PathBuf),
    #[error(
        "cannot {doing}: {}\n  hint: the directory must belong to the user of the server and be writable",
        path.display()
    )]
    Io {
        /// The attempted operation, for the message.
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the journal cannot be read or written: {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
}

/// A failed append: nothing of it was acknowledged, published or performed.
///
/// Unless [`Self::is_of_the_append`], the journal accepts nothing more. The owner drops it with its state, opens it
/// again, and continues from the recovered state, which may or may not include the last append: it was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error(
        "the journal cannot be written: the disk is full\n  hint: free some space; writes resume automatically"
    )]
    Full,
    /// The disk or the file system fails.
    #[error("the journal cannot be written: {0}\n  hint: check the disk; no acknowledged commit is lost")]
    Failed(String),
    /// The data directory or a file in it was moved, removed or replaced.
    #[error(
        "the journal cannot be written: {0} was removed or replaced while the server runs\n  hint: put the data directory back; writes resume automatically"
    )]
    Moved(&'static str),
    /// A record exceeds every size that the rules produce.
    #[error("a record is too large for the journal: {0} bytes")]
    TooLarge(usize),
    /// A record or an audit entry belongs to another stream.
    #[error("a record or an audit entry belongs to another stream")]
    OtherStream,
    /// An audit entry does not continue the chain of its stream.
    #[error("the audit chain would be broken: {0}")]
    Unchained(#[from] forewarn_control::BrokenLink),
    /// An audit entry would replace one with another number or other subjects.
    #[error("an audit entry would replace another one")]
    OtherEntry,
    /// A state is not later than the journal, or the stream is gone.
    #[error("a state is older than the journal")]
    Earlier,
    /// The journal is in memory, and is not a copy of another one.
    #[error("a journal in memory has no copy of a log")]
    Memory,
    /// An earlier append has failed, or the journal was closed.
    #[error("the journal is closed: open it again")]
    Closed,
}

impl AppendError {
    /// Returns true if the append itself is at fault: the journal still accepts others.
    #[must_use]
    pub fn is_of_the_append(&self) -> bool {
        match self {
            Self::TooLarge(_)
            | Self::OtherStream
            | Self::Unchained(_)
            | Self::OtherEntry
            | Self::Earlier
            | Self::Memory => true,
            Self::Full | Self::Failed(_) | Self::Moved(_) | Self::Closed => false,
        }
    }
}

/// Reason why a journal could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the file already exists: {}\n  hint: choose another name; a copy replaces no file", .0.display())]
    Exists(PathBuf),
    #[error("cannot {doing}: {}", path.display())]
    Io {
        /// The attempted operation, for the message.
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot copy the journal: {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("the journal is damaged: {0}")]
    Damaged(String),
    /// Another copy is in progress.
    #[error("another copy is in progress\n  hint: wait until it is complete")]
    Busy,
    /// The journal is in memory.
    #[error(
        "there is nothing to copy: the journal is in memory\n  hint: start the server with a data directory"
    )]
    Memory,
    /// The journal is closed, or has failed.
    #[error("the journal is closed: open it again")]
    Closed,
}

impl OpenError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            if is_full(&source) { Self::Full(path) } else { Self::Io { doing, path, source } }
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn database(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::InUse(path),
            Some(Code::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
            Some(Code::NotADatabase) => Self::Foreign(path),
            Some(Code::DiskFull) => Self::Full(path),
            Some(_) | None => Self::Database { path, source },
        }
    }
}

impl From<&std::io::Error> for AppendError {
    fn from(error: &std::io::Error) -> Self {
        if is_full(error) { Self::Full } else { Self::Failed(error.to_string()) }
    }
}

/// Distinguishes a full disk or an exceeded quota from other failures.
fn is_full(error: &std::io::Error) -> bool {
    [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded].contains(&error.kind())
}

impl From<&rusqlite::Error> for AppendError {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            Some(_) | None => Self::Failed(error.to_string()),
        }
    }
}
