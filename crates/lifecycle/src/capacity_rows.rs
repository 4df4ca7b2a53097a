//! Sizes and capacities as rows, and back. The amounts in use are rebuilt.

use forewarn_types::{HostId, MachineId, ScaleSetId};

use crate::capacity::{Capacities, HostRoom, Size};
use crate::cluster::Cluster;
use crate::rows::{BadRows, Row, new};

impl Capacities {
    /// A row for each size and each capacity: a fleet without them has none.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = Row> + Send + 'static {
        let limited = self.rooms.into_iter().filter(|(_, room)| !room.capacity.is_none());
        let capacities = limited.map(|(id, room)| Row::Capacity(id, room.capacity));
        let sizes = self.sizes.into_iter().map(|(id, size)| Row::MachineSize(id, size));
        let instances = self.instance_sizes.into_iter().map(|(id, size)| Row::InstanceSize(id, size));
        capacities.chain(sizes).chain(instances)
    }
}

impl Cluster {
    pub(crate) fn restore_capacity(&mut self, id: HostId, capacity: Size) -> Result<(), BadRows> {
        self.hosts.get(&id).ok_or(BadRows("a capacity has no host"))?;
        new(self.capacities.rooms.get(&id))?;
        self.capacities.set_room(id, HostRoom { capacity, ..HostRoom::default() });
        Ok(())
    }

    pub(crate) fn restore_size(&mut self, id: MachineId, size: Size) -> Result<(), BadRows> {
        self.machines.get(&id).ok_or(BadRows("a size has no machine"))?;
        new(self.capacities.sizes.insert(id, size).as_ref())
    }

    pub(crate) fn restore_instance_size(&mut self, id: ScaleSetId, size: Size) -> Result<(), BadRows> {
        self.scale_sets.get(&id).ok_or(BadRows("a size has no scale set"))?;
        new(self.capacities.instance_sizes.insert(id, size).as_ref())
    }

    /// Rebuilds the amounts in use and the lists by them, after the last row.
    pub(crate) fn restore_rooms(&mut self) {
        let sized: Vec<_> = self.capacities.sizes.iter().map(|(id, size)| (*id, *size)).collect();
        for (id, size) in sized {
            for host in self.hosts_with(id) {
                if self.takes_room(id, host) && self.capacities.taken.insert((host, id), size).is_none() {
                    let room = self.room_of(host).with(size);
                    self.capacities.set_room(host, room);
                }
            }
        }
        self.relist_rooms();
    }
}
