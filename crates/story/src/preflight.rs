//! Mistakes that can be found before a story runs: names of objects that no statement makes, and times that go back.
//!
//! The fleet is built as the story describes it, and nothing happens to it. So it has every object that could exist at a
//! statement, and perhaps some that have gone: a name that it does not have is wrong in any case.

use std::time::Duration;

use forewarn_control::{CommandError, LookupError, NamedCommand, find_host, find_machine, find_tenant};
use forewarn_lifecycle::Cluster;
use forewarn_types::show_duration;

use crate::backend::Backend;
use crate::error::StoryError;
use crate::fleet_commands::describes_fleet;
use crate::rules_backend::RulesBackend;
use crate::runner::command_for;
use crate::statement::{
    ApprovedBy, Expectation, Expected, Operation, SourceLine, SourceName, Statement, StatementKind,
    StatementTime, Story,
};

impl Story {
    /// Checks the names and times of the story without running it.
    ///
    /// # Errors
    /// Points at the first name of an object that does not exist there, or at the first time that has already passed.
    pub fn check(&self) -> Result<(), StoryError> {
        let mut preflight =
            Preflight { fleet: RulesBackend::default(), is_fleet_complete: true, earliest: Duration::ZERO };
        self.statements.iter().try_for_each(|statement| preflight.check(statement))
    }
}

struct Preflight {
    /// Everything that the statements so far have made.
    fleet: RulesBackend,
    /// False once the fleet had no room for something: in the story, something else may have gone before.
    is_fleet_complete: bool,
    /// The time of the story, or an earlier one.
    earliest: Duration,
}

/// Finds an object by its name.
type Finder<T> = fn(&Cluster, &str) -> Result<T, LookupError>;

impl Preflight {
    fn check(&mut self, statement: &Statement) -> Result<(), StoryError> {
        let location = &statement.location;
        match statement.at {
            Some(StatementTime::Since(at)) if at < self.earliest => {
                let earliest = show_duration(self.earliest);
                return Err(location.error_on_line(format!("the time of the story is already {earliest}")));
            }
            Some(StatementTime::Since(at)) => self.earliest = at,
            Some(StatementTime::After(span)) => self.earliest = self.earliest.saturating_add(span),
            None => {}
        }
        match &statement.kind {
            StatementKind::Perform(operation) | StatementKind::Attempt(operation) => {
                self.check_operation(location, operation)?;
                self.build(operation);
                Ok(())
            }
            StatementKind::Refused(operation) => self.check_operation(location, operation),
            StatementKind::Poll(Some(machine)) | StatementKind::Run { machine, .. } => {
                self.find(location, machine, find_machine)
            }
            StatementKind::Inject(fault) => self.find(location, &fault.machine, find_machine),
            StatementKind::Advance(span) => {
                self.earliest = self.earliest.saturating_add(*span);
                Ok(())
            }
            StatementKind::Expect(all) | StatementKind::Await { all, .. } => {
                all.iter().try_for_each(|expectation| self.check_expectation(location, expectation))
            }
            StatementKind::Poll(None)
            | StatementKind::StepClock(_)
            | StatementKind::Crash
            | StatementKind::Fencing(_) => Ok(()),
        }
    }

    fn check_operation(&self, location: &SourceLine, operation: &Operation) -> Result<(), StoryError> {
        match operation {
            Operation::Perform(commands) => {
                commands.iter().try_for_each(|command| self.check_command(location, command))
            }
            Operation::Repeat { command, .. } => self.check_command(location, command),
            Operation::Approve { what, by } => {
                let tenants = what.iter().filter(|name| !is_event(name.as_str()));
                tenants.into_iter().try_for_each(|name| self.find(location, name, find_tenant))?;
                match by {
                    ApprovedBy::Machine(machine) => self.find(location, machine, find_machine),
                    ApprovedBy::OwnerOf(tenant) => self.find(location, tenant, find_tenant),
                }
            }
            // The names of events are those of the transcript.
            Operation::Cancel(_) | Operation::Force(_) => Ok(()),
            Operation::Rollout(operation) => self.check_command(location, &command_for(0, operation)),
            Operation::Policy { tenant, .. } => self.find(location, tenant, find_tenant),
        }
    }

    fn check_expectation(&self, location: &SourceLine, expectation: &Expectation) -> Result<(), StoryError> {
        let subject = &expectation.subject;
        match &expectation.is {
            Expected::Events(_) | Expected::Enrolled | Expected::NotEnrolled | Expected::Incarnation(_) => {
                self.find(location, subject, find_tenant)
            }
            Expected::On(host) => {
                self.find(location, subject, find_machine)?;
                self.find(location, host, find_host)
            }
            Expected::Boots(_)
            | Expected::Disk(_)
            | Expected::Model(_)
            | Expected::Power(_)
            | Expected::Approved(_) => self.find(location, subject, find_machine),
            Expected::Mode(_) => self.find(location, subject, find_host),
            // A machine that never existed is gone.
            Expected::Gone | Expected::Rollout(_) | Expected::NoUnapprovedStart => Ok(()),
        }
    }

    /// Checks the names in a command. Everything else in it is up to the rules.
    fn check_command(&self, location: &SourceLine, command: &NamedCommand) -> Result<(), StoryError> {
        match command.resolve(self.fleet.cluster()) {
            Err(CommandError::Unknown(unknown @ LookupError::Nothing { .. })) if self.is_fleet_complete => {
                Err(location.error_about(&unknown.to_string()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Checks that an object exists. A name may be ambiguous only because nothing leaves this fleet.
    fn find<T>(&self, location: &SourceLine, name: &SourceName, find: Finder<T>) -> Result<(), StoryError> {
        match find(self.fleet.cluster(), name.as_str()) {
            Err(unknown @ LookupError::Nothing { .. }) if self.is_fleet_complete => {
                Err(location.error_at(name, unknown.to_string()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Adds the objects that an operation makes.
    fn build(&mut self, operation: &Operation) {
        let (commands, times) = operation.commands();
        for command in commands.iter().filter(|command| describes_fleet(command)) {
            for _ in 0..times {
                self.is_fleet_complete &= self.fleet.perform(command).is_ok();
            }
        }
    }
}

/// Returns true for the name of an event in a transcript: `E1`.
fn is_event(name: &str) -> bool {
    name.strip_prefix('E').is_some_and(|number| number.parse::<u64>().is_ok())
}
