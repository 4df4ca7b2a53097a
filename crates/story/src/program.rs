//! Simulated programs: a machine that polls its document, and approves every scheduled event that it reads.
//!
//! A real program polls about once per second. A simulated one polls when there is something new to read, and often
//! enough to stay enrolled; it responds in the same instant. So a transcript depends on nothing but the story.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_control::MachineView;
use forewarn_imds::{Status, Word};
use forewarn_lifecycle::EventId;
use forewarn_types::show_duration;

use crate::backend::{BackendError, Program, ProgramMode};
use crate::error::StoryError;
use crate::runner::Runner;
use crate::simulated_program::SimulatedProgram;
use crate::statement::{SourceLine, SourceName};

/// Simulated programs in one story.
const PROGRAMS_MAX: usize = 100;

/// The end of a story with simulated programs, counted from its beginning.
const END_MAX: Duration = Duration::from_hours(366 * 24);

/// The longest time between two polls: a tenant without a poll is disabled after a day.
pub(crate) const POLL_INTERVAL_MAX: Duration = Duration::from_hours(12);

impl Runner<'_> {
    pub(crate) fn run_program(
        &mut self,
        location: &SourceLine,
        program: &Program,
        name: &SourceName,
    ) -> Result<(), StoryError> {
        let view = self.machine(location, name)?;
        let machine = name.renamed(format!("{}/{}", view.tenant, view.name));
        if self.programs.iter().any(|program| program.machine.as_str() == machine.as_str()) {
            return Err(location.error_at(name, "a program already runs as this machine"));
        }
        if self.programs.len() >= PROGRAMS_MAX {
            return Err(location.error_at(name, format!("a story runs at most {PROGRAMS_MAX} programs")));
        }
        let mode = self.backend.run_program(&view, program);
        match mode.map_err(|error| location.error_on_line(error.to_string()))? {
            ProgramMode::Started => {}
            ProgramMode::Simulated => {
                let (polled, approved) = (self.backend.elapsed(), BTreeSet::new());
                self.programs.push(SimulatedProgram { machine, read: None, polled, approved });
            }
        }
        Ok(())
    }

    /// The latest time at which a simulated program polls again.
    pub(crate) fn next_poll_of_programs(&self) -> Option<Duration> {
        let polls = self.programs.iter().map(|program| program.polled.saturating_add(POLL_INTERVAL_MAX));
        polls.min().map(|poll| poll.max(self.backend.elapsed().saturating_add(Duration::from_secs(1))))
    }

    pub(crate) fn check_end_of_programs(
        &self,
        location: &SourceLine,
        end: Duration,
    ) -> Result<(), StoryError> {
        if self.programs.is_empty() || end <= END_MAX {
            return Ok(());
        }
        let longest = show_duration(END_MAX);
        Err(location.error_on_line(format!("a story that simulates programs lasts at most {longest}")))
    }

    /// Lets each simulated program read its document, if it has changed. Returns true if a document may have changed.
    pub(crate) fn step_programs(&mut self, location: &SourceLine) -> Result<bool, StoryError> {
        let mut programs = std::mem::take(&mut self.programs);
        let mut acted = false;
        let mut result = Ok(());
        programs.retain_mut(|program| {
            if acted || result.is_err() {
                return true;
            }
            match self.step_program(location, program) {
                Ok(ProgramStep::Acted) => acted = true,
                Ok(ProgramStep::Idle) => {}
                Ok(ProgramStep::Gone) => return false,
                Err(error) => result = Err(error),
            }
            true
        });
        self.programs = programs;
        result.map(|()| acted)
    }

    fn step_program(
        &mut self,
        location: &SourceLine,
        program: &mut SimulatedProgram,
    ) -> Result<ProgramStep, StoryError> {
        let Ok(machine) = self.find_machine(location, &program.machine)? else {
            return Ok(ProgramStep::Gone);
        };
        let now = self.backend.elapsed();
        if machine.power != "running" {
            // It reads everything once it runs again.
            (program.read, program.polled) = (None, now);
            return Ok(ProgramStep::Idle);
        }
        let tenant = self.tenant(location, &program.machine.renamed(machine.tenant.clone()))?;
        let is_news = program.read != Some(tenant.incarnation) || !tenant.enrolled;
        if !is_news && now.saturating_sub(program.polled) < POLL_INTERVAL_MAX {
            return Ok(ProgramStep::Idle);
        }
        let failed = |error: BackendError| location.error_on_line(error.to_string());
        self.backend.poll(&machine).map_err(failed)?;
        (program.read, program.polled) = (Some(tenant.incarnation), now);
        let events = self.events_of(location, &program.machine.renamed(machine.tenant.clone()))?;
        let is_scheduled = |status: &Word<Status>| *status == Word::Known(Status::Scheduled);
        let scheduled = events.iter().filter(|event| is_scheduled(&event.status)).map(|event| event.id);
        let new: Vec<_> = scheduled.filter(|event| program.approved.insert(*event)).collect();
        if !new.is_empty() {
            self.approve_as_program(location, &machine, &new)?;
        }
        Ok(ProgramStep::Acted)
    }

    /// Approves events. A refusal is no failure: an event may have gone since the document was read.
    fn approve_as_program(
        &mut self,
        location: &SourceLine,
        machine: &MachineView,
        events: &[EventId],
    ) -> Result<(), StoryError> {
        let names: Vec<_> = events.iter().map(ToString::to_string).collect();
        let names = self.transcript.with_event_names(&names.join(" "));
        self.transcript.note_at(self.backend.elapsed(), &format!("{} approves {names}", machine.name));
        match self.backend.approve(machine, events) {
            Ok(()) => Ok(()),
            Err(BackendError::Refused(why)) => {
                self.transcript.note(&self.transcript.with_event_names(&why));
                Ok(())
            }
            Err(error @ (BackendError::Invalid(_) | BackendError::Failed(_))) => {
                Err(location.error_on_line(error.to_string()))
            }
        }
    }
}

/// The result of one step of a simulated program.
enum ProgramStep {
    /// It has sent a request.
    Acted,
    /// It has nothing to do.
    Idle,
    /// Its machine no longer exists.
    Gone,
}
