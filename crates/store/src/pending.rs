//! Audit entries that wait in the journal for their place in the audit file.
//!
//! A commit writes the entries of an append into the journal, as one *run*. Later, between commits, they are *filed*:
//! copied into the audit file with their index ([`crate::audit_store`]). A checkpoint of the audit file *settles* them:
//! they are durable there, and commits remove them from the journal.
//!
//! ```text
//!   append ──▶ entry (of the journal) ──filed──▶ audit.db-wal ──settled──▶ audit.db
//!                └──────────── removed ◀────────────────────────┘
//! ```
//!
//! The rows of a run may be written in slices: they count once the row of the table `run` exists. A crash at any moment
//! leaves each entry in the journal, in the audit file, or the same one in both.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use forewarn_control::{AuditEntry, ENTRY_BYTES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use crate::codec::seal::{self, SealLocation};
use crate::database::blob;
use crate::entry_run::Run;
use crate::error::OpenError;
use crate::stream_key::StreamKey;

/// A run of which at least one entry is not filed.
#[derive(Debug)]
struct PendingRun {
    run: Run,
    /// Number of its next entry to be filed.
    next: u64,
    /// Its entries, if they are in memory: filing them reads nothing.
    held: Vec<(Arc<AuditEntry>, String)>,
}

/// Bytes of entries that are held in memory.
const HELD_BYTES_MAX: usize = 8 << 20;

fn line_bytes(entries: &[(Arc<AuditEntry>, String)]) -> usize {
    entries.iter().map(|(_, line)| line.len()).sum()
}

/// A part of a run that may be filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilingSlice {
    pub(crate) run: u64,
    pub(crate) stream: StreamKey,
    /// Number of its first entry.
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// An entry that waits in the journal.
#[derive(Debug)]
pub(crate) struct WaitingEntry {
    pub(crate) position: u64,
    pub(crate) line: String,
    /// `None` if only its line was read.
    pub(crate) entry: Option<Arc<AuditEntry>>,
}

/// The entries that wait in the journal.
#[derive(Debug, Default)]
pub(crate) struct PendingEntries {
    /// Runs with entries that are not filed.
    runs: BTreeMap<u64, PendingRun>,
    unfiled: u64,
    /// Runs that are filed and not settled, and their sizes.
    filed: Vec<(u64, u64)>,
    /// Number of entries that were filed since the last settlement.
    unsettled: u64,
    /// Runs that are settled, and their sizes: the next commits remove them.
    settled: VecDeque<(u64, u64)>,
    last_id: u64,
    held_bytes: usize,
}

