//! The other servers of a realm, as this server sees them: heartbeats, reports, membership.
//!
//! Suspicion only determines how soon another server tries to take over; the comparison of the head keeps an early
//! takeover harmless. Times are uptimes of this computer.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_types::Timestamp;

use crate::ids::{ServerName, Uptime};
use crate::wall_clock::{ClockVerdict, WallReading, verdict};

/// The interval of heartbeats, in milliseconds.
pub const HEARTBEAT_MILLIS: u64 = 250;
/// Silence after which a server counts as silent, in milliseconds.
pub const SILENCE_MILLIS: u64 = 1_000;
/// Time without an answer of the engine after which a server should lose its streams, in milliseconds.
pub const ENGINE_SILENCE_MILLIS: u64 = 2_000;
/// Time after its return during which a server takes nothing back, in milliseconds.
pub const RETURN_MILLIS: u64 = 30_000;

/// The willingness of a server to own streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerDuty {
    /// The server takes streams.
    Active,
    /// The server gives its streams away and takes none.
    Draining,
}

/// The answer of a server to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// Milliseconds since the engine last answered that server.
    pub engine_silent_millis: u64,
    /// Milliseconds since that server started or returned.
    pub present_millis: u64,
    /// The wall clock of that server.
    pub wall: Timestamp,
    /// The willingness of that server to own streams.
    pub duty: ServerDuty,
    /// Milliseconds since that server last heard each of the others.
    pub silences: BTreeMap<ServerName, u64>,
}

/// The reason why a server should lose its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuspicionReason {
    /// The membership key of the server is gone.
    NotAMember,
    /// The server has not reached the engine.
    EngineUnreached,
    /// Two servers have not heard the server; or one, if there are only two.
    Silent,
}

/// The suspicion against a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// Its reason.
    pub reason: SuspicionReason,
    /// Its beginning.
    pub since: Uptime,
}

/// The servers of a realm as one of them sees them.
#[derive(Clone, Debug)]
pub struct Peers {
    own: ServerName,
    own_duty: ServerDuty,
    /// The start or the last return of this server.
    present_since: Uptime,
    /// Silence of others is counted from here: this server heard nothing while it did not run.
    listening_since: Uptime,
    last_tick: Uptime,
    engine_answered: Option<Uptime>,
    others: BTreeMap<ServerName, Peer>,
    former: BTreeMap<ServerName, Uptime>,
}

#[derive(Clone, Debug)]
struct Peer {
    known_since: Uptime,
    last: Option<Heartbeat>,
}

#[derive(Clone, Debug)]
struct Heartbeat {
    arrived: Uptime,
    round_trip_millis: u64,
    answer: HeartbeatAnswer,
}

impl Peers {
    /// The view of a server that has just started.
    #[must_use]
    pub fn new(own: ServerName, now: Uptime) -> Self {
        Self {
            own,
            own_duty: ServerDuty::Active,
            present_since: now,
            listening_since: now,
            last_tick: now,
            engine_answered: None,
            others: BTreeMap::new(),
            former: BTreeMap::new(),
        }
    }

    /// The name of this server.
    #[must_use]
    pub fn own(&self) -> &ServerName {
        &self.own
    }

    /// Takes note that this server runs; to be called with every heartbeat interval, before anything else. After a gap
    /// this server counts as returned, and the silence of others begins anew.
    pub fn tick(&mut self, now: Uptime) {
        if now.since(self.last_tick) >= SILENCE_MILLIS {
            self.listening_since = now;
            self.present_since = now;
        }
        self.last_tick = self.last_tick.max(now);
    }

    /// Takes note that this server was fenced: it counts as returned.
    pub fn fenced(&mut self, now: Uptime) {
        self.present_since = now;
    }

    /// Takes note of an answer of the engine. After a gap this server counts as returned.
    pub fn engine_answered(&mut self, now: Uptime) {
        if self.engine_silence(now) >= ENGINE_SILENCE_MILLIS {
            self.present_since = now;
        }
        self.engine_answered = self.engine_answered.max(Some(now));
    }

