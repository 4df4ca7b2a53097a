//! Requests to the committer thread.

use std::path::PathBuf;
use std::sync::Arc;

use forewarn_control::AuditEntry;
use forewarn_lifecycle::Now;

use crate::audit_log::{AuditQuery, ReadError, ReadReply};
use crate::error::{AppendError, CopyError};
use forewarn_control::ControlState;

/// A request to the committer.
pub(crate) enum CommitterRequest {
    /// Writes records and audit entries.
    Append(Append),
    /// Folds the state after all earlier requests.
    Fold(Box<ControlState>),
    /// Queries the audit log.
    Read { query: AuditQuery, reply: ReadReply },
    /// Copies everything that is committed.
    Copy { to: PathBuf, done: Box<dyn FnOnce(Result<(), CopyError>) + Send> },
    /// Ends the committer after all earlier requests.
    Close { done: AppendCallback },
}

/// Records with their audit entries, and the callback for the outcome.
pub(crate) struct Append {
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) entries: Vec<Arc<AuditEntry>>,
    pub(crate) mode: AuditWrite,
    /// Time of the clocks, if there are records.
    pub(crate) clock: Option<Now>,
    pub(crate) done: AppendCallback,
}

/// Position of the entries of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditWrite {
    /// After the last entry.
    Append,
    /// In place of the last entries, which no reader has seen.
    Rewrite,
}

pub(crate) type AppendCallback = Box<dyn FnOnce(Result<(), AppendError>) + Send>;

impl CommitterRequest {
    /// Rejects the request: the committer has ended.
    pub(crate) fn refuse(self) {
        match self {
            Self::Append(Append { done, .. }) | Self::Close { done } => done(Err(AppendError::Closed)),
            Self::Copy { done, .. } => done(Err(CopyError::Closed)),
            // Dropping a reply sends `Closed`.
            Self::Fold(_) | Self::Read { .. } => {}
        }
    }

    /// Rejects the request because the queue is full. Only reads get another error than from [`Self::refuse`].
    pub(crate) fn refuse_as_busy(self) {
        match self {
            Self::Read { reply, .. } => reply.send(Err(ReadError::Busy)),
            Self::Append(_) | Self::Fold(_) | Self::Copy { .. } | Self::Close { .. } => self.refuse(),
        }
    }
}
