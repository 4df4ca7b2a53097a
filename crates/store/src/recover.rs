//! Recovery: reads the stored state and then every record after it, and checks all of them.

use std::path::Path;

use forewarn_control::Chain;
use forewarn_control::ClusterId;
use forewarn_lifecycle::{BadRows, MaintenanceId, Now, Seed, Timestamp};
use rusqlite::{Connection, params};

use crate::audit_log::check_ends;
use crate::codec::old::{OldRecord, OldRow, RowUpgrade};
use crate::codec::seal::{self, Content, SealLocation};
use crate::codec::{Malformed, RECORD_BYTES_MAX, Reader, Stored, from_bytes};
use crate::database::{self, CheckDepth, Heading, SyncMode, chunk_position};
use crate::error::OpenError;
use crate::files::Directory;
use crate::fold::CHUNK_BYTES;
use crate::reach::Reach;
use forewarn_control::{ClusterEntry, Entry, Record};
use forewarn_control::{ControlState, RestoringState, StateRow};

/// Content of a journal.
#[derive(Debug)]
pub struct Recovered {
    /// The state after the last record.
    pub state: ControlState,
    /// Seed of machine ids, which never changes, not even by an import.
    pub identity: Seed,
    /// Creation time of the journal.
    pub created: Timestamp,
    /// Highest value of each clock: later times are greater.
    pub clock: Now,
    /// Number of records that were replayed on top of the stored state.
    pub replayed: u64,
    /// End of the audit log: the next entry continues it.
    pub audit_chain: Chain,
    /// Announcements of the last batch: no VM may have read them.
    pub unread: Vec<(ClusterId, MaintenanceId)>,
}

/// Bytes of a seal.
const SEAL_BYTES: usize = 9;

/// A record as stored.
enum StoredRecord {
    Present(Record),
    Old(OldRecord),
}

impl StoredRecord {
    fn read(number: u64, sealed: &[u8]) -> Result<Self, Malformed> {
        match seal::open_any(SealLocation::Record(number), sealed)? {
            Content::Present(content) => from_bytes(content).map(Self::Present),
            Content::Old(content) => from_bytes(content).map(Self::Old),
        }
    }

    /// The records of the present format. `state` is the state before it.
    fn upgraded(self, state: &ControlState) -> Vec<Record> {
        match self {
            Self::Present(record) => vec![record],
            Self::Old(record) => record.upgraded(state),
        }
    }
}

/// Opens the journal of a directory and reads everything. A journal that ends before one of the reaches is refused and
/// left unchanged.
pub(crate) fn open_and_recover(
    directory: &Directory,
    (sync, depth): (SyncMode, CheckDepth),
    due: &[Reach],
) -> Result<(Connection, Heading, Recovered), OpenError> {
    let journal = directory.journal();
    let connection = database::open(&journal, sync, depth, |connection| {
        // A damaged heading is reported below, with the rest of the damage.
        let Ok(heading) = read_heading(connection, &journal) else { return Ok(()) };
        due.iter().try_for_each(|reach| reach.check(directory, connection, &heading))
    })?;
    let (heading, recovered) = recover(&connection, &journal)?;
    Ok((connection, heading, recovered))
}

/// Reads everything, and checks that it is complete.
pub(crate) fn recover(connection: &Connection, path: &Path) -> Result<(Heading, Recovered), OpenError> {
    let heading = read_heading(connection, path)?;
    let mut state = read_state(connection, path, &heading)?;
    let (mut expected, mut unread) = (heading.base, Vec::new());
    read_records(connection, path, heading.base, |number, stored| {
        expected += 1;
        if number != expected {
            return Err(OpenError::damaged(path, format!("record {expected} is missing")));
        }
        for record in stored.upgraded(&state) {
            state.apply(&record);
            match record.entry {
                Entry::Cluster(id, ClusterEntry::Unread(more)) => {
                    unread.extend(more.into_iter().map(|maintenance| (id, maintenance)));
                }
                Entry::Cluster(..) | Entry::Shared(_) => unread.clear(),
            }
        }
        Ok(())
    })?;
    if expected != heading.last {
        let what = format!("it ends with record {expected} instead of {}", heading.last);
        return Err(OpenError::damaged(path, what));
    }
    check_ends(connection, path, &heading)?;
    let Heading { identity, created, clock, audit_chain, .. } = heading;
    let replayed = heading.last - heading.base;
    let recovered = Recovered { state, identity, created, clock, replayed, audit_chain, unread };
    Ok((heading, recovered))
}

