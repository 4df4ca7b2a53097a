//! A story on the server of a test: programs are its machines, and its clock waits for them.
//!
//! Polls and approvals of the story itself are requests like any other, but not those of a program: they are noted as
//! such.

use std::ffi::OsString;
use std::time::Duration;

use forewarn_control::{AuditEntry, HostView, MachineView, NamedCommand, NewFault, RolloutView, TenantView};
use forewarn_lifecycle::{EventId, Timestamp};
use forewarn_story::{Backend, BackendError, Program, ProgramMode, describes_fleet};
use forewarn_types::show_duration;
use forewarn_verdict::MachineName;
use tokio::runtime::Handle;

use super::machines::{Machines, TestMachine};
use super::pacer::{Pacer, PacerError};
use super::programs::{NewProgram, Programs};
use crate::story::live::LiveStage;

/// The stage of a story.
pub(super) struct StoryStage {
    pub(super) live: LiveStage,
    pub(super) pacer: Pacer,
    pub(super) programs: Programs,
    pub(super) machines: Machines,
    /// COMMAND; empty if there is none.
    pub(super) command: Vec<OsString>,
    /// True if COMMAND is still to be started, before the first statement that is not about the fleet.
    pub(super) is_command_due: bool,
    /// Machine of COMMAND. None: the first one.
    pub(super) default: Option<String>,
    /// Real time for the first poll of a program.
    pub(super) startup: Duration,
    /// Commits before the story last looked at the state. A program may have changed it since, and then the story looks
    /// again before the clock moves.
    pub(super) seen_commits: u64,
    /// The runtime of the test.
    pub(super) runtime: Handle,
}

fn failed(error: impl std::fmt::Display) -> BackendError {
    BackendError::Failed(error.to_string())
}

impl StoryStage {
    /// Starts COMMAND, if it is due.
    fn start_command(&mut self) -> Result<(), BackendError> {
        if !std::mem::take(&mut self.is_command_due) {
            return Ok(());
        }
        let machine =
            self.machines.default(self.default.as_deref()).map_err(|error| failed(format!("{error:#}")))?;
        self.start(&machine, &self.command)
    }

    /// Starts a program, and waits until its machine has polled: before that, its tenant gets no notice.
    fn start(&self, machine: &TestMachine, words: &[OsString]) -> Result<(), BackendError> {
        let environment = self.machines.environment().map_err(failed)?;
        let TestMachine { name: MachineName { tenant, name }, url } = machine;
        self.pacer.observer.note_program(&machine.name);
        let new = NewProgram { words, machine: name, metadata: url, environment };
        self.pacer.set_deserted(false);
        self.programs.start(&new).map_err(|error| failed(format!("cannot start the program: {error}")))?;
        let has_polled = || self.pacer.observer.has_tenant_polled(tenant);
        match self.runtime.block_on(self.pacer.wait_for(self.startup, has_polled)) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let startup = show_duration(self.startup);
                Err(failed(format!(
                    "{name} has not polled: its program ended, or took longer than {startup}"
                )))
            }
            Err(error @ (PacerError::Ended | PacerError::Clock(_))) => Err(failed(error)),
        }
    }

    fn is_unapproved(&self, event: EventId) -> bool {
        let look = self
            .pacer
            .control
            .look(|state| state.cluster.event(event).is_some_and(|(_, event)| event.is_unapproved()));
        look.unwrap_or(false)
    }
}

impl Backend for StoryStage {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), BackendError> {
        if !describes_fleet(command) {
            self.start_command()?;
        }
        let outcome = self.live.order(command)?;
        if let NamedCommand::Delete { machine } = command
            && outcome.starts.iter().any(|start| start.remedy.is_some())
        {
            self.pacer.observer.note_unannounced_deletion(machine);
        }
        Ok(())
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), BackendError> {
        self.start_command()?;
        self.live.poll(machine)?;
        let name = MachineName { tenant: machine.tenant.clone(), name: machine.name.clone() };
        self.pacer.observer.note_scripted_poll(&name);
        Ok(())
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), BackendError> {
        self.start_command()?;
        // An event that a program has approved already stays its own.
        for event in events.iter().filter(|event| self.is_unapproved(**event)) {
            self.pacer.observer.note_scripted(event.to_string(), machine.name.clone());
        }
        self.live.approve(machine, events)
    }

    fn inject(&mut self, fault: &NewFault) -> Result<(), BackendError> {
        self.live.inject(fault)
    }

    fn beginning(&self) -> Timestamp {
        self.live.beginning()
    }

    fn elapsed(&self) -> Duration {
        self.pacer.control.clock().now().wall.since(self.live.beginning())
    }

    fn advance(&mut self, end: Duration) -> Result<(), BackendError> {
        self.start_command()?;
        let left = end.saturating_sub(self.elapsed());
        if !left.is_zero() {
            // It stands still while programs work. What they change is shown before it moves.
            let advance = self.pacer.advance_since(self.seen_commits, Some(left));
            self.runtime.block_on(advance).map_err(failed)?;
        }
        self.seen_commits = self.pacer.commits();
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<TenantView>, BackendError> {
        self.live.tenants()
    }

    fn machines(&self) -> Result<Vec<MachineView>, BackendError> {
        self.live.machines()
    }

    fn hosts(&self) -> Result<Vec<HostView>, BackendError> {
        self.live.hosts()
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, BackendError> {
        self.live.rollouts()
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, BackendError> {
        self.live.document(tenant)
    }

    fn audit(&self, after: u64) -> Result<Vec<AuditEntry>, BackendError> {
        self.live.audit(after)
    }

    fn run_program(&mut self, machine: &MachineView, program: &Program) -> Result<ProgramMode, BackendError> {
        let name = format!("{}/{}", machine.tenant, machine.name);
        let found = self.machines.find(&name).map_err(failed)?;
        match program {
            Program::Given => {
                self.is_command_due = false;
                self.start(&found, &self.command)?;
            }
            Program::Shell(text) => {
                self.start_command()?;
                let words = ["sh", "-c", text].map(OsString::from);
                self.start(&found, &words)?;
            }
        }
        Ok(ProgramMode::Started)
    }
}
