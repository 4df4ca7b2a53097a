//! Whether a trail is what was written: its ends whenever a journal is opened, all of it when it is checked.

use std::path::Path;

use forewarn_control::{Chain, ENTRY_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use super::table::{Shelf, hour_of, read_shelf};
use crate::database::Heading;
use crate::error::OpenError;

/// Sees that the trail begins and ends where the heading says: an end that was cut off is missed here.
pub(crate) fn check_ends(connection: &Connection, path: &Path, heading: &Heading) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let sql = "SELECT min(number), max(number) FROM trail";
    let ends: (Option<i64>, Option<i64>) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    let Heading { trail, swept, .. } = heading;
    let (first, last) = match ends {
        (Some(first), Some(last)) => (first.cast_unsigned(), last.cast_unsigned()),
        (None, _) | (_, None) => (swept.number + 1, swept.number),
    };
    if first != swept.number + 1 {
        let what = format!("the trail begins with entry {first}, and should with {}", swept.number + 1);
        return Err(OpenError::damaged(path, what));
    }
    if last != trail.number {
        let what = format!("the trail ends with entry {last}, and should with {}", trail.number);
        return Err(OpenError::damaged(path, what));
    }
    let end = if last == swept.number { *swept } else { last_link(connection, path)? };
    if end != *trail {
        return Err(OpenError::damaged(path, format!("entry {last} of the trail is not what was written")));
    }
    Ok(())
}

fn last_link(connection: &Connection, path: &Path) -> Result<Chain, OpenError> {
    let sql = "SELECT number, at, content FROM trail ORDER BY number DESC LIMIT 1";
    let shelf = connection.query_row(sql, [], Shelf::from_row);
    let shelf = shelf.map_err(|source| OpenError::database(path, source))?;
    let entry = shelf.entry().map_err(|what| OpenError::damaged(path, what))?;
    Chain::at(&entry).map_err(|problem| OpenError::damaged(path, problem.to_string()))
}

/// The chain after the entry of that number; `None` if the entry is swept away or cannot be read.
pub(crate) fn link_at(connection: &Connection, heading: &Heading, number: u64) -> Option<Chain> {
    let Heading { trail, swept, .. } = heading;
    if let Some(end) = [trail, swept].into_iter().find(|end| end.number == number) {
        return Some(*end);
    }
    let shelf = read_shelf(connection, number).ok()??;
    Chain::at(&shelf.entry().ok()?).ok()
}

/// Reads every entry, verifies the chain, and sees that each is found where it should be. Says how many there are.
pub(crate) fn check_trail(connection: &Connection, path: &Path, heading: &Heading) -> Result<u64, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let damaged = |what: String| OpenError::damaged(path, what);
    let mut chain = heading.swept;
    let mut subjects = 0;
    let mut statement =
        connection.prepare("SELECT number, at, content FROM trail ORDER BY number").map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let shelf = Shelf::from_row(row).map_err(failed)?;
        if shelf.content_bytes() > ENTRY_BYTES_MAX + 64 {
            return Err(damaged(format!("entry {} of the trail is too large", shelf.number)));
        }
        let entry = shelf.entry().map_err(damaged)?;
        chain.verify(&entry).map_err(|problem| damaged(problem.to_string()))?;
        let keys: Vec<_> = entry.subjects().iter().map(ToString::to_string).collect();
        if !is_found(connection, &shelf, &keys).map_err(failed)? {
            return Err(damaged(format!(
                "entry {} of the trail is not found where it should be",
                entry.number
            )));
        }
        subjects += keys.len() as u64;
    }
    let listed: i64 =
        connection.query_row("SELECT count(*) FROM subject", [], |row| row.get(0)).map_err(failed)?;
    if listed.cast_unsigned() != subjects {
        return Err(damaged("the index of the trail names what is not there".to_owned()));
    }
    Ok(chain.number - heading.swept.number)
}

fn is_found(connection: &Connection, shelf: &Shelf, keys: &[String]) -> rusqlite::Result<bool> {
    let number = shelf.number.cast_signed();
    let mut there = connection.prepare_cached("SELECT 1 FROM subject WHERE subject = ?1 AND number = ?2")?;
    for key in keys {
        if !there.exists(params![key, number])? {
            return Ok(false);
        }
    }
    let sql = "SELECT 1 FROM hour WHERE hour = ?1 AND first <= ?2 AND last >= ?2";
    let mut hour = connection.prepare_cached(sql)?;
    Ok(hour.query_row(params![hour_of(shelf.at), number], |_| Ok(())).optional()?.is_some())
}
