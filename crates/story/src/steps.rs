//! A run as steps, for programs that show a story as it goes.
//!
//! A step is everything that one statement did at one instant: an `await` during which three documents change at
//! different times has three steps. The texts are those of the transcript.

use forewarn_lifecycle::EventId;

use crate::error::StoryError;
use crate::rules_backend::RulesBackend;
use crate::runner::{Runner, finish};
use crate::statement::Story;
use crate::step_recorder::{StepLimits, StepRecorder, StoryStep};
use crate::transcript::Transcript;

/// A run as steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryRun {
    /// The steps, in order.
    pub steps: Vec<StoryStep>,
    /// The ids of the events E1, E2 … of the texts.
    pub events: Vec<EventId>,
    /// The final state of the machines, line by line; empty unless the story has passed.
    pub machines: Vec<String>,
    /// The way in which the run ended.
    pub end: RunEnd,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// All statements were carried out, and all expectations hold.
    Passed,
    /// The text is not a story, a statement failed, or an expectation does not hold.
    Failed(StoryError),
    /// A limit was reached at this line.
    Stopped(StoryError),
}

/// Runs a story against the pure rules, and records its steps up to its end, its first failure, or a limit.
#[must_use]
pub fn run_in_steps(story: &Story, limits: StepLimits) -> StoryRun {
    let mut backend = RulesBackend::default();
    let mut runner = Runner::on(&mut backend);
    runner.transcript = Transcript::with_steps(StepRecorder::new(limits));
    let result = story.statements.iter().try_for_each(|statement| runner.execute(statement));
    let result = result.and_then(|()| finish(&mut runner, story));
    let events = runner.transcript.events().to_vec();
    let recorder = runner.transcript.into_steps().unwrap_or_else(|| StepRecorder::new(limits));
    let end = match result {
        Ok(()) => RunEnd::Passed,
        Err(error) if recorder.is_stopped => RunEnd::Stopped(error),
        Err(error) => RunEnd::Failed(error),
    };
    StoryRun { steps: recorder.steps, events, machines: recorder.machines, end }
}
