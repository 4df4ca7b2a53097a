//! Where new machines go: over update domains, fault domains and hosts.
//!
//! An instance goes into the update domain that has the fewest of its placement group, on the host that has the fewest of its
//! scale set; of equals, on the one with the fewest machines, then the one that joined first. A host takes one update domain of a
//! placement group, so where hosts are few, not every update domain is used. The machines that one host has of a placement
//! group share a fault domain: they fail together. A machine of an availability set or a cloud service goes where an instance
//! of a scale set with one placement group would, a standalone one where there are the fewest machines.
//!
//! Where zones are named, the one that has the fewest of the scale set comes first.
//!
//! Only hosts are looked at that the rules would let a new machine join: healthy, without announced work, with room.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::limits::{
    FAULT_DOMAINS_MAX, MACHINES_PER_HOST_MAX, MACHINES_PER_PLACEMENT_GROUP_MAX, MACHINES_PER_TENANT_MAX,
    UPDATE_DOMAINS_MAX,
};
use forewarn_lifecycle::{Cluster, Health, HostId, MachineId, Orchestration, ScaleSet, TenantId, Zone};

use crate::placement::bounds::Bounds;
use crate::placement::instances::leaving;

/// Update domains over which a scale set is spread; more, if it has instances in more.
pub const UPDATE_DOMAINS: u16 = 5;

/// Fault domains over which a scale set is spread; more, if it has instances in more.
pub const FAULT_DOMAINS: u16 = 3;

/// Where a machine goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host.
    pub host: HostId,
    /// The update domain.
    pub update_domain: u16,
    /// The fault domain.
    pub fault_domain: u16,
}

/// What is said of where a single machine is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The availability set or cloud service that it joins; none: it is standalone.
    pub tenant: Option<TenantId>,
    /// The zone; any, if not said.
    pub zone: Option<Zone>,
    /// Update domains over which the tenant is spread. There is always one.
    pub update_domains: u16,
    /// Fault domains over which the tenant is spread. There is always one.
    pub fault_domains: u16,
}

/// Where a new machine goes; nowhere, if no host can take it. Whether its tenant may have it is for the rules to say.
#[must_use]
pub fn place_machine(cluster: &Cluster, wanted: &Whereabouts) -> Option<Place> {
    let bounds = Bounds { zones: wanted.zone.into_iter().collect(), ..Bounds::default() };
    let subject = Subject {
        groups: wanted.tenant.as_slice(),
        group_max: usize::MAX,
        update_domains: wanted.update_domains.clamp(1, UPDATE_DOMAINS_MAX),
        fault_domains: wanted.fault_domains.clamp(1, FAULT_DOMAINS_MAX),
    };
    let leaving = leaving(cluster);
    let members = subject.members(cluster, &leaving);
    Spread::of(cluster, &subject, members, &bounds, &leaving).places(1).pop()
}

/// What is spread: tenants, one after the other, and over how many domains.
struct Subject<'a> {
    groups: &'a [TenantId],
    group_max: usize,
    update_domains: u16,
    fault_domains: u16,
}

impl Subject<'_> {
    fn members(&self, cluster: &Cluster, leaving: &BTreeSet<MachineId>) -> Vec<Members> {
        self.groups.iter().map(|id| members(cluster, *id, leaving)).collect()
    }
}

/// A host that can take instances.
#[derive(Clone, Debug, Default)]
struct Room {
    /// Its zone, if that matters.
    zone: Option<Zone>,
    /// Instances of the scale set.
    of_set: usize,
    /// All machines.
    machines: usize,
    /// The domains of each placement group that is here.
    domains: BTreeMap<Group, (u16, u16)>,
}

/// A placement group, by its place among those of the scale set.
type Group = usize;

/// The instances of a placement group.
#[derive(Clone, Debug, Default)]
struct Members {
    /// All, those on their way out included.
    count: usize,
    /// How many will stay, by domain.
    update_domains: BTreeMap<u16, usize>,
    fault_domains: BTreeMap<u16, usize>,
    zones: BTreeMap<Option<Zone>, usize>,
}

/// A scale set, or another tenant, that grows.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    rooms: BTreeMap<HostId, Room>,
    groups: Vec<Members>,
    group_max: usize,
    update_domains: u16,
    fault_domains: u16,
}

/// Hosts in the order in which they are taken.
type Queue = BTreeSet<Turn>;

