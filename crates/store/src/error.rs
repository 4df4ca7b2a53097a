//! What can go wrong with a journal, and what to do about it.

use std::path::{Path, PathBuf};

/// Why a journal cannot be opened. Nothing has been changed in it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "the journal is in use by another process: {}\n  hint: one server owns a data directory; stop it first",
        .0.display()
    )]
    InUse(PathBuf),
    /// There is none.
    #[error("there is no journal: {}\n  hint: is the disk mounted, and is this the data directory?", .0.display())]
    Missing(PathBuf),
    /// A journal was made in this directory, and it is gone.
    #[error(
        "the journal is missing from a data directory that was in use: {}\n  hint: is the disk mounted? import the last backup into an empty directory, or remove `lock` and `journal.reach` to begin with nothing",
        .0.display()
    )]
    Gone(PathBuf),
    /// The journal ends before what was answered: its log was lost, cut short or replaced by an older one.
    #[error(
        "the journal has lost commits that were answered: {}: {what}\n  hint: put the missing journal.db-wal back; to continue without it: forewarn store accept-loss {0}",
        path.display()
    )]
    Short {
        /// The data directory.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// The end of the journal is not recorded any more, so that lost commits would go unnoticed.
    #[error(
        "cannot tell whether the journal is complete: {}: {what}\n  hint: put the file back; to continue without it: forewarn store accept-loss {}",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    ReachUnknown {
        /// The file that records the reach of the journal.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// Nothing is missing from the journal, so there is no loss to accept.
    #[error("the journal is complete: {}\n  hint: start the server; there is no loss to accept", .0.display())]
    Complete(PathBuf),
    /// It was not made by Forewarn.
    #[error(
        "this is no journal of forewarn: {}\n  hint: give a directory that is empty, or that a server has made",
        .0.display()
    )]
    Foreign(PathBuf),
    /// It was made by a later Forewarn.
    #[error(
        "the journal has a later format than this program knows: {}: {found}, not {known}\n  hint: use the forewarn that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest that is known here.
        known: i64,
    },
    /// It is not what was written.
    #[error(
        "the journal is damaged: {}: {what}\n  hint: keep a copy of the directory, then import the last backup into a new one",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// There already is a journal where a new one was to be made.
    #[error("there already is a journal: {}\n  hint: import into an empty directory", .0.display())]
    Exists(PathBuf),
    /// The disk is full.
    #[error("the disk is full: {}\n  hint: make room; nothing that was answered is lost", .0.display())]
    Full(PathBuf),
    /// The system does not let us.
    #[error(
        "cannot {doing}: {}\n  hint: the directory must belong to the user of the server and be writable",
        path.display()
    )]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// `SQLite` cannot go on.
    #[error("the journal cannot be read or written: {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
}

/// An append that did not succeed: nothing of it was answered, published or done.
///
/// The journal takes nothing more. Whoever owns it drops it and the state, opens it again and goes on from what is found
/// there. What was appended last may be found there or not: nobody was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendFailed {
    /// The disk is full.
    #[error("the journal cannot be written: the disk is full\n  hint: make room; writes go on by themselves")]
    Full,
    /// The disk, or what is on it, fails.
    #[error(
        "the journal cannot be written: {0}\n  hint: look at the disk; nothing that was answered is lost"
    )]
    Failed(String),
    /// The data directory, or a file in it, is not under its name any more.
    #[error(
        "the journal cannot be written: {0} was removed or replaced while the server runs\n  hint: put the data directory back in its place; writes go on by themselves"
    )]
    Moved(&'static str),
    /// A record is greater than anything that the rules can decide.
    #[error("a record is too large for the journal: {0} bytes")]
    TooLarge(usize),
    /// An entry of the trail does not follow those before it.
    #[error("the trail would be broken: {0}")]
    Unchained(#[from] forewarn_control::BrokenLink),
    /// An entry of the trail would take the place of one that is about something else.
    #[error("an entry of the trail would replace another one")]
    OtherEntry,
    /// An earlier append has failed, or the journal was closed.
    #[error("the journal takes nothing more: it must be opened again")]
    Closed,
}

/// Why there is no copy of a journal.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is something where the copy was to be.
    #[error("there already is a file: {}\n  hint: choose another name; a copy replaces nothing", .0.display())]
    Exists(PathBuf),
    /// The system does not let us.
    #[error("cannot {doing}: {}", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// `SQLite` cannot go on.
    #[error("the copy cannot be made: {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
    /// One copy at a time.
    #[error("another copy is being made\n  hint: wait for it")]
    Busy,
    /// It lives in memory.
    #[error(
        "there is nothing to copy: the journal is kept in memory\n  hint: start the server with a data directory"
    )]
    Memory,
    /// The journal takes nothing more.
    #[error("the journal takes nothing more: it must be opened again")]
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

impl From<&std::io::Error> for AppendFailed {
    fn from(error: &std::io::Error) -> Self {
        if is_full(error) { Self::Full } else { Self::Failed(error.to_string()) }
    }
}

/// Tells a disk without room, or a quota that is used up, from other failures.
fn is_full(error: &std::io::Error) -> bool {
    [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded].contains(&error.kind())
}

impl From<&rusqlite::Error> for AppendFailed {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            Some(_) | None => Self::Failed(error.to_string()),
        }
    }
}
