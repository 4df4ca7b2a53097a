//! Checks of the audit log: its ends on every opening, all of it on request.

use std::path::Path;

use forewarn_control::{Chain, ENTRY_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use super::table::{AuditRow, hour_of, read_row};
use crate::database::Heading;
use crate::error::OpenError;

/// Checks that the audit log begins and ends as the heading says: detects a truncated one.
pub(crate) fn check_ends(connection: &Connection, path: &Path, heading: &Heading) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let sql = "SELECT min(number), max(number) FROM trail";
    let ends: (Option<i64>, Option<i64>) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    let Heading { audit_chain, swept, .. } = heading;
    let (first, last) = match ends {
        (Some(first), Some(last)) => (first.cast_unsigned(), last.cast_unsigned()),
        (None, _) | (_, None) => (swept.number + 1, swept.number),
    };
    if first != swept.number + 1 {
        let what = format!("the audit log begins with entry {first} instead of {}", swept.number + 1);
        return Err(OpenError::damaged(path, what));
    }
    if last != audit_chain.number {
        let what = format!("the audit log ends with entry {last} instead of {}", audit_chain.number);
        return Err(OpenError::damaged(path, what));
    }
    let end = if last == swept.number { *swept } else { last_link(connection, path)? };
    if end != *audit_chain {
        return Err(OpenError::damaged(path, format!("audit entry {last} is damaged")));
    }
    Ok(())
}

fn last_link(connection: &Connection, path: &Path) -> Result<Chain, OpenError> {
    let sql = "SELECT number, at, content FROM trail ORDER BY number DESC LIMIT 1";
    let row = connection.query_row(sql, [], AuditRow::from_row);
    let row = row.map_err(|source| OpenError::database(path, source))?;
    let entry = row.entry().map_err(|what| OpenError::damaged(path, what))?;
    Chain::at(&entry).map_err(|error| OpenError::damaged(path, error.to_string()))
}

/// The chain after an entry; `None` if the entry is swept or cannot be read.
pub(crate) fn link_at(connection: &Connection, heading: &Heading, number: u64) -> Option<Chain> {
    let Heading { audit_chain, swept, .. } = heading;
    if let Some(end) = [audit_chain, swept].into_iter().find(|end| end.number == number) {
        return Some(*end);
    }
    let row = read_row(connection, number).ok()??;
    Chain::at(&row.entry().ok()?).ok()
}

/// Reads every entry, verifies the chain and the index. Returns the number of entries.
pub(crate) fn check_audit_log(
    connection: &Connection,
    path: &Path,
    heading: &Heading,
) -> Result<u64, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let damaged = |what: String| OpenError::damaged(path, what);
    let mut chain = heading.swept;
    let mut subjects = 0;
    let mut statement =
        connection.prepare("SELECT number, at, content FROM trail ORDER BY number").map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let row = AuditRow::from_row(row).map_err(failed)?;
        if row.content_bytes() > ENTRY_BYTES_MAX + 64 {
            return Err(damaged(format!("audit entry {} is too large", row.number)));
        }
        let entry = row.entry().map_err(damaged)?;
        chain.verify(&entry).map_err(|error| damaged(error.to_string()))?;
        let keys: Vec<_> = entry.subjects().iter().map(ToString::to_string).collect();
        if !is_found(connection, &row, &keys).map_err(failed)? {
            return Err(damaged(format!("audit entry {} is missing from the index", entry.number)));
        }
        subjects += keys.len() as u64;
    }
    let listed: i64 =
        connection.query_row("SELECT count(*) FROM subject", [], |row| row.get(0)).map_err(failed)?;
    if listed.cast_unsigned() != subjects {
        return Err(damaged("the index of the audit log has entries that do not exist".to_owned()));
    }
    Ok(chain.number - heading.swept.number)
}

fn is_found(connection: &Connection, row: &AuditRow, keys: &[String]) -> rusqlite::Result<bool> {
    let number = row.number.cast_signed();
    let mut there = connection.prepare_cached("SELECT 1 FROM subject WHERE subject = ?1 AND number = ?2")?;
    for key in keys {
        if !there.exists(params![key, number])? {
            return Ok(false);
        }
    }
    let sql = "SELECT 1 FROM hour WHERE hour = ?1 AND first <= ?2 AND last >= ?2";
    let mut hour = connection.prepare_cached(sql)?;
    Ok(hour.query_row(params![hour_of(row.at), number], |_| Ok(())).optional()?.is_some())
}