/// When a host has its turn: how many it has of the scale set, how many machines at all, and which it is.
type Turn = (usize, usize, HostId);

/// The hosts that a placement group may use, by zone, where that matters.
#[derive(Clone, Debug, Default)]
struct Queues {
    free: BTreeMap<Option<Zone>, Queue>,
    /// Those that have an update domain of it.
    taken: BTreeMap<(Option<Zone>, u16), Queue>,
}

impl Spread {
    /// A scale set as it is, or one that is new. Those who are leaving hold their places, and do not count otherwise.
    pub(crate) fn new(
        cluster: &Cluster,
        (orchestration, set): (Orchestration, Option<&ScaleSet>),
        bounds: &Bounds,
        leaving: &BTreeSet<MachineId>,
    ) -> Self {
        let group_max = match orchestration {
            Orchestration::Uniform => MACHINES_PER_PLACEMENT_GROUP_MAX,
            Orchestration::Flexible => MACHINES_PER_TENANT_MAX,
        };
        let groups = set.map_or(&[][..], |set| &set.groups);
        let (update_domains, fault_domains) = (UPDATE_DOMAINS, FAULT_DOMAINS);
        let mut subject = Subject { groups, group_max, update_domains, fault_domains };
        let members = subject.members(cluster, leaving);
        let count = |of: fn(&Members) -> &BTreeMap<u16, usize>, least: u16| {
            let used = members.iter().filter_map(|group| of(group).keys().next_back());
            used.max().map_or(least, |last| least.max(last.saturating_add(1)))
        };
        subject.update_domains = count(|group| &group.update_domains, update_domains);
        subject.fault_domains = match bounds.fault_domains {
            Some(wanted) => wanted.clamp(1, FAULT_DOMAINS_MAX),
            None => count(|group| &group.fault_domains, fault_domains),
        };
        Self::of(cluster, &subject, members, bounds, leaving)
    }

    fn of(
        cluster: &Cluster,
        subject: &Subject,
        groups: Vec<Members>,
        bounds: &Bounds,
        leaving: &BTreeSet<MachineId>,
    ) -> Self {
        Self {
            rooms: rooms(cluster, subject.groups, bounds, leaving),
            groups,
            group_max: subject.group_max,
            update_domains: subject.update_domains,
            fault_domains: subject.fault_domains,
        }
    }

