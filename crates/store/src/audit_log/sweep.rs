//! Sweeping: removes entries that exceed their retention, the oldest first.
//!
//! Each commit sweeps a few of them: the heading of each stream stores the number and the hash of its last entry swept,
//! so that the rest can still be verified. Swept entries are no part of the log any more; they are removed from the
//! audit file a little later, so that a crash in between does no harm.

use std::time::Duration;

use forewarn_control::{AuditEntry, Chain};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, params};

use super::table::{hour_of, read_row, read_rows};
use crate::heading::{Headings, MissingEntries};

/// Entries that one commit sweeps, in addition to as many as were written since the last one.
const ENTRIES_PER_COMMIT: u64 = 16;

/// The most of them: others wait for the commit.
const ENTRIES_PER_COMMIT_MAX: u64 = 256;

/// Removes old audit entries.
#[derive(Debug)]
pub(crate) struct AuditSweeper {
    keep: Duration,
    /// Last value of the wall clock: not its highest one, which may have been an accident.
    now: Timestamp,
    /// No entry expires before this time.
    due: Timestamp,
    /// Number of entries that were written and for which none was swept.
    debt: u64,
}

impl AuditSweeper {
    pub(crate) fn new(keep: Duration) -> Self {
        let beginning = Timestamp::from_millis(0);
        Self { keep, now: beginning, due: beginning, debt: 0 }
    }

    /// Records the time of the wall clock.
    pub(crate) fn record_time(&mut self, wall: Option<Timestamp>) {
        self.now = wall.unwrap_or(self.now);
    }

    /// Records that a commit writes that many entries.
    pub(crate) fn record_entries(&mut self, written: usize) {
        self.debt += written as u64;
    }

    /// Returns true if entries have expired, and fewer of them were swept than others were written.
    pub(crate) fn is_behind(&self) -> bool {
        self.debt > 0 && self.now >= self.due
    }

    /// Sweeps some expired entries of the audit file.
    pub(crate) fn go_on(&mut self, audit: &Connection, headings: &mut Headings) {
        let count = (self.debt + ENTRIES_PER_COMMIT).min(ENTRIES_PER_COMMIT_MAX);
        let swept = self.sweep(audit, headings, count);
        self.debt = if swept < count { 0 } else { self.debt.saturating_sub(swept) };
    }

    /// Sweeps up to that many expired entries. Returns their number.
    fn sweep(&mut self, audit: &Connection, headings: &mut Headings, count: u64) -> u64 {
        if self.now < self.due {
            return 0;
        }
        for swept in 0..count {
            let position = headings.journal.audit_swept.number + 1;
            if headings.gap_at(position).is_some() {
                if !self.sweep_missing(audit, headings, position) {
                    return swept;
                }
                continue;
            }
            // A damaged entry stays: it is evidence, and entries after it cannot be verified without it.
            let Ok(Some(row)) = read_row(audit, position) else { return swept };
            self.due = row.at.plus(self.keep);
            if self.now < self.due {
                return swept;
            }
            let Ok(entry) = row.entry() else { return swept };
            let Ok(link) = Chain::at(&entry) else { return swept };
            if headings.get(row.stream).is_none() {
                return swept;
            }
            headings.get_mut(row.stream).sweep(link);
            headings.journal.audit_swept = Chain { number: position, ..link };
        }
        count
    }

    /// Sweeps missing entries from a position on, once the entry after them has expired: they are older. Returns false if
    /// it has not, or others of the gap come later: it may still be filled.
    fn sweep_missing(&mut self, audit: &Connection, headings: &mut Headings, position: u64) -> bool {
        let Some(MissingEntries { stream, gap, last, .. }) = headings.gap_at(position) else { return false };
        let link = gap.end;
        let is_end = gap.run.position(link.number) == Some(last);
        let next = read_rows(audit, (last, headings.journal.audit_end.number), (1, usize::MAX));
        let Some(next) = next.ok().and_then(|rows| rows.into_iter().next()) else { return false };
        self.due = next.at.plus(self.keep);
        if !is_end || self.now < self.due {
            return false;
        }
        headings.get_mut(stream).sweep(link);
        headings.journal.audit_swept = Chain { number: last, ..link };
        true
    }
}

/// Subjects after which a removal of swept entries ends.
const SUBJECTS_PER_REMOVAL: usize = 2_000;

/// Removes some swept entries from the audit file. Returns the position of the last entry before the remaining ones.
pub(crate) fn remove_swept(audit: &Connection, swept: u64, count: usize) -> rusqlite::Result<u64> {
    let mut statement = audit.prepare_cached("SELECT min(position) FROM trail")?;
    let first: Option<i64> = statement.query_row([], |row| row.get(0))?;
    let Some(first) = first.map(i64::cast_unsigned) else { return Ok(swept) };
    // A damaged position may be 0, or the highest of all.
    let mut subjects = 0;
    for position in (first..=swept).take(count) {
        if subjects >= SUBJECTS_PER_REMOVAL {
            return Ok(position.saturating_sub(1));
        }
        let Some(row) = read_row(audit, position)? else { return Ok(position.saturating_sub(1)) };
        // Its index is unknown: it stays, as evidence.
        let Ok(entry) = row.entry() else { return Ok(position.saturating_sub(1)) };
        subjects += remove(audit, position, &entry)?;
    }
    Ok(swept.min(first.saturating_sub(1).saturating_add(count as u64)))
}

/// Removes all entries after a position: the journal has lost them.
pub(crate) fn remove_after(audit: &Connection, position: u64) -> rusqlite::Result<()> {
    let statements = [
        "DELETE FROM trail WHERE position > ?1",
        "DELETE FROM subject WHERE position > ?1",
        "DELETE FROM hour WHERE first > ?1",
        "UPDATE hour SET last = ?1 WHERE last > ?1",
    ];
    statements.iter().try_for_each(|sql| audit.execute(sql, params![position.cast_signed()]).map(drop))
}

/// Removes an entry that belongs to another history. It may be damaged.
pub(crate) fn remove_at(audit: &Connection, position: u64) -> rusqlite::Result<()> {
    let statements = [
        "DELETE FROM trail WHERE position = ?1",
        "DELETE FROM subject WHERE position = ?1",
        "DELETE FROM hour WHERE first = ?1 AND last = ?1",
    ];
    statements.iter().try_for_each(|sql| audit.execute(sql, params![position.cast_signed()]).map(drop))
}

/// Removes an entry and its index. Returns the number of its subjects.
fn remove(connection: &Connection, position: u64, entry: &AuditEntry) -> rusqlite::Result<usize> {
    let (position, hour) = (position.cast_signed(), hour_of(entry.at.0));
    connection.prepare_cached("DELETE FROM trail WHERE position = ?1")?.execute(params![position])?;
    let mut delete = connection.prepare_cached("DELETE FROM subject WHERE subject = ?1 AND position = ?2")?;
    let subjects = entry.subjects();
    for subject in &subjects {
        delete.execute(params![subject.to_string(), position])?;
    }
    let sql = "UPDATE hour SET first = ?2 + 1 WHERE hour = ?1";
    connection.prepare_cached(sql)?.execute(params![hour, position])?;
    let sql = "DELETE FROM hour WHERE hour = ?1 AND last <= ?2";
    connection.prepare_cached(sql)?.execute(params![hour, position])?;
    Ok(subjects.len())
}
