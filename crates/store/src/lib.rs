//! The journal: decided changes, each with its time, in the order of their decision.
//!
//! Each stream ([`Stream`]: the shared state, or a cluster) has records, a stored state and an audit log of its own. Its
//! owner appends a batch, and only then publishes, responds and acts. A failed append has no effect: the owners drop
//! their states and the journal, open it again, and continue from the recovered state.
//!
//! ```text
//!   append (stream a) ──┐
//!   append (stream b) ──┼▶ committer (one thread) ──▶ journal.db-wal ──▶ journal.db
//!   append (stream c) ──┘        │ many batches, one commit, one sync      │ audit entries, later
//!                                └──▶ done: durable                        └──▶ audit.db
//! ```
//!
//! So that opening does not replay the whole history, the owner of a stream folds its state from time to time
//! ([`Journal::fold`]); the state then replaces all records before it. Audit entries are written with the records
//! ([`AuditLogReader`]); nothing is derived from them. They move into a file of their own, so that the cost of an
//! opening does not grow with the audit log.

mod audit_check;
mod audit_file;
mod audit_gap;
mod audit_log;
mod audit_log_reader;
mod audit_store;
mod codec;
mod commit;
mod committer;
mod committer_request;
mod committer_status;
mod copy;
mod copy_sync;
mod creation;
mod database;
mod embedded;
mod entry_run;
mod error;
mod filer;
mod files;
mod fold;
mod heading;
mod lock;
mod log_check;
mod loss;
mod old_journal;
mod options;
mod pending;
mod reach;
mod realm_mark;
mod recent_log;
mod recover;
mod saved_state;
mod set_aside;
mod stream_content;
mod stream_key;
mod transfer;
mod upgrade;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use forewarn_control::{AuditEntry, Chain, Record, Stream};

use audit_log::RecentEntries;
use committer_request::{AuditWrite, check_stream};

pub use audit_check::AuditCheck;
pub use audit_log::{
    AUDIT_RETENTION, AuditBatch, AuditQuery, BadLog, Direction, LoggedEntry, PAGE_ENTRIES_MAX,
    RECENT_ENTRIES_MAX, ReadError, SUBJECTS_PER_QUERY_MAX,
};
pub use audit_log_reader::AuditLogReader;
pub use codec::{Malformed, record_from_content, record_from_stored, record_to_stored};
pub use committer_request::{Appended, InstalledState, StreamState};
pub use database::SyncMode;
pub use embedded::Embedded;
pub use error::{AppendError, CopyError, OpenError};
pub use loss::{AcceptedLoss, LossKind, accept_loss};
pub use options::{FILE_AFTER, FOLD_AFTER, IfMissing, LOG_BYTES, Options, UnreadEntries};
pub use reach::Reach;
pub use realm_mark::{InstanceId, RealmMark, RealmStage};
pub use recent_log::RecentLog;
pub use recover::Recovered;
pub use saved_state::{SavedStateError, export_state, read_state};
pub use set_aside::{copies_set_aside, is_being_set_aside, set_copy_aside};
pub use stream_content::{BatchContent, STATE_CHUNK_BYTES_MAX, StateChunks, StateError, StateReader};
pub use transfer::{CheckReport, CopyReport, check, check_copy, export, import, replace_copied_state};

/// A journal of records and audit entries. Its streams are written independently of each other.
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
    length: AtomicU64,
    recent: Arc<Mutex<RecentEntries>>,
}

