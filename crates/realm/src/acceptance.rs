//! Acceptance of an engine that was restored from an older backup: its state continues as after an import, in place.
//!
//! ```text
//!   realm: accepting ──▶ each cluster: state, then head ──▶ shared stream: state, then head ──▶ realm: complete
//! ```
//!
//! One transaction replaces a stream: the new head names the renewed state, and has the first batch after it. Until then
//! the restored stream is untouched. No server joins before the last step. An acceptance that was interrupted goes on:
//! the batch id of a head tells that its stream was replaced.
//!
//! Copies of the lost log may be longer than the restored one. So numbers of batches and terms take a step that no lost
//! log can have reached, and none of them ever has another meaning.

use std::sync::Arc;

use forewarn_control::{ClusterId, ControlState, INCARNATION_STEP, NewAuditEntry, Record, Stream};
use forewarn_ownership::{BatchId, Head, HeadClock, OwnerRecord, Revision, ServerName, Term, Transaction};
use forewarn_store::StreamState;
use forewarn_types::{MaintenanceId, Moment, Now, Seed};

use crate::batch::AuditMode;
use crate::commit::{NewBatch, details_after, engine_transaction, write_parts};
use crate::engine::KeyValue;
use crate::entry_tail::EntryTail;
use crate::error::{CommitError, RealmError};
use crate::head::{HeadDetails, KnownHead, StreamPosition, StreamTime};
use crate::heads::known_head;
use crate::keys::RealmKey;
use crate::realm::{Realm, random};
use crate::records::{RealmCompleteness, RealmRecord};
use crate::snapshot::SnapshotWriting;
use crate::transfer::first_records;

/// Step of the numbers of batches: at 2,500 commits a second, a lost log would have to be twelve years long.
pub const BATCH_NUMBER_STEP: u64 = 1_000_000_000_000;

/// Step of the terms of clusters.
pub const TERM_STEP: u64 = 1_000_000;

/// The terms of an acceptance.
#[derive(Clone, Debug)]
pub struct RestoreAcceptance {
    /// The owner of all clusters afterwards.
    pub server: ServerName,
    /// Seed of later ids of events.
    pub seed: Seed,
    /// An incarnation that VMs may have seen: later ones are above it.
    pub seen: u64,
    pub time: StreamTime,
    /// The difference to the engine before, for the audit log.
    pub reason: String,
}

/// A stream that continues with another state.
struct Replacement<'a> {
    stream: Stream,
    /// The restored head. None: the cluster never had an owner.
    known: Option<&'a KnownHead>,
    state: StreamState,
    /// Announcements that no VM may have read.
    unread: Vec<MaintenanceId>,
    /// The audit entry of the first batch.
    entry: Option<NewAuditEntry>,
}

impl Realm {
    /// Begins an acceptance: no server joins before its end. `restores` is its number. Returns the record of the realm,
    /// or none if it is no longer the known one.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn begin_acceptance(
        &self,
        known: &RealmRecord,
        restores: u64,
    ) -> Result<Option<RealmRecord>, RealmError> {
        let (history, completeness) = (Some(Seed(random()?)), RealmCompleteness::Accepting);
        let accepting = RealmRecord { restores, history, completeness, ..*known };
        Ok(self.change_record(known, &accepting).await?.then_some(accepting))
    }

    /// Replaces all streams by renewed ones, and completes the acceptance. One that was interrupted goes on. Returns the
    /// record of the realm, and the state with which it continues.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, something is missing or damaged, or a server writes to the realm. It may be
    /// repeated.
    pub async fn accept(
        &self,
        accepting: &RealmRecord,
        acceptance: &RestoreAcceptance,
    ) -> Result<(RealmRecord, ControlState), CommitError> {
        let history = accepting.history.ok_or(RealmError::Protocol).map_err(CommitError::NotCommitted)?;
        let content = self.read_all().await.map_err(CommitError::NotCommitted)?;
        let heads: Vec<_> = content.streams.values().map(|one| (one.stream, one.head.clone())).collect();
        let head_of = |stream| heads.iter().find(|(of, _)| *of == stream).map(|(_, known)| known);
        let lost = || CommitError::NotCommitted(RealmError::NoStream(Stream::Shared));
        let (state, _) = content.into_state(accepting.identity).ok_or_else(lost)?;
        let renewed = state.renewed_above(acceptance.seed, acceptance.seen);
        let renewed = renewed.map_err(|error| {
            CommitError::NotCommitted(RealmError::damaged(&RealmKey::Head(Stream::Shared), &error))
        })?;
        let format = accepting.format;
        let writer = ReplacementWriter { realm: self, acceptance, history, format };
        for (id, cluster) in renewed.clusters() {
            let (stream, unread) = (Stream::Cluster(id), cluster.announced());
            let Some(cluster) = renewed.cluster_arc(id) else { continue };
            let (known, state) = (head_of(stream), StreamState::Cluster(cluster));
            writer.replace(Replacement { stream, known, state, unread, entry: None }).await?;
        }
        // It comes last: clusters without a stream begin from it.
        let (stream, entry) = (Stream::Shared, Some(audit_entry(acceptance)));
        let (known, state) = (head_of(stream), StreamState::Shared(renewed.shared_arc()));
        writer.replace(Replacement { stream, known, state, unread: Vec::new(), entry }).await?;
        let complete = RealmRecord { completeness: RealmCompleteness::Complete, ..*accepting };
        if self.change_record(accepting, &complete).await.map_err(CommitError::NotCommitted)? {
            Ok((complete, renewed))
        } else {
            Err(CommitError::NotCommitted(RealmError::Protocol))
        }
    }
}

