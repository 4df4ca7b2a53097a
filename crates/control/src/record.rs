//! Records of the journal: one decided change each, with its time.

use forewarn_lifecycle::{Change, MachineId, MaintenanceId, Now};

use crate::command::{MachineDetails, Site};
use crate::receipts::NewReceipt;
use crate::resources::ResourceChange;
use crate::shared;
use crate::stream::{ClusterId, Stream};

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the decision.
    pub now: Now,
    pub entry: Entry,
}

/// A change of the durable state. It belongs to one cluster, or to the state that clusters share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change of the state that clusters share.
    Shared(shared::Change),
    /// A change of a cluster.
    Cluster(ClusterId, ClusterEntry),
}

/// A change of the state of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEntry {
    /// A change of the rules.
    Rules(Change),
    /// The details of a machine.
    Described {
        machine: MachineId,
        /// All of its details from now on.
        details: MachineDetails,
    },
    /// The location and resource group of the cluster.
    Site(Site),
    /// As one of the last entries of a journal: no VM may have read these announcements. Any other entry after it
    /// means that VMs can.
    Unread(Vec<MaintenanceId>),
    /// Work failed for a machine for a reason that the driver program reported. The change that completes the work is
    /// next.
    Failed { maintenance: MaintenanceId, machine: MachineId, reason: String },
    /// The response to a request was stored.
    ReceiptKept(NewReceipt),
    /// A change of the resources.
    Resource(ResourceChange),
}

/// Announcements in one record: far fewer than a record may hold.
const UNREAD_PER_RECORD_MAX: usize = 10_000;

impl Record {
    /// A change of the state that clusters share.
    #[must_use]
    pub fn shared(now: Now, change: shared::Change) -> Self {
        Self { now, entry: Entry::Shared(change) }
    }

    /// A change of a cluster.
    #[must_use]
    pub fn in_cluster(now: Now, id: ClusterId, change: ClusterEntry) -> Self {
        Self { now, entry: Entry::Cluster(id, change) }
    }

    /// A change of the rules of a cluster.
    #[must_use]
    pub fn rules(now: Now, id: ClusterId, change: Change) -> Self {
        Self::in_cluster(now, id, ClusterEntry::Rules(change))
    }

    /// The clocks showed this time.
    #[must_use]
    pub fn clock(now: Now) -> Self {
        Self::shared(now, shared::Change::Clock)
    }

    /// The part of the state that the record belongs to.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self.entry {
            Entry::Shared(_) => Stream::Shared,
            Entry::Cluster(id, _) => Stream::Cluster(id),
        }
    }

    /// Records that end a batch and name announcements that no VM may have read. Announcements of a cluster follow
    /// each other.
    pub fn unread(
        now: Now,
        announcements: &[(ClusterId, MaintenanceId)],
    ) -> impl Iterator<Item = Self> + use<'_> {
        let clusters = announcements.chunk_by(|(one, _), (other, _)| one == other);
        let parts = clusters.flat_map(|cluster| cluster.chunks(UNREAD_PER_RECORD_MAX));
        parts.map(move |part| {
            let unread = part.iter().map(|(_, maintenance)| *maintenance).collect();
            Self::in_cluster(now, part[0].0, ClusterEntry::Unread(unread))
        })
    }
}
