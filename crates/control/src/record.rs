//! Records of the journal: one decided change each, with its time.

use forewarn_lifecycle::{Change, MachineId, MaintenanceId, Now};

use crate::command::{Details, Site};
use crate::shared::{self, ClusterId};

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the decision.
    pub now: Now,
    /// The change.
    pub entry: Entry,
}

/// A change of the durable state. Each belongs to one cluster, or to the state that clusters share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change of the rules of a cluster.
    Change(ClusterId, Change),
    /// The clocks showed this time: they never go back over a restart.
    Clock,
    /// The details of a machine.
    Described {
        /// The cluster of the machine.
        cluster: ClusterId,
        /// The machine.
        machine: MachineId,
        /// All of its details from now on.
        details: Details,
    },
    /// The location and resource group of a cluster.
    Site(ClusterId, Site),
    /// A change of the shared state.
    Catalogue(shared::Change),
    /// The steady clock belongs to that boot of the computer.
    Booted(Boot),
    /// As the last entry of a journal: no VM may have read these announcements. Any entry after it means that VMs can.
    Unread(Vec<(ClusterId, MaintenanceId)>),
    /// Work failed for a machine for a reason that the driver program reported. The change that completes the work is next.
    Failed {
        /// The cluster of the machine.
        cluster: ClusterId,
        /// The work.
        maintenance: MaintenanceId,
        /// The machine.
        machine: MachineId,
        /// The reason.
        reason: String,
    },
}

/// Relation of the steady clock to a boot of the computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Id of the boot.
    pub id: [u8; 16],
    /// Milliseconds on the steady clock, less those since the boot.
    pub offset_millis: i64,
}

/// Announcements in one record: far fewer than a record may hold.
const UNREAD_PER_RECORD_MAX: usize = 10_000;

impl Record {
    /// Records that end a batch and name announcements that no VM may have read.
    pub fn unread(
        now: Now,
        announcements: &[(ClusterId, MaintenanceId)],
    ) -> impl Iterator<Item = Self> + use<'_> {
        let parts = announcements.chunks(UNREAD_PER_RECORD_MAX);
        parts.map(move |part| Self { now, entry: Entry::Unread(part.to_vec()) })
    }
}
