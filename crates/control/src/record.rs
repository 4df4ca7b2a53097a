//! Records of the journal: one decided change each, with its time.

use forewarn_lifecycle::{Change, HostId, MachineId, MaintenanceId, Now, Target};

use crate::command::{MachineDetails, Site};
use crate::receipts::NewReceipt;
use crate::request::IdempotencyKey;
use crate::resources::ResourceChange;
use crate::shared::{self, Boot, Progress};
use crate::stream::{ClusterId, Stream, StreamPosition};

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
    /// Work failed for a machine or a host for a reason that the driver program reported. The change that completes the work is
    /// next.
    Failed { maintenance: MaintenanceId, target: Target, reason: String },
    /// A message was written about a host that is ready for the work of a person.
    Reminded { maintenance: MaintenanceId, host: HostId },
    /// The response to a request was stored.
    ReceiptKept(NewReceipt),
    /// A change of the resources.
    Resource(ResourceChange),
    /// The clocks showed the time of this record: they never go back over a restart.
    Clock,
    /// The steady clock belongs to that boot of the computer.
    Booted(Boot),
    /// The batch that begins with this record has that place in the log of a realm.
    Positioned(StreamPosition),
    /// Messages of the cluster were delivered to a webhook, by number, up to there.
    WebhookAdvanced { webhook: u32, progress: Progress },
    /// A webhook, by number, was removed: its progress is forgotten.
    WebhookForgotten(u32),
    /// The cluster is closed: the shared state removes it. Nothing follows.
    Closed {
        /// The caller that removes it.
        by: String,
        /// The key of its request.
        once: Option<IdempotencyKey>,
    },
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

    /// The clocks showed this time, in the shared state.
    #[must_use]
    pub fn clock(now: Now) -> Self {
        Self::clock_in(now, Stream::Shared)
    }

    /// The clocks showed this time.
    #[must_use]
    pub fn clock_in(now: Now, stream: Stream) -> Self {
        match stream {
            Stream::Shared => Self::shared(now, shared::Change::Clock),
            Stream::Cluster(id) => Self::in_cluster(now, id, ClusterEntry::Clock),
        }
    }

    /// The steady clock belongs to that boot of the computer.
    #[must_use]
    pub fn booted(now: Now, stream: Stream, boot: Boot) -> Self {
        match stream {
            Stream::Shared => Self::shared(now, shared::Change::Booted(boot)),
            Stream::Cluster(id) => Self::in_cluster(now, id, ClusterEntry::Booted(boot)),
        }
    }

    /// The batch that begins with this record has that place in the log of a realm.
    #[must_use]
    pub fn positioned(now: Now, stream: Stream, position: StreamPosition) -> Self {
        match stream {
            Stream::Shared => Self::shared(now, shared::Change::Positioned(position)),
            Stream::Cluster(id) => Self::in_cluster(now, id, ClusterEntry::Positioned(position)),
        }
    }

    /// The part of the state that the record belongs to.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self.entry {
            Entry::Shared(_) => Stream::Shared,
            Entry::Cluster(id, _) => Stream::Cluster(id),
        }
    }

    /// Records that end a batch of a cluster and name announcements that no VM may have read.
    pub fn unread(
        now: Now,
        id: ClusterId,
        announcements: &[MaintenanceId],
    ) -> impl Iterator<Item = Self> + use<'_> {
        let parts = announcements.chunks(UNREAD_PER_RECORD_MAX);
        parts.map(move |part| Self::in_cluster(now, id, ClusterEntry::Unread(part.to_vec())))
    }
}