    /// Sets the willingness of this server to own streams.
    pub fn set_duty(&mut self, duty: ServerDuty) {
        self.own_duty = duty;
    }

    /// Takes note of the servers that have a membership key.
    pub fn set_members(&mut self, now: Uptime, members: &BTreeSet<ServerName>) {
        let gone: Vec<_> = self.others.keys().filter(|name| !members.contains(*name)).cloned().collect();
        for name in gone {
            self.others.remove(&name);
            self.former.insert(name, now);
        }
        for name in members.iter().filter(|name| **name != self.own) {
            self.former.remove(name);
            self.others.entry(name.clone()).or_insert(Peer { known_since: now, last: None });
        }
    }

    /// Takes note of the answer to a heartbeat. The answer of a server that is not a member is ignored.
    pub fn heard(
        &mut self,
        now: Uptime,
        server: &ServerName,
        round_trip_millis: u64,
        answer: HeartbeatAnswer,
    ) {
        if let Some(peer) = self.others.get_mut(server) {
            peer.last = Some(Heartbeat { arrived: now, round_trip_millis, answer });
        }
    }

    /// The answer of this server to a heartbeat.
    #[must_use]
    pub fn own_answer(&self, now: Uptime, wall: Timestamp) -> HeartbeatAnswer {
        let silences = self.others.iter().map(|(name, peer)| (name.clone(), self.silence(peer, now)));
        HeartbeatAnswer {
            engine_silent_millis: self.engine_silence(now),
            present_millis: now.since(self.present_since),
            wall,
            duty: self.own_duty,
            silences: silences.collect(),
        }
    }

    /// The servers that should lose their streams, with the reason.
    #[must_use]
    pub fn suspects(&self, now: Uptime) -> BTreeMap<ServerName, Suspicion> {
        let members = self.others.keys().chain(self.former.keys());
        members.filter_map(|name| Some((name.clone(), self.suspicion(name, now)?))).collect()
    }

    /// The suspicion against one server. A server that was never a member is suspected since this server listens.
    #[must_use]
    pub fn suspicion(&self, server: &ServerName, now: Uptime) -> Option<Suspicion> {
        if *server == self.own {
            return None;
        }
        let Some(peer) = self.others.get(server) else {
            let since = self.former.get(server).copied().unwrap_or(self.listening_since);
            return Some(Suspicion { reason: SuspicionReason::NotAMember, since });
        };
        let unreached = engine_unreached_since(peer)
            .map(|since| Suspicion { reason: SuspicionReason::EngineUnreached, since });
        let silent = self
            .silent_since(server, peer, now)
            .map(|since| Suspicion { reason: SuspicionReason::Silent, since });
        [unreached, silent]
            .into_iter()
            .flatten()
            .filter(|suspicion| suspicion.since <= now)
            .min_by_key(|s| s.since)
    }

    /// The servers that may own streams, with this one if it may: not suspected, in contact with the engine, and not
    /// draining.
    #[must_use]
    pub fn live(&self, now: Uptime) -> BTreeSet<ServerName> {
        self.presences(now).map(|(name, _)| name.clone()).collect()
    }

    /// The live servers that may take streams over. Those that have just returned are among them only if there are no
    /// others.
    #[must_use]
    pub fn candidates(&self, now: Uptime) -> BTreeSet<ServerName> {
        let settled = self.presences(now).filter(|(_, present_millis)| *present_millis >= RETURN_MILLIS);
        let settled: BTreeSet<_> = settled.map(|(name, _)| name.clone()).collect();
        if settled.is_empty() { self.live(now) } else { settled }
    }

    /// Live servers, and the milliseconds since each of them started or returned.
    fn presences(&self, now: Uptime) -> impl Iterator<Item = (&ServerName, u64)> {
        let own = self.own_presence(now).map(|present| (&self.own, present));
        let presence = move |(name, peer)| Some((name, self.presence(name, peer, now)?));
        own.into_iter().chain(self.others.iter().filter_map(presence))
    }

