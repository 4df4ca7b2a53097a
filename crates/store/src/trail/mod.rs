//! The trail as it is kept and read: see [`forewarn_control::AuditEntry`] for what is in it.
//!
//! Entries are written in the commit of the records they tell of. They are read by asking the committer, which owns the only
//! connection: between two commits it answers one question, whose work has a limit, so that nobody who writes waits for long.
//!
//! ```text
//!   TrailReader ──AuditQuery──▶ committer ──▶ subject: which numbers ──▶ trail: the entries ──▶ AuditBatch
//! ```

mod check;
mod recent;
mod search;
mod sweep;
mod table;

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{AuditEntry, Subject};
use forewarn_lifecycle::Timestamp;

pub(crate) use check::{check_ends, check_trail, link_at};
pub(crate) use recent::Recent;
pub(crate) use sweep::Sweeping;
pub(crate) use table::{chain_before, read_page, rewrite_entry, write_entry};

/// How long entries are kept, unless said: more than a year, so that a year can be looked back at.
pub const TRAIL_KEEP: Duration = Duration::from_hours(400 * 24);

/// Entries that a journal in memory keeps.
pub const RECENT_ENTRIES_MAX: usize = 100_000;

/// Entries on one page.
pub const PAGE_ENTRIES_MAX: usize = 1_000;

/// Subjects in one question.
pub const SUBJECTS_PER_QUERY_MAX: usize = 200;

/// What is to be read of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// Of each group, an entry must concern one subject at least; without a group, every entry will do.
    pub groups: Vec<Vec<Subject>>,
    /// Nothing from before.
    pub since: Option<Timestamp>,
    /// Only what is from before.
    pub until: Option<Timestamp>,
    /// Only entries with a greater number.
    pub after: Option<u64>,
    /// Only entries with a smaller number.
    pub before: Option<u64>,
    /// In which order.
    pub direction: Direction,
    /// How many at most; no more than [`PAGE_ENTRIES_MAX`].
    pub limit: usize,
}

/// In which order entries are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// As they were written.
    #[default]
    OldestFirst,
    /// The other way.
    NewestFirst,
}

impl Default for AuditQuery {
    /// The oldest entries.
    fn default() -> Self {
        let (since, until, after, before) = (None, None, None, None);
        let direction = Direction::OldestFirst;
        Self { groups: Vec::new(), since, until, after, before, direction, limit: PAGE_ENTRIES_MAX }
    }
}

/// Entries that were found.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditBatch {
    /// In the order that was asked for.
    pub entries: Vec<Arc<AuditEntry>>,
    /// Where to go on: `after` that number, or `before` it if the newest come first. None, when everything has been looked at.
    /// There may be a next page although this one is short or empty: the work of one question has a limit.
    pub next: Option<u64>,
    /// The number of the newest entry there is.
    pub head: u64,
    /// The number up to which entries were swept away, because they were too old.
    pub swept: u64,
}

/// Why the trail could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailed {
    /// The journal is closed, or has failed.
    #[error("the trail cannot be read now: the journal is closed")]
    Closed,
    /// Too many want to read.
    #[error("too many read the trail at once\n  hint: try again in a moment")]
    Busy,
    /// Too many subjects.
    #[error("one question has at most {SUBJECTS_PER_QUERY_MAX} subjects: this one has {0}")]
    TooMany(usize),
    /// It is not what was written.
    #[error("the trail is damaged: {0}\n  hint: stop the server, and look at it with forewarn store check")]
    Damaged(String),
    /// It cannot be read.
    #[error("the trail cannot be read: {0}\n  hint: look at the disk")]
    Failed(String),
}

impl From<rusqlite::Error> for ReadFailed {
    fn from(problem: rusqlite::Error) -> Self {
        match problem.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Damaged(problem.to_string()),
            Some(_) | None => Self::Failed(problem.to_string()),
        }
    }
}

/// Whom to tell what was read. One that is dropped tells that the journal is closed: nobody waits for ever.
pub(crate) struct Answer(Option<Done>);

type Done = Box<dyn FnOnce(Result<AuditBatch, ReadFailed>) + Send>;

impl Answer {
    pub(crate) fn new(done: impl FnOnce(Result<AuditBatch, ReadFailed>) + Send + 'static) -> Self {
        Self(Some(Box::new(done)))
    }

    pub(crate) fn give(mut self, page: Result<AuditBatch, ReadFailed>) {
        if let Some(done) = self.0.take() {
            done(page);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(ReadFailed::Closed));
        }
    }
}
