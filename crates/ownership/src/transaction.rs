//! Heads, transactions and answers of the engine, as data.
//!
//! ```text
//!   if mod-revision(head) == expected  then  put head [, put owner] [, put log/number]  else  get head
//! ```
//!
//! One comparison gives order and fencing: a server that has missed a write of the head cannot write.

use crate::clock::HeadClock;
use crate::ids::{BatchId, Revision, ServerName, Term};

/// The value of the head key of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Head<D> {
    /// The number of the last batch in the log; 0 if the log has none.
    pub number: u64,
    /// The number of changes of the owner. A stream without owners stays at 0.
    pub term: Term,
    /// The id of the transaction that wrote this head.
    pub batch: BatchId,
    /// The clock of the stream at that transaction.
    pub clock: HeadClock,
    /// Everything else that a head holds, which this crate does not read: audit chain, snapshot, format.
    pub details: D,
}

/// The value of the owner key of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerRecord {
    /// The server that drives the stream.
    pub server: ServerName,
    /// Its term.
    pub term: Term,
}

/// A conditional write of the engine, sent as it is as often as needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transaction<D, P> {
    /// The mod revision that the head must have.
    pub expected: Revision,
    /// The new value of the owner key. None: the key stays.
    pub owner: Option<OwnerRecord>,
    /// The new value of the head key.
    pub head: Head<D>,
    /// The contents of a new batch, written to the log under the number of the head together with the batch id of the
    /// head. None: the log stays.
    pub payload: Option<P>,
}

/// The answer of the engine to a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<D> {
    /// The transaction was applied.
    Applied {
        /// The new revision of the head.
        revision: Revision,
    },
    /// The comparison failed.
    Conflict {
        /// The revision of the head; [`Revision::ABSENT`] if it does not exist.
        revision: Revision,
        /// The head.
        head: Option<Head<D>>,
    },
    /// No answer came in time, or one that leaves open if the transaction was or will be applied.
    NoAnswer,
    /// The engine refused this request, and neither applied it nor ever will: too large, no space, no permission.
    Rejected,
}

/// The fate of a batch whose transaction met a foreign head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchFate {
    /// The batch is not in the log and never will be.
    NotApplied,
    /// The transaction was sent several times, and the head has been written since. It was applied exactly if the log
    /// holds this id under this number.
    Unknown {
        /// The number in the log.
        number: u64,
        /// The id of the batch.
        batch: BatchId,
    },
}

/// The contents of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit<D, P> {
    /// The id of the transaction, never used before.
    pub batch: BatchId,
    /// The contents of a new batch. None: the commit only refreshes the clock or changes the details.
    pub payload: Option<P>,
    /// The details of the new head.
    pub details: D,
    /// The clock of the stream.
    pub clock: HeadClock,
}

/// The reason why a transaction was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    /// The outcome of the transaction before is not known yet.
    #[error("a transaction of this stream is in flight")]
    InFlight,
    /// Another server owns the stream.
    #[error("this server no longer owns the stream")]
    Fenced,
    /// The replica has not read everything that the engine holds.
    #[error("the replica of this stream is behind")]
    Behind,
    /// The clock is earlier than the one of the head.
    #[error("the clock of a stream must not go back")]
    EarlierClock,
    /// The id is the one of the last transaction.
    #[error("the batch id was used before")]
    UsedBatchId,
}

/// An answer to a transaction that is not in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no transaction of this stream is in flight")]
pub struct NothingInFlight;
