//! The audit log as stored and read: see [`forewarn_control::AuditEntry`] for its content.
//!
//! Entries are written into the journal, in the commit of their records, and filed into the audit file a little later
//! ([`crate::pending`]). The committer, which owns the only connections, serves one query with limited work between two
//! commits, so that writers never wait for long. It first files every visible entry.
//!
//! Each stream has a log with numbers of its own. An entry also has a position in the log of the server, which has all
//! of them in the order of their commits.
//!
//! ```text
//!   AuditLogReader ──AuditQuery──▶ committer ──▶ subject: which positions ──▶ trail: the entries ──▶ AuditBatch
//! ```

mod check;
mod page;
mod recent;
mod search;
mod stream_log;
mod subject_finder;
mod sweep;
mod table;
mod verifier;
mod view;

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{AuditEntry, Stream, Subject};
use forewarn_lifecycle::Timestamp;

pub(crate) use check::{AuditEnds, check_audit_log, compare_ends};
pub(crate) use page::read_page;
pub use recent::BadLog;
pub(crate) use recent::RecentEntries;
pub(crate) use sweep::{AuditSweeper, remove_after, remove_at, remove_swept};
pub(crate) use table::{AuditRow, FiledEntry, file_entry, read_row, read_rows};
pub(crate) use verifier::{AuditVerifier, PassProgress, VerifiedSlice};
pub(crate) use view::AuditView;

/// Default retention of entries: more than a year.
pub const AUDIT_RETENTION: Duration = Duration::from_hours(400 * 24);

/// Entries that a journal in memory stores.
pub const RECENT_ENTRIES_MAX: usize = 100_000;

pub const PAGE_ENTRIES_MAX: usize = 1_000;

/// Maximum number of subjects in one query.
pub const SUBJECTS_PER_QUERY_MAX: usize = 200;

/// Query of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// An entry must concern at least one subject of each group; without groups, every entry matches.
    pub groups: Vec<Vec<Subject>>,
    /// Only entries from this time on.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
    /// Only the log of this stream, by number: entries of its own log, and those of the common log before it that concern
    /// the stream. Without it, the log of the server, by position.
    pub stream: Option<Stream>,
    /// Only entries after this position, or number.
    pub after: Option<u64>,
    /// Only entries before this position, or number.
    pub before: Option<u64>,
    pub direction: Direction,
    /// Maximum number of entries; at most [`PAGE_ENTRIES_MAX`].
    pub limit: usize,
}

/// Order of the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    OldestFirst,
    NewestFirst,
}

impl Default for AuditQuery {
    fn default() -> Self {
        let (since, until, stream, after, before) = (None, None, None, None, None);
        let direction = Direction::OldestFirst;
        Self { groups: Vec::new(), since, until, stream, after, before, direction, limit: PAGE_ENTRIES_MAX }
    }
}

/// An entry with its position in the log of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedEntry {
    /// Positions count the entries of all streams, from 1, without gaps, in the order of their commits.
    pub position: u64,
    pub entry: Arc<AuditEntry>,
}

/// Result of a query. Its numbers are positions, or those of the stream of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditBatch {
    /// Entries in the requested order.
    pub entries: Vec<LoggedEntry>,
    /// Continuation: `after` that one, or `before` it if the newest come first. `None` at the end. A short or empty
    /// page may have a next one: the work of one query is limited.
    pub next: Option<u64>,
    /// The newest entry that is visible.
    pub head: u64,
    /// The newest entry, which may be hidden for a moment: no later one exists.
    pub end: u64,
    /// The last entry that was swept because of its age.
    pub swept: u64,
}

/// Reason why the audit log could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The journal is closed, or has failed.
    #[error("cannot read the audit log: the journal is closed")]
    Closed,
    /// Too many queries are pending.
    #[error("too many queries of the audit log are pending\n  hint: try again in a moment")]
    Busy,
    #[error("a query has at most {SUBJECTS_PER_QUERY_MAX} subjects: this one has {0}")]
    TooMany(usize),
    /// An entry is damaged or missing.
    #[error("the audit log is damaged: {0}\n  hint: stop the server, and run forewarn store check")]
    Damaged(String),
    #[error("cannot read the audit log: {0}\n  hint: check the disk")]
    Failed(String),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Damaged(error.to_string()),
            Some(_) | None => Self::Failed(error.to_string()),
        }
    }
}

/// Callback for the result of a query. Dropping it sends [`ReadError::Closed`], so that no caller waits forever.
pub(crate) struct ReadReply(Option<ReadCallback>);

type ReadCallback = Box<dyn FnOnce(Result<AuditBatch, ReadError>) + Send>;

impl ReadReply {
    pub(crate) fn new(done: impl FnOnce(Result<AuditBatch, ReadError>) + Send + 'static) -> Self {
        Self(Some(Box::new(done)))
    }

    pub(crate) fn send(mut self, page: Result<AuditBatch, ReadError>) {
        if let Some(done) = self.0.take() {
            done(page);
        }
    }
}

impl Drop for ReadReply {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(ReadError::Closed));
        }
    }
}
