//! The entries that a client of the live stream has seen, as numbers of streams. Every server of a realm gives the entries
//! of a stream the same numbers, so a client may resume at any of them.
//!
//! ```text
//!   id: s:45,0:12    entries up to number 45 of the shared stream, and up to 12 of cluster 0
//! ```

use std::collections::BTreeMap;
use std::fmt;

use forewarn_control::{ClusterId, Stream};

use super::audit_cursor::parse_position;

/// Maximum streams that an id names. A realm with more clusters uses ids of one server.
pub(super) const STREAMS_MAX: usize = 512;

/// The shared stream in an id.
const SHARED: &str = "s";

/// Numbers of the last entries of streams that a client has. It has none of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamNumbers(BTreeMap<Stream, u64>);

impl StreamNumbers {
    /// Parses the id of a stream. None if it is malformed.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut numbers = BTreeMap::new();
        for part in id.split(',') {
            let (stream, number) = part.split_once(':')?;
            let stream = match stream {
                SHARED => Stream::Shared,
                cluster => Stream::Cluster(ClusterId(u32::try_from(parse_position(cluster)?).ok()?)),
            };
            if numbers.len() == STREAMS_MAX || numbers.insert(stream, parse_position(number)?).is_some() {
                return None;
            }
        }
        Some(Self(numbers))
    }

    /// The number of the last entry of a stream that the client has.
    pub(super) fn of(&self, stream: Stream) -> u64 {
        self.0.get(&stream).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, stream: Stream, number: u64) {
        self.0.insert(stream, number);
    }

    /// Forgets a stream that has no further entries.
    pub(super) fn forget(&mut self, stream: Stream) {
        self.0.remove(&stream);
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = Stream> {
        self.0.keys().copied()
    }
}

impl fmt::Display for StreamNumbers {
    /// The id of the stream.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, (stream, number)) in self.0.iter().enumerate() {
            let separator = if count == 0 { "" } else { "," };
            match stream {
                Stream::Shared => write!(out, "{separator}{SHARED}:{number}")?,
                Stream::Cluster(ClusterId(id)) => write!(out, "{separator}{id}:{number}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for id in ["s:45", "s:45,0:12", "s:0,0:1,7:9999999999999999999", "4294967295:1"] {
            assert_eq!(StreamNumbers::parse(id).unwrap().to_string(), id);
        }
        for wrong in
            ["", "4", "4+6", "s", "s:", ":1", "x:1", "s:1,", "s:1,s:2", "s:-1", "4294967296:1", "s:1 "]
        {
            assert_eq!(StreamNumbers::parse(wrong), None, "{wrong}");
        }
        let many = |count: usize| (0..count).map(|id| format!("{id}:1")).collect::<Vec<_>>().join(",");
        assert!(StreamNumbers::parse(&many(STREAMS_MAX)).is_some());
        assert!(StreamNumbers::parse(&many(STREAMS_MAX + 1)).is_none());
    }
}
