//! Status of the committer that other threads read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use forewarn_control::Stream;

use crate::audit_check::AuditCheck;
use crate::error::AppendError;
use crate::heading::JournalHeading;
use crate::reach::Reach;
use crate::stream_key::StreamKey;

/// Status of the committer that other threads read.
#[derive(Debug)]
pub(crate) struct CommitterStatus {
    /// Streams that have enough records to be folded.
    pub(crate) wants_fold: Mutex<BTreeSet<StreamKey>>,
    /// Number of durable records.
    pub(crate) records: AtomicU64,
    /// End of the durable and recorded journal.
    pub(crate) reach: Mutex<Reach>,
    /// Error that ended the committer.
    pub(crate) failure: Mutex<Option<AppendError>>,
    /// Last number that readers see, of streams with hidden entries.
    pub(crate) hidden: Mutex<BTreeMap<StreamKey, u64>>,
    pub(crate) audit_check: Mutex<AuditCheck>,
    /// First and last number of the newest entries that are missing, by stream.
    pub(crate) missing: Mutex<BTreeMap<Stream, (u64, u64)>>,
}

impl CommitterStatus {
    /// The status of a journal that was opened: readers see every entry.
    pub(crate) fn new(journal: &JournalHeading) -> Self {
        Self {
            wants_fold: Mutex::default(),
            records: AtomicU64::new(journal.records),
            reach: Mutex::new(Reach::of(journal)),
            failure: Mutex::new(None),
            hidden: Mutex::default(),
            audit_check: Mutex::default(),
            missing: Mutex::default(),
        }
    }
}
