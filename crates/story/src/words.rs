//! Lines as words with their places.

use std::time::Duration;

use forewarn_types::parse_duration;

use crate::error::Mistake;

/// A word and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) column: usize,
}

/// The words of one line, read from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
}

impl<'a> Line<'a> {
    pub(crate) fn new(number: usize, text: &'a str) -> Self {
        let code = text.split('#').next().unwrap_or_default();
        let mut words = Vec::new();
        let mut start = None;
        for (place, character) in code.char_indices().chain([(code.len(), ' ')]) {
            let separates = character.is_whitespace() || character == ',';
            match (separates, start) {
                (true, Some(from)) => {
                    let column = code[..from].chars().count() + 1;
                    words.push(Word { text: &code[from..place], column });
                    start = None;
                }
                (false, None) => start = Some(place),
                (true, None) | (false, Some(_)) => {}
            }
        }
        Self { number, text, words, next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether every word has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.next == self.words.len()
    }

    /// Every word, read or not.
    pub(crate) fn words(&self) -> impl Iterator<Item = Word<'a>> {
        self.words.iter().copied()
    }

    pub(crate) fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    pub(crate) fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek();
        self.next += usize::from(word.is_some());
        word
    }

    /// Reads that word if it is the next.
    pub(crate) fn take_if(&mut self, wanted: &str) -> Option<Word<'a>> {
        self.peek().filter(|word| word.text == wanted).and_then(|_| self.take())
    }

    /// The next word, whatever it is; `what` says what was wanted.
    pub(crate) fn need(&mut self, what: &str) -> Result<Word<'a>, Mistake> {
        self.take().ok_or_else(|| self.mistake_at_end(format!("here should be {what}")))
    }

    /// The next word, which must be this one.
    pub(crate) fn need_word(&mut self, wanted: &str) -> Result<Word<'a>, Mistake> {
        let word = self.need(&format!("`{wanted}`"))?;
        if word.text == wanted {
            Ok(word)
        } else {
            Err(self.mistake(word, format!("here should be `{wanted}`")))
        }
    }

    pub(crate) fn need_duration(&mut self) -> Result<Duration, Mistake> {
        let word = self.need("a length of time, such as 90s or 15m")?;
        let wrong = || self.mistake(word, "not a length of time; write 90s, 15m, 9m50s or 7d");
        parse_duration(word.text).ok_or_else(wrong)
    }

    pub(crate) fn need_number(&mut self) -> Result<u16, Mistake> {
        let word = self.need("a number")?;
        word.text.parse().map_err(|_| self.mistake(word, "not a number from 0 to 65535"))
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), Mistake> {
        self.peek().map_or(Ok(()), |word| Err(self.mistake(word, "the line should end before this word")))
    }

    pub(crate) fn mistake(&self, word: Word<'_>, message: impl Into<String>) -> Mistake {
        let width = word.text.chars().count();
        Mistake { line: self.number, column: word.column, width, text: self.shown(), message: message.into() }
    }

    pub(crate) fn mistake_at_end(&self, message: impl Into<String>) -> Mistake {
        let column = self.words.last().map_or(1, |word| word.column + word.text.chars().count() + 1);
        Mistake { line: self.number, column, width: 1, text: self.shown(), message: message.into() }
    }

    /// The line as it stands, without what cannot be seen.
    fn shown(&self) -> String {
        self.text.trim_end().replace('\t', " ")
    }

    /// The words of the line, one space apart: how a transcript shows it.
    pub(crate) fn plain(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.text).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_points_at_its_word() {
        let mut line = Line::new(12, "at 5q  restart solo");
        line.need_word("at").unwrap();
        let mistake = line.need_duration().unwrap_err();
        assert_eq!((mistake.line, mistake.column, mistake.width), (12, 4, 2));
        let shown = mistake.to_string();
        assert!(shown.ends_with("12 | at 5q  restart solo\n   |    ^^"), "{shown}");
        assert_eq!(Line::new(1, "at").need_duration().unwrap_err().column, 1);
        let mut short = Line::new(1, "at");
        short.take();
        assert_eq!(short.need_duration().unwrap_err().column, 4);
    }

    #[test]
    fn comments_and_commas_separate() {
        assert!(Line::new(1, "  # nothing").is_empty());
        assert_eq!(Line::new(1, "expect a Started, b Started # so").plain(), "expect a Started b Started");
    }
}
