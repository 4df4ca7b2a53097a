//! Percent-encoding of parts of a URI.

/// Encodes all characters except letters, digits, `-`, `_`, `.` and `~`.
pub(super) fn part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_means_anything() {
        assert_eq!(super::part("web-0_a.b~1"), "web-0_a.b~1");
        assert_eq!(super::part("../a?b=c&d#e f%é"), "..%2Fa%3Fb%3Dc%26d%23e%20f%25%C3%A9");
    }
}
