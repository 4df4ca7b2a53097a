//! What stands around everything that is kept: a version, and a checksum that is also about its place.
//!
//! ```text
//!   version   checksum                                content
//!   1 byte    8 bytes, over place, version, content   …
//! ```
//!
//! The checksum is `SipHash` with a fixed key: 64 bits instead of the 32 of a CRC, and the rules need it anyway. It
//! notices accidents. Whoever can write the file can also compute it. The place (which table, which number) is part of
//! it, so that a record that turns up somewhere else is not taken for the one that was there.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{Malformed, Reader, Stored, from_bytes, to_bytes};

/// The version of everything except records and parts of the state.
const VERSION: u8 = 0;

/// The version of records and parts of the state. Version 0 is still read: see [`super::old`].
const STATE_VERSION: u8 = 1;

/// Where something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The record of that number.
    Record(u64),
    /// That part of the state of that generation.
    Chunk {
        /// The generation.
        generation: u64,
        /// The number in it, from 0.
        number: u64,
    },
    /// The entry of the trail of that number.
    Entry(u64),
    /// The only one of its kind.
    Head,
    /// The reach of the journal, in a file of its own.
    Reach,
}

impl Place {
    /// The version in which content is written here.
    const fn version(self) -> u8 {
        match self {
            Self::Record(_) | Self::Chunk { .. } => STATE_VERSION,
            Self::Entry(_) | Self::Head | Self::Reach => VERSION,
        }
    }
}

const KEY: [u8; 16] = *b"forewarn journal";

fn checksum(place: Place, version: u8, content: &[u8]) -> [u8; 8] {
    let (kind, first, second) = match place {
        Place::Record(number) => (0, number, 0),
        Place::Chunk { generation, number } => (1, generation, number),
        Place::Head => (2, 0, 0),
        Place::Entry(number) => (3, number, 0),
        Place::Reach => (4, 0, 0),
    };
    let mut hasher = SipHasher13::new_with_key(&KEY);
    hasher.write(&[kind, version]);
    hasher.write(&first.to_le_bytes());
    hasher.write(&second.to_le_bytes());
    hasher.write(content);
    hasher.finish().to_le_bytes()
}

/// Content with what stands around it.
pub(crate) fn seal_bytes(place: Place, content: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(content.len() + 9);
    sealed.push(place.version());
    sealed.extend_from_slice(&checksum(place, place.version(), content));
    sealed.extend_from_slice(content);
    sealed
}

/// Content of the present version, if it is what was written there.
pub(crate) fn open_bytes(place: Place, sealed: &[u8]) -> Result<&[u8], Malformed> {
    match open_any(place, sealed)? {
        Content::Present(content) => Ok(content),
        Content::Old(_) => Err(Malformed::Version(0)),
    }
}

/// Content, by version.
pub(crate) enum Content<'a> {
    /// Of the present version.
    Present(&'a [u8]),
    /// Of version 0, which is not written any more.
    Old(&'a [u8]),
}

/// The content, if it is what was written there, in this version or in an older one.
pub(crate) fn open_any(place: Place, sealed: &[u8]) -> Result<Content<'_>, Malformed> {
    let mut input = Reader::new(sealed);
    let version = input.byte()?;
    let written = input.array()?;
    let content = input.bytes(input.left())?;
    if written != checksum(place, version, content) {
        return Err(Malformed::Checksum);
    }
    match version {
        present if present == place.version() => Ok(Content::Present(content)),
        0 => Ok(Content::Old(content)),
        unknown => Err(Malformed::Version(unknown)),
    }
}

pub(crate) fn seal<T: Stored>(place: Place, value: &T) -> Vec<u8> {
    seal_bytes(place, &to_bytes(value))
}

pub(crate) fn open<T: Stored>(place: Place, sealed: &[u8]) -> Result<T, Malformed> {
    from_bytes(open_bytes(place, sealed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_read_where_it_was_written_and_nowhere_else() {
        let places = [
            Place::Record(0),
            Place::Record(1),
            Place::Entry(0),
            Place::Entry(1),
            Place::Head,
            Place::Reach,
            Place::Chunk { generation: 1, number: 0 },
            Place::Chunk { generation: 0, number: 1 },
        ];
        for place in places {
            let sealed = seal_bytes(place, b"content");
            for other in places {
                assert_eq!(open_bytes(other, &sealed).is_ok(), other == place, "{other:?}");
            }
        }
    }

    #[test]
    fn a_version_that_is_not_known_is_told_from_a_damaged_one() {
        let place = Place::Head;
        let mut newer = vec![9];
        newer.extend_from_slice(&checksum(place, 9, b"later"));
        newer.extend_from_slice(b"later");
        assert_eq!(open_bytes(place, &newer), Err(Malformed::Version(9)));
        newer[0] = VERSION;
        assert_eq!(open_bytes(place, &newer), Err(Malformed::Checksum));
        assert_eq!(open_bytes(place, &[VERSION, 1, 2]), Err(Malformed::Short));
    }
}
