//! Announcements that other servers have not shown yet. Notice counts from the moment at which every server of the realm
//! shows an event, because a VM may poll any of them.
//!
//! ```text
//!   owner shows a batch ──▶ others copy and show it ──▶ heartbeats say so ──▶ starts wait for the whole notice from here
//!                                     │ one of them lags
//!                                     └──▶ starts that are near wait again, until it shows the batch or has lost its key
//! ```
//!
//! Followers keep the same list: one that becomes the owner goes on where the former one ended.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use forewarn_lifecycle::{MaintenanceId, Now};

use super::{Driver, Role};
use crate::role::RealmScope;

/// A start that is nearer than this waits again while a server has not shown its event.
const START_NEAR: Duration = Duration::from_secs(3);

/// Time for which a follower remembers a batch that every server shows: the owner may have been lost before it has
/// written that starts wait.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Batches with announcements that are remembered. Further ones count as part of the last.
const BATCHES_MAX: usize = 1_024;

/// Batches with announcements that some server may not show.
#[derive(Debug, Default)]
pub(super) struct UnshownBatches {
    batches: VecDeque<UnshownBatch>,
    /// Every other server has shown the batches up to this number.
    shown_by_others: u64,
}

#[derive(Debug)]
struct UnshownBatch {
    number: u64,
    announced: BTreeSet<MaintenanceId>,
    /// The moment at which this server knew that all others show it.
    shown: Option<Instant>,
}

impl UnshownBatches {
    pub(super) fn add(&mut self, number: u64, announced: BTreeSet<MaintenanceId>) {
        if announced.is_empty() || number <= self.shown_by_others {
            return;
        }
        let is_full = self.batches.len() >= BATCHES_MAX;
        match self.batches.back_mut() {
            Some(last) if last.number == number || is_full => {
                (last.number, last.shown) = (number, None);
                last.announced.extend(announced);
            }
            Some(_) | None => self.batches.push_back(UnshownBatch { number, announced, shown: None }),
        }
    }

    /// Announcements that every server shows since now.
    fn take_shown(&mut self) -> BTreeSet<MaintenanceId> {
        let mut shown = BTreeSet::new();
        while let Some(first) = self.batches.front().filter(|first| first.number <= self.shown_by_others) {
            shown.extend(&first.announced);
            self.batches.pop_front();
        }
        shown
    }

    /// Notes which batches every server shows, and forgets those that all have shown for long.
    fn note_shown(&mut self, now: Instant) {
        for batch in self.batches.iter_mut().filter(|batch| batch.number <= self.shown_by_others) {
            batch.shown.get_or_insert(now);
        }
        self.batches.retain(|batch| {
            batch.shown.is_none_or(|shown| now.saturating_duration_since(shown) < REMEMBERED)
        });
    }
}

impl Driver {
    /// Remembers announcements of the last batch until every server shows them.
    pub(super) fn remember_unshown(&mut self, announced: &BTreeSet<MaintenanceId>) {
        match self.runtime.scope {
            RealmScope::Alone => {}
            RealmScope::Realm => self.unshown.add(self.state.log_number(), announced.clone()),
        }
    }

    /// Every other server shows the batches up to a number.
    pub(super) fn shown_by_others(&mut self, number: u64) {
        self.unshown.shown_by_others = number;
        self.follow_shown();
    }

    /// Counts the notice of announcements from now on that every server shows.
    pub(super) fn follow_shown(&mut self) {
        match self.journal.role() {
            Role::Follower => self.unshown.note_shown(Instant::now()),
            Role::Owner if self.journal.is_broken() => {}
            Role::Owner => {
                let shown = self.unshown.take_shown();
                let starts = self.extend_notice(self.context.clock.now(), shown);
                if starts > 0 {
                    tracing::debug!(starts, "every server shows the events; notice counts from now on");
                }
            }
        }
    }

    /// Lets starts wait that are near while a server does not show their events. Returns true if any does.
    pub(super) fn hold_unshown(&mut self, now: Now) -> bool {
        let decides = self.journal.role() == Role::Owner && !self.journal.is_broken();
        if self.unshown.batches.is_empty() || !decides || self.violation.is_some() {
            return false;
        }
        let is_near = |id: &MaintenanceId| {
            let known = self.state.rules().maintenance(*id);
            known.is_some_and(|known| known.plan.steady_due <= now.steady.plus(START_NEAR))
        };
        let announced = self.unshown.batches.iter().flat_map(|batch| &batch.announced);
        let near: BTreeSet<_> = announced.copied().filter(is_near).collect();
        let starts = self.extend_notice(now, near);
        if starts > 0 {
            tracing::warn!(
                cluster = self.id.0,
                starts,
                "starts delayed: a server does not show their events"
            );
        }
        starts > 0
    }

    /// The driver has become the owner: batches that all servers have shown lately count from now on again, because the
    /// former owner may not have written it.
    pub(super) fn remember_unshown_as_owner(&mut self) {
        self.unshown.batches.iter_mut().for_each(|batch| batch.shown = None);
        self.follow_shown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u64]) -> BTreeSet<MaintenanceId> {
        numbers.iter().map(|number| MaintenanceId(*number)).collect()
    }

    #[test]
    fn a_batch_is_remembered_until_every_server_has_shown_it() {
        let mut unshown = UnshownBatches::default();
        unshown.add(4, ids(&[1]));
        unshown.add(4, ids(&[2]));
        unshown.add(6, ids(&[3]));
        unshown.add(7, ids(&[]));
        unshown.shown_by_others = 3;
        assert_eq!(unshown.take_shown(), ids(&[]));
        unshown.shown_by_others = 5;
        assert_eq!(unshown.take_shown(), ids(&[1, 2]));
        unshown.shown_by_others = 9;
        unshown.add(8, ids(&[4]));
        assert_eq!((unshown.take_shown(), unshown.batches.len()), (ids(&[3]), 0));
    }

    #[test]
    fn a_follower_remembers_batches_for_a_while_and_never_too_many() {
        let (mut unshown, now) = (UnshownBatches::default(), Instant::now());
        for number in 1..=BATCHES_MAX as u64 + 5 {
            unshown.add(number, ids(&[number]));
        }
        assert_eq!(unshown.batches.len(), BATCHES_MAX);
        unshown.shown_by_others = BATCHES_MAX as u64;
        unshown.note_shown(now);
        assert_eq!(unshown.batches.len(), BATCHES_MAX);
        unshown.note_shown(now + REMEMBERED);
        let left = unshown.batches.pop_back().unwrap();
        assert_eq!((unshown.batches.len(), left.announced.len()), (0, 6), "the last ones are not shown");
    }
}
