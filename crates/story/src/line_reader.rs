//! Words of a line with their columns.

use std::time::Duration;

use forewarn_types::parse_duration;

use crate::error::StoryError;

/// A word and its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) column: usize,
}

/// The words of one line, read from left to right.
#[derive(Clone, Debug)]
pub(crate) struct LineReader<'a> {
    pub(crate) number: usize,
    text: &'a str,
    words: Vec<Token<'a>>,
    next: usize,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(number: usize, text: &'a str) -> Self {
        let code = text.split('#').next().unwrap_or_default();
        let mut words = Vec::new();
        let mut start = None;
        for (location, character) in code.char_indices().chain([(code.len(), ' ')]) {
            let separates = character.is_whitespace() || character == ',';
            match (separates, start) {
                (true, Some(from)) => {
                    let column = code[..from].chars().count() + 1;
                    words.push(Token { text: &code[from..location], column });
                    start = None;
                }
                (false, None) => start = Some(location),
                (true, None) | (false, Some(_)) => {}
            }
        }
        Self { number, text, words, next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
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
        let wrong = || self.error_at(word, "not a duration; write 90s, 15m, 9m50s or 7d");
        parse_duration(word.text).ok_or_else(wrong)
    }

    pub(crate) fn need_number(&mut self) -> Result<u16, StoryError> {
        let word = self.need("a number")?;
        word.text.parse().map_err(|_| self.error_at(word, "not a number from 0 to 65535"))
    }

    /// Checks that no word is left.
    pub(crate) fn end(&self) -> Result<(), StoryError> {
        self.peek()
            .map_or(Ok(()), |word| Err(self.error_at(word, "unexpected word after the end of the statement")))
    }

    pub(crate) fn error_at(&self, word: Token<'_>, message: impl Into<String>) -> StoryError {
        let width = word.text.chars().count();
        StoryError {
            line: self.number,
            column: word.column,
            width,
            text: self.display_text(),
            message: message.into(),
        }
    }

    pub(crate) fn error_at_end(&self, message: impl Into<String>) -> StoryError {
        let column = self.words.last().map_or(1, |word| word.column + word.text.chars().count() + 1);
        StoryError { line: self.number, column, width: 1, text: self.display_text(), message: message.into() }
    }

    /// The text of the line for error messages, without invisible characters.
    fn display_text(&self) -> String {
        self.text.trim_end().replace('\t', " ")
    }

    /// The words of the line, separated by single spaces, as a transcript has it.
    pub(crate) fn plain(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.text).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn comments_and_commas_separate() {
        assert!(LineReader::new(1, "  # nothing").is_empty());
        assert_eq!(
            LineReader::new(1, "expect a Started, b Started # so").plain(),
            "expect a Started b Started"
        );
    }
}
