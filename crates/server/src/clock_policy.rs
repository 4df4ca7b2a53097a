//! Policies of the clock: when its time is recorded, and the stops of a virtual clock that is advanced.

use std::time::Duration;

use forewarn_control::{ClusterState, ControlState};
use forewarn_lifecycle::{Now, Steady};

use crate::clock::{CLOCK_END, Clock, ClockKind, later};
use crate::role::RealmScope;

/// Real time by which a running virtual clock is recorded ahead: a restart sets it forward by that at most.
const AHEAD: Duration = Duration::from_secs(10);

/// Time between two records of the steady clock while something waits on it.
const RECORD_INTERVAL: Duration = Duration::from_mins(1);

/// The same in a realm: another server continues from the last record.
const REALM_RECORD_INTERVAL: Duration = Duration::from_secs(5);

/// The time to record of a running virtual clock: ahead of time, before a reader sees it.
pub(crate) fn to_record_ahead(clock: &Clock, recorded: Now) -> Option<Now> {
    let now = clock.now();
    match clock.kind() {
        ClockKind::Virtual => {
            let ahead = AHEAD.saturating_mul(clock.speed().0);
            let is_due = later(now, ahead / 2).steady > recorded.steady && !ahead.is_zero();
            is_due.then(|| later(now, ahead))
        }
        ClockKind::Real | ClockKind::Accelerated { .. } => None,
    }
}

/// The time to record of a clock that is not virtual, in a cluster in which something waits on it: it would otherwise stand still over
/// a restart.
pub(crate) fn to_record_in_cluster(
    clock: &Clock,
    recorded: Now,
    scope: RealmScope,
    state: &ClusterState,
) -> Option<Now> {
    let interval = match scope {
        RealmScope::Alone => RECORD_INTERVAL,
        RealmScope::Realm => REALM_RECORD_INTERVAL,
    };
    // Real time: a record is a commit, however fast the clock is.
    let (now, interval) = (clock.now(), interval.saturating_mul(clock.speed().0));
    let is_due = now.steady.since(recorded.steady) >= interval;
    (is_due && is_busy(state)).then_some(now)
}

/// An advance of a virtual clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockAdvance {
    end: Option<Steady>,
    /// It ends at the next change of a document.
    pub(crate) is_to_next_change: bool,
}

impl ClockAdvance {
    /// An advance by a span.
    pub(crate) fn of(now: Now, span: Duration) -> Self {
        Self { end: Some(end_after(now, span)), is_to_next_change: false }
    }

    /// An advance to the next change of a document, by at most `within`.
    pub(crate) fn to_next_change(now: Now, within: Option<Duration>) -> Self {
        Self { end: within.map(|span| end_after(now, span)), is_to_next_change: true }
    }

    /// The next stop: the next due time, or the end. None if the end is reached, or there is no end and
    /// time alone changes no document.
    pub(crate) fn next_stop(self, now: Now, due: Option<Duration>, state: &ControlState) -> Option<Now> {
        let left = self.end.map(|end| end.since(now.steady));
        if left == Some(Duration::ZERO) || left.is_none() && !state.clusters().any(|(_, one)| is_busy(one)) {
            return None;
        }
        let next = due.into_iter().chain(left).min()?;
        (next <= CLOCK_END.since(now.wall)).then(|| later(now, next))
    }
}

/// Returns true if time alone may change a document of a cluster: something is announced or under way.
pub(crate) fn is_busy(state: &ClusterState) -> bool {
    let rules = state.rules();
    rules.maintenances().next().is_some() || rules.rollouts().next().is_some()
}

/// The end of a span on a whole second, as every time in a document is: an advance by the time that is left gets there.
fn end_after(now: Now, span: Duration) -> Steady {
    let whole = now.wall.plus(span).rounded_up().since(now.wall).max(span);
    now.steady.plus(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::ClusterId;
    use forewarn_control::Record;
    use forewarn_lifecycle::{
        Cluster, Command, FaultDomain, HostId, MachineId, Name, Placement, Policy, Priority, Profile, Seed,
        Size, TenantId, UpdateDomain,
    };

    const HOUR: Duration = Duration::from_hours(1);

    /// A state in which a restart is announced.
    fn busy(now: Now) -> ControlState {
        let mut state = ControlState::new(Seed([5; 16]));
        let name = |text| Name::new(text).unwrap();
        let placement = Placement {
            host: HostId(0),
            update_domain: UpdateDomain(0),
            fault_domain: FaultDomain(0),
            size: Size::NONE,
        };
        let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
        for command in [
            Command::AdmitHost { name: name("h1"), zone: None, capacity: Size::NONE },
            Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy },
            Command::Enrol(TenantId(0)),
            Command::Restart(MachineId(0)),
        ] {
            let rules: &Cluster = state.cluster(ClusterId::DEFAULT).unwrap().rules();
            for change in rules.decide(now, &command).unwrap() {
                state.apply(&Record::rules(now, ClusterId::DEFAULT, change));
            }
        }
        state
    }

    #[test]
    fn an_advance_stops_where_something_is_due_and_ends_on_a_whole_second() {
        let (now, idle) = (Now::at_millis(1_500), ControlState::new(Seed([5; 16])));
        let advance = ClockAdvance::of(now, Duration::from_secs(10));
        let stop = |now, due: Option<u64>| advance.next_stop(now, due.map(Duration::from_secs), &idle);
        let first = stop(now, Some(4)).unwrap();
        assert_eq!(first, later(now, Duration::from_secs(4)));
        let end = stop(first, Some(60)).unwrap();
        assert_eq!((end.wall.millis(), stop(first, None)), (12_000, Some(end)));
        assert_eq!(stop(end, Some(0)), None);
    }

    #[test]
    fn an_advance_without_an_end_goes_on_while_time_changes_something() {
        let now = Now::at_millis(0);
        let (idle, busy) = (ControlState::new(Seed([5; 16])), busy(now));
        let advance = ClockAdvance::to_next_change(now, None);
        assert_eq!(advance.next_stop(now, Some(HOUR), &busy), Some(later(now, HOUR)));
        assert_eq!(advance.next_stop(now, Some(HOUR), &idle), None);
        assert_eq!(advance.next_stop(now, None, &busy), None);
        assert_eq!(advance.next_stop(now, Some(CLOCK_END.since(now.wall) + HOUR), &busy), None);
        let bounded = ClockAdvance::to_next_change(now, Some(HOUR));
        assert_eq!(bounded.next_stop(now, None, &idle), Some(later(now, HOUR)));
    }
}
