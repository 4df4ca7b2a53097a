//! The start of work once its tenants approve, decided by the rules on a copy of the cluster.
//!
//! An approved event may still be held: by the brake, a window, another update domain. Only the rules know.

use forewarn_control::view::describe::progress;
use forewarn_lifecycle::{Approver, Cluster, Command, Event, EventKind, Hold, Maintenance, Wait};
use forewarn_types::Moment;

use crate::ExplanationContext;

/// Decisions after the approvals.
const TICKS_MAX: usize = 64;

impl ExplanationContext<'_> {
    /// The conditions for the start of an event that waits for approvals or for the end of its notice.
    pub(crate) fn start_conditions(&self, work: &Maintenance, event: &Event, not_before: Moment) -> String {
        let after = self.approve_on_copy(work);
        let after = after.maintenance(work.plan.id).and_then(|after| Some((after.wait()?, progress(after))));
        let waits_for_deletions = matches!(after, Some((Wait::Notice, _)));
        let is_deletion = event.announcement.kind == EventKind::Terminate;
        let condition = match work.plan.parts.iter().filter(|part| part.announcement.is_some()).count() {
            // Deletions wait for each other.
            1 if event.is_approved() && is_deletion => {
                "the other Terminate events of its tenant are approved"
            }
            1 if is_deletion && waits_for_deletions => {
                "its tenant approves this one and its other Terminate events"
            }
            1 => "its tenant approves",
            _ => "all its tenants approve",
        };
        match after {
            Some((Wait::Held(Hold::Window { .. }), held)) => format!(
                "as soon as {condition}, it is {held}; without approval it starts at NotBefore, {not_before}"
            ),
            Some((Wait::Held(_), held)) => format!(
                "it is due as soon as {condition}, and at NotBefore, {not_before}, at the latest; \
                 as it stands now, it is then {held}"
            ),
            Some((Wait::Notice | Wait::Wall | Wait::Nothing | Wait::Offered { .. }, _)) | None => {
                format!("it starts as soon as {condition}, and at NotBefore, {not_before}, at the latest")
            }
        }
    }

    /// The cluster after all tenants of some work have approved it.
    fn approve_on_copy(&self, work: &Maintenance) -> Cluster {
        let mut copy = self.cluster.clone();
        for part in &work.plan.parts {
            let Some(announcement) = &part.announcement else { continue };
            let (tenant, events, by) = (part.tenant, vec![announcement.id], Approver::Owner);
            self.try_on(&mut copy, &Command::Approve { tenant, events, by });
        }
        let is_due = |copy: &Cluster| {
            let wait = copy.maintenance(work.plan.id).and_then(Maintenance::wait);
            matches!(wait, Some(Wait::Nothing | Wait::Offered { .. }))
        };
        for _ in 0..TICKS_MAX {
            if !is_due(&copy) {
                break;
            }
            self.try_on(&mut copy, &Command::Tick);
        }
        copy
    }

    /// Applies a command; a rejected one changes nothing.
    fn try_on(&self, copy: &mut Cluster, command: &Command) {
        for change in copy.decide(self.now, command).unwrap_or_default() {
            copy.evolve(self.now, &change);
        }
    }
}
