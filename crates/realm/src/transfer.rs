//! A whole realm: read at one revision for a backup, or made from the journal of a directory.

use std::collections::BTreeMap;

use forewarn_control::{ClusterEntry, ClusterId, ControlState, Entry, Record, Stream};
use forewarn_ownership::{ClockAnchor, HeadClock, Revision, ServerName};
use forewarn_store::{Recovered, StreamState};
use forewarn_types::{MaintenanceId, Moment, Now};

use crate::batch::AuditMode;
use crate::commit::{NewBatch, unexpected};
use crate::engine::{EngineError, EngineOperation, EngineTransaction};
use crate::error::{CommitError, RealmError};
use crate::head::{StreamPosition, StreamTime};
use crate::keys::RealmKey;
use crate::owned_stream::{CommitOutcome, OwnedStream};
use crate::read::{READS_MAX, ReadFailure, ReadFrom, StreamContent, StreamStart};
use crate::realm::Realm;
use crate::realm_key::Joined;
use crate::records::RealmRecord;
use crate::shared_stream::{SharedCreation, SharedStream};
use crate::takeover::{NewStream, TakeoverOutcome};

/// All streams of a realm at one revision.
#[derive(Clone, Debug)]
pub struct RealmContent {
    pub revision: Revision,
    pub streams: BTreeMap<Stream, StreamContent>,
}

/// The outcome of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The realm exists now.
    Imported,
    /// The realm exists already: nothing was changed.
    Exists(RealmRecord),
}

impl StreamContent {
    /// The state after the last batch. `initial` is the state with which the stream was created, or after the position
    /// from which it was read.
    #[must_use]
    pub fn into_state(self, initial: StreamState) -> StreamState {
        let mut state = match self.start {
            StreamStart::Initial | StreamStart::After(_) => initial,
            StreamStart::State(state, _) => state,
        };
        let records = self.batches.iter().flat_map(|batch| &batch.records);
        records.for_each(|record| state.apply(record));
        state
    }

    /// Announcements at the end of a cluster's stream: no VM may have read them.
    #[must_use]
    pub fn unread(&self) -> Vec<MaintenanceId> {
        let mut unread = Vec::new();
        for record in self.batches.iter().flat_map(|batch| &batch.records) {
            match &record.entry {
                Entry::Cluster(_, ClusterEntry::Unread(more)) => unread.extend(more),
                Entry::Cluster(..) | Entry::Shared(_) => unread.clear(),
            }
        }
        unread
    }
}

impl RealmContent {
    /// The state of all streams, and the highest value of each clock. None if there is no shared stream with a state.
    #[must_use]
    pub fn into_state(mut self) -> Option<(ControlState, Now)> {
        let heads = self.streams.values().map(|content| &content.head.head);
        let wall = heads.clone().map(|head| head.details.wall).max()?;
        let steady = heads.map(|head| head.clock.steady).max()?;
        let shared = self.streams.remove(&Stream::Shared)?;
        // Without a stored state, nobody knows the one with which it was created.
        let StreamStart::State(stored, _) = shared.start.clone() else { return None };
        let StreamState::Shared(shared) = shared.into_state(stored) else { return None };
        let ids: Vec<ClusterId> = shared.clusters().map(|(id, _)| id).collect();
        let mut clusters = Vec::new();
        for id in ids {
            let initial = shared.initial_cluster(id)?;
            let cluster = match self.streams.remove(&Stream::Cluster(id)) {
                Some(content) => content.into_state(initial.into()),
                None => initial.into(),
            };
            let StreamState::Cluster(cluster) = cluster else { return None };
            clusters.push((id, cluster));
        }
        Some((ControlState::from_parts(shared, clusters), Now { wall, steady }))
    }
}

impl Realm {
    /// Reads all streams at one revision.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or something is missing or damaged.
    pub async fn read_all(&self) -> Result<RealmContent, RealmError> {
        for _ in 0..READS_MAX {
            match self.try_read_all().await {
                Ok(content) => return Ok(content),
                Err(ReadFailure::Realm(error)) => return Err(error),
                Err(ReadFailure::Compacted) => {}
            }
        }
        Err(RealmError::Unavailable(EngineError::Compacted(None)))
    }

