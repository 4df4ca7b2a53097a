//! Sizes and capacities, and the reasons why no host has room for a machine.
//!
//! A declared size or capacity is a fact: it is recorded even if the machines of a host then take more than the host
//! has. Only the choice of a host respects capacities.

use forewarn_types::{HostId, MachineId, ScaleSetId, Zone};

use super::draft::Draft;
use crate::capacity::{HostRoom, Size, cpu_count, memory_text};
use crate::change::Change;
use crate::cluster::Cluster;
use crate::fleet::{Health, Host, HostAttention, Machine, Power};
use crate::limits::MACHINES_PER_HOST_MAX;
use crate::maintenance::Plan;
use crate::placement::{Move, Moves};
use crate::refusal::Refusal;
use crate::tenant::{Shape, Tenant};

/// Hosts that a message names.
const LISTED_HOSTS_MAX: usize = 3;

/// Hosts that are examined for a message.
const EXAMINED_HOSTS_MAX: usize = 1_000;

impl Draft<'_> {
    pub(super) fn change_capacity(&mut self, id: HostId, capacity: Size) -> Result<(), Refusal> {
        self.cluster.known_host(id)?;
        if self.cluster.room_of(id).capacity != capacity {
            self.changes.push(Change::CapacityChanged { host: id, capacity });
        }
        Ok(())
    }

    /// Changes the size of a machine that is not an instance of a scale set.
    pub(super) fn resize(&mut self, id: MachineId, size: Size) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        if let Shape::PlacementGroup(_) = self.cluster.known_tenant(machine.tenant)?.shape {
            return Err(Refusal::PartOfScaleSet(machine.name.clone()));
        }
        self.resize_machine(id, size);
        Ok(())
    }

    /// Changes the size of all instances of a scale set.
    pub(super) fn resize_instances(&mut self, id: ScaleSetId, size: Size) -> Result<(), Refusal> {
        let set = self.cluster.known_scale_set(id)?;
        if self.cluster.instance_size(id) != size {
            self.changes.push(Change::InstancesResized { scale_set: id, size });
        }
        let groups = set.groups.iter().filter_map(|group| self.cluster.tenant(*group));
        let instances: Vec<_> = groups.flat_map(Tenant::machines).copied().collect();
        instances.into_iter().for_each(|machine| self.resize_machine(machine, size));
        Ok(())
    }

    fn resize_machine(&mut self, machine: MachineId, size: Size) {
        if self.cluster.size_of(machine) != size {
            self.changes.push(Change::MachineResized { machine, size });
        }
    }

    /// The refusal for a machine that has to go to another host and cannot.
    pub(super) fn no_host(&self, id: MachineId, avoid: &[HostId]) -> Refusal {
        self.cluster.no_host_for(id, avoid, &self.moves)
    }

    /// The refusal for work that would move several machines, of which one finds no host.
    pub(super) fn no_host_in(&self, plan: &Plan, stuck: MachineId) -> Refusal {
        self.cluster.lack_of_room_in(plan).unwrap_or_else(|| self.no_host(stuck, plan.cause.hosts()))
    }

    /// The first of these machines that cannot be moved elsewhere together with those before it. Moves of a former call
    /// stay; the caller drops them.
    pub(super) fn stuck_machine(&mut self, machines: Vec<MachineId>, avoid: &[HostId]) -> Option<MachineId> {
        if !self.cluster.has_capacities() {
            return machines.into_iter().find(|machine| !self.can_leave(*machine, avoid));
        }
        machines.into_iter().find(|machine| !self.moves.add_if_possible(self.cluster, *machine, avoid))
    }
}

impl Moves {
    /// Adds a move of a machine to a host that can take it. Returns true if there is one.
    fn add_if_possible(&mut self, cluster: &Cluster, id: MachineId, avoid: &[HostId]) -> bool {
        let Some(machine) = cluster.machine(id) else { return true };
        let Some(to) = cluster.find_host_for((id, machine), avoid, self) else { return false };
        let Machine { tenant, update_domain, .. } = *machine;
        self.add(Move { machine: id, tenant, update_domain, to, size: cluster.size_of(id) });
        true
    }
}

impl Cluster {
    /// The reason why work is held for lack of a host, if hosts lack room.
    #[must_use]
    pub fn lack_of_room(&self, plan: &Plan) -> Option<String> {
        self.lack_of_room_in(plan).and_then(|refusal| refusal.lack_of_room())
    }

    /// The reason why the machines of a host cannot all leave it, if other hosts lack room.
    #[must_use]
    pub fn lack_of_room_beside(&self, host: HostId) -> Option<String> {
        let mut moves = Moves::default();
        let mut machines = self.machines_on(host).into_iter().filter(|_| self.has_capacities());
        let stuck = machines.find(|id| !moves.add_if_possible(self, *id, &[host]))?;
        self.no_host_for(stuck, &[host], &moves).lack_of_room()
    }

