//! Base 64 with the alphabet for URLs, without padding: the encoding of JSON Web Tokens, and of bytes in JSON.
//!
//! A field of bytes with `#[serde(with = "forewarn_types::base64url")]` is such a text.

use data_encoding::BASE64URL_NOPAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// Decodes a text; `None` unless [`encode`] returns the same text.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()
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
    fn the_alphabet_is_that_of_json_web_tokens() {
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
        fn encoded_bytes_decode_to_themselves(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
