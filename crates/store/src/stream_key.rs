//! The number under which the tables hold a stream.

use std::fmt;

use forewarn_control::{ClusterId, Stream};

/// A stream as the tables know it: the shared stream is 0, cluster *n* is *n* + 1, and the log that all streams had in
/// common before format 2 is -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey(i64);

impl StreamKey {
    /// The audit log of a journal of format 0 or 1. Nothing is appended to it.
    pub(crate) const COMMON: Self = Self(-1);

    pub(crate) const SHARED: Self = Self(0);

    pub(crate) const fn from_column(column: i64) -> Self {
        Self(column)
    }

    pub(crate) const fn column(self) -> i64 {
        self.0
    }

    /// The stream; `None` for the common log, and for a number that no stream has.
    pub(crate) fn stream(self) -> Option<Stream> {
        match self.0 {
            0 => Some(Stream::Shared),
            column => u32::try_from(column.checked_sub(1)?).ok().map(|id| Stream::Cluster(ClusterId(id))),
        }
    }
}

impl From<Stream> for StreamKey {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Shared => Self::SHARED,
            Stream::Cluster(ClusterId(id)) => Self(i64::from(id) + 1),
        }
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream() {
            Some(Stream::Shared) => write!(out, "the shared stream"),
            Some(Stream::Cluster(ClusterId(id))) => write!(out, "cluster {id}"),
            None if *self == Self::COMMON => write!(out, "the common log"),
            None => write!(out, "stream {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_a_number_of_its_own() {
        let streams = [0, 1, 7, u32::MAX].map(|id| Stream::Cluster(ClusterId(id)));
        for stream in streams.into_iter().chain([Stream::Shared]) {
            assert_eq!(StreamKey::from(stream).stream(), Some(stream));
        }
        assert_eq!(StreamKey::from(Stream::Cluster(ClusterId(2))).column(), 3);
        for other in [StreamKey::COMMON, StreamKey(i64::MIN), StreamKey(i64::from(u32::MAX) + 2)] {
            assert_eq!(other.stream(), None);
        }
    }
}
