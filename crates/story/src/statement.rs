//! Statements of a story.

use std::time::Duration;

use forewarn_control::{ApproveWord, Fencing, NamedCommand, TermsEntry};

use crate::backend::{ClockStep, NOT_ON_A_SERVER};
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};

/// A parsed story: its statements, in order.
#[derive(Clone, Debug)]
pub struct Story {
    pub(crate) statements: Vec<Statement>,
}

/// One statement: its line, its time and its kind.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) location: SourceLine,
    /// Since the beginning of the story.
    pub(crate) at: Option<Duration>,
    pub(crate) kind: StatementKind,
}

/// A line of the text, for errors that are found later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    line: usize,
    text: String,
    words: Vec<SourceName>,
    /// The words of the line, one space apart.
    pub(crate) plain: String,
}

/// A name and its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceName {
    name: String,
    column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// An operation on the fleet.
    Perform(Operation),
    /// An operation that the rules must refuse.
    Refused(Operation),
    /// A poll of one machine; without a name, of one machine of every tenant.
    Poll(Option<SourceName>),
    Advance(Duration),
    StepClock(ClockStep),
    Crash,
    /// Failed hosts need a fence from now on, or need none.
    Fencing(Fencing),
    Expect(Vec<Expectation>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Commands that need no lookup.
    Perform(Vec<NamedCommand>),
    Approve {
        what: Vec<SourceName>,
        by: ApprovedBy,
    },
    Cancel(SourceName),
    Force(SourceName),
    /// An operation on the oldest rollout.
    Rollout(RolloutOperation),
    /// A change of one rule of a tenant's policy.
    Policy {
        tenant: SourceName,
        rule: PolicyRule,
        approve: ApproveWord,
    },
}

/// An operation on a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutOperation {
    Cancel,
    Pause { take_back: bool },
    Resume,
    Change { terms: TermsEntry, add: Vec<String>, remove: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovedBy {
    Machine(SourceName),
    OwnerOf(SourceName),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyRule {
    Restart,
    Redeploy,
    AllDown,
}

/// An expected condition of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) subject: SourceName,
    pub(crate) is: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A tenant sees events in these phases, in order of announcement.
    Events(Vec<EventPhase>),
    Enrolled,
    NotEnrolled,
    Incarnation(u64),
    On(SourceName),
    Boots(u32),
    Disk(u32),
    Model(u32),
    Power(&'static str),
    Gone,
    /// State of the last rollout: `going`, `paused`, `waits-for-window`, …
    Rollout(String),
    /// Maintenance mode of a host: `entering`, `entered`, `incomplete`, or `open` without it.
    Mode(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventPhase {
    Scheduled,
    Started,
}

impl Story {
    /// Checks that the story can run on a live server.
    ///
    /// # Errors
    /// Points at the first unsupported statement: a step of the wall clock, a crash, or fencing.
    pub fn check_live(&self) -> Result<(), StoryError> {
        let is_unsupported = |statement: &&Statement| match statement.kind {
            StatementKind::StepClock(_) | StatementKind::Crash | StatementKind::Fencing(_) => true,
            StatementKind::Perform(_)
            | StatementKind::Refused(_)
            | StatementKind::Poll(_)
            | StatementKind::Advance(_)
            | StatementKind::Expect(_) => false,
        };
        let first = self.statements.iter().find(is_unsupported);
        first.map_or(Ok(()), |statement| Err(statement.location.error_on_line(NOT_ON_A_SERVER)))
    }
}

impl SourceName {
    pub(crate) fn new(word: Token<'_>) -> Self {
        Self { name: word.text.to_owned(), column: word.column }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }
}

impl SourceLine {
    pub(crate) fn of(line: &LineReader<'_>) -> Self {
        let text = line.error_at_end("").text;
        let words = line.words().map(SourceName::new).collect();
        Self { line: line.number, text, words, plain: line.plain() }
    }

    /// An error at a name of this line.
    pub(crate) fn error_at(&self, at: &SourceName, message: impl Into<String>) -> StoryError {
        let width = at.name.chars().count();
        StoryError {
            line: self.line,
            column: at.column,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }

    /// An error about the name at the end of a message such as `no such host: h9`; about the whole line, if the name is
    /// not part of it. The last matching word counts, because names of existing objects follow the name of a new one.
    pub(crate) fn error_about(&self, message: &str) -> StoryError {
        let first = message.lines().next().unwrap_or_default();
        let name = first.rsplit(": ").next().unwrap_or_default();
        let is_meant = |word: &&SourceName| {
            let rest = word.name.strip_prefix(name);
            !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self.words.iter().rfind(is_meant) {
            Some(word) => self.error_at(word, message),
            None => self.error_on_line(message),
        }
    }

    /// An error of the line as a whole.
    pub(crate) fn error_on_line(&self, message: impl Into<String>) -> StoryError {
        let indent = self.text.chars().take_while(|c| c.is_whitespace()).count();
        let width = self.text.chars().count() - indent;
        StoryError {
            line: self.line,
            column: indent + 1,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }
}
