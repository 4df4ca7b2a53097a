//! The tables of the audit log.
//!
//! | table | content |
//! |---|---|
//! | `trail` | each entry as JSON with its time, by number, under a checksum |
//! | `subject` | numbers of entries by subject: the cost of a filter is that of its result |
//! | `hour` | first and last number of each hour of the wall clock, which may have been set back |

use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::search::{Candidate, SearchStep, StoredRange, is_in_time, range, search};
use super::{AuditBatch, AuditQuery, Direction, ReadError};
use crate::codec::seal::{self, SealLocation};
use crate::database::Heading;
use crate::error::AppendError;

/// Rows that one query may read, and index lookups that it may do: a commit waits for no more.
const ROWS_PER_QUERY_MAX: usize = 2_000;
const SEEKS_PER_QUERY_MAX: usize = 4_000;

const HOUR_MILLIS: i64 = 3_600_000;

/// One row of the table `trail`.
pub(super) struct AuditRow {
    pub(super) number: u64,
    pub(super) at: Timestamp,
    sealed: Vec<u8>,
}

impl AuditRow {
    /// The entry; fails if the row is not what was written.
    pub(super) fn entry(&self) -> Result<AuditEntry, String> {
        let Self { number, at, sealed } = self;
        let wrong = |what: &dyn std::fmt::Display| format!("audit entry {number}: {what}");
        let content =
            seal::open_bytes(SealLocation::Entry(*number), sealed).map_err(|error| wrong(&error))?;
        let entry: AuditEntry = serde_json::from_slice(content).map_err(|error| wrong(&error))?;
        if entry.number != *number || entry.at.0 != *at {
            return Err(wrong(&"it is in the place of another one"));
        }
        Ok(entry)
    }

    pub(super) fn content_bytes(&self) -> usize {
        self.sealed.len()
    }

    pub(super) fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (number, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        let sealed = row.get(2)?;
        Ok(Self { number: number.cast_unsigned(), at: Timestamp::from_millis(at), sealed })
    }
}

/// Writes an entry and its index. Returns the approximate number of bytes.
pub(crate) fn write_entry(connection: &Connection, entry: &AuditEntry, line: &str) -> rusqlite::Result<u64> {
    let (number, at) = (entry.number.cast_signed(), entry.at.0.millis());
    let sealed = seal::seal_bytes(SealLocation::Entry(entry.number), line.as_bytes());
    let sql = "INSERT INTO trail (number, at, content) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![number, at, sealed])?;
    let mut insert = connection.prepare_cached("INSERT INTO subject (subject, number) VALUES (?1, ?2)")?;
    let subjects = entry.subjects();
    for subject in &subjects {
        insert.execute(params![subject.to_string(), number])?;
    }
    let sql = "INSERT INTO hour (hour, first, last) VALUES (?1, ?2, ?2) ON CONFLICT DO UPDATE SET last = ?2";
    connection.prepare_cached(sql)?.execute(params![hour_of(entry.at.0), number])?;
    Ok((line.len() + 128 * subjects.len()) as u64)
}

/// Replaces an entry by one that [`is_about_the_same`]: the index stays valid.
pub(crate) fn rewrite_entry(
    connection: &Connection,
    entry: &AuditEntry,
    line: &str,
) -> rusqlite::Result<u64> {
    let sealed = seal::seal_bytes(SealLocation::Entry(entry.number), line.as_bytes());
    let sql = "UPDATE trail SET content = ?2 WHERE number = ?1";
    connection.prepare_cached(sql)?.execute(params![entry.number.cast_signed(), sealed])?;
    Ok(line.len() as u64)
}

/// Returns true if two entries have the same number and the same index.
pub(super) fn is_about_the_same(one: &AuditEntry, other: &AuditEntry) -> bool {
    one.number == other.number && one.at == other.at && one.subjects() == other.subjects()
}

/// The chain before the entries that replace the last ones, if these are about the same.
pub(crate) fn chain_before(
    connection: &Connection,
    heading: &Heading,
    entries: &[Arc<AuditEntry>],
) -> Result<Chain, AppendError> {
    let read = |number: u64| {
        let row = read_row(connection, number).map_err(|error| AppendError::from(&error))?;
        row.ok_or(AppendError::OtherEntry)?.entry().map_err(AppendError::Failed)
    };
    for entry in entries {
        if !is_about_the_same(&read(entry.number)?, entry) {
            return Err(AppendError::OtherEntry);
        }
    }
    let ends = (entries.first().map(|entry| entry.number), entries.last().map(|entry| entry.number));
    match ends {
        (Some(first), Some(last)) if last == heading.audit_chain.number => {
            let is_oldest = first == heading.swept.number + 1;
            if is_oldest { Ok(heading.swept) } else { Ok(Chain::at(&read(first - 1)?)?) }
        }
        (None, None) => Ok(heading.audit_chain),
        (Some(_) | None, _) => Err(AppendError::OtherEntry),
    }
}

