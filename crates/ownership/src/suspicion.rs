//! Suspicion against servers, and the servers that may take streams over.
//!
//! Suspicion only determines how soon another server tries to take over; the comparison of the head keeps an early
//! takeover harmless.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ServerName, Uptime};
use crate::peers::{ENGINE_SILENCE_MILLIS, HEARTBEAT_MILLIS, Peer, Peers, SILENCE_MILLIS, ServerDuty};

/// Time after its return during which a server takes nothing back, in milliseconds.
pub const RETURN_MILLIS: u64 = 30_000;

/// The reason why a server should lose its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspicionReason {
    /// The server has no membership key.
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

impl Peers {
    /// Members and former members that should lose their streams.
    #[must_use]
    pub fn suspects(&self, now: Uptime) -> BTreeMap<ServerName, Suspicion> {
        let servers = self.others.keys().chain(self.former.keys());
        servers.filter_map(|name| Some((name.clone(), self.suspicion(name, now)?))).collect()
    }

    /// The suspicion against one server, which may never have been a member.
    #[must_use]
    pub fn suspicion(&self, server: &ServerName, now: Uptime) -> Option<Suspicion> {
        if *server == self.own {
            return None;
        }
        let all = match self.others.get(server) {
            Some(peer) => [
                (SuspicionReason::EngineUnreached, self.engine_unreached_since(peer)),
                (SuspicionReason::Silent, self.silent_since(server, peer, now)),
            ],
            None => [
                (SuspicionReason::NotAMember, self.missing_since(server)),
                (SuspicionReason::NotAMember, None),
            ],
        };
        let begun = |(reason, since): (_, Option<Uptime>)| {
            since.filter(|since| *since <= now).map(|since| Suspicion { reason, since })
        };
        all.into_iter().filter_map(begun).min_by_key(|suspicion| suspicion.since)
    }

    /// The servers that may own streams, with this one if it may: not suspected, in contact with the engine, and not
    /// draining.
    #[must_use]
    pub fn live(&self, now: Uptime) -> BTreeSet<ServerName> {
        self.presences(now).map(|(name, _)| name.clone()).collect()
    }

    /// The live servers that may take streams over. Those that have just started or returned are among them only if
    /// there are no others.
    #[must_use]
    pub fn candidates(&self, now: Uptime) -> BTreeSet<ServerName> {
        let settled = self.settled(now);
        if settled.is_empty() { self.live(now) } else { settled }
    }

    /// The live servers that have started or returned some time ago.
    pub(crate) fn settled(&self, now: Uptime) -> BTreeSet<ServerName> {
        let settled = self.presences(now).filter(|(_, present_millis)| *present_millis >= RETURN_MILLIS);
        settled.map(|(name, _)| name.clone()).collect()
    }

    /// True if this server may take a stream from a server because it is silent. Otherwise two servers that cannot
    /// hear each other would take their streams from each other all the time.
    pub(crate) fn may_judge_silence(&self, now: Uptime) -> bool {
        self.fenced_at.is_none_or(|fenced| now.since(fenced) >= RETURN_MILLIS)
    }

    /// Live servers, and the milliseconds since each of them started or returned.
    fn presences(&self, now: Uptime) -> impl Iterator<Item = (&ServerName, u64)> {
        let own = self.own_presence(now).map(|present_millis| (&self.own, present_millis));
        let presence = move |(name, peer)| Some((name, self.presence(name, peer, now)?));
        own.into_iter().chain(self.others.iter().filter_map(presence))
    }

    fn own_presence(&self, now: Uptime) -> Option<u64> {
        (self.reaches_engine(now) && self.duty == ServerDuty::Active).then(|| now.since(self.present_since))
    }

    fn presence(&self, name: &ServerName, peer: &Peer, now: Uptime) -> Option<u64> {
        let heartbeat = peer.fresh(now)?;
        let answer = &heartbeat.answer;
        let reaches = answer.engine_silent_millis < ENGINE_SILENCE_MILLIS;
        let is_active = answer.duty == ServerDuty::Active && !self.drains(name);
        let may_own = reaches && is_active && self.suspicion(name, now).is_none();
        may_own.then(|| answer.present_millis.saturating_add(now.since(heartbeat.arrived)))
    }

    /// The time since which a server that is not a member should lose its streams.
    fn missing_since(&self, server: &ServerName) -> Option<Uptime> {
        let missing = self.former.get(server).copied().unwrap_or(self.listening_since);
        self.after_own_contact(missing)
    }

    fn engine_unreached_since(&self, peer: &Peer) -> Option<Uptime> {
        let heartbeat = peer.last.as_ref()?;
        let silence = heartbeat.answer.engine_silent_millis;
        self.after_own_contact(reached(heartbeat.arrived, silence, ENGINE_SILENCE_MILLIS)?)
    }

    /// A server that has just reached the engine gives the others time to reach it as well.
    fn after_own_contact(&self, since: Uptime) -> Option<Uptime> {
        Some(since.max(self.engine_since()?.plus(ENGINE_SILENCE_MILLIS)))
    }

    /// The time since which enough servers have found a server silent.
    fn silent_since(&self, server: &ServerName, peer: &Peer, now: Uptime) -> Option<Uptime> {
        let own = self.last_sound(peer).plus(SILENCE_MILLIS);
        let reports = self.others.values().filter_map(|witness| {
            let heartbeat = witness.fresh(now)?;
            let silence = heartbeat.answer.silences.get(server)?;
            reached(heartbeat.arrived, *silence, SILENCE_MILLIS)
        });
        let mut times: Vec<_> = reports.chain([own]).filter(|since| *since <= now).collect();
        times.sort_unstable();
        let second = usize::from(self.others.len() > 1);
        times.get(second).copied()
    }
}

/// The time at which a duration that was reported at `arrived` reaches a limit. A report speaks for one more interval
/// only: the next one may say otherwise.
fn reached(arrived: Uptime, reported_millis: u64, limit_millis: u64) -> Option<Uptime> {
    let missing = limit_millis.saturating_sub(reported_millis);
    let over = reported_millis.saturating_sub(limit_millis);
    (missing <= HEARTBEAT_MILLIS).then(|| arrived.plus(missing).minus(over))
}
