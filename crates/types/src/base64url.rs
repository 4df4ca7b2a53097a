//! Base 64 with the alphabet for URLs, without padding: the encoding of JSON Web Tokens, and of bytes in JSON.
//!
//! A field of bytes with `#[serde(with = "forewarn_types::base64url")]` is such a text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let digits = bytes.chunks(3).flat_map(|bytes| {
        let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        [18, 12, 6, 0].into_iter().take(bytes.len() + 1).map(move |shift| bits >> shift & 63)
    });
    digits.map(|digit| char::from(ALPHABET[digit as usize])).collect()
}

/// Decodes a text; none, unless [`encode`] gives the same text.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| {
        let place = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        Some(u32::from(place))
    };
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for digits in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            bits = bits << 6 | digits.get(place).map_or(Some(0), digit)?;
        }
        let whole = bits.to_be_bytes();
        // Of the last digits some bits may be left, and those say nothing.
        let (kept, left) = whole[1..].split_at(digits.len() * 6 / 8);
        if digits.len() == 1 || left.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend(kept);
    }
    Some(bytes)
}

/// Writes bytes as a text.
///
/// # Errors
/// Fails if the serializer fails.
pub fn serialize<S: Serializer>(bytes: &impl AsRef<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(bytes.as_ref()))
}

/// Reads bytes from a text.
///
/// # Errors
/// Fails if the text is not one that [`encode`] gives, or has the wrong length.
pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<Vec<u8>>>(deserializer: D) -> Result<T, D::Error> {
    let bytes =
        decode(&String::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("not base64url"))?;
    T::try_from(bytes).map_err(|_| D::Error::custom("a wrong number of bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base_64_is_the_one_of_tokens() {
        let cases =
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("?>~", "Pz5-")];
        for (text, encoded) in cases {
            assert_eq!(encode(text.as_bytes()), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn bytes_have_one_text_only() {
        for wrong in ["Z", "Zh", "Zm9", "Zg==", "Zm+v", "Zm/v", "Zm 9", "Zm9vY", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_of_a_fixed_length_have_that_length() {
        let read = |json: &str| deserialize::<_, [u8; 2]>(&mut serde_json::Deserializer::from_str(json));
        assert_eq!(read("\"Zm8\"").unwrap(), *b"fo");
        for wrong in ["\"Zg\"", "\"Zm9v\"", "\"Zm8=\"", "[102,111]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
