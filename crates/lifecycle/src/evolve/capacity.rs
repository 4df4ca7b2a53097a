//! Application of changes to sizes and capacities, and the room that machines take on hosts.
//!
//! Room that becomes free on an open host with a capacity is offered to work that waits for a host of its zone.

use forewarn_types::{HostId, MachineId, ScaleSetId};

use crate::capacity::{HostRoom, Size};
use crate::cluster::Cluster;

impl Cluster {
    pub(super) fn capacity_changed(&mut self, id: HostId, capacity: Size) {
        if self.hosts.get(&id).is_none() {
            return;
        }
        let had_limits = self.capacities.has_limits();
        let room = HostRoom { capacity, ..self.room_of(id) };
        self.capacities.set_room(id, room);
        if had_limits == self.capacities.has_limits() {
            self.relist_room(id);
        } else {
            self.relist_rooms();
        }
        self.offer_room_on(id);
    }

    pub(super) fn machine_resized(&mut self, id: MachineId, size: Size) {
        if self.machines.get(&id).is_none() {
            return;
        }
        self.set_size(id, size);
        self.refresh_rooms_of(id);
        self.recheck_work_held_for_host(id);
    }

    /// Records the size of the instances of a scale set to come.
    pub(super) fn instances_resized(&mut self, id: ScaleSetId, size: Size) {
        if size.is_none() || self.scale_sets.get(&id).is_none() {
            self.capacities.instance_sizes.remove(&id);
        } else {
            self.capacities.instance_sizes.insert(id, size);
        }
    }

    pub(super) fn set_size(&mut self, id: MachineId, size: Size) {
        if !size.is_none() {
            self.capacities.sizes.insert(id, size);
        } else if !self.capacities.sizes.is_empty() {
            self.capacities.sizes.remove(&id);
        }
    }

    /// Forgets the room of a host that has left.
    pub(super) fn forget_room(&mut self, id: HostId) {
        let had_limits = self.capacities.has_limits();
        if !self.capacities.rooms.is_empty() {
            self.capacities.set_room(id, HostRoom::default());
        }
        if had_limits != self.capacities.has_limits() {
            self.relist_rooms();
        }
        self.relist_room(id);
    }

    /// Has a machine take its size on its host and on those that it is moving to.
    pub(super) fn refresh_rooms_of(&mut self, id: MachineId) {
        if !self.capacities.sizes.is_empty() || !self.capacities.taken.is_empty() {
            self.hosts_with(id).into_iter().for_each(|host| self.refresh_room(id, host));
        }
    }

    /// Has a machine take its size on a host, or no longer, as its state requires.
    pub(crate) fn refresh_room(&mut self, id: MachineId, host: HostId) {
        if self.capacities.sizes.is_empty() && self.capacities.taken.is_empty() {
            return;
        }
        let size = self.size_of(id);
        let size = if !size.is_none() && self.takes_room(id, host) { size } else { Size::NONE };
        let taken = &mut self.capacities.taken;
        let before = if size.is_none() { taken.remove(&(host, id)) } else { taken.insert((host, id), size) };
        let before = before.unwrap_or_default();
        if before == size {
            return;
        }
        let room = self.room_of(host);
        let used = room.used.minus(before).plus(size);
        self.capacities.set_room(host, HostRoom { used, ..room });
        self.relist_room(host);
        if before.cpus > size.cpus || before.memory_mib > size.memory_mib {
            self.offer_room_on(host);
        }
    }

    /// Offers an open host with a capacity to work that waits for a host of its zone.
    fn offer_room_on(&mut self, id: HostId) {
        let Some(zone) = self.hosts.get(&id).filter(|host| host.is_open()).map(|host| host.zone) else {
            return;
        };
        if self.capacities.has_limits() {
            self.offer_host_of(zone);
        }
    }
}
