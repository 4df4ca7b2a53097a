//! Views of the capacity of a host and of the part in use.

use std::num::{NonZeroU16, NonZeroU32};

use forewarn_lifecycle::{Cluster, HostId, HostRoom, memory_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPUs and memory of a host: all of them, and those that its machines take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoomView {
    /// Number of CPUs; null if there is no limit.
    pub cpus: Option<NonZeroU16>,
    /// Memory in MiB; null if there is no limit.
    pub memory_mib: Option<NonZeroU32>,
    /// CPUs of its machines, without deallocated ones, and with those that are being moved here or away.
    pub used_cpus: u32,
    /// Memory of the same machines in MiB.
    pub used_memory_mib: u64,
    /// True if its machines take more than the host has. Moves that were recorded and changed sizes can cause it.
    pub exceeded: bool,
}

/// The capacity of a host and the part in use. None if it has no capacity and no machines with a size.
pub(crate) fn room_view(cluster: &Cluster, host: HostId) -> Option<RoomView> {
    let room = cluster.room_of(host);
    (room != HostRoom::default()).then(|| RoomView {
        cpus: NonZeroU16::new(room.capacity.cpus),
        memory_mib: NonZeroU32::new(room.capacity.memory_mib),
        used_cpus: room.used.cpus,
        used_memory_mib: room.used.memory_mib,
        exceeded: room.is_exceeded(),
    })
}

impl RoomView {
    /// Returns true if CPUs or memory have a limit.
    #[must_use]
    pub fn has_limit(&self) -> bool {
        self.cpus.is_some() || self.memory_mib.is_some()
    }

    /// CPUs in use, and all: `40 of 64`.
    #[must_use]
    pub fn cpu_words(&self) -> String {
        of_limit(self.used_cpus.to_string(), self.cpus.map(|cpus| cpus.to_string()))
    }

    /// Memory in use, and all: `100 GiB of 256 GiB`.
    #[must_use]
    pub fn memory_words(&self) -> String {
        let all = self.memory_mib.map(|mib| memory_text(mib.get().into()));
        of_limit(memory_text(self.used_memory_mib), all)
    }
}

fn of_limit(used: String, all: Option<String>) -> String {
    match all {
        Some(all) => format!("{used} of {all}"),
        None => used,
    }
}
