//! Escaping of foreign texts for display, so that they cannot move the cursor, colour the screen, or reorder other
//! text.

use std::fmt::Write as _;

/// Escapes harmful characters except line ends and tabs.
#[must_use]
pub fn visible(text: &str) -> String {
    escape(text, |char| is_harmful(char) && !matches!(char, '\n' | '\t'))
}

/// Escapes all harmful characters, including line ends.
#[must_use]
pub fn one_line(text: &str) -> String {
    escape(text, is_harmful)
}

/// Joins a text of several lines into one: hints follow their message.
#[must_use]
pub fn flat(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    one_line(&lines.join("; "))
}

/// Equivalent JSON with invisible characters written as `\u202e`. They occur in strings only.
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
                // Writing to a string does not fail.
                write!(escaped, "\\u{unit:04x}").ok();
            }
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// Equivalent TOML with invisible characters written as `\U0000202e`, provided that they are in double quotes.
#[must_use]
pub fn toml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_invisible(char) {
            // Writing to a string does not fail.
            write!(escaped, "\\U{:08x}", u32::from(char)).ok();
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// Escapes invisible characters of a log line. Colours and line ends stay.
#[must_use]
pub fn log_line(text: &str) -> String {
    escape(text, is_invisible)
}

/// Returns true if a character has an effect on a terminal besides being displayed.
fn is_harmful(char: char) -> bool {
    char.is_control() || is_invisible(char)
}

/// Returns true if a character is invisible and may reorder or hide other text: characters of the Unicode category
/// *format* (text direction, zero-width characters, tags), line and paragraph separators, variation selectors, and
/// blank letters.
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
    fn control_characters_are_escaped() {
        assert_eq!(visible("größe\t1\n"), "größe\t1\n");
        assert_eq!(visible("a\u{1b}[2J\r\u{9b}"), "a\\u{1b}[2J\\r\\u{9b}");
        assert_eq!(one_line("a\tb\n"), "a\\tb\\n");
        assert_eq!(flat("no\n  hint: a\tb\n"), "no; hint: a\\tb");
    }

    /// promise: S6
    #[test]
    fn invisible_characters_are_escaped() {
        // Right-to-left override, isolate, marks; zero-width space and joiner; soft hyphen; a byte order mark; a tag;
        // line separator.
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

    /// promise: S6
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
