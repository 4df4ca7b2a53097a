//! The state from which the drivers of a server start.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::shared::SharedState;
use forewarn_control::{Chain, ClusterId, ClusterState, ControlState, Stream};
use forewarn_lifecycle::{MaintenanceId, Now, Seed};
use forewarn_store::Recovered;

use crate::journal::{JournalHandle, StreamJournal};

/// The state from which the drivers of a server start.
pub(crate) struct InitialState {
    pub(crate) state: ControlState,
    /// Seed of machine ids.
    pub(crate) identity: Seed,
    /// The end of the audit log of each stream.
    pub(crate) audit_ends: BTreeMap<Stream, Chain>,
    /// Position of the newest audit entry.
    pub(crate) audit_head: u64,
    /// Announcements that no VM may have read.
    pub(crate) unread: Vec<(ClusterId, MaintenanceId)>,
    pub(crate) readers: Readers,
    /// The clocks as they were last recorded.
    pub(crate) recorded: Now,
}

/// The state from which the driver of one stream starts.
pub(crate) struct StreamStart<S> {
    pub(crate) state: Arc<S>,
    pub(crate) journal: StreamJournal,
    /// The end of the audit log of the stream.
    pub(crate) audit_end: Chain,
    /// Announcements that no VM may have read.
    pub(crate) unread: Vec<MaintenanceId>,
    /// The clocks as they were last recorded.
    pub(crate) recorded: Now,
}

impl InitialState {
    /// A state without a journal.
    pub(crate) fn new(state: ControlState, identity: Seed) -> Self {
        let (audit_ends, audit_head, unread) = (BTreeMap::new(), 0, Vec::new());
        let (readers, recorded) = (Readers::Present, Now::at_millis(0));
        Self { state, identity, audit_ends, audit_head, unread, readers, recorded }
    }

    /// The state of a journal.
    pub(crate) fn recovered(found: Recovered, readers: Readers) -> Self {
        let Recovered { state, identity, clock: recorded, audit_ends, audit_head, unread, .. } = found;
        Self { state, identity, audit_ends, audit_head, unread, readers, recorded }
    }

    fn audit_end(&self, stream: Stream) -> Chain {
        self.audit_ends.get(&stream).copied().unwrap_or_default()
    }

    /// The start of the shared stream.
    pub(crate) fn shared(&self, journal: &JournalHandle) -> StreamStart<SharedState> {
        StreamStart {
            state: self.state.shared_arc(),
            journal: journal.of(Stream::Shared),
            audit_end: self.audit_end(Stream::Shared),
            unread: Vec::new(),
            recorded: self.recorded,
        }
    }

    /// The start of every cluster.
    pub(crate) fn clusters(&self, journal: &JournalHandle) -> Vec<(ClusterId, StreamStart<ClusterState>)> {
        let ids = self.state.clusters().map(|(id, _)| id);
        let starts = ids.filter_map(|id| Some((id, self.cluster(id, journal)?)));
        starts.collect()
    }

    fn cluster(&self, id: ClusterId, journal: &JournalHandle) -> Option<StreamStart<ClusterState>> {
        let stream = Stream::Cluster(id);
        let unread = self.unread.iter().filter(|(cluster, _)| *cluster == id);
        Some(StreamStart {
            state: self.state.cluster_arc(id)?,
            journal: journal.of(stream),
            audit_end: self.audit_end(stream),
            unread: unread.map(|(_, maintenance)| *maintenance).collect(),
            recorded: self.recorded,
        })
    }
}

/// Presence of readers: VMs can read documents, or cannot yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Not yet: the server is starting, and nothing that is due is done.
    Absent,
    Present,
}
