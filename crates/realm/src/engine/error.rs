//! Errors of the engine: they say whether a request may have been applied.

use forewarn_ownership::Revision;

/// Reason why a call of the engine has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The request was not applied, and may be repeated.
    #[error("engine not reached: {0}")]
    NotReached(String),
    /// The request may have been applied, now or later.
    #[error("engine has not answered: {0}")]
    Unknown(String),
    /// The request was not applied, and will not be if it is repeated.
    #[error("request refused by the engine: {message}")]
    Refused {
        /// Kind of refusal.
        refusal: EngineRefusal,
        /// Message of the engine.
        message: String,
    },
    /// The revision can no longer be read or watched.
    #[error("history of the engine is compacted up to revision {0:?}")]
    Compacted(Option<Revision>),
}

/// Kind of refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineRefusal {
    /// The request or its answer exceeds a limit.
    TooLarge,
    /// The lease does not exist, or has expired.
    NoLease,
    /// The user has no permission.
    Denied,
    /// Another reason.
    Invalid,
}

impl EngineError {
    /// Returns true if the same request may have an answer later.
    #[must_use]
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Self::NotReached(_) | Self::Unknown(_) => true,
            Self::Refused { .. } | Self::Compacted(_) => false,
        }
    }

    pub(crate) fn refused(refusal: EngineRefusal, message: impl Into<String>) -> Self {
        Self::Refused { refusal, message: message.into() }
    }
}