impl InMemory {
    fn append(
        &self,
        stream: Stream,
        (records, entries): (&[Record], &[Arc<AuditEntry>]),
        mode: AuditWrite,
    ) -> Result<Appended, AppendError> {
        check_stream(stream, records, entries)?;
        let mut recent = self.recent();
        let first_position = match mode {
            AuditWrite::Append => recent.keep(stream, entries)?,
            AuditWrite::Rewrite => recent.rewrite(stream, entries)?,
        };
        self.length.fetch_add(records.len() as u64, Ordering::Relaxed);
        Ok(Appended { first_position })
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

    /// A journal in memory whose audit log goes on from another one.
    #[must_use]
    pub fn memory_with(log: RecentLog) -> Self {
        let recent = Arc::new(Mutex::new(log.into_entries()));
        Self::Memory(InMemory { length: AtomicU64::default(), recent })
    }

    /// The audit log of a journal in memory, as it is now. `None` for a journal in a directory.
    #[must_use]
    pub fn recent_log(&self) -> Option<RecentLog> {
        self.audit_log_reader().recent_log()
    }

    /// Opens the journal of a directory, or creates one, and replays it.
    ///
    /// # Errors
    /// Fails if it is in use, of a later format, damaged, or cannot be read or written. See [`OpenError`].
    pub fn open(directory: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let (embedded, recovered) = Embedded::open(directory, options)?;
        Ok((Self::Embedded(embedded), recovered))
    }

    /// Appends records of a stream and their audit entries, all or none, and waits until they are as durable as this
    /// journal can make them. Entries continue the chain of the stream in [`Recovered::audit_ends`].
    ///
    /// # Errors
    /// Fails if they could not be written. The journal accepts nothing more then, except after
    /// [`AppendError::TooLarge`] and [`AppendError::OtherStream`].
    pub fn append(
        &self,
        stream: Stream,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
    ) -> Result<Appended, AppendError> {
        match self {
            Self::Memory(memory) => memory.append(stream, (records, entries), AuditWrite::Append),
            Self::Embedded(embedded) => embedded.append(stream, (records, entries), AuditWrite::Append),
        }
    }

    /// Appends without waiting: `done` is called once with the outcome, perhaps on another thread, which it must not
    /// block. Appends that arrive meanwhile, of any stream, are committed together; those of one stream in their order.
    pub fn append_then(
        &self,
        stream: Stream,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        self.write_then(stream, (records, entries), AuditWrite::Append, done);
    }

    /// Appends records of a stream, and replaces its last audit entries by as many others, which differ in text and
    /// notices only. No reader has seen those ([`Self::hide_entries_after`]). All or none; waits like [`Self::append`].
    ///
    /// # Errors
    /// Fails if they could not be written, or the entries have other subjects. The journal accepts nothing more then.
    pub fn rewrite(
        &self,
        stream: Stream,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
    ) -> Result<Appended, AppendError> {
        match self {
            Self::Memory(memory) => memory.append(stream, (records, entries), AuditWrite::Rewrite),
            Self::Embedded(embedded) => embedded.append(stream, (records, entries), AuditWrite::Rewrite),
        }
    }

    /// Rewrites without waiting, as [`Self::append_then`] appends.
    pub fn rewrite_then(
        &self,
        stream: Stream,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        self.write_then(stream, (records, entries), AuditWrite::Rewrite, done);
    }

    fn write_then(
        &self,
        stream: Stream,
        content: (&[Record], &[Arc<AuditEntry>]),
        mode: AuditWrite,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        match self {
            Self::Memory(memory) => done(memory.append(stream, content, mode)),
            Self::Embedded(embedded) => embedded.append_then(stream, content, mode, Box::new(done)),
        }
    }

    /// Replaces everything of a stream by a state that another journal has, at a later place of the stream, all or
    /// nothing. Audit entries in between are missing from then on ([`Self::missing_entries`]); later ones are appended.
    /// `done` is called like that of [`Self::append_then`].
    pub fn install_then(
        &self,
        stream: Stream,
        state: InstalledState,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        match self {
            Self::Memory(_) => done(Err(AppendError::Memory)),
            Self::Embedded(embedded) => embedded.install_then(stream, state, Box::new(done)),
        }
    }

    /// Installs a state, and waits until it is durable.
    ///
    /// # Errors
    /// Fails if it could not be written, or is not later than the journal.
    pub fn install(&self, stream: Stream, state: InstalledState) -> Result<Appended, AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.install_then(stream, state, move |outcome| drop(sender.send(outcome)));
        receiver.recv().unwrap_or(Err(AppendError::Closed))
    }

    /// Writes audit entries that are missing: the last ones of their stream, in their order, after the entry `before`.
    /// Their hashes lead to one that is known, or nothing is written. `done` is called like that of
    /// [`Self::append_then`].
    pub fn fill_then(
        &self,
        stream: Stream,
        before: Chain,
        entries: &[Arc<AuditEntry>],
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        match self {
            Self::Memory(_) => done(Err(AppendError::Memory)),
            Self::Embedded(embedded) => embedded.fill_then(stream, before, entries, Box::new(done)),
        }
    }

