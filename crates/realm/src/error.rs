//! Errors of a realm.

use forewarn_control::Stream;
use forewarn_ownership::BeginError;
use forewarn_store::Malformed;

use crate::batch::BatchError;
use crate::engine::EngineError;
use crate::keys::RealmKey;

/// Reason why something cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RealmError {
    /// The engine has not answered in time.
    #[error("engine unavailable: {0}\n  hint: check etcd and the network; nothing is lost")]
    Unavailable(EngineError),
    /// The engine refuses the request.
    #[error("engine refuses the request: {0}")]
    Refused(EngineError),
    /// A value is not one that this program has written.
    #[error("damaged value of key {key}: {what}\n  hint: keep a copy of etcd, then restore a backup")]
    Damaged { key: String, what: String },
    /// A key is missing without which others have no meaning.
    #[error("missing key {key}: {what}\n  hint: keep a copy of etcd, then restore a backup")]
    Missing { key: String, what: &'static str },
    /// The stream does not exist.
    #[error("no such stream: {0}")]
    NoStream(Stream),
    /// Another server has taken the stream over.
    #[error("stream {0} belongs to another server")]
    Deposed(Stream),
    /// The head of a stream is older than one that was seen before: the engine was restored from a backup.
    #[error(
        "stream {stream} ends with batch {found}, and batch {known} was seen before\n  hint: etcd was restored from a backup"
    )]
    Older {
        stream: Stream,
        /// The number of the batch that was seen before.
        known: u64,
        /// The number in the head.
        found: u64,
    },
    /// The log no longer tells if a batch was applied.
    #[error("log of stream {0} no longer tells if a batch was applied")]
    Undecided(Stream),
    /// An answer that the commit protocol does not give.
    #[error("unexpected answer of the commit protocol")]
    Protocol,
    /// Something exceeds a limit.
    #[error("limit exceeded: {0}")]
    Limit(&'static str),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
}

/// Reason why a commit has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The batch cannot be written. Nothing has changed.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Audit entries replace others than the last ones that this stream has committed. Nothing has changed.
    #[error("audit entries would replace others than the last ones")]
    NotTheLastEntries,
    /// The commit does not follow the head. Nothing has changed.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The engine is unavailable, or refuses the commit. Nothing has changed.
    #[error("not committed: {0}")]
    NotCommitted(RealmError),
    /// The outcome cannot be determined: drop the stream, and read it again.
    #[error("unknown outcome of a commit: {0}")]
    Unknown(RealmError),
}

impl RealmError {
    pub(crate) fn damaged(key: &RealmKey, what: &dyn std::fmt::Display) -> Self {
        Self::Damaged { key: key.to_string(), what: what.to_string() }
    }

    pub(crate) fn malformed(key: &RealmKey) -> impl FnOnce(Malformed) -> Self {
        move |error| Self::damaged(key, &error)
    }

    pub(crate) fn missing(key: &RealmKey, what: &'static str) -> Self {
        Self::Missing { key: key.to_string(), what }
    }
}

impl From<EngineError> for RealmError {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::NotReached(_) | EngineError::Unknown(_) | EngineError::Compacted(_) => {
                Self::Unavailable(error)
            }
            EngineError::Refused { .. } => Self::Refused(error),
        }
    }
}
