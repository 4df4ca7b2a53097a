//! The journal: decided changes, each with its time, in the order of their decision.
//!
//! The owner of a cluster appends a batch, and only then publishes, responds and acts. A failed append has no effect:
//! the owner drops its state and the journal, opens it again, and continues from the recovered state.
//!
//! ```text
//!   append ──▶ committer (one thread, one connection) ──▶ journal.db-wal ──▶ journal.db
//!                    │ many batches, one commit, one sync
//!                    └──▶ done: durable
//! ```
//!
//! So that opening does not replay the whole history, the owner folds its state from time to time ([`Journal::fold`]);
//! the state then replaces all records before it. The audit log is written with the records ([`AuditLogReader`]);
//! nothing is derived from it.

mod audit_log;
mod audit_log_reader;
mod codec;
mod committer;
mod committer_request;
mod copy;
mod creation;
mod database;
mod embedded;
mod error;
mod files;
mod fold;
mod log_check;
mod loss;
mod options;
mod reach;
mod recover;
mod transfer;
mod upgrade;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forewarn_control::{AuditEntry, ControlState, Record};

use audit_log::RecentEntries;

pub use audit_log::{
    AUDIT_RETENTION, AuditBatch, AuditQuery, Direction, PAGE_ENTRIES_MAX, RECENT_ENTRIES_MAX, ReadError,
    SUBJECTS_PER_QUERY_MAX,
};
pub use audit_log_reader::AuditLogReader;
pub use codec::{Malformed, record_from_content, record_from_stored, record_to_stored};
pub use database::SyncMode;
pub use embedded::Embedded;
pub use error::{AppendError, CopyError, OpenError};
pub use loss::{AcceptedLoss, accept_loss};
pub use options::{FOLD_AFTER, IfMissing, LOG_BYTES, Options};
pub use reach::Reach;
pub use recover::Recovered;
pub use transfer::{CheckReport, check, export, import};

/// A journal of records and audit entries.
#[derive(Debug)]
pub enum Journal {
    /// In memory, for the lifetime of the process.
    Memory(InMemory),
    Embedded(Embedded),
}

/// A journal that stores no records, and only the newest audit entries.
#[derive(Debug, Default)]
pub struct InMemory {
    /// Number of appended records.
    length: u64,
    recent: Arc<Mutex<RecentEntries>>,
}

impl InMemory {
    fn append(&mut self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        self.recent().keep(entries)?;
        self.length += records.len() as u64;
        Ok(())
    }

    fn rewrite(&mut self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        self.recent().rewrite(entries)?;
        self.length += records.len() as u64;
        Ok(())
    }

    fn recent(&self) -> MutexGuard<'_, RecentEntries> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// A journal in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(InMemory::default())
    }

    /// Opens the journal of a directory, or creates one, and replays it.
    ///
    /// # Errors
    /// Fails if it is in use, of a later format, damaged, or cannot be read or written. See [`OpenError`].
    pub fn open(directory: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let (embedded, recovered) = Embedded::open(directory, options)?;
        Ok((Self::Embedded(embedded), recovered))
    }

    /// Appends records and their audit entries, all or none, and waits until they are as durable as this journal can
    /// make them. Entries continue the chain of [`Recovered::audit_chain`].
    ///
    /// # Errors
    /// Fails if they could not be written. The journal accepts nothing more then.
    pub fn append(&mut self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        match self {
            Self::Memory(memory) => memory.append(records, entries),
            Self::Embedded(embedded) => embedded.append(records, entries),
        }
    }

    /// Appends without waiting: `done` is called with the outcome, perhaps on another thread. Appends that arrive
    /// meanwhile are committed together.
    pub fn append_then(
        &mut self,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        done: impl FnOnce(Result<(), AppendError>) + Send + 'static,
    ) {
        match self {
            Self::Memory(memory) => done(memory.append(records, entries)),
            Self::Embedded(embedded) => embedded.append_then(records, entries, Box::new(done)),
        }
    }

    /// Appends records, and replaces the last audit entries by as many others, which differ in text and notices only.
    /// No reader has seen those ([`Self::hide_entries_after`]). All or none; waits like [`Self::append`].
    ///
    /// # Errors
    /// Fails if they could not be written, or the entries have other subjects. The journal accepts nothing more then.
    pub fn rewrite(&mut self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        match self {
            Self::Memory(memory) => memory.rewrite(records, entries),
            Self::Embedded(embedded) => embedded.rewrite(records, entries),
        }
    }

    /// Hides entries with a greater number from readers, durable or not.
    pub fn hide_entries_after(&self, number: u64) {
        self.show_entries_to(number);
    }

    /// Makes every durable entry visible to readers.
    pub fn show_all_entries(&self) {
        self.show_entries_to(u64::MAX);
    }

    fn show_entries_to(&self, number: u64) {
        match self {
            Self::Memory(memory) => memory.recent().show_to(number),
            Self::Embedded(embedded) => embedded.show_entries_to(number),
        }
    }

    /// A reader of the audit log, for use while others append. It does not keep the journal open.
    #[must_use]
    pub fn audit_log_reader(&self) -> AuditLogReader {
        match self {
            Self::Memory(memory) => AuditLogReader::of_memory(&memory.recent),
            Self::Embedded(embedded) => embedded.audit_log_reader(),
        }
    }

    /// Returns true if there are enough records for [`Self::fold`].
    #[must_use]
    pub fn wants_fold(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Embedded(embedded) => embedded.wants_fold(),
        }
    }

    /// Replaces all records before by the state, which must be the result of everything appended so far. It is written
    /// beside later appends, a little with each.
    pub fn fold(&mut self, state: ControlState) {
        match self {
            Self::Memory(_) => {}
            Self::Embedded(embedded) => embedded.fold(state),
        }
    }

    /// Copies everything that is durable, while the journal is in use. `done` is called when the copy is complete, on
    /// another thread.
    pub fn copy_then(&self, to: &Path, done: impl FnOnce(Result<(), CopyError>) + Send + 'static) {
        match self {
            Self::Memory(_) => done(Err(CopyError::Memory)),
            Self::Embedded(embedded) => embedded.copy_then(to, Box::new(done)),
        }
    }

    /// Waits until every append is durable, empties the log, and releases the directory. Dropping a journal does the
    /// same without reporting errors.
    ///
    /// # Errors
    /// Fails if something could not be written.
    pub fn close(self) -> Result<(), AppendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Embedded(embedded) => embedded.close(),
        }
    }

    /// The end of the durable journal: the next opening by this process must find at least that. `None` for a journal
    /// in memory.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        match self {
            Self::Memory(_) => None,
            Self::Embedded(embedded) => Some(embedded.reach()),
        }
    }

    /// The error that prevents writes, also while nothing is appended: the directory may have been removed.
    #[must_use]
    pub fn failure(&self) -> Option<AppendError> {
        match self {
            Self::Memory(_) => None,
            Self::Embedded(embedded) => embedded.failure(),
        }
    }

    /// Number of durable records in the life of the journal.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.length,
            Self::Embedded(embedded) => embedded.length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use forewarn_lifecycle::Now;

    use super::*;

    #[test]
    fn a_journal_counts_what_it_was_given() {
        let mut journal = Journal::memory();
        let record = Record::clock(Now::at_millis(5));
        journal.append(&[record.clone(), record], &[]).unwrap();
        journal.append(&[], &[]).unwrap();
        assert_eq!(journal.length(), 2);
        assert!(!journal.wants_fold());
        journal.close().unwrap();
    }
}
