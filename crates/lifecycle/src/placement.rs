//! The choice of a host for a machine.
//!
//! The hosts for new machines are ranked by the number of their machines. On one host all machines of a tenant share one
//! update domain. A moving machine counts on both hosts.

use std::ops::Bound;

use forewarn_types::{HostId, MachineId, TenantId, UpdateDomain, Zone};

use crate::cluster::Cluster;
use crate::command::Refusal;
use crate::fleet::{Health, Host, HostLoad, Machine};
use crate::limits::{MACHINES_PER_HOST_MAX, PLACEMENT_TRIES_MAX};

/// A move that is being decided and is not in the state yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) machine: MachineId,
    pub(crate) tenant: TenantId,
    pub(crate) update_domain: UpdateDomain,
    pub(crate) to: HostId,
}

impl Cluster {
    /// The zones of healthy hosts; `None` stands for hosts without a zone.
    pub fn host_zones(&self) -> impl Iterator<Item = Option<Zone>> {
        let after = |zone: &Option<Zone>| {
            let last = Bound::Excluded((*zone, HostLoad::MAX, HostId(u32::MAX)));
            self.healthy_by_load.range((last, Bound::Unbounded)).next().map(|(zone, ..)| *zone)
        };
        let first = self.healthy_by_load.first().map(|(zone, ..)| *zone);
        std::iter::successors(first, after)
    }

    /// The healthy hosts of a zone, or without one: the fewest machines first, then in the order in which they joined.
    /// The first ones cost nothing but themselves.
    pub fn healthy_hosts_by_load(&self, zone: Option<Zone>) -> impl Iterator<Item = (HostId, &Host)> {
        let all = (zone, 0, HostId(0))..=(zone, HostLoad::MAX, HostId(u32::MAX));
        self.healthy_by_load.range(all).filter_map(|(_, _, id)| Some((*id, self.host(*id)?)))
    }

    /// Lists a host, which is in the table, as a candidate for machines.
    pub(crate) fn list_healthy(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id) else { return };
        self.healthy.insert((host.zone, id));
        self.healthy_by_load.insert((host.zone, host.load(), id));
    }

    /// Removes a host, which is still in the table, from the candidates for machines.
    pub(crate) fn unlist_healthy(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id) else { return };
        self.healthy.remove(&(host.zone, id));
        self.healthy_by_load.remove(&(host.zone, host.load(), id));
    }

    /// Adds a machine to the list of a host.
    pub(crate) fn list_on_host(&mut self, machine: MachineId, id: HostId) {
        self.change_host(id, |host| host.add(machine));
    }

    /// Removes a machine from the list of a host. Returns the health of the host.
    pub(crate) fn unlist_on_host(&mut self, machine: MachineId, id: HostId) -> Option<Health> {
        self.change_host(id, |host| host.remove(machine))
    }

    /// Changes the machines of a host, and its rank among the candidates for new ones.
    fn change_host(&mut self, id: HostId, change: impl FnOnce(&mut Host)) -> Option<Health> {
        let host = self.hosts.get_mut(&id)?;
        let before = host.load();
        change(host);
        if host.health == Health::Healthy && host.load() != before {
            self.healthy_by_load.remove(&(host.zone, before, id));
            self.healthy_by_load.insert((host.zone, host.load(), id));
        }
        Some(host.health)
    }

    /// Another host that can take the machine: healthy, in the same zone, with room, without announced work, and
    /// without another update domain of its tenant. The search starts after the machine's own host and wraps around;
    /// `avoid` is sorted.
    pub(crate) fn find_host_for(
        &self,
        machine: &Machine,
        avoid: &[HostId],
        moves: &[Move],
    ) -> Option<HostId> {
        let zone = self.host(machine.host).and_then(|host| host.zone);
        let behind =
            self.healthy.range((zone, HostId(machine.host.0.saturating_add(1)))..=(zone, HostId(u32::MAX)));
        let before = self.healthy.range((zone, HostId(0))..(zone, machine.host));
        let candidates =
            behind.chain(before).map(|&(_, id)| id).filter(|id| avoid.binary_search(id).is_err());
        candidates.take(PLACEMENT_TRIES_MAX).find(|&to| self.fits(machine, to, moves))
    }

    fn fits(&self, machine: &Machine, to: HostId, moves: &[Move]) -> bool {
        let Some(host) = self.host(to) else { return false };
        let arriving = || moves.iter().filter(|other| other.to == to);
        let clashes = arriving()
            .any(|other| other.tenant == machine.tenant && other.update_domain != machine.update_domain);
        host.work.is_none()
            && host.machines.len() + arriving().count() < MACHINES_PER_HOST_MAX
            && !clashes
            && self.other_update_domain(host, machine.tenant, machine.update_domain).is_none()
    }

    /// An update domain of the tenant on the host, other than that one.
    pub(crate) fn other_update_domain(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Option<UpdateDomain> {
        let here = host.machines.iter().filter_map(|id| self.machine(*id));
        let mut domains =
            here.filter(|machine| machine.tenant == tenant).map(|machine| machine.update_domain);
        domains.find(|present| *present != update_domain)
    }

    /// Checks that a new machine may be placed on that host.
    pub(crate) fn check_admission(
        &self,
        host: HostId,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Result<(), Refusal> {
        let host = self.known_host(host)?;
        if host.health != Health::Healthy {
            return Err(Refusal::HostNotHealthy(host.name.clone()));
        }
        self.check_room(host, tenant, update_domain)
    }

    /// Refuses a host with planned work, a full host, and a host with another update domain of the tenant.
    pub(crate) fn check_room(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Result<(), Refusal> {
        if host.work.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        Refusal::check(host.machines.len() + 1, MACHINES_PER_HOST_MAX, "machines on the host")?;
        match self.other_update_domain(host, tenant, update_domain) {
            Some(present) => Err(Refusal::UpdateDomainClash {
                host: host.name.clone(),
                tenant: self.known_tenant(tenant)?.name.clone(),
                present: present.0,
                update_domain: update_domain.0,
            }),
            None => Ok(()),
        }
    }
}
