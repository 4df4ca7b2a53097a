//! A small world around the rules: a cluster, two clocks, a journal, and an observer that trusts nothing.

pub mod observer;
pub mod random;
pub mod rollouts;
pub mod upgrades;

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_lifecycle::player::{Completion, Surroundings, due, wait};
use forewarn_lifecycle::*;
use observer::Observer;

/// 2026-01-01T00:00:00.250Z: not a whole second, so that rounding shows.
const BEGINNING: i64 = 1_767_225_600_250;

/// More ticks than any instant may need: beyond it, the rules do not come to rest.
const TICKS_AT_ONE_INSTANT_MAX: usize = 20_000;

pub struct World {
    pub cluster: Cluster,
    pub now: Now,
    pub journal: Vec<(Now, Change)>,
    pub observer: Observer,
    requests: Requests,
}

/// The time of the last request of each tenant. No action ends by itself.
#[derive(Default)]
struct Requests(BTreeMap<TenantId, Steady>);

impl Surroundings for Requests {
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

impl World {
    pub fn new() -> Self {
        let now = Now::at_millis(BEGINNING);
        let cluster = Cluster::new(Seed([7; 16]));
        let (observer, requests) = (Observer::default(), Requests::default());
        Self { cluster, now, journal: Vec::new(), observer, requests }
    }

    /// Asks the rules, journals and applies what they say, and has every step watched.
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

    /// Lets both clocks run, stopping at every deadline on the way.
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

    /// Lets both clocks run while nothing is done: a commit takes long, or the process is stopped.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
    }

    /// Sets the wall clock forward or back; the steady clock does not move.
    pub fn step_wall(&mut self, seconds: i64) {
        self.now.wall = Timestamp::from_millis(self.now.wall.millis() + seconds * 1_000);
        self.settle();
    }

    /// Does everything that is due now.
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

    /// A machine asks for its events: the first time enrols its tenant.
    pub fn poll(&mut self, tenant: TenantId) {
        if self.cluster.tenant(tenant).is_some() {
            self.submit(Command::Enrol(tenant)).expect("a known tenant");
            self.requests.0.insert(tenant, self.now.steady);
        }
    }

    /// Reports everything that is under way as done.
    pub fn complete_all(&mut self) {
        loop {
            let first = self.cluster.unfinished().next();
            let Some(Action { maintenance, machine, .. }) = first else { break };
            self.submit(Command::Complete { maintenance, machine, report: Report::Done })
                .expect("never refused");
        }
        self.settle();
    }

    /// The state as someone would find it who has only the journal.
    pub fn replayed(&self) -> Cluster {
        let mut cluster = Cluster::new(Seed([7; 16]));
        for (now, change) in &self.journal {
            cluster.evolve(*now, change);
        }
        cluster
    }
}
