//! Folding: the state of a stream at one moment is written as rows, a few with every commit, and then replaces all
//! records of the stream before it.
//!
//! ```text
//!   records   1 … 900 │ 901 … 1000 … 1100 │ 1101 …
//!   state     ────────┘ stored rows       │
//!                       new rows ─────────┘ written beside records 1001 … 1100, valid with the last of them
//! ```
//!
//! Rows of a new generation are ignored until the commit that writes the last of them also makes them the stored state
//! in the heading. The rows that they replace are swept afterwards, a few with every commit. A crash before that only
//! loses the work. The streams take turns: the work of one commit does not grow with their number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rusqlite::{Connection, params};

use crate::codec::{Stored, Writer};
use crate::committer_request::StreamState;
use crate::database::write_chunk;
use crate::heading::{Headings, StreamHeading};
use crate::stream_key::StreamKey;
use forewarn_control::StateRow;

/// Bytes of rows in one chunk: a million rows are some thousand chunks.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// Chunks that one commit writes: they slow it down by less than a sync takes.
const CHUNKS_PER_COMMIT: u64 = 2;

/// Records, and chunks, that one commit sweeps at least.
const RECORDS_SWEPT_PER_COMMIT: u64 = 1_024;
const CHUNKS_SWEPT_PER_COMMIT: i64 = 8;

/// Records for each of which a commit that writes more of them writes another chunk: the log does not outgrow the folds.
const RECORDS_PER_CHUNK: u64 = 512;

/// A state that is being written.
pub(crate) struct Folding {
    stream: StreamKey,
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
    /// Begins to write the state of a stream after its last record.
    pub(crate) fn begin(stream: StreamKey, heading: &StreamHeading, state: StreamState) -> Self {
        let (generation, base) = (heading.generation + 1, heading.last);
        let rows = state.into_rows().peekable();
        Self { stream, generation, base, chunks: 0, written: 0, rows }
    }

    /// Writes some more. The last part also makes the rows the stored state.
    fn go_on(
        &mut self,
        connection: &Connection,
        headings: &mut Headings,
        chunks: u64,
    ) -> rusqlite::Result<FoldProgress> {
        if self.chunks == 0 {
            // The rest of an interrupted attempt.
            let sql = "DELETE FROM chunk WHERE stream = ?1 AND generation >= ?2";
            let place = params![self.stream.column(), self.generation.cast_signed()];
            connection.prepare_cached(sql)?.execute(place)?;
        }
        for _ in 0..chunks {
            self.write_chunk(connection)?;
            if self.rows.peek().is_none() {
                let heading = headings.get_mut(self.stream);
                (heading.base, heading.generation) = (self.base, self.generation);
                (heading.chunks, heading.rows) = (self.chunks, self.written);
                return Ok(FoldProgress::Done);
            }
        }
        Ok(FoldProgress::Goes)
    }

    /// Writes all of it: for a journal that is not in use yet.
    pub(crate) fn finish(mut self, connection: &Connection, headings: &mut Headings) -> rusqlite::Result<()> {
        while self.go_on(connection, headings, CHUNKS_PER_COMMIT)? == FoldProgress::Goes {}
        Ok(())
    }

