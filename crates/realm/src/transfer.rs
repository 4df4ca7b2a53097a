//! A whole realm: read at one revision for a backup, or made from the journal of a directory.

use std::collections::BTreeMap;

use forewarn_control::{
    ClusterEntry, ClusterId, ControlState, Entry, Record, Stream, StreamPosition as PositionRecord,
};
use forewarn_ownership::{ClockAnchor, HeadClock, Revision, ServerName};
use forewarn_store::{Recovered, StreamState};
use forewarn_types::{MaintenanceId, Moment, Now, Seed};

use crate::batch::{AuditMode, Batch};
use crate::commit::{NewBatch, unexpected};
use crate::engine::{EngineError, EngineOperation, EngineTransaction, KeySpan};
use crate::error::{CommitError, RealmError};
use crate::head::{StreamHead, StreamPosition, StreamTime};
use crate::keys::RealmKey;
use crate::owned_stream::{CommitOutcome, OwnedStream};
use crate::read::{READS_MAX, ReadFailure, ReadFrom, StreamContent, StreamStart};
use crate::realm::Realm;
use crate::records::{ArchivedNumbers, RealmCompleteness, RealmRecord};
use crate::shared_stream::{SharedCreation, SharedOutcome, SharedStream};
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

/// The outcome of the cancellation of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The realm has nothing of the journal.
    Cancelled,
    /// The import is complete: servers may use the realm.
    Complete,
}

impl StreamContent {
    /// The state after the last batch. `initial` is the state with which the stream was created, or after the position
    /// from which it was read.
    #[must_use]
    pub fn into_state(self, initial: StreamState) -> StreamState {
        let state = match self.start {
            StreamStart::Initial | StreamStart::After(_) => initial,
            StreamStart::State(state, _) => state,
        };
        replayed(state, &self.batches)
    }

