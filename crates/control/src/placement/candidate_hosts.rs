//! Hosts on which the rules would admit a new machine: those in use, and the least loaded of all others.
//!
//! A host is in use if it has instances of the scale set, if it has got one in this plan, or if the caller has named
//! it. The cluster ranks all other hosts by load; only those that are taken, those without room for a machine of this size,
//! and the next one, are read.

use std::collections::BTreeMap;

use forewarn_lifecycle::limits::MACHINES_PER_HOST_MAX;
use forewarn_lifecycle::{
    Cluster, Health, Host, HostAttention, HostId, HostRoom, MachineId, Size, TenantId, Zone,
};

use crate::placement::bounds::Bounds;

/// A placement group, by its index in the scale set.
pub(super) type GroupIndex = usize;

/// Rank of a host: instances of the scale set, all machines, and its number.
pub(super) type HostRank = (usize, usize, HostId);

/// A host that can take instances.
#[derive(Clone, Debug, Default)]
pub(super) struct HostCapacity {
    /// Its zone, if zones are named.
    pub(super) zone: Option<Zone>,
    /// Instances of the scale set.
    of_set: usize,
    machines: usize,
    /// Its capacity and the part in use, and the size of each new machine.
    room: HostRoom,
    size: Size,
    /// The domains of each placement group on this host.
    pub(super) domains: BTreeMap<GroupIndex, (u16, u16)>,
}

/// Hosts that can take instances.
pub(super) struct CandidateHosts<'a> {
    in_use: BTreeMap<HostId, HostCapacity>,
    /// The cluster, and the size of each new machine.
    cluster: &'a Cluster,
    size: Size,
    /// All other hosts, by zone if zones are named.
    unused: BTreeMap<Option<Zone>, UnusedHosts<'a>>,
}

/// Hosts without instances of the scale set, the least loaded first.
struct UnusedHosts<'a> {
    /// The hosts of each zone.
    zones: Vec<RankedHosts<'a>>,
}

/// The hosts of one zone by load.
struct RankedHosts<'a> {
    first: Option<(usize, HostId)>,
    others: Box<dyn Iterator<Item = (HostId, &'a Host)> + 'a>,
}

impl<'a> CandidateHosts<'a> {
    pub(super) fn new(cluster: &'a Cluster, groups: &[TenantId], bounds: &Bounds) -> Self {
        let (in_use, unused) = (BTreeMap::new(), BTreeMap::new());
        let mut hosts = Self { in_use, cluster, size: bounds.size, unused };
        for id in bounds.hosts.iter().flatten() {
            hosts.add(cluster, *id, bounds);
        }
        for (group, id) in groups.iter().enumerate() {
            let machines = cluster.tenant(*id).map_or(&[][..], |tenant| tenant.machines());
            machines.iter().for_each(|machine| hosts.count(cluster, group, *machine, bounds));
        }
        if bounds.hosts.is_none() {
            hosts.unused = hosts.all_others(cluster, bounds);
        }
        hosts
    }

    /// The hosts in use.
    pub(super) fn in_use(&self) -> impl Iterator<Item = (HostId, &HostCapacity)> {
        self.in_use.iter().map(|(id, room)| (*id, room))
    }

    /// A host in use.
    pub(super) fn get(&self, id: HostId) -> Option<&HostCapacity> {
        self.in_use.get(&id)
    }

    /// The zones of hosts that are not in use.
    pub(super) fn zones(&self) -> impl Iterator<Item = Option<Zone>> {
        self.unused.keys().copied()
    }

    /// The first host of a zone that is not in use.
    pub(super) fn first_unused(&self, zone: Option<Zone>) -> Option<HostRank> {
        let (load, id) = self.unused.get(&zone)?.first()?;
        Some((0, load, id))
    }

    /// Takes a host into use: one that is in use already, or the first other one of the zone.
    pub(super) fn take(&mut self, zone: Option<Zone>, id: HostId) -> Option<&mut HostCapacity> {
        if let Some(unused) = self.unused.get_mut(&zone)
            && let Some((machines, first)) = unused.first()
            && first == id
        {
            let (room, size) = (self.cluster.room_of(id), self.size);
            self.in_use.insert(id, HostCapacity { zone, machines, room, size, ..HostCapacity::default() });
            unused.advance(&self.in_use);
        }
        self.in_use.get_mut(&id)
    }

