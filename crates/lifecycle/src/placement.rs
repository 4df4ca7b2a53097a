//! The choice of a host for a machine.
//!
//! On one host all machines of a tenant share one update domain. A moving machine counts on both hosts.
//!
//! The candidates are the *open* hosts: healthy, without announced work, and not full. They are listed in two orders: by
//! load, for new machines, and by number, for machines that move. A search by number passes over hosts that it has to
//! avoid, and hosts with another update domain of the tenant: a tenant has few machines, so these are few in a fleet of
//! any size, and a host that can take the machine is always found. A machine with a size, in a cluster whose hosts have
//! capacities, goes to the host with the most free CPUs that also has the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use forewarn_types::{HostId, MachineId, TenantId, UpdateDomain, Zone};

use crate::capacity::{HostRoom, Size};
use crate::cluster::Cluster;
use crate::fleet::{Health, Host, HostAttention, HostLoad, Machine};
use crate::limits::MACHINES_PER_HOST_MAX;
use crate::refusal::Refusal;
use crate::tenant::Tenant;

/// A move that is being decided and is not in the state yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) machine: MachineId,
    pub(crate) tenant: TenantId,
    pub(crate) update_domain: UpdateDomain,
    pub(crate) to: HostId,
    pub(crate) size: Size,
}

/// Moves that are being decided, found by machine and by target host.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    in_order: Vec<Move>,
    machines: BTreeSet<MachineId>,
    by_host: BTreeMap<HostId, Vec<Move>>,
}

impl Moves {
    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }

    pub(crate) fn add(&mut self, new: Move) {
        self.in_order.push(new);
        self.machines.insert(new.machine);
        self.by_host.entry(new.to).or_default().push(new);
    }

    /// Drops all moves after the first ones.
    pub(crate) fn truncate(&mut self, length: usize) {
        for dropped in self.in_order.drain(length..).rev() {
            self.machines.remove(&dropped.machine);
            self.by_host.entry(dropped.to).or_default().pop();
        }
    }

    pub(crate) fn contains(&self, machine: MachineId) -> bool {
        self.machines.contains(&machine)
    }

    pub(crate) fn arriving_on(&self, host: HostId) -> &[Move] {
        self.by_host.get(&host).map_or(&[], Vec::as_slice)
    }
}

impl Host {
    /// Returns true if it can take a machine of a tenant that it has no other machine of.
    pub(crate) fn is_open(&self) -> bool {
        self.health == Health::Healthy
            && self.work.is_none()
            && self.attention == HostAttention::Unneeded
            && self.mode.is_none()
            && self.machines.len() < MACHINES_PER_HOST_MAX
    }
}

impl Cluster {
    /// The zones of open hosts; `None` stands for hosts without a zone.
    pub fn open_zones(&self) -> impl Iterator<Item = Option<Zone>> {
        let after = |zone: &Option<Zone>| {
            let last = Bound::Excluded((*zone, HostLoad::MAX, HostId(u32::MAX)));
            self.open_by_load.range((last, Bound::Unbounded)).next().map(|(zone, ..)| *zone)
        };
        let first = self.open_by_load.first().map(|(zone, ..)| *zone);
        std::iter::successors(first, after)
    }

    /// The open hosts of a zone, or without one: the fewest machines first, then in the order in which they joined. The
    /// first ones cost nothing but themselves.
    pub fn open_hosts_by_load(&self, zone: Option<Zone>) -> impl Iterator<Item = (HostId, &Host)> {
        let all = (zone, 0, HostId(0))..=(zone, HostLoad::MAX, HostId(u32::MAX));
        self.open_by_load.range(all).filter_map(|(_, _, id)| Some((*id, self.host(*id)?)))
    }

    /// Returns true if a host of the zone is open.
    pub(crate) fn has_open_host(&self, zone: Option<Zone>) -> bool {
        self.open_hosts.range((zone, HostId(0))..=(zone, HostId(u32::MAX))).next().is_some()
    }

