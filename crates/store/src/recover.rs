//! Recovery: reads the stored state of each stream and then every record after it, and checks all of them.
//!
//! The shared stream comes first: it names the clusters. Then each cluster is read by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use forewarn_control::{Chain, ClusterEntry, ClusterId, ClusterState, ControlState, Entry, Record};
use forewarn_control::{RestoringCluster, StateRow, Stream, shared};
use forewarn_lifecycle::{BadRows, MaintenanceId, Now, Seed, Timestamp};
use rusqlite::{Connection, params};

use crate::audit_file::AuditFile;
use crate::audit_log::{AuditEnds, AuditView, compare_ends};
use crate::codec::seal::{self, SealLocation};
use crate::codec::{RECORD_BYTES_MAX, Reader, Stored};
use crate::database::{self, CheckDepth, FORMAT, SyncMode, blob, remove_records_after};
use crate::error::OpenError;
use crate::files::{Directory, read_header};
use crate::fold::CHUNK_BYTES;
use crate::heading::{Headings, StreamHeading};
use crate::old_journal;
use crate::pending::PendingEntries;
use crate::reach::Reach;
use crate::stream_content::shared_row;
use crate::stream_key::StreamKey;

/// Content of a journal.
#[derive(Debug)]
pub struct Recovered {
    /// The state of all streams after their last records.
    pub state: ControlState,
    /// Seed of machine ids, which never changes, not even by an import.
    pub identity: Seed,
    /// Creation time of the journal.
    pub created: Timestamp,
    /// Highest value of each clock in any stream: later times are greater.
    pub clock: Now,
    /// Number of records that were replayed on top of the stored states.
    pub replayed: u64,
    /// End of the audit log of each stream of the state: the next entry continues it.
    pub audit_ends: BTreeMap<Stream, Chain>,
    /// Number of records in the life of each stream of the state.
    pub record_ends: BTreeMap<Stream, u64>,
    /// Position of the newest audit entry of all streams; 0 without entries.
    pub audit_head: u64,
    /// Announcements at the end of a stream: no VM may have read them.
    pub unread: Vec<(ClusterId, MaintenanceId)>,
}

/// A journal that was opened, and its audit file as it was found.
pub(crate) struct OpenedJournal {
    pub(crate) connection: Connection,
    pub(crate) headings: Headings,
    pub(crate) recovered: Recovered,
    /// Audit entries that wait in the journal.
    pub(crate) pending: PendingEntries,
    /// Missing if the journal is of an older format: it contains its audit log.
    pub(crate) audit: AuditFile,
}

/// Opens the journal of a directory and reads everything except the audit log. A journal that ends before one of the
/// reaches, or before its audit file, is refused and left unchanged.
pub(crate) fn open_and_recover(
    directory: &Directory,
    (sync, depth): (SyncMode, CheckDepth),
    due: &[Reach],
) -> Result<OpenedJournal, OpenError> {
    let journal = directory.journal();
    let is_old = read_header(&journal)?.is_some_and(|header| header.version < FORMAT);
    let audit = if is_old { AuditFile::Missing } else { AuditFile::find(directory)? };
    let connection = database::open(&journal, sync, depth, |connection| {
        // Damaged headings are reported below, with the rest of the damage.
        let Ok(headings) = read_headings(connection, &journal) else { return Ok(()) };
        let Ok(pending) = read_pending(connection, &journal) else { return Ok(()) };
        let view = if is_old {
            AuditView::new(connection, Some(connection), &pending)
        } else {
            audit.view(connection, &pending, &headings)
        };
        let lost = due.iter().find_map(|reach| reach.shortfall(&view, &headings));
        // Without a reach, the caller decides about the audit file.
        let lead = || due.first().and_then(|_| compare_ends(&view, &headings).lead());
        match lost.or_else(lead) {
            Some(what) => Err(OpenError::Short { path: directory.path().to_owned(), what }),
            None => Ok(()),
        }
    })?;
    let (headings, recovered) = recover(&connection, &journal)?;
    let pending = read_pending(&connection, &journal)?;
    pending.check(&connection, &journal)?;
    if is_old {
        check_old_ends(&AuditView::new(&connection, Some(&connection), &pending), &journal, &headings)?;
    }
    Ok(OpenedJournal { connection, headings, recovered, pending, audit })
}

/// Checks the ends of the audit log in a journal of an older format.
fn check_old_ends(view: &AuditView<'_>, path: &Path, headings: &Headings) -> Result<(), OpenError> {
    match compare_ends(view, headings) {
        AuditEnds::Present => Ok(()),
        AuditEnds::Lost(what) | AuditEnds::Ahead(what) | AuditEnds::Damaged(what) => {
            Err(OpenError::damaged(path, what))
        }
    }
}

fn read_pending(connection: &Connection, path: &Path) -> Result<PendingEntries, OpenError> {
    if is_old(connection, path)? {
        Ok(PendingEntries::default())
    } else {
        PendingEntries::read(connection, path)
    }
}

