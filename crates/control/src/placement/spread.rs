//! Placement of new machines over update domains, fault domains and hosts.
//!
//! An instance goes into the update domain that has the fewest of its placement group, on the host that has the
//! fewest of its scale set; ties are broken by the fewest machines, then by the age of the host. A host takes one
//! update domain of a placement group, so where hosts are few, not every update domain is used. The machines that one
//! host has of a placement group share a fault domain: they fail together. A machine of an availability set or a
//! cloud service goes where an instance of a scale set with one placement group would, a standalone machine on the
//! host with the fewest machines.
//!
//! If zones are named, the zone with the fewest instances of the scale set comes first.
//!
//! Only hosts qualify on which the rules would admit a new machine: healthy, without announced work, with room. Hosts
//! that have no instance and get none cost nothing.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::limits::{
    FAULT_DOMAINS_MAX, MACHINES_PER_PLACEMENT_GROUP_MAX, MACHINES_PER_TENANT_MAX, UPDATE_DOMAINS_MAX,
};
use forewarn_lifecycle::{Cluster, HostId, Orchestration, ScaleSet, TenantId, Zone};

use crate::placement::bounds::Bounds;
use crate::placement::candidate_hosts::{CandidateHosts, GroupIndex, HostCapacity, HostRank};

/// Update domains over which a scale set is spread; more, if it has instances in more.
pub const UPDATE_DOMAINS: u16 = 5;

/// Fault domains over which a scale set is spread; more, if it has instances in more.
pub const FAULT_DOMAINS: u16 = 3;

/// Placement of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachinePlacement {
    pub host: HostId,
    pub update_domain: u16,
    pub fault_domain: u16,
}

/// Placement constraints of a single machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementConstraints {
    /// The availability set or cloud service that it joins; None for a standalone machine.
    pub tenant: Option<TenantId>,
    /// The zone; any zone if None.
    pub zone: Option<Zone>,
    /// Update domains over which the tenant is spread; at least one.
    pub update_domains: u16,
    /// Fault domains over which the tenant is spread; at least one.
    pub fault_domains: u16,
}

/// Places a new machine; None if no host can take it. The rules decide if its tenant may have it.
#[must_use]
pub fn place_machine(cluster: &Cluster, wanted: &PlacementConstraints) -> Option<MachinePlacement> {
    let bounds = Bounds { zones: wanted.zone.into_iter().collect(), ..Bounds::default() };
    let target = SpreadTarget {
        groups: wanted.tenant.as_slice(),
        group_max: usize::MAX,
        update_domains: wanted.update_domains.clamp(1, UPDATE_DOMAINS_MAX),
        fault_domains: wanted.fault_domains.clamp(1, FAULT_DOMAINS_MAX),
    };
    let members = target.members(cluster);
    Spread::of(cluster, &target, members, &bounds).places(1).pop()
}

/// The tenants to spread, in order, and the numbers of domains.
struct SpreadTarget<'a> {
    groups: &'a [TenantId],
    group_max: usize,
    update_domains: u16,
    fault_domains: u16,
}

impl SpreadTarget<'_> {
    fn members(&self, cluster: &Cluster) -> Vec<GroupMembers> {
        self.groups.iter().map(|id| members(cluster, *id)).collect()
    }
}

/// The instances of a placement group.
#[derive(Clone, Debug, Default)]
struct GroupMembers {
    /// All, including those that are being deleted.
    count: usize,
    /// Number of instances that remain, by domain.
    update_domains: BTreeMap<u16, usize>,
    fault_domains: BTreeMap<u16, usize>,
    zones: BTreeMap<Option<Zone>, usize>,
}

/// A scale set, or another tenant, that grows.
pub(crate) struct Spread<'a> {
    hosts: CandidateHosts<'a>,
    groups: Vec<GroupMembers>,
    group_max: usize,
    update_domains: u16,
    fault_domains: u16,
}

/// Hosts in the order of preference.
type HostQueue = BTreeSet<HostRank>;

/// The hosts in use that a placement group may use, by zone if zones are named.
#[derive(Clone, Debug, Default)]
struct GroupHosts {
    free: BTreeMap<Option<Zone>, HostQueue>,
    /// Hosts that have an update domain of the group.
    taken: BTreeMap<(Option<Zone>, u16), HostQueue>,
}

impl<'a> Spread<'a> {
    /// An existing scale set, or a new one. Instances that are being deleted hold their hosts, and count for nothing
    /// else.
    pub(crate) fn new(
        cluster: &'a Cluster,
        (orchestration, set): (Orchestration, Option<&ScaleSet>),
        bounds: &Bounds,
    ) -> Self {
        let group_max = match orchestration {
            Orchestration::Uniform => MACHINES_PER_PLACEMENT_GROUP_MAX,
            Orchestration::Flexible => MACHINES_PER_TENANT_MAX,
        };
        let groups = set.map_or(&[][..], |set| &set.groups);
        let (update_domains, fault_domains) = (UPDATE_DOMAINS, FAULT_DOMAINS);
        let mut target = SpreadTarget { groups, group_max, update_domains, fault_domains };
        let members = target.members(cluster);
        let count = |of: fn(&GroupMembers) -> &BTreeMap<u16, usize>, least: u16| {
            let used = members.iter().filter_map(|group| of(group).keys().next_back());
            used.max().map_or(least, |last| least.max(last.saturating_add(1)))
        };
        target.update_domains = count(|group| &group.update_domains, update_domains);
        target.fault_domains = match bounds.fault_domains {
            Some(wanted) => wanted.clamp(1, FAULT_DOMAINS_MAX),
            None => count(|group| &group.fault_domains, fault_domains),
        };
        Self::of(cluster, &target, members, bounds)
    }

