//! Words of a line with their columns. A text in double quotes is one word, and may contain everything.

use std::time::Duration;

use forewarn_types::parse_duration;

use crate::error::StoryError;

/// A word and its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) column: usize,
    /// The place of the first byte in the line.
    pub(crate) start: usize,
}

/// The message about a word that should be a duration.
pub(crate) const NOT_A_DURATION: &str = "not a duration; write 90s, 15m, 9m50s or 7d";

impl Token<'_> {
    /// The content of a text in quotation marks; `None` if the word is none.
    pub(crate) fn unquoted(self) -> Option<String> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let mut content = String::with_capacity(inner.len());
        let mut characters = inner.chars();
        while let Some(character) = characters.next() {
            content.push(if character == '\\' { characters.next()? } else { character });
        }
        Some(content)
    }

    /// Returns true if the word begins a text that does not end.
    fn is_open(self) -> bool {
        self.text.starts_with('"') && quoted_length(self.text).is_none()
    }
}

fn is_separator(character: char) -> bool {
    character.is_whitespace() || character == ','
}

/// Bytes of the word at the beginning of a text.
fn word_length(text: &str) -> usize {
    if text.starts_with('"') {
        return quoted_length(text).unwrap_or(text.len());
    }
    text.find(|character| is_separator(character) || character == '#').unwrap_or(text.len())
}

