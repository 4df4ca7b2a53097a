//! The error of a number that a checked type does not have.

/// A number that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutOfRange(
    /// The range, as a sentence.
    pub &'static str,
);
