//! The next group of a rollout: as many waiting hosts as may be worked on together, next to other planned work.
//!
//! Budgets count planned work, announced or in progress, of this rollout and of others. A single host is the smallest
//! step. A host that alone exceeds a budget of a tenant, or has several of its fault domains, is announced while the
//! tenant has no other planned work; otherwise it would wait forever.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use forewarn_types::{FaultDomain, HostId, MachineId, RolloutId, TenantId, Timestamp, UpdateDomain};

use super::draft::Draft;
use super::rollouts::notice_of;
use crate::fleet::{Health, HostAttention, Machine};
use crate::host_step::HostTask;
use crate::limits::{EVENTS_PER_TENANT_MAX, MACHINES_PER_GROUP_MAX, RESOURCES_PER_EVENT_MAX};
use crate::maintenance::Cause;
use crate::refusal::Refusal;
use crate::rollout::{FaultDomains, Obstacle, RolloutTerms, Standing};
use crate::tenant::{Work, WorkKind};

/// Hosts that may be worked on together: no tenant has two update domains on them.
struct Group<'a> {
    terms: &'a RolloutTerms,
    hosts: Vec<HostId>,
    machines: Vec<MachineId>,
    tenants: BTreeMap<TenantId, (UpdateDomain, usize)>,
    /// The start of the group if it is announced now and not approved.
    not_before: Timestamp,
    /// Planned work of each tenant, this group included; only filled if the terms have budgets.
    loads: BTreeMap<TenantId, Load>,
}

/// Machines of one tenant in planned work.
#[derive(Clone, Default)]
struct Load {
    machines: usize,
    domains: Vec<FaultDomain>,
}

impl Load {
    fn add(&mut self, machine: &Machine) {
        self.machines += 1;
        if !self.domains.contains(&machine.fault_domain) {
            self.domains.push(machine.fault_domain);
        }
    }
}

impl<'a> Group<'a> {
    fn new(terms: &'a RolloutTerms, not_before: Timestamp) -> Self {
        let (hosts, machines) = (Vec::new(), Vec::new());
        Self { terms, hosts, machines, tenants: BTreeMap::new(), not_before, loads: BTreeMap::new() }
    }

    fn is_full(&self) -> bool {
        self.terms.hosts_at_once.is_some_and(|max| self.hosts.len() >= usize::from(max.get()))
    }

    fn has_budgets(&self) -> bool {
        self.terms.tenant_share.is_some() || self.terms.fault_domains == FaultDomains::OneAtATime
    }
}

