//! A data centre in one thread, from a seed: three servers of a realm, their engine, guests, operators, a hypervisor, and
//! faults of all of them. The same seed gives the same history.
//!
//! ```text
//!   operators ──requests──▶ servers ──transactions──▶ engine        the product: control, lifecycle, ownership
//!   guests    ──polls─────▶   │  ▲                      │           this crate:  everything around them
//!                             ▼  └──results── hypervisor│
//!                        documents                      ▼
//!                             └──────▶ observer ◀────  log
//! ```
//!
//! The servers run `forewarn-control`, `forewarn-lifecycle` and `forewarn-ownership` themselves. Around them, a thin shell
//! does the steps of `forewarn-server` in the same order: no task, no timer, no real time, no socket. An [`Omission`]
//! takes one rule out of that shell; the observer must notice it.

#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, reason = "for tests only")]

mod checks;
mod clients;
mod context;
mod engine;
mod faults;
mod fleet;
mod host_clock;
mod hypervisor;
mod message;
mod names;
mod network;
mod omission;
mod random;
pub mod seeds;
mod server;
mod step_log;
mod world;

use std::collections::BTreeMap;

pub use omission::Omission;
use world::World;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub seed: u64,
    /// The first broken promise, in words.
    pub what: String,
    /// All steps until then, in words.
    pub history: Vec<String>,
}

/// Numbers of observations of each kind.
pub type Observations = BTreeMap<&'static str, u64>;

/// Runs the simulation of a seed.
///
/// # Errors
/// A promise is broken. The simulation runs a second time, for its history.
pub fn run(seed: u64, omission: Option<Omission>) -> Result<Observations, Box<Violation>> {
    let mut world = World::new(seed, omission, false);
    world.run();
    let (violation, seen, _) = world.into_result();
    let Some(what) = violation else { return Ok(seen) };
    let mut world = World::new(seed, omission, true);
    world.run();
    let (_, _, history) = world.into_result();
    Err(Box::new(Violation { seed, what, history }))
}

/// The steps of the simulation of a seed, in words.
pub fn history(seed: u64, omission: Option<Omission>) -> Vec<String> {
    let mut world = World::new(seed, omission, true);
    world.run();
    world.into_result().2
}
