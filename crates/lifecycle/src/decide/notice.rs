//! Notice counts from the moment at which VMs can read an announcement.
//!
//! A decision becomes readable later than it was made: after a commit, and after a restart perhaps much later. As long
//! as no VM can have read a time, the time moves. Once a VM may have read it, the time stays and the start waits.

use std::time::Duration;

use forewarn_types::{MaintenanceId, Steady, Timestamp};

use super::draft::Draft;
use crate::change::Change;
use crate::command::Exposure;
use crate::fleet::TerminateNotice;
use crate::maintenance::{Cause, Plan, Stage};
use crate::notice::minimum_notice;

impl Draft<'_> {
    /// Gives every announcement of the list that has not started its minimum notice from now on.
    pub(super) fn ensure_notice(&mut self, maintenances: &[MaintenanceId], exposure: Exposure) {
        for id in maintenances {
            let Some(maintenance) = self.cluster.maintenance(*id) else { continue };
            let plan = &maintenance.plan;
            let Some(minimum) = plan.cause.minimum_notice().filter(|_| plan.is_announced()) else { continue };
            let end = match (&maintenance.stage, exposure) {
                (Stage::Running { .. }, _) => None,
                (Stage::Waiting(_), Exposure::Unread { margin }) => self.moved_end(plan, minimum, margin),
                (Stage::Waiting(_), Exposure::PerhapsRead) => self.later_start(plan, minimum),
            };
            if let Some((not_before, steady_due)) = end {
                self.changes.push(Change::NoticeExtended { maintenance: *id, not_before, steady_due });
            }
        }
    }

    /// The end of a notice that no VM has read, if too little of it is left on either clock.
    fn moved_end(&self, plan: &Plan, minimum: Duration, margin: Duration) -> Option<(Timestamp, Steady)> {
        let notice = minimum.saturating_add(margin);
        let not_before = self.next_open(plan, self.now.wall.plus(notice).rounded_up()).max(plan.not_before);
        // At the end of the calendar there is no later time.
        let is_short_on_wall = plan.not_before.since(self.now.wall) < minimum && not_before > plan.not_before;
        let is_short = is_short_on_wall || plan.steady_due.since(self.now.steady) < minimum;
        let steady_due = self.now.steady.plus(notice.max(not_before.since(self.now.wall)));
        is_short.then_some((not_before, steady_due.max(plan.steady_due)))
    }

    /// The end of a notice that VMs may have read, if too little of it is left. An approved maintenance waits for
    /// nothing.
    fn later_start(&self, plan: &Plan, minimum: Duration) -> Option<(Timestamp, Steady)> {
        let steady_due = self.now.steady.plus(minimum);
        let waits = steady_due > plan.steady_due && self.consent(plan).is_none();
        waits.then_some((plan.not_before, steady_due))
    }

    /// The first whole second from then on at which the rollout of a plan may work on the machines of its tenants.
    fn next_open(&self, plan: &Plan, at: Timestamp) -> Timestamp {
        let Cause::HostWork { rollout, .. } = &plan.cause else { return at };
        let windows = self.cluster.rollout(*rollout).map_or(&[][..], |rollout| &rollout.terms.windows);
        self.next_open_for(windows, plan, at).rounded_up()
    }
}

impl Cause {
    /// The minimum notice of an announcement of this cause; `None` if the cause makes no event or cannot wait.
    #[must_use]
    pub fn minimum_notice(&self) -> Option<Duration> {
        let kind = self.event_template()?.kind;
        match self {
            Self::UserDelete(notice) => notice.map(TerminateNotice::length),
            Self::FailedHost { .. } => None,
            Self::UserRestart
            | Self::UserRedeploy
            | Self::Reimage(_)
            | Self::Power(_)
            | Self::Eviction(_)
            | Self::HostWork { .. }
            | Self::Fencing { .. }
            | Self::HostReturn { .. }
            | Self::DegradedHost { .. } => Some(minimum_notice(kind)),
        }
    }
}

impl Plan {
    /// Returns true if at least one tenant has an event of it.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        self.parts.announced_count() > 0
    }
}
