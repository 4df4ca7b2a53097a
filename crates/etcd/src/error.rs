//! Errors of calls: they say whether the request may have been applied.

/// Maximum characters of a message of etcd in an error.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// The request was not sent: it is not applied.
    #[error("request not sent to etcd at {endpoint}: {message}{}", .obstacle.hint())]
    NotSent {
        /// URL of the member, without path.
        endpoint: String,
        /// Kind of obstacle.
        obstacle: Obstacle,
        /// Description of the obstacle.
        message: String,
    },
    /// The request was rejected by etcd: it is not applied.
    #[error("request rejected by etcd at {endpoint}: {message}{}", .rejection.hint())]
    Rejected {
        /// URL of the member, without path.
        endpoint: String,
        /// Kind of rejection.
        rejection: Rejection,
        /// Message of etcd.
        message: String,
    },
    /// The request was sent, and may have been applied, now or later.
    #[error("unknown result of a request to etcd at {endpoint}: {message}{}", .doubt.hint())]
    Unknown {
        /// URL of the member, without path.
        endpoint: String,
        /// Kind of doubt.
        doubt: Doubt,
        /// Description of the event, or message of etcd.
        message: String,
    },
}

/// Obstacle that kept a request from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// No connection: refused, timed out, or without trust.
    Unreachable,
    /// The time limit of the call passed before the request could be sent.
    TimedOut,
    /// The request exceeds the client's own limit.
    TooLarge,
}

/// Rejection of a request: it is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The request is invalid, or does not fit the state of the store.
    Invalid,
    /// The request exceeds a limit of etcd, 1.5 MiB by default.
    TooLarge,
    /// The transaction has too many operations for etcd, by default more than 128.
    TooManyOperations,
    /// The transaction writes a key twice.
    DuplicateKey,
    /// The revision has been compacted.
    Compacted,
    /// The revision does not exist yet.
    FutureRevision,
    /// The lease does not exist, or has expired.
    LeaseNotFound,
    /// A lease with this id exists.
    LeaseExists,
    /// The user has no permission.
    PermissionDenied,
    /// The token is missing, has expired, or was revoked.
    NotAuthenticated,
    /// The user does not exist, or has another password.
    WrongLogin,
    /// Authentication is switched off in etcd.
    LoginDisabled,
    /// The member knows no leader, and has not processed the request.
    NoLeader,
    /// The member is overloaded, and has not processed the request.
    Overloaded,
    /// The member does not support the request: it is too old, a learner, or not etcd.
    Unsupported,
}

/// Reason why the result of a request is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The time limit of the call has passed.
    TimedOut,
    /// The connection broke after the request was sent.
    Broken,
    /// The member could not complete the request: no leader, another leader, a timeout of its own.
    Unavailable,
    /// The database exceeds its quota. The write that exceeds it is applied, and still answered with this error.
    NoSpace,
    /// The data of members differ.
    Corrupt,
    /// The answer is too large or malformed.
    InvalidAnswer,
    /// Another error of etcd.
    Other,
}

impl EtcdError {
    /// Returns true if the request may have been applied.
    #[must_use]
    pub fn may_be_applied(&self) -> bool {
        match self {
            Self::NotSent { .. } | Self::Rejected { .. } => false,
            Self::Unknown { .. } => true,
        }
    }

    /// The kind of rejection, if etcd has rejected the request.
    #[must_use]
    pub fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Rejected { rejection, .. } => Some(*rejection),
            Self::NotSent { .. } | Self::Unknown { .. } => None,
        }
    }

    /// The kind of doubt, if the result is unknown.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        match self {
            Self::Unknown { doubt, .. } => Some(*doubt),
            Self::NotSent { .. } | Self::Rejected { .. } => None,
        }
    }

    /// The URL of the member, without path.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        match self {
            Self::NotSent { endpoint, .. }
            | Self::Rejected { endpoint, .. }
            | Self::Unknown { endpoint, .. } => endpoint,
        }
    }

    /// Returns true if another endpoint may do better.
    pub(crate) fn is_of_endpoint(&self) -> bool {
        match self {
            Self::NotSent { obstacle, .. } => match obstacle {
                Obstacle::Unreachable | Obstacle::TimedOut => true,
                Obstacle::TooLarge => false,
            },
            Self::Rejected { rejection, .. } => {
                matches!(rejection, Rejection::NoLeader | Rejection::Unsupported)
            }
            Self::Unknown { doubt, .. } => {
                matches!(doubt, Doubt::TimedOut | Doubt::Broken | Doubt::Unavailable)
            }
        }
    }

    pub(crate) fn not_sent(endpoint: String, obstacle: Obstacle, message: &str) -> Self {
        Self::NotSent { endpoint, obstacle, message: shortened(message) }
    }

    pub(crate) fn rejected(endpoint: String, rejection: Rejection, message: &str) -> Self {
        Self::Rejected { endpoint, rejection, message: shortened(message) }
    }

    pub(crate) fn unknown(endpoint: String, doubt: Doubt, message: &str) -> Self {
        Self::Unknown { endpoint, doubt, message: shortened(message) }
    }
}

impl Obstacle {
    fn hint(self) -> &'static str {
        match self {
            Self::Unreachable | Self::TimedOut => "",
            Self::TooLarge => "\n  hint: split it into several requests",
        }
    }
}

impl Rejection {
    fn hint(self) -> &'static str {
        match self {
            Self::TooLarge => "\n  hint: raise --max-request-bytes of etcd",
            Self::TooManyOperations => "\n  hint: raise --max-txn-ops of etcd",
            Self::WrongLogin => "\n  hint: check the user and the password",
            Self::PermissionDenied => "\n  hint: grant the user a role for these keys",
            Self::NotAuthenticated => "\n  hint: etcd requires a user and a password",
            Self::Unsupported => "\n  hint: etcd 3.4 or newer is required",
            Self::Invalid
            | Self::DuplicateKey
            | Self::Compacted
            | Self::FutureRevision
            | Self::LeaseNotFound
            | Self::LeaseExists
            | Self::LoginDisabled
            | Self::NoLeader
            | Self::Overloaded => "",
        }
    }
}

impl Doubt {
    fn hint(self) -> &'static str {
        match self {
            Self::NoSpace => "\n  hint: compact and defragment etcd, then disarm its alarm",
            Self::Corrupt => "\n  hint: replace the damaged member of etcd",
            Self::TimedOut | Self::Broken | Self::Unavailable | Self::InvalidAnswer | Self::Other => "",
        }
    }
}

/// An error with its causes, on one line. A cause whose text is already part of the error is not repeated.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_phrase_with_a_hint_on_its_own_line() {
        let error = EtcdError::rejected("http://h/".to_owned(), Rejection::TooLarge, "request is too large");
        assert_eq!(
            error.to_string(),
            "request rejected by etcd at http://h/: request is too large\n  hint: raise --max-request-bytes of etcd"
        );
        assert!(!error.may_be_applied());
        let error = EtcdError::unknown("http://h/".to_owned(), Doubt::Broken, "it broke");
        assert_eq!(error.to_string(), "unknown result of a request to etcd at http://h/: it broke");
        assert!(error.may_be_applied());
    }

    #[test]
    fn a_long_message_is_shortened() {
        let error = EtcdError::not_sent("h".to_owned(), Obstacle::Unreachable, &"ü".repeat(1_000));
        assert_eq!(error.to_string().chars().filter(|letter| *letter == 'ü').count(), 300);
    }
}
