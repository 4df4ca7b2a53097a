//! The journal of a driver: in memory or in a directory, and reopened after a failure.
//!
//! ```text
//!   healthy ──append fails──▶ broken: nothing is decided, published state is still read
//!      ▲                         │
//!      └──reopened, replayed─────┘ with growing pauses
//!         and written
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::{AuditEntry, ControlState, Record};
use forewarn_lifecycle::{Now, Seed};
use forewarn_store::{
    AUDIT_RETENTION, AppendError, AuditLogReader, CopyError, IfMissing, Journal, Options, Reach, Recovered,
};
use tokio::sync::oneshot;

#[cfg(test)]
use crate::driver::SlowDisk;

/// First and longest pause before the journal is reopened.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The journal of a driver.
#[derive(Debug)]
pub(crate) struct JournalHandle {
    /// The directory. None if the journal is in memory.
    directory: Option<PathBuf>,
    /// None after a failure.
    journal: Option<Journal>,
    retry: Retry,
    /// Retention time of audit entries.
    audit_keep: Duration,
    /// End of the journal when it failed: another or an older journal is rejected.
    reached: Option<Reach>,
    #[cfg(test)]
    slow_disk: SlowDisk,
}

#[derive(Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl JournalHandle {
    /// In memory, lost with the process.
    pub(crate) fn in_memory() -> Self {
        Self::new(None, Journal::memory())
    }

    pub(crate) fn in_directory(directory: PathBuf, journal: Journal, audit_keep: Duration) -> Self {
        Self { audit_keep, ..Self::new(Some(directory), journal) }
    }

    #[cfg(test)]
    pub(crate) fn with_slow_disk(self, slow_disk: SlowDisk) -> Self {
        Self { slow_disk, ..self }
    }

    fn new(directory: Option<PathBuf>, journal: Journal) -> Self {
        let retry = Retry { at: Instant::now(), pause: PAUSE_MIN };
        Self {
            directory,
            journal: Some(journal),
            retry,
            audit_keep: AUDIT_RETENTION,
            reached: None,
            #[cfg(test)]
            slow_disk: SlowDisk::default(),
        }
    }

    /// Returns true if the journal outlives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.directory.is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.journal.is_none()
    }

    /// The failure that the journal found by itself, without an append.
    pub(crate) fn failure(&self) -> Option<AppendError> {
        self.journal.as_ref()?.failure()
    }

    /// Drops the journal after a failure.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.reached = journal.reach();
        }
    }

    pub(crate) fn append(
        &mut self,
        records: &[Record],
        audit: &[Arc<AuditEntry>],
    ) -> Result<(), AppendError> {
        #[cfg(test)]
        self.slow_disk.check()?;
        match &mut self.journal {
            _ if records.is_empty() && audit.is_empty() => return Ok(()),
            Some(journal) => journal.append(records, audit)?,
            None => return Err(AppendError::Closed),
        }
        #[cfg(test)]
        self.slow_disk.pass(&self.audit_reader());
        Ok(())
    }

    /// Appends records, and replaces the last audit entries, which are hidden.
    pub(crate) fn rewrite(
        &mut self,
        records: &[Record],
        audit: &[Arc<AuditEntry>],
    ) -> Result<(), AppendError> {
        let journal = self.journal.as_mut().ok_or(AppendError::Closed)?;
        journal.rewrite(records, audit)?;
        #[cfg(test)]
        self.slow_disk.pass(&self.audit_reader());
        Ok(())
    }

    /// Hides audit entries from readers until [`Self::show_all_entries`].
    pub(crate) fn hide_entries_after(&self, number: u64) {
        if let Some(journal) = &self.journal {
            journal.hide_entries_after(number);
        }
    }

    pub(crate) fn show_all_entries(&self) {
        if let Some(journal) = &self.journal {
            journal.show_all_entries();
        }
        #[cfg(test)]
        self.slow_disk.pass_at_publication();
    }

    /// A reader of the audit log.
    pub(crate) fn audit_reader(&self) -> AuditLogReader {
        self.journal.as_ref().map_or_else(AuditLogReader::closed, Journal::audit_log_reader)
    }

    pub(crate) fn fold_if_wanted(&mut self, state: &ControlState) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| journal.wants_fold()) {
            journal.fold(state.clone());
        }
    }

    pub(crate) fn copy(&self, to: &Path, reply: oneshot::Sender<Result<(), CopyError>>) {
        match &self.journal {
            // The caller may have gone; the copy exists all the same.
            Some(journal) => journal.copy_then(to, move |copied| drop(reply.send(copied))),
            None => drop(reply.send(Err(CopyError::Closed))),
        }
    }

    pub(crate) fn close(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.close()
        {
            tracing::error!(%error, "cannot close the journal");
        }
    }

    /// Time until the journal is reopened. None if it works.
    pub(crate) fn until_retry(&self) -> Option<Duration> {
        self.is_broken().then(|| self.retry.at.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn wait(&mut self) {
        self.retry.at = Instant::now() + self.retry.pause;
        self.retry.pause = (self.retry.pause * 2).min(PAUSE_MAX);
    }

    /// Reopens the journal when it is time, and writes to it: a readable journal may not be writable.
    pub(crate) fn reopen(&mut self, identity: Seed, now: Now) -> Option<Recovered> {
        let directory =
            self.directory.as_ref().filter(|_| self.journal.is_none() && self.retry.at <= Instant::now())?;
        let (audit_keep, reached) = (self.audit_keep, self.reached);
        let options = Options { audit_retention: audit_keep, reached, ..Options::new(identity, now) };
        match open_and_write(directory, options) {
            Ok((journal, found)) => {
                self.journal = Some(journal);
                self.retry.pause = PAUSE_MIN;
                Some(found)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot reopen the journal; retrying");
                self.wait();
                None
            }
        }
    }
}

/// Opens a failed journal and records the clocks, which may be later than any record.
fn open_and_write(
    directory: &Path,
    options: Options,
) -> Result<(Journal, Recovered), Box<dyn std::error::Error>> {
    // A missing disk is not an empty one.
    let options = Options { missing: IfMissing::Refuse, ..options };
    let (mut journal, found) = Journal::open(directory, &options)?;
    let mut records = vec![Record::clock(options.now)];
    records.extend(Record::unread(options.now, &found.unread));
    journal.append(&records, &[])?;
    Ok((journal, found))
}
