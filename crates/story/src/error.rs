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
    /// The circumstances, if the story was running.
    pub failure: Option<Box<StoryFailure>>,
}

/// The circumstances of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoryFailure {
    /// The transcript up to the failed line.
    pub transcript: String,
    /// The expected condition, if an expectation failed: `solo Started`.
    pub expected: Option<String>,
    /// The condition that was found instead: `nothing`.
    pub actual: Option<String>,
}

impl StoryError {
    pub(crate) fn new(line: usize, (column, width): (usize, usize), text: String, message: String) -> Self {
        Self { line, column, width, text, message, failure: None }
    }

    /// Adds the expected condition, and the one that was found.
    pub(crate) fn expecting(mut self, expected: &str, actual: &str) -> Self {
        let failure = self.failure.get_or_insert_default();
        (failure.expected, failure.actual) = (Some(expected.to_owned()), Some(actual.to_owned()));
        self
    }

    /// Adds the transcript up to the error.
    pub(crate) fn after(mut self, transcript: String) -> Self {
        self.failure.get_or_insert_default().transcript = transcript;
        self
    }
}

impl fmt::Display for StoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, width, text, message, failure } = self;
        let margin = " ".repeat(line.to_string().len());
        let (indent, mark) = (" ".repeat(column.saturating_sub(1)), "^".repeat((*width).max(1)));
        // Hints follow the quoted line, so that message and line stay together.
        let mut lines = message.lines();
        writeln!(f, "line {line}, column {column}: {}", lines.next().unwrap_or_default())?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{margin} | {indent}{mark}")?;
        lines.try_for_each(|hint| write!(f, "\n{margin} = {}", hint.trim()))?;
        let Some(failure) = failure else { return Ok(()) };
        let conditions = [("expected: ", &failure.expected), ("actual:   ", &failure.actual)];
        conditions.into_iter().try_for_each(|(name, condition)| match condition {
            Some(condition) => write!(f, "\n{margin} = {name}{condition}"),
            None => Ok(()),
        })
    }
}