    /// The verdict on the wall clock of this server.
    #[must_use]
    pub fn clock_verdict(&self, now: Uptime, wall: Timestamp) -> ClockVerdict {
        let fresh = self.others.values().filter_map(|peer| self.fresh(peer, now));
        let readings: Vec<_> = fresh
            .map(|heartbeat| {
                let taken = heartbeat.arrived.minus(heartbeat.round_trip_millis / 2);
                WallReading {
                    ahead_millis: later(heartbeat.answer.wall, now.since(taken)) - wall.millis(),
                    error_millis: heartbeat.round_trip_millis.div_ceil(2),
                }
            })
            .collect();
        verdict(&readings)
    }

    fn own_presence(&self, now: Uptime) -> Option<u64> {
        let reaches = self.engine_silence(now) < ENGINE_SILENCE_MILLIS;
        (reaches && self.own_duty == ServerDuty::Active).then(|| now.since(self.present_since))
    }

    fn presence(&self, name: &ServerName, peer: &Peer, now: Uptime) -> Option<u64> {
        let heartbeat = self.fresh(peer, now)?;
        let takes = heartbeat.answer.duty == ServerDuty::Active && self.suspicion(name, now).is_none();
        takes.then(|| heartbeat.answer.present_millis.saturating_add(now.since(heartbeat.arrived)))
    }

    /// Milliseconds since the engine last answered this server.
    fn engine_silence(&self, now: Uptime) -> u64 {
        self.engine_answered.map_or(u64::MAX, |answered| now.since(answered))
    }

    fn silence(&self, peer: &Peer, now: Uptime) -> u64 {
        now.since(self.last_sound(peer))
    }

    fn last_sound(&self, peer: &Peer) -> Uptime {
        let heard = peer.last.as_ref().map_or(peer.known_since, |heartbeat| heartbeat.arrived);
        heard.max(self.listening_since)
    }

    fn fresh<'a>(&self, peer: &'a Peer, now: Uptime) -> Option<&'a Heartbeat> {
        peer.last.as_ref().filter(|heartbeat| now.since(heartbeat.arrived) < SILENCE_MILLIS)
    }

    /// The time since which enough servers have found a server silent.
    fn silent_since(&self, server: &ServerName, peer: &Peer, now: Uptime) -> Option<Uptime> {
        let own = self.last_sound(peer).plus(SILENCE_MILLIS);
        let reports = self.others.iter().filter(|(name, _)| *name != server).filter_map(|(_, witness)| {
            let heartbeat = self.fresh(witness, now)?;
            let silence = heartbeat.answer.silences.get(server)?;
            reached(heartbeat.arrived, *silence, SILENCE_MILLIS)
        });
        let mut times: Vec<_> = reports.chain([own]).filter(|since| *since <= now).collect();
        times.sort_unstable();
        let witnesses = if self.others.len() == 1 { 1 } else { 2 };
        times.get(witnesses - 1).copied()
    }
}

fn engine_unreached_since(peer: &Peer) -> Option<Uptime> {
    let heartbeat = peer.last.as_ref()?;
    reached(heartbeat.arrived, heartbeat.answer.engine_silent_millis, ENGINE_SILENCE_MILLIS)
}

/// The time at which a duration that was reported at `arrived` reaches a limit. A report speaks for one more interval
/// only: the next one may say otherwise.
fn reached(arrived: Uptime, reported_millis: u64, limit_millis: u64) -> Option<Uptime> {
    let missing = limit_millis.saturating_sub(reported_millis);
    (missing <= HEARTBEAT_MILLIS)
        .then(|| arrived.plus(missing).minus(reported_millis.saturating_sub(limit_millis)))
}

fn later(wall: Timestamp, millis: u64) -> i64 {
    wall.millis().saturating_add(i64::try_from(millis).unwrap_or(i64::MAX))
}