    async fn try_read_all(&self) -> Result<RealmContent, ReadFailure> {
        let heads = self.heads().await?;
        let revision = heads.revision;
        let mut streams = BTreeMap::new();
        for (stream, head) in heads.heads {
            let content = self.read_content((stream, head), ReadFrom::Beginning, revision).await?;
            streams.insert(stream, content);
        }
        Ok(RealmContent { revision, streams })
    }

    /// Makes a realm from a journal that was opened from a directory, exactly as it is: states, ends of audit logs, and
    /// clocks. The realm exists with its last step; until then, no server may be started. An interrupted import begins
    /// anew. `server` becomes the owner of all clusters.
    ///
    /// # Errors
    /// Fails if the engine is unavailable or refuses it.
    pub async fn import(
        &self,
        recovered: &Recovered,
        server: &ServerName,
        anchor: Option<ClockAnchor>,
        format: u32,
    ) -> Result<ImportOutcome, CommitError> {
        if let Some(record) = self.empty_unless_created().await.map_err(CommitError::NotCommitted)? {
            return Ok(ImportOutcome::Exists(record));
        }
        let Recovered { state, identity, created, clock, .. } = recovered;
        let clock_of_head = HeadClock { steady: clock.steady, anchor };
        let time = StreamTime { clock: clock_of_head, wall: clock.wall };
        let new = |stream: Stream, state: StreamState| {
            let records = recovered.record_ends.get(&stream).copied().unwrap_or_default();
            let chain = recovered.audit_ends.get(&stream).copied().unwrap_or_default();
            let position = StreamPosition { number: 0, records, chain };
            NewStream { state: Some(state), position, time, format }
        };
        for (id, _) in state.clusters() {
            let Some(cluster) = state.cluster_arc(id) else { continue };
            let new = new(Stream::Cluster(id), StreamState::Cluster(cluster));
            self.import_cluster(id, new, server, recovered).await?;
        }
        let shared = new(Stream::Shared, StreamState::Shared(state.shared_arc()));
        match SharedStream::create(self, shared).await? {
            SharedCreation::Created(_) => {}
            SharedCreation::Exists(_) => return Err(unexpected()),
        }
        let record =
            RealmRecord { identity: *identity, created: Moment(*created), format, restores: 0, clock: None };
        match self.join(record).await.map_err(CommitError::NotCommitted)? {
            Joined::Created(_) => Ok(ImportOutcome::Imported),
            Joined::Found(record) => Ok(ImportOutcome::Exists(record)),
        }
    }

    async fn import_cluster(
        &self,
        id: ClusterId,
        new: NewStream,
        server: &ServerName,
        recovered: &Recovered,
    ) -> Result<(), CommitError> {
        let time = new.time;
        let created = OwnedStream::create(self, Stream::Cluster(id), server, new).await?;
        let TakeoverOutcome::Owned(mut owned) = created else { return Err(unexpected()) };
        let unread = recovered.unread.iter().filter(|(of, _)| *of == id);
        let unread: Vec<_> = unread.map(|(_, announcement)| *announcement).collect();
        let records: Vec<_> = Record::unread(recovered.clock, id, &unread).collect();
        if records.is_empty() {
            return Ok(());
        }
        let (entries, mode) = (Vec::new(), AuditMode::Append);
        match owned.commit(&NewBatch { records, entries, mode, time }).await? {
            CommitOutcome::Committed { .. } => Ok(()),
            CommitOutcome::Fenced { .. } => Err(unexpected()),
        }
    }

    /// Deletes what an interrupted import has left. Returns the record of the realm if it exists.
    async fn empty_unless_created(&self) -> Result<Option<RealmRecord>, RealmError> {
        let key = self.key(&RealmKey::Realm);
        let then = vec![EngineOperation::Delete(self.keys().all())];
        let guarded = EngineTransaction::guarded(key, Revision::ABSENT);
        self.repeat(&EngineTransaction { then, ..guarded }).await?;
        self.record().await
    }
}