    /// Places for that many more; fewer, if there are no more.
    pub(crate) fn places(&mut self, count: usize) -> Vec<Place> {
        let mut places = Vec::new();
        while places.len() < count {
            // As the rules do: the first placement group with room, or a new one.
            let group = self.groups.iter().position(|group| group.count < self.group_max);
            let group = group.unwrap_or_else(|| {
                self.groups.push(Members::default());
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

    /// Places for that many more of one placement group.
    fn fill(&mut self, group: Group, count: usize) -> Vec<Place> {
        let mut queues = Queues::default();
        for (id, room) in self.rooms.iter().filter(|(_, room)| room.has_room()) {
            queues.add(room, room.domains.get(&group).map(|(update_domain, _)| *update_domain), *id);
        }
        let mut places = Vec::new();
        while places.len() < count {
            let Some((zone, update_domain, turn)) = self.next(group, &queues) else { break };
            queues.remove(zone, update_domain, turn);
            let (_, _, host) = turn;
            let fault_domain = self.fault_domain(group, host);
            let place = Place { host, update_domain, fault_domain };
            self.groups[group].add(update_domain, fault_domain, zone);
            if let Some(room) = self.rooms.get_mut(&host) {
                room.add(group, place);
                if room.has_room() {
                    queues.add(room, Some(update_domain), host);
                }
            }
            places.push(place);
        }
        places
    }

    /// Of the zones that have a host for one more, the one that has the fewest; there, the update domain that has the fewest.
    fn next(&self, group: Group, queues: &Queues) -> Option<(Option<Zone>, u16, Turn)> {
        let counts = &self.groups[group].update_domains;
        let mut domains: Vec<_> = (0..self.update_domains).collect();
        domains.sort_by_key(|domain| counts.get(domain).copied().unwrap_or(0));
        let in_zone = |zone: Option<Zone>| -> usize {
            self.groups.iter().filter_map(|members| members.zones.get(&zone)).sum()
        };
        let mut zones: Vec<_> = queues.zones().into_iter().collect();
        zones.sort_by_key(|zone| in_zone(*zone));
        zones.into_iter().find_map(|zone| {
            domains.iter().find_map(|domain| Some((zone, *domain, queues.first(zone, *domain)?)))
        })
    }

    /// The fault domain that the placement group has on that host, or the one that has the fewest of it.
    fn fault_domain(&self, group: Group, host: HostId) -> u16 {
        let known = self.rooms.get(&host).and_then(|room| room.domains.get(&group));
        let counts = &self.groups[group].fault_domains;
        let fewest = (0..self.fault_domains).min_by_key(|domain| counts.get(domain).copied().unwrap_or(0));
        known.map_or(fewest.unwrap_or(0), |(_, fault_domain)| *fault_domain)
    }
}

impl Room {
    fn has_room(&self) -> bool {
        self.machines < MACHINES_PER_HOST_MAX
    }

    /// When its turn is.
    fn turn(&self, id: HostId) -> (usize, usize, HostId) {
        (self.of_set, self.machines, id)
    }

    fn add(&mut self, group: Group, place: Place) {
        self.of_set += 1;
        self.machines += 1;
        self.domains.entry(group).or_insert((place.update_domain, place.fault_domain));
    }
}

impl Queues {
    fn add(&mut self, room: &Room, update_domain: Option<u16>, id: HostId) {
        let queue = match update_domain {
            Some(update_domain) => self.taken.entry((room.zone, update_domain)).or_default(),
            None => self.free.entry(room.zone).or_default(),
        };
        queue.insert(room.turn(id));
    }

    fn remove(&mut self, zone: Option<Zone>, update_domain: u16, turn: Turn) {
        self.free.entry(zone).or_default().remove(&turn);
        self.taken.entry((zone, update_domain)).or_default().remove(&turn);
    }

    fn zones(&self) -> BTreeSet<Option<Zone>> {
        self.free.keys().copied().chain(self.taken.keys().map(|(zone, _)| *zone)).collect()
    }

    /// The host that is next for that update domain.
    fn first(&self, zone: Option<Zone>, update_domain: u16) -> Option<Turn> {
        let own = self.taken.get(&(zone, update_domain)).and_then(Queue::first);
        let free = self.free.get(&zone).and_then(Queue::first);
        own.into_iter().chain(free).min().copied()
    }
}

impl Members {
    fn add(&mut self, update_domain: u16, fault_domain: u16, zone: Option<Zone>) {
        self.count += 1;
        *self.zones.entry(zone).or_default() += 1;
        *self.update_domains.entry(update_domain).or_default() += 1;
        *self.fault_domains.entry(fault_domain).or_default() += 1;
    }
}

fn members(cluster: &Cluster, group: TenantId, leaving: &BTreeSet<MachineId>) -> Members {
    let machines = cluster.tenant(group).map_or(&[][..], |tenant| tenant.machines());
    let mut members = Members::default();
    for (_, machine) in machines
        .iter()
        .filter_map(|id| Some((id, cluster.machine(*id)?)))
        .filter(|(id, _)| !leaving.contains(id))
    {
        let zone = cluster.host(machine.host).and_then(|host| host.zone);
        members.add(machine.update_domain.0, machine.fault_domain.0, zone);
    }
    Members { count: machines.len(), ..members }
}

/// The hosts that the rules would let a new machine join.
fn rooms(
    cluster: &Cluster,
    groups: &[TenantId],
    bounds: &Bounds,
    leaving: &BTreeSet<MachineId>,
) -> BTreeMap<HostId, Room> {
    let mut rooms = BTreeMap::new();
    for (id, host) in cluster.hosts() {
        let is_open = host.health == Health::Healthy && host.work.is_none();
        if !is_open || !bounds.admit(id, host.zone) {
            continue;
        }
        let zone = host.zone.filter(|_| !bounds.zones.is_empty());
        let mut room = Room { zone, machines: host.machines().len(), ..Room::default() };
        for (machine_id, machine) in host.machines().iter().filter_map(|id| Some((id, cluster.machine(*id)?)))
        {
            let Some(group) = groups.iter().position(|group| *group == machine.tenant) else { continue };
            room.of_set += usize::from(!leaving.contains(machine_id));
            room.domains.entry(group).or_insert((machine.update_domain.0, machine.fault_domain.0));
        }
        rooms.insert(id, room);
    }
    rooms
}

#[cfg(test)]
#[path = "spread/tests.rs"]
mod tests;
