//! Faults that are injected into the answers to one machine, for tests of its programs.
//!
//! A server without faults has no table. A fault changes what one caller sees: documents, journal and audit log stay
//! as they are.
//!
//! ```text
//!   status, hang, reset                      the request is not processed, as if a proxy in front had failed
//!   truncated, empty, slow, jump, hide       the request is processed, and its answer is altered
//! ```

mod shown_document;
mod table;

use std::time::Duration;

use forewarn_types::{FaultAnswer, FaultStatus};

pub(crate) use shown_document::DocumentView;
pub(crate) use table::RequestKind;
pub use table::{Fault, FaultTable, FaultTarget, TooManyFaults};

/// The faults of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenFault {
    /// The request is not processed.
    Instead(Failure),
    /// The request is processed.
    Altered { answer: Alteration, view: DocumentView },
}

/// The end of a request that is not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Status(FaultStatus),
    Hang,
    Reset,
}

/// The difference between the answer and the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alteration {
    /// Only the document may differ.
    None,
    Truncated,
    Empty,
    Slow(Duration),
}

impl TakenFault {
    /// The meaning of an answer, and of the time for which events are hidden.
    fn new(answer: Option<FaultAnswer>, hide: Option<Duration>) -> Self {
        let altered = |answer| Self::Altered { answer, view: DocumentView { hide, jumps: false } };
        match answer {
            Some(FaultAnswer::Status(status)) => Self::Instead(Failure::Status(status)),
            Some(FaultAnswer::Hang) => Self::Instead(Failure::Hang),
            Some(FaultAnswer::Reset) => Self::Instead(Failure::Reset),
            Some(FaultAnswer::Truncated) => altered(Alteration::Truncated),
            Some(FaultAnswer::Empty) => altered(Alteration::Empty),
            Some(FaultAnswer::Slow(delay)) => altered(Alteration::Slow(delay)),
            Some(FaultAnswer::Jump) => {
                Self::Altered { answer: Alteration::None, view: DocumentView { hide, jumps: true } }
            }
            // A fault that hides events is in `hide`, and no machine has a fault of a webhook.
            Some(FaultAnswer::Hide(_) | FaultAnswer::Duplicate) | None => altered(Alteration::None),
        }
    }
}
