//! Texts from elsewhere, shown without moving the cursor or colouring the screen.

/// A text whose lines and tabs stay, and whose other control characters can be seen.
#[must_use]
pub fn visible(text: &str) -> String {
    escape(text, |char| char.is_control() && !matches!(char, '\n' | '\t'))
}

/// A text that stays on its line: all control characters can be seen.
#[must_use]
pub fn one_line(text: &str) -> String {
    escape(text, char::is_control)
}

/// A text of several lines, as one line: hints follow what they are about.
#[must_use]
pub fn flat(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    one_line(&lines.join("; "))
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
}
