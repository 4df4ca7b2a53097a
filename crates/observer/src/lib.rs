//! A cluster with two clocks, a journal, and an observer that checks every promise of the rules; random histories.
//!
//! It depends on the rules alone, so that their tests are built quickly. Never part of a program.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::needless_pass_by_value,
    clippy::new_without_default,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "for tests only"
)]

pub mod capacity;
pub mod fences;
mod modes;
pub mod observer;
pub mod promise;
pub mod random;
mod random_fleet;
pub mod returns;
pub mod rollouts;
pub mod steps;
mod tenant_windows;
pub mod upgrades;

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_lifecycle::simulator::{Completion, Environment, due, wait};
use forewarn_lifecycle::*;
use observer::Observer;

/// 2026-01-01T00:00:00.250Z: not a whole second, so that rounding shows.
const BEGINNING: i64 = 1_767_225_600_250;

/// More ticks than any instant may need: beyond it, the rules do not settle.
const TICKS_AT_ONE_INSTANT_MAX: usize = 20_000;

pub struct ObservedCluster {
    pub cluster: Cluster,
    pub now: Now,
    pub journal: Vec<(Now, Change)>,
    pub observer: Observer,
    requests: Requests,
}

/// The time of the last request of each tenant. No action ends by itself.
#[derive(Default)]
struct Requests(BTreeMap<TenantId, Steady>);

impl Environment for Requests {
    fn take_completion(&mut self, _: Now) -> Option<Completion> {
        None
    }

    fn next_completion(&self) -> Option<Steady> {
        None
    }

    fn last_heard(&self, tenant: TenantId, _: Now) -> Option<Steady> {
        self.0.get(&tenant).copied()
    }
}

impl ObservedCluster {
    pub fn new() -> Self {
        let now = Now::at_millis(BEGINNING);
        let cluster = Cluster::new(Seed([7; 16]));
        let (observer, requests) = (Observer::default(), Requests::default());
        Self { cluster, now, journal: Vec::new(), observer, requests }
    }

    /// Decides a command, journals and applies its changes, and has every step observed.
    pub fn submit(&mut self, command: Command) -> Result<Vec<Change>, Refusal> {
        let decided = self.cluster.decide(self.now, &command);
        self.observer.asked(&self.cluster, self.now, &command, &decided);
        let changes = decided?;
        for change in &changes {
            let before = self.observer.look(&self.cluster, change);
            let effects = self.cluster.evolve(self.now, change);
            self.journal.push((self.now, change.clone()));
            self.observer.changed(&before, &self.cluster, self.now, change, &effects);
        }
        if let Command::Enrol(tenant) = command {
            self.requests.0.insert(tenant, self.now.steady);
        }
        Ok(changes)
    }

    /// Advances both clocks, stopping at every deadline on the way.
    pub fn advance(&mut self, span: Duration) {
        let end = self.now.steady.plus(span);
        self.settle();
        loop {
            let left = end.since(self.now.steady);
            let wait = wait(&self.cluster, self.now, &self.requests);
            self.pass(wait.map_or(left, |wait| wait.min(left)));
            self.settle();
            if self.now.steady >= end {
                return;
            }
        }
    }

    /// Advances both clocks while nothing is handled: a commit takes long, or the process is stopped.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
    }

    /// Sets the wall clock forward or back; the steady clock does not move.
    pub fn step_wall(&mut self, seconds: i64) {
        self.now.wall = Timestamp::from_millis(self.now.wall.millis() + seconds * 1_000);
        self.settle();
    }

    /// Handles everything that is due now.
    pub fn settle(&mut self) {
        for _ in 0..TICKS_AT_ONE_INSTANT_MAX {
            let Some(command) = due(&self.cluster, self.now, &mut self.requests) else {
                self.observer.settled(&self.cluster, self.now);
                return;
            };
            let changes = self.submit(command.clone()).expect("what is due is never refused");
            assert!(!changes.is_empty(), "{command:?} is due at {:?} and does nothing", self.now);
        }
        panic!("the rules do not come to rest");
    }

    /// Polls as a machine: the first poll enrols its tenant.
    pub fn poll(&mut self, tenant: TenantId) {
        if self.cluster.tenant(tenant).is_some() {
            self.submit(Command::Enrol(tenant)).expect("a known tenant");
            self.requests.0.insert(tenant, self.now.steady);
        }
    }

    /// Polls as that machine.
    pub fn poll_as(&mut self, machine: MachineId) {
        if let Some(tenant) = self.cluster.machine(machine).map(|machine| machine.tenant) {
            self.poll(tenant);
            self.submit(Command::Polled(machine)).expect("a known machine");
            self.settle();
        }
    }

    /// Reports all actions in progress as done.
    pub fn complete_all(&mut self) {
        loop {
            let suspended = self.cluster.maintenances().flat_map(Maintenance::actions).next();
            let first = self.cluster.unfinished().next().or(suspended);
            let Some(Action { maintenance, target, .. }) = first else { break };
            self.submit(Command::Complete { maintenance, target, report: Report::Done })
                .expect("never refused");
        }
        self.settle();
    }

    /// The state restored from the journal alone.
    pub fn replayed(&self) -> Cluster {
        let mut cluster = Cluster::new(Seed([7; 16]));
        for (now, change) in &self.journal {
            cluster.evolve(*now, change);
        }
        cluster
    }
}
