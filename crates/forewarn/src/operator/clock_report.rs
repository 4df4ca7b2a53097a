//! The events that appeared, started or ended while the clock was set forward, from the audit log.

use anyhow::Result;
use forewarn_control::push::{Notice, NoticeStatus};
use forewarn_control::{AuditEntry, AuditPage};
use forewarn_types::Moment;
use serde::Serialize;
use serde_json::{Value, json};

use super::event_id::short;
use super::sentences;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed};

/// Events that a report has.
const EVENTS_MAX: usize = 1_000;

/// Events of one advance.
pub(super) struct ClockReport {
    events: Vec<ReportedEvent>,
    /// True if the audit log has further ones.
    is_cut: bool,
}

/// A state that an event got.
#[derive(Serialize)]
struct ReportedEvent {
    at: Moment,
    cluster: String,
    event: String,
    status: NoticeStatus,
    #[serde(rename = "type")]
    kind: String,
    tenant: String,
    resources: Vec<String>,
}

impl ClockReport {
    /// The end of the audit log of all clusters: the clock is common to them.
    pub(super) fn position(session: &Session) -> Result<String> {
        Ok(session.client().get::<AuditPage>("/v1/audit?limit=1")?.head)
    }

    /// Everything that happened to events after a position.
    pub(super) fn since(session: &Session, position: &str) -> Result<Self> {
        let (mut events, mut after) = (Vec::new(), Some(position.to_owned()));
        while let Some(cursor) = after.take_if(|_| events.len() < EVENTS_MAX) {
            let path = format!("/v1/audit?order=oldest&limit=1000&after={}", escaped(&cursor));
            let page: AuditPage = session.client().get(&path)?;
            events.extend(page.items.into_iter().flat_map(reported));
            after = page.next;
        }
        let is_cut = after.is_some() || events.len() > EVENTS_MAX;
        events.truncate(EVENTS_MAX);
        Ok(Self { events, is_cut })
    }

    /// The response of the server, with the events.
    pub(super) fn with_clock(&self, mut clock: Value) -> Value {
        clock["happened"] = json!(self.events);
        if self.is_cut {
            clock["happened_cut"] = json!(true);
        }
        clock
    }

    pub(super) fn table(&self, width: Width) -> String {
        if self.events.is_empty() {
            return "No event appeared, started or ended.\n".to_owned();
        }
        let mut table = Table::new(width, &["time", "id", "event", "status", "tenant", "machines"])
            .dropping(&["tenant", "machines"]);
        for event in &self.events {
            table.row([
                sentences::date(event.at),
                short(&event.event).to_owned(),
                event.kind.clone(),
                event.status.as_str().to_owned(),
                event.tenant.clone(),
                listed(&event.resources),
            ]);
        }
        let more = if self.is_cut { "Further ones: forewarn audit ls\n" } else { "" };
        format!("{table}{more}")
    }
}

fn reported(entry: AuditEntry) -> impl Iterator<Item = ReportedEvent> {
    let AuditEntry { at, cluster, notices, .. } = entry;
    notices.into_iter().map(move |Notice { event, status, kind, tenant, resources, .. }| ReportedEvent {
        at,
        cluster: cluster.clone(),
        event,
        status,
        kind,
        tenant,
        resources,
    })
}