    fn of(
        cluster: &'a Cluster,
        target: &SpreadTarget<'_>,
        groups: Vec<GroupMembers>,
        bounds: &Bounds,
    ) -> Self {
        Self {
            hosts: CandidateHosts::new(cluster, target.groups, bounds),
            groups,
            group_max: target.group_max,
            update_domains: target.update_domains,
            fault_domains: target.fault_domains,
        }
    }

    /// Places for up to that many new instances.
    pub(crate) fn places(&mut self, count: usize) -> Vec<MachinePlacement> {
        let mut places = Vec::new();
        while places.len() < count {
            // The same order as in the rules: the first placement group with room, or a new one.
            let group = self.groups.iter().position(|group| group.count < self.group_max);
            let group = group.unwrap_or_else(|| {
                self.groups.push(GroupMembers::default());
                self.groups.len() - 1
            });
            let room = self.group_max - self.groups[group].count;
            let wanted = room.min(count - places.len());
            let found = self.fill(group, wanted);
            let is_full = found.len() < wanted;
            places.extend(found);
            if is_full {
                break;
            }
        }
        places
    }

    /// Places for up to that many new instances of one placement group.
    fn fill(&mut self, group: GroupIndex, count: usize) -> Vec<MachinePlacement> {
        let mut queues = GroupHosts::default();
        for (id, room) in self.hosts.in_use().filter(|(_, room)| room.has_room()) {
            queues.add(room, room.domains.get(&group).map(|(update_domain, _)| *update_domain), id);
        }
        let mut places = Vec::new();
        while places.len() < count {
            let Some((zone, update_domain, turn)) = self.next(group, &queues) else { break };
            queues.remove(zone, update_domain, turn);
            let (_, _, host) = turn;
            let fault_domain = self.fault_domain(group, host);
            let place = MachinePlacement { host, update_domain, fault_domain };
            self.groups[group].add(update_domain, fault_domain, zone);
            if let Some(room) = self.hosts.take(zone, host) {
                room.add(group, (update_domain, fault_domain));
                if room.has_room() {
                    queues.add(room, Some(update_domain), host);
                }
            }
            places.push(place);
        }
        places
    }

    /// Takes the emptiest zone that has a host, and in it the emptiest update domain.
    fn next(&self, group: GroupIndex, queues: &GroupHosts) -> Option<(Option<Zone>, u16, HostRank)> {
        let counts = &self.groups[group].update_domains;
        let mut domains: Vec<_> = (0..self.update_domains).collect();
        domains.sort_by_key(|domain| counts.get(domain).copied().unwrap_or(0));
        let in_zone = |zone: Option<Zone>| -> usize {
            self.groups.iter().filter_map(|members| members.zones.get(&zone)).sum()
        };
        let zones: BTreeSet<_> = queues.zones().chain(self.hosts.zones()).collect();
        let mut zones: Vec<_> = zones.into_iter().collect();
        zones.sort_by_key(|zone| in_zone(*zone));
        zones.into_iter().find_map(|zone| {
            let unused = self.hosts.first_unused(zone);
            domains.iter().find_map(|domain| {
                let rank = queues.first(zone, *domain).into_iter().chain(unused).min()?;
                Some((zone, *domain, rank))
            })
        })
    }

    /// The fault domain that the placement group has on that host, or its emptiest one.
    fn fault_domain(&self, group: GroupIndex, host: HostId) -> u16 {
        let known = self.hosts.get(host).and_then(|room| room.domains.get(&group));
        let counts = &self.groups[group].fault_domains;
        let fewest = (0..self.fault_domains).min_by_key(|domain| counts.get(domain).copied().unwrap_or(0));
        known.map_or(fewest.unwrap_or(0), |(_, fault_domain)| *fault_domain)
    }
}

impl GroupHosts {
    fn add(&mut self, room: &HostCapacity, update_domain: Option<u16>, id: HostId) {
        let queue = match update_domain {
            Some(update_domain) => self.taken.entry((room.zone, update_domain)).or_default(),
            None => self.free.entry(room.zone).or_default(),
        };
        queue.insert(room.rank(id));
    }

    fn remove(&mut self, zone: Option<Zone>, update_domain: u16, turn: HostRank) {
        self.free.entry(zone).or_default().remove(&turn);
        self.taken.entry((zone, update_domain)).or_default().remove(&turn);
    }

    fn zones(&self) -> impl Iterator<Item = Option<Zone>> {
        self.free.keys().copied().chain(self.taken.keys().map(|(zone, _)| *zone))
    }

    /// The next host in use for that update domain.
    fn first(&self, zone: Option<Zone>, update_domain: u16) -> Option<HostRank> {
        let own = self.taken.get(&(zone, update_domain)).and_then(HostQueue::first);
        let free = self.free.get(&zone).and_then(HostQueue::first);
        own.into_iter().chain(free).min().copied()
    }
}

impl GroupMembers {
    fn add(&mut self, update_domain: u16, fault_domain: u16, zone: Option<Zone>) {
        self.count += 1;
        *self.zones.entry(zone).or_default() += 1;
        *self.update_domains.entry(update_domain).or_default() += 1;
        *self.fault_domains.entry(fault_domain).or_default() += 1;
    }
}

fn members(cluster: &Cluster, group: TenantId) -> GroupMembers {
    let machines = cluster.tenant(group).map_or(&[][..], |tenant| tenant.machines());
    let mut members = GroupMembers::default();
    for (_, machine) in machines
        .iter()
        .filter_map(|id| Some((id, cluster.machine(*id)?)))
        .filter(|(id, _)| !cluster.is_leaving(**id))
    {
        let zone = cluster.host(machine.host).and_then(|host| host.zone);
        members.add(machine.update_domain.0, machine.fault_domain.0, zone);
    }
    GroupMembers { count: machines.len(), ..members }
}
