//! The clock of a test: it stands still while programs work, and jumps over the time in which nothing happens.
//!
//! ```text
//! a document has changed ──────▶ stands until every machine that polls has read it     ┐ at most
//! an event was read ───────────▶ stands until it is approved                            ┘ the patience
//! otherwise ───────────────────▶ jumps to the next change of a document
//! ```
//!
//! So fifteen minutes take milliseconds, and the result does not depend on the speed of the computer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forewarn_lifecycle::Steady;
use forewarn_server::{ClockCommand, ControlHandle, State};
use tokio::sync::watch;

use super::observer::{Observer, Standing};

/// Pause between two looks at polls, which notify nobody.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Pause if nothing more happens by itself, although something is announced: an operator holds it.
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// The reason why a clock was not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PacerError {
    #[error("the test was ended")]
    Ended,
    #[error("cannot move the clock: {0}")]
    Clock(String),
}

/// The reason why [`Pacer::advance`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advanced {
    /// A program has changed something while the clock stood still.
    Changed,
    /// The clock was moved.
    Moved,
    /// Nothing more happens by itself.
    Idle,
}

/// The clock of a test.
#[derive(Clone)]
pub(super) struct Pacer {
    pub(super) control: ControlHandle,
    pub(super) observer: Arc<Observer>,
    patience: Duration,
    /// True once no program is left that could poll.
    is_deserted: Arc<AtomicBool>,
    ended: watch::Receiver<bool>,
}

impl Pacer {
    pub(super) fn new(
        control: ControlHandle,
        observer: Arc<Observer>,
        patience: Duration,
        ended: watch::Receiver<bool>,
    ) -> Self {
        Self { control, observer, patience, is_deserted: Arc::default(), ended }
    }

    /// Waits for no program from now on, or again.
    pub(super) fn set_deserted(&self, is_deserted: bool) {
        self.is_deserted.store(is_deserted, Ordering::Relaxed);
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.is_deserted.load(Ordering::Relaxed)
    }

    /// Waits until programs have read everything and approved what they have read.
    pub(super) async fn stand(&self) -> Result<(), PacerError> {
        loop {
            let is_held = self.observer.look(self.patience) == Standing::Held;
            self.check_ended()?;
            if !is_held || self.is_deserted() {
                // What follows from the last request is done, and programs have to read that, too.
                self.control.settled().await.map_err(|error| PacerError::Clock(error.to_string()))?;
                if self.observer.look(self.patience) == Standing::Free || self.is_deserted() {
                    return Ok(());
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until a condition holds, for a real time at most. Returns false if it does not hold then.
    pub(super) async fn wait_for(
        &self,
        limit: Duration,
        mut condition: impl FnMut() -> bool,
    ) -> Result<bool, PacerError> {
        let end = tokio::time::Instant::now() + limit;
        while !condition() {
            self.check_ended()?;
            if tokio::time::Instant::now() >= end || self.is_deserted() {
                return Ok(condition());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(true)
    }

    /// A number that grows with every change of the state.
    pub(super) fn commits(&self) -> u64 {
        *self.control.commits().borrow()
    }

    /// Waits for programs. If they change nothing, moves the clock to the next change of a document, by at most
    /// `within`.
    pub(super) async fn advance(&self, within: Option<Duration>) -> Result<Advanced, PacerError> {
        self.advance_since(self.commits(), within).await
    }

    /// Like [`Pacer::advance`], for a caller that has seen the state after a number of commits: if there are more, the
    /// clock does not move.
    pub(super) async fn advance_since(
        &self,
        seen: u64,
        within: Option<Duration>,
    ) -> Result<Advanced, PacerError> {
        self.stand().await?;
        if self.commits() != seen {
            return Ok(Advanced::Changed);
        }
        let start = self.now();
        // The clock stops where a hidden event appears: no document changes there.
        let within = within.into_iter().chain(self.observer.next_appearance()).min();
        let moved = self.control.drive(ClockCommand::Next { within }).await;
        let now = moved.map_err(|error| PacerError::Clock(error.to_string()))?;
        Ok(if now.steady > start { Advanced::Moved } else { Advanced::Idle })
    }

    /// Moves the clock by a span, from change to change.
    pub(super) async fn pass(&self, span: Duration) -> Result<(), PacerError> {
        let end = self.now().plus(span);
        while self.now() < end {
            self.advance(Some(end.since(self.now()))).await?;
        }
        Ok(())
    }

    /// Moves the clock until nothing is announced or under way, and programs have read that.
    pub(super) async fn finish(&self) -> Result<(), PacerError> {
        while self.is_busy() {
            if self.advance(None).await? == Advanced::Idle {
                tokio::time::sleep(IDLE_PAUSE).await;
            }
        }
        self.stand().await
    }

    fn is_busy(&self) -> bool {
        let is_busy = |state: &State<'_>| {
            state.cluster.maintenances().next().is_some() || state.cluster.rollouts().next().is_some()
        };
        self.control.look(is_busy).unwrap_or(false)
    }

    fn now(&self) -> Steady {
        self.control.clock().now().steady
    }

    fn check_ended(&self) -> Result<(), PacerError> {
        if *self.ended.borrow() { Err(PacerError::Ended) } else { Ok(()) }
    }
}
