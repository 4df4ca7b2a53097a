//! The byte order mark that some editors and shells write before UTF-8 text.

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The mark as bytes of UTF-8.
pub const BYTE_ORDER_MARK_BYTES: &[u8] = b"\xef\xbb\xbf";

/// The text without one byte order mark at its start.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}