impl PendingEntries {
    /// Reads the runs of a journal.
    pub(crate) fn read(journal: &Connection, path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::database(path, source);
        let mut pending = Self::default();
        let mut statement = journal.prepare("SELECT run, content FROM run ORDER BY run").map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let id = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
            let sealed = blob(row, path, ENTRY_BYTES_MAX)?;
            let run: Run = seal::open(SealLocation::Run(id), sealed)
                .map_err(|error| OpenError::damaged(path, format!("run {id} of audit entries: {error}")))?;
            pending.keep(id, run, Vec::new());
        }
        let sql = "SELECT max(run) FROM entry";
        let staged: Option<i64> = journal.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
        pending.last_id = pending.last_id.max(staged.map_or(0, i64::cast_unsigned));
        Ok(pending)
    }

    /// Checks that every entry of the runs is there as it was written.
    pub(crate) fn check(&self, journal: &Connection, path: &Path) -> Result<(), OpenError> {
        let failed = |source| OpenError::database(path, source);
        for (id, PendingRun { run, .. }) in &self.runs {
            let damaged = |number: u64, what: &dyn std::fmt::Display| {
                OpenError::damaged(path, format!("audit entry {number} of {}: {what}", run.stream))
            };
            let sql = "SELECT number, content FROM entry WHERE run = ?1 ORDER BY number";
            let mut statement = journal.prepare_cached(sql).map_err(failed)?;
            let mut rows = statement.query(params![id.cast_signed()]).map_err(failed)?;
            let mut expected = run.first;
            while let Some(row) = rows.next().map_err(failed)? {
                let number = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
                if number != expected {
                    return Err(damaged(expected, &"it is missing"));
                }
                let location = SealLocation::RunEntry { run: *id, number };
                let opened = seal::open_bytes(location, blob(row, path, ENTRY_BYTES_MAX)?);
                opened.map_err(|error| damaged(number, &error))?;
                expected += 1;
            }
            if expected != run.end() {
                return Err(damaged(expected, &"it is missing"));
            }
        }
        Ok(())
    }

    /// Removes entries that belong to no run: the rest of a large append, or of a removed run.
    pub(crate) fn remove_leftovers(&self, journal: &Connection) -> rusqlite::Result<()> {
        let mut found = i64::MIN;
        let next = "SELECT min(run) FROM entry WHERE run > ?1";
        while let Some(id) = journal.query_row(next, params![found], |row| row.get(0))? {
            found = id;
            if !self.runs.contains_key(&found.cast_unsigned()) {
                remove_entries(journal, found.cast_unsigned())?;
            }
        }
        Ok(())
    }

    /// Removes all entries: they are given up.
    pub(crate) fn remove_all(&mut self, journal: &Connection) -> rusqlite::Result<()> {
        *self = Self::default();
        journal.execute_batch("DELETE FROM run; DELETE FROM entry")
    }

    fn keep(&mut self, id: u64, run: Run, mut held: Vec<(Arc<AuditEntry>, String)>) {
        self.unfiled += run.count();
        self.last_id = self.last_id.max(id);
        let bytes = line_bytes(&held);
        if held.len() as u64 == run.count() && self.held_bytes + bytes <= HELD_BYTES_MAX {
            self.held_bytes += bytes;
        } else {
            held = Vec::new();
        }
        self.runs.insert(id, PendingRun { next: run.first, run, held });
    }

    /// The id of a new run.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Adds a run whose entries are written. `held` are all its entries, or none.
    pub(crate) fn add(
        &mut self,
        journal: &Connection,
        (id, run): (u64, Run),
        held: Vec<(Arc<AuditEntry>, String)>,
    ) -> rusqlite::Result<()> {
        write_run(journal, id, &run)?;
        self.keep(id, run, held);
        Ok(())
    }

    /// Removes entries of a stream from that number on: they are replaced. None of them is filed.
    pub(crate) fn cut(&mut self, journal: &Connection, stream: StreamKey, from: u64) -> rusqlite::Result<()> {
        let cut = self.runs.extract_if(.., |_, one| one.run.stream == stream && one.run.end() > from);
        let cut: Vec<_> = cut.collect();
        for (id, mut one) in cut {
            self.unfiled -= one.run.end() - one.run.first.max(from);
            self.held_bytes -= line_bytes(&std::mem::take(&mut one.held));
            one.run.cut(from);
            let sql = "DELETE FROM entry WHERE run = ?1 AND number >= ?2";
            journal.prepare_cached(sql)?.execute(params![id.cast_signed(), from.cast_signed()])?;
            if one.run.count() == 0 {
                remove_runs(journal, (id, id))?;
            } else {
                write_run(journal, id, &one.run)?;
                if one.next < one.run.end() {
                    self.runs.insert(id, one);
                } else {
                    self.filed.push((id, one.run.count()));
                }
            }
        }
        Ok(())
    }

    /// The position of an entry that is not filed.
    pub(crate) fn position_of(&self, stream: StreamKey, number: u64) -> Option<u64> {
        let of_stream = self.runs.values().filter(|one| one.run.stream == stream);
        of_stream.filter(|one| number >= one.next).find_map(|one| one.run.position(number))
    }

    /// The first position of an entry of a stream after that number, among those that are not filed.
    pub(crate) fn first_after(&self, stream: StreamKey, number: u64) -> Option<u64> {
        let of_stream = self.runs.values().filter(|one| one.run.stream == stream);
        of_stream.filter_map(|one| one.run.position(one.next.max(number.saturating_add(1)))).min()
    }

    /// The entry at a position, if it is not filed.
    pub(crate) fn entry_at(
        &self,
        journal: &Connection,
        position: u64,
    ) -> rusqlite::Result<Option<AuditEntry>> {
        let found = self.runs.iter().find_map(|(id, one)| Some((*id, one.run.number(position)?)));
        let Some((run, number)) = found else { return Ok(None) };
        let sql = "SELECT content FROM entry WHERE run = ?1 AND number = ?2";
        let place = params![run.cast_signed(), number.cast_signed()];
        let content =
            journal.prepare_cached(sql)?.query_row(place, |row| row.get::<_, Vec<u8>>(0)).optional()?;
        Ok(content.and_then(|sealed| {
            let line = seal::open_bytes(SealLocation::RunEntry { run, number }, &sealed).ok()?;
            serde_json::from_slice(line).ok()
        }))
    }

    /// The number of entries that are not filed.
    pub(crate) fn unfiled(&self) -> u64 {
        self.unfiled
    }

    /// The number of entries that were filed since the last settlement.
    pub(crate) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// Position of the last entry before the first one that is not filed.
    pub(crate) fn filed_to(&self) -> u64 {
        let firsts = self.runs.values().filter_map(|one| one.run.position(one.next));
        firsts.min().map_or(u64::MAX, |first| first - 1)
    }

    /// Adds the entries that are not filed to the hidden ones. `hidden` has the last number that readers see, by stream.
    pub(crate) fn with_unfiled(&self, mut hidden: BTreeMap<StreamKey, u64>) -> BTreeMap<StreamKey, u64> {
        for PendingRun { run, next, .. } in self.runs.values().filter(|one| one.next < one.run.end()) {
            let filed = next.saturating_sub(1);
            hidden.entry(run.stream).and_modify(|last| *last = filed.min(*last)).or_insert(filed);
        }
        hidden
    }

    /// First position and count of each group of entries that are in the journal, in their order.
    pub(crate) fn spans(&self) -> Vec<(u64, u64)> {
        let mut spans: Vec<_> = self.runs.values().flat_map(|one| one.run.spans().iter().copied()).collect();
        spans.sort_unstable();
        spans
    }

    /// Parts of runs that may be filed. `hidden` has the last number that readers see, by stream: later ones may still
    /// be replaced.
    pub(crate) fn fileable<'a>(
        &'a self,
        hidden: &'a BTreeMap<StreamKey, u64>,
    ) -> impl Iterator<Item = FilingSlice> + 'a {
        self.runs.iter().filter_map(|(id, PendingRun { run, next, .. })| {
            let shown_to = hidden.get(&run.stream).map_or(u64::MAX, |last| last.saturating_add(1));
            let end = run.end().min(shown_to);
            (*next < end).then(|| FilingSlice {
                run: *id,
                stream: run.stream,
                first: *next,
                count: end - next,
            })
        })
    }

    /// Returns true if an entry up to that position may be filed.
    pub(crate) fn is_fileable_up_to(&self, hidden: &BTreeMap<StreamKey, u64>, position: u64) -> bool {
        let first = |slice: FilingSlice| self.runs.get(&slice.run)?.run.position(slice.first);
        self.fileable(hidden).filter_map(first).any(|first| first <= position)
    }

    /// The number of the first entry of a stream such that neither it nor any later one, up to the last one, is filed. Looks
    /// at that many runs.
    pub(crate) fn unfiled_tail(&self, stream: StreamKey, last: u64, runs: usize) -> u64 {
        let mut first = last.saturating_add(1);
        let ends_before = |one: &&PendingRun, first| one.run.stream == stream && one.run.end() == first;
        for _ in 0..runs {
            let Some(one) = self.runs.values().find(|one| ends_before(one, first)) else { break };
            first = one.next;
            if one.next > one.run.first {
                break;
            }
        }
        first
    }

    /// Takes the entries of a slice out of the memory, or reads them or the first of them with about that many bytes.
    pub(crate) fn take(
        &mut self,
        journal: &Connection,
        slice: &FilingSlice,
        bytes: usize,
    ) -> rusqlite::Result<Result<Vec<WaitingEntry>, String>> {
        let Some(one) = self.runs.get_mut(&slice.run) else { return Ok(Ok(Vec::new())) };
        // A second attempt, or the rest of a run, is read.
        let held = std::mem::take(&mut one.held);
        self.held_bytes -= line_bytes(&held);
        if slice.first == one.run.first && slice.count == held.len() as u64 {
            let numbered = (slice.first..).zip(held);
            let waiting = numbered.filter_map(|(number, (entry, line))| {
                Some(WaitingEntry { position: one.run.position(number)?, line, entry: Some(entry) })
            });
            return Ok(Ok(waiting.collect()));
        }
        self.read_entries(journal, slice, bytes)
    }

    /// The entries of a slice, or the first of them with about that many bytes.
    pub(crate) fn read_entries(
        &self,
        journal: &Connection,
        slice: &FilingSlice,
        bytes: usize,
    ) -> rusqlite::Result<Result<Vec<WaitingEntry>, String>> {
        let Some(PendingRun { run, .. }) = self.runs.get(&slice.run) else { return Ok(Ok(Vec::new())) };
        let sql =
            "SELECT number, content FROM entry WHERE run = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
        let mut statement = journal.prepare_cached(sql)?;
        let range = params![slice.run.cast_signed(), slice.first.cast_signed(), slice.count.cast_signed()];
        let mut rows = statement.query(range)?;
        let (mut lines, mut size) = (Vec::new(), 0);
        while size < bytes
            && let Some(row) = rows.next()?
        {
            let number = row.get::<_, i64>(0)?.cast_unsigned();
            let content: Vec<u8> = row.get(1)?;
            let wrong = |what: &dyn std::fmt::Display| {
                format!("audit entry {number} of {} in the journal: {what}", slice.stream)
            };
            let opened = seal::open_bytes(SealLocation::RunEntry { run: slice.run, number }, &content);
            let line = opened
                .map_err(|error| wrong(&error))
                .and_then(|line| String::from_utf8(line.to_vec()).map_err(|error| wrong(&error)));
            match (line, run.position(number)) {
                (Ok(line), Some(position)) if number == slice.first + lines.len() as u64 => {
                    size += line.len();
                    lines.push(WaitingEntry { position, line, entry: None });
                }
                (Ok(_), _) => return Ok(Err(wrong(&"it is in the place of another one"))),
                (Err(what), _) => return Ok(Err(what)),
            }
        }
        if size >= bytes || lines.len() as u64 == slice.count {
            Ok(Ok(lines))
        } else {
            Ok(Err(format!("audit entries of {} are missing from the journal", slice.stream)))
        }
    }

    /// Records that a slice is filed.
    pub(crate) fn filed(&mut self, slice: &FilingSlice) {
        let Some(one) = self.runs.get_mut(&slice.run) else { return };
        one.next += slice.count;
        self.unfiled -= slice.count;
        self.unsettled += slice.count;
        if one.next == one.run.end() {
            self.filed.push((slice.run, one.run.count()));
            self.runs.remove(&slice.run);
        }
    }

    /// Records that everything that was filed is durable.
    pub(crate) fn settle(&mut self) {
        self.settled.extend(self.filed.drain(..));
        self.unsettled = 0;
    }

    /// Takes back everything that is filed and not settled. `found` are the runs of the journal.
    pub(crate) fn unfile(&mut self, found: Self) {
        let settled = std::mem::take(&mut self.settled);
        *self = Self { last_id: self.last_id.max(found.last_id), ..found };
        for (id, _) in &settled {
            self.unfiled -= self.runs.remove(id).map_or(0, |one| one.run.count());
        }
        self.settled = settled;
    }

    /// Removes settled entries from the journal, about as many as given.
    pub(crate) fn remove_settled(&mut self, journal: &Connection, count: u64) -> rusqlite::Result<()> {
        let mut left = count;
        while left > 0
            && let Some((first, size)) = self.settled.pop_front()
        {
            if size > left {
                // Entries without a run are leftovers: a crash before the last of them is removed does no harm.
                remove_runs(journal, (first, first))?;
                let sql = "DELETE FROM entry WHERE run = ?1 AND number IN \
                           (SELECT number FROM entry WHERE run = ?1 ORDER BY number LIMIT ?2)";
                let limit = i64::try_from(left).unwrap_or(i64::MAX);
                journal.prepare_cached(sql)?.execute(params![first.cast_signed(), limit])?;
                self.settled.push_front((first, size - left));
                return Ok(());
            }
            left -= size;
            let mut last = first;
            // Runs with consecutive ids go together.
            while let Some((next, size)) =
                self.settled.pop_front_if(|(next, size)| *next == last + 1 && *size <= left)
            {
                (last, left) = (next, left - size);
            }
            remove_runs(journal, (first, last))?;
            let sql = "DELETE FROM entry WHERE run BETWEEN ?1 AND ?2";
            journal.prepare_cached(sql)?.execute(params![first.cast_signed(), last.cast_signed()])?;
        }
        Ok(())
    }
}

