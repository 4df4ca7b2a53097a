//! The log of a stream in a realm, as its driver uses it.

use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, Record, StreamPosition};
use forewarn_lifecycle::Steady;
use forewarn_ownership::{BeginError, BootId, ClockAnchor, HeadClock};
use forewarn_realm::{
    AuditMode, CommitError as RealmCommitError, CommitFate, CommitOutcome, MoveOutcome, NewBatch,
    OwnedStream, OwnerRecord, ServerName, SharedOutcome, SharedStream, StreamContent, StreamHead,
    StreamPosition as LogPosition, StreamTime,
};
use forewarn_store::AppendError;
use tokio::sync::Mutex;

use crate::clock::Clock;

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
    /// Another server owns the cluster.
    #[error("another server owns the cluster")]
    Fenced(CommitFate),
    /// Another server has written the shared stream first: decide again on its batches.
    #[error("another server has written the shared stream")]
    Behind,
    /// The engine does not answer, or refuses the batch. It is not in the log.
    #[error("{0}")]
    NotCommitted(String),
}

impl StreamLog {
    /// The place of the next batch of so many records. None outside of a realm.
    pub(crate) async fn next_position(&self, records: usize) -> Option<StreamPosition> {
        match self {
            Self::None | Self::Followed => None,
            Self::Owned(owned) => Some(position_after(owned.lock().await.head(), records)),
            Self::Shared(shared) => shared.lock().await.head().map(|head| position_after(head, records)),
        }
    }

    /// Writes a batch, and waits until its outcome is known.
    pub(crate) async fn commit(
        &self,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        mode: AuditMode,
        clock: &Clock,
    ) -> Result<(), CommitError> {
        let new = || NewBatch {
            records: records.to_vec(),
            entries: entries.to_vec(),
            mode,
            time: stream_time(clock),
        };
        match self {
            Self::None => Ok(()),
            Self::Followed => Err(CommitError::Fenced(CommitFate::NotApplied)),
            Self::Owned(owned) => match owned.lock().await.commit(&new()).await {
                Ok(CommitOutcome::Committed { .. }) => Ok(()),
                Ok(CommitOutcome::Fenced { fate, .. }) => Err(CommitError::Fenced(fate)),
                Err(error) => Err(owned_error(&error)),
            },
            Self::Shared(shared) => match shared.lock().await.commit(&new()).await {
                Ok(SharedOutcome::Committed { .. } | SharedOutcome::Overtaken { .. }) => Ok(()),
                Ok(SharedOutcome::Behind { .. }) => Err(CommitError::Behind),
                Err(error) => Err(CommitError::NotCommitted(error.to_string())),
            },
        }
    }

    /// Writes the clock into the head of a stream that this server owns, so that another server continues from there.
    pub(crate) async fn refresh_clock(&self, clock: &Clock) -> Result<(), CommitError> {
        let Self::Owned(owned) = self else { return Ok(()) };
        match owned.lock().await.refresh_clock(stream_time(clock)).await {
            Ok(CommitOutcome::Committed { .. }) => Ok(()),
            Ok(CommitOutcome::Fenced { fate, .. }) => Err(CommitError::Fenced(fate)),
            Err(error) => Err(owned_error(&error)),
        }
    }

    /// Gives the stream to another server, and waits until the outcome is known.
    pub(crate) async fn hand_over(&self, to: &ServerName, clock: &Clock) -> Result<OwnerRecord, CommitError> {
        let Self::Owned(owned) = self else { return Err(CommitError::Fenced(CommitFate::NotApplied)) };
        match owned.lock().await.hand_over(to, stream_time(clock)).await {
            Ok(MoveOutcome::Moved { to, .. }) => Ok(to),
            Ok(MoveOutcome::Fenced { .. }) => Err(CommitError::Fenced(CommitFate::NotApplied)),
            Err(error) => Err(owned_error(&error)),
        }
    }

    /// Number of the last batch of the shared stream after which this server would write. None for other streams.
    pub(crate) async fn shared_number(&self) -> Option<u64> {
        let Self::Shared(shared) = self else { return None };
        shared.lock().await.head().map(|head| head.number)
    }

    /// Everything of the shared stream that the copy of this server lacks.
    pub(crate) async fn missing_content(&self) -> Result<Option<StreamContent>, CommitError> {
        let Self::Shared(shared) = self else { return Ok(None) };
        let content = shared.lock().await.catch_up().await;
        content.map(Some).map_err(|error| CommitError::NotCommitted(error.to_string()))
    }
}

/// The error of a commit to a stream that this server owns. Without an outcome, the stream has to be read again: it is
/// given up, and taken over anew.
fn owned_error(error: &RealmCommitError) -> CommitError {
    match error {
        // A commit of the state beside the driver had no outcome, or another owner.
        RealmCommitError::Unknown(_) | RealmCommitError::Begin(BeginError::InFlight | BeginError::Fenced) => {
            tracing::warn!(%error, "cluster is given up");
            CommitError::Fenced(CommitFate::Unknown)
        }
        RealmCommitError::Batch(_)
        | RealmCommitError::NotTheLastEntries
        | RealmCommitError::Begin(_)
        | RealmCommitError::NotCommitted(_) => CommitError::NotCommitted(error.to_string()),
    }
}

/// The clocks of a commit.
pub(crate) fn stream_time(clock: &Clock) -> StreamTime {
    let now = clock.now();
    let anchor =
        clock.boot().map(|boot| ClockAnchor { boot: BootId(boot.id), offset_millis: boot.offset_millis });
    StreamTime { clock: HeadClock { steady: now.steady, anchor }, wall: now.wall }
}

/// A place in a stream with the end of its audit log.
pub(crate) fn place(at: StreamPosition, chain: Chain) -> LogPosition {
    LogPosition { number: at.number, records: at.records, chain }
}

/// The revision of a state in a realm: plans that were made on one server are valid on another. Decisions that are not in
/// the log count on top.
pub(crate) fn realm_revision(number: u64) -> u64 {
    number << 20
}

fn position_after(head: &StreamHead, records: usize) -> StreamPosition {
    StreamPosition {
        number: head.number + 1,
        term: head.term.0,
        records: head.details.records + records as u64,
    }
}
