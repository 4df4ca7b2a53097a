//! The agenda: one ordered list of due times for each clock, so that there is one next deadline instead of many timers.
//!
//! Almost everything waits on the steady clock. Two things wait on the wall clock: a maintenance whose notice has run
//! out on the steady clock while the wall clock, stepped back, has not reached `not_before`; and work that waits for a
//! window to open.

use std::time::Duration;

use forewarn_types::{MachineId, MaintenanceId, Now, RolloutId, ScaleSetId, Steady, TenantId, Timestamp};

use crate::paged::PagedSet;

/// An item of the agenda: the next tick after its time decides about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A maintenance may start.
    Start(MaintenanceId),
    /// A rollout may announce its next group.
    Advance(RolloutId),
    /// A machine has arrived on a degraded or failed host.
    Stranded(MachineId),
    /// The next batch of a scale set gets the latest model.
    Batch(ScaleSetId),
}

/// The attention that the next tick pays to one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// The item still waits for a change.
    Waits,
    /// The next tick checks the item.
    Due,
}

/// The next moment at which time alone changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    steady: Option<Steady>,
    wall: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agenda {
    steady: PagedSet<(Steady, Due)>,
    wall: PagedSet<(Timestamp, Due)>,
    /// Tenants that may have exceeded the silence limit by then; the shell knows their last request.
    silences: PagedSet<(Steady, TenantId)>,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: Steady, due: Due) {
        self.steady.insert((at, due));
    }

    pub(crate) fn remove(&mut self, at: Steady, due: Due) {
        self.steady.remove(&(at, due));
    }

    pub(crate) fn add_wall(&mut self, at: Timestamp, due: Due) {
        self.wall.insert((at, due));
    }

    pub(crate) fn remove_wall(&mut self, at: Timestamp, due: Due) {
        self.wall.remove(&(at, due));
    }

    pub(crate) fn add_silence(&mut self, at: Steady, tenant: TenantId) {
        self.silences.insert((at, tenant));
    }

    /// Lists all tenants that may be silent, at once.
    pub(crate) fn restore_silences(&mut self, all: Vec<(Steady, TenantId)>) {
        self.silences = all.into_iter().collect();
    }

    pub(crate) fn remove_silence(&mut self, at: Steady, tenant: TenantId) {
        self.silences.remove(&(at, tenant));
    }

    /// Returns whether the next tick checks the item, whatever the clocks show.
    pub(crate) fn attention(&self, due: Due) -> Attention {
        if self.steady.contains(&(Steady::START, due)) { Attention::Due } else { Attention::Waits }
    }

    /// The first due item; `None` if nothing is due.
    pub(crate) fn first_due(&self, now: Now) -> Option<Due> {
        let steady = self.steady.first().filter(|(at, _)| *at <= now.steady).map(|&(_, due)| due);
        let wall = || self.wall.first().filter(|(at, _)| *at <= now.wall).map(|&(_, due)| due);
        steady.or_else(wall)
    }

    /// The tenants whose silence deadline is due.
    pub(crate) fn silences(&self, now: Now) -> impl Iterator<Item = TenantId> {
        self.silences.iter().take_while(move |(at, _)| *at <= now.steady).map(|&(_, tenant)| tenant)
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        let work = self.steady.first().map(|&(at, _)| at);
        let silence = self.silences.first().map(|&(at, _)| at);
        let steady = work.into_iter().chain(silence).min();
        let wall = self.wall.first().map(|&(at, _)| at);
        (steady.is_some() || wall.is_some()).then_some(Deadline { steady, wall })
    }
}

impl Deadline {
    /// Returns true if the deadline has passed on either clock.
    #[must_use]
    pub fn is_due(self, now: Now) -> bool {
        self.steady.is_some_and(|at| at <= now.steady) || self.wall.is_some_and(|at| at <= now.wall)
    }

    /// Time left until the deadline, if no clock is stepped.
    #[must_use]
    pub fn wait(self, now: Now) -> Duration {
        let steady = self.steady.map(|at| at.since(now.steady));
        let wall = self.wall.map(|at| at.since(now.wall));
        steady.into_iter().chain(wall).min().unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: i64, steady: u64) -> Now {
        Now { wall: Timestamp::from_millis(wall), steady: Steady::from_millis(steady) }
    }

    #[test]
    fn a_deadline_is_the_earlier_of_both_clocks() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.next(), None);
        agenda.add(Steady::from_millis(100), Due::Start(MaintenanceId(1)));
        let deadline = agenda.next().unwrap();
        assert!(!deadline.is_due(now(900, 99)) && deadline.is_due(now(0, 100)));
        assert_eq!(deadline.wait(now(0, 40)), Duration::from_millis(60));
        agenda.add_wall(Timestamp::from_millis(30), Due::Start(MaintenanceId(2)));
        let deadline = agenda.next().unwrap();
        assert_eq!(deadline.wait(now(0, 40)), Duration::from_millis(30));
        assert!(deadline.is_due(now(30, 40)) && !deadline.is_due(now(29, 40)));
        assert_eq!(agenda.first_due(now(29, 99)), None);
        assert_eq!(agenda.first_due(now(30, 99)), Some(Due::Start(MaintenanceId(2))));
        agenda.remove_wall(Timestamp::from_millis(30), Due::Start(MaintenanceId(2)));
        agenda.remove(Steady::from_millis(100), Due::Start(MaintenanceId(1)));
        assert_eq!(agenda, Agenda::default());
    }

    #[test]
    fn silences_do_not_delay_starts() {
        let mut agenda = Agenda::default();
        agenda.add_silence(Steady::from_millis(1), TenantId(7));
        assert_eq!(agenda.first_due(now(0, 5)), None);
        assert_eq!(agenda.next().unwrap().wait(now(0, 0)), Duration::from_millis(1));
        agenda.add(Steady::from_millis(2), Due::Advance(RolloutId(1)));
        agenda.add_silence(Steady::from_millis(9), TenantId(8));
        assert_eq!(agenda.first_due(now(0, 5)), Some(Due::Advance(RolloutId(1))));
        assert_eq!(agenda.silences(now(0, 5)).collect::<Vec<_>>(), [TenantId(7)]);
        agenda.remove_silence(Steady::from_millis(1), TenantId(7));
        assert_eq!(agenda.silences(now(0, 9)).collect::<Vec<_>>(), [TenantId(8)]);
    }
}
