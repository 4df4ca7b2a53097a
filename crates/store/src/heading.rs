//! Headings: one of the journal, and one of each stream. A commit rewrites those that it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use forewarn_control::Chain;
use forewarn_lifecycle::{Now, Seed, Timestamp};
use rusqlite::{Connection, params};

use crate::audit_gap::AuditGap;
use crate::codec::seal::{self, SealLocation};
use crate::codec::{Malformed, Reader, Stored, Writer, stored_struct};
use crate::error::OpenError;
use crate::stream_key::StreamKey;

/// The heading of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalHeading {
    /// Seed of machine ids. It never changes, not even by an import.
    pub(crate) identity: Seed,
    /// Creation time of the journal.
    pub(crate) created: Timestamp,
    /// Highest value of each clock, in any stream.
    pub(crate) clock: Now,
    /// Number of records in the life of the journal, of all streams.
    pub(crate) records: u64,
    /// Number of headings of streams: detects a missing one.
    streams: u64,
    /// Position and hash of the newest audit entry: detects a truncated log.
    pub(crate) audit_end: Chain,
    /// Position and hash of the last audit entry that was swept.
    pub(crate) audit_swept: Chain,
}

/// The heading of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamHeading {
    /// Highest value of each clock.
    pub(crate) clock: Now,
    /// Number of the last record.
    pub(crate) last: u64,
    /// Number of the last record that is part of the stored state.
    pub(crate) base: u64,
    /// Generation of the rows that are the stored state; 0 if there is none.
    pub(crate) generation: u64,
    /// Number of its chunks.
    pub(crate) chunks: u64,
    /// Number of its rows.
    pub(crate) rows: u64,
    /// Beginning of the audit log: the end of the common log, if the stream is older than its own log.
    pub(crate) begin: Chain,
    /// End of the audit log: detects a truncated one.
    pub(crate) audit_chain: Chain,
    /// Last audit entry that was swept: verification begins after it.
    pub(crate) swept: Chain,
    /// Audit entries that are missing, in their order.
    pub(crate) gaps: Vec<AuditGap>,
}

stored_struct! {
    JournalHeading { identity, created, clock, records, streams, audit_end, audit_swept }
    Chain { number, hash }
}

/// Gaps follow only if there are any: most journals have none.
impl Stored for StreamHeading {
    fn write(&self, out: &mut Writer) {
        let Self { clock, last, base, generation, chunks, rows, begin, audit_chain, swept, gaps } = self;
        clock.write(out);
        [last, base, generation, chunks, rows].into_iter().for_each(|number| number.write(out));
        [begin, audit_chain, swept].into_iter().for_each(|chain| chain.write(out));
        if !gaps.is_empty() {
            gaps.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            clock: Stored::read(input)?,
            last: Stored::read(input)?,
            base: Stored::read(input)?,
            generation: Stored::read(input)?,
            chunks: Stored::read(input)?,
            rows: Stored::read(input)?,
            begin: Stored::read(input)?,
            audit_chain: Stored::read(input)?,
            swept: Stored::read(input)?,
            gaps: if input.left() > 0 { Stored::read(input)? } else { Vec::new() },
        })
    }
}

/// All headings of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headings {
    pub(crate) journal: JournalHeading,
    streams: BTreeMap<StreamKey, StreamHeading>,
    /// Headings that are not written yet.
    changed: BTreeSet<StreamKey>,
    /// Streams whose headings may have gaps.
    gapped: BTreeSet<StreamKey>,
}

/// Entries with consecutive positions that are missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingEntries<'a> {
    pub(crate) stream: StreamKey,
    pub(crate) gap: &'a AuditGap,
    /// The first position.
    pub(crate) first: u64,
    /// The last position.
    pub(crate) last: u64,
}

impl JournalHeading {
    /// The heading of a new journal.
    pub(crate) fn new(identity: Seed, now: Now) -> Self {
        let (audit_end, audit_swept) = (Chain::default(), Chain::default());
        Self { identity, created: now.wall, clock: now, records: 0, streams: 0, audit_end, audit_swept }
    }
}

impl StreamHeading {
    /// The heading of a stream without records, whose audit log begins there.
    pub(crate) fn new(clock: Now, begin: Chain) -> Self {
        let (last, base, generation, chunks, rows) = (0, 0, 0, 0, 0);
        let (audit_chain, swept, gaps) = (begin, begin, Vec::new());
        Self { clock, last, base, generation, chunks, rows, begin, audit_chain, swept, gaps }
    }

    /// The chain before an entry: the end of the gap before it, or the one that was found.
    pub(crate) fn chain_before(&self, number: u64, found: Chain) -> Chain {
        let gap = self.gaps.iter().find(|gap| gap.last().checked_add(1) == Some(number));
        gap.map_or(found, |gap| gap.end)
    }

    /// The gap that lacks an entry.
    pub(crate) fn gap_of(&self, number: u64) -> Option<&AuditGap> {
        self.gaps.iter().find(|gap| gap.has_number(number))
    }

    /// Takes note that entries up to one are swept.
    pub(crate) fn sweep(&mut self, swept: Chain) {
        self.swept = swept;
        self.gaps.retain(|gap| gap.last() > swept.number);
    }

    /// Drops the stored state and all records. The next generation may be the one of an unfinished fold.
    pub(crate) fn forget(&mut self) {
        (self.base, self.generation) = (self.last, self.generation + 2);
        (self.chunks, self.rows) = (0, 0);
    }

    /// Returns true if it has neither a stored state nor records.
    pub(crate) fn is_forgotten(&self) -> bool {
        (self.base, self.chunks) == (self.last, 0)
    }

    /// Returns true if no audit entry is left.
    pub(crate) fn is_swept(&self) -> bool {
        self.swept == self.audit_chain
    }
}

