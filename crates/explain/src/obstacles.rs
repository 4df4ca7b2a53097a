//! What keeps work from starting, or from ending.

use forewarn_control::view::wording::{few, progress};
use forewarn_lifecycle::{
    Brake, Cause, Event, EventKind, MachineId, Maintenance, Part, Phase, Stage, Tenant, TenantId, Wait,
};
use forewarn_types::Moment;

use crate::Scene;

/// The words before the reason why the driver program is asked again.
pub(crate) const AGAIN: &str = "the order has to be given again";

/// What is known of the work behind an event.
pub(crate) struct Behind<'a> {
    pub(crate) work: &'a Maintenance,
    /// Whose event it is.
    pub(crate) tenant: TenantId,
    pub(crate) event: &'a Event,
}

impl Scene<'_> {
    /// What keeps an event from starting, or from ending.
    pub(crate) fn blockers(&self, behind: &Behind<'_>) -> Vec<String> {
        let Behind { work, tenant, event } = behind;
        let wait = match &work.stage {
            Stage::Running { .. } => return self.troubles_of(work),
            Stage::Waiting(wait) => *wait,
        };
        let mut all = Vec::new();
        if self.cluster.brake() == Brake::On && !matches!(work.plan.cause, Cause::FailedHost { .. }) {
            all.push("the brake is on: nothing starts until `forewarn brake off`".to_owned());
        }
        match wait {
            Wait::Held(hold) if hold != forewarn_lifecycle::Hold::Brake => all.push(progress(work)),
            Wait::Wall => all.push("the wall clock was set back, and has to come to NotBefore".to_owned()),
            Wait::Held(_) | Wait::Notice | Wait::Nothing => {}
        }
        if wait == Wait::Notice && self.now.wall >= work.plan.not_before {
            let end = Moment(self.now.wall.plus(work.plan.steady_due.since(self.now.steady)));
            all.push(format!("its notice is not over: it lasts until {end}"));
        }
        if wait == Wait::Notice || self.now.wall < work.plan.not_before {
            all.extend(self.silent(work, *tenant));
            all.extend(self.other_ends(*tenant, event));
        }
        all
    }

    /// Tenants of the same work that have not approved.
    fn silent(&self, work: &Maintenance, own: TenantId) -> Vec<String> {
        let is_silent = |part: &&Part| {
            let event = part.announcement.as_ref().and_then(|told| self.cluster.event(told.id));
            event.is_some_and(|(_, event)| event.is_unapproved())
        };
        let silent = work.plan.parts.iter().filter(is_silent).map(|part| part.tenant);
        let (seen, unseen): (Vec<_>, Vec<_>) =
            silent.partition(|tenant| *tenant == own || (self.onlooker.sees)(*tenant));
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
    fn other_ends(&self, tenant: TenantId, event: &Event) -> Option<String> {
        if event.announcement.kind != EventKind::Terminate {
            return None;
        }
        let all = self.cluster.tenant(tenant).map_or(&[][..], Tenant::events);
        let is_other_end = |other: &&Event| {
            other.id() != event.id()
                && other.announcement.kind == EventKind::Terminate
                && other.is_unapproved()
        };
        let others: Vec<_> = all.iter().filter(is_other_end).map(|other| other.id().to_string()).collect();
        (!others.is_empty())
            .then(|| format!("other Terminate events of the tenant are not approved: {}", few(&others)))
    }

    /// Why programs have to be ordered again.
    fn troubles_of(&self, work: &Maintenance) -> Vec<String> {
        let id = work.plan.id;
        let of_work = self.troubles.range((id, MachineId(0))..=(id, MachineId(u32::MAX)));
        let seen = of_work.filter_map(|((_, machine), trouble)| {
            let machine = self.cluster.machine(*machine)?;
            let is_seen = (self.onlooker.sees)(machine.tenant);
            is_seen.then(|| format!("{}: {AGAIN}: {trouble}", machine.name))
        });
        seen.collect()
    }

    /// What happens next, and when.
    pub(crate) fn next(&self, behind: &Behind<'_>) -> Vec<String> {
        let Behind { work, event, .. } = behind;
        let not_before = match &event.phase {
            Phase::Started { .. } => {
                let left = work.actions().count();
                let machines =
                    if left == 1 { "1 machine is".to_owned() } else { format!("{left} machines are") };
                return vec![format!("{machines} being worked on; with the last one the event goes")];
            }
            Phase::Scheduled { not_before, .. } => Moment(*not_before),
        };
        let parts = work.plan.parts.iter().filter(|part| part.announcement.is_some()).count();
        let whose = match parts {
            // Deletions wait for each other.
            1 if event.is_approved() && event.announcement.kind == EventKind::Terminate => {
                "the other Terminate events of its tenant are approved"
            }
            1 => "its tenant approves",
            _ => "all its tenants approve",
        };
        let is_late = self.now.wall >= work.plan.not_before;
        let starts = match work.wait() {
            Some(Wait::Held(_)) => {
                "it starts as soon as nothing holds it any more: late, never lost".to_owned()
            }
            Some(Wait::Nothing) => "it starts at once".to_owned(),
            Some(Wait::Notice | Wait::Wall) | None if is_late => {
                "it starts as soon as nothing holds it any more: late, never lost".to_owned()
            }
            Some(Wait::Notice | Wait::Wall) | None => {
                format!("it starts as soon as {whose}, and at NotBefore, {not_before}, at the latest")
            }
        };
        vec![starts]
    }
}
