//! Table of the open connections of a listener, and the choice of a connection to replace.
//!
//! Authenticated connections are kept. A new one replaces a connection that has not authenticated, oldest first, of
//! the origin with most of them; then an idle one. A connection with a request in a handler is never replaced.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::connection_state::ConnectionState;
use super::counts::Reason;
use super::limits::{ClientLimits, HANDSHAKES_MAX};
use super::origin::Origin;
use super::stage::Stage;
use forewarn_control::Permit;

/// Open connections of one listener.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    next: u64,
    open: HashMap<u64, (Origin, Arc<ConnectionState>)>,
}

/// Entry of one connection in the table. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct TableEntry {
    number: u64,
    table: Arc<Table>,
}

/// Properties of an open connection that matter for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionInfo {
    number: u64,
    origin: Origin,
    stage: Stage,
    since: Instant,
    is_authenticated: bool,
}

/// Decision about a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Admit,
    /// This connection is replaced.
    Replace(u64, Reason),
    Refuse(Reason),
}

impl Table {
    /// Adds a new connection. Returns the reasons of the connections that were replaced.
    pub(super) fn admit(
        self: &Arc<Self>,
        limits: &ClientLimits,
        origin: Origin,
        state: &Arc<ConnectionState>,
        is_valid: impl Fn(&Permit) -> bool,
    ) -> Result<(TableEntry, Vec<Reason>), Reason> {
        let mut dropped = Vec::new();
        let mut rows = self.rows();
        loop {
            let admission = if rows.open.len() < rows.quick(limits) {
                Admission::Admit
            } else {
                decide(limits, origin, state.stage(), &rows.connections(&is_valid))
            };
            match admission {
                Admission::Admit => break,
                Admission::Refuse(reason) => return Err(reason),
                Admission::Replace(number, reason) => {
                    rows.close(number);
                    dropped.push(reason);
                }
            }
        }
        let number = rows.next;
        rows.next += 1;
        rows.open.insert(number, (origin, Arc::clone(state)));
        Ok((TableEntry { number, table: Arc::clone(self) }, dropped))
    }

    /// Checks that a token may have one more connection: this one, which has authenticated with it. If there are too
    /// many, the oldest idle one with the same token is closed, and the reason is returned.
    pub(super) fn hold(
        &self,
        limits: &ClientLimits,
        state: &Arc<ConnectionState>,
        token: Option<u32>,
    ) -> Result<Option<Reason>, Reason> {
        let Some(token) = token else { return Ok(None) };
        let mut rows = self.rows();
        let own = rows.with_token(token, state);
        if own.len() < usize::try_from(limits.per_holder()).unwrap_or(usize::MAX) {
            return Ok(None);
        }
        let idle = oldest_idle(own.iter()).ok_or(Reason::Token)?;
        rows.close(idle);
        Ok(Some(Reason::Token))
    }

    /// Closes one connection, for lack of file descriptors.
    pub(super) fn relieve(&self, is_valid: impl Fn(&Permit) -> bool) -> Option<Reason> {
        let mut rows = self.rows();
        let number = weakest(&rows.connections(&is_valid))?;
        rows.close(number);
        Some(Reason::Descriptors)
    }

    /// A panic cannot leave a change half done.
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// Number of connections below which no limit can be reached.
    fn quick(&self, limits: &ClientLimits) -> usize {
        let least = limits.max.min(limits.per_address).min(limits.per_holder());
        usize::try_from(least).unwrap_or(usize::MAX).min(HANDSHAKES_MAX)
    }

    fn connections(&self, is_valid: &impl Fn(&Permit) -> bool) -> Vec<ConnectionInfo> {
        let connection = |(number, (origin, state)): (&u64, &(Origin, Arc<ConnectionState>))| {
            ConnectionInfo::new(*number, *origin, state, is_valid)
        };
        self.open.iter().map(connection).collect()
    }

