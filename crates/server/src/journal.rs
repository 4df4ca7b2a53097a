//! The journal of a server, which all of its drivers write: in memory or in a directory, and reopened after a failure.
//!
//! ```text
//!   healthy ──append fails──▶ broken: nothing is decided, published state is still read
//!      ▲                         │
//!      └──reopened, replayed─────┘ with pauses that grow until something is written
//!         and written
//! ```
//!
//! A driver holds the journal that it started with ([`StreamJournal`]). After a failure it cannot write before it gets
//! the reopened journal together with the state that was replayed.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Deref, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::{AuditEntry, Chain, Record, Stream, StreamPosition};
use forewarn_lifecycle::{Now, Seed};
use forewarn_realm::{AuditMode, Batch, OwnerRecord, ServerName, SharedStream, StreamContent};
use forewarn_store::{
    AUDIT_RETENTION, AppendError, Appended, AuditCheck, AuditLogReader, CopyError, InstalledState, Journal,
    Options, Reach, RecentLog, Recovered, StreamState,
};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Mutex, oneshot};

use crate::clock::Clock;
#[cfg(test)]
use crate::driver::SlowDisk;
use crate::long_work::run_long_work;
use crate::realm_log::{CommitError, StreamLog};
use crate::reopening::{Retry, open_and_write, open_copy};
use crate::role::{RealmScope, Role};

/// Records and audit entries that take long to encode.
const MANY_ITEMS_MIN: usize = 256;

/// The journal of a server.
#[derive(Debug)]
pub(crate) struct JournalHandle {
    /// The directory. None if the journal is in memory.
    directory: Option<PathBuf>,
    /// None after a failure.
    journal: Option<Arc<OpenJournal>>,
    retry: Retry,
    /// Retention time of audit entries.
    audit_keep: Duration,
    /// End of the journal when it failed: another or an older journal is rejected.
    reached: Option<Reach>,
    /// The shared stream of the realm, of which the journal is a copy.
    shared: Option<Arc<Mutex<SharedStream>>>,
    /// The journal, for its archive.
    archive: JournalArchive,
    #[cfg(test)]
    slow_disk: SlowDisk,
}

/// The journal as the driver of one stream uses it.
#[derive(Clone, Debug)]
pub(crate) struct StreamJournal {
    stream: Stream,
    is_durable: bool,
    /// None after a failure.
    journal: Option<Arc<OpenJournal>>,
    /// The log of the realm, of which the journal is a copy.
    log: StreamLog,
    #[cfg(test)]
    slow_disk: SlowDisk,
}

/// The audit logs of the journal, for the task that fills in missing entries. It does not keep the journal open.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalArchive(Arc<ArcSwap<Weak<OpenJournal>>>);

impl JournalArchive {
    /// Numbers of entries that are missing, by stream. None while the journal is not open.
    pub(crate) fn missing_entries(&self) -> Option<BTreeMap<Stream, RangeInclusive<u64>>> {
        Some(self.0.load().upgrade()?.missing_entries())
    }

    /// Writes the last entries of a stream that are missing.
    pub(crate) async fn fill(
        &self,
        stream: Stream,
        before: Chain,
        entries: Vec<Arc<AuditEntry>>,
    ) -> Result<Appended, AppendError> {
        let journal = self.0.load().upgrade().ok_or(AppendError::Closed)?;
        let (done, result) = oneshot::channel();
        // Their hashes are computed first.
        run_long_work(move || {
            journal.fill_then(stream, before, &entries, |outcome| drop(done.send(outcome)));
        })
        .await;
        result.await.unwrap_or(Err(AppendError::Closed))
    }
}

/// A journal between its opening and its failure.
#[derive(Debug)]
struct OpenJournal {
    journal: Journal,
    /// The first error that a driver got.
    reported: OnceLock<String>,
    /// A driver has written something since the opening.
    is_used: AtomicBool,
}

impl OpenJournal {
    fn new(journal: Journal) -> Arc<Self> {
        Arc::new(Self { journal, reported: OnceLock::new(), is_used: AtomicBool::new(false) })
    }
}