    fn write_chunk(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let content = next_chunk(&mut self.rows, &mut self.written);
        write_chunk(connection, self.stream, (self.generation, self.chunks), &content)?;
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

/// The folds that are under way, and the streams that are to be swept.
#[derive(Default)]
pub(crate) struct FoldQueue {
    folds: VecDeque<Folding>,
    sweeps: VecDeque<StreamKey>,
    /// The same streams.
    sweeping: BTreeSet<StreamKey>,
    /// Number of the last record swept, by stream.
    swept: BTreeMap<StreamKey, u64>,
}

impl FoldQueue {
    /// Begins a fold. A former one of the same stream ends.
    pub(crate) fn begin(&mut self, folding: Folding) {
        self.cancel(folding.stream);
        self.folds.push_back(folding);
    }

    /// Ends the fold of a stream.
    pub(crate) fn cancel(&mut self, stream: StreamKey) {
        let index = self.folds.iter().position(|one| one.stream == stream);
        if let Some(folding) = index.and_then(|index| self.folds.remove(index)) {
            drop_elsewhere(folding);
        }
    }

    pub(crate) fn is_folding(&self, stream: StreamKey) -> bool {
        self.folds.iter().any(|one| one.stream == stream)
    }

    /// Writes some rows of the stream whose turn it is, in a commit with that many records. Returns the approximate
    /// number of bytes.
    pub(crate) fn go_on(
        &mut self,
        connection: &Connection,
        headings: &mut Headings,
        records: u64,
    ) -> rusqlite::Result<u64> {
        let Some(mut folding) = self.folds.pop_front() else { return Ok(0) };
        let chunks = CHUNKS_PER_COMMIT + records / RECORDS_PER_CHUNK;
        match folding.go_on(connection, headings, chunks)? {
            FoldProgress::Goes => self.folds.push_back(folding),
            FoldProgress::Done => self.sweep_later(folding.stream),
        }
        Ok(chunks * CHUNK_BYTES as u64)
    }

    /// Sweeps records and rows of a stream that its heading no longer counts.
    pub(crate) fn sweep_later(&mut self, stream: StreamKey) {
        if self.sweeping.insert(stream) {
            self.sweeps.push_back(stream);
        }
    }

    pub(crate) fn is_sweeping(&self, stream: StreamKey) -> bool {
        self.sweeping.contains(&stream)
    }

    /// Sweeps some records and rows of the stream whose turn it is, in a commit with that many records.
    pub(crate) fn sweep(
        &mut self,
        connection: &Connection,
        headings: &Headings,
        records: u64,
    ) -> rusqlite::Result<()> {
        let Some(stream) = self.sweeps.pop_front() else { return Ok(()) };
        self.sweeping.remove(&stream);
        let Some(heading) = headings.get(stream) else { return Ok(()) };
        let swept = match self.swept.get(&stream) {
            Some(swept) => *swept,
            None => read_swept(connection, stream, heading)?,
        };
        let upto = heading.base.min(swept + RECORDS_SWEPT_PER_COMMIT.max(2 * records));
        if swept < upto {
            let sql = "DELETE FROM record WHERE stream = ?1 AND number > ?2 AND number <= ?3";
            let range = params![stream.column(), swept.cast_signed(), upto.cast_signed()];
            connection.prepare_cached(sql)?.execute(range)?;
        }
        self.swept.insert(stream, upto);
        let sql = "DELETE FROM chunk WHERE stream = ?1 AND (generation, number) IN \
                   (SELECT generation, number FROM chunk WHERE stream = ?1 AND generation < ?2 LIMIT ?3)";
        let place = params![stream.column(), heading.generation.cast_signed(), CHUNKS_SWEPT_PER_COMMIT];
        let deleted = connection.prepare_cached(sql)?.execute(place)?;
        if upto < heading.base || deleted > 0 {
            self.sweep_later(stream);
        }
        Ok(())
    }
}

/// Drops a state on a thread of its own: it may hold the last pages of many machines, and commits do not wait for that.
fn drop_elsewhere(folding: Folding) {
    let thread = std::thread::Builder::new().name("forewarn-drop".to_owned());
    // Without a thread it is dropped here.
    drop(thread.spawn(move || drop(folding)));
}

/// Number of the record before the first one that still exists.
fn read_swept(connection: &Connection, stream: StreamKey, heading: &StreamHeading) -> rusqlite::Result<u64> {
    let sql = "SELECT min(number) FROM record WHERE stream = ?1";
    let first: Option<i64> = connection.query_row(sql, params![stream.column()], |row| row.get(0))?;
    let before = first.map(|first| first.cast_unsigned().saturating_sub(1));
    Ok(before.unwrap_or(heading.base).min(heading.base))
}
