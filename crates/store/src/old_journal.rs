//! Journals of formats 0 and 1, which are only read.
//!
//! They have no streams: one sequence of records, one stored state and one audit log for all. Here all of that belongs
//! to [`StreamKey::COMMON`]. Views give the tables of the audit log the columns of the present format, in which the
//! position of an entry of the common log is its number.

use std::path::Path;

use forewarn_control::{
    Chain, ClusterEntry, ClusterId, ControlState, Entry, Record, RestoringState, StateRow,
};
use forewarn_lifecycle::{BadRows, MaintenanceId, Now, Seed, Timestamp};
use rusqlite::{Connection, params};

use crate::codec::old::{OldRecord, OldRow, RowUpgrade};
use crate::codec::seal::{self, Content, SealLocation};
use crate::codec::{Malformed, RECORD_BYTES_MAX, Reader, Stored, from_bytes, stored_struct};
use crate::database::{FORMAT, blob};
use crate::error::OpenError;
use crate::fold::CHUNK_BYTES;
use crate::heading::{Headings, JournalHeading, StreamHeading};
use crate::stream_key::StreamKey;

/// The audit log with the columns of the present format. They are known to this connection only.
const VIEWS: &str = "
    CREATE TEMP VIEW IF NOT EXISTS trail AS
        SELECT number AS position, -1 AS stream, number, at, content FROM main.trail;
    CREATE TEMP VIEW IF NOT EXISTS subject AS SELECT subject, number AS position FROM main.subject;
";

/// The heading of formats 0 and 1.
struct OldHeading {
    identity: Seed,
    created: Timestamp,
    clock: Now,
    last: u64,
    base: u64,
    generation: u64,
    chunks: u64,
    rows: u64,
    audit_chain: Chain,
    swept: Chain,
}

stored_struct! {
    OldHeading { identity, created, clock, last, base, generation, chunks, rows, audit_chain, swept }
}

/// Returns true if a journal is of format 0 or 1.
pub(crate) fn is_old(connection: &Connection) -> rusqlite::Result<bool> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(format < FORMAT)
}

/// Reads the heading as that of a journal in which everything belongs to the common log, and creates the views.
pub(crate) fn read_headings(connection: &Connection, path: &Path) -> Result<Headings, OpenError> {
    let failed = |source| OpenError::database(path, source);
    connection.execute_batch(VIEWS).map_err(failed)?;
    let content: Vec<u8> = match connection.query_row("SELECT content FROM heading", [], |row| row.get(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            return Err(OpenError::damaged(path, "it has no heading"));
        }
        other => other.map_err(failed)?,
    };
    let opened = seal::open(SealLocation::Head, &content);
    let old: OldHeading =
        opened.map_err(|error| OpenError::damaged(path, format!("the heading: {error}")))?;
    let OldHeading { identity, created, clock, last, base, generation, chunks, rows, audit_chain, swept } =
        old;
    let mut journal = JournalHeading::new(identity, clock);
    (journal.created, journal.records) = (created, last);
    (journal.audit_end, journal.audit_swept) = (audit_chain, swept);
    let mut headings = Headings::new(journal);
    let begin = Chain::default();
    let common = StreamHeading {
        clock,
        last,
        base,
        generation,
        chunks,
        rows,
        begin,
        audit_chain,
        swept,
        gaps: Vec::new(),
    };
    headings.insert(StreamKey::COMMON, common);
    Ok(headings)
}

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

/// Reads the state after the last record, and the announcements at the end, which no VM may have read.
pub(crate) fn read_state(
    connection: &Connection,
    path: &Path,
    headings: &Headings,
) -> Result<(ControlState, Vec<(ClusterId, MaintenanceId)>), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let Some(heading) = headings.get(StreamKey::COMMON) else {
        return Err(OpenError::damaged(path, "it has no heading"));
    };
    let mut state = read_rows(connection, path, heading)?;
    let (mut expected, mut unread) = (heading.base, Vec::new());
    let sql = "SELECT number, content FROM record WHERE number > ?1 ORDER BY number";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query(params![heading.base.cast_signed()]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let number = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
        expected += 1;
        if number != expected {
            return Err(OpenError::damaged(path, format!("record {expected} is missing")));
        }
        let stored = StoredRecord::read(number, blob(row, path, RECORD_BYTES_MAX)?)
            .map_err(|error| OpenError::damaged(path, format!("record {number}: {error}")))?;
        for record in stored.upgraded(&state) {
            state.apply(&record);
            match record.entry {
                Entry::Cluster(id, ClusterEntry::Unread(more)) => {
                    unread.extend(more.into_iter().map(|maintenance| (id, maintenance)));
                }
                Entry::Cluster(..) | Entry::Shared(_) => unread.clear(),
            }
        }
    }
    if expected != heading.last {
        let what = format!("it ends with record {expected} instead of {}", heading.last);
        return Err(OpenError::damaged(path, what));
    }
    // Records of older versions take and release no claims.
    Ok((state.with_derived_claims().with_common_progress(), unread))
}

/// Primary key of a chunk: generations follow each other.
fn chunk_position(generation: u64, number: u64) -> i64 {
    (generation.cast_signed() << 32) | (number & 0xffff_ffff).cast_signed()
}

fn read_rows(
    connection: &Connection,
    path: &Path,
    heading: &StreamHeading,
) -> Result<ControlState, OpenError> {
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

/// A state of all streams that is being read from one sequence of rows: also that of an export.
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
