//! Execution of a story on a backend.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_control::{ApproveWord, EventSelection, LookupError, MachineView, NamedCommand, TenantView};
use forewarn_imds::{ReadEvent, Reading, read_document};
use forewarn_lifecycle::{EventId, Refusal};
use forewarn_types::show_duration;

use crate::audit_trail::AuditTrail;
use crate::backend::{Backend, BackendError};
use crate::error::StoryError;
use crate::rules_backend::RulesBackend;
use crate::simulated_program::SimulatedProgram;
use crate::statement::{
    ApprovedBy, Operation, PolicyRule, RolloutOperation, SourceLine, SourceName, Statement, StatementKind,
    StatementTime, Story,
};
use crate::transcript::Transcript;

/// Runs a story against the pure rules, on a virtual clock, with simulated machines.
///
/// # Errors
/// A statement is refused unexpectedly, or not refused as expected, or an expectation fails.
pub fn run(story: &Story) -> Result<Transcript, StoryError> {
    run_on(story, &mut RulesBackend::default())
}

/// Runs a story on a backend without a fleet.
///
/// # Errors
/// A statement is refused unexpectedly, or not refused as expected, an expectation fails, or the backend fails.
pub fn run_on(story: &Story, backend: &mut dyn Backend) -> Result<Transcript, StoryError> {
    let mut runner = Runner::on(backend);
    for statement in &story.statements {
        let executed = runner.execute(statement);
        executed.map_err(|error| error.after(runner.transcript.to_string()))?;
    }
    finish(&mut runner, story).map_err(|error| error.after(runner.transcript.to_string()))?;
    Ok(runner.transcript)
}

/// Records the final state of the machines.
pub(crate) fn finish(runner: &mut Runner<'_>, story: &Story) -> Result<(), StoryError> {
    let last = story.statements.last().map(|statement| &statement.location);
    match (runner.backend.machines(), last) {
        (Ok(machines), _) => runner.transcript.machines(&machines),
        (Err(error), Some(location)) => return Err(location.error_on_line(error.to_string())),
        (Err(_), None) => {}
    }
    Ok(())
}

pub(crate) struct Runner<'a> {
    pub(crate) backend: &'a mut dyn Backend,
    pub(crate) transcript: Transcript,
    /// Programs that are simulated, in the order in which they were started.
    pub(crate) programs: Vec<SimulatedProgram>,
    pub(crate) audit: AuditTrail,
}

/// The reason why a statement failed.
enum StatementError {
    /// The rules refuse it, with this message.
    Refused(String),
    Story(StoryError),
}

impl From<StoryError> for StatementError {
    fn from(error: StoryError) -> Self {
        Self::Story(error)
    }
}

impl<'a> Runner<'a> {
    pub(crate) fn on(backend: &'a mut dyn Backend) -> Self {
        Self {
            backend,
            transcript: Transcript::default(),
            programs: Vec::new(),
            audit: AuditTrail::default(),
        }
    }
}

