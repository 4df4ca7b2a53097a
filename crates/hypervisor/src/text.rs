//! Texts of driver programs, made harmless: bounded, on one line, without characters that change how others are shown.

/// Copies a text. Characters that control a terminal, change the direction of writing or cannot be seen become escapes such
/// as `\u{202e}`. What would take more than `bytes_max` bytes is cut, and ends with `…`.
#[must_use]
pub fn harmless(text: &str, bytes_max: usize) -> String {
    const CUT: char = '…';
    let mut copy = String::with_capacity(text.len().min(bytes_max));
    // The length of the copy up to where it can be cut and still end with the sign of that.
    let mut fits = 0;
    for char in text.trim().chars() {
        let before = copy.len();
        if is_harmful(char) {
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
fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_moves_a_cursor_or_turns_what_is_written() {
        assert_eq!(harmless(" größe ✓ 漢 \n", 99), "größe ✓ 漢");
        assert_eq!(harmless("a\nb\t\u{1b}[2J\u{9b}", 99), r"a\nb\t\u{1b}[2J\u{9b}");
        assert_eq!(
            harmless("\u{202e}exe\u{2066}\u{200b}\u{feff}\u{e0041}.", 99),
            r"\u{202e}exe\u{2066}\u{200b}\u{feff}\u{e0041}."
        );
        assert_eq!(harmless("bad \u{fffd}", 99), "bad \u{fffd}");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters_and_says_so() {
        assert_eq!(harmless("abcdef", 6), "abcdef");
        assert_eq!(harmless("abcdefg", 6), "abc…");
        for bytes_max in 3..40 {
            let cut = harmless("ää\u{202e}öö\u{1b}漢漢漢漢漢漢漢漢", bytes_max);
            assert!(cut.len() <= bytes_max, "{bytes_max}: {cut}");
            assert!(bytes_max >= 41 || cut.ends_with('…'), "{bytes_max}: {cut}");
        }
    }
}
