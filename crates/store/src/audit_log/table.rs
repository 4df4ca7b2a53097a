//! The tables of the audit log.
//!
//! | table | content |
//! |---|---|
//! | `trail` | each entry as JSON with its time, stream and number, by position, under a checksum |
//! | `subject` | positions of entries by subject: the cost of a filter is that of its result |
//! | `hour` | first and last position of each hour of the wall clock, which may have been set back |

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{AuditEntry, ENTRY_BYTES_MAX};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::search::{Candidate, is_in_time};
use super::{AuditQuery, LoggedEntry, ReadError};
use crate::codec::seal::{self, SealLocation};
use crate::stream_key::StreamKey;

/// Rows that one query may read: a commit waits for no more.
pub(super) const ROWS_PER_QUERY_MAX: usize = 2_000;

const HOUR_MILLIS: i64 = 3_600_000;

/// One row of the table `trail`.
pub(crate) struct AuditRow {
    pub(crate) position: u64,
    pub(crate) stream: StreamKey,
    pub(crate) number: u64,
    pub(super) at: Timestamp,
    sealed: Vec<u8>,
}

impl AuditRow {
    /// The entry as a line; fails if it is not what was written.
    pub(crate) fn line(&self) -> Result<&str, String> {
        let Self { position, stream, sealed, .. } = self;
        let wrong = |what: &dyn std::fmt::Display| format!("audit entry {position}: {what}");
        let location = SealLocation::Entry { stream: *stream, position: *position };
        let content = seal::open_bytes(location, sealed).map_err(|error| wrong(&error))?;
        std::str::from_utf8(content).map_err(|error| wrong(&error))
    }

    /// The entry; fails if the row is not what was written.
    pub(crate) fn entry(&self) -> Result<AuditEntry, String> {
        let Self { position, number, at, .. } = self;
        let wrong = |what: &dyn std::fmt::Display| format!("audit entry {position}: {what}");
        let entry: AuditEntry = serde_json::from_str(self.line()?).map_err(|error| wrong(&error))?;
        if entry.number != *number || entry.at.0 != *at {
            return Err(wrong(&"it is in the place of another one"));
        }
        Ok(entry)
    }

    pub(crate) fn content_bytes(&self) -> usize {
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

/// Writes an entry and its index into the audit file. An entry that is already there stays, and must be the same one:
/// false if it is another. Returns that, and the number of its subjects.
pub(crate) fn file_entry(
    audit: &Connection,
    (stream, position): (StreamKey, u64),
    entry: &AuditEntry,
    line: &str,
) -> rusqlite::Result<(FiledEntry, u64)> {
    let (number, at) = (entry.number.cast_signed(), entry.at.0.millis());
    let sealed = seal::seal_bytes(SealLocation::Entry { stream, position }, line.as_bytes());
    let key = position.cast_signed();
    let sql = "INSERT INTO trail (position, stream, number, at, content) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT DO NOTHING";
    let written = audit.prepare_cached(sql)?.execute(params![key, stream.column(), number, at, sealed])?;
    if written == 0 {
        let is_same = read_row(audit, position)?.is_some_and(|row| {
            (row.stream, row.number, row.at.millis()) == (stream, entry.number, at) && row.sealed == sealed
        });
        if !is_same {
            return Ok((FiledEntry::Another, 0));
        }
    }
    let sql = "INSERT INTO subject (subject, position) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let mut insert = audit.prepare_cached(sql)?;
    let subjects = entry.subjects();
    for subject in &subjects {
        insert.execute(params![subject.to_string(), key])?;
    }
    let sql = "INSERT INTO hour (hour, first, last) VALUES (?1, ?2, ?2) \
               ON CONFLICT DO UPDATE SET first = min(first, ?2), last = max(last, ?2)";
    audit.prepare_cached(sql)?.execute(params![hour_of(entry.at.0), key])?;
    Ok((FiledEntry::Same, subjects.len() as u64))
}

/// The entry at a position after one was written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FiledEntry {
    Same,
    /// Another entry was there before.
    Another,
}

/// Returns true if two entries have the same number and the same index.
pub(super) fn is_about_the_same(one: &AuditEntry, other: &AuditEntry) -> bool {
    one.number == other.number && one.at == other.at && one.subjects() == other.subjects()
}

pub(super) fn hour_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MILLIS)
}

/// Maximum size of a sealed entry.
const SEALED_BYTES_MAX: i64 = (ENTRY_BYTES_MAX + 64).cast_signed() as i64;

pub(crate) fn read_row(connection: &Connection, position: u64) -> rusqlite::Result<Option<AuditRow>> {
    let sql = "SELECT position, stream, number, at, content FROM trail WHERE position = ?1 AND length(content) <= ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(params![position.cast_signed(), SEALED_BYTES_MAX], AuditRow::from_row).optional()
}

/// Some rows after a position, up to another one: at most that many, and about that many bytes.
pub(crate) fn read_rows(
    connection: &Connection,
    (after, to): (u64, u64),
    (count, bytes): (usize, usize),
) -> rusqlite::Result<Vec<AuditRow>> {
    let sql = "SELECT position, stream, number, at, content FROM trail \
               WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let mut found = statement.query(params![after.cast_signed(), to.cast_signed(), limit])?;
    let (mut rows, mut size) = (Vec::new(), 0);
    while size < bytes
        && let Some(row) = found.next()?
    {
        let row = AuditRow::from_row(row)?;
        size += row.content_bytes();
        rows.push(row);
    }
    Ok(rows)
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

/// The last position before all hidden entries in the audit file. `hidden` has the last number that readers see, by
/// stream.
pub(super) fn shown_to(connection: &Connection, hidden: &BTreeMap<StreamKey, u64>) -> rusqlite::Result<u64> {
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
