//! Folding: the state at one moment is written as rows, a few with every commit, and then replaces all records before
//! it.
//!
//! ```text
//!   records   1 … 900 │ 901 … 1000 … 1100 │ 1101 …
//!   state     ────────┘ stored rows       │
//!                       new rows ─────────┘ written beside records 1001 … 1100, valid with the last of them
//! ```
//!
//! Rows of a new generation are ignored until the commit that writes the last of them also makes them the stored state
//! in the heading. The rows that they replace are swept afterwards, a few with every commit. A crash before that only
//! loses the work.

use rusqlite::{Connection, params};

use crate::codec::{Stored, Writer};
use crate::database::{Heading, chunk_position, write_chunk};
use forewarn_control::{ControlState, StateRow};

/// Bytes of rows in one chunk: a million rows are some thousand chunks.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// Chunks that one commit writes: they slow it down by less than a sync takes.
const CHUNKS_PER_COMMIT: u64 = 2;

/// Approximate bytes that folding adds to the log with one commit.
pub(crate) const FOLD_BYTES_PER_COMMIT: u64 = CHUNKS_PER_COMMIT * CHUNK_BYTES as u64;

/// Records, and chunks, that one commit sweeps.
const RECORDS_SWEPT_PER_COMMIT: u64 = 1_024;
const CHUNKS_SWEPT_PER_COMMIT: i64 = 8;

/// A state that is being written.
pub(crate) struct Folding {
    generation: u64,
    base: u64,
    chunks: u64,
    written: u64,
    rows: std::iter::Peekable<Box<dyn Iterator<Item = StateRow> + Send>>,
}

/// Progress of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldProgress {
    Goes,
    Done,
}

impl Folding {
    /// Begins to write the state after the record of that number.
    pub(crate) fn begin(state: ControlState, generation: u64, base: u64) -> Self {
        let rows: Box<dyn Iterator<Item = StateRow> + Send> = Box::new(state.into_rows());
        Self { generation, base, chunks: 0, written: 0, rows: rows.peekable() }
    }

    /// Writes some more. The last part also makes the rows the stored state.
    pub(crate) fn go_on(
        &mut self,
        connection: &Connection,
        heading: &mut Heading,
    ) -> rusqlite::Result<FoldProgress> {
        if self.chunks == 0 {
            // The rest of an interrupted attempt.
            let sql = "DELETE FROM chunk WHERE place >= ?1";
            connection.prepare_cached(sql)?.execute(params![chunk_position(self.generation, 0)])?;
        }
        for _ in 0..CHUNKS_PER_COMMIT {
            self.write_chunk(connection)?;
            if self.rows.peek().is_none() {
                (heading.base, heading.generation) = (self.base, self.generation);
                (heading.chunks, heading.rows) = (self.chunks, self.written);
                return Ok(FoldProgress::Done);
            }
        }
        Ok(FoldProgress::Goes)
    }

    /// Writes all of it: for a journal that is not in use yet.
    pub(crate) fn finish(mut self, connection: &Connection, heading: &mut Heading) -> rusqlite::Result<()> {
        while self.go_on(connection, heading)? == FoldProgress::Goes {}
        Ok(())
    }

    fn write_chunk(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let content = next_chunk(&mut self.rows, &mut self.written);
        write_chunk(connection, self.generation, self.chunks, &content)?;
        self.chunks += 1;
        Ok(())
    }
}

/// The rows of one chunk.
pub(crate) fn next_chunk(rows: &mut impl Iterator<Item = StateRow>, written: &mut u64) -> Vec<u8> {
    let mut out = Writer::default();
    while out.length() < CHUNK_BYTES
        && let Some(row) = rows.next()
    {
        row.write(&mut out);
        *written += 1;
    }
    out.into_bytes()
}

/// Sweeps some of the records and rows that the stored state has replaced. `swept` is the number of the last record
/// swept.
pub(crate) fn sweep(connection: &Connection, heading: &Heading, swept: &mut u64) -> rusqlite::Result<()> {
    if *swept < heading.base {
        let upto = heading.base.min(*swept + RECORDS_SWEPT_PER_COMMIT);
        let sql = "DELETE FROM record WHERE number > ?1 AND number <= ?2";
        connection.prepare_cached(sql)?.execute(params![swept.cast_signed(), upto.cast_signed()])?;
        *swept = upto;
    }
    let sql = "DELETE FROM chunk WHERE place IN (SELECT place FROM chunk WHERE place < ?1 LIMIT ?2)";
    let place = chunk_position(heading.generation, 0);
    connection.prepare_cached(sql)?.execute(params![place, CHUNKS_SWEPT_PER_COMMIT])?;
    Ok(())
}
