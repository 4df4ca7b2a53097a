//! The course of a test: requested events one after the other, or a story.

use anyhow::{Context, Result};
use forewarn_story::{StoryError, Transcript};
use forewarn_types::show_duration;
use tokio::runtime::Handle;

use super::TestArgs;
use super::machines::Machines;
use super::pacer::{Pacer, PacerError};
use super::preparation::{Scenario, ScenarioStory};
use super::programs::{NewProgram, Programs};
use super::story_stage::StoryStage;
use crate::client::Client;
use crate::exit_code::ExitError;
use crate::requested_events::RequestedEvent;
use crate::story::live::LiveStage;

/// The parts of a test that its course needs.
#[derive(Clone)]
pub(super) struct Course<'a> {
    pub(super) arguments: &'a TestArgs,
    pub(super) pacer: Pacer,
    pub(super) programs: Programs,
    pub(super) machines: Machines,
    pub(super) default: Option<String>,
}

/// The result of a course, besides the events.
#[derive(Debug, Default)]
pub(super) struct CourseResult {
    /// Failures, each in a sentence.
    pub(super) failures: Vec<String>,
    /// The failure of a story, with its line.
    pub(super) details: Option<String>,
    pub(super) transcript: Option<String>,
}

impl Course<'_> {
    /// Lets everything happen.
    pub(super) async fn run(self, scenario: &Scenario) -> Result<CourseResult> {
        let ran = match scenario {
            Scenario::Events(events) => self.run_events(events).await,
            Scenario::Story(story) => self.run_story(story).await,
        };
        match ran {
            Err(error) if error.downcast_ref::<PacerError>() == Some(&PacerError::Ended) => {
                Ok(CourseResult::default())
            }
            other => other,
        }
    }

    async fn run_events(&self, events: &[RequestedEvent]) -> Result<CourseResult> {
        let default = self.machines.default(self.default.as_deref())?;
        let (words, environment) = (self.arguments.command.as_slice(), self.machines.environment()?);
        let (machine, metadata) = (default.name.name.as_str(), default.url.as_str());
        self.pacer.observer.note_program(&default.name);
        let started = self.programs.start(&NewProgram { words, machine, metadata, environment });
        started.map_err(|error| {
            let program = words.first().map(|word| word.to_string_lossy());
            ExitError::unstarted(&program.unwrap_or_default(), &error)
        })?;
        let mut result = CourseResult::default();
        for event in events {
            let name = event.machine(machine);
            let tenant = self.machines.find(name)?.name.tenant;
            let has_polled = || self.pacer.observer.has_tenant_polled(&tenant);
            if self.pacer.wait_for(self.arguments.startup, has_polled).await? {
                self.pacer.pass(self.arguments.after).await?;
                event.announce(&self.pacer.control, name).await?;
                self.pacer.finish().await?;
            } else if self.pacer.observer.end_unless_polled() {
                // The verdict says that no machine polled.
                break;
            } else {
                let (kind, startup) = (event.kind.as_str(), show_duration(self.arguments.startup));
                let why = format!("{name} did not poll within {startup}, so its {kind} was not announced");
                result.failures.push(why);
            }
        }
        Ok(result)
    }

    async fn run_story(&self, story: &ScenarioStory) -> Result<CourseResult> {
        let (api, runtime) = (self.machines.api.clone(), Handle::current());
        let (pacer, programs, machines) = (self.pacer.clone(), self.programs.clone(), self.machines.clone());
        let (command, default) = (self.arguments.command.clone(), self.default.clone());
        let is_command_due = story.is_command_due;
        let (startup, text) = (self.arguments.startup, story.story.clone());
        let run = move || -> Result<Result<Transcript, StoryError>> {
            let live = LiveStage::new(Client::new(&api)?)?;
            let mut stage = StoryStage {
                live,
                seen_commits: pacer.commits(),
                pacer,
                programs,
                machines,
                command,
                is_command_due,
                default,
                startup,
                runtime,
            };
            Ok(forewarn_story::run_on(&text, &mut stage))
        };
        let ran = tokio::task::spawn_blocking(run).await.context("the story was aborted")??;
        let mut result = CourseResult::default();
        match ran {
            Ok(transcript) => {
                result.transcript = Some(transcript.to_string());
                self.pacer.finish().await?;
            }
            Err(error) => {
                let first = error.message.lines().next().unwrap_or_default();
                result.failures.push(format!("the story failed in line {}: {first}", error.line));
                result.details = Some(error.to_string());
                result.transcript = error.failure.map(|failure| failure.transcript);
            }
        }
        Ok(result)
    }
}
