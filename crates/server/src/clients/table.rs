//! Table of the open connections of one listener, and the choice of the one that makes room.
//!
//! A connection that has authenticated keeps its place. A newcomer takes the place of a connection that has not, oldest
//! first, of the origin that has most of them; then that of an idle one. A request that a handler works on is never cut off.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::counts::Reason;
use super::limits::{ClientLimits, HANDSHAKES_MAX};
use super::origin::Origin;
use super::stage::Stage;
use super::standing::Standing;
use forewarn_control::Permit;

/// Open connections of one listener.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    next: u64,
    open: HashMap<u64, (Origin, Arc<Standing>)>,
}

/// Place of one connection in the table. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    table: Arc<Table>,
}

/// Facts about one open connection that matter for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Occupant {
    number: u64,
    origin: Origin,
    stage: Stage,
    since: Instant,
    is_authenticated: bool,
}

/// Answer to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Admit,
    /// That connection makes room.
    Replace(u64, Reason),
    Refuse(Reason),
}

impl Table {
    /// Takes a place for a newcomer, and says which other connection lost its place for it.
    pub(super) fn admit(
        self: &Arc<Self>,
        limits: &ClientLimits,
        origin: Origin,
        standing: &Arc<Standing>,
        is_good: impl Fn(&Permit) -> bool,
    ) -> Result<(Place, Vec<Reason>), Reason> {
        let mut dropped = Vec::new();
        let mut rows = self.rows();
        loop {
            let verdict = if rows.open.len() < rows.quick(limits) {
                Verdict::Admit
            } else {
                decide(limits, origin, standing.stage(), &rows.occupants(&is_good))
            };
            match verdict {
                Verdict::Admit => break,
                Verdict::Refuse(reason) => return Err(reason),
                Verdict::Replace(number, reason) => {
                    rows.close(number);
                    dropped.push(reason);
                }
            }
        }
        let number = rows.next;
        rows.next += 1;
        rows.open.insert(number, (origin, Arc::clone(standing)));
        Ok((Place { number, table: Arc::clone(self) }, dropped))
    }

    /// Closes one connection, because there is no file descriptor left.
    pub(super) fn relieve(&self, is_good: impl Fn(&Permit) -> bool) -> Option<Reason> {
        let mut rows = self.rows();
        let number = weakest(&rows.occupants(&is_good))?;
        rows.close(number);
        Some(Reason::Descriptors)
    }

    /// No change of the rows can be half done, even after a panic.
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// Number of connections below which no limit can be reached.
    fn quick(&self, limits: &ClientLimits) -> usize {
        let least = limits.max.min(limits.per_address).min(limits.per_user());
        usize::try_from(least).unwrap_or(usize::MAX).min(HANDSHAKES_MAX)
    }

    fn occupants(&self, is_good: &impl Fn(&Permit) -> bool) -> Vec<Occupant> {
        let occupant = |(number, (origin, standing)): (&u64, &(Origin, Arc<Standing>))| Occupant {
            number: *number,
            origin: *origin,
            stage: standing.stage(),
            since: standing.since(),
            is_authenticated: standing.has(is_good),
        };
        self.open.iter().map(occupant).collect()
    }

    fn close(&mut self, number: u64) {
        if let Some((_, standing)) = self.open.remove(&number) {
            standing.close();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.rows().open.remove(&self.number);
    }
}

impl Occupant {
    /// Whether it may be closed although it is not idle.
    fn is_weak(&self) -> bool {
        !self.is_authenticated && self.stage != Stage::Handling
    }

    fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }
}

fn decide(limits: &ClientLimits, origin: Origin, stage: Stage, occupants: &[Occupant]) -> Verdict {
    let reached = |count: usize, limit: u32| count >= usize::try_from(limit).unwrap_or(usize::MAX);
    let own = || occupants.iter().filter(|other| other.origin == origin);
    if matches!(origin, Origin::User(_)) && reached(own().count(), limits.per_user()) {
        let own: Vec<_> = own().copied().collect();
        return replace(weakest(&own), Reason::User);
    }
    let strangers = || own().filter(|other| !other.is_authenticated);
    if reached(strangers().count(), limits.per_address) {
        return replace(oldest(strangers()), Reason::Address);
    }
    if stage == Stage::Handshake {
        let handshakes = occupants.iter().filter(|other| other.stage == Stage::Handshake);
        let handshakes: Vec<_> = handshakes.copied().collect();
        if handshakes.len() >= HANDSHAKES_MAX {
            return replace(weakest(&handshakes), Reason::Handshakes);
        }
    }
    if reached(occupants.len(), limits.max) {
        return replace(weakest(occupants), Reason::Full);
    }
    Verdict::Admit
}

fn replace(number: Option<u64>, reason: Reason) -> Verdict {
    number.map_or(Verdict::Refuse(reason), |number| Verdict::Replace(number, reason))
}

/// The connection that can best be done without; none, if all of them have authenticated and are at work.
fn weakest(occupants: &[Occupant]) -> Option<u64> {
    // For each origin the number of its connections, and the oldest: of equals, the one that has waited for longest gives way.
    let mut origins = BTreeMap::<Origin, (usize, Reverse<(Instant, u64)>)>::new();
    let weak = || occupants.iter().filter(|other| other.is_weak());
    for other in weak() {
        let age = Reverse((other.since, other.number));
        let (count, oldest) = origins.entry(other.origin).or_insert((0, age));
        (*count, *oldest) = (*count + 1, age.max(*oldest));
    }
    let most = origins.iter().max_by_key(|(_, rank)| **rank).map(|(origin, _)| *origin);
    let stranger = oldest(weak().filter(|other| Some(other.origin) == most));
    stranger.or_else(|| oldest_idle(occupants.iter()))
}

/// The connection that has been in its stage for longest and that no handler works for; those that wait between two requests
/// first.
fn oldest<'a>(occupants: impl Iterator<Item = &'a Occupant> + Clone) -> Option<u64> {
    oldest_idle(occupants.clone()).or_else(|| first(occupants.filter(|other| other.is_weak())))
}

fn oldest_idle<'a>(occupants: impl Iterator<Item = &'a Occupant>) -> Option<u64> {
    first(occupants.filter(|other| other.is_idle()))
}

fn first<'a>(occupants: impl Iterator<Item = &'a Occupant>) -> Option<u64> {
    occupants.min_by_key(|other| (other.since, other.number)).map(|other| other.number)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
