//! What a story can say.

use std::time::Duration;

use forewarn_control::{ApproveWord, NamedCommand, TermsEntry};

use crate::error::Mistake;
use crate::stage::{ClockStep, ONLY_BY_THE_RULES};
use crate::words::{Line, Word};

/// A story that has been read: its lines, in order.
#[derive(Clone, Debug)]
pub struct Story {
    pub(crate) lines: Vec<Told>,
}

/// One line: when, what, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) place: Place,
    /// Since the beginning of the story.
    pub(crate) at: Option<Duration>,
    pub(crate) says: Says,
}

/// A line of the text, for mistakes found later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    line: usize,
    text: String,
    words: Vec<Named>,
    /// The words of the line, one space apart.
    pub(crate) plain: String,
}

/// A name, and the column in which it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    name: String,
    column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// The fleet, or something that happens to it.
    Does(Deed),
    /// Something that the rules refuse.
    Refused(Deed),
    /// A machine asks for its events; without a name, one of every tenant does.
    Poll(Option<Named>),
    Advance(Duration),
    StepClock(ClockStep),
    Crash,
    Expect(Vec<Expectation>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// What can be said without looking at the fleet.
    Perform(Vec<NamedCommand>),
    Approve {
        what: Vec<Named>,
        by: By,
    },
    Cancel(Named),
    Force(Named),
    /// Something about the oldest rollout.
    Rollout(RolloutDeed),
    /// A tenant keeps its policy but for one rule.
    Policy {
        tenant: Named,
        rule: PolicyRule,
        approve: ApproveWord,
    },
}

/// What an operator does to a rollout under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutDeed {
    Cancel,
    Pause { take_back: bool },
    Resume,
    Change { terms: TermsEntry, add: Vec<String>, remove: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Machine(Named),
    OwnerOf(Named),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyRule {
    Restart,
    Redeploy,
    AllDown,
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) subject: Named,
    pub(crate) is: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A tenant sees events in these phases, in order of announcement.
    Events(Vec<Seen>),
    Enrolled,
    NotEnrolled,
    Incarnation(u64),
    On(Named),
    Boots(u32),
    Disk(u32),
    Model(u32),
    Power(&'static str),
    Gone,
    /// The last rollout stands so: `going`, `paused`, `waits-for-window`, …
    Rollout(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Scheduled,
    Started,
}

impl Story {
    /// Whether the story can be played on a live server.
    ///
    /// # Errors
    /// Points at the first line that cannot: one where the wall clock is stepped, or the process dies.
    pub fn check_live(&self) -> Result<(), Mistake> {
        let only_by_the_rules = |told: &&Told| match told.says {
            Says::StepClock(_) | Says::Crash => true,
            Says::Does(_) | Says::Refused(_) | Says::Poll(_) | Says::Advance(_) | Says::Expect(_) => false,
        };
        let first = self.lines.iter().find(only_by_the_rules);
        first.map_or(Ok(()), |told| Err(told.place.mistake_here(ONLY_BY_THE_RULES)))
    }
}

impl Named {
    pub(crate) fn new(word: Word<'_>) -> Self {
        Self { name: word.text.to_owned(), column: word.column }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }
}

impl Place {
    pub(crate) fn of(line: &Line<'_>) -> Self {
        let text = line.mistake_at_end("").text;
        let words = line.words().map(Named::new).collect();
        Self { line: line.number, text, words, plain: line.plain() }
    }

    /// A mistake at a name of this line.
    pub(crate) fn mistake(&self, at: &Named, message: impl Into<String>) -> Mistake {
        let width = at.name.chars().count();
        Mistake {
            line: self.line,
            column: at.column,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }

    /// A mistake about a name that the message ends with, as `no such host: h9` does; of the line, if it is not in there.
    /// The last such word is meant: what there is to be found comes after what is new.
    pub(crate) fn mistake_about(&self, message: &str) -> Mistake {
        let first = message.lines().next().unwrap_or_default();
        let name = first.rsplit(": ").next().unwrap_or_default();
        let is_meant = |word: &&Named| {
            let rest = word.name.strip_prefix(name);
            !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self.words.iter().rfind(is_meant) {
            Some(word) => self.mistake(word, message),
            None => self.mistake_here(message),
        }
    }

    /// A mistake of the line as a whole.
    pub(crate) fn mistake_here(&self, message: impl Into<String>) -> Mistake {
        let indent = self.text.chars().take_while(|c| c.is_whitespace()).count();
        let width = self.text.chars().count() - indent;
        Mistake {
            line: self.line,
            column: indent + 1,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }
}
