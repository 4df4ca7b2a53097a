//! Statements of a story.

use std::time::Duration;

use forewarn_control::{ApproveWord, Fencing, NamedCommand, NewFault, TermsEntry};
use forewarn_types::{FaultAnswer, FaultedRequest};

use crate::backend::{ClockStep, Program};
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
    pub(crate) at: Option<StatementTime>,
    pub(crate) kind: StatementKind,
}

/// The time of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementTime {
    /// Since the beginning of the story.
    Since(Duration),
    /// Since the statement before it.
    After(Duration),
}

/// A line of the text, for errors that are found later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    pub(crate) line: usize,
    /// The line as it is carried out.
    text: String,
    /// The line as it is written, if it contains variables.
    written: Option<String>,
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
    /// An operation that the rules may refuse.
    Attempt(Operation),
    /// A poll of one machine; without a name, of one machine of every tenant.
    Poll(Option<SourceName>),
    /// A program is the machine from now on.
    Run {
        program: Program,
        machine: SourceName,
    },
    Advance(Duration),
    StepClock(ClockStep),
    Crash,
    /// Failed hosts need a fence from now on, or need none.
    Fencing(Fencing),
    /// A fault of the next requests of a machine.
    Inject(InjectedFault),
    Expect(Vec<Expectation>),
    /// The clock advances until the expectations hold.
    Await {
        all: Vec<Expectation>,
        within: Duration,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Commands that need no lookup.
    Perform(Vec<NamedCommand>),
    /// The same command several times.
    Repeat {
        command: NamedCommand,
        times: u16,
    },
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

impl Operation {
    /// The commands that need no lookup, and how often they are performed.
    pub(crate) fn commands(&self) -> (&[NamedCommand], u16) {
        match self {
            Self::Perform(commands) => (commands, 1),
            Self::Repeat { command, times } => (std::slice::from_ref(command), *times),
            Self::Approve { .. }
            | Self::Cancel(_)
            | Self::Force(_)
            | Self::Rollout(_)
            | Self::Policy { .. } => (&[], 0),
        }
    }
}

/// A fault of the next requests of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    pub(crate) machine: SourceName,
    pub(crate) request: FaultedRequest,
    pub(crate) next: u32,
    pub(crate) answer: FaultAnswer,
}

impl InjectedFault {
    /// The fault of the machine with that full name.
    pub(crate) fn of(&self, machine: &str) -> NewFault {
        NewFault {
            machine: Some(machine.to_owned()),
            webhook: None,
            request: Some(self.request),
            next: Some(self.next),
            answer: self.answer,
        }
    }
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
    /// The words of the story.
    pub(crate) text: String,
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
    /// The newest event of a machine is approved.
    Approved(ApprovalSource),
    /// No announced event has started without approval.
    NoUnapprovedStart,
}

/// The required source of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalSource {
    Anyone,
    /// The machine itself.
    Itself,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventPhase {
    Scheduled,
    Started,
}

impl SourceName {
    pub(crate) fn new(word: Token<'_>) -> Self {
        Self { name: word.text.to_owned(), column: word.column }
    }

    /// Another name at the same place.
    pub(crate) fn renamed(&self, name: String) -> Self {
        Self { name, column: self.column }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }
}

impl SourceLine {
    pub(crate) fn of(line: &LineReader<'_>) -> Self {
        Self { line: line.number, text: line.display_text(), written: None }
    }

    /// The same line, of which this text is written in the story.
    pub(crate) fn written(self, text: &str) -> Self {
        Self { written: Some(text.trim().replace('\t', " ")), ..self }
    }

    /// The words of the line, one space apart, without its time.
    pub(crate) fn plain(&self) -> String {
        let reader = LineReader::new(self.line, &self.text);
        let count = reader.words().count();
        let has_time = reader.peek().is_some_and(|word| word.text == "at");
        reader.plain_from(if has_time { count.min(2) } else { 0 }, count)
    }

    /// An error at a name of this line.
    pub(crate) fn error_at(&self, at: &SourceName, message: impl Into<String>) -> StoryError {
        self.error((at.column, at.name.chars().count()), message.into())
    }

    /// An error about the name at the end of a message such as `no such host: h9`; about the whole line, if the name is
    /// not part of it. The last matching word counts, because names of existing objects follow the name of a new one.
    pub(crate) fn error_about(&self, message: &str) -> StoryError {
        let first = message.lines().next().unwrap_or_default();
        let name = first.rsplit(": ").next().unwrap_or_default();
        let is_meant = |word: &Token<'_>| {
            let rest = word.text.strip_prefix(name);
            !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match LineReader::new(self.line, &self.text).words().filter(is_meant).last() {
            Some(word) => self.error_at(&SourceName::new(word), message),
            None => self.error_on_line(message),
        }
    }

    /// An error of the line as a whole.
    pub(crate) fn error_on_line(&self, message: impl Into<String>) -> StoryError {
        let indent = self.text.chars().take_while(|c| c.is_whitespace()).count();
        self.error((indent + 1, self.text.chars().count() - indent), message.into())
    }

    fn error(&self, place: (usize, usize), message: String) -> StoryError {
        let message = match &self.written {
            Some(written) => expanded(&message, written),
            None => message,
        };
        StoryError::new(self.line, place, self.text.clone(), message)
    }
}

/// A message about a line with the values of its variables.
pub(crate) fn expanded(message: &str, written: &str) -> String {
    format!("{message}\nwritten: {written}")
}
