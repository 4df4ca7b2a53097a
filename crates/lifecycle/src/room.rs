//! Room on hosts: sizes and capacities of a cluster, open hosts with room, and the room that a machine takes.

use forewarn_types::{HostId, MachineId, ScaleSetId, Zone};

use crate::capacity::{HostRoom, Size};
use crate::cluster::Cluster;
use crate::fleet::{Host, Power};
use crate::paged::{PagedMap, PagedSet};

/// Hosts with enough CPUs that may lack memory, and hosts with enough memory that may lack CPUs, before a search ends.
/// A host that has enough of both is found if no more than that many hosts have more free CPUs and not enough memory, or
/// more free memory and not enough CPUs.
pub(crate) const HOSTS_WITHOUT_ROOM_MAX: usize = 250;

impl Cluster {
    /// Returns true if a host has a capacity.
    #[must_use]
    pub fn has_capacities(&self) -> bool {
        self.capacities.has_limits()
    }

    /// The size of a machine; [`Size::NONE`] if it has none.
    #[must_use]
    pub fn size_of(&self, machine: MachineId) -> Size {
        if self.capacities.sizes.is_empty() {
            return Size::NONE;
        }
        self.capacities.sizes.get(&machine).copied().unwrap_or_default()
    }

    /// The size of the instances of a scale set; [`Size::NONE`] if they have none.
    #[must_use]
    pub fn instance_size(&self, scale_set: ScaleSetId) -> Size {
        if self.capacities.instance_sizes.is_empty() {
            return Size::NONE;
        }
        self.capacities.instance_sizes.get(&scale_set).copied().unwrap_or_default()
    }

    /// The capacity of a host, and the part of it that is in use.
    #[must_use]
    pub fn room_of(&self, host: HostId) -> HostRoom {
        if self.capacities.rooms.is_empty() {
            return HostRoom::default();
        }
        self.capacities.rooms.get(&host).copied().unwrap_or_default()
    }

    /// Open hosts of a zone with room for a machine of that size: the most free CPUs first, then the most free memory.
    /// Some hosts are given twice. See [`HOSTS_WITHOUT_ROOM_MAX`] for the end of the search.
    pub fn open_hosts_with_room(
        &self,
        zone: Option<Zone>,
        size: Size,
    ) -> impl Iterator<Item = (HostId, &Host)> {
        let by_cpus = self.only_with_room(self.capacities.with_cpus(zone, size.cpus), size);
        let by_memory = self.only_with_room(self.capacities.with_memory(zone, size.memory_mib), size);
        by_cpus.chain(by_memory).filter_map(|id| Some((id, self.host(id)?)))
    }

    /// The same for a new machine: the fewest machines first, as without sizes. After many hosts without room, the
    /// others follow by what is free on them.
    pub fn open_hosts_by_load_with_room(
        &self,
        zone: Option<Zone>,
        size: Size,
    ) -> impl Iterator<Item = (HostId, &Host)> {
        let by_load = self.open_hosts_by_load(zone).map(|(id, _)| id);
        let by_load = self.only_with_room(by_load, size).filter_map(|id| Some((id, self.host(id)?)));
        by_load.chain(self.open_hosts_with_room(zone, size))
    }

    fn only_with_room(
        &self,
        hosts: impl Iterator<Item = HostId>,
        size: Size,
    ) -> impl Iterator<Item = HostId> {
        hosts
            .map(move |id| (id, self.room_of(id).has_room_for(size)))
            .scan(0, |lacking, (id, has_room)| {
                *lacking += usize::from(!has_room);
                (*lacking <= HOSTS_WITHOUT_ROOM_MAX).then_some((id, has_room))
            })
            .filter_map(|(id, has_room)| has_room.then_some(id))
    }

    /// Lists a host by what is free on it, or no longer, as its state requires.
    pub(crate) fn relist_room(&mut self, id: HostId) {
        if !self.capacities.has_limits() && self.capacities.listed.is_empty() {
            return;
        }
        self.capacities.unlist(id);
        let Some(host) = self.hosts.get(&id) else { return };
        if !self.capacities.has_limits() || !host.is_open() {
            return;
        }
        let (zone, free) = (host.zone, self.room_of(id).free());
        self.capacities.listed.insert(id, (zone, free));
        self.capacities.by_cpus.insert((zone, u32::MAX - free.cpus, id));
        self.capacities.by_memory.insert((zone, u64::MAX - free.memory_mib, id));
    }

    /// Lists all open hosts by what is free on them, or none if no host has a capacity.
    pub(crate) fn relist_rooms(&mut self) {
        let c = &mut self.capacities;
        (c.by_cpus, c.by_memory, c.listed) = (PagedSet::new(), PagedSet::new(), PagedMap::new());
        if c.has_limits() {
            let open: Vec<_> = self.open_hosts.iter().map(|(_, id)| *id).collect();
            open.into_iter().for_each(|id| self.relist_room(id));
        }
    }

    /// The hosts on which a machine may take its size: its own, and those that it is moving to.
    pub(crate) fn hosts_with(&self, id: MachineId) -> Vec<HostId> {
        let actions = self.pending_of(id).filter_map(|pending| pending.action(id));
        let coming = actions.filter_map(|action| action.impact.destination());
        coming.chain(self.machines.get(&id).map(|machine| machine.host)).collect()
    }

    /// Returns true if a machine takes its size on a host.
    pub(crate) fn takes_room(&self, id: MachineId, on: HostId) -> bool {
        let Some(machine) = self.machines.get(&id) else { return false };
        let here = machine.host == on;
        let mut actions = self.pending_of(id).filter_map(|pending| pending.action(id));
        (here && machine.power != Power::Deallocated)
            || actions.any(|action| match action.impact.destination() {
                Some(to) => to == on,
                None => here && action.impact.starts(),
            })
    }
}