    /// Lists a host, which is in the table, as a candidate for machines.
    pub(crate) fn list_if_open(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).filter(|host| host.is_open()) else { return };
        self.open_hosts.insert((host.zone, id));
        self.open_by_load.insert((host.zone, host.load(), id));
        self.relist_room(id);
    }

    /// Lists all open hosts at once.
    pub(crate) fn list_open_hosts(&mut self) {
        let open = || self.hosts.iter().filter(|(_, host)| host.is_open());
        let by_number = open().map(|(id, host)| (host.zone, id)).collect();
        let by_load = open().map(|(id, host)| (host.zone, host.load(), id)).collect();
        (self.open_hosts, self.open_by_load) = (by_number, by_load);
    }

    /// Removes a host, which is still in the table, from the candidates for machines.
    pub(crate) fn unlist_if_open(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).filter(|host| host.is_open()) else { return };
        self.open_hosts.remove(&(host.zone, id));
        self.open_by_load.remove(&(host.zone, host.load(), id));
    }

    /// Another host that can take the machine: open, in the same zone, and without another update domain of its
    /// tenant. The search starts after the machine's own host and wraps around; `avoid` is sorted.
    pub(crate) fn find_host_for(
        &self,
        (id, machine): (MachineId, &Machine),
        avoid: &[HostId],
        moves: &Moves,
    ) -> Option<HostId> {
        let zone = self.host(machine.host).and_then(|host| host.zone);
        let size = self.size_of(id);
        if self.has_capacities() && !size.is_none() {
            let mut others = self.open_hosts_with_room(zone, size).map(|(to, _)| to);
            return others.find(|to| {
                *to != machine.host
                    && avoid.binary_search(to).is_err()
                    && self.fits(machine, *to, moves)
                    && self.room_with(*to, moves).has_room_for(size)
            });
        }
        let fitting =
            |from, to| self.find_open_host(zone, (from, to), avoid, |to| self.fits(machine, to, moves));
        let (own, first, last) = (machine.host.0, HostId(0), HostId(u32::MAX));
        let behind = own.checked_add(1).and_then(|next| fitting(HostId(next), last));
        behind.or_else(|| own.checked_sub(1).and_then(|before| fitting(first, HostId(before))))
    }

    /// The first suitable open host of a zone with a number in that range. Hosts to avoid that have consecutive numbers
    /// are passed over together.
    fn find_open_host(
        &self,
        zone: Option<Zone>,
        (mut first, last): (HostId, HostId),
        avoid: &[HostId],
        is_suitable: impl Fn(HostId) -> bool,
    ) -> Option<HostId> {
        while first <= last {
            let mut open = self.open_hosts.range((zone, first)..=(zone, last)).map(|(_, id)| *id);
            let next = open.find(|id| avoid.binary_search(id).is_ok() || is_suitable(*id))?;
            let Ok(index) = avoid.binary_search(&next) else { return Some(next) };
            let run = avoid[index..].windows(2).take_while(|pair| pair[1].0 == pair[0].0 + 1).count();
            first = HostId(avoid[index + run].0.checked_add(1)?);
        }
        None
    }

    /// The room of a host once the machines have arrived that are being moved there.
    pub(crate) fn room_with(&self, host: HostId, moves: &Moves) -> HostRoom {
        moves.arriving_on(host).iter().fold(self.room_of(host), |room, arriving| room.with(arriving.size))
    }

    pub(crate) fn fits(&self, machine: &Machine, to: HostId, moves: &Moves) -> bool {
        let Some(host) = self.host(to) else { return false };
        let arriving = moves.arriving_on(to);
        let mut same_tenant = arriving.iter().filter(|other| other.tenant == machine.tenant);
        host.machines.len() + arriving.len() < MACHINES_PER_HOST_MAX
            && same_tenant.all(|other| other.update_domain == machine.update_domain)
            && self.other_update_domain(host, machine.tenant, machine.update_domain).is_none()
    }

    /// An update domain of the tenant on the host, other than that one. Costs the machines of the host or those of the
    /// tenant, whichever are fewer.
    pub(crate) fn other_update_domain(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Option<UpdateDomain> {
        let of_tenant = self.tenant(tenant).map_or(&[][..], Tenant::machines);
        let few = if of_tenant.len() < host.machines.len() { of_tenant } else { &host.machines };
        let others = few.iter().filter_map(|id| Some((id, self.machine(*id)?)));
        let mut others =
            others.filter(|(_, other)| other.tenant == tenant && other.update_domain != update_domain);
        others.find(|(id, _)| host.machines.binary_search(id).is_ok()).map(|(_, other)| other.update_domain)
    }

    /// Checks that a new machine may be placed on that host.
    pub(crate) fn check_admission(
        &self,
        host: HostId,
        tenant: TenantId,
        update_domain: UpdateDomain,
        size: Size,
    ) -> Result<(), Refusal> {
        let (id, host) = (host, self.known_host(host)?);
        if host.health != Health::Healthy {
            return Err(Refusal::HostNotHealthy(host.name.clone()));
        }
        if host.attention == HostAttention::Needed {
            return Err(Refusal::HostNeedsAttention(host.name.clone()));
        }
        self.check_room(host, tenant, update_domain)?;
        let room = self.room_of(id);
        if room.has_room_for(size) {
            return Ok(());
        }
        Err(Refusal::HostFull { host: host.name.clone(), size, free: self.free_text(id, room, size) })
    }

    /// Refuses a host in maintenance mode or with planned work, a full host, and a host with another update domain of the tenant.
    pub(crate) fn check_room(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Result<(), Refusal> {
        if host.mode.is_some() {
            return Err(Refusal::HostInMaintenance(host.name.clone()));
        }
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