pub(super) fn hour_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MILLIS)
}

pub(super) fn read_row(connection: &Connection, number: u64) -> rusqlite::Result<Option<AuditRow>> {
    let sql = "SELECT number, at, content FROM trail WHERE number = ?1 AND length(content) <= ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let bytes_max = (ENTRY_BYTES_MAX + 64) as u64;
    statement.query_row(params![number.cast_signed(), bytes_max.cast_signed()], AuditRow::from_row).optional()
}

/// Runs a query; entries after `shown_to` are invisible.
pub(crate) fn read_page(
    connection: &Connection,
    heading: &Heading,
    query: &AuditQuery,
    shown_to: u64,
) -> Result<AuditBatch, ReadError> {
    let swept = heading.swept.number;
    let stored = StoredRange { swept, head: heading.audit_chain.number.min(shown_to).max(swept) };
    let mut range = range(query, stored);
    if query.since.is_some() || query.until.is_some() {
        let (first, last) = hours(connection, query)?;
        range = first.max(*range.start())..=last.min(*range.end());
    }
    let mut finder = SubjectFinder::new(connection, query);
    let look = |number: u64| {
        let row = read_row(connection, number)?;
        let row = row.ok_or_else(|| ReadError::Damaged(format!("audit entry {number} is missing")))?;
        if !is_in_time(query, row.at) {
            return Ok(Candidate::Other);
        }
        let entry = Arc::new(row.entry().map_err(ReadError::Damaged)?);
        Ok(Candidate::Entry { entry, bytes: row.content_bytes() })
    };
    search(query, stored, range, ROWS_PER_QUERY_MAX, |number| finder.next(number), look)
}

/// Range of numbers that contains all entries of the query's time range.
fn hours(connection: &Connection, query: &AuditQuery) -> rusqlite::Result<(u64, u64)> {
    let sql = "SELECT min(first), max(last) FROM hour WHERE hour BETWEEN ?1 AND ?2";
    let from = query.since.map_or(i64::MIN, hour_of);
    let to = query.until.map_or(i64::MAX, hour_of);
    let found: (Option<i64>, Option<i64>) =
        connection.prepare_cached(sql)?.query_row(params![from, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // No entry is from that time: an empty range.
    Ok(found.0.zip(found.1).map_or((1, 0), |(first, last)| (first.cast_unsigned(), last.cast_unsigned())))
}

/// Finds the next number that is under a subject of every group: each group in turn names its next number, until all
/// agree. That takes about as many lookups as the rarest group has entries.
struct SubjectFinder<'a> {
    connection: &'a Connection,
    direction: Direction,
    groups: Vec<Vec<String>>,
    seeks: usize,
}

impl<'a> SubjectFinder<'a> {
    fn new(connection: &'a Connection, query: &AuditQuery) -> Self {
        let keys = |group: &Vec<_>| group.iter().map(ToString::to_string).collect();
        let groups = query.groups.iter().map(keys).collect();
        Self { connection, direction: query.direction, groups, seeks: SEEKS_PER_QUERY_MAX }
    }

    fn next(&mut self, from: u64) -> Result<SearchStep, ReadError> {
        let mut number = from;
        let mut agreed = 0;
        let mut turn = 0;
        while agreed < self.groups.len() {
            if self.seeks < self.groups[turn].len() {
                return Ok(SearchStep::LimitReached(number));
            }
            match self.seek(turn, number)? {
                None => return Ok(SearchStep::End),
                Some(found) if found == number => agreed += 1,
                Some(found) => (number, agreed) = (found, 1),
            }
            turn = (turn + 1) % self.groups.len();
        }
        Ok(SearchStep::At(number))
    }

    /// The nearest number, from there on, under a subject of a group.
    fn seek(&mut self, group: usize, from: u64) -> rusqlite::Result<Option<u64>> {
        let sql = match self.direction {
            Direction::OldestFirst => {
                "SELECT number FROM subject WHERE subject = ?1 AND number >= ?2 ORDER BY number LIMIT 1"
            }
            Direction::NewestFirst => {
                "SELECT number FROM subject WHERE subject = ?1 AND number <= ?2 ORDER BY number DESC LIMIT 1"
            }
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut nearest: Option<u64> = None;
        for key in &self.groups[group] {
            self.seeks -= 1;
            let found: Option<i64> =
                statement.query_row(params![key, from.cast_signed()], |row| row.get(0)).optional()?;
            let Some(found) = found.map(i64::cast_unsigned) else { continue };
            nearest = Some(match (nearest, self.direction) {
                (None, _) => found,
                (Some(best), Direction::OldestFirst) => best.min(found),
                (Some(best), Direction::NewestFirst) => best.max(found),
            });
        }
        Ok(nearest)
    }
}
