//! Seals: a version and a checksum around a value. The checksum covers the key, so that a value under the wrong key is
//! detected. It detects accidents; a process that can write the engine can also compute it.
//!
//! ```text
//!   version   checksum                              content
//!   1 byte    8 bytes, over key, version, content   …
//! ```

use std::hash::Hasher;

use bytes::Bytes;
use forewarn_store::Malformed;
use siphasher::sip::SipHasher13;

use crate::keys::RealmKey;

/// The version in which values are written.
const VERSION: u8 = 1;

/// Bytes that a seal adds.
pub(crate) const SEAL_BYTES: usize = 9;

const HASH_KEY: [u8; 16] = *b"forewarn realm 1";

fn checksum(key: &RealmKey, version: u8, content: &[u8]) -> [u8; 8] {
    let key = key.to_string();
    let mut hasher = SipHasher13::new_with_key(&HASH_KEY);
    hasher.write(&(key.len() as u64).to_le_bytes());
    hasher.write(key.as_bytes());
    hasher.write(&[version]);
    hasher.write(content);
    hasher.finish().to_le_bytes()
}

/// The sealed value of a key.
pub(crate) fn seal(key: &RealmKey, content: &[u8]) -> Bytes {
    let mut sealed = Vec::with_capacity(content.len() + SEAL_BYTES);
    sealed.push(VERSION);
    sealed.extend_from_slice(&checksum(key, VERSION, content));
    sealed.extend_from_slice(content);
    sealed.into()
}

/// The content of a sealed value.
pub(crate) fn open<'a>(key: &RealmKey, sealed: &'a [u8]) -> Result<&'a [u8], Malformed> {
    let (version, rest) = sealed.split_first().ok_or(Malformed::Short)?;
    let (written, content) = rest.split_first_chunk::<8>().ok_or(Malformed::Short)?;
    if *written != checksum(key, *version, content) {
        return Err(Malformed::Checksum);
    }
    if *version == VERSION { Ok(content) } else { Err(Malformed::Version(*version)) }
}

#[cfg(test)]
mod tests {
    use forewarn_control::Stream;

    use super::*;

    #[test]
    fn a_value_is_read_under_its_key_and_as_it_was_written() {
        let (key, other) = (RealmKey::Log(Stream::Shared, 7), RealmKey::Log(Stream::Shared, 8));
        let sealed = seal(&key, b"content");
        assert_eq!(open(&key, &sealed), Ok(&b"content"[..]));
        assert_eq!(open(&other, &sealed), Err(Malformed::Checksum));
        for place in 0..sealed.len() {
            let mut damaged = sealed.to_vec();
            damaged[place] ^= 4;
            assert!(open(&key, &damaged).is_err(), "{place}");
            assert!(open(&key, &sealed[..place]).is_err(), "{place}");
        }
    }

    #[test]
    fn a_later_version_is_distinguished_from_damage() {
        let key = RealmKey::Realm;
        let later = [&[9][..], &checksum(&key, 9, b"x"), b"x"].concat();
        assert_eq!(open(&key, &later), Err(Malformed::Version(9)));
    }
}
