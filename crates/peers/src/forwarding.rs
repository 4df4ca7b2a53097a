//! Outcomes of forwarded requests.

use forewarn_control::request::Request;

use crate::error::PeerError;
use crate::message::{NotOwner, OwnerDecision};

/// The outcome of a request that was forwarded to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// The other server has not received the request, or has rejected it unread. Nothing has changed.
    NotSent(PeerError),
    /// The request was sent, and there is no answer. It may have been carried out, or may still be.
    Unknown(PeerError),
    /// The other server does not own the stream. Nothing has changed.
    NotOwner(NotOwner),
    /// The owner has decided.
    Answered(Box<OwnerDecision>),
}

impl ForwardOutcome {
    /// Returns true if the request has no answer, and sending it again cannot carry it out twice.
    #[must_use]
    pub fn may_repeat(&self, request: &Request) -> bool {
        match self {
            Self::NotSent(_) | Self::NotOwner(_) => true,
            Self::Unknown(_) => request.is_repeatable(),
            Self::Answered(_) => false,
        }
    }
}
