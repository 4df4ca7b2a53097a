//! Options for opening a journal.

use std::time::Duration;

use forewarn_lifecycle::{Now, Seed};

use crate::audit_log::AUDIT_RETENTION;
use crate::database::SyncMode;
use crate::reach::Reach;

/// Number of records after which the state is folded, unless the state has more rows than that.
pub const FOLD_AFTER: u64 = 10_000;

/// Size of the log after which a checkpoint runs: commits wait for it, so it is rare even under load.
pub const LOG_BYTES: u64 = 16 << 20;

/// Number of audit entries that wait in the journal before they are filed together: they share pages of the index.
pub const FILE_AFTER: u64 = 512;

/// Treatment of a directory without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfMissing {
    #[default]
    Create,
    /// Fails: a disk may be unmounted, and a new journal would lose all data.
    Refuse,
}

/// Treatment of the last audit entries of a stream that ends with announcements which no VM may have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnreadEntries {
    /// Readers see them: no rewrite follows.
    #[default]
    Shown,
    /// The journal is a copy of a log: the next batch of the log may replace them. Readers see them after
    /// [`crate::Journal::show_all_entries`].
    Hidden,
}

/// Options for opening a journal.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of a new journal. An existing one has its own.
    pub seed: Seed,
    /// Creation time of a new journal.
    pub now: Now,
    /// Treatment of a directory without a journal.
    pub missing: IfMissing,
    /// Number of records after which the state is folded, unless the state has more rows than that.
    pub fold_after: u64,
    /// Size of the log after which a checkpoint runs.
    pub log_bytes: u64,
    /// Number of audit entries that wait in the journal before they are filed, unless a reader needs them.
    pub file_after: u64,
    pub sync: SyncMode,
    /// Retention of audit entries.
    pub audit_retention: Duration,
    /// End of the journal when this process last had it open: the journal must not end before.
    pub reached: Option<Reach>,
    /// Treatment of entries that a rewrite may replace.
    pub unread: UnreadEntries,
}

impl Options {
    /// The defaults: a missing journal is created.
    #[must_use]
    pub fn new(seed: Seed, now: Now) -> Self {
        let (missing, sync) = (IfMissing::Create, SyncMode::EachCommit);
        let (fold_after, log_bytes, audit_retention) = (FOLD_AFTER, LOG_BYTES, AUDIT_RETENTION);
        let file_after = FILE_AFTER;
        let (reached, unread) = (None, UnreadEntries::Shown);
        Self { seed, now, missing, fold_after, log_bytes, file_after, sync, audit_retention, reached, unread }
    }
}
