//! A decision in progress: its changes so far, and the facts that later rules of the same decision need.
//!
//! The state does not change while a decision is made. The draft remembers what one decision may do several times
//! (plans, approvals, starts): the next numbers, new approvals, new starts, new moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_types::{Announcement, EventId, HostId, MachineId, MaintenanceId, Now, TenantId, UpdateDomain};

use crate::change::Change;
use crate::cluster::{Cluster, Counters};
use crate::fleet::Fence;
use crate::limits::EVENTS_PER_TENANT_MAX;
use crate::maintenance::{Cause, EventTemplate, Maintenance, Plan, Withdrawal};
use crate::parts::Part;
use crate::placement::Moves;
use crate::refusal::Refusal;
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
    pub(super) moves: Moves,
    announced: BTreeMap<TenantId, usize>,
    /// The fence that this decision has changed.
    pub(super) fence: Option<(HostId, Fence)>,
    /// The windows of a rollout that this decision plans.
    pub(super) windows: &'a [Window],
    /// Treatment of the limit of events per tenant.
    pub(super) event_limit: EventLimit,
}

/// The limit of events per tenant. It is ignored where no caller is left to refuse.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventLimit {
    Enforced,
    Ignored,
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
            moves: Moves::default(),
            announced: BTreeMap::new(),
            fence: None,
            windows: &[],
            event_limit: EventLimit::Enforced,
        }
    }

    /// Plans work on machines, announces it to every enrolled tenant, and starts it if there is nothing to wait for.
    pub(super) fn plan(&mut self, cause: Cause, machines: &[MachineId]) -> Result<(), Refusal> {
        let template = cause.event_template();
        let notice = template.map(|template| template.notice).unwrap_or_default();
        let not_before = self.now.wall.plus(notice).rounded_up();
        let steady_due = self.now.steady.plus(notice.max(not_before.since(self.now.wall)));
        let mut parts = self.parts(machines);
        for part in &mut parts {
            part.announcement = self.announcement(&cause, template, part)?;
        }
        let id = MaintenanceId(self.next.maintenance);
        self.next.maintenance += 1;
        let plan = Plan { id, cause, not_before, steady_due, parts: parts.into_iter().collect() };
        self.changes.push(Change::Planned(plan.clone()));
        self.start_if_allowed(&plan);
        Ok(())
    }

    /// The machines by tenant, each in the order given.
    fn parts(&self, machines: &[MachineId]) -> Vec<Part> {
        let mut parts = Vec::<Part>::new();
        let mut index_by_tenant = BTreeMap::<TenantId, usize>::new();
        for id in machines {
            let Some(machine) = self.cluster.machine(*id) else { continue };
            let index = *index_by_tenant.entry(machine.tenant).or_insert(parts.len());
            if index == parts.len() {
                let (tenant, update_domain) = (machine.tenant, machine.update_domain);
                parts.push(Part { tenant, update_domain, machines: Vec::new(), announcement: None });
            }
            parts[index].machines.push(*id);
        }
        parts
    }

    /// The announcement for the tenant of a part; `None` if the tenant is not enrolled or the cause makes no event.
    fn announcement(
        &mut self,
        cause: &Cause,
        template: Option<EventTemplate>,
        part: &Part,
    ) -> Result<Option<Arc<Announcement>>, Refusal> {
        let tenant = self.cluster.known_tenant(part.tenant)?;
        let Some(template) = template.filter(|_| tenant.is_enrolled()) else { return Ok(None) };
        let announced = self.announced.entry(part.tenant).or_insert(tenant.events().len());
        *announced += 1;
        if self.event_limit == EventLimit::Enforced && !matches!(cause, Cause::FailedHost { .. }) {
            Refusal::check(*announced, EVENTS_PER_TENANT_MAX, "events for the tenant")?;
        }
        let id = EventId::nth(&self.cluster.seed, self.next.event);
        self.next.event += 1;
        let names = part.machines.iter().filter_map(|id| self.cluster.machine(*id));
        let resources = names.map(|machine| machine.name.clone()).collect();
        let EventTemplate { kind, source, reason, duration_seconds, .. } = template;
        Ok(Some(Arc::new(Announcement { id, kind, source, reason, duration_seconds, resources })))
    }

    /// Withdraws planned work of some tenants that has not started.
    pub(super) fn withdraw(&mut self, maintenance: &Maintenance, tenants: Vec<TenantId>, why: Withdrawal) {
        let parts = tenants.iter().filter_map(|tenant| maintenance.plan.part(*tenant));
        for part in parts.filter(|part| part.announcement.is_some()) {
            let events = self.cluster.tenant(part.tenant).map_or(0, |tenant| tenant.events().len());
            let announced = self.announced.entry(part.tenant).or_insert(events);
            *announced = announced.saturating_sub(1);
        }
        self.changes.push(Change::Withdrawn { maintenance: maintenance.plan.id, tenants, why });
    }

    /// Withdraws a whole maintenance that has not started.
    pub(super) fn withdraw_all(&mut self, maintenance: &Maintenance, why: Withdrawal) {
        let tenants = maintenance.plan.parts.iter().map(|part| part.tenant).collect();
        self.withdraw(maintenance, tenants, why);
    }
}
