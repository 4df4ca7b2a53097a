//! A decision being written: the changes so far, and what later rules of the same decision must know of them.
//!
//! The state stays as it is while a decision is made. What one decision does twice (several plans, several approvals,
//! several starts) is remembered here: the next numbers, who has just approved, what has just begun, who moves where.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_types::{Announcement, EventId, MachineId, MaintenanceId, Now, TenantId, UpdateDomain};

use crate::change::Change;
use crate::cluster::{Cluster, Counters};
use crate::command::Refusal;
use crate::limits::EVENTS_PER_TENANT_MAX;
use crate::maintenance::{Cause, Maintenance, Part, Plan, Told, Withdrawal};
use crate::placement::Move;
use crate::window::Window;

pub(super) struct Draft<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) now: Now,
    pub(super) changes: Vec<Change>,
    pub(super) next: Counters,
    /// Events approved by this decision.
    pub(super) approved: Vec<EventId>,
    /// Platform work begun by this decision.
    pub(super) begun: Vec<(TenantId, UpdateDomain)>,
    /// Machines moved by this decision.
    pub(super) moves: Vec<Move>,
    announced: BTreeMap<TenantId, usize>,
    /// The windows of a rollout that this decision plans.
    pub(super) windows: &'a [Window],
    /// Whether a tenant that sees as many events as it can is told all the same: there is no one left to refuse.
    pub(super) crowding: Crowding,
}

/// What happens to an event for which a tenant has no room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowding {
    Refused,
    Permitted,
}

impl<'a> Draft<'a> {
    pub(super) fn new(cluster: &'a Cluster, now: Now) -> Self {
        Self {
            cluster,
            now,
            changes: Vec::new(),
            next: cluster.next,
            approved: Vec::new(),
            begun: Vec::new(),
            moves: Vec::new(),
            announced: BTreeMap::new(),
            windows: &[],
            crowding: Crowding::Refused,
        }
    }

    /// Plans work on machines, tells every enrolled tenant, and starts it if there is nothing to wait for.
    pub(super) fn plan(&mut self, cause: Cause, machines: &[MachineId]) -> Result<(), Refusal> {
        let told = cause.told();
        let notice = told.map(|told| told.notice).unwrap_or_default();
        let not_before = self.now.wall.plus(notice).rounded_up();
        let steady_due = self.now.steady.plus(notice.max(not_before.since(self.now.wall)));
        let mut parts = self.parts(machines);
        for part in &mut parts {
            part.announcement = self.announcement(&cause, told, part)?;
        }
        let id = MaintenanceId(self.next.maintenance);
        self.next.maintenance += 1;
        let plan = Plan { id, cause, not_before, steady_due, parts };
        self.changes.push(Change::Planned(plan.clone()));
        self.start_if_entitled(&plan);
        Ok(())
    }

    /// The machines by tenant, each in the order given.
    fn parts(&self, machines: &[MachineId]) -> Vec<Part> {
        let mut parts = Vec::<Part>::new();
        let mut places = BTreeMap::<TenantId, usize>::new();
        for id in machines {
            let Some(machine) = self.cluster.machine(*id) else { continue };
            let place = *places.entry(machine.tenant).or_insert(parts.len());
            if place == parts.len() {
                let (tenant, update_domain) = (machine.tenant, machine.update_domain);
                parts.push(Part { tenant, update_domain, machines: Vec::new(), announcement: None });
            }
            parts[place].machines.push(*id);
        }
        parts
    }

    /// What the tenant of a part is told, if it is told anything.
    fn announcement(
        &mut self,
        cause: &Cause,
        told: Option<Told>,
        part: &Part,
    ) -> Result<Option<Arc<Announcement>>, Refusal> {
        let tenant = self.cluster.known_tenant(part.tenant)?;
        let Some(told) = told.filter(|_| tenant.is_enrolled()) else { return Ok(None) };
        let announced = self.announced.entry(part.tenant).or_insert(tenant.events().len());
        *announced += 1;
        if self.crowding == Crowding::Refused && !matches!(cause, Cause::FailedHost { .. }) {
            Refusal::check(*announced, EVENTS_PER_TENANT_MAX, "events for the tenant")?;
        }
        let id = EventId::nth(&self.cluster.seed, self.next.event);
        self.next.event += 1;
        let names = part.machines.iter().filter_map(|id| self.cluster.machine(*id));
        let resources = names.map(|machine| machine.name.clone()).collect();
        let Told { kind, source, reason, duration_seconds, .. } = told;
        Ok(Some(Arc::new(Announcement { id, kind, source, reason, duration_seconds, resources })))
    }

    /// Takes back what was planned for some tenants and has not started.
    pub(super) fn withdraw(&mut self, maintenance: &Maintenance, tenants: Vec<TenantId>, why: Withdrawal) {
        let parts = tenants.iter().filter_map(|tenant| maintenance.plan.part(*tenant));
        for part in parts.filter(|part| part.announcement.is_some()) {
            let events = self.cluster.tenant(part.tenant).map_or(0, |tenant| tenant.events().len());
            let announced = self.announced.entry(part.tenant).or_insert(events);
            *announced = announced.saturating_sub(1);
        }
        self.changes.push(Change::Withdrawn { maintenance: maintenance.plan.id, tenants, why });
    }

    /// Takes back a whole maintenance that has not started.
    pub(super) fn withdraw_all(&mut self, maintenance: &Maintenance, why: Withdrawal) {
        let tenants = maintenance.plan.parts.iter().map(|part| part.tenant).collect();
        self.withdraw(maintenance, tenants, why);
    }
}
