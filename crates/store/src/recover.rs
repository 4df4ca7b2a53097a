//! Reading a journal from its beginning: the kept state, then every record after it, each checked.

use std::path::Path;

use forewarn_control::Chain;
use forewarn_control::ClusterId;
use forewarn_lifecycle::{BadRows, MaintenanceId, Now, Seed, Timestamp};
use rusqlite::{Connection, params};

use crate::codec::old::{OldRecord, OldRow, RowUpgrade};
use crate::codec::seal::{self, Content, Place};
use crate::codec::{Malformed, RECORD_BYTES_MAX, Reader, Stored, from_bytes};
use crate::database::{self, Heading, Look, Syncs, place_of};
use crate::error::OpenError;
use crate::files::Directory;
use crate::fold::CHUNK_BYTES;
use crate::reach::Reach;
use crate::trail::check_ends;
use forewarn_control::{ClusterEntry, Entry, Record};
use forewarn_control::{ControlState, RestoringState, StateRow};

/// What was found in a journal.
#[derive(Debug)]
pub struct Recovered {
    /// The state after the last record.
    pub state: ControlState,
    /// The secret that ids of machines are made of: it stays the same for ever, over an import too.
    pub identity: Seed,
    /// When the journal was made.
    pub created: Timestamp,
    /// The highest that each clock has shown: what comes now is later.
    pub clock: Now,
    /// How many records were replayed on top of the kept state.
    pub replayed: u64,
    /// Where the trail has come to: the next entry is chained to it.
    pub trail: Chain,
    /// Announcements of the last batch: no VM may have read them.
    pub unread: Vec<(ClusterId, MaintenanceId)>,
}

/// Bytes around content.
const SEAL_BYTES: usize = 9;

/// A record as it is stored.
enum StoredRecord {
    Present(Record),
    Old(OldRecord),
}

impl StoredRecord {
    fn read(number: u64, sealed: &[u8]) -> Result<Self, Malformed> {
        match seal::open_any(Place::Record(number), sealed)? {
            Content::Present(content) => from_bytes(content).map(Self::Present),
            Content::Old(content) => from_bytes(content).map(Self::Old),
        }
    }

    /// The records of today that it stands for. `state` is the state before it.
    fn upgraded(self, state: &ControlState) -> Vec<Record> {
        match self {
            Self::Present(record) => vec![record],
            Self::Old(record) => record.upgraded(state),
        }
    }
}

/// Opens the journal of a directory and reads everything. A journal that ends before one of the reaches is refused, and left as
/// it was found.
pub(crate) fn open_and_recover(
    directory: &Directory,
    (sync, look): (Syncs, Look),
    due: &[Reach],
) -> Result<(Connection, Heading, Recovered), OpenError> {
    let journal = directory.journal();
    let connection = database::open(&journal, sync, look, |connection| {
        // A heading that cannot be read is reported below, with the rest of the damage.
        let Ok(heading) = read_heading(connection, &journal) else { return Ok(()) };
        due.iter().try_for_each(|reach| reach.check(directory, connection, &heading))
    })?;
    let (heading, recovered) = recover(&connection, &journal)?;
    Ok((connection, heading, recovered))
}

/// Reads everything, and checks that it is all there.
pub(crate) fn recover(connection: &Connection, path: &Path) -> Result<(Heading, Recovered), OpenError> {
    let heading = read_heading(connection, path)?;
    let mut state = read_state(connection, path, &heading)?;
    let (mut expected, mut unread) = (heading.base, Vec::new());
    read_records(connection, path, heading.base, |number, stored| {
        expected += 1;
        if number != expected {
            return Err(OpenError::damaged(path, format!("record {expected} is missing")));
        }
        for record in stored.upgraded(&state) {
            state.apply(&record);
            match record.entry {
                Entry::Cluster(id, ClusterEntry::Unread(more)) => {
                    unread.extend(more.into_iter().map(|maintenance| (id, maintenance)));
                }
                Entry::Cluster(..) | Entry::Shared(_) => unread.clear(),
            }
        }
        Ok(())
    })?;
    if expected != heading.last {
        let what = format!("it ends with record {expected}, and should with {}", heading.last);
        return Err(OpenError::damaged(path, what));
    }
    check_ends(connection, path, &heading)?;
    let Heading { identity, created, clock, trail, .. } = heading;
    let replayed = heading.last - heading.base;
    let recovered = Recovered { state, identity, created, clock, replayed, trail, unread };
    Ok((heading, recovered))
}