    fn lack_of_room_in(&self, plan: &Plan) -> Option<Refusal> {
        let mut moves = Moves::default();
        let mut concerned =
            plan.machines().filter(|id| self.has_capacities() && self.concerns(&plan.cause, *id));
        let avoid = plan.cause.hosts();
        let stuck = concerned.find(|id| !moves.add_if_possible(self, *id, avoid))?;
        Some(self.no_host_for(stuck, avoid, &moves))
    }

    fn no_host_for(&self, id: MachineId, avoid: &[HostId], moves: &Moves) -> Refusal {
        let Some(machine) = self.machine(id) else { return Refusal::NoSuchMachine };
        let (name, size) = (machine.name.clone(), self.size_of(id));
        if !self.has_capacities() || size.is_none() {
            return Refusal::NoHost(name);
        }
        let zone = self.host(machine.host).and_then(|host| host.zone);
        // A deallocated machine could have been started on its own host.
        let is_other = |id: HostId| id != machine.host || machine.power == Power::Deallocated;
        let others = self.examined_hosts(zone).into_iter().filter_map(|id| Some((id, self.host(id)?)));
        let mut reasons = Vec::new();
        for (id, host) in others.filter(|(id, _)| is_other(*id) && avoid.binary_search(id).is_err()) {
            let room = self.room_with(id, moves);
            reasons.push((room.has_room_for(size), self.reason_against(machine, (id, host), (room, size))));
        }
        if reasons.iter().all(|(has_room, _)| *has_room) {
            return Refusal::NoHost(name);
        }
        // Hosts that lack room come first.
        reasons.sort_by_key(|(has_room, _)| *has_room);
        let others = reasons.len().saturating_sub(LISTED_HOSTS_MAX);
        let named = reasons.into_iter().take(LISTED_HOSTS_MAX).map(|(_, reason)| reason);
        let mut hosts = named.collect::<Vec<_>>().join(", ");
        if others > 0 {
            let least = if self.hosts.len() > EXAMINED_HOSTS_MAX { "at least " } else { "" };
            hosts = format!("{hosts}, and {least}{others} more cannot take it either");
        }
        Refusal::NoRoom { machine: name, size, hosts }
    }

    /// The hosts of a zone that a message is about; in a large cluster only open ones, those with the most free CPUs.
    fn examined_hosts(&self, zone: Option<Zone>) -> Vec<HostId> {
        if self.hosts.len() > EXAMINED_HOSTS_MAX {
            return self.capacities.with_cpus(zone, 0).take(EXAMINED_HOSTS_MAX).collect();
        }
        self.hosts().filter(|(_, host)| host.zone == zone).map(|(id, _)| id).collect()
    }

    /// The reason why a host cannot take a machine.
    fn reason_against(
        &self,
        machine: &Machine,
        (id, host): (HostId, &Host),
        (room, size): (HostRoom, Size),
    ) -> String {
        let name = &host.name;
        match host.health {
            Health::Failed => return format!("{name} has failed"),
            Health::Degraded => return format!("{name} is degraded"),
            Health::Healthy => {}
        }
        if host.attention == HostAttention::Needed {
            return format!("{name} needs attention");
        }
        if host.work.is_some() {
            return format!("{name} has planned work");
        }
        if !room.has_room_for(size) {
            return self.free_text(id, room, size);
        }
        if host.machines().len() >= MACHINES_PER_HOST_MAX {
            return format!("{name} has {MACHINES_PER_HOST_MAX} machines");
        }
        match self.other_update_domain(host, machine.tenant, machine.update_domain) {
            Some(_) => format!("{name} has another update domain of the tenant"),
            None => format!("{name} is not a candidate"),
        }
    }

    /// The part of a host that is free, as far as a machine of that size needs it: `h2 has 2 CPUs free`.
    pub(crate) fn free_text(&self, id: HostId, room: HostRoom, size: Size) -> String {
        let name = self.host(id).map(|host| host.name.to_string()).unwrap_or_default();
        let free = room.free();
        let cpus = (u32::from(size.cpus) > free.cpus).then(|| match free.cpus {
            0 => format!("none of {} free", cpu_count(room.capacity.cpus.into())),
            some => format!("{} of {} free", some, cpu_count(room.capacity.cpus.into())),
        });
        let total = memory_text(room.capacity.memory_mib.into());
        let memory = (u64::from(size.memory_mib) > free.memory_mib).then(|| match free.memory_mib {
            0 => format!("none of {total} free"),
            some => format!("{} of {total} free", memory_text(some)),
        });
        let lacking: Vec<_> = cpus.into_iter().chain(memory).collect();
        format!("{name} has {}", lacking.join(" and "))
    }
}
