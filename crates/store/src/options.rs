//! Options for opening a journal.

use std::time::Duration;

use forewarn_lifecycle::{Now, Seed};

use crate::database::Syncs;
use crate::reach::Reach;
use crate::trail::TRAIL_KEEP;

/// Records after which a state is kept anew, unless the state has more rows than that.
pub const FOLD_AFTER: u64 = 10_000;

/// Bytes in the log after which it is tidied up.
pub const LOG_BYTES: u64 = 4 << 20;

/// The treatment of a directory without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// A new one is made there.
    #[default]
    Create,
    /// There was one, and it must be there: a disk may have gone away, and a new journal would forget everything.
    Refuse,
}

/// Options for opening a journal.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The secret of a cluster that is new. One that is there has its own.
    pub seed: Seed,
    /// The time, for a journal that is new.
    pub now: Now,
    /// What becomes of a directory without a journal.
    pub missing: Missing,
    /// Records after which a state is kept anew, unless the state has more rows than that.
    pub fold_after: u64,
    /// Bytes in the log after which it is tidied up.
    pub log_bytes: u64,
    /// When a commit is on the disk.
    pub sync: Syncs,
    /// How long entries of the trail are kept.
    pub trail_keep: Duration,
    /// The end of the journal when this process had it open last: the journal must not end before.
    pub reached: Option<Reach>,
}

impl Options {
    /// The usual ones: a journal that is not there is made.
    #[must_use]
    pub fn new(seed: Seed, now: Now) -> Self {
        let (missing, sync) = (Missing::Create, Syncs::EachCommit);
        let (fold_after, log_bytes, trail_keep) = (FOLD_AFTER, LOG_BYTES, TRAIL_KEEP);
        Self { seed, now, missing, fold_after, log_bytes, sync, trail_keep, reached: None }
    }
}
