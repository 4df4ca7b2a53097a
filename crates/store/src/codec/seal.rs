//! Seals: a version and a checksum around everything that is stored. The checksum covers the location.
//!
//! ```text
//!   version   checksum                                   content
//!   1 byte    8 bytes, over location, version, content   …
//! ```
//!
//! The checksum is `SipHash` with a fixed key: 64 bits instead of the 32 of a CRC, and the rules need it anyway. It
//! detects accidents; a process that can write the file can also compute it. It covers the location (table, stream
//! and number), so that a record in the wrong location is detected.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{Malformed, Reader, Stored, Writer, from_bytes, to_bytes};
use crate::stream_key::StreamKey;

/// Version of everything except records and parts of the state.
const VERSION: u8 = 0;

/// Version of records and parts of the state. Version 0 is still read: see [`super::old`].
const STATE_VERSION: u8 = 1;

/// Location of sealed content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealLocation {
    /// Record with that number of a journal without streams.
    Record(u64),
    /// Part of the state of a generation: of a journal without streams, or of an export.
    Chunk {
        generation: u64,
        /// Number of the part, from 0.
        number: u64,
    },
    /// The heading of a journal without streams, or of an export.
    Head,
    /// Record of a stream.
    StreamRecord { stream: StreamKey, number: u64 },
    /// Part of the state of a stream.
    StreamChunk { stream: StreamKey, generation: u64, number: u64 },
    /// Run of audit entries that wait in the journal.
    Run(u64),
    /// Audit entry of a run, with its number in the log of its stream.
    RunEntry { run: u64, number: u64 },
    /// The origin of an audit file.
    Origin,
    /// Audit entry of a stream. In the common log, positions are numbers.
    Entry { stream: StreamKey, position: u64 },
    /// The heading of the journal, of which there is one.
    JournalHead,
    /// The heading of a stream.
    StreamHead(StreamKey),
    /// The reach of the journal, in a file of its own.
    Reach,
}

impl SealLocation {
    /// Version in which content is written.
    const fn version(self) -> u8 {
        match self {
            Self::Record(_) | Self::Chunk { .. } | Self::StreamRecord { .. } | Self::StreamChunk { .. } => {
                STATE_VERSION
            }
            Self::Entry { .. }
            | Self::Run(_)
            | Self::RunEntry { .. }
            | Self::Origin
            | Self::Head
            | Self::JournalHead
            | Self::StreamHead(_)
            | Self::Reach => VERSION,
        }
    }
}

impl Stored for StreamKey {
    fn write(&self, out: &mut Writer) {
        self.column().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        i64::read(input).map(Self::from_column)
    }
}

const KEY: [u8; 16] = *b"forewarn journal";

fn checksum(location: SealLocation, version: u8, content: &[u8]) -> [u8; 8] {
    let (kind, first, second, stream) = match location {
        SealLocation::Record(number) => (0, number, 0, None),
        SealLocation::Chunk { generation, number } => (1, generation, number, None),
        SealLocation::Head => (2, 0, 0, None),
        SealLocation::Entry { stream: StreamKey::COMMON, position } => (3, position, 0, None),
        SealLocation::Reach => (4, 0, 0, None),
        SealLocation::JournalHead => (5, 0, 0, None),
        SealLocation::StreamHead(stream) => (6, 0, 0, Some(stream)),
        SealLocation::StreamRecord { stream, number } => (7, number, 0, Some(stream)),
        SealLocation::StreamChunk { stream, generation, number } => (8, generation, number, Some(stream)),
        SealLocation::Entry { stream, position } => (9, position, 0, Some(stream)),
        SealLocation::Run(run) => (10, run, 0, None),
        SealLocation::RunEntry { run, number } => (11, run, number, None),
        SealLocation::Origin => (12, 0, 0, None),
    };
    let mut hasher = SipHasher13::new_with_key(&KEY);
    hasher.write(&[kind, version]);
    hasher.write(&first.to_le_bytes());
    hasher.write(&second.to_le_bytes());
    if let Some(stream) = stream {
        hasher.write(&stream.column().to_le_bytes());
    }
    hasher.write(content);
    hasher.finish().to_le_bytes()
}

