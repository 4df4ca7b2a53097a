//! The journal: decided changes, each with its time, in the order in which they were decided.
//!
//! Whoever owns a cluster appends a batch, and only then publishes, answers and acts. A failed append means that nothing
//! of the batch counts: the owner drops its state and the journal, opens it again, and goes on from what is found there.
//!
//! ```text
//!   append ──▶ committer (one thread, one connection) ──▶ journal.db-wal ──▶ journal.db
//!                    │ many batches, one commit, one sync
//!                    └──▶ done: durable
//! ```
//!
//! So that opening does not replay all of history, the owner gives its state away from time to time ([`Journal::fold`]); it
//! then stands for all records before it. With the records goes the trail, which tells people what was asked for and what has
//! happened ([`TrailReader`]); nothing is derived from it.

mod codec;
mod committer;
mod copy;
mod creation;
mod database;
mod embedded;
mod error;
mod files;
mod fold;
mod log;
mod loss;
mod options;
mod order;
mod reach;
mod recover;
mod trail;
mod trail_reader;
mod transfer;
mod upgrade;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forewarn_control::{AuditEntry, ControlState, Record};

use trail::Recent;

pub use codec::{Malformed, record_from_content, record_from_stored, record_to_stored};
pub use database::Syncs;
pub use embedded::Embedded;
pub use error::{AppendFailed, CopyError, OpenError};
pub use loss::{AcceptedLoss, accept_loss};
pub use options::{FOLD_AFTER, LOG_BYTES, Missing, Options};
pub use reach::Reach;
pub use recover::Recovered;
pub use trail::{
    AuditBatch, AuditQuery, Direction, PAGE_ENTRIES_MAX, RECENT_ENTRIES_MAX, ReadFailed,
    SUBJECTS_PER_QUERY_MAX, TRAIL_KEEP,
};
pub use trail_reader::TrailReader;
pub use transfer::{Checked, check, export, import};

/// Where records are kept.
#[derive(Debug)]
pub enum Journal {
    /// In memory, for as long as the process lives.
    Memory(InMemory),
    /// In a directory, for ever.
    Embedded(Embedded),
}

/// A journal that keeps no records, and of the trail the newest entries.
#[derive(Debug, Default)]
pub struct InMemory {
    /// How many records have been appended.
    length: u64,
    trail: Arc<Mutex<Recent>>,
}

impl InMemory {
    fn append(&mut self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        self.recent().keep(trail)?;
        self.length += records.len() as u64;
        Ok(())
    }

    fn rewrite(&mut self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        self.recent().rewrite(trail)?;
        self.length += records.len() as u64;
        Ok(())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// A journal that lives as long as the process.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(InMemory::default())
    }

    /// Opens the journal of a directory, or makes one, and replays it.
    ///
    /// # Errors
    /// When it is another's, of a later format, damaged, or cannot be read or written. See [`OpenError`].
    pub fn open(directory: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let (embedded, recovered) = Embedded::open(directory, options)?;
        Ok((Self::Embedded(embedded), recovered))
    }

    /// Appends records and what the trail tells of them, all or none, and waits until they are as durable as this journal can
    /// make them. Entries are chained to [`Recovered::trail`], and each to the one before.
    ///
    /// # Errors
    /// When they could not be written. The journal takes nothing more then.
    pub fn append(&mut self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        match self {
            Self::Memory(memory) => memory.append(records, trail),
            Self::Embedded(embedded) => embedded.append(records, trail),
        }
    }

    /// Appends the same, and does not wait: `done` is called once it is known how it ended, perhaps on another thread.
    /// What is appended meanwhile is committed together.
    pub fn append_then(
        &mut self,
        records: &[Record],
        trail: &[Arc<AuditEntry>],
        done: impl FnOnce(Result<(), AppendFailed>) + Send + 'static,
    ) {
        match self {
            Self::Memory(memory) => done(memory.append(records, trail)),
            Self::Embedded(embedded) => embedded.append_then(records, trail, Box::new(done)),
        }
    }

    /// Appends records, and puts entries in the place of as many of the last ones: they differ in text and notices only. No reader
    /// has seen those ([`Self::hide_trail_after`]). All or none, and waits as [`Self::append`] does.
    ///
    /// # Errors
    /// When they could not be written, or the entries are about something else. The journal takes nothing more then.
    pub fn rewrite(&mut self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        match self {
            Self::Memory(memory) => memory.rewrite(records, trail),
            Self::Embedded(embedded) => embedded.rewrite(records, trail),
        }
    }

    /// Hides entries with a greater number from readers, whether they are durable or not.
    pub fn hide_trail_after(&self, number: u64) {
        self.show_trail_to(number);
    }

    /// Lets readers see every entry that is durable.
    pub fn show_trail(&self) {
        self.show_trail_to(u64::MAX);
    }

    fn show_trail_to(&self, number: u64) {
        match self {
            Self::Memory(memory) => memory.recent().show_to(number),
            Self::Embedded(embedded) => embedded.show_trail_to(number),
        }
    }

    /// Who can read the trail while others append. It does not keep the journal open.
    #[must_use]
    pub fn trail_reader(&self) -> TrailReader {
        match self {
            Self::Memory(memory) => TrailReader::of_memory(&memory.trail),
            Self::Embedded(embedded) => embedded.trail_reader(),
        }
    }

    /// Whether there are so many records that it is time for [`Self::fold`].
    #[must_use]
    pub fn wants_fold(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Embedded(embedded) => embedded.wants_fold(),
        }
    }

    /// Has the state stand for all records before it. It must be what everything appended so far has led to. It is written
    /// beside the appends to come, a little with each.
    pub fn fold(&mut self, state: ControlState) {
        match self {
            Self::Memory(_) => {}
            Self::Embedded(embedded) => embedded.fold(state),
        }
    }

    /// Makes a copy of everything that is durable, while the journal is in use. `done` is called when it is complete, on
    /// another thread.
    pub fn copy_then(&self, to: &Path, done: impl FnOnce(Result<(), CopyError>) + Send + 'static) {
        match self {
            Self::Memory(_) => done(Err(CopyError::Memory)),
            Self::Embedded(embedded) => embedded.copy_then(to, Box::new(done)),
        }
    }

    /// Waits until everything that was appended is durable, tidies up, and lets others have the directory. Dropping a
    /// journal does the same, and says nothing.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn close(self) -> Result<(), AppendFailed> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Embedded(embedded) => embedded.close(),
        }
    }

    /// The end of what is durable: the next opening by this process must find at least that. A journal in memory has none.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        match self {
            Self::Memory(_) => None,
            Self::Embedded(embedded) => Some(embedded.reach()),
        }
    }

    /// The reason why nothing more can be written, also while nothing is appended: the directory may have been removed.
    #[must_use]
    pub fn failure(&self) -> Option<AppendFailed> {
        match self {
            Self::Memory(_) => None,
            Self::Embedded(embedded) => embedded.failure(),
        }
    }

    /// How many records it has been given in all its life and are durable.
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
