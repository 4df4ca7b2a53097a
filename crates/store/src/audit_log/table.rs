//! The tables of the audit log.
//!
//! | table | content |
//! |---|---|
//! | `trail` | each entry as JSON with its time, stream and number, by position, under a checksum |
//! | `subject` | positions of entries by subject: the cost of a filter is that of its result |
//! | `hour` | first and last position of each hour of the wall clock, which may have been set back |

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::search::{Candidate, is_in_time};
use super::{AuditQuery, LoggedEntry, ReadError};
use crate::codec::seal::{self, SealLocation};
use crate::error::AppendError;
use crate::heading::StreamHeading;
use crate::stream_key::StreamKey;

/// Rows that one query may read: a commit waits for no more.
pub(super) const ROWS_PER_QUERY_MAX: usize = 2_000;

const HOUR_MILLIS: i64 = 3_600_000;

/// One row of the table `trail`.
pub(super) struct AuditRow {
    pub(super) position: u64,
    pub(super) stream: StreamKey,
    pub(super) number: u64,
    pub(super) at: Timestamp,
    sealed: Vec<u8>,
}

impl AuditRow {
    /// The entry; fails if the row is not what was written.
    pub(super) fn entry(&self) -> Result<AuditEntry, String> {
        let Self { position, stream, number, at, sealed } = self;
        let wrong = |what: &dyn std::fmt::Display| format!("audit entry {position}: {what}");
        let location = SealLocation::Entry { stream: *stream, position: *position };
        let content = seal::open_bytes(location, sealed).map_err(|error| wrong(&error))?;
        let entry: AuditEntry = serde_json::from_slice(content).map_err(|error| wrong(&error))?;
        if entry.number != *number || entry.at.0 != *at {
            return Err(wrong(&"it is in the place of another one"));
        }
        Ok(entry)
    }

    pub(super) fn content_bytes(&self) -> usize {
        self.sealed.len()
    }

    /// From the columns position, stream, number, at and content.
    pub(super) fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (position, stream, number): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Self {
            position: position.cast_unsigned(),
            stream: StreamKey::from_column(stream),
            number: number.cast_unsigned(),
            at: Timestamp::from_millis(row.get(3)?),
            sealed: row.get(4)?,
        })
    }
}

/// Writes an entry and its index. Returns the approximate number of bytes.
pub(crate) fn write_entry(
    connection: &Connection,
    (stream, position): (StreamKey, u64),
    entry: &AuditEntry,
    line: &str,
) -> rusqlite::Result<u64> {
    let (number, at) = (entry.number.cast_signed(), entry.at.0.millis());
    let sealed = seal::seal_bytes(SealLocation::Entry { stream, position }, line.as_bytes());
    let position = position.cast_signed();
    let sql = "INSERT INTO trail (position, stream, number, at, content) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute(params![position, stream.column(), number, at, sealed])?;
    let mut insert = connection.prepare_cached("INSERT INTO subject (subject, position) VALUES (?1, ?2)")?;
    let subjects = entry.subjects();
    for subject in &subjects {
        insert.execute(params![subject.to_string(), position])?;
    }
    let sql = "INSERT INTO hour (hour, first, last) VALUES (?1, ?2, ?2) ON CONFLICT DO UPDATE SET last = ?2";
    connection.prepare_cached(sql)?.execute(params![hour_of(entry.at.0), position])?;
    Ok((line.len() + 128 * subjects.len()) as u64)
}

/// Replaces an entry by one that [`is_about_the_same`]: the index stays valid.
pub(crate) fn rewrite_entry(
    connection: &Connection,
    (stream, position): (StreamKey, u64),
    line: &str,
) -> rusqlite::Result<u64> {
    let sealed = seal::seal_bytes(SealLocation::Entry { stream, position }, line.as_bytes());
    let sql = "UPDATE trail SET content = ?2 WHERE position = ?1";
    connection.prepare_cached(sql)?.execute(params![position.cast_signed(), sealed])?;
    Ok(line.len() as u64)
}

/// Returns true if two entries have the same number and the same index.
pub(super) fn is_about_the_same(one: &AuditEntry, other: &AuditEntry) -> bool {
    one.number == other.number && one.at == other.at && one.subjects() == other.subjects()
}

