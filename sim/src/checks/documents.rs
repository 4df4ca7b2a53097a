//! Documents that guests can read: since when each event is readable, and that nothing in a document goes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{ClusterId, ClusterState};
use forewarn_lifecycle::{EventId, Tenant, TenantId, Timestamp};

use crate::names::name_of;
use crate::step_log::StepLog;

/// An event as a document shows it: its id, its time if it has not started.
type ShownEvents = Vec<(EventId, Option<Timestamp>)>;

#[derive(Default)]
pub(crate) struct Documents {
    last: BTreeMap<(usize, ClusterId), Arc<ClusterState>>,
    /// Incarnations that servers have shown; they stay over restarts.
    incarnations: BTreeMap<(usize, ClusterId, TenantId), u64>,
    contents: BTreeMap<(ClusterId, TenantId, u64), ShownEvents>,
    readable: BTreeMap<EventId, u64>,
    not_before: BTreeMap<EventId, Timestamp>,
}

impl Documents {
    /// The time since which guests can read an event on some server.
    pub(crate) fn readable_since(&self, event: EventId) -> Option<u64> {
        self.readable.get(&event).copied()
    }

    pub(crate) fn show(
        &mut self,
        now: u64,
        (server, cluster): (usize, ClusterId),
        state: &Arc<ClusterState>,
        step_log: &mut StepLog,
    ) -> Result<(), String> {
        let former = self.last.insert((server, cluster), Arc::clone(state));
        if former.is_some_and(|former| Arc::ptr_eq(&former, state)) {
            return Ok(());
        }
        for (id, tenant) in state.rules().tenants() {
            let shown = self.incarnations.entry((server, cluster, id)).or_default();
            if tenant.incarnation < *shown {
                let (name, to) = (name_of(server), tenant.incarnation);
                return Err(format!(
                    "{name} shows incarnation {to} of tenant {id} in cluster {cluster} after {shown}"
                ));
            }
            *shown = tenant.incarnation;
            self.show_events((now, server, cluster), state, (id, tenant), step_log)?;
        }
        Ok(())
    }

    fn show_events(
        &mut self,
        (now, server, cluster): (u64, usize, ClusterId),
        state: &ClusterState,
        (id, tenant): (TenantId, &Tenant),
        step_log: &mut StepLog,
    ) -> Result<(), String> {
        let mut events = ShownEvents::new();
        for event in tenant.events() {
            let plan = state.rules().maintenance(event.maintenance).map(|maintenance| &maintenance.plan);
            let time = plan.map(|plan| plan.not_before).filter(|_| event.is_scheduled());
            events.push((event.id(), time));
            self.readable.entry(event.id()).or_insert_with(|| {
                step_log.add(now, name_of(server).as_str(), || {
                    let kind = event.announcement.kind.as_str();
                    format!(
                        "shows {kind} of tenant {id} in cluster {cluster} for the first time: {}",
                        event.id()
                    )
                });
                now
            });
            let Some(time) = time else { continue };
            let known = *self.not_before.entry(event.id()).or_insert(time);
            if known != time {
                let (name, by) = (name_of(server), time.millis().abs_diff(known.millis()));
                return Err(format!(
                    "{name} shows event {} with a time that differs by {by} ms from another one",
                    event.id()
                ));
            }
        }
        let key = (cluster, id, tenant.incarnation);
        let known = self.contents.entry(key).or_insert_with(|| events.clone());
        if *known != events {
            let incarnation = tenant.incarnation;
            return Err(format!(
                "incarnation {incarnation} of tenant {id} in cluster {cluster} has two contents"
            ));
        }
        Ok(())
    }
}