/// Writes an entry of a run.
pub(crate) fn write_run_entry(
    journal: &Connection,
    (run, number): (u64, u64),
    line: &str,
) -> rusqlite::Result<()> {
    let sealed = seal::seal_bytes(SealLocation::RunEntry { run, number }, line.as_bytes());
    let sql = "INSERT INTO entry (run, number, content) VALUES (?1, ?2, ?3)";
    journal.prepare_cached(sql)?.execute(params![run.cast_signed(), number.cast_signed(), sealed])?;
    Ok(())
}

/// Removes the entries of a run.
pub(crate) fn remove_entries(journal: &Connection, run: u64) -> rusqlite::Result<()> {
    journal.prepare_cached("DELETE FROM entry WHERE run = ?1")?.execute(params![run.cast_signed()])?;
    Ok(())
}

/// Removes the rows of runs, from the first id to the last one.
fn remove_runs(journal: &Connection, (first, last): (u64, u64)) -> rusqlite::Result<()> {
    let sql = "DELETE FROM run WHERE run BETWEEN ?1 AND ?2";
    journal.prepare_cached(sql)?.execute(params![first.cast_signed(), last.cast_signed()])?;
    Ok(())
}

/// Writes the row of a run: its entries count from now on.
pub(crate) fn write_run(journal: &Connection, id: u64, run: &Run) -> rusqlite::Result<()> {
    let sealed = seal::seal(SealLocation::Run(id), run);
    let sql = "INSERT INTO run (run, content) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET content = ?2";
    journal.prepare_cached(sql)?.execute(params![id.cast_signed(), sealed])?;
    Ok(())
}
