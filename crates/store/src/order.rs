//! Orders to the thread that writes.

use std::path::PathBuf;
use std::sync::Arc;

use forewarn_control::AuditEntry;
use forewarn_lifecycle::Now;

use crate::error::{AppendFailed, CopyError};
use crate::trail::{Answer, AuditQuery, ReadFailed};
use forewarn_control::ControlState;

/// What the thread is asked for.
pub(crate) enum Order {
    /// Records and entries are to be kept.
    Append(Append),
    /// The state after everything that was asked for before this.
    Fold(Box<ControlState>),
    /// Entries of the trail are to be read.
    Read { query: AuditQuery, answer: Answer },
    /// A copy of everything that is committed.
    Copy { to: PathBuf, done: Box<dyn FnOnce(Result<(), CopyError>) + Send> },
    /// The end, after everything that was asked for before.
    Close { done: Done },
}

/// Records, what the trail tells of them, and what is to be called when they are durable or will never be.
pub(crate) struct Append {
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) trail: Vec<Arc<AuditEntry>>,
    pub(crate) how: TrailWrite,
    /// What the clocks showed then, if there are any.
    pub(crate) clock: Option<Now>,
    pub(crate) done: Done,
}

/// The place of the entries of an append in the trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrailWrite {
    /// After the last one.
    Append,
    /// That of the last ones, which no reader has seen.
    Rewrite,
}

pub(crate) type Done = Box<dyn FnOnce(Result<(), AppendFailed>) + Send>;

impl Order {
    /// Nobody is there who could do it.
    pub(crate) fn refuse(self) {
        match self {
            Self::Append(Append { done, .. }) | Self::Close { done } => done(Err(AppendFailed::Closed)),
            Self::Copy { done, .. } => done(Err(CopyError::Closed)),
            // An answer that is dropped says it.
            Self::Fold(_) | Self::Read { .. } => {}
        }
    }

    /// Too much waits to be done; the same as nobody being there, but for who only wants to read.
    pub(crate) fn refuse_as_busy(self) {
        match self {
            Self::Read { answer, .. } => answer.give(Err(ReadFailed::Busy)),
            Self::Append(_) | Self::Fold(_) | Self::Copy { .. } | Self::Close { .. } => self.refuse(),
        }
    }
}