impl OpenJournal {
    /// The outcome of a write.
    fn written(
        &self,
        outcome: Result<Result<Appended, AppendError>, RecvError>,
    ) -> Result<Appended, AppendError> {
        let appended = outcome.unwrap_or(Err(AppendError::Closed))?;
        self.is_used.store(true, Ordering::Relaxed);
        Ok(appended)
    }
}

impl Deref for OpenJournal {
    type Target = Journal;

    fn deref(&self) -> &Journal {
        &self.journal
    }
}

impl JournalHandle {
    /// In memory, lost with the process.
    pub(crate) fn in_memory() -> Self {
        Self::new(None, Journal::memory())
    }

    pub(crate) fn in_directory(directory: PathBuf, journal: Journal, audit_keep: Duration) -> Self {
        Self { audit_keep, ..Self::new(Some(directory), journal) }
    }

    /// The same, as a copy of the log of a realm.
    pub(crate) fn of_realm(self, shared: SharedStream) -> Self {
        Self { shared: Some(Arc::new(Mutex::new(shared))), ..self }
    }

    /// The audit logs of the journal, also after it was opened again.
    pub(crate) fn archive(&self) -> JournalArchive {
        self.show_archive();
        self.archive.clone()
    }

    fn show_archive(&self) {
        self.archive.0.store(Arc::new(self.journal.as_ref().map(Arc::downgrade).unwrap_or_default()));
    }

    #[cfg(test)]
    pub(crate) fn with_slow_disk(self, slow_disk: SlowDisk) -> Self {
        Self { slow_disk, ..self }
    }

    fn new(directory: Option<PathBuf>, journal: Journal) -> Self {
        Self {
            directory,
            journal: Some(OpenJournal::new(journal)),
            retry: Retry::new(),
            audit_keep: AUDIT_RETENTION,
            reached: None,
            shared: None,
            archive: JournalArchive::default(),
            #[cfg(test)]
            slow_disk: SlowDisk::default(),
        }
    }

    /// The journal for the driver of a stream.
    pub(crate) fn of(&self, stream: Stream) -> StreamJournal {
        StreamJournal {
            stream,
            is_durable: self.directory.is_some(),
            journal: self.journal.clone(),
            log: match (&self.shared, stream) {
                (None, _) => StreamLog::None,
                (Some(shared), Stream::Shared) => StreamLog::Shared(Arc::clone(shared)),
                (Some(_), Stream::Cluster(_)) => StreamLog::Followed,
            },
            #[cfg(test)]
            slow_disk: self.slow_disk.clone(),
        }
    }

    /// Returns true if the journal outlives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.directory.is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.journal.is_none()
    }

    /// The failure that the journal has found, or a driver has reported.
    pub(crate) fn failure(&self) -> Option<String> {
        let journal = self.journal.as_ref()?;
        journal.failure().map(|error| error.to_string()).or_else(|| journal.reported.get().cloned())
    }

    /// Results of the verification of the audit log.
    pub(crate) fn audit_check(&self) -> AuditCheck {
        self.journal.as_ref().map(|journal| journal.audit_check()).unwrap_or_default()
    }

    /// Closes the journal after a failure.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.reached = journal.reach();
            if journal.is_used.load(Ordering::Relaxed) {
                self.retry.reset();
            }
            // The failure is known.
            drop(journal.close());
        }
        self.retry.put_off();
    }

    /// Begins another journal in memory, whose audit log goes on from this one.
    pub(crate) fn restart_in_memory(&mut self, log: RecentLog) {
        self.close();
        self.journal = Some(OpenJournal::new(Journal::memory_with(log)));
    }

    /// A reader of the audit log.
    pub(crate) fn audit_reader(&self) -> AuditLogReader {
        self.journal.as_ref().map_or_else(AuditLogReader::closed, |journal| journal.audit_log_reader())
    }

    pub(crate) fn close(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.close()
        {
            tracing::error!(%error, "cannot close the journal");
        }
    }

    /// Time until the journal is reopened. None if it works, or was in memory.
    pub(crate) fn until_retry(&self) -> Option<Duration> {
        (self.is_broken() && self.directory.is_some()).then(|| self.retry.wait())
    }

    /// Reopens the journal when it is time, and writes to it: a readable journal may not be writable.
    pub(crate) fn reopen(&mut self, identity: Seed, now: Now) -> Option<Recovered> {
        let directory =
            self.directory.as_ref().filter(|_| self.journal.is_none() && self.retry.wait().is_zero())?;
        let (audit_keep, reached) = (self.audit_keep, self.reached);
        let options = Options { audit_retention: audit_keep, reached, ..Options::new(identity, now) };
        let open = if self.shared.is_some() { open_copy } else { open_and_write };
        match open(directory, options) {
            Ok((journal, found)) => {
                self.journal = Some(OpenJournal::new(journal));
                self.show_archive();
                Some(found)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot reopen the journal; retrying");
                self.retry.put_off();
                None
            }
        }
    }
}