/// The chain before the entries that replace the last ones of a stream, and their positions, if these are about the
/// same.
pub(crate) fn chain_before<'a>(
    connection: &Connection,
    (stream, heading): (StreamKey, &StreamHeading),
    entries: impl Iterator<Item = &'a AuditEntry>,
) -> Result<(Chain, Vec<u64>), AppendError> {
    let read = |number: u64| {
        let row = read_numbered(connection, stream, number).map_err(|error| AppendError::from(&error))?;
        let row = row.ok_or(AppendError::OtherEntry)?;
        Ok::<_, AppendError>((row.position, row.entry().map_err(AppendError::Failed)?))
    };
    let (mut ends, mut positions): (Option<(u64, u64)>, _) = (None, Vec::new());
    for entry in entries {
        let (position, former) = read(entry.number)?;
        if !is_about_the_same(&former, entry) {
            return Err(AppendError::OtherEntry);
        }
        positions.push(position);
        ends = Some((ends.map_or(entry.number, |(first, _)| first), entry.number));
    }
    match ends {
        None => Ok((heading.audit_chain, positions)),
        Some((first, last)) if last == heading.audit_chain.number => {
            let is_oldest = first == heading.swept.number + 1;
            let before = if is_oldest { heading.swept } else { Chain::at(&read(first - 1)?.1)? };
            Ok((before, positions))
        }
        Some(_) => Err(AppendError::OtherEntry),
    }
}

pub(super) fn hour_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MILLIS)
}

/// Maximum size of a sealed entry.
const SEALED_BYTES_MAX: i64 = (ENTRY_BYTES_MAX + 64).cast_signed() as i64;

pub(super) fn read_row(connection: &Connection, position: u64) -> rusqlite::Result<Option<AuditRow>> {
    let sql = "SELECT position, stream, number, at, content FROM trail WHERE position = ?1 AND length(content) <= ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(params![position.cast_signed(), SEALED_BYTES_MAX], AuditRow::from_row).optional()
}

/// The entry of a stream with that number.
fn read_numbered(
    connection: &Connection,
    stream: StreamKey,
    number: u64,
) -> rusqlite::Result<Option<AuditRow>> {
    match position_of(connection, stream, number)? {
        Some(position) => read_row(connection, position),
        None => Ok(None),
    }
}

/// The position of the entry of a stream with that number.
pub(super) fn position_of(
    connection: &Connection,
    stream: StreamKey,
    number: u64,
) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT position FROM trail WHERE stream = ?1 AND number = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found =
        statement.query_row(params![stream.column(), number.cast_signed()], |row| row.get::<_, i64>(0));
    Ok(found.optional()?.map(i64::cast_unsigned))
}

/// The last position before all hidden entries. `hidden` has the last number that readers see, by stream.
pub(crate) fn shown_to(connection: &Connection, hidden: &BTreeMap<StreamKey, u64>) -> rusqlite::Result<u64> {
    let sql = "SELECT position FROM trail WHERE stream = ?1 AND number > ?2 ORDER BY number LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut shown_to = u64::MAX;
    for (stream, number) in hidden {
        let number = i64::try_from(*number).unwrap_or(i64::MAX);
        let found = statement.query_row(params![stream.column(), number], |row| row.get::<_, i64>(0));
        if let Some(position) = found.optional()? {
            shown_to = shown_to.min(position.cast_unsigned().saturating_sub(1));
        }
    }
    Ok(shown_to)
}

/// The row at a position that must have one.
pub(super) fn read_present(connection: &Connection, position: u64) -> Result<AuditRow, ReadError> {
    let row = read_row(connection, position)?;
    row.ok_or_else(|| ReadError::Damaged(format!("audit entry {position} is missing")))
}

pub(super) fn candidate(query: &AuditQuery, row: &AuditRow) -> Result<Candidate, ReadError> {
    if !is_in_time(query, row.at) {
        return Ok(Candidate::Other);
    }
    let entry = Arc::new(row.entry().map_err(ReadError::Damaged)?);
    let entry = LoggedEntry { position: row.position, entry };
    Ok(Candidate::Entry { entry, bytes: row.content_bytes() })
}

/// Range of positions that contains all entries of the query's time range.
pub(super) fn hours(connection: &Connection, query: &AuditQuery) -> rusqlite::Result<(u64, u64)> {
    let sql = "SELECT min(first), max(last) FROM hour WHERE hour BETWEEN ?1 AND ?2";
    let from = query.since.map_or(i64::MIN, hour_of);
    let to = query.until.map_or(i64::MAX, hour_of);
    let found: (Option<i64>, Option<i64>) =
        connection.prepare_cached(sql)?.query_row(params![from, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // No entry is from that time: an empty range.
    Ok(found.0.zip(found.1).map_or((1, 0), |(first, last)| (first.cast_unsigned(), last.cast_unsigned())))
}
