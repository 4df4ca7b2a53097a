//! Where a story is played.
//!
//! The player knows stages only by what is here: names go in, views and documents come out. One stage is the pure rules
//! ([`Rules`](crate::Rules)); another, a running server, lives with the command line. A story gives the same transcript on both.

use std::time::Duration;

use forewarn_control::{MachineView, NamedCommand, RolloutView, TenantView};
use forewarn_lifecycle::{EventId, Timestamp};

/// A world on which a story is played, with a clock of its own that stands still unless it is told to run.
///
/// Whatever a method does, everything that is due at that moment has been done when it returns.
pub trait Stage {
    /// Does something.
    ///
    /// # Errors
    /// When it is not done; nothing has changed then.
    fn perform(&mut self, command: &NamedCommand) -> Result<(), Undone>;

    /// A machine asks for its events.
    ///
    /// # Errors
    /// When it cannot.
    fn poll(&mut self, machine: &MachineView) -> Result<(), Undone>;

    /// A machine approves events. It is a request of that machine, like any other.
    ///
    /// # Errors
    /// When it is refused.
    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), Undone>;

    /// When the story began, on the wall clock.
    fn beginning(&self) -> Timestamp;

    /// How long the story has lasted.
    fn elapsed(&self) -> Duration;

    /// Lets the clock run until a document changes, or something else might have; but not beyond `end`, counted from the
    /// beginning of the story.
    ///
    /// # Errors
    /// When the clock cannot be driven.
    fn run_on(&mut self, end: Duration) -> Result<(), Undone>;

    /// Every tenant, in the order in which they joined.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn tenants(&self) -> Result<Vec<TenantView>, Undone>;

    /// Every machine, in the order in which they joined.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn machines(&self) -> Result<Vec<MachineView>, Undone>;

    /// Every rollout, in the order in which they were planned; those that are over as long as they are remembered.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn rollouts(&self) -> Result<Vec<RolloutView>, Undone>;

    /// What a machine of the tenant would read, in the newest edition, though nobody has asked.
    ///
    /// # Errors
    /// When it cannot be had.
    fn document(&self, tenant: &str) -> Result<Vec<u8>, Undone>;

    /// Sets the wall clock, and nothing else.
    ///
    /// # Errors
    /// When this stage cannot do that.
    fn step_clock(&mut self, step: ClockStep) -> Result<(), Undone> {
        let _ = step;
        Err(not_here())
    }

    /// The process dies, and only the journal is left.
    ///
    /// # Errors
    /// When this stage cannot do that, or what comes of the journal is not what was lost.
    fn crash(&mut self) -> Result<(), Undone> {
        Err(not_here())
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undone {
    /// The rules refuse it.
    #[error("refused: {0}")]
    Refused(String),
    /// It names something that is not there, or cannot be meant.
    #[error("{0}")]
    Mistaken(String),
    /// The stage has failed, or cannot do such a thing.
    #[error("{0}")]
    Broken(String),
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    /// It suddenly shows a later time.
    Forward(Duration),
    /// It suddenly shows an earlier time.
    Back(Duration),
}

/// What only the pure rules can play is refused in the same words wherever it is found.
pub(crate) const ONLY_BY_THE_RULES: &str = "this cannot be played on a live server";

fn not_here() -> Undone {
    Undone::Broken(ONLY_BY_THE_RULES.to_owned())
}