fn read_headings(connection: &Connection, path: &Path) -> Result<Headings, OpenError> {
    if is_old(connection, path)? {
        old_journal::read_headings(connection, path)
    } else {
        Headings::read(connection, path)
    }
}

fn is_old(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    old_journal::is_old(connection).map_err(|source| OpenError::database(path, source))
}

/// Reads the state, and checks that it is complete. The journal may be of an older format.
pub(crate) fn recover(connection: &Connection, path: &Path) -> Result<(Headings, Recovered), OpenError> {
    let headings = read_headings(connection, path)?;
    let is_old = is_old(connection, path)?;
    let (state, unread) = if is_old {
        old_journal::read_state(connection, path, &headings)?
    } else {
        JournalReader { connection, path }.read_streams(&headings)?
    };
    let end_of = |stream: Stream| match headings.get(stream.into()) {
        Some(heading) => (stream, heading.audit_chain),
        // Every stream continues the common log.
        None if is_old => (stream, headings.journal.audit_end),
        None => (stream, Chain::default()),
    };
    let audit_ends = streams_of(&state).map(end_of).collect();
    let last_of = |stream: Stream| headings.get(stream.into()).map_or(0, |heading| heading.last);
    let record_ends = streams_of(&state).map(|stream| (stream, last_of(stream))).collect();
    let replayed = headings.streams().filter(|(key, _)| is_known(&state, *key));
    let replayed = replayed.map(|(_, heading)| heading.last - heading.base).sum();
    let (identity, created, clock) =
        (headings.journal.identity, headings.journal.created, headings.journal.clock);
    let audit_head = headings.journal.audit_end.number;
    let recovered =
        Recovered { state, identity, created, clock, replayed, audit_ends, record_ends, audit_head, unread };
    Ok((headings, recovered))
}

fn streams_of(state: &ControlState) -> impl Iterator<Item = Stream> {
    std::iter::once(Stream::Shared).chain(state.clusters().map(|(id, _)| Stream::Cluster(id)))
}

/// Returns true if a stream is part of the state. The common log has records in a journal without streams only.
fn is_known(state: &ControlState, key: StreamKey) -> bool {
    match key.stream() {
        Some(Stream::Shared) => true,
        Some(Stream::Cluster(id)) => state.cluster(id).is_some(),
        None => key == StreamKey::COMMON,
    }
}

/// Removes records beyond the end of their stream, and everything without a heading. Returns the streams with a heading
/// that are no part of the state: their clusters were removed.
pub(crate) fn remove_leftovers(
    connection: &Connection,
    headings: &Headings,
    state: &ControlState,
) -> rusqlite::Result<Vec<StreamKey>> {
    for table in ["record", "chunk"] {
        let next = format!("SELECT min(stream) FROM {table} WHERE stream > ?1");
        let mut found = i64::MIN;
        while let Some(stream) = connection.query_row(&next, params![found], |row| row.get(0))? {
            found = stream;
            if headings.get(StreamKey::from_column(stream)).is_none() {
                connection.execute(&format!("DELETE FROM {table} WHERE stream = ?1"), params![stream])?;
            }
        }
    }
    for (key, heading) in headings.streams() {
        remove_records_after(connection, key, heading.last)?;
    }
    Ok(headings.streams().map(|(key, _)| key).filter(|key| !is_known(state, *key)).collect())
}

/// Reads the streams of a journal.
struct JournalReader<'a> {
    connection: &'a Connection,
    path: &'a Path,
}

