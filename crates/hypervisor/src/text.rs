//! Sanitizing of texts from driver programs: bounded, on one line, without characters that change the display of
//! others.

/// Copies a text. Control characters, direction overrides and invisible characters become escapes such as `\u{202e}`. A
/// text of more than `bytes_max` bytes is truncated and ends with `…`.
#[must_use]
pub fn sanitized(text: &str, bytes_max: usize) -> String {
    const CUT: char = '…';
    let mut copy = String::with_capacity(text.len().min(bytes_max));
    // Length at which the copy can be truncated so that `…` still fits.
    let mut fits = 0;
    for char in text.trim().chars() {
        let before = copy.len();
        if needs_escape(char) {
            copy.extend(char.escape_default());
        } else {
            copy.push(char);
        }
        if copy.len() > bytes_max {
            copy.truncate(fits);
            copy.push(CUT);
            return copy;
        }
        if before + CUT.len_utf8() <= bytes_max {
            fits = before;
        }
    }
    copy
}

/// Control characters, marks and overrides of the direction of writing, and characters without a width.
fn needs_escape(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: S6
    #[test]
    fn control_characters_and_direction_overrides_are_escaped() {
        assert_eq!(sanitized(" größe ✓ 漢 \n", 99), "größe ✓ 漢");
        assert_eq!(sanitized("a\nb\t\u{1b}[2J\u{9b}", 99), r"a\nb\t\u{1b}[2J\u{9b}");
        assert_eq!(
            sanitized("\u{202e}exe\u{2066}\u{200b}\u{feff}\u{e0041}.", 99),
            r"\u{202e}exe\u{2066}\u{200b}\u{feff}\u{e0041}."
        );
        assert_eq!(sanitized("bad \u{fffd}", 99), "bad \u{fffd}");
    }

    #[test]
    fn a_long_text_is_truncated_between_characters() {
        assert_eq!(sanitized("abcdef", 6), "abcdef");
        assert_eq!(sanitized("abcdefg", 6), "abc…");
        for bytes_max in 3..40 {
            let cut = sanitized("ää\u{202e}öö\u{1b}漢漢漢漢漢漢漢漢", bytes_max);
            assert!(cut.len() <= bytes_max, "{bytes_max}: {cut}");
            assert!(bytes_max >= 41 || cut.ends_with('…'), "{bytes_max}: {cut}");
        }
    }
}
