//! What is wrong with a story, and where.

use std::fmt;

/// A mistake in a story, or something in it that did not come as told. Points at the line and the word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column of the word, from 1.
    pub column: usize,
    /// The length of the word.
    pub width: usize,
    /// The text of the line.
    pub text: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, width, text, message } = self;
        let margin = " ".repeat(line.to_string().len());
        let (indent, mark) = (" ".repeat(column.saturating_sub(1)), "^".repeat((*width).max(1)));
        // A hint stands below: the place is not torn from what is wrong with it.
        let mut said = message.lines();
        writeln!(f, "line {line}, column {column}: {}", said.next().unwrap_or_default())?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{margin} | {indent}{mark}")?;
        said.try_for_each(|hint| write!(f, "\n{margin} = {}", hint.trim()))
    }
}
