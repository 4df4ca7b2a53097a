//! Sweeping: removes entries that exceed their retention, the oldest first, a few with every commit.
//!
//! The heading of each stream stores the number and the hash of its last entry swept, so that the rest can still be
//! verified.

use std::time::Duration;

use forewarn_control::{AuditEntry, Chain};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, params};

use super::table::{hour_of, read_row};
use crate::heading::Headings;

/// Entries that one commit sweeps, in addition to as many as it writes.
const ENTRIES_PER_COMMIT: usize = 16;

/// Removes old audit entries.
#[derive(Debug)]
pub(crate) struct AuditSweeper {
    keep: Duration,
    /// Last value of the wall clock: not its highest one, which may have been an accident.
    now: Timestamp,
    /// No entry expires before this time.
    due: Timestamp,
}

impl AuditSweeper {
    pub(crate) fn new(keep: Duration) -> Self {
        let beginning = Timestamp::from_millis(0);
        Self { keep, now: beginning, due: beginning }
    }

    /// Records the time of the wall clock.
    pub(crate) fn record_time(&mut self, wall: Option<Timestamp>) {
        self.now = wall.unwrap_or(self.now);
    }

    /// Sweeps some expired entries, in a commit that writes that many entries.
    pub(crate) fn go_on(
        &mut self,
        connection: &Connection,
        headings: &mut Headings,
        written: usize,
    ) -> rusqlite::Result<()> {
        if self.now < self.due {
            return Ok(());
        }
        for _ in 0..written + ENTRIES_PER_COMMIT {
            let position = headings.journal.audit_swept.number + 1;
            let Some(row) = read_row(connection, position)? else { return Ok(()) };
            self.due = row.at.plus(self.keep);
            if self.now < self.due {
                return Ok(());
            }
            // A damaged entry stays: it is evidence, and entries after it cannot be verified without it.
            let Ok(entry) = row.entry() else { return Ok(()) };
            let Ok(swept) = Chain::at(&entry) else { return Ok(()) };
            if headings.get(row.stream).is_none() {
                return Ok(());
            }
            remove(connection, position, &entry)?;
            headings.get_mut(row.stream).swept = swept;
            headings.journal.audit_swept = Chain { number: position, ..swept };
        }
        Ok(())
    }
}

fn remove(connection: &Connection, position: u64, entry: &AuditEntry) -> rusqlite::Result<()> {
    let (position, hour) = (position.cast_signed(), hour_of(entry.at.0));
    connection.prepare_cached("DELETE FROM trail WHERE position = ?1")?.execute(params![position])?;
    let mut delete = connection.prepare_cached("DELETE FROM subject WHERE subject = ?1 AND position = ?2")?;
    for subject in entry.subjects() {
        delete.execute(params![subject.to_string(), position])?;
    }
    let sql = "UPDATE hour SET first = ?2 + 1 WHERE hour = ?1";
    connection.prepare_cached(sql)?.execute(params![hour, position])?;
    let sql = "DELETE FROM hour WHERE hour = ?1 AND last <= ?2";
    connection.prepare_cached(sql)?.execute(params![hour, position])?;
    Ok(())
}