impl Runner<'_> {
    pub(crate) fn execute(&mut self, statement: &Statement) -> Result<(), StoryError> {
        let location = &statement.location;
        self.transcript.begin(location);
        if let Some(at) = statement.at {
            let at = match at {
                StatementTime::Since(at) => at,
                StatementTime::After(span) => self.backend.elapsed().saturating_add(span),
            };
            if at < self.backend.elapsed() {
                let elapsed = show_duration(self.backend.elapsed());
                return Err(location.error_on_line(format!("the time of the story is already {elapsed}")));
            }
            self.run_to(location, at)?;
        }
        match &statement.kind {
            StatementKind::Perform(operation) => {
                self.record(location);
                self.apply(location, operation).map_err(|error| match error {
                    StatementError::Refused(why) => location.error_on_line(format!("refused: {why}")),
                    StatementError::Story(error) => error,
                })?;
            }
            StatementKind::Refused(operation) => self.expect_refusal(location, operation)?,
            StatementKind::Attempt(operation) => self.attempt(location, operation)?,
            StatementKind::Poll(machine) => {
                self.record(location);
                self.poll(location, machine.as_ref())?;
            }
            StatementKind::Run { program, machine } => {
                self.record(location);
                self.run_program(location, program, machine)?;
            }
            StatementKind::Advance(span) => {
                self.record(location);
                self.run_to(location, self.backend.elapsed().saturating_add(*span))?;
            }
            StatementKind::StepClock(step) => {
                self.record(location);
                self.backend.step_clock(*step).map_err(|error| location.error_on_line(error.to_string()))?;
            }
            StatementKind::Fencing(fencing) => {
                self.record(location);
                let set = self.backend.set_fencing(*fencing);
                set.map_err(|error| location.error_on_line(error.to_string()))?;
            }
            StatementKind::Crash => {
                self.record(location);
                self.backend.crash().map_err(|error| location.error_on_line(error.to_string()))?;
            }
            StatementKind::Inject(fault) => {
                self.record(location);
                let machine = self.machine(location, &fault.machine)?;
                let injected =
                    self.backend.inject(&fault.of(&format!("{}/{}", machine.tenant, machine.name)));
                injected.map_err(|error| location.error_on_line(error.to_string()))?;
            }
            StatementKind::Expect(all) => {
                for expectation in all {
                    self.check(location, expectation)?;
                }
                return self.check_limits(location);
            }
            StatementKind::Await { all, within } => {
                self.record(location);
                return self.wait_until(location, all, *within);
            }
        }
        self.record_documents(location)
    }

    /// Ends a run whose limits are exceeded.
    fn check_limits(&mut self, location: &SourceLine) -> Result<(), StoryError> {
        self.transcript.exceeded().map_or(Ok(()), |limit| Err(location.error_on_line(limit)))
    }

    fn record(&mut self, location: &SourceLine) {
        self.transcript.line(self.backend.elapsed(), &location.plain());
    }

    /// Records the documents that have changed, and what simulated programs do when they read them.
    pub(crate) fn record_documents(&mut self, location: &SourceLine) -> Result<(), StoryError> {
        loop {
            let recorded = self.transcript.documents(self.backend);
            recorded.map_err(|error| location.error_on_line(error.to_string()))?;
            self.check_limits(location)?;
            if !self.step_programs(location)? {
                return Ok(());
            }
        }
    }

    fn run_to(&mut self, location: &SourceLine, end: Duration) -> Result<(), StoryError> {
        self.check_end_of_programs(location, end)?;
        loop {
            let step = self.next_poll_of_programs().map_or(end, |poll| poll.min(end));
            self.backend.advance(step).map_err(|error| location.error_on_line(error.to_string()))?;
            self.record_documents(location)?;
            if self.backend.elapsed() >= end {
                return Ok(());
            }
        }
    }

    fn expect_refusal(&mut self, location: &SourceLine, operation: &Operation) -> Result<(), StoryError> {
        self.record(location);
        match self.apply(location, operation) {
            Ok(()) => Err(location.error_on_line("expected a refusal, but the statement succeeded")),
            Err(StatementError::Refused(why)) => {
                self.transcript.note(&why);
                Ok(())
            }
            Err(StatementError::Story(error)) => Err(error),
        }
    }

    fn attempt(&mut self, location: &SourceLine, operation: &Operation) -> Result<(), StoryError> {
        self.record(location);
        match self.apply(location, operation) {
            Ok(()) => Ok(()),
            Err(StatementError::Refused(why)) => {
                self.transcript.note(&format!("refused: {why}"));
                Ok(())
            }
            Err(StatementError::Story(error)) => Err(error),
        }
    }

    fn apply(&mut self, location: &SourceLine, operation: &Operation) -> Result<(), StatementError> {
        match operation {
            Operation::Perform(commands) => {
                commands.iter().try_for_each(|command| self.perform(location, command))
            }
            Operation::Repeat { command, times } => {
                (0..*times).try_for_each(|_| self.perform(location, command))
            }
            Operation::Approve { what, by } => self.approve(location, what, by),
            Operation::Cancel(event) => {
                let event = self.event_named(location, event)?.to_string();
                self.perform(location, &NamedCommand::Cancel { event })
            }
            Operation::Force(event) => {
                let event = self.event_named(location, event)?.to_string();
                self.perform(location, &NamedCommand::ForceStart { event })
            }
            Operation::Rollout(operation) => {
                let command = command_for(self.oldest_rollout(location)?, operation);
                self.perform(location, &command)
            }
            Operation::Policy { tenant, rule, approve } => {
                self.change_policy(location, tenant, *rule, *approve)
            }
        }
    }

    /// The id of the oldest rollout that has not ended.
    fn oldest_rollout(&self, location: &SourceLine) -> Result<u64, StoryError> {
        let rollouts = self.backend.rollouts().map_err(|error| location.error_on_line(error.to_string()))?;
        let oldest = rollouts.iter().find(|rollout| rollout.ended_at.is_none());
        oldest.map(|rollout| rollout.id).ok_or_else(|| location.error_on_line("no rollout is in progress"))
    }

    fn perform(&mut self, location: &SourceLine, command: &NamedCommand) -> Result<(), StatementError> {
        self.check_limits(location)?;
        let performed = self.backend.perform(command);
        performed.map_err(|error| self.statement_error(location, error))
    }

    /// Replaces event ids in messages by the names of the transcript.
    fn statement_error(&self, location: &SourceLine, error: BackendError) -> StatementError {
        match error {
            BackendError::Refused(why) => StatementError::Refused(self.transcript.with_event_names(&why)),
            BackendError::Invalid(why) => {
                StatementError::Story(location.error_about(&self.transcript.with_event_names(&why)))
            }
            BackendError::Failed(why) => StatementError::Story(location.error_on_line(why)),
        }
    }

    fn approve(
        &mut self,
        location: &SourceLine,
        what: &[SourceName],
        by: &ApprovedBy,
    ) -> Result<(), StatementError> {
        let mut events = Vec::new();
        for name in what {
            match self.transcript.event_named(name.as_str()) {
                Some(event) => events.push(event),
                None => events.extend(self.events_of(location, name)?.iter().map(|event| event.id)),
            }
        }
        match by {
            ApprovedBy::Machine(machine) => {
                let machine = self.machine(location, machine)?;
                let approved = self.backend.approve(&machine, &events);
                approved.map_err(|error| self.statement_error(location, error))
            }
            ApprovedBy::OwnerOf(tenant) => {
                let tenant = self.tenant(location, tenant)?.name;
                if events.is_empty() {
                    return Err(StatementError::Refused(Refusal::NoEvents.to_string()));
                }
                let events = EventSelection::Ids(events.iter().map(ToString::to_string).collect());
                self.perform(location, &NamedCommand::Approve { tenant, events })
            }
        }
    }

    fn change_policy(
        &mut self,
        location: &SourceLine,
        tenant: &SourceName,
        rule: PolicyRule,
        approve: ApproveWord,
    ) -> Result<(), StatementError> {
        let TenantView { name: tenant, mut policy, .. } = self.tenant(location, tenant)?;
        match rule {
            PolicyRule::Restart => policy.restart = approve,
            PolicyRule::Redeploy => policy.redeploy = approve,
            PolicyRule::AllDown => policy.all_down = approve,
        }
        self.perform(location, &NamedCommand::ChangePolicy { tenant, policy })
    }

    fn poll(&mut self, location: &SourceLine, machine: Option<&SourceName>) -> Result<(), StoryError> {
        let machines = match machine {
            Some(machine) => vec![self.machine(location, machine)?],
            None => self.one_of_each_tenant(location)?,
        };
        for machine in machines {
            self.backend.poll(&machine).map_err(|error| location.error_on_line(error.to_string()))?;
        }
        Ok(())
    }

    /// The first machine of every tenant that has one.
    fn one_of_each_tenant(&self, location: &SourceLine) -> Result<Vec<MachineView>, StoryError> {
        let broken = |error: BackendError| location.error_on_line(error.to_string());
        let machines = self.backend.machines().map_err(broken)?;
        let tenants = self.backend.tenants().map_err(broken)?;
        let mut first = BTreeMap::new();
        for machine in &machines {
            first.entry(machine.tenant.as_str()).or_insert(machine);
        }
        let first = |tenant: &TenantView| first.get(tenant.name.as_str()).map(|machine| (*machine).clone());
        Ok(tenants.iter().filter_map(first).collect())
    }

    fn event_named(&self, location: &SourceLine, name: &SourceName) -> Result<EventId, StoryError> {
        let event = self.transcript.event_named(name.as_str());
        event.ok_or_else(|| location.error_at(name, "no such event in the transcript"))
    }

    /// The visible events of a tenant, as one of its machines would read them.
    pub(crate) fn events_of(
        &self,
        location: &SourceLine,
        name: &SourceName,
    ) -> Result<Vec<ReadEvent>, StoryError> {
        let tenant = self.tenant(location, name)?;
        let document = self.backend.document(&tenant.name);
        let document = document.map_err(|error| location.error_on_line(error.to_string()))?;
        match read_document(&document) {
            Ok(Reading::Document(document)) => Ok(document.events),
            Ok(Reading::NoNews) => Ok(Vec::new()),
            Err(unreadable) => Err(location.error_at(name, unreadable.to_string())),
        }
    }

    pub(crate) fn tenant(&self, location: &SourceLine, name: &SourceName) -> Result<TenantView, StoryError> {
        let found = self.backend.find_tenant(name.as_str());
        let found = found.map_err(|error| location.error_on_line(error.to_string()))?;
        found.map_err(|unknown| location.error_at(name, unknown.to_string()))
    }

    pub(crate) fn machine(
        &self,
        location: &SourceLine,
        name: &SourceName,
    ) -> Result<MachineView, StoryError> {
        self.find_machine(location, name)?.map_err(|unknown| location.error_at(name, unknown.to_string()))
    }

    /// The machine, or the reason why it was not found.
    pub(crate) fn find_machine(
        &self,
        location: &SourceLine,
        name: &SourceName,
    ) -> Result<Result<MachineView, LookupError>, StoryError> {
        let found = self.backend.find_machine(name.as_str());
        found.map_err(|error| location.error_on_line(error.to_string()))
    }
}

/// The command for an operation on that rollout.
pub(crate) fn command_for(rollout: u64, operation: &RolloutOperation) -> NamedCommand {
    match operation {
        RolloutOperation::Cancel => NamedCommand::CancelRollout { rollout },
        RolloutOperation::Pause { take_back } => {
            NamedCommand::PauseRollout { rollout, take_back: *take_back }
        }
        RolloutOperation::Resume => NamedCommand::ResumeRollout { rollout },
        RolloutOperation::Change { terms, add, remove } => NamedCommand::ChangeRollout {
            rollout,
            terms: terms.clone(),
            add: add.clone(),
            remove: remove.clone(),
        },
    }
}
