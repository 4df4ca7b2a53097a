//! Streams: the shared state and each cluster. Every record, request and audit entry belongs to one.

use std::fmt;

/// Number of a cluster. It is never used again; the name of a cluster may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub u32);

/// The part of the state that a record, a request or an audit entry belongs to. None belongs to two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The state that clusters share.
    Shared,
    /// A cluster.
    Cluster(ClusterId),
}

impl ClusterId {
    /// The cluster of requests that name none. It always exists.
    pub const DEFAULT: Self = Self(0);

    /// Its name, which never changes.
    pub const DEFAULT_NAME: &'static str = "default";
}

impl fmt::Display for ClusterId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}
