//! The audit file of an open journal, and the filing of entries into it.
//!
//! Entries are filed beside the commits, many at a time, without a sync ([`crate::filer`]). A checkpoint from time to
//! time makes them durable; only then are they removed from the journal ([`crate::pending`]). Nothing of the state
//! depends on this file, so it is not checked when the journal is opened: entries that cannot be filed because it is
//! damaged stay in the journal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::audit_file::{AuditFile, create_audit, damage_of};
use crate::audit_log::{AuditEnds, AuditView};
use crate::database::{self, LogAfterCheckpoint, keep_log_on_close};
use crate::error::{AppendError, OpenError};
use crate::filer::{
    Filer, FilerEnded, FilingJob, FilingOutcome, FilingSlices, Removal, SweptEntries, perform,
};
use crate::files::{AuditFileState, Directory};
use crate::heading::Headings;
use crate::pending::{FilingSlice, PendingEntries};
use crate::stream_key::StreamKey;

/// Entries, and bytes of them, that are filed together.
const ENTRIES_PER_JOB: usize = 1_024;
const BYTES_PER_JOB: usize = 1 << 20;

/// Entries after which those that are filed are settled, if the log of the file is not long before that.
const ENTRIES_PER_SETTLEMENT: u64 = 16_384;

/// Entries that may wait while others are filed. With more of them, commits wait for the filing.
const BACKLOG_MAX: u64 = 65_536;

/// Pause after a failure that may pass.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Bytes that a job adds to its content: the pages around it.
const JOB_BYTES: u64 = 10 * 4_096;

/// The connection of the audit file.
#[derive(Debug)]
enum FileState {
    Here(Connection),
    /// The filer has it.
    Lent,
    /// The damage because of which it cannot be used at all.
    Unusable(String),
}

/// The reason why the committer does not have the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoFile<'a> {
    #[error("it is being written")]
    Lent,
    #[error("{0}")]
    Unusable(&'a str),
}