    /// The same, if the stream has a stored state or the initial one is known.
    fn try_into_state(self, initial: Option<StreamState>) -> Option<StreamState> {
        let state = match self.start {
            StreamStart::Initial | StreamStart::After(_) => initial?,
            StreamStart::State(state, _) => state,
        };
        Some(replayed(state, &self.batches))
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

/// A state after some batches.
fn replayed(mut state: StreamState, batches: &[Batch]) -> StreamState {
    let records = batches.iter().flat_map(|batch| &batch.records);
    records.for_each(|record| state.apply(record));
    state
}

impl RealmContent {
    /// Announcements at the ends of streams: no VM may have read them.
    #[must_use]
    pub fn unread(&self) -> Vec<(ClusterId, MaintenanceId)> {
        let of_stream = |(stream, content): (&Stream, &StreamContent)| match stream {
            Stream::Shared => Vec::new(),
            Stream::Cluster(id) => content.unread().into_iter().map(|unread| (*id, unread)).collect(),
        };
        self.streams.iter().flat_map(of_stream).collect()
    }

    /// The state of all streams, and the highest value of each clock. `identity` is that of the realm, from which the
    /// shared stream begins if it was created without a state. None if there is no shared stream.
    #[must_use]
    pub fn into_state(mut self, identity: Seed) -> Option<(ControlState, Now)> {
        let heads = self.streams.values().map(|content| &content.head.head);
        let wall = heads.clone().map(|head| head.details.wall).max()?;
        let steady = heads.map(|head| head.clock.steady).max()?;
        let shared = self.streams.remove(&Stream::Shared)?;
        let initial = StreamState::Shared(ControlState::new(identity).shared_arc());
        let StreamState::Shared(shared) = shared.into_state(initial) else { return None };
        let ids: Vec<ClusterId> = shared.clusters().map(|(id, _)| id).collect();
        let mut clusters = Vec::new();
        for id in ids {
            // One that was imported, or continues a restored one, has a stored state instead.
            let initial = shared.initial_cluster(id).map(StreamState::from);
            let cluster = match self.streams.remove(&Stream::Cluster(id)) {
                Some(content) => content.try_into_state(initial)?,
                None => initial?,
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
    /// clocks. No server joins before the last step. An interrupted import of the same journal begins anew. The first
    /// batch of each stream gives its place in the log; `server` becomes the owner of all clusters.
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
        let Recovered { state, identity, created, clock, .. } = recovered;
        let importing = RealmRecord {
            identity: *identity,
            created: Moment(*created),
            format,
            restores: 0,
            history: None,
            clock: None,
            completeness: RealmCompleteness::Importing,
        };
        let begun = self.begin_import(importing).await.map_err(CommitError::NotCommitted)?;
        if begun.identity != *identity || begun.completeness != RealmCompleteness::Importing {
            return Ok(ImportOutcome::Exists(begun));
        }
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
        self.import_shared(new(Stream::Shared, StreamState::Shared(state.shared_arc())), *clock).await?;
        // The directory of this server has everything before the first batches: they stay until it has them too.
        let streams = state.clusters().map(|(id, _)| (Stream::Cluster(id), 0)).chain([(Stream::Shared, 0)]);
        let archived = ArchivedNumbers { streams: streams.collect() };
        self.record_archived(server, &archived).await.map_err(CommitError::NotCommitted)?;
        let complete = RealmRecord { completeness: RealmCompleteness::Complete, ..importing };
        if self.change_record(&begun, &complete).await.map_err(CommitError::NotCommitted)? {
            Ok(ImportOutcome::Imported)
        } else {
            Err(unexpected())
        }
    }

    async fn import_shared(&self, new: NewStream, clock: Now) -> Result<(), CommitError> {
        let time = new.time;
        let SharedCreation::Created(mut shared) = SharedStream::create(self, new).await? else {
            return Err(unexpected());
        };
        let records = first_records(clock, Stream::Shared, shared.head().ok_or_else(unexpected)?, &[]);
        match shared.commit(&first_batch(records, time)).await? {
            SharedOutcome::Committed { .. } => Ok(()),
            SharedOutcome::Overtaken { .. } | SharedOutcome::Behind { .. } => Err(unexpected()),
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
        let unread: Vec<_> = Record::unread(recovered.clock, id, &unread).collect();
        let records = first_records(recovered.clock, Stream::Cluster(id), owned.head(), &unread);
        match owned.commit(&first_batch(records, time)).await? {
            CommitOutcome::Committed { .. } => Ok(()),
            CommitOutcome::Fenced { .. } => Err(unexpected()),
        }
    }

    /// Takes the realm for an import, unless it exists, and deletes what an interrupted import of the same journal has
    /// left. Returns the record of the realm.
    async fn begin_import(&self, importing: RealmRecord) -> Result<RealmRecord, RealmError> {
        let record = self.join(importing).await?.into_value();
        if record.identity != importing.identity || record.completeness != RealmCompleteness::Importing {
            return Ok(record);
        }
        let key = self.key(&RealmKey::Realm);
        let Some(entry) = self.get(&RealmKey::Realm).await? else { return Err(RealmError::Protocol) };
        let all = self.keys().all();
        let (before, after) = (KeySpan::between(all.first().clone(), key.clone()), all.after(&key));
        let then = vec![EngineOperation::Delete(before), EngineOperation::Delete(after)];
        let guarded = EngineTransaction::guarded(key, entry.mod_revision);
        let emptied = self.repeat(&EngineTransaction { then, ..guarded }).await?;
        if emptied.succeeded { Ok(record) } else { Err(RealmError::Protocol) }
    }

    /// Deletes everything that an import of a journal with this identity has written, unless it is complete.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn cancel_import(&self, identity: Seed) -> Result<CancelOutcome, RealmError> {
        let Some(entry) = self.get(&RealmKey::Realm).await? else { return Ok(CancelOutcome::Cancelled) };
        let Some(record) = self.record().await? else { return Ok(CancelOutcome::Cancelled) };
        if record.identity != identity {
            // This journal has left nothing here.
            return Ok(CancelOutcome::Cancelled);
        }
        if record.completeness != RealmCompleteness::Importing {
            return Ok(CancelOutcome::Complete);
        }
        let then = vec![EngineOperation::Delete(self.keys().all())];
        let guarded = EngineTransaction::guarded(self.key(&RealmKey::Realm), entry.mod_revision);
        self.repeat(&EngineTransaction { then, ..guarded }).await?;
        match self.record().await? {
            Some(record) if record.identity == identity => Ok(CancelOutcome::Complete),
            Some(_) | None => Ok(CancelOutcome::Cancelled),
        }
    }
}

/// The records of the first batch of an imported stream: its place, and announcements that no VM may have read.
pub(crate) fn first_records(now: Now, stream: Stream, head: &StreamHead, unread: &[Record]) -> Vec<Record> {
    let records = head.details.records + 1 + unread.len() as u64;
    let position = PositionRecord { number: head.number + 1, term: head.term.0, records };
    std::iter::once(Record::positioned(now, stream, position)).chain(unread.iter().cloned()).collect()
}

fn first_batch(records: Vec<Record>, time: StreamTime) -> NewBatch {
    NewBatch { records, entries: Vec::new(), mode: AuditMode::Append, time }
}