impl Draft<'_> {
    /// Announces as many of the first waiting hosts as may be worked on together. If no host qualifies, records the first obstacle.
    pub(super) fn announce_group(
        &mut self,
        rollout: RolloutId,
        work: &HostTask,
        terms: &RolloutTerms,
        waiting: &[HostId],
    ) -> Result<(), Refusal> {
        let notice = notice_of(work);
        let mut group = Group::new(terms, self.now.wall.plus(notice).rounded_up());
        let mut avoid = waiting.to_vec();
        avoid.sort_unstable();
        let (mut first, mut closed) = (None, Vec::new());
        let begun = self.moves.len();
        for id in waiting {
            if group.is_full() {
                break;
            }
            let moves = self.moves.len();
            let joined = if !work.kind.moves_machines() || self.can_be_emptied(*id, work, &avoid) {
                self.join(&mut group, *id, work)
            } else {
                Err(Obstacle::NoHost)
            };
            if joined.is_err() {
                self.moves.truncate(moves);
            }
            if joined == Err(Obstacle::TenantWindow) {
                closed.push(*id);
            }
            first = first.or(joined.err());
        }
        // Hosts that can only take each other's machines go one by one.
        for id in waiting.iter().filter(|_| work.kind.moves_machines()) {
            if group.hosts.is_empty() && self.can_be_emptied(*id, work, &[*id]) {
                let _ = self.join(&mut group, *id, work);
            }
            self.moves.truncate(begun);
        }
        self.moves.truncate(begun);
        if group.hosts.is_empty() {
            let standing = self.tenant_window_standing(terms, notice, &closed);
            self.waits(rollout, standing.unwrap_or(Standing::Room(first.unwrap_or(Obstacle::Full))));
            return Ok(());
        }
        group.hosts.sort_unstable();
        group.machines.sort_unstable();
        let Group { hosts, machines, .. } = group;
        self.plan(Cause::HostWork { rollout, work: work.clone(), hosts }, &machines)
    }

    /// Adds a host to a group if it qualifies: it has not failed, no machine is about to arrive on it, and each of its
    /// tenants can see one more event, has only this update domain in the group and in other planned work, and stays
    /// within the budgets; and a window of each of its tenants is open at the start.
    fn join(&self, group: &mut Group<'_>, id: HostId, work: &HostTask) -> Result<(), Obstacle> {
        let machines = self.cluster.worked_on(id, work);
        if self.cluster.host(id).is_none_or(|host| host.health == Health::Failed) {
            return Err(Obstacle::Failed);
        }
        if self.cluster.host(id).is_some_and(|host| host.attention == HostAttention::Needed) {
            return Err(Obstacle::NeedsAttention);
        }
        if group.machines.len() + machines.len() > MACHINES_PER_GROUP_MAX {
            return Err(Obstacle::Full);
        }
        if self.cluster.expects_arrivals(id) {
            return Err(Obstacle::Arrivals);
        }
        let mut joined = BTreeMap::new();
        for machine in machines.iter().filter_map(|id| self.cluster.machine(*id)) {
            let tenant = machine.tenant;
            let present = joined.get(&tenant).or_else(|| group.tenants.get(&tenant)).copied();
            let (domain, count) = present.unwrap_or((machine.update_domain, 0));
            if domain != machine.update_domain {
                return Err(Obstacle::UpdateDomain);
            }
            if count == RESOURCES_PER_EVENT_MAX {
                return Err(Obstacle::Full);
            }
            joined.insert(tenant, (domain, count + 1));
        }
        joined.iter().try_for_each(|(tenant, (domain, _))| self.can_announce(*tenant, *domain))?;
        let loads = self.loads_with(group, &machines)?;
        if self.closed_tenant(joined.keys().copied(), group.not_before).is_some() {
            return Err(Obstacle::TenantWindow);
        }
        group.loads.extend(loads);
        group.tenants.extend(joined);
        group.machines.extend(machines);
        group.hosts.push(id);
        Ok(())
    }

    /// Planned work of the tenants of a host once the host joins the group; an obstacle if it exceeds the budgets.
    fn loads_with(
        &self,
        group: &mut Group<'_>,
        machines: &[MachineId],
    ) -> Result<BTreeMap<TenantId, Load>, Obstacle> {
        let mut loads = BTreeMap::new();
        if !group.has_budgets() {
            return Ok(loads);
        }
        for machine in machines.iter().filter_map(|id| self.cluster.machine(*id)) {
            let before = match group.loads.entry(machine.tenant) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.planned_load(machine.tenant)),
            };
            loads.entry(machine.tenant).or_insert_with(|| before.clone()).add(machine);
        }
        for (id, load) in &loads {
            let alone = group.loads.get(id).is_none_or(|before| before.machines == 0);
            let count = self.cluster.tenant(*id).map_or(0, |tenant| tenant.machines().len());
            let share = group.terms.tenant_share.is_none_or(|share| load.machines <= share.of(count));
            let domains = group.terms.fault_domains == FaultDomains::Any || load.domains.len() <= 1;
            match (alone, share, domains) {
                (true, ..) | (false, true, true) => {}
                (false, false, _) => return Err(Obstacle::TenantShare),
                (false, true, false) => return Err(Obstacle::FaultDomain),
            }
        }
        Ok(loads)
    }

    /// The planned work of a tenant in other groups.
    fn planned_load(&self, id: TenantId) -> Load {
        let mut load = Load::default();
        let works = self.cluster.tenant(id).map_or(&[][..], |tenant| tenant.works());
        let planned = works.iter().filter(|work| work.kind == WorkKind::HostWork);
        let plans = planned.filter_map(|work| self.cluster.maintenance(work.maintenance));
        let machines = plans.filter_map(|known| known.plan.part(id)).flat_map(|part| &part.machines);
        machines.filter_map(|id| self.cluster.machine(*id)).for_each(|machine| load.add(machine));
        load
    }

    /// Checks that host work in that update domain of a tenant may be announced.
    fn can_announce(&self, tenant: TenantId, domain: UpdateDomain) -> Result<(), Obstacle> {
        let Some(tenant) = self.cluster.tenant(tenant) else { return Ok(()) };
        let elsewhere = |work: &Work| work.kind == WorkKind::HostWork && work.update_domain != domain;
        if tenant.works().iter().any(elsewhere) {
            return Err(Obstacle::UpdateDomain);
        }
        if tenant.events().len() < EVENTS_PER_TENANT_MAX { Ok(()) } else { Err(Obstacle::Events) }
    }

    /// Returns true if every machine of a host can be moved elsewhere: with capacities, together with those of the other
    /// hosts of the group.
    fn can_be_emptied(&mut self, id: HostId, work: &HostTask, avoid: &[HostId]) -> bool {
        self.stuck_machine(self.cluster.worked_on(id, work), avoid).is_none()
    }

    pub(super) fn can_leave(&self, id: MachineId, avoid: &[HostId]) -> bool {
        let machine = self.cluster.machine(id);
        machine.is_none_or(|machine| self.cluster.find_host_for((id, machine), avoid, &self.moves).is_some())
    }
}