/// The later value of each clock.
pub(crate) fn later(one: Now, other: Now) -> Now {
    Now { wall: one.wall.max(other.wall), steady: one.steady.max(other.steady) }
}

impl Headings {
    pub(crate) fn new(journal: JournalHeading) -> Self {
        Self { journal, streams: BTreeMap::new(), changed: BTreeSet::new(), gapped: BTreeSet::new() }
    }

    pub(crate) fn read(connection: &Connection, path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::database(path, source);
        let content: Vec<u8> = match connection.query_row("SELECT content FROM heading", [], |row| row.get(0))
        {
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                return Err(OpenError::damaged(path, "it has no heading"));
            }
            other => other.map_err(failed)?,
        };
        let journal = seal::open(SealLocation::JournalHead, &content);
        let journal = journal.map_err(|error| OpenError::damaged(path, format!("the heading: {error}")))?;
        let mut headings = Self::new(journal);
        let mut statement = connection.prepare("SELECT stream, content FROM stream").map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let key = StreamKey::from_column(row.get(0).map_err(failed)?);
            let content: Vec<u8> = row.get(1).map_err(failed)?;
            let heading: StreamHeading = seal::open(SealLocation::StreamHead(key), &content)
                .map_err(|error| OpenError::damaged(path, format!("the heading of {key}: {error}")))?;
            if !heading.gaps.is_empty() {
                headings.gapped.insert(key);
            }
            headings.streams.insert(key, heading);
        }
        if headings.streams.len() as u64 != headings.journal.streams {
            return Err(OpenError::damaged(path, "the heading of a stream is missing"));
        }
        Ok(headings)
    }

    pub(crate) fn get(&self, key: StreamKey) -> Option<&StreamHeading> {
        self.streams.get(&key)
    }

    /// The heading of a stream, which is written with the next commit. A new stream has a new log.
    pub(crate) fn get_mut(&mut self, key: StreamKey) -> &mut StreamHeading {
        self.changed.insert(key);
        let beginning = Now::at_millis(0);
        self.streams.entry(key).or_insert_with(|| StreamHeading::new(beginning, Chain::default()))
    }

    pub(crate) fn insert(&mut self, key: StreamKey, heading: StreamHeading) {
        self.changed.insert(key);
        self.streams.insert(key, heading);
    }

    /// Every heading of a stream.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (StreamKey, &StreamHeading)> {
        self.streams.iter().map(|(key, heading)| (*key, heading))
    }

    /// The gap that lacks the entry at a position, its stream, and the last position of those that are missing around it.
    pub(crate) fn gap_at(&self, position: u64) -> Option<MissingEntries<'_>> {
        self.gaps().find_map(|(stream, gap)| {
            let (first, last) = gap.span_at(position)?;
            Some(MissingEntries { stream, gap, first, last })
        })
    }

    /// First position and count of each group of entries that are missing.
    pub(crate) fn missing_spans(&self) -> Vec<(u64, u64)> {
        self.gaps().flat_map(|(_, gap)| gap.run.spans().iter().copied()).collect()
    }

    /// All gaps, with their streams.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (StreamKey, &AuditGap)> {
        let headings = self.gapped.iter().filter_map(|key| Some((*key, self.streams.get(key)?)));
        headings.flat_map(|(key, heading)| heading.gaps.iter().map(move |gap| (key, gap)))
    }

    /// Adds a gap at the end of the audit log of a stream.
    pub(crate) fn add_gap(&mut self, key: StreamKey, gap: AuditGap) {
        self.gapped.insert(key);
        self.get_mut(key).gaps.push(gap);
    }

    /// Records that all audit entries are gone. The next ones continue the chains.
    pub(crate) fn drop_audit_log(&mut self) {
        self.journal.audit_swept = self.journal.audit_end;
        for (key, heading) in &mut self.streams {
            heading.sweep(heading.audit_chain);
            self.changed.insert(*key);
        }
    }

    /// Counts new records of a stream. Returns the number of the last one before them.
    pub(crate) fn add_records(&mut self, key: StreamKey, count: usize) -> u64 {
        self.journal.records += count as u64;
        let heading = self.get_mut(key);
        let before = heading.last;
        heading.last += count as u64;
        before
    }

    /// Records the time of the clocks in a stream.
    pub(crate) fn record_time(&mut self, key: StreamKey, now: Now) {
        self.journal.clock = later(self.journal.clock, now);
        let heading = self.get_mut(key);
        heading.clock = later(heading.clock, now);
    }

    /// Removes the heading of a stream of which nothing is left.
    pub(crate) fn remove(&mut self, connection: &Connection, key: StreamKey) -> rusqlite::Result<()> {
        self.streams.remove(&key);
        self.gapped.remove(&key);
        self.changed.remove(&key);
        connection.prepare_cached("DELETE FROM stream WHERE stream = ?1")?.execute(params![key.column()])?;
        Ok(())
    }

    /// Writes the heading of the journal, and those of streams that have changed.
    pub(crate) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql =
            "INSERT INTO stream (stream, content) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET content = ?2";
        let mut statement = connection.prepare_cached(sql)?;
        for key in std::mem::take(&mut self.changed) {
            let Some(heading) = self.streams.get(&key) else { continue };
            let content = seal::seal(SealLocation::StreamHead(key), heading);
            statement.execute(params![key.column(), content])?;
        }
        self.journal.streams = self.streams.len() as u64;
        let content = seal::seal(SealLocation::JournalHead, &self.journal);
        let sql = "INSERT INTO heading (one, content) VALUES (1, ?1) ON CONFLICT DO UPDATE SET content = ?1";
        connection.prepare_cached(sql)?.execute(params![content])?;
        Ok(())
    }
}
