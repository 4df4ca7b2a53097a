//! Telling everybody who listens that something has happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use forewarn_wire::operator::Happening;
use tokio::sync::{broadcast, watch};

use crate::roster::Roster;

/// Those who tell everybody who listens that something has happened.
#[derive(Clone, Debug)]
pub(crate) struct Heralds {
    pub(super) happenings: broadcast::Sender<Arc<Happening>>,
    pub(super) commits: watch::Sender<u64>,
    /// Why nothing can be written, if so.
    pub(super) trouble: watch::Sender<Option<String>>,
    pub(super) clock_steps: Arc<AtomicU64>,
    pub(super) roster: Arc<ArcSwap<Roster>>,
}

/// Happenings that are kept for a listener that is slow; more, and it has missed some.
const HAPPENINGS_KEPT_MAX: usize = 1_024;

impl Heralds {
    pub(super) fn new() -> Self {
        Self {
            happenings: broadcast::Sender::new(HAPPENINGS_KEPT_MAX),
            commits: watch::Sender::new(0),
            trouble: watch::Sender::new(None),
            clock_steps: Arc::default(),
            roster: Arc::default(),
        }
    }

    /// Whether anybody wants to know what happens.
    pub(crate) fn is_watched(&self) -> bool {
        self.happenings.receiver_count() > 0
    }

    /// A clock was set, or nobody looked at it for long.
    pub(crate) fn count_clock_step(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells what the clusters are called, and who may do what.
    pub(crate) fn show(&self, roster: Roster) {
        self.roster.store(Arc::new(roster));
    }

    /// Tells whether something is wrong.
    pub(crate) fn is_troubled(&self, trouble: Option<String>) {
        self.trouble.send_replace(trouble);
    }

    /// Tells what has happened, and that something is not what it was.
    pub(crate) fn tell(&self, happenings: Vec<Happening>) {
        for happening in happenings {
            // Nobody may be listening any more.
            drop(self.happenings.send(Arc::new(happening)));
        }
        self.commits.send_modify(|commits| *commits += 1);
    }
}
