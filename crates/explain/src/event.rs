//! Why there is an event, how it stands, and what becomes of it.

use forewarn_control::view::wording::{cause, few};
use forewarn_control::{AuditEntry, FAILURES_MAX, FailureView, event_view, full_name};
use forewarn_lifecycle::{Approver, Event, EventId, EventKind, Phase, Stage, TenantId};
use forewarn_types::Moment;

use crate::obstacles::Behind;
use crate::{
    ApprovalView, EventExplanation, FateView, PollView, RefusedView, Resource, Scene, notification, words,
};

/// Explains an event of which the trail or the cluster knows; nothing, if neither does.
#[must_use]
pub fn explain_event(scene: &Scene<'_>, id: &str) -> Option<EventExplanation> {
    let visible = EventId::parse(id).and_then(|id| scene.cluster.event(id));
    match visible {
        Some((tenant, event)) => Some(scene.visible(tenant, event)),
        None if scene.chronicle.is_empty() => None,
        None => Some(scene.over(id)),
    }
}

impl Scene<'_> {
    fn visible(&self, tenant: TenantId, event: &Event) -> EventExplanation {
        let view = event_view(self.cluster, tenant, event);
        let announced = self.announced();
        let work = self.cluster.maintenance(event.maintenance);
        let behind = work.map(|work| Behind { work, tenant, event });
        let polls = self.polls_of(tenant, announced.map(|entry| entry.number));
        let not_before = work.map(|work| Moment(work.plan.not_before));
        let refused = self.refused_beside(tenant, event);
        EventExplanation {
            id: view.id.clone(),
            cluster: self.name.to_owned(),
            tenant: view.tenant.clone(),
            now: Moment(self.now.wall),
            status: view.status.clone(),
            summary: format!("{} of {}: {}", view.kind, few(&view.resources), view.progress),
            why: self.why(event, announced),
            asked: announced.and_then(|entry| self.asked_for(entry)),
            announced: announced.map(|entry| entry.at),
            not_before: view.not_before.or(not_before),
            approvals: self.approvals(tenant, event),
            blockers: behind.as_ref().map(|behind| self.blockers(behind)).unwrap_or_default(),
            next: behind.as_ref().map(|behind| self.next(behind)).unwrap_or_default(),
            machines: behind.as_ref().map(|behind| self.fates(behind)).unwrap_or_default(),
            failures: self.failures(),
            hints: self.hints(tenant, event, &polls, &refused),
            event: Some(view),
            polls,
            refused,
            history: self.chronicle.entries().map(|entry| self.step(entry)).collect(),
        }
    }

    /// What the trail alone can tell.
    fn over(&self, id: &str) -> EventExplanation {
        let announced = self.announced();
        let known = |entry: &&AuditEntry| (self.onlooker.knows)(entry);
        let last_of = |kind: &str| self.chronicle.entries().rev().find(|entry| entry.kind == kind);
        let (status, end) = match (last_of("withdrawn"), last_of("completed")) {
            (_, Some(end)) => ("Completed", Some(end)),
            (Some(end), None) => ("Withdrawn", Some(end)),
            (None, None) => ("Completed", None),
        };
        let told = announced.filter(known);
        let not_before = told.and_then(|entry| entry.text.rsplit_once(", not before ")?.1.parse().ok());
        let why = told.map_or_else(|| "that is not known any more".to_owned(), |entry| reason(&entry.text));
        let summary = match end.filter(known) {
            Some(end) => format!("It is over: {}", end.text),
            None => "It is over".to_owned(),
        };
        EventExplanation {
            id: id.to_owned(),
            cluster: self.name.to_owned(),
            tenant: self.tenant_of(id),
            now: Moment(self.now.wall),
            status: status.to_owned(),
            summary,
            why,
            asked: announced.and_then(|entry| self.asked_for(entry)),
            announced: announced.map(|entry| entry.at),
            not_before,
            event: None,
            polls: Vec::new(),
            approvals: self.approvals_told(),
            blockers: Vec::new(),
            next: Vec::new(),
            machines: Vec::new(),
            refused: Vec::new(),
            failures: self.failures(),
            hints: Vec::new(),
            history: self.chronicle.entries().map(|entry| self.step(entry)).collect(),
        }
    }

    /// The machines for which the event has failed, by what the trail tells.
    fn failures(&self) -> Vec<FailureView> {
        let known = self.chronicle.entries().filter(|entry| (self.onlooker.knows)(entry));
        let failures = known.filter_map(|entry| {
            let (machine, reason) = (entry.machines.first()?.clone(), entry.reason.clone()?);
            Some(FailureView { machine, reason })
        });
        failures.take(FAILURES_MAX).collect()
    }

    /// The entry with which the event appeared.
    fn announced(&self) -> Option<&AuditEntry> {
        self.chronicle.entries().find(|entry| entry.kind == "announced")
    }

    fn asked_for(&self, announced: &AuditEntry) -> Option<crate::AskedView> {
        let command = self.chronicle.asked(announced).or_else(|| self.chronicle.origin(announced))?;
        Some(self.asked_view(command))
    }

    fn why(&self, event: &Event, announced: Option<&AuditEntry>) -> String {
        let Some(work) = self.cluster.maintenance(event.maintenance) else {
            return announced.map(|entry| reason(&entry.text)).unwrap_or_default();
        };
        let why = cause(self.cluster, &work.plan.cause);
        match work.plan.cause.rollout() {
            Some(id) => match self.cluster.rollout(id) {
                Some(rollout) => format!("{why}: step {} of rollout {id}", rollout.groups + 1),
                None => format!("{why}: a step of rollout {id}"),
            },
            None => why,
        }
    }

    /// Whose an event was that is over: what concerns one tenant alone says it best.
    fn tenant_of(&self, id: &str) -> String {
        let alone = self.chronicle.entries().find(|entry| entry.tenants.len() == 1);
        let beside = |entry: &AuditEntry| {
            let place = entry.events.iter().position(|event| event == id)?;
            entry.tenants.get(place).filter(|_| entry.tenants.len() == entry.events.len()).cloned()
        };
        let alone = alone.and_then(|entry| entry.tenants.first().cloned());
        alone.or_else(|| self.chronicle.entries().find_map(beside)).unwrap_or_default()
    }

    /// When the machines of a tenant last asked; those that were shown the event first, then by name.
    fn polls_of(&self, tenant: TenantId, announced: Option<u64>) -> Vec<PollView> {
        let machines = self.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
        machines.iter().filter_map(|machine| self.poll_view(*machine, announced)).collect()
    }

    /// Who of the work has approved, as far as that is to be known.
    fn approvals(&self, own: TenantId, event: &Event) -> Vec<ApprovalView> {
        let mut all = self.approvals_told();
        let work = self.cluster.maintenance(event.maintenance);
        for part in work.into_iter().flat_map(|work| &work.plan.parts) {
            let is_new = part.tenant != own || all.is_empty();
            if !is_new || !(self.onlooker.sees)(part.tenant) {
                continue;
            }
            let event = part.announcement.as_ref().and_then(|told| self.cluster.event(told.id));
            let phase = event.map(|(_, event)| &event.phase);
            if let Some(Phase::Scheduled { approval: Some(approval), .. }) = phase {
                let tenant = self.cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string());
                let by = match approval.by {
                    Approver::Machine(machine) => format!("machine {}", full_name(self.cluster, machine)),
                    Approver::Owner => "its owner".to_owned(),
                };
                let tenant = tenant.unwrap_or_default();
                all.push(ApprovalView { tenant, by, at: Moment(approval.at) });
            }
        }
        all
    }

    /// The approvals of the event that the trail tells of, with who it really was.
    fn approvals_told(&self) -> Vec<ApprovalView> {
        let told = self.chronicle.entries().filter(|entry| entry.kind == "approved");
        let view = |entry: &AuditEntry| {
            let by = match self.chronicle.asked(entry) {
                Some(command) => self.asked_view(command).by,
                None => entry.by.clone(),
            };
            ApprovalView { tenant: entry.tenants.first().cloned().unwrap_or_default(), by, at: entry.at }
        };
        told.filter(|entry| (self.onlooker.knows)(entry)).map(view).collect()
    }

    /// What is done to each machine of the event.
    fn fates(&self, behind: &Behind<'_>) -> Vec<FateView> {
        let Behind { work, tenant, .. } = behind;
        let machines = work.plan.part(*tenant).map_or(&[][..], |part| &part.machines);
        let fate = words::fate(&work.plan.cause);
        let fates = machines.iter().filter_map(|id| {
            let machine = self.cluster.machine(*id)?.name.to_string();
            let text = match (&work.stage, work.action(*id)) {
                (Stage::Running { .. }, None) => "is done with".to_owned(),
                (Stage::Running { .. }, Some(action)) => {
                    let going = words::going(self.cluster, action.impact);
                    format!("{fate}{}", going.unwrap_or_default())
                }
                (Stage::Waiting(_), _) => fate.clone(),
            };
            Some(FateView { machine, text })
        });
        fates.collect()
    }

    /// What is unusual about who knows of the event, and about how it came to be.
    fn hints(
        &self,
        tenant: TenantId,
        event: &Event,
        polls: &[PollView],
        refused: &[RefusedView],
    ) -> Vec<String> {
        let mut all = Vec::new();
        let what = event.announcement.kind;
        let name = self.cluster.tenant(tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default();
        if event.is_unapproved() && polls.iter().all(|poll| !poll.shown) {
            let mut hint =
                format!("no machine of {name} has asked since this was announced: nobody there knows of it");
            if polls.iter().all(|poll| poll.last.is_none()) {
                hint.push_str("; none has asked since the server started");
            }
            all.push(hint);
        }
        all.extend(notification::blind(polls, what));
        // How long the notice of anything else is, no model says.
        if what == EventKind::Terminate {
            let work = self.cluster.maintenance(event.maintenance);
            all.extend(self.older_models(work.into_iter().flat_map(|work| work.plan.machines())));
        }
        all.extend(notification::causes(refused));
        all
    }

    /// What was refused of the resources that an event is about: of the scale set, and of a machine that is alone in it.
    fn refused_beside(&self, tenant: TenantId, event: &Event) -> Vec<RefusedView> {
        let set = self.cluster.tenant(tenant).and_then(notification::set_of);
        let part = self.cluster.maintenance(event.maintenance).and_then(|work| work.plan.part(tenant));
        let machine = match part.map(|part| part.machines.as_slice()) {
            Some([machine]) => Some(Resource::Machine(*machine)),
            Some(_) | None => None,
        };
        self.refused(set.into_iter().chain(machine))
    }
}

/// Why something was announced, by the text of its announcement: `Reboot of web_0 (restart by the owner) is announced, …`.
fn reason(text: &str) -> String {
    let inside = text.split_once(" (").and_then(|(_, rest)| rest.rsplit_once(") is announced"));
    inside.map_or_else(|| text.to_owned(), |(inside, _)| inside.to_owned())
}
