//! Texts from elsewhere, shown without moving the cursor, colouring the screen, or changing the order of what stands beside them.

use std::fmt::Write as _;

/// A text whose lines and tabs stay, and whose other harmful characters can be seen.
#[must_use]
pub fn visible(text: &str) -> String {
    escape(text, |char| is_harmful(char) && !matches!(char, '\n' | '\t'))
}

/// A text that stays on its line: all harmful characters can be seen.
#[must_use]
pub fn one_line(text: &str) -> String {
    escape(text, is_harmful)
}

/// A text of several lines, as one line: hints follow what they are about.
#[must_use]
pub fn flat(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    one_line(&lines.join("; "))
}

/// JSON with the same meaning, in which invisible characters are written as `\u202e`. They stand in strings only.
#[must_use]
pub fn json(text: &str) -> String {
    if !text.chars().any(is_invisible) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_invisible(char) {
            let units = &mut [0; 2];
            for unit in char.encode_utf16(units) {
                // Writing to a text does not fail.
                write!(escaped, "\\u{unit:04x}").ok();
            }
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// TOML with the same meaning, in which invisible characters are written as `\U0000202e`, as long as they stand between double quotes.
#[must_use]
pub fn toml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_invisible(char) {
            // Writing to a text does not fail.
            write!(escaped, "\\U{:08x}", u32::from(char)).ok();
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// A line that is written to the log, in which invisible characters can be seen. Colours and line ends stay.
#[must_use]
pub fn log_line(text: &str) -> String {
    escape(text, is_invisible)
}

/// Whether a character does something on a terminal besides being seen.
fn is_harmful(char: char) -> bool {
    char.is_control() || is_invisible(char)
}

/// Whether a character cannot be seen, and may turn or hide what stands beside it: characters of the Unicode category *format* (the
/// direction of text, zero-width characters, tags), line and paragraph separators, variation selectors, and letters that are blank.
#[must_use]
pub fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape(text: &str, is_harmful: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_harmful(char) { escaped.extend(char.escape_default()) } else { escaped.push(char) }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_moves_the_cursor() {
        assert_eq!(visible("größe\t1\n"), "größe\t1\n");
        assert_eq!(visible("a\u{1b}[2J\r\u{9b}"), "a\\u{1b}[2J\\r\\u{9b}");
        assert_eq!(one_line("a\tb\n"), "a\\tb\\n");
        assert_eq!(flat("no\n  hint: a\tb\n"), "no; hint: a\\tb");
    }

    #[test]
    fn nothing_that_is_shown_turns_or_hides_what_stands_beside_it() {
        // Right-to-left override, isolate, marks; zero-width space and joiner; soft hyphen; a byte order mark; a tag; line separator.
        for harmful in [
            '\u{202e}',
            '\u{2066}',
            '\u{200f}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{2060}',
            '\u{ad}',
            '\u{feff}',
            '\u{e0041}',
            '\u{2028}',
            '\u{180e}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{e0100}',
            '\u{fff9}',
            '\u{115f}',
            '\u{2800}',
        ] {
            let text = format!("a{harmful}b");
            let shown = format!("a\\u{{{:x}}}b", u32::from(harmful));
            assert_eq!(visible(&text), shown);
            assert_eq!(one_line(&text), shown);
            assert_eq!(flat(&text), shown);
        }
        assert_eq!(visible("größe 東京 مرحبا नमस्ते é 👍"), "größe 東京 مرحبا नमस्ते é 👍");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "{\"a\": \"x\u{202e}y\u{e0041}é\\n\"}\n";
        assert_eq!(json(text), "{\"a\": \"x\\u202ey\\udb40\\udc41é\\n\"}\n");
        assert_eq!(json("{\"a\": \"é\"}"), "{\"a\": \"é\"}");
        assert_eq!(toml("a = \"x\u{202e}é\"\n"), "a = \"x\\U0000202eé\"\n");
    }

    #[test]
    fn colours_of_the_log_stay() {
        assert_eq!(log_line("\u{1b}[32mINFO\u{1b}[0m a\u{202e}b\n"), "\u{1b}[32mINFO\u{1b}[0m a\\u{202e}b\n");
    }
}
