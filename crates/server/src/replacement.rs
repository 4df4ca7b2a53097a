//! Replacing the whole state of a server in memory: `reset` and `load`.
//!
//! ```text
//!   gate closed: requests wait ──▶ clock held ──▶ drivers of clusters end ──▶ journal, clock, snapshot, directory
//!        ▲                                                                       replaced; new drivers start
//!        └───────────── hooks: rejections, streams, webhooks ◀───────────────────┘
//! ```
//!
//! Requests that have begun are answered first; later ones see the new state. Reads and polls never wait: they see
//! either state.

use std::sync::{Mutex, PoisonError};

use forewarn_control::ControlState;
use forewarn_lifecycle::{Now, Seed};
use forewarn_store::RecentLog;

use crate::clock::Speed;
use crate::initial_state::{InitialState, Readers};

/// The whole state of a server in memory at one moment.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// The state of all streams.
    pub state: ControlState,
    /// Seed of machine ids.
    pub identity: Seed,
    pub clock: Now,
    pub speed: Speed,
    /// The audit log.
    pub log: RecentLog,
}

/// Reason why the state of a server cannot be replaced or saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// The server has a real clock.
    #[error(
        "only a server for development can be reset, or load and save its state\n  hint: `forewarn backup` copies the state of this server"
    )]
    RealClock,
    /// The state outlives the process.
    #[error(
        "a server with a data directory cannot be reset, or load and save its state\n  hint: start `forewarn dev` without --data-dir; `forewarn backup` copies a data directory"
    )]
    Durable,
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}

impl ServerState {
    /// The state from which drivers start.
    pub(crate) fn initial(&self) -> InitialState {
        InitialState {
            state: self.state.clone(),
            identity: self.identity,
            audit_ends: self.log.ends(),
            audit_head: self.log.last(),
            unread: Vec::new(),
            readers: Readers::Present,
            recorded: self.clock,
        }
    }
}

/// Functions that are called after the state was replaced, before the next request.
#[derive(Default)]
pub(crate) struct ReplacementHooks(Mutex<Vec<ReplacementHook>>);

type ReplacementHook = Box<dyn Fn() + Send + Sync>;

impl ReplacementHooks {
    pub(crate) fn add(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    pub(crate) fn call(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|hook| hook());
    }
}