/// Bytes of the text in quotation marks at the beginning; `None` if it does not end. `\"` and `\\` stand for the second
/// character.
fn quoted_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return Some(index + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// The words of one line, read from left to right.
#[derive(Clone, Debug)]
pub(crate) struct LineReader<'a> {
    pub(crate) number: usize,
    text: &'a str,
    words: Vec<Token<'a>>,
    next: usize,
    /// A text whose closing quotation mark is missing.
    open: Option<Token<'a>>,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(number: usize, text: &'a str) -> Self {
        let mut words = Vec::new();
        let (mut column, mut rest) = (1, text);
        let mut open = None;
        while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
            let length = if is_separator(first) { first.len_utf8() } else { word_length(rest) };
            let (word, after) = rest.split_at(length);
            if !is_separator(first) {
                let token = Token { text: word, column, start: text.len() - rest.len() };
                open = open.or(Some(token).filter(|token| token.is_open()));
                words.push(token);
            }
            column += word.chars().count();
            rest = after;
        }
        Self { number, text, words, next: 0, open }
    }

    /// Checks that every text ends on its line.
    pub(crate) fn check_quotes(&self) -> Result<(), StoryError> {
        self.open.map_or(Ok(()), |text| Err(self.error_at(text, "the text has no closing quotation mark")))
    }

    /// Returns true if every word has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.next == self.words.len()
    }

    /// Every word, read or not.
    pub(crate) fn words(&self) -> impl Iterator<Item = Token<'a>> {
        self.words.iter().copied()
    }

    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.words.get(self.next).copied()
    }

    pub(crate) fn take(&mut self) -> Option<Token<'a>> {
        let word = self.peek();
        self.next += usize::from(word.is_some());
        word
    }

    /// Takes the next word if it is that one.
    pub(crate) fn take_if(&mut self, wanted: &str) -> Option<Token<'a>> {
        self.peek().filter(|word| word.text == wanted).and_then(|_| self.take())
    }

    /// The next word; `what` names it in the error if the line has ended.
    pub(crate) fn need(&mut self, what: &str) -> Result<Token<'a>, StoryError> {
        self.take().ok_or_else(|| self.error_at_end(format!("expected {what}")))
    }

    /// The next word, which must be this one.
    pub(crate) fn need_word(&mut self, wanted: &str) -> Result<Token<'a>, StoryError> {
        let word = self.need(&format!("`{wanted}`"))?;
        if word.text == wanted { Ok(word) } else { Err(self.error_at(word, format!("expected `{wanted}`"))) }
    }

    pub(crate) fn need_duration(&mut self) -> Result<Duration, StoryError> {
        let word = self.need("a duration, such as 90s or 15m")?;
        let wrong = || self.error_at(word, NOT_A_DURATION);
        parse_duration(word.text).ok_or_else(wrong)
    }

    pub(crate) fn need_number(&mut self) -> Result<u16, StoryError> {
        let word = self.need("a number")?;
        word.text.parse().map_err(|_| self.error_at(word, "not a number from 0 to 65535"))
    }

    /// A number of repetitions.
    pub(crate) fn need_count(&mut self) -> Result<u32, StoryError> {
        let word = self.need("a number")?;
        word.text.parse().map_err(|_| self.error_at(word, "not a number from 0 to 4294967295"))
    }

    pub(crate) fn need_large_number(&mut self) -> Result<u64, StoryError> {
        let word = self.need("a number")?;
        word.text.parse().map_err(|_| self.error_at(word, "not a number from 0 to 18446744073709551615"))
    }

    /// The next word, which must be a text in quotation marks.
    pub(crate) fn need_text(&mut self, what: &str) -> Result<String, StoryError> {
        let word = self.need(what)?;
        let text = word.unquoted().filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.error_at(word, format!("expected {what}")))
    }

    /// Checks that no word is left.
    pub(crate) fn end(&self) -> Result<(), StoryError> {
        self.peek()
            .map_or(Ok(()), |word| Err(self.error_at(word, "unexpected word after the end of the statement")))
    }

    pub(crate) fn error_at(&self, word: Token<'_>, message: impl Into<String>) -> StoryError {
        let place = (word.column, word.text.chars().count());
        StoryError::new(self.number, place, self.display_text(), message.into())
    }

    pub(crate) fn error_at_end(&self, message: impl Into<String>) -> StoryError {
        let column = self.words.last().map_or(1, |word| word.column + word.text.chars().count() + 1);
        StoryError::new(self.number, (column, 1), self.display_text(), message.into())
    }

    /// The text of the line.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The text of the line for error messages, without invisible characters.
    pub(crate) fn display_text(&self) -> String {
        self.text.trim_end().replace('\t', " ")
    }

    /// The number of words that have been read.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// The words between two positions, separated by single spaces.
    pub(crate) fn plain_from(&self, from: usize, to: usize) -> String {
        let words: Vec<_> = self.words[from..to].iter().map(|word| word.text).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let line = LineReader::new(1, text);
        line.plain_from(0, line.words().count())
    }

    #[test]
    fn an_error_points_at_its_word() {
        let mut line = LineReader::new(12, "at 5q  restart solo");
        line.need_word("at").unwrap();
        let error = line.need_duration().unwrap_err();
        assert_eq!((error.line, error.column, error.width), (12, 4, 2));
        let display_text = error.to_string();
        assert!(display_text.ends_with("12 | at 5q  restart solo\n   |    ^^"), "{display_text}");
        assert_eq!(LineReader::new(1, "at").need_duration().unwrap_err().column, 1);
        let mut short = LineReader::new(1, "at");
        short.take();
        assert_eq!(short.need_duration().unwrap_err().column, 4);
    }

    #[test]
    fn a_text_in_quotation_marks_is_one_word() {
        let text = r#"run "sh -c 'echo a, b # \"c\"' \\", "é" as x # "so"#;
        let line = LineReader::new(1, text);
        let words: Vec<_> = line.words().map(|word| (word.column, word.unquoted())).collect();
        let command = r#"sh -c 'echo a, b # "c"' \"#.to_owned();
        let texts = [(1, None), (5, Some(command)), (37, Some("é".to_owned())), (41, None), (44, None)];
        assert_eq!(words, texts);
        assert_eq!(line.check_quotes(), Ok(()));
        let open = LineReader::new(1, r#"run "sh # no \" end"#).check_quotes().unwrap_err();
        assert_eq!((open.column, open.message.as_str()), (5, "the text has no closing quotation mark"));
        assert_eq!(plain("a\"b\"#c"), "a\"b\"");
    }

    #[test]
    fn comments_and_commas_separate() {
        assert_eq!(plain("  # nothing"), "");
        assert_eq!(plain("expect a Started, b Started # so"), "expect a Started b Started");
    }
}
