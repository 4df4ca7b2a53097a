//! The audit file of an open journal, and the filing of entries into it.
//!
//! Entries are filed between commits, a few at a time, without a sync. A checkpoint from time to time makes them
//! durable; only then are they removed from the journal ([`crate::pending`]). Nothing of the state depends on this
//! file, so it is not checked when the journal is opened: entries that cannot be filed because it is damaged stay in
//! the journal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use forewarn_control::AuditEntry;
use rusqlite::{Connection, ErrorCode};

use crate::audit_file::{AuditFile, create_audit, damage_of};
use crate::audit_log::{AuditEnds, AuditView, FiledEntry, file_entry, remove_swept};
use crate::database::{self, LogAfterCheckpoint, checkpoint, keep_log_on_close};
use crate::error::{AppendError, OpenError};
use crate::files::{AuditFileState, Directory};
use crate::heading::Headings;
use crate::pending::{FilingSlice, PendingEntries};
use crate::stream_key::StreamKey;

/// Entries that are filed together.
pub(crate) const ENTRIES_PER_SLICE: u64 = 64;

/// Entries after which those that are filed are settled, if the log of the file is not long before that.
const ENTRIES_PER_SETTLEMENT: u64 = 16_384;

/// Work after which a slice ends that has filed as many bytes as the last commit has written: the bytes of its entries,
/// and for each of their subjects the work of about 512 bytes.
const WORK_PER_SLICE: u64 = 1 << 20;
const SUBJECT_WORK: u64 = 512;

/// Bytes that a subject adds to the log.
const SUBJECT_BYTES: u64 = 128;

/// Pause after a failure that may pass.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Bytes that a slice adds to its content: the pages around it.
const SLICE_BYTES: u64 = 10 * 4_096;

/// Amount that is filed together: no more entries than that, and at least that many bytes of them if there are so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilingAmount {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// Treatment of swept entries by a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweptEntries {
    Remove,
    /// A copy of the file is being made.
    Keep,
}

/// The audit file of an open journal, and the entries that wait for it.
#[derive(Debug)]
pub(crate) struct AuditStore {
    /// Or the damage because of which it cannot be used at all.
    file: Result<Connection, String>,
    pending: PendingEntries,
    /// The damage because of which nothing is filed, or that was found at an end.
    damage: Option<String>,
    health: FilingHealth,
    /// Approximate size of the write-ahead log.
    log_bytes: u64,
    /// Position of the last entry before those that remain in the file.
    removed: u64,
    path: PathBuf,
    journal_path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FilingHealth {
    Files,
    /// The file could not be written at that moment for that reason, which may pass. Entries stay in the journal.
    Paused {
        since: Instant,
        what: String,
    },
    /// The file is damaged. Entries stay in the journal.
    Stopped,
}

impl AuditStore {
    /// Opens the audit file of a journal. Creates it if it is missing and no entry with it.
    pub(crate) fn open(
        directory: &Directory,
        (file, pending): (AuditFile, PendingEntries),
        (journal, headings): (&Connection, &Headings),
    ) -> Result<Self, OpenError> {
        let path = directory.audit();
        let damage = match file.ends(journal, &pending, headings) {
            AuditEnds::Present => None,
            AuditEnds::Damaged(what) => Some(what),
            AuditEnds::Lost(what) => return Err(OpenError::AuditLost { path, what }),
            AuditEnds::Ahead(what) => {
                return Err(OpenError::Short { path: directory.path().to_owned(), what });
            }
        };
        let mut file = match file {
            AuditFile::Found(file) => Ok(file),
            AuditFile::Damaged(what) => Err(what),
            AuditFile::Missing => {
                create_audit(directory, headings.journal.created, |_| Ok(()))?;
                Ok(database::open_audit(&path)?)
            }
        };
        if let Ok(Err(error)) = file.as_ref().map(database::accept) {
            file = Err(damage_of(OpenError::database(&path, error))?);
        }
        let damage = damage.or_else(|| file.as_ref().err().cloned());
        let health = if file.is_ok() { FilingHealth::Files } else { FilingHealth::Stopped };
        let journal_path = directory.journal();
        Ok(Self { file, pending, damage, health, log_bytes: 0, removed: 0, path, journal_path })
    }