    /// Connections that have authenticated with a token, but for one.
    fn with_token(&self, token: u32, but: &Arc<ConnectionState>) -> Vec<ConnectionInfo> {
        let others = self.open.iter().filter(|(_, (_, state))| !Arc::ptr_eq(state, but));
        let own = others.filter(|(_, (_, state))| state.token() == Some(token));
        own.map(|(number, (origin, state))| ConnectionInfo::new(*number, *origin, state, |_| true)).collect()
    }

    fn close(&mut self, number: u64) {
        if let Some((_, state)) = self.open.remove(&number) {
            state.close();
        }
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        self.table.rows().open.remove(&self.number);
    }
}

impl ConnectionInfo {
    fn new(number: u64, origin: Origin, state: &ConnectionState, is_valid: impl Fn(&Permit) -> bool) -> Self {
        let (stage, since) = (state.stage(), state.since());
        Self { number, origin, stage, since, is_authenticated: state.has(is_valid) }
    }

    /// Returns true if it may be replaced although it is not idle.
    fn is_weak(&self) -> bool {
        !self.is_authenticated && self.stage != Stage::Handling
    }

    fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }
}

fn decide(limits: &ClientLimits, origin: Origin, stage: Stage, connections: &[ConnectionInfo]) -> Admission {
    let reached = |count: usize, limit: u32| count >= usize::try_from(limit).unwrap_or(usize::MAX);
    let own = || connections.iter().filter(|other| other.origin == origin);
    if matches!(origin, Origin::User(_)) && reached(own().count(), limits.per_holder()) {
        let own: Vec<_> = own().copied().collect();
        return replace(weakest(&own), Reason::User);
    }
    let unauthenticated = || own().filter(|other| !other.is_authenticated);
    if reached(unauthenticated().count(), limits.per_address) {
        return replace(oldest(unauthenticated()), Reason::Address);
    }
    if stage == Stage::Handshake {
        let handshakes = connections.iter().filter(|other| other.stage == Stage::Handshake);
        let handshakes: Vec<_> = handshakes.copied().collect();
        if handshakes.len() >= HANDSHAKES_MAX {
            return replace(weakest(&handshakes), Reason::Handshakes);
        }
    }
    if reached(connections.len(), limits.max) {
        return replace(weakest(connections), Reason::Full);
    }
    Admission::Admit
}

fn replace(number: Option<u64>, reason: Reason) -> Admission {
    number.map_or(Admission::Refuse(reason), |number| Admission::Replace(number, reason))
}

/// The connection to replace. None if all of them have authenticated and are busy.
fn weakest(connections: &[ConnectionInfo]) -> Option<u64> {
    // For each origin, the number of its connections and the oldest: of equals, the oldest is replaced.
    let mut origins = BTreeMap::<Origin, (usize, Reverse<(Instant, u64)>)>::new();
    let weak = || connections.iter().filter(|other| other.is_weak());
    for other in weak() {
        let age = Reverse((other.since, other.number));
        let (count, oldest) = origins.entry(other.origin).or_insert((0, age));
        (*count, *oldest) = (*count + 1, age.max(*oldest));
    }
    let most = origins.iter().max_by_key(|(_, rank)| **rank).map(|(origin, _)| *origin);
    let stranger = oldest(weak().filter(|other| Some(other.origin) == most));
    stranger.or_else(|| oldest_idle(connections.iter()))
}

/// The connection that has been in its stage for longest, without a request in a handler; idle ones
/// first.
fn oldest<'a>(connections: impl Iterator<Item = &'a ConnectionInfo> + Clone) -> Option<u64> {
    oldest_idle(connections.clone()).or_else(|| first(connections.filter(|other| other.is_weak())))
}

fn oldest_idle<'a>(connections: impl Iterator<Item = &'a ConnectionInfo>) -> Option<u64> {
    first(connections.filter(|other| other.is_idle()))
}

fn first<'a>(connections: impl Iterator<Item = &'a ConnectionInfo>) -> Option<u64> {
    connections.min_by_key(|other| (other.since, other.number)).map(|other| other.number)
}

#[cfg(test)]
mod tests;
