//! Backends on which a story runs.
//!
//! A backend takes commands by name and returns views and documents. One backend is the pure rules
//! ([`RulesBackend`](crate::RulesBackend)); another, a running server, is part of the command line. A story gives the
//! same transcript on both.

use std::time::Duration;

use forewarn_control::{
    AuditEntry, Fencing, HostView, LookupError, MachineView, NamedCommand, NewFault, RolloutView, TenantView,
    pick_machine, pick_tenant,
};
use forewarn_lifecycle::{EventId, Timestamp};

/// A system on which a story runs, with its own clock that stands still unless it is advanced.
///
/// Every method handles everything that is due at that moment before it returns.
pub trait Backend {
    /// Performs a command.
    ///
    /// # Errors
    /// The command failed; the state is unchanged.
    fn perform(&mut self, command: &NamedCommand) -> Result<(), BackendError>;

    /// Polls the events of a machine.
    ///
    /// # Errors
    /// The request failed.
    fn poll(&mut self, machine: &MachineView) -> Result<(), BackendError>;

    /// Approves events as a machine, with a request like any other.
    ///
    /// # Errors
    /// The approval is refused.
    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), BackendError>;

    /// The start of the story on the wall clock.
    fn beginning(&self) -> Timestamp;

    /// The time since the start of the story.
    fn elapsed(&self) -> Duration;

    /// Advances the clock until a document changes, or other state may have changed, but not beyond `end`, counted from
    /// the start of the story.
    ///
    /// # Errors
    /// The clock cannot be advanced.
    fn advance(&mut self, end: Duration) -> Result<(), BackendError>;

    /// Advances the clock until anything is due, but not beyond `end`, counted from the start of the story.
    ///
    /// # Errors
    /// The clock cannot be advanced.
    fn advance_to_due(&mut self, end: Duration) -> Result<(), BackendError> {
        self.advance(end)
    }

    /// Every tenant, in the order in which they joined.
    ///
    /// # Errors
    /// They cannot be listed.
    fn tenants(&self) -> Result<Vec<TenantView>, BackendError>;

    /// Every machine, in the order in which they joined.
    ///
    /// # Errors
    /// They cannot be listed.
    fn machines(&self) -> Result<Vec<MachineView>, BackendError>;

    /// The tenant with a name, or the reason why there is none.
    ///
    /// # Errors
    /// Tenants cannot be listed.
    fn find_tenant(&self, name: &str) -> Result<Result<TenantView, LookupError>, BackendError> {
        Ok(pick_tenant(&self.tenants()?, name).cloned())
    }

    /// The machine with a name, or the reason why there is none.
    ///
    /// # Errors
    /// Machines cannot be listed.
    fn find_machine(&self, name: &str) -> Result<Result<MachineView, LookupError>, BackendError> {
        Ok(pick_machine(&self.machines()?, name).cloned())
    }

    /// The tenants whose documents may have changed since the last call.
    ///
    /// # Errors
    /// Tenants cannot be listed.
    fn take_changes(&mut self) -> Result<TenantChanges, BackendError> {
        self.tenants().map(TenantChanges::All)
    }

    /// Every host, in the order in which they joined.
    ///
    /// # Errors
    /// They cannot be listed.
    fn hosts(&self) -> Result<Vec<HostView>, BackendError>;

    /// Every rollout, in the order of planning, including ended ones that are still remembered.
    ///
    /// # Errors
    /// They cannot be listed.
    fn rollouts(&self) -> Result<Vec<RolloutView>, BackendError>;

    /// The document of the tenant in the newest edition, without counting as a request of a machine.
    ///
    /// # Errors
    /// The document cannot be read.
    fn document(&self, tenant: &str) -> Result<Vec<u8>, BackendError>;

    /// The entries of the audit log of the cluster after the entry with that number, oldest first; all of them after 0.
    ///
    /// # Errors
    /// They cannot be read.
    fn audit(&self, after: u64) -> Result<Vec<AuditEntry>, BackendError>;

    /// Runs a program as a machine, from now on. If it is simulated, the runner sends the requests of a well-behaved
    /// program: it polls at once and after each change of its document, and approves every scheduled event that it
    /// reads, in the same instant.
    ///
    /// # Errors
    /// The program cannot be started.
    fn run_program(&mut self, machine: &MachineView, program: &Program) -> Result<ProgramMode, BackendError> {
        let _ = (machine, program);
        Ok(ProgramMode::Simulated)
    }

    /// Sets the wall clock, and nothing else.
    ///
    /// # Errors
    /// The backend does not support it.
    fn step_clock(&mut self, step: ClockStep) -> Result<(), BackendError> {
        let _ = step;
        Err(unsupported())
    }

    /// Makes failed hosts need a fence, or none, from now on.
    ///
    /// # Errors
    /// The backend does not support it.
    fn set_fencing(&mut self, fencing: Fencing) -> Result<(), BackendError> {
        let _ = fencing;
        Err(unsupported())
    }

    /// Injects a fault into the next answers to a machine. Without requests there is nothing to inject it into. The
    /// requests that the story itself sends as a machine have no faults.
    ///
    /// # Errors
    /// The backend refuses it.
    fn inject(&mut self, fault: &NewFault) -> Result<(), BackendError> {
        let _ = fault;
        Ok(())
    }

    /// Simulates a crash of the process, which only the journal survives.
    ///
    /// # Errors
    /// The backend does not support it, or the journal does not restore the lost state.
    fn crash(&mut self) -> Result<(), BackendError> {
        Err(unsupported())
    }
}

/// The reason why a backend did not perform a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The rules refuse it.
    #[error("refused: {0}")]
    Refused(String),
    /// The command is invalid, or names an object that does not exist.
    #[error("{0}")]
    Invalid(String),
    /// The backend has failed, or does not support the request.
    #[error("{0}")]
    Failed(String),
}

/// Tenants whose documents may have changed.
#[derive(Clone, Debug)]
pub enum TenantChanges {
    /// Every tenant, in the order in which they joined: it is not known which of them have changed.
    All(Vec<TenantView>),
    /// All that have changed.
    Some {
        /// Those that exist, in the order in which they joined.
        changed: Vec<TenantView>,
        /// Names of those that no longer exist.
        gone: Vec<String>,
    },
}

/// A program that is a machine of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A command for the shell.
    Shell(String),
    /// The command that was given with the story.
    Given,
}

/// The way in which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramMode {
    /// The backend has started it.
    Started,
    /// The runner simulates a well-behaved program.
    Simulated,
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    /// To a later time.
    Forward(Duration),
    /// To an earlier time.
    Back(Duration),
}

/// The message for statements that only the pure rules support.
pub(crate) const NOT_ON_A_SERVER: &str = "this statement cannot run on a live server";

fn unsupported() -> BackendError {
    BackendError::Failed(NOT_ON_A_SERVER.to_owned())
}