pub(crate) fn seal_bytes(location: SealLocation, content: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(content.len() + 9);
    sealed.push(location.version());
    sealed.extend_from_slice(&checksum(location, location.version(), content));
    sealed.extend_from_slice(content);
    sealed
}

/// Opens content of the present version; fails if it is not what was written there.
pub(crate) fn open_bytes(location: SealLocation, sealed: &[u8]) -> Result<&[u8], Malformed> {
    match open_any(location, sealed)? {
        Content::Present(content) => Ok(content),
        Content::Old(_) => Err(Malformed::Version(0)),
    }
}

pub(crate) enum Content<'a> {
    Present(&'a [u8]),
    /// Of version 0, which is no longer written.
    Old(&'a [u8]),
}

/// Opens content of the present or an older version; fails if it is not what was written there.
pub(crate) fn open_any(location: SealLocation, sealed: &[u8]) -> Result<Content<'_>, Malformed> {
    let mut input = Reader::new(sealed);
    let version = input.byte()?;
    let written = input.array()?;
    let content = input.bytes(input.left())?;
    if written != checksum(location, version, content) {
        return Err(Malformed::Checksum);
    }
    match version {
        present if present == location.version() => Ok(Content::Present(content)),
        0 => Ok(Content::Old(content)),
        unknown => Err(Malformed::Version(unknown)),
    }
}

pub(crate) fn seal<T: Stored>(location: SealLocation, value: &T) -> Vec<u8> {
    seal_bytes(location, &to_bytes(value))
}

pub(crate) fn open<T: Stored>(location: SealLocation, sealed: &[u8]) -> Result<T, Malformed> {
    from_bytes(open_bytes(location, sealed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_read_where_it_was_written_and_nowhere_else() {
        let (shared, cluster) = (StreamKey::SHARED, StreamKey::from_column(1));
        let places = [
            SealLocation::Record(0),
            SealLocation::Record(1),
            SealLocation::Entry { stream: StreamKey::COMMON, position: 1 },
            SealLocation::Entry { stream: shared, position: 1 },
            SealLocation::Entry { stream: cluster, position: 1 },
            SealLocation::Entry { stream: cluster, position: 2 },
            SealLocation::StreamRecord { stream: shared, number: 1 },
            SealLocation::StreamRecord { stream: cluster, number: 1 },
            SealLocation::StreamRecord { stream: cluster, number: 2 },
            SealLocation::StreamChunk { stream: shared, generation: 1, number: 0 },
            SealLocation::StreamChunk { stream: cluster, generation: 1, number: 0 },
            SealLocation::StreamChunk { stream: cluster, generation: 0, number: 1 },
            SealLocation::StreamHead(shared),
            SealLocation::StreamHead(cluster),
            SealLocation::Run(1),
            SealLocation::RunEntry { run: 1, number: 1 },
            SealLocation::RunEntry { run: 1, number: 2 },
            SealLocation::Origin,
            SealLocation::JournalHead,
            SealLocation::Head,
            SealLocation::Reach,
            SealLocation::Chunk { generation: 1, number: 0 },
            SealLocation::Chunk { generation: 0, number: 1 },
        ];
        for location in places {
            let sealed = seal_bytes(location, b"content");
            for other in places {
                assert_eq!(open_bytes(other, &sealed).is_ok(), other == location, "{other:?}");
            }
        }
    }

    #[test]
    fn an_unknown_version_is_distinguished_from_damage() {
        let location = SealLocation::Head;
        let mut newer = vec![9];
        newer.extend_from_slice(&checksum(location, 9, b"later"));
        newer.extend_from_slice(b"later");
        assert_eq!(open_bytes(location, &newer), Err(Malformed::Version(9)));
        newer[0] = VERSION;
        assert_eq!(open_bytes(location, &newer), Err(Malformed::Checksum));
        assert_eq!(open_bytes(location, &[VERSION, 1, 2]), Err(Malformed::Short));
    }
}