/// The number of the record before the first that is still there.
pub(crate) fn read_swept(connection: &Connection, heading: &Heading) -> rusqlite::Result<u64> {
    let first: Option<i64> = connection.query_row("SELECT min(number) FROM record", [], |row| row.get(0))?;
    let before = first.map(|first| first.cast_unsigned().saturating_sub(1));
    Ok(before.unwrap_or(heading.base).min(heading.base))
}

fn read_heading(connection: &Connection, path: &Path) -> Result<Heading, OpenError> {
    let sql = "SELECT content FROM heading";
    let content: Vec<u8> = match connection.query_row(sql, [], |row| row.get(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            return Err(OpenError::damaged(path, "it has no heading"));
        }
        other => other.map_err(|source| OpenError::database(path, source))?,
    };
    let opened = seal::open(Place::Head, &content);
    opened.map_err(|problem| OpenError::damaged(path, format!("the heading: {problem}")))
}

fn read_state(connection: &Connection, path: &Path, heading: &Heading) -> Result<ControlState, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let mut rows = RowReader::default();
    let sql = "SELECT place, content FROM chunk WHERE place >= ?1 AND place < ?2 ORDER BY place";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let generation = heading.generation;
    let (from, to) = (place_of(generation, 0), place_of(generation + 1, 0));
    let mut chunks = statement.query(params![from, to]).map_err(failed)?;
    let mut number = 0;
    while let Some(row) = chunks.next().map_err(failed)? {
        let sealed = blob(row, path, CHUNK_BYTES + RECORD_BYTES_MAX)?;
        let place = Place::Chunk { generation, number };
        let wrong = |problem: &dyn std::fmt::Display| {
            OpenError::damaged(path, format!("part {number} of the kept state: {problem}"))
        };
        let content = seal::open_any(place, sealed).map_err(|problem| wrong(&problem))?;
        rows.add(&content, wrong)?;
        number += 1;
    }
    if (number, rows.count()) != (heading.chunks, heading.rows) {
        return Err(OpenError::damaged(path, "a part of the kept state is missing"));
    }
    rows.finish().map_err(|problem| OpenError::damaged(path, problem.to_string()))
}

/// A state that is being read from its parts.
#[derive(Default)]
pub(crate) struct RowReader {
    restoring: RestoringState,
    upgrade: RowUpgrade,
    count: u64,
}

impl RowReader {
    /// Takes every row of a part.
    pub(crate) fn add<E>(
        &mut self,
        content: &Content<'_>,
        wrong: impl Fn(&dyn std::fmt::Display) -> E,
    ) -> Result<(), E> {
        let (Content::Present(bytes) | Content::Old(bytes)) = content;
        let mut input = Reader::new(bytes);
        while input.left() > 0 {
            let rows = match content {
                Content::Present(_) => StateRow::read(&mut input).map(|row| vec![row]),
                Content::Old(_) => OldRow::read(&mut input).map(|row| self.upgrade.upgrade(row)),
            };
            for row in rows.map_err(|problem| wrong(&problem))? {
                self.restoring.add(row).map_err(|problem| wrong(&problem))?;
            }
            self.count += 1;
        }
        Ok(())
    }

    /// The number of rows so far, as they are stored.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The state, once all parts are there.
    pub(crate) fn finish(self) -> Result<ControlState, BadRows> {
        self.restoring.finish()
    }
}

fn read_records(
    connection: &Connection,
    path: &Path,
    base: u64,
    mut each: impl FnMut(u64, StoredRecord) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let sql = "SELECT number, content FROM record WHERE number > ?1 ORDER BY number";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query(params![base.cast_signed()]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let number = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
        let sealed = blob(row, path, RECORD_BYTES_MAX)?;
        let record = StoredRecord::read(number, sealed)
            .map_err(|problem| OpenError::damaged(path, format!("record {number}: {problem}")))?;
        each(number, record)?;
    }
    Ok(())
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, path: &Path, bytes_max: usize) -> Result<&'a [u8], OpenError> {
    let value = row.get_ref(1).map_err(|source| OpenError::database(path, source))?;
    let bytes = value.as_blob().map_err(|problem| OpenError::damaged(path, problem.to_string()))?;
    if bytes.len() > bytes_max + SEAL_BYTES {
        return Err(OpenError::damaged(path, format!("something is too large: {} bytes", bytes.len())));
    }
    Ok(bytes)
}