    /// Writes audit entries that are missing, and waits until they are durable.
    ///
    /// # Errors
    /// Fails if they could not be written, or are not the last ones that are missing.
    pub fn fill(
        &self,
        stream: Stream,
        before: Chain,
        entries: &[Arc<AuditEntry>],
    ) -> Result<Appended, AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.fill_then(stream, before, entries, move |outcome| drop(sender.send(outcome)));
        receiver.recv().unwrap_or(Err(AppendError::Closed))
    }

    /// Numbers of audit entries that are missing because a state was installed, by stream: the newest of each.
    #[must_use]
    pub fn missing_entries(&self) -> BTreeMap<Stream, RangeInclusive<u64>> {
        match self {
            Self::Memory(_) => BTreeMap::new(),
            Self::Embedded(embedded) => embedded.missing_entries(),
        }
    }

    /// Hides entries of a stream with a greater number from readers, durable or not. A reader of all streams sees nothing
    /// from the first hidden position on, so that it misses no entry that appears later; a reader of another stream
    /// sees that stream as it is.
    pub fn hide_entries_after(&self, stream: Stream, number: u64) {
        match self {
            Self::Memory(memory) => memory.recent().hide_after(stream, number),
            Self::Embedded(embedded) => embedded.hide_entries_after(stream, number),
        }
    }

    /// Makes every durable entry of a stream visible to readers.
    pub fn show_all_entries(&self, stream: Stream) {
        match self {
            Self::Memory(memory) => memory.recent().show_all(stream),
            Self::Embedded(embedded) => embedded.show_all_entries(stream),
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

    /// Returns true if a stream has enough records for [`Self::fold`].
    #[must_use]
    pub fn wants_fold(&self, stream: Stream) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Embedded(embedded) => embedded.wants_fold(stream),
        }
    }

    /// Replaces all records of a stream by the state, which must be the result of everything that was appended to the
    /// stream so far. It is written beside later appends of any stream, a little with each.
    pub fn fold(&self, stream: Stream, state: StreamState) {
        match self {
            Self::Memory(_) => {}
            Self::Embedded(embedded) => embedded.fold(stream, state),
        }
    }

    /// Removes the records and the stored state of a cluster that no longer exists, a few with each later commit. Its
    /// audit entries stay until their retention ends, and are all visible. Nothing is appended to the stream afterwards.
    pub fn forget(&self, stream: Stream) {
        match self {
            Self::Memory(memory) => memory.recent().show_all(stream),
            Self::Embedded(embedded) => embedded.forget(stream),
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

    /// Waits until every earlier append is durable, empties the log, and releases the directory. Dropping a journal does
    /// the same without reporting errors. Later requests get [`AppendError::Closed`].
    ///
    /// # Errors
    /// Fails if something could not be written.
    pub fn close(&self) -> Result<(), AppendError> {
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

    /// Results of the verification of the audit log since the journal was opened.
    #[must_use]
    pub fn audit_check(&self) -> AuditCheck {
        match self {
            Self::Memory(_) => AuditCheck::default(),
            Self::Embedded(embedded) => embedded.audit_check(),
        }
    }

    /// Number of durable records in the life of the journal, of all streams.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.length.load(Ordering::Relaxed),
            Self::Embedded(embedded) => embedded.length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::ClusterId;
    use forewarn_lifecycle::Now;

    use super::*;

    #[test]
    fn a_journal_counts_what_it_was_given() {
        let journal = Journal::memory();
        let record = Record::clock(Now::at_millis(5));
        journal.append(Stream::Shared, &[record.clone(), record.clone()], &[]).unwrap();
        journal.append(Stream::Shared, &[], &[]).unwrap();
        let cluster = Stream::Cluster(ClusterId::DEFAULT);
        assert_eq!(journal.append(cluster, &[record], &[]), Err(AppendError::OtherStream));
        assert_eq!(journal.length(), 2);
        assert!(!journal.wants_fold(Stream::Shared));
        journal.close().unwrap();
    }
}
