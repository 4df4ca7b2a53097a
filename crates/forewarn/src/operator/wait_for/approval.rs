//! The condition that an event is approved. The audit log has every approval, also of an event that has started or
//! completed meanwhile.

use anyhow::Result;
use forewarn_control::{AuditEntry, EventView};

use super::super::event_id::EventIdPrefix;
use super::super::sentences;
use super::super::session::Session;
use super::log;
use super::machine_name::machine;
use super::met::Met;

/// An event, or a machine, whose approval is awaited.
#[derive(Debug)]
pub(super) struct ApprovalCondition {
    /// The event or the machine, as the caller wrote it.
    name: String,
    target: ApprovalTarget,
}

#[derive(Debug)]
enum ApprovalTarget {
    /// Id of an event.
    Event(String),
    /// A machine: tenant and name.
    Machine(String, String),
}

impl ApprovalCondition {
    /// An id of an event, or its beginning, is never the name of a machine that exists.
    pub(super) fn new(session: &Session, name: &str) -> Result<Self> {
        let target = match (machine(session, name), name.parse::<EventIdPrefix>()) {
            (Ok((tenant, name)), _) => ApprovalTarget::Machine(tenant, name),
            (Err(_), Ok(prefix)) => ApprovalTarget::Event(prefix.resolve_any(session)?),
            (Err(unknown), Err(_)) => return Err(unknown),
        };
        Ok(Self { name: name.to_owned(), target })
    }

    /// The approval of the event; or that of the latest event of the machine.
    pub(super) fn check(&self, session: &Session) -> Result<Option<Met>> {
        let approved = match &self.target {
            ApprovalTarget::Event(id) => log::newest(session, "approved", ("event", id))?,
            ApprovalTarget::Machine(tenant, name) => {
                let machine = format!("{tenant}/{name}");
                let newest = |kind| log::newest(session, kind, ("machine", &machine));
                match (newest("announced")?, newest("approved")?) {
                    (Some(announced), Some(approved)) => {
                        let is_latest = approved.events.iter().any(|id| announced.events.contains(id));
                        is_latest.then_some(approved)
                    }
                    (Some(_), None) | (None, _) => None,
                }
            }
        };
        Ok(approved.map(|entry| Met::approved(&self.name, &entry)))
    }

    /// The first approval after an entry.
    pub(super) fn check_since(&self, session: &Session, since: u64) -> Result<Option<Met>> {
        Ok(log::since(session, since)?.iter().find_map(|entry| self.observe(entry)))
    }

    pub(super) fn is_met_by(&self, entry: &AuditEntry) -> bool {
        entry.kind == "approved"
            && match &self.target {
                ApprovalTarget::Event(id) => entry.events.contains(id),
                ApprovalTarget::Machine(tenant, name) => entry.machines.contains(&format!("{tenant}/{name}")),
            }
    }

    pub(super) fn observe(&self, entry: &AuditEntry) -> Option<Met> {
        self.is_met_by(entry).then(|| Met::approved(&self.name, entry))
    }

    /// The state of the event, or of the latest event of the machine.
    pub(super) fn observed(&self, session: &Session) -> Result<String> {
        let events: Vec<EventView> = session.all("/v1/events")?;
        let is_meant = |event: &&EventView| match &self.target {
            ApprovalTarget::Event(id) => event.id == *id,
            ApprovalTarget::Machine(tenant, name) => {
                event.tenant == *tenant && event.resources.contains(name)
            }
        };
        let name = &self.name;
        if let Some(event) = events.iter().rfind(is_meant) {
            return Ok(format!("{name} is not approved: {}", sentences::state(event, session.now()?)));
        }
        let subject = match &self.target {
            ApprovalTarget::Event(id) => ("event", id.clone()),
            ApprovalTarget::Machine(tenant, name) => ("machine", format!("{tenant}/{name}")),
        };
        let last = ["completed", "withdrawn", "started"]
            .into_iter()
            .find_map(|kind| log::newest(session, kind, (subject.0, &subject.1)).transpose());
        Ok(match last.transpose()? {
            Some(entry) => format!("{name} is not approved, and no event is left: {}", entry.text),
            None => format!("{name} is not approved: there is no event of it"),
        })
    }
}