    pub(crate) fn file(&self) -> Result<&Connection, &str> {
        self.file.as_ref().map_err(String::as_str)
    }

    pub(crate) fn state(&self) -> AuditFileState {
        if self.file.is_ok() { AuditFileState::Used } else { AuditFileState::Unusable }
    }

    pub(crate) fn pending(&self) -> &PendingEntries {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut PendingEntries {
        &mut self.pending
    }

    /// The damage that was found at the opening or by filing, or the reason of a pause.
    pub(crate) fn damage(&self) -> Option<&str> {
        match &self.health {
            FilingHealth::Paused { what, .. } => Some(what),
            FilingHealth::Files | FilingHealth::Stopped => self.damage.as_deref(),
        }
    }

    pub(crate) fn view<'a>(&'a self, journal: &'a Connection) -> AuditView<'a> {
        AuditView::new(journal, self.file.as_ref().ok(), &self.pending)
    }

    /// Returns true if at least that many entries can be filed. `hidden` has the last number that readers see, by
    /// stream.
    pub(crate) fn can_file(&self, hidden: &BTreeMap<StreamKey, u64>, least: u64) -> bool {
        if self.health != FilingHealth::Files || self.pending.unfiled() < least.max(1) {
            return false;
        }
        let mut count = 0;
        self.pending.fileable(hidden).any(|slice| {
            count += slice.count;
            count >= least
        })
    }

    /// Returns true if that many swept entries can be removed from the file.
    pub(crate) fn can_remove(&self, swept: u64, least: u64) -> bool {
        self.health == FilingHealth::Files && swept >= self.removed.saturating_add(least.max(1))
    }

    /// Files about that many entries, in one transaction. Damage ends the filing.
    pub(crate) fn file_some(
        &mut self,
        journal: &Connection,
        (hidden, swept): (&BTreeMap<StreamKey, u64>, u64),
        (amount, removal): (FilingAmount, SweptEntries),
    ) -> Result<(), AppendError> {
        let Ok(file) = &self.file else { return Ok(()) };
        if self.health != FilingHealth::Files {
            return Ok(());
        }
        let mut left = amount.entries;
        let mut slices = Vec::new();
        for slice in self.pending.fileable(hidden) {
            if left == 0 {
                break;
            }
            let slice = FilingSlice { count: slice.count.min(left), ..slice };
            left -= slice.count;
            slices.push(slice);
        }
        match file_slices(file, journal, &self.pending, (&slices, amount.bytes), (swept, removal)) {
            Ok(FilingResult::Filed { slices, bytes, removed }) => {
                slices.iter().for_each(|slice| self.pending.filed(slice));
                // A damaged entry is not removed: later ones are tried again when more are swept.
                let goes = |removed: &u64| *removed != self.removed;
                self.removed =
                    removed.map_or(self.removed, |removed| Some(removed).filter(goes).unwrap_or(swept));
                self.log_bytes += bytes + SLICE_BYTES;
            }
            Ok(FilingResult::Wrong(what)) => self.stop(&what),
            Err(error) => self.stop_or_fail(&error)?,
        }
        Ok(())
    }

    /// Makes everything that is filed durable, if it is time.
    pub(crate) fn settle_if_due(
        &mut self,
        log_bytes: u64,
        check_names: impl FnOnce() -> Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        if self.log_bytes > log_bytes || self.pending.unsettled() >= ENTRIES_PER_SETTLEMENT {
            self.settle(check_names, LogAfterCheckpoint::Reused)?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        check_names: impl FnOnce() -> Result<(), AppendError>,
        log: LogAfterCheckpoint,
    ) -> Result<(), AppendError> {
        let Ok(file) = &self.file else { return Ok(()) };
        if self.health != FilingHealth::Files {
            return Ok(());
        }
        // What is in a file without a name is lost with the process.
        check_names()?;
        match checkpoint(file, log) {
            Ok(()) => {
                self.log_bytes = 0;
                self.pending.settle();
                Ok(())
            }
            Err(error) => self.stop_or_fail(&error),
        }
    }

    /// A full disk fails the journal, as it does when the journal itself cannot be written. Anything else is damage, or
    /// may pass.
    fn stop_or_fail(&mut self, error: &rusqlite::Error) -> Result<(), AppendError> {
        match AppendError::from(error) {
            AppendError::Full => Err(AppendError::Full),
            AppendError::Failed(what) => {
                match error.sqlite_error_code() {
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => self.stop(&what),
                    Some(_) => self.pause(&what),
                }
                Ok(())
            }
            other @ (AppendError::Moved(_)
            | AppendError::TooLarge(_)
            | AppendError::OtherStream
            | AppendError::Unchained(_)
            | AppendError::OtherEntry
            | AppendError::Closed) => Err(other),
        }
    }

    fn stop(&mut self, what: &str) {
        self.damage = Some(format!("entries cannot be filed: {what}"));
        self.health = FilingHealth::Stopped;
    }

    fn pause(&mut self, what: &str) {
        let what = format!("entries cannot be filed: {what}");
        self.health = FilingHealth::Paused { since: Instant::now(), what };
    }

    /// Goes on after a pause.
    pub(crate) fn resume_if_due(&mut self, journal: &Connection) {
        match self.health {
            FilingHealth::Paused { since, .. } if since.elapsed() >= RETRY_PAUSE => self.resume(journal),
            FilingHealth::Paused { .. } | FilingHealth::Files | FilingHealth::Stopped => {}
        }
    }

    /// Opens the file again, as a start does. After a failed write nobody knows which pages are on the disk, so entries
    /// that are not settled are filed again, which compares them.
    fn resume(&mut self, journal: &Connection) {
        // Before the file is opened: closing any handle of it releases its lock.
        self.keep_log_on_close();
        drop(std::mem::replace(&mut self.file, Err("it is being opened again".to_owned())));
        match self.reopen(journal) {
            Ok((file, found)) => {
                (self.file, self.health, self.log_bytes) = (Ok(file), FilingHealth::Files, 0);
                self.pending.unfile(found);
            }
            Err(error) => {
                let what = error.to_string();
                match error {
                    OpenError::Damaged { .. } | OpenError::Foreign(_) => self.stop(&what),
                    OpenError::Database { .. }
                    | OpenError::InUse(_)
                    | OpenError::Missing(_)
                    | OpenError::Gone(_)
                    | OpenError::Short { .. }
                    | OpenError::AuditLost { .. }
                    | OpenError::AuditDamaged { .. }
                    | OpenError::ReachUnknown { .. }
                    | OpenError::Complete(_)
                    | OpenError::Newer { .. }
                    | OpenError::Exists(_)
                    | OpenError::Full(_)
                    | OpenError::Io { .. } => self.pause(&what),
                }
                self.file = Err(what);
            }
        }
    }

    fn reopen(&self, journal: &Connection) -> Result<(Connection, PendingEntries), OpenError> {
        let file = database::open_audit(&self.path)?;
        database::accept(&file).map_err(|source| OpenError::database(&self.path, source))?;
        Ok((file, PendingEntries::read(journal, &self.journal_path)?))
    }

    /// Files and settles everything: nothing is hidden any more.
    pub(crate) fn finish(
        &mut self,
        journal: &Connection,
        swept: u64,
        check_names: impl FnOnce() -> Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        let hidden = BTreeMap::new();
        while self.can_file(&hidden, 1) {
            let amount = FilingAmount { entries: ENTRIES_PER_SLICE * 16, bytes: 0 };
            self.file_some(journal, (&hidden, swept), (amount, SweptEntries::Keep))?;
        }
        while self.can_remove(swept, 1) {
            let amount = FilingAmount { entries: 0, bytes: 0 };
            self.file_some(journal, (&hidden, swept), (amount, SweptEntries::Remove))?;
        }
        self.settle(check_names, LogAfterCheckpoint::Emptied)
    }

    /// Makes closing leave the log of the file unchanged.
    pub(crate) fn keep_log_on_close(&self) {
        if let Ok(file) = &self.file {
            drop(keep_log_on_close(file));
        }
    }

    /// Closes the file.
    pub(crate) fn close(self) -> rusqlite::Result<()> {
        self.file.map_or(Ok(()), |file| file.close().map_err(|(_, error)| error))
    }
}

/// Outcome of a slice.
enum FilingResult {
    Filed {
        /// The entries that are filed.
        slices: Vec<FilingSlice>,
        bytes: u64,
        removed: Option<u64>,
    },
    /// An entry is not what it should be.
    Wrong(String),
}

/// Files slices until there is enough work.
fn file_slices(
    file: &Connection,
    journal: &Connection,
    pending: &PendingEntries,
    (slices, due): (&[FilingSlice], u64),
    (swept, removal): (u64, SweptEntries),
) -> rusqlite::Result<FilingResult> {
    let transaction = file.unchecked_transaction()?;
    let (mut filed, mut line_bytes, mut bytes, mut work) = (Vec::new(), 0, 0, 0);
    let bytes_read_max = usize::try_from(due.saturating_add(WORK_PER_SLICE)).unwrap_or(usize::MAX);
    for slice in slices {
        if work >= WORK_PER_SLICE {
            break;
        }
        let lines = match pending.lines(journal, slice, bytes_read_max)? {
            Ok(lines) => lines,
            Err(what) => return Ok(FilingResult::Wrong(what)),
        };
        let mut count = 0;
        for (position, line) in &lines {
            if work >= WORK_PER_SLICE {
                break;
            }
            count += 1;
            if *position <= swept {
                continue;
            }
            let entry: AuditEntry = match serde_json::from_str(line) {
                Ok(entry) => entry,
                Err(error) => return Ok(FilingResult::Wrong(format!("audit entry {position}: {error}"))),
            };
            let (found, subjects) = file_entry(&transaction, (slice.stream, *position), &entry, line)?;
            match found {
                FiledEntry::Same => {}
                FiledEntry::Another => {
                    return Ok(FilingResult::Wrong(format!("another audit entry {position} is there")));
                }
            }
            bytes += line.len() as u64 + SUBJECT_BYTES * subjects;
            if line_bytes >= due {
                work += line.len() as u64 + SUBJECT_WORK * subjects;
            }
            line_bytes += line.len() as u64;
        }
        filed.push(FilingSlice { count, ..*slice });
    }
    let removed = match removal {
        SweptEntries::Remove => {
            let count = filed.iter().map(|slice| slice.count).sum::<u64>() + ENTRIES_PER_SLICE;
            Some(remove_swept(&transaction, swept, usize::try_from(count).unwrap_or(usize::MAX))?)
        }
        SweptEntries::Keep => None,
    };
    transaction.commit()?;
    Ok(FilingResult::Filed { slices: filed, bytes, removed })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forewarn_control::{Chain, NewAuditEntry};
    use forewarn_lifecycle::{Now, Seed};

    use super::*;
    use crate::audit_log::read_rows;
    use crate::database::{CheckDepth, SyncMode};
    use crate::pending::{Run, write_run_entry};
    use crate::recover::{OpenedJournal, open_and_recover};
    use crate::{Journal, Options};

    fn amount(entries: u64, bytes: u64) -> FilingAmount {
        FilingAmount { entries, bytes }
    }

    /// Adds entries of the shared stream to those that wait. Returns their size.
    fn wait_for_filing(
        store: &mut AuditStore,
        journal: &Connection,
        chain: &mut Chain,
        (count, new): (u64, &NewAuditEntry),
    ) -> u64 {
        let mut bytes = 0;
        for _ in 0..count {
            let entry = chain.seal(new.clone());
            bytes += entry.to_line().len() as u64;
            let run = store.pending.new_id();
            write_run_entry(journal, (run, entry.number), &entry.to_line()).unwrap();
            let run_of = Run::new(StreamKey::SHARED, entry.number, &[entry.number]);
            store.pending.add(journal, run, run_of).unwrap();
        }
        bytes
    }

    fn open_store(scratch: &Path) -> (Directory, Connection, AuditStore) {
        let options = Options::new(Seed([7; 16]), Now::at_millis(1_000));
        Journal::open(scratch, &options).unwrap().0.close().unwrap();
        let directory = Directory::own(scratch).unwrap();
        let depth = (SyncMode::Later, CheckDepth::Quick);
        let opened = open_and_recover(&directory, depth, &[]).unwrap();
        let OpenedJournal { connection: journal, headings, pending, audit, .. } = opened;
        let store = AuditStore::open(&directory, (audit, pending), (&journal, &headings)).unwrap();
        (directory, journal, store)
    }

    #[test]
    fn a_slice_of_large_entries_ends_early_unless_as_much_was_written() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        let (mut chain, hidden) = (Chain::default(), BTreeMap::new());
        let hosts = (0..1_000).map(|host| format!("h{host}")).collect();
        let large = NewAuditEntry { hosts, ..NewAuditEntry::default() };
        let bytes = wait_for_filing(&mut store, &journal, &mut chain, (64, &large));
        let mut file = |amount| {
            let before = store.pending.unfiled();
            store.file_some(&journal, (&hidden, 0), (amount, SweptEntries::Remove)).unwrap();
            before - store.pending.unfiled()
        };
        assert_eq!(file(amount(64, 0)), 3, "about 2,000 subjects");
        assert_eq!(file(amount(64, bytes / 2 - 64)), 35, "as much as was written, and the same");
        assert_eq!(file(amount(64, bytes)), 26);
        let rows = |limits| read_rows(store.file().unwrap(), (0, 64), limits).unwrap().len();
        let size = usize::try_from(bytes / 64).unwrap();
        assert_eq!([rows((100, usize::MAX)), rows((10, usize::MAX)), rows((100, 4 * size))], [64, 10, 4]);
        assert_eq!(remove_swept(store.file().unwrap(), 64, 100).unwrap(), 2, "2,000 subjects");
        assert_eq!(remove_swept(store.file().unwrap(), 64, 1).unwrap(), 3);
    }

    #[test]
    fn filing_goes_on_after_a_failure_that_passes() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        let (mut chain, hidden) = (Chain::default(), BTreeMap::new());
        let file = |store: &mut AuditStore| {
            store.file_some(&journal, (&hidden, 0), (amount(100, 0), SweptEntries::Remove)).unwrap();
        };
        let new = NewAuditEntry::default();
        wait_for_filing(&mut store, &journal, &mut chain, (3, &new));
        file(&mut store);
        assert_eq!((store.pending.unfiled(), store.pending.unsettled()), (0, 3));
        wait_for_filing(&mut store, &journal, &mut chain, (2, &new));
        store.file.as_ref().unwrap().pragma_update(None, "query_only", true).unwrap();
        file(&mut store);
        assert!(store.damage().is_some_and(|what| what.contains("cannot be filed")), "{store:?}");
        assert!(!store.can_file(&hidden, 1));
        store.resume(&journal);
        assert_eq!((store.damage(), store.health.clone()), (None, FilingHealth::Files));
        assert_eq!((store.pending.unfiled(), store.pending.unsettled()), (5, 0), "all are compared");
        file(&mut store);
        store.settle(|| Ok(()), LogAfterCheckpoint::Emptied).unwrap();
        assert_eq!((store.damage(), store.pending.unfiled()), (None, 0));
        // Settled entries are not filed again.
        store.pause("the disk is away");
        store.resume(&journal);
        assert_eq!((store.damage(), store.pending.unfiled()), (None, 0));
        let rows = "SELECT count(*) FROM trail";
        let rows: i64 = store.file().unwrap().query_row(rows, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 5);
        // Damage does not pass.
        store.stop_or_fail(&rusqlite::Error::InvalidQuery).unwrap();
        store.resume_if_due(&journal);
        assert_eq!(store.health, FilingHealth::Stopped);
    }
}
