//! Sweeping: entries that are too old go, the oldest first, a few with every commit.
//!
//! The heading keeps the number and the hash of the last that went, so that the rest can still be verified from its beginning.

use std::time::Duration;

use forewarn_control::{AuditEntry, Chain};
use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, params};

use super::table::{hour_of, read_shelf};
use crate::database::Heading;

/// Entries that are swept away with one commit, besides as many as it writes.
const ENTRIES_PER_COMMIT: usize = 16;

/// What is known of the age of the trail.
#[derive(Debug)]
pub(crate) struct Sweeping {
    keep: Duration,
    /// What the wall clock showed last: not the highest that it has ever shown, which may have been an accident.
    now: Timestamp,
    /// Nothing is too old before.
    due: Timestamp,
}

impl Sweeping {
    pub(crate) fn new(keep: Duration) -> Self {
        let beginning = Timestamp::from_millis(0);
        Self { keep, now: beginning, due: beginning }
    }

    /// The wall clock was seen there.
    pub(crate) fn saw(&mut self, wall: Option<Timestamp>) {
        self.now = wall.unwrap_or(self.now);
    }

    /// Sweeps away some of what is too old, in a commit that writes that many entries.
    pub(crate) fn go_on(
        &mut self,
        connection: &Connection,
        heading: &mut Heading,
        written: usize,
    ) -> rusqlite::Result<()> {
        if self.now < self.due {
            return Ok(());
        }
        for _ in 0..written + ENTRIES_PER_COMMIT {
            let Some(shelf) = read_shelf(connection, heading.swept.number + 1)? else { return Ok(()) };
            self.due = shelf.at.plus(self.keep);
            if self.now < self.due {
                return Ok(());
            }
            // What is damaged stays: it says that something is wrong, and what follows it cannot be verified without it.
            let Ok(entry) = shelf.entry() else { return Ok(()) };
            let Ok(swept) = Chain::at(&entry) else { return Ok(()) };
            remove(connection, &entry)?;
            heading.swept = swept;
        }
        Ok(())
    }
}

fn remove(connection: &Connection, entry: &AuditEntry) -> rusqlite::Result<()> {
    let (number, hour) = (entry.number.cast_signed(), hour_of(entry.at.0));
    connection.prepare_cached("DELETE FROM trail WHERE number = ?1")?.execute(params![number])?;
    let mut delete = connection.prepare_cached("DELETE FROM subject WHERE subject = ?1 AND number = ?2")?;
    for subject in entry.subjects() {
        delete.execute(params![subject.to_string(), number])?;
    }
    let sql = "UPDATE hour SET first = ?2 + 1 WHERE hour = ?1";
    connection.prepare_cached(sql)?.execute(params![hour, number])?;
    let sql = "DELETE FROM hour WHERE hour = ?1 AND last <= ?2";
    connection.prepare_cached(sql)?.execute(params![hour, number])?;
    Ok(())
}
