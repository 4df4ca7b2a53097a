//! What is kept: one thing that has happened, and when.

use forewarn_control::shared::ClusterId;
use forewarn_control::{Details, Site};
use forewarn_lifecycle::{Change, MachineId, MaintenanceId, Now};

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was decided.
    pub now: Now,
    /// What happened.
    pub entry: Entry,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change of a cluster.
    Change(ClusterId, Change),
    /// The clocks stood here: they never go back over a restart.
    Clock,
    /// Something else is known of a machine than before.
    Described {
        /// Its cluster.
        cluster: ClusterId,
        /// The machine.
        machine: MachineId,
        /// All that is known of it from now on.
        details: Details,
    },
    /// All machines of a cluster are told something else of where they are.
    Site(ClusterId, Site),
    /// A change of the catalogue.
    Catalogue(forewarn_control::shared::Change),
    /// The steady clock goes with that boot of the computer.
    Booted(Boot),
    /// As the last entry of a journal: no VM may have read these announcements. What follows it says that VMs can read them.
    Unread(Vec<(ClusterId, MaintenanceId)>),
    /// Some work has failed for a machine, and the driver program said why. The change that completes it comes next.
    Failed {
        /// The cluster.
        cluster: ClusterId,
        /// The work.
        maintenance: MaintenanceId,
        /// The machine.
        machine: MachineId,
        /// The reason.
        reason: String,
    },
}

/// How the steady clock goes with a boot of the computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Which boot it is.
    pub id: [u8; 16],
    /// What the steady clock shows, less the time since that boot: in milliseconds.
    pub offset_millis: i64,
}

/// Announcements in one record: far less than a record may hold.
const UNREAD_PER_RECORD_MAX: usize = 10_000;

impl Record {
    /// Records that end a batch, to say that no VM may have read these announcements.
    pub fn unread(
        now: Now,
        announcements: &[(ClusterId, MaintenanceId)],
    ) -> impl Iterator<Item = Self> + use<'_> {
        let parts = announcements.chunks(UNREAD_PER_RECORD_MAX);
        parts.map(move |part| Self { now, entry: Entry::Unread(part.to_vec()) })
    }
}
