//! Conditions on tenants and events: checked once, then again for each entry of the audit log that may change them.

use anyhow::Result;
use forewarn_control::{AuditEntry, EventView, MachineView, TenantView};

use super::super::session::{Session, escaped};
use super::super::{enrolment_hint, sentences};
use super::approval::ApprovalCondition;
use super::log;
use super::machine_name::machine;
use super::met::Met;
use crate::event_pattern::EventPattern;

/// Something to wait for.
#[derive(Debug)]
pub(super) enum Condition {
    Enrolled {
        /// The tenant or the machine, as the caller wrote it.
        name: String,
        tenant: String,
    },
    Event(EventCondition),
    Approved(ApprovalCondition),
}

/// An announced event.
#[derive(Debug)]
pub(super) struct EventCondition {
    pattern: EventPattern,
    /// The machine of the pattern: tenant and name.
    machine: Option<(String, String)>,
    /// Ids of events that were announced in the entries so far.
    announced: Vec<String>,
}

/// Events that a message names.
const NAMED_MAX: usize = 3;

impl Condition {
    pub(super) fn enrolled(session: &Session, name: &str) -> Result<Self> {
        let tenant = match session.find::<TenantView>(&format!("/v1/tenants/{}", escaped(name)))? {
            Some(tenant) => tenant.name,
            None => session.get::<MachineView>(&format!("/v1/machines/{}", escaped(name)))?.tenant,
        };
        Ok(Self::Enrolled { name: name.to_owned(), tenant })
    }

    pub(super) fn event(session: &Session, pattern: &EventPattern) -> Result<Self> {
        let machine = pattern.machine.as_ref().map(|name| machine(session, name)).transpose()?;
        Ok(Self::Event(EventCondition { pattern: pattern.clone(), machine, announced: Vec::new() }))
    }

    pub(super) fn approved(session: &Session, name: &str) -> Result<Self> {
        Ok(Self::Approved(ApprovalCondition::new(session, name)?))
    }

    /// Checks the condition before the first entry of the stream. `since` is the entry after which events and approvals
    /// count.
    pub(super) fn check(&mut self, session: &Session, since: Option<u64>) -> Result<Option<Met>> {
        match (self, since) {
            (Self::Enrolled { name, tenant }, _) => enrolment(session, name, tenant),
            (Self::Event(event), None) => event.visible(session),
            (Self::Approved(approval), None) => approval.check(session),
            (Self::Event(event), Some(since)) => {
                Ok(log::since(session, since)?.iter().find_map(|entry| event.observe(entry)))
            }
            (Self::Approved(approval), Some(since)) => approval.check_since(session, since),
        }
    }

    /// Returns true if the condition may hold because of the entry.
    pub(super) fn depends_on(&self, entry: &AuditEntry) -> bool {
        match self {
            // A change of the settings may enrol every tenant.
            Self::Enrolled { tenant, .. } => entry.tenants.contains(tenant) || entry.kind == "changed",
            Self::Event(_) => !entry.events.is_empty(),
            Self::Approved(approval) => approval.is_met_by(entry),
        }
    }

    /// Checks the condition again after an entry of the stream.
    pub(super) fn observe(&mut self, session: &Session, entry: &AuditEntry) -> Result<Option<Met>> {
        match self {
            Self::Enrolled { name, tenant } => enrolment(session, name, tenant),
            Self::Event(event) => Ok(event.observe(entry)),
            Self::Approved(approval) => Ok(approval.observe(entry)),
        }
    }

    /// What was observed instead.
    pub(super) fn observed(&self, session: &Session) -> Result<String> {
        match self {
            Self::Enrolled { name, tenant } => {
                let mut text = format!(
                    "{tenant} is not enrolled: none of its machines has polled for events in the last 24 hours"
                );
                for hint in enrolment_hint::texts(session, std::slice::from_ref(tenant), Some(name))? {
                    text.push_str(&format!("\n  hint: {hint}"));
                }
                Ok(text)
            }
            Self::Event(event) => event.observed(session),
            Self::Approved(approval) => approval.observed(session),
        }
    }
}

fn enrolment(session: &Session, name: &str, tenant: &str) -> Result<Option<Met>> {
    let view: TenantView = session.get(&format!("/v1/tenants/{}", escaped(tenant)))?;
    let how = if view.enrolled_by_setting { " by setting" } else { "" };
    Ok(view.enrolled.then(|| Met {
        name: Some(name.to_owned()),
        tenant: Some(tenant.to_owned()),
        ..Met::plain("enrolled", format!("{tenant} is enrolled{how}"))
    }))
}

impl EventCondition {
    /// The visible event that fits.
    fn visible(&self, session: &Session) -> Result<Option<Met>> {
        let events: Vec<EventView> = session.all("/v1/events")?;
        let found = events.into_iter().find(|event| self.fits(&event.kind, &event.tenant, &event.resources));
        Ok(found.map(|event| {
            let state = match event.status.as_str() {
                "Started" => "has started",
                _ => "is announced",
            };
            let text = format!("{} {state} ({})", sentences::what(&event), event.id);
            self.met(&event.id, event.tenant, None, text)
        }))
    }

    fn fits(&self, kind: &str, tenant: &str, machines: &[String]) -> bool {
        let is_kind = self.pattern.kind.is_none_or(|wanted| wanted.as_str() == kind);
        is_kind && self.machine.as_ref().is_none_or(|(of, name)| of == tenant && machines.contains(name))
    }

    /// The event that was announced in this entry or an earlier one, and fits. An event that starts when it is announced
    /// has its description in the entry of its start.
    fn observe(&mut self, entry: &AuditEntry) -> Option<Met> {
        if entry.kind == "announced" {
            self.announced.extend(entry.events.iter().cloned());
        }
        let notice = entry.notices.iter().find(|notice| {
            self.announced.contains(&notice.event)
                && self.fits(&notice.kind, &notice.tenant, &notice.resources)
        })?;
        Some(self.met(&notice.event, notice.tenant.clone(), Some(entry.number), entry.text.clone()))
    }

    fn met(&self, event: &str, tenant: String, entry: Option<u64>, text: String) -> Met {
        let (name, tenant, event) = (Some(self.pattern.to_string()), Some(tenant), Some(event.to_owned()));
        Met { name, tenant, event, entry, ..Met::plain("event", text) }
    }

    fn observed(&self, session: &Session) -> Result<String> {
        let events: Vec<EventView> = session.all("/v1/events")?;
        let others: Vec<_> = events.iter().take(NAMED_MAX).map(sentences::what).collect();
        let instead = match others.as_slice() {
            [] => "there are no events".to_owned(),
            some => format!("announced or under way: {}", some.join(", ")),
        };
        Ok(format!(
            "no {} was announced; {instead}{}",
            self.pattern,
            unenrolled(session, self.machine.as_ref())?
        ))
    }
}

/// The hint for the tenant of a machine that is not enrolled; empty if it is.
fn unenrolled(session: &Session, machine: Option<&(String, String)>) -> Result<String> {
    let Some((tenant, name)) = machine else { return Ok(String::new()) };
    match session.find::<TenantView>(&format!("/v1/tenants/{}", escaped(tenant)))? {
        Some(TenantView { enrolled: false, .. }) => {
            let hints = enrolment_hint::texts(session, std::slice::from_ref(tenant), Some(name))?;
            let hints: String = hints.iter().map(|hint| format!("\n  hint: {hint}")).collect();
            Ok(format!("; {tenant} is not enrolled{hints}"))
        }
        Some(_) | None => Ok(String::new()),
    }
}
