//! The end of a notice, moved: in the plan, in the events of its tenants, and in the agenda.

use std::sync::Arc;

use forewarn_types::{MaintenanceId, Phase, Steady, Timestamp};

use crate::change::Effect;
use crate::cluster::Cluster;
use crate::maintenance::{Maintenance, Wait};

impl Cluster {
    /// No incarnation grows: the change precedes the first publication of a document, or does not touch the document.
    pub(super) fn notice_extended(
        &mut self,
        id: MaintenanceId,
        not_before: Timestamp,
        steady_due: Steady,
        out: &mut Vec<Effect>,
    ) {
        let Some(wait) = self.maintenance(id).and_then(Maintenance::wait) else {
            return;
        };
        self.unlist(id);
        let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
        let is_moved = maintenance.plan.not_before != not_before;
        maintenance.plan.not_before = not_before;
        maintenance.plan.steady_due = steady_due;
        let parts = maintenance.plan.parts.iter().filter(|_| is_moved);
        let events: Vec<_> =
            parts.filter_map(|part| Some((part.tenant, part.announcement.as_ref()?.id))).collect();
        for (tenant, event) in events {
            let event = self.tenants.get_mut(&tenant).and_then(|tenant| tenant.event_mut(event));
            if let Some(Phase::Scheduled { not_before: shown, .. }) = event.map(|event| &mut event.phase) {
                *shown = not_before;
                out.push(Effect::Publish(tenant));
            }
        }
        // A maintenance that waited for the wall clock waits for the steady clock again.
        self.set_wait(id, if wait == Wait::Wall { Wait::Notice } else { wait });
    }
}
