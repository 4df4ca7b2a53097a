//! Approval and cancellation.

use forewarn_types::{Approval, Approver, EventId, MaintenanceId, TenantId};

use super::draft::Draft;
use crate::change::Change;
use crate::limits::IDS_PER_APPROVAL_MAX;
use crate::maintenance::{Stage, Withdrawal};
use crate::refusal::Refusal;

impl Draft<'_> {
    /// Approves events of a tenant. Every id must be visible to the tenant, or have been visible within the last hour;
    /// a foreign id and an unknown one get the same refusal. Events that are approved or started already stay as they
    /// are.
    pub(super) fn approve(
        &mut self,
        tenant_id: TenantId,
        ids: &[EventId],
        by: Approver,
    ) -> Result<(), Refusal> {
        let tenant = self.cluster.known_tenant(tenant_id)?;
        if let Approver::Machine(machine) = by
            && self.cluster.known_machine(machine)?.tenant != tenant_id
        {
            return Err(Refusal::NoSuchMachine);
        }
        Refusal::check(ids.len(), IDS_PER_APPROVAL_MAX, "event ids")?;
        if ids.is_empty() {
            return Err(Refusal::NoEvents);
        }
        let approval = Approval { by, at: self.now.wall };
        for id in ids {
            match tenant.event(*id) {
                Some(event) if event.is_unapproved() && !self.approved.contains(id) => {
                    self.approved.push(*id);
                    self.changes.push(Change::Approved { tenant: tenant_id, event: *id, approval });
                }
                Some(_) => {}
                None if tenant.ended_recently(*id, self.now.steady) => {}
                None => return Err(Refusal::UnknownEvent),
            }
        }
        self.start_approved(tenant_id);
        Ok(())
    }

    /// Starts the maintenances that the approvals of this decision release: their own, and Terminates that waited for
    /// them.
    fn start_approved(&mut self, tenant: TenantId) {
        if self.approved.is_empty() {
            return;
        }
        let Some(tenant) = self.cluster.tenant(tenant) else { return };
        let new = tenant.events().iter().filter(|event| self.approved.contains(&event.id()));
        let mut ready: Vec<_> =
            new.chain(tenant.approved_terminates()).map(|event| event.maintenance).collect();
        ready.sort_unstable();
        for maintenance in ready.into_iter().filter_map(|id| self.cluster.maintenance(id)) {
            self.start_if_allowed(&maintenance.plan);
        }
    }

    /// Cancels a maintenance that has not started.
    pub(super) fn cancel(&mut self, id: MaintenanceId) -> Result<(), Refusal> {
        let maintenance = self.cluster.maintenance(id).ok_or(Refusal::NoSuchMaintenance)?;
        match maintenance.stage {
            Stage::Running { .. } => Err(Refusal::AlreadyStarted),
            Stage::Waiting(_) => {
                self.withdraw_all(maintenance, Withdrawal::Cancelled);
                Ok(())
            }
        }
    }
}