/// Replaces streams.
struct ReplacementWriter<'a> {
    realm: &'a Realm,
    acceptance: &'a RestoreAcceptance,
    /// Id of the acceptance.
    history: Seed,
    /// Format of streams that do not exist yet.
    format: u32,
}

impl ReplacementWriter<'_> {
    /// Replaces a stream, unless this acceptance has.
    async fn replace(&self, replacement: Replacement<'_>) -> Result<(), CommitError> {
        let Replacement { stream, known, state, unread, entry } = replacement;
        let batch = batch_id(self.history, stream);
        if known.is_some_and(|known| known.head.batch == batch) {
            return Ok(());
        }
        let revision = known.map_or(Revision::ABSENT, |known| known.revision);
        let replaced = self.head_with_state((stream, known), state, batch).await?;
        let new = first_batch(stream, &replaced, &unread, entry);
        let heading = EntryTail::at(replaced.details.chain).next_heading(stream, &replaced, batch, &new)?;
        let encoded = heading.encode(&new.records, &new.entries)?;
        let details = details_after(&replaced, &new, encoded.chain_after);
        let head = Head { number: replaced.number + 1, details, ..replaced };
        let owner = match stream {
            Stream::Shared => None,
            Stream::Cluster(_) => {
                Some(OwnerRecord { server: self.acceptance.server.clone(), term: head.term })
            }
        };
        let deposed = || CommitError::NotCommitted(RealmError::Deposed(stream));
        if !write_parts(self.realm, stream, revision, &encoded).await? {
            return Err(deposed());
        }
        let transaction = Transaction { expected: revision, owner, head, payload: Some(encoded.log) };
        let request = engine_transaction(self.realm, stream, &transaction);
        let answer = self.realm.repeat(&request).await;
        let answer = answer.map_err(|error| CommitError::NotCommitted(error.into()))?;
        // An answer may have been lost: the batch id tells whose the head is.
        let found = answer.reads.into_iter().flatten();
        if answer.succeeded || is_written(self.realm, (stream, batch), found)? {
            return Ok(());
        }
        Err(deposed())
    }

    /// Writes the state of a stream, and returns the head that names it, which is before the first batch.
    async fn head_with_state(
        &self,
        (stream, known): (Stream, Option<&KnownHead>),
        state: StreamState,
        batch: BatchId,
    ) -> Result<Head<HeadDetails>, CommitError> {
        let known = known.map(|known| &known.head);
        let details = known.map(|head| &head.details);
        let (records, chain) = details.map(|details| (details.records, details.chain)).unwrap_or_default();
        let number = known.map_or(0, |head| head.number) + BATCH_NUMBER_STEP;
        let term = match stream {
            Stream::Shared => Term::default(),
            Stream::Cluster(_) => Term(known.map_or(0, |head| head.term.0) + TERM_STEP),
        };
        let position = StreamPosition { number, records, chain };
        let writing = SnapshotWriting::at(stream, (term, position), state);
        let written = writing.map_err(CommitError::NotCommitted)?.finish(self.realm).await;
        let snapshot = Some(written.map_err(CommitError::NotCommitted)?);
        let StreamTime { clock, wall } = self.acceptance.time;
        let clock = known.map_or(clock, |head| later(clock, head.clock));
        let wall = details.map_or(wall, |details| wall.max(details.wall));
        let format = details.map_or(self.format, |details| details.format);
        let details = HeadDetails { records, chain, snapshot, wall, format };
        Ok(Head { number, term, batch, clock, details })
    }
}

/// The first batch after a renewed state: its place, announcements that no VM may have read, and an audit entry.
fn first_batch(
    stream: Stream,
    head: &Head<HeadDetails>,
    unread: &[MaintenanceId],
    entry: Option<NewAuditEntry>,
) -> NewBatch {
    let time = StreamTime { clock: head.clock, wall: head.details.wall };
    let now = Now { wall: time.wall, steady: time.clock.steady };
    let unread: Vec<_> = match stream {
        Stream::Shared => Vec::new(),
        Stream::Cluster(id) => Record::unread(now, id, unread).collect(),
    };
    let records = first_records(now, stream, head, &unread);
    let mut chain = head.details.chain;
    let entries = entry.into_iter().map(|entry| Arc::new(chain.seal(entry))).collect();
    NewBatch { records, entries, mode: AuditMode::Append, time }
}

/// The later one of two clocks.
fn later(one: HeadClock, other: HeadClock) -> HeadClock {
    if one.steady < other.steady { other } else { one }
}

/// The id of the batch by which an acceptance replaces a stream.
fn batch_id(history: Seed, stream: Stream) -> BatchId {
    BatchId(match stream {
        Stream::Shared => history.0,
        Stream::Cluster(ClusterId(id)) => history.nth(id).0,
    })
}

/// Returns true if the head among some keys has this batch id.
fn is_written(
    realm: &Realm,
    (stream, batch): (Stream, BatchId),
    mut found: impl Iterator<Item = KeyValue>,
) -> Result<bool, CommitError> {
    let key = realm.key(&RealmKey::Head(stream));
    let Some(entry) = found.find(|entry| entry.key == key) else { return Ok(false) };
    let known = known_head(stream, &entry).map_err(CommitError::NotCommitted)?;
    Ok(known.head.batch == batch)
}

fn audit_entry(acceptance: &RestoreAcceptance) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(acceptance.time.wall),
        stream: Some(Stream::Shared),
        by: "shell".to_owned(),
        kind: "restore_accepted".to_owned(),
        text: format!(
            "the realm continues with the older state of an etcd that was restored: {}; incarnations grew by at least \
             {INCARNATION_STEP}, events have new ids, and the brake is on",
            acceptance.reason
        ),
        ..NewAuditEntry::default()
    }
}
