//! Recorder of the steps of a run: what each statement did at each instant, within limits.

use std::time::{Duration, Instant};

use forewarn_types::show_duration;

use crate::statement::SourceLine;

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryStep {
    /// The line of the statement, from 1.
    pub line: usize,
    /// The statement, with the values of its variables and without its time.
    pub statement: String,
    /// The time since the beginning of the story.
    pub at: Duration,
    /// What happened, line by line.
    pub text: Vec<String>,
    /// The documents that have changed.
    pub documents: Vec<StepDocument>,
    /// The expectations that were checked.
    pub expectations: Vec<CheckedExpectation>,
}

/// A document that has changed, in the newest edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDocument {
    /// The tenant whose machines read it.
    pub tenant: String,
    /// The document. None if the tenant no longer exists.
    pub document: Option<String>,
}

/// An expectation that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedExpectation {
    /// The expected condition: `solo Started`.
    pub expected: String,
    /// The condition that was found instead. None if the expectation holds.
    pub found: Option<String>,
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct StepLimits {
    /// The number of steps.
    pub steps_max: usize,
    /// The bytes of all texts and documents.
    pub bytes_max: usize,
    /// The time that the run may take on this computer.
    pub time_max: Duration,
}

/// Steps so far, and the statement that is being carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepRecorder {
    pub(crate) steps: Vec<StoryStep>,
    pub(crate) machines: Vec<String>,
    line: usize,
    statement: String,
    /// The part of the run that texts belong to.
    part: RunPart,
    bytes: usize,
    steps_max: usize,
    bytes_max: usize,
    time_max: Duration,
    deadline: Option<Instant>,
    /// A limit was reached.
    pub(crate) is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPart {
    /// The statement has recorded nothing yet.
    NewStatement,
    /// The last step belongs to the statement.
    Statement,
    /// All statements are done.
    End,
}

impl StepRecorder {
    pub(crate) fn new(StepLimits { steps_max, bytes_max, time_max }: StepLimits) -> Self {
        Self {
            steps: Vec::new(),
            machines: Vec::new(),
            line: 0,
            statement: String::new(),
            part: RunPart::NewStatement,
            bytes: 0,
            steps_max,
            bytes_max,
            time_max,
            deadline: Instant::now().checked_add(time_max),
            is_stopped: false,
        }
    }

    /// Begins a statement.
    pub(crate) fn begin(&mut self, location: &SourceLine) {
        (self.line, self.statement, self.part) = (location.line, location.plain(), RunPart::NewStatement);
    }

    /// Begins the description of the final state.
    pub(crate) fn begin_end(&mut self) {
        self.part = RunPart::End;
    }

    /// The step of the statement at that time.
    fn step_at(&mut self, at: Duration) -> &mut StoryStep {
        let is_current = self.part != RunPart::NewStatement;
        if is_current && self.steps.last().is_some_and(|step| step.at == at) {
            let last = self.steps.len() - 1;
            return &mut self.steps[last];
        }
        self.part = RunPart::Statement;
        self.bytes += self.statement.len();
        self.steps.push_mut(StoryStep {
            line: self.line,
            statement: self.statement.clone(),
            at,
            text: Vec::new(),
            documents: Vec::new(),
            expectations: Vec::new(),
        })
    }

    /// Makes sure that the statement has a step at that time.
    pub(crate) fn stamp(&mut self, at: Duration) {
        self.step_at(at);
    }

    /// Adds a line to the last step, or to the final state.
    pub(crate) fn text(&mut self, line: &str) {
        self.bytes += line.len();
        match (self.part, self.steps.last_mut()) {
            (RunPart::End, _) => self.machines.push(line.to_owned()),
            (RunPart::Statement | RunPart::NewStatement, Some(step)) => step.text.push(line.to_owned()),
            (RunPart::Statement | RunPart::NewStatement, None) => {}
        }
    }

    /// Adds a changed document to the last step.
    pub(crate) fn document(&mut self, tenant: &str, document: Option<&[u8]>) {
        let document = document.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        self.bytes += tenant.len() + document.as_ref().map_or(0, String::len);
        if let Some(step) = self.steps.last_mut() {
            step.documents.push(StepDocument { tenant: tenant.to_owned(), document });
        }
    }

    /// Adds a checked expectation.
    pub(crate) fn expectation(&mut self, at: Duration, expected: &str, found: Option<&str>) {
        self.bytes += expected.len() + found.map_or(0, str::len);
        let found = found.map(str::to_owned);
        self.step_at(at).expectations.push(CheckedExpectation { expected: expected.to_owned(), found });
    }

    /// The limit that is exceeded, with a hint. The run has to end.
    pub(crate) fn exceeded(&mut self) -> Option<String> {
        let limit = if self.steps.len() > self.steps_max {
            format!("{} steps", self.steps_max)
        } else if self.bytes > self.bytes_max {
            format!("{} KiB of documents and texts", self.bytes_max / 1024)
        } else if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            format!("{} of computing", show_duration(self.time_max))
        } else {
            return None;
        };
        self.is_stopped = true;
        Some(format!(
            "the run stops here: it has at most {limit}\n  hint: `forewarn story run FILE` has no such limit"
        ))
    }
}
