//! Obstacles to the start or the completion of work.

use forewarn_control::view::describe::{join_names, progress};
use forewarn_lifecycle::{
    Brake, Cause, Event, EventKind, Hold, Maintenance, Part, Phase, Stage, Target, Tenant, TenantId, Wait,
};
use forewarn_types::Moment;

use crate::ExplanationContext;

/// Introduces the error of a driver program whose action is retried.
pub(crate) const RETRIED: &str = "the action is retried";

/// An event with the work behind it.
pub(crate) struct EventWork<'a> {
    pub(crate) work: &'a Maintenance,
    /// Tenant of the event.
    pub(crate) tenant: TenantId,
    pub(crate) event: &'a Event,
}

impl ExplanationContext<'_> {
    /// Obstacles to the start of an event, or to its completion.
    pub(crate) fn blockers(&self, event_work: &EventWork<'_>) -> Vec<String> {
        let EventWork { work, tenant, event } = event_work;
        let wait = match &work.stage {
            Stage::Running { .. } => return self.obstacles_to_completion(work, *tenant),
            Stage::Waiting(wait) => *wait,
        };
        let mut all = self.mode_progress(&work.plan.cause);
        if self.cluster.brake() == Brake::On && !matches!(work.plan.cause, Cause::FailedHost { .. }) {
            all.push("the brake is on: nothing starts until `forewarn brake off`".to_owned());
        }
        match wait {
            Wait::Held(Hold::NoHost) => {
                let lack = self.cluster.lack_of_room(&work.plan).filter(|_| !self.viewer.is_limited);
                let lack = lack.map(|lack| format!(": {lack}")).unwrap_or_default();
                all.push(format!("{}{lack}", progress(work)));
            }
            Wait::Held(Hold::Fencing) => {
                all.push(progress(work));
                all.extend(self.awaited_fences(work));
            }
            Wait::Held(hold) if hold != Hold::Brake => {
                all.push(progress(work));
                all.extend(self.closed_windows(work, *tenant));
            }
            Wait::Wall => all.push("the wall clock was set back and must reach NotBefore".to_owned()),
            Wait::Held(_) | Wait::Notice | Wait::Nothing | Wait::Offered { .. } => {}
        }
        if wait == Wait::Notice && self.now.wall >= work.plan.not_before {
            let end = Moment(self.now.wall.plus(work.plan.steady_due.since(self.now.steady)));
            all.push(format!("its notice has not ended: it lasts until {end}"));
        }
        if wait == Wait::Notice || self.now.wall < work.plan.not_before {
            all.extend(self.missing_approvals(work, *tenant));
            all.extend(self.unapproved_deletions(*tenant, event));
        }
        all
    }

    /// Tenants of the same work that have not approved.
    fn missing_approvals(&self, work: &Maintenance, own: TenantId) -> Vec<String> {
        let is_missing = |part: &&Part| {
            let event =
                part.announcement.as_ref().and_then(|announcement| self.cluster.event(announcement.id));
            event.is_some_and(|(_, event)| event.is_unapproved())
        };
        let missing_approvals = work.plan.parts.iter().filter(is_missing).map(|part| part.tenant);
        let (seen, unseen): (Vec<_>, Vec<_>) =
            missing_approvals.partition(|tenant| *tenant == own || (self.viewer.may_see)(*tenant));
        let name = |tenant: TenantId| self.cluster.tenant(tenant).map(|tenant| tenant.name.to_string());
        let mut all: Vec<_> = seen
            .into_iter()
            .filter_map(|tenant| {
                let other = if tenant == own { "" } else { ", whose machines are part of the same work" };
                Some(format!("tenant {} has not approved{other}", name(tenant)?))
            })
            .collect();
        match unseen.len() {
            0 => {}
            1 => all.push("another tenant, part of the same work, has not approved".to_owned()),
            several => {
                all.push(format!("{several} other tenants, part of the same work, have not approved"));
            }
        }
        all
    }

    /// Deletions of the same tenant that wait for approval: approved ones wait for them.
    fn unapproved_deletions(&self, tenant: TenantId, event: &Event) -> Option<String> {
        if event.announcement.kind != EventKind::Terminate {
            return None;
        }
        let all = self.cluster.tenant(tenant).map_or(&[][..], Tenant::events);
        let is_unapproved_deletion = |other: &&Event| {
            other.id() != event.id()
                && other.announcement.kind == EventKind::Terminate
                && other.is_unapproved()
        };
        let others: Vec<_> =
            all.iter().filter(is_unapproved_deletion).map(|other| other.id().to_string()).collect();
        (!others.is_empty()).then(|| {
            format!("other Terminate events of the tenant are not approved: {}", join_names(&others))
        })
    }

    /// Fences and steps of hosts that are waited for, and errors of driver programs whose actions are retried.
    fn obstacles_to_completion(&self, work: &Maintenance, tenant: TenantId) -> Vec<String> {
        let id = work.plan.id;
        let of_work = self.driver_errors.range((id, Target::FIRST)..=(id, Target::LAST));
        let seen = of_work.filter_map(|((_, target), error)| match target {
            Target::Machine(machine) | Target::Returning(machine) => {
                let machine = self.cluster.machine(*machine)?;
                let is_seen = (self.viewer.may_see)(machine.tenant);
                is_seen.then(|| format!("{}: {RETRIED}: {error}", machine.name))
            }
            Target::Host(host) => {
                let host = self.cluster.host(*host)?;
                (!self.viewer.is_limited).then(|| format!("{}: {RETRIED}: {error}", host.name))
            }
        });
        let mode = self.mode_progress(&work.plan.cause).into_iter();
        let barred = self.barred_moves(work).into_iter();
        mode.chain(barred).chain(self.awaited_steps(work, tenant)).chain(seen).collect()
    }

    /// Next steps, with times.
    pub(crate) fn next(&self, event_work: &EventWork<'_>) -> Vec<String> {
        let EventWork { work, event, .. } = event_work;
        let not_before = match &event.phase {
            Phase::Started { .. } if self.has_awaited_steps(work) && returns_after_step(work) => {
                let returns = "its machines return after the work on their hosts; the event completes with the last one";
                return vec![returns.to_owned()];
            }
            Phase::Started { .. } => {
                let left = work.actions().count();
                let machines =
                    if left == 1 { "1 machine is".to_owned() } else { format!("{left} machines are") };
                return vec![format!("{machines} being worked on; the event completes with the last one")];
            }
            Phase::Scheduled { not_before, .. } => Moment(*not_before),
        };
        let is_late = self.now.wall >= work.plan.not_before;
        let starts = match work.wait() {
            Some(Wait::Held(_)) => {
                "it starts as soon as nothing holds it any more: late, but not skipped".to_owned()
            }
            Some(Wait::Nothing | Wait::Offered { .. }) => "it starts at once".to_owned(),
            Some(Wait::Notice | Wait::Wall) | None if is_late => {
                "it starts as soon as nothing holds it any more: late, but not skipped".to_owned()
            }
            Some(Wait::Notice | Wait::Wall) | None => self.start_conditions(work, event, not_before),
        };
        vec![starts]
    }
}

/// Returns true if machines return after the steps on their hosts, and have not left them.
fn returns_after_step(work: &Maintenance) -> bool {
    work.plan.cause.host_task().is_some_and(|task| task.aside().is_some())
}
