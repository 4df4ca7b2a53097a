//! Backends on which a story runs.
//!
//! A backend takes commands by name and returns views and documents. One backend is the pure rules
//! ([`RulesBackend`](crate::RulesBackend)); another, a running server, is part of the command line. A story gives the
//! same transcript on both.

use std::time::Duration;

use forewarn_control::{Fencing, HostView, MachineView, NamedCommand, RolloutView, TenantView};
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
