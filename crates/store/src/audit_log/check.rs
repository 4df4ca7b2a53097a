//! Checks of the audit log: its ends on every opening, all of it on request or by [`super::AuditVerifier`].

use std::collections::BTreeMap;
use std::path::Path;

use forewarn_control::{Chain, ENTRY_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use super::table::{AuditRow, hour_of, position_of};
use super::view::AuditView;
use crate::error::OpenError;
use crate::heading::Headings;
use crate::stream_key::StreamKey;

/// Result of the comparison of the ends of the audit log with the headings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuditEnds {
    /// The audit log has both of its ends, as far as they can be read.
    Present,
    /// Entries at the end are missing.
    Lost(String),
    /// The audit file has entries that the journal no longer has.
    Ahead(String),
    /// An end cannot be read, or is not what was written.
    Damaged(String),
}

impl AuditEnds {
    /// Describes entries that the journal no longer has.
    pub(crate) fn lead(&self) -> Option<String> {
        match self {
            Self::Ahead(what) => Some(what.clone()),
            Self::Present | Self::Lost(_) | Self::Damaged(_) => None,
        }
    }
}

/// Compares the ends of the audit log with the headings: detects a truncated or older audit file, and a journal that
/// has lost commits. Reads a few entries.
pub(crate) fn compare_ends(view: &AuditView<'_>, headings: &Headings) -> AuditEnds {
    let (swept, end) = (headings.journal.audit_swept.number, headings.journal.audit_end.number);
    let mut elsewhere = view.pending().spans();
    elsewhere.extend(headings.missing_spans());
    elsewhere.sort_unstable();
    let filed = filed_range(&elsewhere, swept, end);
    let Some(file) = view.file() else {
        let lost = |(first, last)| AuditEnds::Lost(format!("it has audit entries {first} to {last}"));
        return filed.map_or(AuditEnds::Present, lost);
    };
    let find = || {
        let newest = find_end(file, End::Last, u64::MAX)?.unwrap_or(0);
        Ok((find_end(file, End::First, swept)?, find_end(file, End::Last, end)?, newest))
    };
    match find() {
        Err(error) => AuditEnds::Damaged(rusqlite::Error::to_string(&error)),
        Ok((_, _, newest)) if newest > end => match view.stored_link(newest) {
            Some(_) => ahead(newest, end),
            None => AuditEnds::Damaged(format!("audit entry {newest} is damaged")),
        },
        Ok((_, _, newest)) if let Some(ends) = compare_both(view, newest) => ends,
        Ok((begin, found, _)) => filed.map_or(AuditEnds::Present, |(first, last)| {
            let found = found.unwrap_or(swept).max(swept);
            if found < last {
                AuditEnds::Lost(format!("the audit log ends with entry {found} instead of {last}"))
            } else if let Some(begin) = begin.filter(|begin| *begin > first) {
                // No file of another time lacks its first entries only.
                AuditEnds::Damaged(format!("the audit log begins with entry {begin} instead of {first}"))
            } else if last == end && view.stored_link(last) != Some(headings.journal.audit_end) {
                AuditEnds::Damaged(format!("audit entry {last} is damaged"))
            } else {
                AuditEnds::Present
            }
        }),
    }
}

/// Compares the entry of the file at a position with the one that waits in the journal; `None` if there is no difference.
fn compare_both(view: &AuditView<'_>, position: u64) -> Option<AuditEnds> {
    match view.both_at(position)? {
        (Some(filed), waiting) if filed == waiting => None,
        (Some(_), _) => Some(AuditEnds::Ahead(format!(
            "the audit file has another acknowledged audit entry {position} than the journal"
        ))),
        (None, _) => Some(AuditEnds::Damaged(format!("audit entry {position} is damaged"))),
    }
}

fn ahead(found: u64, end: u64) -> AuditEnds {
    AuditEnds::Ahead(format!(
        "it ends with audit entry {end}, and the audit file has acknowledged entry {found}"
    ))
}

/// An end of the audit file.
#[derive(Clone, Copy)]
enum End {
    /// The first entry after a position.
    First,
    /// The last entry up to a position.
    Last,
}

/// Each is a lookup; one query for both reads the whole table.
fn find_end(file: &Connection, end: End, position: u64) -> rusqlite::Result<Option<u64>> {
    let sql = match end {
        End::First => "SELECT min(position) FROM trail WHERE position > ?1",
        End::Last => "SELECT max(position) FROM trail WHERE position <= ?1",
    };
    let position = i64::try_from(position).unwrap_or(i64::MAX);
    let found: Option<i64> = file.query_row(sql, params![position], |row| row.get(0))?;
    Ok(found.map(i64::cast_unsigned))
}

/// The first and the last position that must be in the audit file: those at the ends that are neither in the journal nor
/// missing, whose groups are given in their order.
fn filed_range(elsewhere: &[(u64, u64)], swept: u64, end: u64) -> Option<(u64, u64)> {
    let (mut first, mut last) = (swept + 1, end);
    for (position, count) in elsewhere {
        if *position <= first {
            first = first.max(position + count);
        }
    }
    for (position, count) in elsewhere.iter().rev() {
        if position + count > last {
            last = last.min(position - 1);
        }
    }
    (first <= last).then_some((first, last))
}

/// Reads every entry of an audit file that has all of them, verifies the chain of each stream and the index. Returns
/// the number of entries.
pub(crate) fn check_audit_log(
    connection: &Connection,
    path: &Path,
    headings: &Headings,
) -> Result<u64, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let damaged = |what: String| OpenError::damaged(path, what);
    let mut chains: BTreeMap<_, _> = headings.streams().map(|(key, heading)| (key, heading.swept)).collect();
    let (mut expected, mut subjects, mut entries) = (headings.journal.audit_swept.number, 0, 0);
    // Entries that are swept may still be there.
    let sql = "SELECT position, stream, number, at, content FROM trail WHERE position > ?1 \
               ORDER BY position";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let swept = headings.journal.audit_swept.number;
    let mut rows = statement.query(params![swept.cast_signed()]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let row = AuditRow::from_row(row).map_err(failed)?;
        expected = after_missing(headings, expected + 1);
        if row.position != expected {
            let found = row.position;
            return Err(damaged(format!("audit entry {expected} is missing: entry {found} comes next")));
        }
        entries += 1;
        let chain = chains.get(&row.stream).copied();
        let chain = chain.zip(headings.get(row.stream));
        let chain = chain.map(|(chain, heading)| heading.chain_before(row.number, chain));
        let (after, keys) = check_row(connection, &row, chain).map_err(failed)?.map_err(damaged)?;
        let Some(chain) = chains.get_mut(&row.stream) else {
            return Err(damaged(format!("audit entry {} is of an unknown stream", row.position)));
        };
        (*chain, subjects) = (after, subjects + keys);
    }
    check_chains(headings, &chains).map_err(damaged)?;
    let listed = "SELECT count(*) FROM subject WHERE position > ?1";
    let listed: i64 =
        connection.query_row(listed, params![swept.cast_signed()], |row| row.get(0)).map_err(failed)?;
    if listed.cast_unsigned() != subjects {
        return Err(damaged("the index of the audit log has entries that do not exist".to_owned()));
    }
    Ok(entries)
}

/// The first position from one on at which an entry is not known to be missing.
fn after_missing(headings: &Headings, mut position: u64) -> u64 {
    while let Some(missing) = headings.gap_at(position) {
        position = missing.last + 1;
    }
    position
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
        let end = heading.audit_chain.number.saturating_add(1);
        if chains.get(&key).map(|chain| heading.chain_before(end, *chain)) != Some(heading.audit_chain) {
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
