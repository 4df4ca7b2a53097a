//! Percent-encoding of paths and queries.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but letters, digits and `-._~`, which need no encoding anywhere in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As [`RESERVED`], without characters that may stand in a path.
const RESERVED_IN_PATHS: &AsciiSet = &RESERVED.remove(b'/').remove(b'(').remove(b')');

/// Encodes a text as one segment of a path or as a value of a query.
///
/// ```
/// assert_eq!(forewarn_url::percent::encode("a b/ü"), "a%20b%2F%C3%BC");
/// ```
#[must_use]
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Encodes a path. Slashes and parentheses stay.
///
/// ```
/// assert_eq!(forewarn_url::percent::encode_path("a b/ü"), "a%20b/%C3%BC");
/// ```
#[must_use]
pub fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, RESERVED_IN_PATHS).to_string()
}

/// Decodes `%XX`; none, if a percent sign is not followed by two hexadecimal digits.
///
/// ```
/// use forewarn_url::percent::decode;
///
/// assert_eq!(decode("a%20b").as_deref(), Some(&b"a b"[..]));
/// assert_eq!(decode("100%"), None);
/// ```
#[must_use]
pub fn decode(text: &str) -> Option<Cow<'_, [u8]>> {
    let is_sequence = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_valid = text.split('%').skip(1).all(is_sequence);
    is_valid.then(|| percent_decode_str(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn incomplete_sequences_are_rejected() {
        for text in ["%", "%2", "a%zz", "%%20", "%2é", "%20%"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("%2525").as_deref(), Some(&b"%25"[..]));
        assert!(matches!(decode("plain"), Some(Cow::Borrowed(b"plain"))));
    }

    proptest! {
        #[test]
        fn an_encoded_text_decodes_to_itself(text in any::<String>()) {
            let encoded = encode(&text);
            let decoded = decode(&encoded);
            prop_assert_eq!(decoded.as_deref(), Some(text.as_bytes()));
        }
    }
}
