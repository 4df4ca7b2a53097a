//! Reasons why another server gave no answer.

use std::time::Duration;

/// The reason why another server gave no answer. It says nothing about the effect of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// No connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The connection is not secure: a certificate was rejected, by this server or by the other one.
    #[error("no secure connection: {0}")]
    Handshake(String),
    /// The time limit was exceeded.
    #[error("did not answer within {} seconds", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The connection broke off.
    #[error("the connection broke off: {0}")]
    BrokenOff(String),
    /// Too many requests are in flight.
    #[error("too many requests are in flight")]
    Busy,
    /// The message is too large to be sent.
    #[error("a message of {bytes} bytes is too large: at most {max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size.
        max: usize,
    },
    /// The other server has rejected the message.
    #[error("rejected the message with status {status}: {reason}")]
    Rejected {
        /// Status of the response.
        status: u16,
        /// The reason, as the other server gives it.
        reason: String,
    },
    /// The answer is not one of a server of the same version.
    #[error("sent an invalid answer: {0}")]
    InvalidAnswer(String),
}

impl PeerError {
    /// The error, if it occurs before the other server has accepted our certificate.
    pub(crate) fn in_handshake(self) -> Self {
        let Self::BrokenOff(reason) = self else { return self };
        Self::Handshake(reason)
    }
}