/// The audit file of an open journal, and the entries that wait for it.
#[derive(Debug)]
pub(crate) struct AuditStore {
    file: FileState,
    /// `None` if entries are filed on the thread of the caller.
    filer: Option<Filer>,
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
        let (file, filer) = (file.map_or_else(FileState::Unusable, FileState::Here), None);
        Ok(Self { file, filer, pending, damage, health, log_bytes: 0, removed: 0, path, journal_path })
    }

    /// Files entries on another thread from now on.
    pub(crate) fn file_on(&mut self, filer: Option<Filer>) {
        self.filer = filer;
    }

    /// The file, unless the filer has it.
    pub(crate) fn file(&self) -> Result<&Connection, NoFile<'_>> {
        match &self.file {
            FileState::Here(file) => Ok(file),
            FileState::Lent => Err(NoFile::Lent),
            FileState::Unusable(what) => Err(NoFile::Unusable(what)),
        }
    }

    pub(crate) fn state(&self) -> AuditFileState {
        match self.file {
            FileState::Here(_) | FileState::Lent => AuditFileState::Used,
            FileState::Unusable(_) => AuditFileState::Unusable,
        }
    }

    /// Returns true if the filer has the file.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.file, FileState::Lent)
    }

    /// Returns true if so many entries wait that commits must wait for the filing.
    pub(crate) fn is_behind(&self) -> bool {
        self.pending.unfiled() > BACKLOG_MAX
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
        AuditView::new(journal, self.file().ok(), &self.pending)
    }

    /// Returns true if at least that many entries can be filed now. `hidden` has the last number that readers see, by
    /// stream.
    pub(crate) fn can_file(&self, hidden: &BTreeMap<StreamKey, u64>, least: u64) -> bool {
        if self.is_lent() || self.health != FilingHealth::Files || self.pending.unfiled() < least.max(1) {
            return false;
        }
        let mut count = 0;
        self.pending.fileable(hidden).any(|slice| {
            count += slice.count;
            count >= least
        })
    }

    /// Returns true if an entry up to that position is being filed, or can be.
    pub(crate) fn has_fileable(&self, hidden: &BTreeMap<StreamKey, u64>, position: u64) -> bool {
        self.health == FilingHealth::Files && self.pending.is_fileable_up_to(hidden, position)
    }

    /// Returns true if that many swept entries can be removed from the file.
    pub(crate) fn can_remove(&self, swept: u64, least: u64) -> bool {
        !self.is_lent()
            && self.health == FilingHealth::Files
            && swept >= self.removed.saturating_add(least.max(1))
    }

    /// Begins to file entries, in one transaction, and to settle everything that is filed if it is time. Damage ends
    /// the filing.
    pub(crate) fn begin_filing(
        &mut self,
        journal: &Connection,
        (hidden, swept): (&BTreeMap<StreamKey, u64>, u64),
        removal: SweptEntries,
        settlement: Option<LogAfterCheckpoint>,
    ) -> Result<(), AppendError> {
        if self.health != FilingHealth::Files || self.file().is_err() {
            return Ok(());
        }
        let slices = match self.take_slices(journal, hidden) {
            Ok(Ok(slices)) => slices,
            Ok(Err(what)) => {
                self.stop(&what);
                return Ok(());
            }
            Err(error) => return self.stop_or_fail(&error),
        };
        let FileState::Here(file) = std::mem::replace(&mut self.file, FileState::Lent) else { return Ok(()) };
        let lent = Box::new((file, FilingJob { slices, swept, removal, settlement }));
        let lent = match &self.filer {
            Some(filer) => filer.lend(lent),
            None => Err(lent),
        };
        match lent.map_err(|lent| *lent) {
            Ok(()) => Ok(()),
            Err((file, job)) => {
                let outcome = perform(&file, job);
                self.returned(file, outcome)
            }
        }
    }

    /// The entries of a job, or what is wrong with one of them.
    fn take_slices(
        &mut self,
        journal: &Connection,
        hidden: &BTreeMap<StreamKey, u64>,
    ) -> rusqlite::Result<Result<FilingSlices, String>> {
        let (mut entries, mut bytes) = (ENTRIES_PER_JOB as u64, BYTES_PER_JOB);
        let fileable: Vec<_> = self.pending.fileable(hidden).take(ENTRIES_PER_JOB).collect();
        let mut slices = Vec::with_capacity(fileable.len());
        for slice in fileable {
            if entries == 0 || bytes == 0 {
                break;
            }
            let slice = FilingSlice { count: slice.count.min(entries), ..slice };
            let taken = match self.pending.take(journal, &slice, bytes)? {
                Ok(taken) => taken,
                Err(what) => return Ok(Err(what)),
            };
            let slice = FilingSlice { count: taken.len() as u64, ..slice };
            entries -= slice.count;
            bytes = taken.iter().fold(bytes, |left, entry| left.saturating_sub(entry.line.len()));
            slices.push((slice, taken));
        }
        Ok(Ok(slices))
    }

    /// Takes the file back if its job has ended.
    pub(crate) fn take_back(&mut self) -> Result<(), AppendError> {
        if !self.is_lent() {
            return Ok(());
        }
        match self.filer.as_ref().map_or(Err(FilerEnded), Filer::take_back) {
            Ok(Some((file, outcome))) => self.returned(file, outcome),
            Ok(None) => Ok(()),
            Err(FilerEnded) => self.lose_file(),
        }
    }

    /// Waits until the file is back.
    pub(crate) fn wait_for_file(&mut self) -> Result<(), AppendError> {
        if !self.is_lent() {
            return Ok(());
        }
        match self.filer.as_ref().map_or(Err(FilerEnded), Filer::wait) {
            Ok((file, outcome)) => self.returned(file, outcome),
            Err(FilerEnded) => self.lose_file(),
        }
    }

    fn returned(
        &mut self,
        file: Connection,
        outcome: rusqlite::Result<FilingOutcome>,
    ) -> Result<(), AppendError> {
        self.file = FileState::Here(file);
        match outcome {
            Ok(FilingOutcome::Filed { slices, bytes, removal, is_settled }) => {
                slices.iter().for_each(|slice| self.pending.filed(slice));
                // A damaged entry is not removed: later ones are tried again when more are swept.
                if let Some(Removal { swept, removed }) = removal {
                    self.removed = if removed == self.removed { swept } else { removed };
                }
                self.log_bytes += bytes + JOB_BYTES;
                if is_settled {
                    self.log_bytes = 0;
                    self.pending.settle();
                }
                Ok(())
            }
            Ok(FilingOutcome::Wrong(what)) => {
                self.stop(&what);
                Ok(())
            }
            Err(error) => self.stop_or_fail(&error),
        }
    }

    fn lose_file(&mut self) -> Result<(), AppendError> {
        let what = "the thread that files entries has ended";
        self.stop(what);
        self.file = FileState::Unusable(what.to_owned());
        Ok(())
    }

    /// Returns true if it is time to make everything that is filed durable.
    pub(crate) fn wants_settlement(&self, log_bytes: u64) -> bool {
        self.log_bytes > log_bytes || self.pending.unsettled() >= ENTRIES_PER_SETTLEMENT
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
            | AppendError::Earlier
            | AppendError::Memory
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
        self.file = FileState::Unusable("it is being opened again".to_owned());
        match self.reopen(journal) {
            Ok((file, found)) => {
                (self.file, self.health, self.log_bytes) = (FileState::Here(file), FilingHealth::Files, 0);
                self.pending.unfile(found);
            }
            Err(error) => {
                let what = error.to_string();
                if matches!(error, OpenError::Damaged { .. } | OpenError::Foreign(_)) {
                    self.stop(&what);
                } else {
                    self.pause(&what);
                }
                self.file = FileState::Unusable(what);
            }
        }
    }

    fn reopen(&self, journal: &Connection) -> Result<(Connection, PendingEntries), OpenError> {
        let file = database::open_audit(&self.path)?;
        database::accept(&file).map_err(|source| OpenError::database(&self.path, source))?;
        Ok((file, PendingEntries::read(journal, &self.journal_path)?))
    }

    /// Files and settles everything that is not hidden. `hidden` has the last number that readers see, by stream: later
    /// ones may still be replaced when the journal is opened again.
    pub(crate) fn finish(
        &mut self,
        journal: &Connection,
        (hidden, swept): (&BTreeMap<StreamKey, u64>, u64),
        check_names: impl FnOnce() -> Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        self.wait_for_file()?;
        while self.can_file(hidden, 1) {
            self.begin_filing(journal, (hidden, swept), SweptEntries::Keep, None)?;
            self.wait_for_file()?;
        }
        while self.can_remove(swept, 1) {
            self.begin_filing(journal, (hidden, swept), SweptEntries::Remove, None)?;
            self.wait_for_file()?;
        }
        // What is in a file without a name is lost with the process.
        check_names()?;
        let settlement = Some(LogAfterCheckpoint::Emptied);
        self.begin_filing(journal, (hidden, swept), SweptEntries::Keep, settlement)?;
        self.wait_for_file()
    }

    /// Makes closing leave the log of the file unchanged.
    pub(crate) fn keep_log_on_close(&self) {
        if let Ok(file) = self.file() {
            drop(keep_log_on_close(file));
        }
    }

    /// Closes the file.
    pub(crate) fn close(self) -> rusqlite::Result<()> {
        match self.file {
            FileState::Here(file) => file.close().map_err(|(_, error)| error),
            FileState::Lent | FileState::Unusable(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forewarn_control::{Chain, NewAuditEntry};
    use forewarn_lifecycle::{Now, Seed};

    use super::*;
    use crate::audit_log::{read_rows, remove_swept};
    use crate::database::{CheckDepth, SyncMode};
    use crate::entry_run::Run;
    use crate::pending::write_run_entry;
    use crate::recover::{OpenedJournal, open_and_recover};
    use crate::{Journal, Options};

    /// Files the entries of one job.
    fn file_some(store: &mut AuditStore, journal: &Connection) {
        store.begin_filing(journal, (&BTreeMap::new(), 0), SweptEntries::Remove, None).unwrap();
        store.wait_for_file().unwrap();
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
            store.pending.add(journal, (run, run_of), Vec::new()).unwrap();
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
    fn a_job_of_large_entries_ends_early() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        let mut chain = Chain::default();
        let hosts = (0..1_000).map(|host| format!("h{host}")).collect();
        let large = NewAuditEntry { hosts, ..NewAuditEntry::default() };
        let bytes = wait_for_filing(&mut store, &journal, &mut chain, (12, &large));
        let mut file = || {
            let before = store.pending.unfiled();
            file_some(&mut store, &journal);
            before - store.pending.unfiled()
        };
        assert_eq!([file(), file(), file()], [5, 5, 2], "about 4,000 subjects");
        let rows = |limits| read_rows(store.file().unwrap(), (0, 64), limits).unwrap().len();
        let size = usize::try_from(bytes / 12).unwrap();
        assert_eq!([rows((100, usize::MAX)), rows((10, usize::MAX)), rows((100, 4 * size))], [12, 10, 4]);
        assert_eq!(remove_swept(store.file().unwrap(), 12, 100).unwrap(), 2, "2,000 subjects");
        assert_eq!(remove_swept(store.file().unwrap(), 12, 1).unwrap(), 3);
    }

    #[test]
    fn many_entries_are_filed_in_several_jobs() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        let new = NewAuditEntry::default();
        let per_job = ENTRIES_PER_JOB as u64;
        let count = 2 * per_job + 7;
        wait_for_filing(&mut store, &journal, &mut Chain::default(), (count, &new));
        for left in [per_job + 7, 7, 0] {
            file_some(&mut store, &journal);
            assert_eq!(store.pending.unfiled(), left);
        }
    }

    /// An entry is neither lost nor filed twice if the thread has ended.
    #[test]
    fn entries_stay_in_the_journal_if_the_filer_has_ended() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        wait_for_filing(&mut store, &journal, &mut Chain::default(), (3, &NewAuditEntry::default()));
        store.file_on(Filer::start(|| panic!("the thread ends")));
        file_some(&mut store, &journal);
        assert_eq!((store.pending.unfiled(), store.damage()), (0, None));
        wait_for_filing(&mut store, &journal, &mut Chain::default(), (1, &NewAuditEntry::default()));
        store.file = FileState::Lent;
        store.wait_for_file().unwrap();
        assert_eq!((store.pending.unfiled(), store.health.clone()), (1, FilingHealth::Stopped));
        assert!(store.damage().is_some_and(|what| what.contains("has ended")), "{store:?}");
    }

    #[test]
    fn filing_goes_on_after_a_failure_that_passes() {
        let scratch = tempfile::tempdir().unwrap();
        let (_directory, journal, mut store) = open_store(scratch.path());
        let (mut chain, hidden) = (Chain::default(), BTreeMap::new());
        let file = |store: &mut AuditStore| file_some(store, &journal);
        let new = NewAuditEntry::default();
        wait_for_filing(&mut store, &journal, &mut chain, (3, &new));
        file(&mut store);
        assert_eq!((store.pending.unfiled(), store.pending.unsettled()), (0, 3));
        wait_for_filing(&mut store, &journal, &mut chain, (2, &new));
        store.file().unwrap().pragma_update(None, "query_only", true).unwrap();
        file(&mut store);
        assert!(store.damage().is_some_and(|what| what.contains("cannot be filed")), "{store:?}");
        assert!(!store.can_file(&hidden, 1));
        store.resume(&journal);
        assert_eq!((store.damage(), store.health.clone()), (None, FilingHealth::Files));
        assert_eq!((store.pending.unfiled(), store.pending.unsettled()), (5, 0), "all are compared");
        file(&mut store);
        store.finish(&journal, (&hidden, 0), || Ok(())).unwrap();
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
