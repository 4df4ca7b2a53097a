//! Facts about sizes and capacities.
//!
//! The first size of an object has no entry of its own: it comes with the object, or with the request that sets it.

use forewarn_lifecycle::{HostId, HostRoom, MachineId, ScaleSetId, Size};

use super::{AuditFact, FactWriter};

impl FactWriter<'_> {
    pub(super) fn capacity_changed(&self, host: HostId, capacity: Size) -> Option<AuditFact> {
        let room = self.cluster.room_of(host);
        let is_exceeded = HostRoom { capacity, ..room }.is_exceeded();
        if room.capacity.is_none() && !is_exceeded {
            return None;
        }
        let words = match (capacity.is_none(), is_exceeded) {
            (true, _) => "no longer has a capacity".to_owned(),
            (false, false) => format!("has a capacity of {capacity}"),
            (false, true) => format!("has a capacity of {capacity}, and its machines take more"),
        };
        Some(self.of_host("changed", self.host(host), &words))
    }

    pub(super) fn machine_resized(&self, machine: MachineId, size: Size) -> Option<AuditFact> {
        let was = self.cluster.size_of(machine);
        let words = format!("was resized from {was} to {size}");
        (!was.is_none()).then(|| self.of_machine("changed", machine, None, &words))
    }

    /// The end of a sentence about a machine that was moved to a host without room for it.
    pub(super) fn words_beyond_capacity(&self, machine: MachineId, to: HostId) -> &'static str {
        let room = self.cluster.room_of(to).with(self.cluster.size_of(machine));
        if room.is_exceeded() { ", and the host now has more than its capacity" } else { "" }
    }

    pub(super) fn instances_resized(&self, scale_set: ScaleSetId, size: Size) -> Option<AuditFact> {
        let was = self.cluster.instance_size(scale_set);
        let words = format!("resizes its instances from {was} to {size}");
        (!was.is_none()).then(|| self.of_scale_set("changed", scale_set, &words))
    }
}