/// Number of the record before the first one that still exists.
pub(crate) fn read_swept(connection: &Connection, heading: &Heading) -> rusqlite::Result<u64> {
    let first: Option<i64> = connection.query_row("SELECT min(number) FROM record", [], |row| row.get(0))?;
    let before = first.map(|first| first.cast_unsigned().saturating_sub(1));
    Ok(before.unwrap_or(heading.base).min(heading.base))
}

fn read_heading(connection: &Connection, path: &Path) -> Result<Heading, OpenError> {
    let sql = "SELECT content FROM heading";
    let content: Vec<u8> = match connection.query_row(sql, [], |row| row.get(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            return Err(OpenError::damaged(path, "it has no heading"));
        }
        other => other.map_err(|source| OpenError::database(path, source))?,
    };
    let opened = seal::open(SealLocation::Head, &content);
    opened.map_err(|error| OpenError::damaged(path, format!("the heading: {error}")))
}

fn read_state(connection: &Connection, path: &Path, heading: &Heading) -> Result<ControlState, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let mut rows = RowReader::default();
    let sql = "SELECT place, content FROM chunk WHERE place >= ?1 AND place < ?2 ORDER BY place";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let generation = heading.generation;
    let (from, to) = (chunk_position(generation, 0), chunk_position(generation + 1, 0));
    let mut chunks = statement.query(params![from, to]).map_err(failed)?;
    let mut number = 0;
    while let Some(row) = chunks.next().map_err(failed)? {
        let sealed = blob(row, path, CHUNK_BYTES + RECORD_BYTES_MAX)?;
        let place = SealLocation::Chunk { generation, number };
        let wrong = |error: &dyn std::fmt::Display| {
            OpenError::damaged(path, format!("part {number} of the stored state: {error}"))
        };
        let content = seal::open_any(place, sealed).map_err(|error| wrong(&error))?;
        rows.add(&content, wrong)?;
        number += 1;
    }
    if (number, rows.count()) != (heading.chunks, heading.rows) {
        return Err(OpenError::damaged(path, "a part of the stored state is missing"));
    }
    rows.finish().map_err(|error| OpenError::damaged(path, error.to_string()))
}

/// A state that is being read from its chunks.
#[derive(Default)]
pub(crate) struct RowReader {
    restoring: RestoringState,
    upgrade: RowUpgrade,
    count: u64,
}

impl RowReader {
    /// Adds the rows of a chunk.
    pub(crate) fn add<E>(
        &mut self,
        content: &Content<'_>,
        wrong: impl Fn(&dyn std::fmt::Display) -> E,
    ) -> Result<(), E> {
        let (Content::Present(bytes) | Content::Old(bytes)) = content;
        let mut input = Reader::new(bytes);
        while input.left() > 0 {
            let rows = match content {
                Content::Present(_) => StateRow::read(&mut input).map(|row| vec![row]),
                Content::Old(_) => OldRow::read(&mut input).map(|row| self.upgrade.upgrade(row)),
            };
            for row in rows.map_err(|error| wrong(&error))? {
                self.restoring.add(row).map_err(|error| wrong(&error))?;
            }
            self.count += 1;
        }
        Ok(())
    }

    /// Number of rows so far, as stored.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The state, once all chunks are added.
    pub(crate) fn finish(self) -> Result<ControlState, BadRows> {
        self.restoring.finish()
    }
}

fn read_records(
    connection: &Connection,
    path: &Path,
    base: u64,
    mut each: impl FnMut(u64, StoredRecord) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let sql = "SELECT number, content FROM record WHERE number > ?1 ORDER BY number";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query(params![base.cast_signed()]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let number = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
        let sealed = blob(row, path, RECORD_BYTES_MAX)?;
        let record = StoredRecord::read(number, sealed)
            .map_err(|error| OpenError::damaged(path, format!("record {number}: {error}")))?;
        each(number, record)?;
    }
    Ok(())
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, path: &Path, bytes_max: usize) -> Result<&'a [u8], OpenError> {
    let value = row.get_ref(1).map_err(|source| OpenError::database(path, source))?;
    let bytes = value.as_blob().map_err(|error| OpenError::damaged(path, error.to_string()))?;
    if bytes.len() > bytes_max + SEAL_BYTES {
        return Err(OpenError::damaged(path, format!("a value is too large: {} bytes", bytes.len())));
    }
    Ok(bytes)
}
