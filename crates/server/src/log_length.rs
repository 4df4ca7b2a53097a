//! The log of a stream is kept short: its writer stores the state, and deletes the batches before it.

use forewarn_realm::{
    CommitOutcome, KnownHead, RealmError, SharedOutcome, SnapshotRef, SnapshotWriting, StreamHead,
    StreamTime, TrimProgress,
};
use forewarn_store::StreamState;

use crate::clock::Clock;
use crate::realm_log::StreamLog;

/// Bytes of a part of a stored state, about.
const PART_BYTES: usize = 32 << 10;

/// Limits of the log of a stream since its last stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Number of batches. Of a large state, there may be more of them: an eighth of its rows in records.
    pub batches: u64,
    /// Bytes of batches. Of a large state, there may be as many as it has.
    pub bytes: usize,
}

impl Default for LogLimits {
    /// 1,000 batches, and 8 MiB: a server that starts reads them within a second.
    fn default() -> Self {
        Self { batches: 1_000, bytes: 8 << 20 }
    }
}

impl LogLimits {
    fn are_exceeded(&self, head: &StreamHead, bytes: usize) -> bool {
        let (base, records, rows, parts) = head.details.snapshot.map_or((0, 0, 0, 0), |stored| {
            (stored.id.base, stored.records, stored.rows, stored.chunks as usize)
        });
        let batches = head.number.saturating_sub(base);
        let records = head.details.records.saturating_sub(records);
        batches >= self.batches && records >= rows / 8
            || batches > 0 && bytes >= self.bytes.max(parts.saturating_mul(PART_BYTES))
    }
}

/// A log that this server writes, for the task that keeps it short.
pub(crate) struct WrittenLog {
    pub(crate) log: StreamLog,
    /// The clock of the stream.
    pub(crate) clock: Clock,
    /// A state to be stored, if the log has become long.
    pub(crate) writing: Option<SnapshotWriting>,
}

impl StreamLog {
    /// Begins to store the state of the stream after the batch with that number, if the log ends there and is long.
    pub(crate) async fn begin_snapshot(
        &self,
        limits: &LogLimits,
        number: u64,
        state: impl FnOnce() -> StreamState,
    ) -> Option<SnapshotWriting> {
        let is_due = |head: &StreamHead, bytes| head.number == number && limits.are_exceeded(head, bytes);
        match self {
            Self::None | Self::Followed => None,
            Self::Owned(owned) => {
                let owned = owned.lock().await;
                is_due(owned.head(), owned.logged_bytes()).then(|| owned.begin_snapshot(state()).ok())?
            }
            Self::Shared(shared) => {
                let shared = shared.lock().await;
                let head = shared.head()?;
                is_due(head, 0).then(|| shared.begin_snapshot(state()).ok())?
            }
        }
    }

    /// The copy of the shared stream has everything up to a head.
    pub(crate) async fn follow_head(&self, known: KnownHead) {
        if let Self::Shared(shared) = self
            && let Err(error) = shared.lock().await.follow(known)
        {
            tracing::debug!(%error, "cannot follow the head of the shared stream");
        }
    }

    /// The last head that this server knows.
    pub(crate) async fn head(&self) -> Option<StreamHead> {
        match self {
            Self::None | Self::Followed => None,
            Self::Owned(owned) => Some(owned.lock().await.head().clone()),
            Self::Shared(shared) => shared.lock().await.head().cloned(),
        }
    }

    /// Makes a state the stored one. Returns false if another server has written the stream meanwhile.
    pub(crate) async fn publish_snapshot(
        &self,
        snapshot: SnapshotRef,
        time: StreamTime,
    ) -> Result<bool, forewarn_realm::CommitError> {
        match self {
            Self::None | Self::Followed => Ok(false),
            Self::Owned(owned) => match owned.lock().await.publish_snapshot(snapshot, time).await? {
                CommitOutcome::Committed { .. } => Ok(true),
                CommitOutcome::Fenced { .. } => Ok(false),
            },
            Self::Shared(shared) => match shared.lock().await.publish_snapshot(snapshot, time).await? {
                SharedOutcome::Committed { .. } | SharedOutcome::Overtaken { .. } => Ok(true),
                SharedOutcome::Behind { .. } => Ok(false),
            },
        }
    }

    /// Deletes some batches up to a number that the stored state covers.
    pub(crate) async fn trim(&self, upto: u64) -> Result<TrimProgress, RealmError> {
        match self {
            Self::None | Self::Followed => Ok(TrimProgress::Outdated),
            Self::Owned(owned) => owned.lock().await.trim(upto).await,
            Self::Shared(shared) => shared.lock().await.trim(upto).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::Chain;
    use forewarn_lifecycle::Timestamp;
    use forewarn_realm::{BatchId, HeadClock, HeadDetails, SnapshotId, Term};

    use super::*;

    fn head(number: u64, records: u64, snapshot: Option<SnapshotRef>) -> StreamHead {
        let details = HeadDetails {
            records,
            chain: Chain::default(),
            snapshot,
            wall: Timestamp::from_millis(0),
            format: 1,
        };
        let (term, batch, clock) = (Term(1), BatchId([0; 16]), HeadClock::default());
        StreamHead { number, term, batch, clock, details }
    }

    #[test]
    fn the_log_may_grow_with_the_state() {
        let limits = LogLimits { batches: 100, bytes: 1_000_000 };
        assert!(!limits.are_exceeded(&head(99, 10_000, None), 999_999));
        assert!(limits.are_exceeded(&head(100, 100, None), 0));
        assert!(limits.are_exceeded(&head(1, 1, None), 1_000_000));
        assert!(!limits.are_exceeded(&head(0, 0, None), 1_000_000));
        let id = SnapshotId { term: Term(1), base: 50, nonce: [0; 8] };
        let stored = SnapshotRef { id, chunks: 100, rows: 8_000, records: 500, chain: Chain::default() };
        assert!(!limits.are_exceeded(&head(1_000, 1_499, Some(stored)), 3_000_000));
        assert!(limits.are_exceeded(&head(1_000, 1_500, Some(stored)), 0));
        assert!(limits.are_exceeded(&head(51, 501, Some(stored)), 4_000_000));
    }
}
