//! Explanation of an event: cause, state, and next steps.

use forewarn_control::view::describe::{cause, join_names};
use forewarn_control::{AuditEntry, FAILURES_MAX, FailureView, event_view, full_name};
use forewarn_lifecycle::{Approver, Event, EventId, EventKind, Phase, Stage, TenantId};
use forewarn_types::Moment;

use crate::obstacles::EventWork;
use crate::{
    ApprovalView, EventExplanation, ExplanationContext, ImpactView, PollView, RefusedView, Resource, impact,
    notification,
};

/// Explains an event. None if neither the cluster nor the audit log has it.
#[must_use]
pub fn explain_event(context: &ExplanationContext<'_>, id: &str) -> Option<EventExplanation> {
    let visible = EventId::parse(id).and_then(|id| context.cluster.event(id));
    match visible {
        Some((tenant, event)) => Some(context.visible(tenant, event)),
        None if context.history.is_empty() => None,
        None => Some(context.ended(id)),
    }
}

impl ExplanationContext<'_> {
    fn visible(&self, tenant: TenantId, event: &Event) -> EventExplanation {
        let view = event_view(self.cluster, tenant, event, self.viewer.may_see);
        let announced = self.announced();
        let work = self.cluster.maintenance(event.maintenance);
        let event_work = work.map(|work| EventWork { work, tenant, event });
        let polls = self.polls_of(tenant, announced.map(|entry| entry.number));
        let not_before = work.map(|work| Moment(work.plan.not_before));
        let refused = self.refused_beside(tenant, event);
        EventExplanation {
            id: view.id.clone(),
            cluster: self.name.to_owned(),
            tenant: view.tenant.clone(),
            now: Moment(self.now.wall),
            status: view.status.clone(),
            summary: format!("{} of {}: {}", view.kind, join_names(&view.resources), view.progress),
            why: self.why(event, announced),
            request: announced.and_then(|entry| self.request_for(entry)),
            announced: announced.map(|entry| entry.at),
            not_before: view.not_before.or(not_before),
            approvals: self.approvals(tenant, event),
            blockers: event_work.as_ref().map(|event_work| self.blockers(event_work)).unwrap_or_default(),
            next: event_work.as_ref().map(|event_work| self.next(event_work)).unwrap_or_default(),
            machines: event_work.as_ref().map(|event_work| self.impacts(event_work)).unwrap_or_default(),
            failures: self.failures(),
            hints: self.hints(tenant, event, &polls, &refused),
            event: Some(view),
            polls,
            refused,
            history: self.history.entries().map(|entry| self.step(entry)).collect(),
        }
    }

    /// An event that has ended: only the audit log has it.
    fn ended(&self, id: &str) -> EventExplanation {
        let announced = self.announced();
        let known = |entry: &&AuditEntry| (self.viewer.may_read)(entry);
        let last_of = |kind: &str| self.history.entries().rev().find(|entry| entry.kind == kind);
        let (status, end) = match (last_of("withdrawn"), last_of("completed")) {
            (_, Some(end)) => ("Completed", Some(end)),
            (Some(end), None) => ("Withdrawn", Some(end)),
            (None, None) => ("Completed", None),
        };
        let entry = announced.filter(known);
        let not_before = entry.and_then(|entry| entry.text.rsplit_once(", not before ")?.1.parse().ok());
        let why = entry.map_or_else(
            || "unknown: its audit entry is no longer stored".to_owned(),
            |entry| reason(&entry.text),
        );
        let summary = match end.filter(known) {
            Some(end) => format!("Ended: {}", end.text),
            None => "Ended".to_owned(),
        };
        EventExplanation {
            id: id.to_owned(),
            cluster: self.name.to_owned(),
            tenant: self.tenant_of(id),
            now: Moment(self.now.wall),
            status: status.to_owned(),
            summary,
            why,
            request: announced.and_then(|entry| self.request_for(entry)),
            announced: announced.map(|entry| entry.at),
            not_before,
            event: None,
            polls: Vec::new(),
            approvals: self.audited_approvals(),
            blockers: Vec::new(),
            next: Vec::new(),
            machines: Vec::new(),
            refused: Vec::new(),
            failures: self.failures(),
            hints: Vec::new(),
            history: self.history.entries().map(|entry| self.step(entry)).collect(),
        }
    }

    /// The machines for which the event has failed, by the audit log.
    fn failures(&self) -> Vec<FailureView> {
        let known = self.history.entries().filter(|entry| (self.viewer.may_read)(entry));
        let failures = known.filter_map(|entry| {
            let (machine, reason) = (entry.machines.first()?.clone(), entry.reason.clone()?);
            Some(FailureView { machine, reason })
        });
        failures.take(FAILURES_MAX).collect()
    }

    /// The audit entry of the announcement.
    fn announced(&self) -> Option<&AuditEntry> {
        self.history.entries().find(|entry| entry.kind == "announced")
    }

    fn request_for(&self, announced: &AuditEntry) -> Option<crate::RequestView> {
        let command = self.history.request(announced).or_else(|| self.history.origin(announced))?;
        Some(self.request_view(command))
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

    /// Tenant of an event that has ended. An entry about one tenant alone is the best source.
    fn tenant_of(&self, id: &str) -> String {
        let alone = self.history.entries().find(|entry| entry.tenants.len() == 1);
        let beside = |entry: &AuditEntry| {
            let place = entry.events.iter().position(|event| event == id)?;
            entry.tenants.get(place).filter(|_| entry.tenants.len() == entry.events.len()).cloned()
        };
        let alone = alone.and_then(|entry| entry.tenants.first().cloned());
        alone.or_else(|| self.history.entries().find_map(beside)).unwrap_or_default()
    }

    /// Last polls of the machines of a tenant.
    fn polls_of(&self, tenant: TenantId, announced: Option<u64>) -> Vec<PollView> {
        let machines = self.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
        machines.iter().filter_map(|machine| self.poll_view(*machine, announced)).collect()
    }

    /// Approvals of the work that the viewer may see.
    fn approvals(&self, own: TenantId, event: &Event) -> Vec<ApprovalView> {
        let mut all = self.audited_approvals();
        let work = self.cluster.maintenance(event.maintenance);
        for part in work.into_iter().flat_map(|work| &work.plan.parts) {
            let is_new = part.tenant != own || all.is_empty();
            if !is_new || !(self.viewer.may_see)(part.tenant) {
                continue;
            }
            let event =
                part.announcement.as_ref().and_then(|announcement| self.cluster.event(announcement.id));
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

    /// Approvals in the audit log, with the callers that sent them.
    fn audited_approvals(&self) -> Vec<ApprovalView> {
        let entry = self.history.entries().filter(|entry| entry.kind == "approved");
        let view = |entry: &AuditEntry| {
            let by = match self.history.request(entry) {
                Some(command) => self.request_view(command).by,
                None => entry.by.clone(),
            };
            ApprovalView { tenant: entry.tenants.first().cloned().unwrap_or_default(), by, at: entry.at }
        };
        entry.filter(|entry| (self.viewer.may_read)(entry)).map(view).collect()
    }

    /// Impact on each machine of the event.
    fn impacts(&self, event_work: &EventWork<'_>) -> Vec<ImpactView> {
        let EventWork { work, tenant, .. } = event_work;
        let machines = work.plan.part(*tenant).map_or(&[][..], |part| &part.machines);
        let fate = impact::describe(&work.plan.cause);
        let impacts = machines.iter().filter_map(|id| {
            let known = self.cluster.machine(*id)?;
            let machine = known.name.to_string();
            let text = match (&work.stage, work.action(*id)) {
                (Stage::Running { .. }, None) if work.is_aside(*id, known.host) => {
                    "has stepped aside for the work on its host, and returns afterwards".to_owned()
                }
                (Stage::Running { .. }, None) => "is completed".to_owned(),
                (Stage::Running { .. }, Some(action)) => {
                    let going = impact::destination(self.cluster, action.impact);
                    format!("{fate}{}", going.unwrap_or_default())
                }
                (Stage::Waiting(_), _) => fate.clone(),
            };
            Some(ImpactView { machine, text })
        });
        impacts.collect()
    }

    /// Hints about machines that have not seen the event, and about its notice.
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
            let mut hint = format!(
                "no machine of {name} has polled since this was announced: none of them has seen the event"
            );
            if polls.iter().all(|poll| poll.last.is_none()) {
                hint.push_str("; none has polled since the server started");
            }
            all.push(hint);
        }
        all.extend(notification::outdated_versions(polls, what));
        // Models have a notice for Terminate events only.
        if what == EventKind::Terminate {
            let work = self.cluster.maintenance(event.maintenance);
            all.extend(self.older_models(work.into_iter().flat_map(|work| work.plan.machines())));
        }
        all.extend(notification::causes(refused));
        all
    }

    /// Refused requests about the scale set of an event, and about its machine if it has only one.
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

/// Cause in the text of an announcement: `Reboot of web_0 (restart by the owner) is announced, …`.
fn reason(text: &str) -> String {
    let inside = text.split_once(" (").and_then(|(_, rest)| rest.rsplit_once(") is announced"));
    inside.map_or_else(|| text.to_owned(), |(inside, _)| inside.to_owned())
}
