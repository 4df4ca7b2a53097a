//! Several servers that exchange heartbeats, in one thread.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_ownership::{
    HEARTBEAT_MILLIS, HeartbeatAnswer, Peers, ServerDuty, ServerName, SuspicionReason, Uptime,
};
use forewarn_types::Timestamp;

use crate::reference_engine::name;

/// A step of the time of these tests, in milliseconds.
const STEP_MILLIS: u64 = 10;
const ROUND_TRIP_MILLIS: u64 = 2;

/// Servers with the names `a`, `b` and so on.
pub(crate) struct HeartbeatNet {
    pub(crate) now: u64,
    pub(crate) servers: Vec<Peers>,
    /// Servers that run.
    pub(crate) running: BTreeSet<usize>,
    /// Servers that reach the engine.
    pub(crate) reach_engine: BTreeSet<usize>,
    /// Pairs of which the first does not hear the second.
    pub(crate) deaf: BTreeSet<(usize, usize)>,
    pub(crate) members: BTreeSet<ServerName>,
    /// Milliseconds by which the wall clock of a server is ahead.
    pub(crate) wall_ahead: BTreeMap<usize, i64>,
}

pub(crate) fn server(index: usize) -> ServerName {
    name(["a", "b", "c", "d", "e"][index])
}

impl HeartbeatNet {
    /// Servers that have run for a minute.
    pub(crate) fn settled(count: usize) -> Self {
        let mut net = Self::started(count);
        net.run(60_000);
        net
    }

    pub(crate) fn started(count: usize) -> Self {
        let all: BTreeSet<_> = (0..count).collect();
        let servers = (0..count).map(|index| Peers::new(server(index), uptime(index, 0))).collect();
        let mut net = Self {
            now: 0,
            servers,
            running: all.clone(),
            reach_engine: all.clone(),
            deaf: BTreeSet::new(),
            members: all.iter().map(|index| server(*index)).collect(),
            wall_ahead: BTreeMap::new(),
        };
        net.step();
        net
    }

    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + millis;
        while self.now < end {
            self.now += STEP_MILLIS;
            if self.now.is_multiple_of(HEARTBEAT_MILLIS) {
                self.step();
            }
        }
    }

    /// Runs until a server suspects another one. The milliseconds until then.
    pub(crate) fn run_until_suspected(&mut self, by: usize, suspect: usize) -> u64 {
        let began = self.now;
        while self.reason(by, suspect).is_none() {
            assert!(self.now - began < 60_000, "never suspected");
            self.run(STEP_MILLIS);
        }
        self.now - began
    }

    /// All heartbeats, answered at once.
    fn step(&mut self) {
        for index in self.running.clone() {
            let now = uptime(index, self.now);
            self.servers[index].tick(now);
            if self.reach_engine.contains(&index) {
                self.servers[index].engine_answered(now);
                self.servers[index].set_members(now, &self.members);
            }
        }
        for listener in self.running.clone() {
            for speaker in self.running.clone() {
                if listener != speaker && !self.deaf.contains(&(listener, speaker)) {
                    let answer = self.answer_of(speaker);
                    let now = uptime(listener, self.now);
                    self.servers[listener].heard(now, &server(speaker), ROUND_TRIP_MILLIS, answer);
                }
            }
        }
    }

    fn answer_of(&self, index: usize) -> HeartbeatAnswer {
        self.servers[index].own_answer(uptime(index, self.now), self.wall(index))
    }

    pub(crate) fn wall(&self, index: usize) -> Timestamp {
        let ahead = self.wall_ahead.get(&index).copied().unwrap_or(0);
        Timestamp::from_millis(1_000_000 + i64::try_from(self.now).unwrap() + ahead)
    }

    pub(crate) fn uptime(&self, index: usize) -> Uptime {
        uptime(index, self.now)
    }

    pub(crate) fn reason(&self, by: usize, suspect: usize) -> Option<SuspicionReason> {
        let suspicion = self.servers[by].suspicion(&server(suspect), self.uptime(by));
        suspicion.map(|suspicion| suspicion.reason)
    }

    /// Pairs of which the first suspects the second.
    pub(crate) fn suspicions(&self) -> Vec<(usize, usize)> {
        let pairs = self.running.iter().flat_map(|by| (0..self.servers.len()).map(move |other| (*by, other)));
        pairs.filter(|(by, other)| self.reason(*by, *other).is_some()).collect()
    }

    pub(crate) fn candidates(&self, by: usize) -> BTreeSet<ServerName> {
        self.servers[by].candidates(self.uptime(by))
    }

    pub(crate) fn set_duty(&mut self, index: usize, duty: ServerDuty) {
        self.servers[index].set_duty(duty);
    }
}

/// Every computer has booted at another time.
fn uptime(index: usize, now: u64) -> Uptime {
    Uptime::from_millis(now + 7_777 * u64::try_from(index).unwrap())
}
