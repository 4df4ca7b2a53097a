//! CPUs and memory: sizes of machines, capacities of hosts, and the part of them that is in use.
//!
//! A host without a capacity has no limit, and a machine without a size takes nothing. A machine takes its size on its
//! host unless it is deallocated, and on the host that it is moving to or being started on. The amounts in use are kept
//! with every change, never summed for a decision.
//!
//! Sizes and capacities are apart from machines and hosts: a fleet without them takes no memory for them and no time.
//! As soon as one host has a capacity, all open hosts are also listed by what is free on them, the most first.

use std::fmt;

use forewarn_types::{HostId, MachineId, ScaleSetId, Zone};
use serde::{Deserialize, Serialize};

use crate::paged::{PagedMap, PagedSet};

/// CPUs and memory: the size of a machine, or the capacity of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Number of CPUs. 0 if it is not known: a machine takes none, a host has no limit.
    pub cpus: u16,
    /// Memory in MiB. 0 if it is not known, as with CPUs.
    pub memory_mib: u32,
}

/// CPUs and memory of several machines, or what is free on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// The capacity of a host, and the part of it that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostRoom {
    /// The capacity; [`Size::NONE`] if the host has no limit.
    pub capacity: Size,
    /// The sizes of its machines, including those that are moving here or away.
    pub used: Amount,
}

/// Sizes, capacities, and the indexes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capacities {
    /// The machines with a size.
    pub(crate) sizes: PagedMap<MachineId, Size>,
    /// The scale sets whose instances have a size.
    pub(crate) instance_sizes: PagedMap<ScaleSetId, Size>,
    /// The hosts that have a capacity, or machines with a size.
    pub(crate) rooms: PagedMap<HostId, HostRoom>,
    /// The size that a machine takes on a host.
    pub(crate) taken: PagedMap<(HostId, MachineId), Size>,
    /// The number of hosts with a capacity.
    pub(crate) limited_hosts: usize,
    /// Open hosts by zone, the most free CPUs first.
    pub(crate) by_cpus: PagedSet<(Option<Zone>, u32, HostId)>,
    /// Open hosts by zone, the most free memory first.
    pub(crate) by_memory: PagedSet<(Option<Zone>, u64, HostId)>,
    /// The place of each open host in these lists.
    pub(crate) listed: PagedMap<HostId, (Option<Zone>, Amount)>,
}

impl Size {
    /// No size, or no capacity.
    pub const NONE: Self = Self { cpus: 0, memory_mib: 0 };

    /// Returns true if neither CPUs nor memory are known.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// `4 CPUs and 8 GiB`, without what is not known.
impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = (self.cpus > 0).then(|| cpu_count(self.cpus.into()));
        let memory = (self.memory_mib > 0).then(|| memory_text(self.memory_mib.into()));
        match (cpus, memory) {
            (Some(cpus), Some(memory)) => write!(out, "{cpus} and {memory}"),
            (Some(one), None) | (None, Some(one)) => out.write_str(&one),
            (None, None) => out.write_str("nothing"),
        }
    }
}

/// A number of CPUs, in words.
pub(crate) fn cpu_count(cpus: u32) -> String {
    format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" })
}

/// Memory in the largest unit that has a whole number of it.
///
/// ```
/// assert_eq!(forewarn_lifecycle::memory_text(8 * 1024), "8 GiB");
/// assert_eq!(forewarn_lifecycle::memory_text(1536), "1536 MiB");
/// ```
#[must_use]
pub fn memory_text(mib: u64) -> String {
    if mib > 0 && mib.is_multiple_of(1024) { format!("{} GiB", mib / 1024) } else { format!("{mib} MiB") }
}

impl Amount {
    /// Returns true if it is nothing.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn plus(self, size: Size) -> Self {
        Self {
            cpus: self.cpus.saturating_add(size.cpus.into()),
            memory_mib: self.memory_mib.saturating_add(size.memory_mib.into()),
        }
    }

    pub(crate) fn minus(self, size: Size) -> Self {
        Self {
            cpus: self.cpus.saturating_sub(size.cpus.into()),
            memory_mib: self.memory_mib.saturating_sub(size.memory_mib.into()),
        }
    }
}

impl HostRoom {
    /// The part of the capacity that is free. Without a limit it is the greatest number.
    #[must_use]
    pub fn free(self) -> Amount {
        let (cpus, memory) = (u32::from(self.capacity.cpus), u64::from(self.capacity.memory_mib));
        Amount {
            cpus: if cpus == 0 { u32::MAX } else { cpus.saturating_sub(self.used.cpus) },
            memory_mib: if memory == 0 { u64::MAX } else { memory.saturating_sub(self.used.memory_mib) },
        }
    }

    /// Returns true if a machine of that size fits. Without a size it always does.
    #[must_use]
    pub fn has_room_for(self, size: Size) -> bool {
        let free = self.free();
        u32::from(size.cpus) <= free.cpus && u64::from(size.memory_mib) <= free.memory_mib
    }

    /// Returns true if its machines take more than its capacity.
    #[must_use]
    pub fn is_exceeded(self) -> bool {
        let Size { cpus, memory_mib } = self.capacity;
        (cpus > 0 && self.used.cpus > cpus.into())
            || (memory_mib > 0 && self.used.memory_mib > memory_mib.into())
    }

    /// The room with one more machine of that size.
    #[must_use]
    pub fn with(self, size: Size) -> Self {
        Self { used: self.used.plus(size), ..self }
    }

    fn is_default(self) -> bool {
        self == Self::default()
    }
}

impl Capacities {
    /// Returns true if a host has a capacity.
    pub(crate) fn has_limits(&self) -> bool {
        self.limited_hosts > 0
    }

    /// Stores the room of a host. Returns the former one.
    pub(crate) fn set_room(&mut self, id: HostId, room: HostRoom) -> HostRoom {
        let before = if room.is_default() { self.rooms.remove(&id) } else { self.rooms.insert(id, room) };
        let before = before.unwrap_or_default();
        self.limited_hosts += usize::from(!room.capacity.is_none());
        self.limited_hosts -= usize::from(!before.capacity.is_none());
        before
    }

    pub(crate) fn unlist(&mut self, id: HostId) {
        if let Some((zone, free)) = self.listed.remove(&id) {
            self.by_cpus.remove(&(zone, u32::MAX - free.cpus, id));
            self.by_memory.remove(&(zone, u64::MAX - free.memory_mib, id));
        }
    }

    /// Open hosts of a zone with enough CPUs, the most free CPUs first.
    pub(crate) fn with_cpus(&self, zone: Option<Zone>, cpus: u16) -> impl Iterator<Item = HostId> {
        let enough = (zone, 0, HostId(0))..=(zone, u32::MAX - u32::from(cpus), HostId(u32::MAX));
        self.by_cpus.range(enough).map(|(_, _, id)| *id)
    }

    /// Open hosts of a zone with enough memory, the most free memory first.
    pub(crate) fn with_memory(&self, zone: Option<Zone>, memory_mib: u32) -> impl Iterator<Item = HostId> {
        let enough = (zone, 0, HostId(0))..=(zone, u64::MAX - u64::from(memory_mib), HostId(u32::MAX));
        self.by_memory.range(enough).map(|(_, _, id)| *id)
    }
}
