//! Streams: the shared state and each cluster. Every record, request and audit entry belongs to one.

pub use forewarn_types::ClusterId;

/// The part of the state that a record, a request or an audit entry belongs to. None belongs to two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The state that clusters share.
    Shared,
    Cluster(ClusterId),
}
