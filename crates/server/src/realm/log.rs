//! The log of a stream in a realm, as its driver uses it.

use std::sync::Arc;

use forewarn_control::{AuditEntry, Record, StreamPosition};
use forewarn_lifecycle::Steady;
use forewarn_store::AppendError;
use tokio::sync::Mutex;

/// The log of a stream in a realm, of which the journal of this server has a copy.
#[derive(Clone, Debug, Default)]
pub(crate) enum StreamLog {
    /// The server is alone: its journal is the log.
    #[default]
    None,
    /// Another server writes the log.
    Followed,
    /// This server writes the log, as long as no other one has taken over.
    Owned(Arc<Mutex<OwnedStream>>),
    /// Every server writes the log; the stream has no owner.
    Shared(Arc<Mutex<SharedStream>>),
}

/// A batch of the log.
#[derive(Clone, Debug)]
pub(crate) struct LoggedBatch {
    pub(crate) position: StreamPosition,
    pub(crate) records: Vec<Record>,
    pub(crate) entries: Vec<Arc<AuditEntry>>,
    pub(crate) write: LoggedWrite,
}

/// Place of the audit entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedWrite {
    /// After the last entry of the stream.
    Append,
    /// In place of the last entries, which no reader has seen.
    Rewrite,
}

impl LoggedWrite {
    /// Adds entries to those that are not published.
    pub(crate) fn apply(self, unpublished: &mut Vec<Arc<AuditEntry>>, entries: Vec<Arc<AuditEntry>>) {
        if self == Self::Rewrite {
            unpublished.truncate(unpublished.len().saturating_sub(entries.len()));
        }
        unpublished.extend(entries);
    }
}

/// The ownership of a cluster that this server has got.
pub(crate) struct NewOwnership {
    pub(crate) log: Arc<Mutex<OwnedStream>>,
    /// Number of the last batch in the log.
    pub(crate) number: u64,
    /// The steady clock of the cluster, now.
    pub(crate) clock: Steady,
}

/// Reason why a batch was not committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommitError {
    /// The journal of this server failed.
    #[error(transparent)]
    Journal(#[from] AppendError),
    /// Another server owns the cluster. The batch is not in the log.
    #[error("another server owns the cluster")]
    Fenced,
    /// Another server has written the shared stream first: decide again on its batches.
    #[error("another server has written the shared stream")]
    Behind,
    /// The log rejects the batch.
    #[error("the log rejects the batch: {0}")]
    Rejected(String),
}