    /// Adds a host to those in use, if it qualifies.
    fn add(&mut self, cluster: &Cluster, id: HostId, bounds: &Bounds) -> Option<&mut HostCapacity> {
        let host = cluster.host(id)?;
        let is_open = host.health == Health::Healthy
            && host.work.is_none()
            && host.attention == HostAttention::Unneeded
            && host.mode.is_none();
        if !is_open || !bounds.admit(id, host.zone) {
            return None;
        }
        let zone = host.zone.filter(|_| !bounds.zones.is_empty());
        let (room, size, machines) = (cluster.room_of(id), self.size, host.machines().len());
        let new = || HostCapacity { zone, machines, room, size, ..HostCapacity::default() };
        Some(self.in_use.entry(id).or_insert_with(new))
    }

    /// Counts a machine of the scale set on its host, and on the host that it is moving to.
    fn count(&mut self, cluster: &Cluster, group: GroupIndex, id: MachineId, bounds: &Bounds) {
        let Some(machine) = cluster.machine(id) else { return };
        let actions = cluster.pending_of(id).filter_map(|pending| pending.action(id));
        let coming = actions.filter_map(|action| action.impact.destination());
        for host in coming.filter(|to| *to != machine.host).chain([machine.host]) {
            let Some(room) = self.add(cluster, host, bounds) else { continue };
            room.of_set += usize::from(!cluster.is_leaving(id));
            room.domains.entry(group).or_insert((machine.update_domain.0, machine.fault_domain.0));
        }
    }

    fn all_others(&self, cluster: &'a Cluster, bounds: &Bounds) -> BTreeMap<Option<Zone>, UnusedHosts<'a>> {
        let of = |zones: Vec<Option<Zone>>| UnusedHosts::new(cluster, zones, self.size, &self.in_use);
        if bounds.zones.is_empty() {
            return BTreeMap::from([(None, of(cluster.open_zones().collect()))]);
        }
        bounds.zones.iter().map(|zone| (Some(*zone), of(vec![Some(*zone)]))).collect()
    }
}

impl<'a> UnusedHosts<'a> {
    fn new(
        cluster: &'a Cluster,
        zones: Vec<Option<Zone>>,
        size: Size,
        in_use: &BTreeMap<HostId, HostCapacity>,
    ) -> Self {
        let by_room = cluster.has_capacities() && !size.is_none();
        let ranked = |zone| {
            let others: Box<dyn Iterator<Item = _>> = if by_room {
                Box::new(cluster.open_hosts_by_load_with_room(zone, size))
            } else {
                Box::new(cluster.open_hosts_by_load(zone))
            };
            let mut ranked = RankedHosts { first: None, others };
            ranked.advance(in_use);
            ranked
        };
        Self { zones: zones.into_iter().map(ranked).collect() }
    }

    fn first(&self) -> Option<(usize, HostId)> {
        self.zones.iter().filter_map(|zone| zone.first).min()
    }

    /// Goes on to the next host.
    fn advance(&mut self, in_use: &BTreeMap<HostId, HostCapacity>) {
        let first = self.first();
        self.zones.iter_mut().filter(|zone| zone.first == first).for_each(|zone| zone.advance(in_use));
    }
}

impl RankedHosts<'_> {
    fn advance(&mut self, in_use: &BTreeMap<HostId, HostCapacity>) {
        let next = self.others.find(|(id, _)| !in_use.contains_key(id));
        self.first = next.map(|(id, host)| (host.machines().len(), id));
    }
}

impl HostCapacity {
    pub(super) fn has_room(&self) -> bool {
        self.machines < MACHINES_PER_HOST_MAX && self.room.has_room_for(self.size)
    }

    pub(super) fn rank(&self, id: HostId) -> HostRank {
        (self.of_set, self.machines, id)
    }

    pub(super) fn add(&mut self, group: GroupIndex, place: (u16, u16)) {
        self.of_set += 1;
        self.machines += 1;
        self.room = self.room.with(self.size);
        self.domains.entry(group).or_insert(place);
    }
}