impl JournalReader<'_> {
    fn damaged(&self, what: impl Into<String>) -> OpenError {
        OpenError::damaged(self.path, what)
    }

    /// Reads the shared stream, and then each cluster that it names.
    fn read_streams(
        &self,
        headings: &Headings,
    ) -> Result<(ControlState, Vec<(ClusterId, MaintenanceId)>), OpenError> {
        let heading =
            headings.get(StreamKey::SHARED).ok_or_else(|| self.damaged("it has no shared stream"))?;
        let mut restoring = shared::Restoring::default();
        self.read_rows(StreamKey::SHARED, heading, |row| restoring.add(shared_row(row)?))?;
        let shared = restoring.finish().map_err(|error| self.damaged(error.to_string()))?;
        let mut state = ControlState::from_parts(Arc::new(shared), []);
        self.read_records(StreamKey::SHARED, heading, |record| drop(state.apply(record)))?;
        let ids: BTreeSet<_> = state.shared().clusters().map(|(id, _)| id).collect();
        let clusters = ids.iter().map(|id| Ok((*id, self.read_cluster(*id, headings, &state)?)));
        let clusters = clusters.collect::<Result<Vec<_>, OpenError>>()?;
        let mut state = ControlState::from_parts(state.shared_arc(), clusters);
        let mut unread = Vec::new();
        for id in ids {
            let key = Stream::Cluster(id).into();
            let Some(heading) = headings.get(key) else { continue };
            unread.extend(self.replay_cluster(key, heading, &mut state)?.into_iter().map(|work| (id, work)));
        }
        Ok((state, unread))
    }

    /// Applies the records of a cluster. Returns the announcements at their end.
    fn replay_cluster(
        &self,
        key: StreamKey,
        heading: &StreamHeading,
        state: &mut ControlState,
    ) -> Result<Vec<MaintenanceId>, OpenError> {
        let mut unread = Vec::new();
        self.read_records(key, heading, |record| {
            drop(state.apply(record));
            match &record.entry {
                Entry::Cluster(_, ClusterEntry::Unread(more)) => unread.extend(more),
                Entry::Cluster(..) | Entry::Shared(_) => unread.clear(),
            }
        })?;
        Ok(unread)
    }

    /// The stored state of a cluster.
    fn read_cluster(
        &self,
        id: ClusterId,
        headings: &Headings,
        state: &ControlState,
    ) -> Result<Arc<ClusterState>, OpenError> {
        let key = Stream::Cluster(id).into();
        match headings.get(key).filter(|heading| heading.generation > 0) {
            Some(heading) => {
                let mut restoring = RestoringCluster::new(id);
                self.read_rows(key, heading, |row| restoring.add(row))?;
                let cluster = restoring.finish().map_err(|error| self.damaged(error.to_string()))?;
                Ok(Arc::new(cluster))
            }
            None => {
                initial_cluster(state, id).ok_or_else(|| self.damaged(format!("{key} has no stored state")))
            }
        }
    }

    /// Reads the rows of the stored state of a stream.
    fn read_rows(
        &self,
        stream: StreamKey,
        heading: &StreamHeading,
        mut add: impl FnMut(StateRow) -> Result<(), BadRows>,
    ) -> Result<(), OpenError> {
        let failed = |source| OpenError::database(self.path, source);
        let sql = "SELECT number, content FROM chunk WHERE stream = ?1 AND generation = ?2 ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let generation = heading.generation;
        let mut chunks =
            statement.query(params![stream.column(), generation.cast_signed()]).map_err(failed)?;
        let (mut number, mut count) = (0, 0);
        while let Some(row) = chunks.next().map_err(failed)? {
            let sealed = blob(row, self.path, CHUNK_BYTES + RECORD_BYTES_MAX)?;
            let wrong = |error: &dyn std::fmt::Display| {
                self.damaged(format!("part {number} of the stored state of {stream}: {error}"))
            };
            let location = SealLocation::StreamChunk { stream, generation, number };
            let content = seal::open_bytes(location, sealed).map_err(|error| wrong(&error))?;
            let mut input = Reader::new(content);
            while input.left() > 0 {
                let row = StateRow::read(&mut input).map_err(|error| wrong(&error))?;
                add(row).map_err(|error| wrong(&error))?;
                count += 1;
            }
            number += 1;
        }
        if (number, count) != (heading.chunks, heading.rows) {
            return Err(self.damaged(format!("a part of the stored state of {stream} is missing")));
        }
        Ok(())
    }

    /// Reads the records of a stream after its stored state, up to the end in its heading.
    fn read_records(
        &self,
        stream: StreamKey,
        heading: &StreamHeading,
        mut each: impl FnMut(&Record),
    ) -> Result<(), OpenError> {
        let failed = |source| OpenError::database(self.path, source);
        let sql = "SELECT number, content FROM record WHERE stream = ?1 AND number > ?2 AND number <= ?3 \
                   ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let range = params![stream.column(), heading.base.cast_signed(), heading.last.cast_signed()];
        let mut rows = statement.query(range).map_err(failed)?;
        let mut expected = heading.base;
        while let Some(row) = rows.next().map_err(failed)? {
            let number = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
            expected += 1;
            if number != expected {
                return Err(self.damaged(format!("record {expected} of {stream} is missing")));
            }
            let sealed = blob(row, self.path, RECORD_BYTES_MAX)?;
            let wrong =
                |error: &dyn std::fmt::Display| self.damaged(format!("record {number} of {stream}: {error}"));
            let location = SealLocation::StreamRecord { stream, number };
            let record: Record = seal::open(location, sealed).map_err(|error| wrong(&error))?;
            if StreamKey::from(record.stream()) != stream {
                return Err(wrong(&"it belongs to another stream"));
            }
            each(&record);
        }
        if expected != heading.last {
            let what = format!("{stream} ends with record {expected} instead of {}", heading.last);
            return Err(self.damaged(what));
        }
        Ok(())
    }
}

/// The state of a cluster that has no stored state yet: it is as it was created.
fn initial_cluster(state: &ControlState, id: ClusterId) -> Option<Arc<ClusterState>> {
    state.cluster_arc(id).or_else(|| state.shared().initial_cluster(id).map(Arc::new))
}
