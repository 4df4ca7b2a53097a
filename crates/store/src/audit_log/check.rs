//! Checks of the audit log: its ends on every opening, all of it on request or by [`super::AuditVerifier`].

use std::collections::BTreeMap;
use std::path::Path;

use forewarn_control::{Chain, ENTRY_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use super::table::{AuditRow, hour_of, position_of, read_row};
use crate::error::OpenError;
use crate::heading::{Headings, StreamHeading};
use crate::stream_key::StreamKey;

/// Checks that the audit log, and the part of each stream, ends as the headings say: detects a truncated one.
pub(crate) fn check_ends(connection: &Connection, path: &Path, headings: &Headings) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    // Each by itself is a lookup; one query for both reads the whole table.
    let find = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0)).map_err(failed);
    let ends = (find("SELECT min(position) FROM trail")?, find("SELECT max(position) FROM trail")?);
    let (swept, end) = (headings.journal.audit_swept, headings.journal.audit_end);
    let (first, last) = match ends {
        (Some(first), Some(last)) => (first.cast_unsigned(), last.cast_unsigned()),
        (None, _) | (_, None) => (swept.number + 1, swept.number),
    };
    if first != swept.number + 1 {
        let what = format!("the audit log begins with entry {first} instead of {}", swept.number + 1);
        return Err(OpenError::damaged(path, what));
    }
    if last != end.number {
        let what = format!("the audit log ends with entry {last} instead of {}", end.number);
        return Err(OpenError::damaged(path, what));
    }
    let link = if last == swept.number { Some(swept) } else { link_of(connection, last) };
    if link != Some(end) {
        return Err(OpenError::damaged(path, format!("audit entry {last} is damaged")));
    }
    headings.streams().try_for_each(|(key, heading)| check_end_of(connection, path, key, heading))
}

/// Checks the last entry of a stream.
fn check_end_of(
    connection: &Connection,
    path: &Path,
    key: StreamKey,
    heading: &StreamHeading,
) -> Result<(), OpenError> {
    if heading.is_swept() {
        return Ok(());
    }
    let number = heading.audit_chain.number;
    let position =
        position_of(connection, key, number).map_err(|source| OpenError::database(path, source))?;
    let Some(position) = position else {
        return Err(OpenError::damaged(path, format!("audit entry {number} of {key} is missing")));
    };
    if stored_link(connection, position) != Some(heading.audit_chain) {
        return Err(OpenError::damaged(path, format!("audit entry {number} of {key} is damaged")));
    }
    Ok(())
}

/// The chain of a stream after the entry at a position; `None` if the entry cannot be read.
fn stored_link(connection: &Connection, position: u64) -> Option<Chain> {
    Chain::at(&read_row(connection, position).ok()??.entry().ok()?).ok()
}

/// Position and hash of an entry; `None` if the entry is swept or cannot be read.
pub(crate) fn link_at(connection: &Connection, headings: &Headings, position: u64) -> Option<Chain> {
    let (swept, end) = (headings.journal.audit_swept, headings.journal.audit_end);
    if swept.number == position {
        return Some(swept);
    }
    if end.number == position {
        return Some(end);
    }
    link_of(connection, position)
}

/// Position and hash of a stored entry; `None` if it cannot be read.
fn link_of(connection: &Connection, position: u64) -> Option<Chain> {
    stored_link(connection, position).map(|link| Chain { number: position, ..link })
}

/// Reads every entry, verifies the chain of each stream and the index. Returns the number of entries.
pub(crate) fn check_audit_log(
    connection: &Connection,
    path: &Path,
    headings: &Headings,
) -> Result<u64, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let damaged = |what: String| OpenError::damaged(path, what);
    let mut chains: BTreeMap<_, _> = headings.streams().map(|(key, heading)| (key, heading.swept)).collect();
    let (mut expected, mut subjects) = (headings.journal.audit_swept.number, 0);
    let sql = "SELECT position, stream, number, at, content FROM trail ORDER BY position";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let row = AuditRow::from_row(row).map_err(failed)?;
        expected += 1;
        if row.position != expected {
            let found = row.position;
            return Err(damaged(format!("audit entry {expected} is missing: entry {found} comes next")));
        }
        let chain = chains.get(&row.stream).copied();
        let (after, keys) = check_row(connection, &row, chain).map_err(failed)?.map_err(damaged)?;
        let Some(chain) = chains.get_mut(&row.stream) else {
            return Err(damaged(format!("audit entry {} is of an unknown stream", row.position)));
        };
        (*chain, subjects) = (after, subjects + keys);
    }
    check_chains(headings, &chains).map_err(damaged)?;
    let listed: i64 =
        connection.query_row("SELECT count(*) FROM subject", [], |row| row.get(0)).map_err(failed)?;
    if listed.cast_unsigned() != subjects {
        return Err(damaged("the index of the audit log has entries that do not exist".to_owned()));
    }
    Ok(expected - headings.journal.audit_swept.number)
}

/// Verifies an entry, that it continues a chain if there is one, and its index. Returns the chain after it, and the
/// number of its subjects.
pub(super) fn check_row(
    connection: &Connection,
    row: &AuditRow,
    chain: Option<Chain>,
) -> rusqlite::Result<Result<(Chain, u64), String>> {
    if row.content_bytes() > ENTRY_BYTES_MAX + 64 {
        return Ok(Err(format!("audit entry {} is too large", row.position)));
    }
    let entry = match row.entry() {
        Ok(entry) => entry,
        Err(what) => return Ok(Err(what)),
    };
    let verified = chain.map_or_else(|| Ok(()), |mut chain| chain.verify(&entry));
    let after = match verified.and_then(|()| Chain::at(&entry)) {
        Ok(after) => after,
        Err(error) => return Ok(Err(format!("{}: {error}", row.stream))),
    };
    let keys: Vec<_> = entry.subjects().iter().map(ToString::to_string).collect();
    if !is_found(connection, row, &keys)? {
        return Ok(Err(format!("audit entry {} is missing from the index", row.position)));
    }
    Ok(Ok((after, keys.len() as u64)))
}

/// Checks that each log ends as its heading says, and that logs which continue the common one begin at its end.
pub(super) fn check_chains(headings: &Headings, chains: &BTreeMap<StreamKey, Chain>) -> Result<(), String> {
    let common = headings.get(StreamKey::COMMON).map_or_else(Chain::default, |common| common.audit_chain);
    for (key, heading) in headings.streams() {
        if chains.get(&key) != Some(&heading.audit_chain) {
            return Err(format!(
                "the audit log of {key} does not end with entry {}",
                heading.audit_chain.number
            ));
        }
        if heading.begin != Chain::default() && heading.begin != common {
            return Err(format!("the audit log of {key} does not continue the common log"));
        }
    }
    Ok(())
}

fn is_found(connection: &Connection, row: &AuditRow, keys: &[String]) -> rusqlite::Result<bool> {
    let position = row.position.cast_signed();
    let mut there =
        connection.prepare_cached("SELECT 1 FROM subject WHERE subject = ?1 AND position = ?2")?;
    for key in keys {
        if !there.exists(params![key, position])? {
            return Ok(false);
        }
    }
    if position_of(connection, row.stream, row.number)? != Some(row.position) {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM hour WHERE hour = ?1 AND first <= ?2 AND last >= ?2";
    let mut hour = connection.prepare_cached(sql)?;
    Ok(hour.query_row(params![hour_of(row.at), position], |_| Ok(())).optional()?.is_some())
}
