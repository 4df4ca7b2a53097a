//! Errors in a story, with their position.

use std::fmt;

/// An error in a story, or a failed statement or expectation. Points at the line and the word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct StoryError {
    /// The line, from 1.
    pub line: usize,
    /// The column of the word, from 1.
    pub column: usize,
    /// The length of the word.
    pub width: usize,
    /// The text of the line.
    pub text: String,
    /// The message, followed by lines with hints.
    pub message: String,
}

impl fmt::Display for StoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, width, text, message } = self;
        let margin = " ".repeat(line.to_string().len());
        let (indent, mark) = (" ".repeat(column.saturating_sub(1)), "^".repeat((*width).max(1)));
        // Hints follow the quoted line, so that message and line stay together.
        let mut lines = message.lines();
        writeln!(f, "line {line}, column {column}: {}", lines.next().unwrap_or_default())?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{margin} | {indent}{mark}")?;
        lines.try_for_each(|hint| write!(f, "\n{margin} = {}", hint.trim()))
    }
}