impl StreamJournal {
    /// The same journal for another stream.
    pub(crate) fn of(&self, stream: Stream) -> Self {
        let log = match self.scope() {
            RealmScope::Alone => StreamLog::None,
            RealmScope::Realm => StreamLog::Followed,
        };
        Self { stream, log, ..self.clone() }
    }

    /// Returns true if the journal outlives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.journal.is_none()
    }

    /// The failure that the journal has found, perhaps without an append.
    pub(crate) fn failure(&self) -> Option<AppendError> {
        self.journal.as_ref()?.failure()
    }

    /// Reports a failure to the supervisor, and drops the journal.
    pub(crate) fn give_up(&mut self, error: &AppendError) {
        if let Some(journal) = self.journal.take() {
            // Another driver may have reported one.
            drop(journal.reported.set(error.to_string()));
        }
    }

    /// Sets the log of the realm.
    pub(crate) fn set_log(&mut self, log: StreamLog) {
        self.log = log;
    }

    /// Appends records and audit entries, and waits until they are durable. Many of them are encoded on another thread.
    pub(crate) async fn append(
        &self,
        records: &mut Vec<Record>,
        audit: &[Arc<AuditEntry>],
        clock: &Clock,
    ) -> Result<Appended, CommitError> {
        #[cfg(test)]
        self.slow_disk.check()?;
        self.log.commit(records, audit, AuditMode::Append, clock).await?;
        Ok(self.append_here(records, audit).await?)
    }

    /// Writes the clock into the head of the stream in the log of a realm.
    pub(crate) async fn refresh_clock(&self, clock: &Clock) -> Result<(), CommitError> {
        self.log.refresh_clock(clock).await
    }

    /// The part of this server in the stream.
    pub(crate) fn role(&self) -> Role {
        match self.log {
            StreamLog::None | StreamLog::Owned(_) | StreamLog::Shared(_) => Role::Owner,
            StreamLog::Followed => Role::Follower,
        }
    }

    /// The place of the next batch in the log of a realm, with so many records. None outside of one.
    pub(crate) async fn next_position(&self, records: usize) -> Option<StreamPosition> {
        self.log.next_position(records).await
    }

    /// Gives the stream to another server of the realm.
    pub(crate) async fn hand_over(&self, to: &ServerName, clock: &Clock) -> Result<OwnerRecord, CommitError> {
        self.log.hand_over(to, clock).await
    }

    /// Number of the last batch of the shared stream after which this server would write. None for other streams.
    pub(crate) async fn shared_number(&self) -> Option<u64> {
        self.log.shared_number().await
    }

    /// Everything of the shared stream that the journal lacks.
    pub(crate) async fn missing_content(&self) -> Result<Option<StreamContent>, CommitError> {
        self.log.missing_content().await
    }

    /// The log of the realm.
    pub(crate) fn log(&self) -> &StreamLog {
        &self.log
    }

    /// Replaces everything of the stream by a later state of the log.
    pub(crate) async fn install(&self, state: InstalledState) -> Result<Appended, AppendError> {
        let journal = self.journal.as_ref().ok_or(AppendError::Closed)?;
        let (done, result) = oneshot::channel();
        journal.install_then(self.stream, state, move |outcome| drop(done.send(outcome)));
        journal.written(result.await)
    }

    /// The servers that VMs may poll: others too, if the journal is a copy of the log of a realm.
    pub(crate) fn scope(&self) -> RealmScope {
        match self.log {
            StreamLog::None => RealmScope::Alone,
            StreamLog::Followed | StreamLog::Owned(_) | StreamLog::Shared(_) => RealmScope::Realm,
        }
    }

    /// Copies a batch of the log of the realm.
    pub(crate) async fn copy_batch(&self, batch: &Batch) -> Result<Appended, AppendError> {
        match batch.mode {
            AuditMode::Append => self.append_here(&mut batch.records.clone(), &batch.entries).await,
            AuditMode::Rewrite => self.rewrite_here(&batch.records, &batch.entries).await,
        }
    }

    async fn append_here(
        &self,
        records: &mut Vec<Record>,
        audit: &[Arc<AuditEntry>],
    ) -> Result<Appended, AppendError> {
        let journal = self.journal.as_ref().ok_or(AppendError::Closed)?;
        let (done, result) = oneshot::channel();
        // The driver waits for the result below.
        let done = move |outcome| drop(done.send(outcome));
        if records.len() + audit.len() < MANY_ITEMS_MIN {
            journal.append_then(self.stream, records, audit, done);
        } else {
            let (journal, stream) = (Arc::clone(journal), self.stream);
            let (taken, audit) = (std::mem::take(records), audit.to_vec());
            *records = run_long_work(move || {
                journal.append_then(stream, &taken, &audit, done);
                taken
            })
            .await;
        }
        let appended = journal.written(result.await)?;
        #[cfg(test)]
        self.slow_disk.pass(&self.audit_reader());
        Ok(appended)
    }

    /// Appends records, and replaces the last audit entries, which are hidden.
    pub(crate) async fn rewrite(
        &self,
        records: &[Record],
        audit: &[Arc<AuditEntry>],
        clock: &Clock,
    ) -> Result<(), CommitError> {
        self.log.commit(records, audit, AuditMode::Rewrite, clock).await?;
        self.rewrite_here(records, audit).await?;
        Ok(())
    }

    async fn rewrite_here(
        &self,
        records: &[Record],
        audit: &[Arc<AuditEntry>],
    ) -> Result<Appended, AppendError> {
        let journal = self.journal.as_ref().ok_or(AppendError::Closed)?;
        let (done, result) = oneshot::channel();
        journal.rewrite_then(self.stream, records, audit, move |outcome| drop(done.send(outcome)));
        let appended = journal.written(result.await)?;
        #[cfg(test)]
        self.slow_disk.pass(&self.audit_reader());
        Ok(appended)
    }

    /// Hides audit entries of the stream from readers until [`Self::show_all_entries`].
    pub(crate) fn hide_entries_after(&self, number: u64) {
        if let Some(journal) = &self.journal {
            journal.hide_entries_after(self.stream, number);
        }
    }

    pub(crate) fn show_all_entries(&self) {
        if let Some(journal) = &self.journal {
            journal.show_all_entries(self.stream);
        }
        #[cfg(test)]
        self.slow_disk.pass_at_publication();
    }

    /// A reader of the audit log.
    #[cfg(test)]
    fn audit_reader(&self) -> AuditLogReader {
        self.journal.as_ref().map_or_else(AuditLogReader::closed, |journal| journal.audit_log_reader())
    }

    pub(crate) fn fold_if_wanted(&self, state: impl FnOnce() -> StreamState) {
        if let Some(journal) = self.journal.as_ref().filter(|journal| journal.wants_fold(self.stream)) {
            journal.fold(self.stream, state());
        }
    }

    /// Deletes everything of the stream except its audit entries.
    pub(crate) fn forget(&self) {
        if let Some(journal) = &self.journal {
            journal.forget(self.stream);
        }
    }

    pub(crate) fn copy(&self, to: &Path, reply: oneshot::Sender<Result<(), CopyError>>) {
        match &self.journal {
            // The caller may have gone; the copy exists all the same.
            Some(journal) => journal.copy_then(to, move |copied| drop(reply.send(copied))),
            None => drop(reply.send(Err(CopyError::Closed))),
        }
    }
}
