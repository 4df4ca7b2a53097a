//! The servers of a realm as one of them sees them: heartbeats, membership, contact with the engine.
//!
//! All times are uptimes of this computer. `suspicion.rs` draws the conclusions.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_types::Timestamp;

use crate::ids::{ServerName, Uptime};
use crate::wall_clock::{ClockVerdict, WallReading, verdict};

/// The interval of heartbeats, in milliseconds.
pub const HEARTBEAT_MILLIS: u64 = 250;
/// Time without a heartbeat after which a server is silent, in milliseconds.
pub const SILENCE_MILLIS: u64 = 1_000;
/// Time without an answer of the engine after which a server should lose its streams, in milliseconds.
pub const ENGINE_SILENCE_MILLIS: u64 = 2_000;

/// The silence of an engine that has never answered, in milliseconds: 49 days.
const NEVER_MILLIS: u64 = u32::MAX as u64;

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
    /// Milliseconds since that server last heard each of the other members.
    pub silences: BTreeMap<ServerName, u64>,
}

/// The servers of a realm as one of them sees them.
#[derive(Clone, Debug)]
pub struct Peers {
    pub(crate) own: ServerName,
    pub(crate) duty: ServerDuty,
    /// The start or the last return of this server.
    pub(crate) present_since: Uptime,
    /// The last time at which another server took a stream from this one.
    pub(crate) fenced_at: Option<Uptime>,
    /// The silence of others counts from here: this server heard nothing while it did not run.
    pub(crate) listening_since: Uptime,
    last_tick: Uptime,
    engine: Option<EngineContact>,
    pub(crate) others: BTreeMap<ServerName, Peer>,
    /// Former members, and the time at which each of them was missing first.
    pub(crate) former: BTreeMap<ServerName, Uptime>,
    /// Servers that an operator drains: their next heartbeat may say so later than the engine.
    draining: BTreeSet<ServerName>,
}

/// Contact of this server with the engine.
#[derive(Clone, Copy, Debug)]
struct EngineContact {
    /// The first answer since the last gap.
    since: Uptime,
    last: Uptime,
}

/// Another member.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    known_since: Uptime,
    pub(crate) last: Option<Heartbeat>,
}

/// The last answer of another member.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) arrived: Uptime,
    round_trip_millis: u64,
    pub(crate) answer: HeartbeatAnswer,
}

impl Peers {
    /// The view of a server that has just started.
    #[must_use]
    pub fn new(own: ServerName, now: Uptime) -> Self {
        Self {
            own,
            duty: ServerDuty::Active,
            present_since: now,
            fenced_at: None,
            listening_since: now,
            last_tick: now,
            engine: None,
            others: BTreeMap::new(),
            former: BTreeMap::new(),
            draining: BTreeSet::new(),
        }
    }

    /// The name of this server.
    #[must_use]
    pub fn own(&self) -> &ServerName {
        &self.own
    }

    /// Takes note that this server runs; to be called once in each interval of heartbeats, before other methods. After
    /// a gap, this server has returned, and the silence of others begins anew.
    pub fn tick(&mut self, now: Uptime) {
        if now.since(self.last_tick) >= SILENCE_MILLIS {
            self.listening_since = now;
            self.present_since = now;
        }
        self.last_tick = self.last_tick.max(now);
    }

    /// Takes note that another server took a stream from this one. A move that this server made does not count.
    pub fn fenced(&mut self, now: Uptime) {
        self.present_since = now;
        self.fenced_at = Some(now);
    }

    /// Takes note of an answer of the engine. After a gap, this server has returned.
    pub fn engine_answered(&mut self, now: Uptime) {
        let gap = !self.reaches_engine(now);
        if gap && self.engine.is_some() {
            self.present_since = now;
        }
        let since = self.engine.filter(|_| !gap).map_or(now, |contact| contact.since);
        self.engine = Some(EngineContact { since, last: now });
    }

    /// Sets the willingness of this server to own streams.
    pub fn set_duty(&mut self, duty: ServerDuty) {
        self.duty = duty;
    }

    /// Returns true if an operator drains that server.
    #[must_use]
    pub fn drains(&self, server: &ServerName) -> bool {
        self.draining.contains(server)
    }

    /// Takes note that an operator drains a server, or ends that.
    pub fn set_draining(&mut self, server: ServerName, is_on: bool) {
        if is_on {
            self.draining.insert(server);
        } else {
            self.draining.remove(&server);
        }
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

    /// Forgets a former member that owns nothing.
    pub fn forget(&mut self, server: &ServerName) {
        self.former.remove(server);
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
        let silence = |(name, peer): (&ServerName, _)| (name.clone(), now.since(self.last_sound(peer)));
        HeartbeatAnswer {
            engine_silent_millis: self.engine_silence(now),
            present_millis: now.since(self.present_since),
            wall,
            duty: self.duty,
            silences: self.others.iter().map(silence).collect(),
        }
    }

    /// The verdict on the wall clock of this server, by the last heartbeats of the others.
    #[must_use]
    pub fn clock_verdict(&self, now: Uptime, wall: Timestamp) -> ClockVerdict {
        let heartbeats = self.others.values().filter_map(|peer| peer.fresh(now));
        let readings: Vec<_> = heartbeats.map(|heartbeat| heartbeat.reading(now, wall)).collect();
        verdict(&readings)
    }

    /// True if this server is in contact with the engine.
    #[must_use]
    pub fn reaches_engine(&self, now: Uptime) -> bool {
        self.engine_silence(now) < ENGINE_SILENCE_MILLIS
    }

    /// Milliseconds since the engine last answered this server.
    fn engine_silence(&self, now: Uptime) -> u64 {
        self.engine.map_or(NEVER_MILLIS, |contact| now.since(contact.last))
    }

    /// The first answer of the engine since it was last out of reach.
    pub(crate) fn engine_since(&self) -> Option<Uptime> {
        self.engine.map(|contact| contact.since)
    }

    /// The time at which this server last heard another one, or began to listen for it.
    pub(crate) fn last_sound(&self, peer: &Peer) -> Uptime {
        let heard = peer.last.as_ref().map_or(peer.known_since, |heartbeat| heartbeat.arrived);
        heard.max(self.listening_since)
    }
}

impl Peer {
    /// The last heartbeat, if the server is not silent.
    pub(crate) fn fresh(&self, now: Uptime) -> Option<&Heartbeat> {
        self.last.as_ref().filter(|heartbeat| now.since(heartbeat.arrived) < SILENCE_MILLIS)
    }
}

impl Heartbeat {
    /// The wall clock of the other server now, compared with that of this one. The other server has read it at some
    /// time within the round trip.
    fn reading(&self, now: Uptime, wall: Timestamp) -> WallReading {
        let read_at = self.arrived.minus(self.round_trip_millis / 2);
        let passed = i64::try_from(now.since(read_at)).unwrap_or(i64::MAX);
        let other = self.answer.wall.millis().saturating_add(passed);
        WallReading {
            ahead_millis: other.saturating_sub(wall.millis()),
            error_millis: self.round_trip_millis.div_ceil(2),
        }
    }
}
