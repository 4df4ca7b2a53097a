//! Commits: one transaction with the writes of many streams.

mod audit;
mod install;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction};

use crate::audit_check::BackgroundCheck;
use crate::audit_log::AuditSweeper;
use crate::audit_store::AuditStore;
use crate::committer_request::{Append, AppendReply, Appended, PendingWrite};
use crate::committer_status::CommitterStatus;
use crate::database::{
    LogAfterCheckpoint, checkpoint, keep_log_on_close, remove_records_after, write_record,
};
use crate::error::AppendError;
use crate::files::NamedFiles;
use crate::fold::{FoldQueue, Folding};
use crate::heading::{Headings, StreamHeading};
use crate::lock::lock;
use crate::options::Options;
use crate::pending::{remove_entries, write_run_entry};
use crate::reach::{Reach, ReachFile};
use crate::stream_key::StreamKey;

pub(crate) use audit::FilingNeed;

/// Interval between two checks of the files.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that a commit adds to its content: the pages around it.
const COMMIT_BYTES: u64 = 3 * 4_096;

/// The same for each stream of the commit.
const STREAM_COMMIT_BYTES: u64 = 4_096;

/// Audit entries that a commit removes from the journal, in addition to twice as many as it writes.
const ENTRIES_REMOVED_PER_COMMIT: u64 = 256;

/// State of the committer: after a failure nothing is written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Failed(AppendError),
}

/// Everything that a commit changes.
pub(crate) struct CommitState {
    headings: Headings,
    audit: AuditStore,
    /// Streams that no longer have records. Their headings go with their last audit entry.
    forgotten: BTreeSet<StreamKey>,
    /// The one that the last commit has looked at.
    looked_at: Option<StreamKey>,
    sweeper: AuditSweeper,
    check: BackgroundCheck,
    folds: FoldQueue,
    options: Options,
    /// Approximate size of the write-ahead log.
    log_bytes: u64,
    /// Position of the last audit entry that was swept before the last checkpoint. A journal that loses its log still
    /// needs the later ones: without them it could not verify, nor sweep, the rest.
    swept_for_good: u64,
    status: Arc<CommitterStatus>,
    health: Health,
    reach: ReachFile,
    files: NamedFiles,
    /// Time of the last check of the files.
    files_checked: Instant,
}

impl CommitState {
    /// `unknown` are the streams that no cluster has any more.
    pub(crate) fn new(
        (headings, audit): (Headings, AuditStore),
        unknown: &[StreamKey],
        (reach, files): (ReachFile, NamedFiles),
        options: &Options,
    ) -> Self {
        let status = Arc::new(CommitterStatus::new(&headings.journal));
        let mut folds = FoldQueue::default();
        headings.streams().for_each(|(key, _)| folds.sweep_later(key));
        if let Some(damage) = audit.damage() {
            let mut found = lock(&status.audit_check);
            (found.damages, found.last_damage) = (1, Some(damage.to_owned()));
        }
        let mut state = Self {
            // An opening ends with a checkpoint.
            swept_for_good: headings.journal.audit_swept.number,
            headings,
            audit,
            forgotten: BTreeSet::new(),
            looked_at: None,
            sweeper: AuditSweeper::new(options.audit_retention),
            check: BackgroundCheck::new(),
            folds,
            options: *options,
            log_bytes: 0,
            status,
            health: Health::Well,
            reach,
            files,
            files_checked: Instant::now(),
        };
        unknown.iter().for_each(|stream| state.forget(*stream));
        let streams: Vec<_> = state.headings.streams().map(|(key, _)| key).collect();
        state.publish_status(streams);
        state.publish_gaps();
        state
    }

    pub(crate) fn status(&self) -> &Arc<CommitterStatus> {
        &self.status
    }

    pub(crate) fn is_well(&self) -> bool {
        self.health == Health::Well
    }

    pub(crate) fn outcome(&self) -> Result<(), AppendError> {
        match &self.health {
            Health::Well => Ok(()),
            Health::Failed(error) => Err(error.clone()),
        }
    }

    /// Commits all writes and a slice of a large append, and calls the callbacks of the writes.
    pub(crate) fn commit(
        &mut self,
        connection: &Connection,
        batch: Vec<PendingWrite>,
        large: Option<&mut Append>,
    ) {
        if batch.is_empty() && large.is_none() {
            return;
        }
        let streams: BTreeSet<_> = batch.iter().map(PendingWrite::stream).collect();
        let mut replies = Vec::new();
        if self.is_well() {
            match self.write(connection, (batch, large), &mut replies) {
                Ok(Written::Something) => self.record_reach(connection),
                Ok(Written::Nothing) => {}
                Err(error) => self.fail(error),
            }
        } else {
            replies.extend(rejected(batch, &AppendError::Closed));
        }
        if self.is_well() {
            self.publish_status(streams);
        }
        let outcome = self.outcome();
        for (reply, appended) in replies {
            reply.send(outcome.clone().and(appended));
        }
        if self.is_well() && self.log_bytes > self.options.log_bytes {
            self.checkpoint(connection, LogAfterCheckpoint::Reused);
        }
    }

    /// Writes a batch in one transaction. All replies are in the list afterwards, also after a failure. An append that
    /// does not continue the audit log of its stream is rejected, and the others are written.
    fn write(
        &mut self,
        connection: &Connection,
        (batch, large): (Vec<PendingWrite>, Option<&mut Append>),
        replies: &mut Vec<AppendResult>,
    ) -> Result<Written, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let transaction = match connection.unchecked_transaction() {
            Ok(transaction) => transaction,
            Err(error) => {
                replies.extend(rejected(batch, &AppendError::Closed));
                return Err(failed(error));
            }
        };
        let mut content = CommitContent::default();
        let mut batch = batch.into_iter();
        while let Some(write) = batch.next() {
            match write {
                PendingWrite::Append(mut append) => {
                    match self.write_append(&transaction, &mut append, &mut content) {
                        Ok(appended) => replies.push((append.reply, Ok(appended))),
                        Err(error) if error.is_of_the_append() => {
                            let discarded = discard_slices(&transaction, &self.headings, &append);
                            content.written = content.written.max(discarded.map_err(failed)?);
                            replies.push((append.reply, Err(error)));
                        }
                        Err(error) => {
                            replies.push((append.reply, Err(AppendError::Closed)));
                            replies.extend(rejected(batch.collect(), &AppendError::Closed));
                            return Err(error);
                        }
                    }
                }
                PendingWrite::Fold { stream, state } => {
                    let heading = self.headings.get_mut(stream);
                    self.folds.begin(Folding::begin(stream, heading, state));
                }
                PendingWrite::Forget { stream } => {
                    content.written = Written::Something;
                    self.forget(stream);
                }
                PendingWrite::Install(mut install) => {
                    let installed = self.install(&transaction, &mut install, &mut content);
                    answer(install.reply, installed, &mut batch, replies)?;
                }
                PendingWrite::Fill(mut filling) => {
                    let filled = self.fill(&transaction, &mut filling, &mut content);
                    answer(filling.reply, filled, &mut batch, replies)?;
                }
            }
        }
        if let Some(append) = large {
            content.written = Written::Something;
            self.write_slice(&transaction, append, &mut content).map_err(failed)?;
        }
        if content.written == Written::Something {
            self.finish_transaction(&transaction, &content).map_err(failed)?;
            transaction.commit().map_err(failed)?;
        }
        Ok(content.written)
    }

    /// Writes some records or entries of a large append. They count once all of it is there.
    fn write_slice(
        &mut self,
        transaction: &Transaction<'_>,
        append: &mut Append,
        content: &mut CommitContent,
    ) -> rusqlite::Result<()> {
        let last = self.headings.get(append.stream).map_or(0, |heading| heading.last);
        let before = last + append.staged as u64;
        let (records, entries) = (append.next_slice(), append.next_entries());
        for (number, content) in (before + 1..).zip(records) {
            write_record(transaction, append.stream, number, content)?;
            self.log_bytes += content.len() as u64;
        }
        if !entries.is_empty() {
            let run = append.run.unwrap_or_else(|| self.audit.pending_mut().new_id());
            for (entry, line) in entries {
                write_run_entry(transaction, (run, entry.number), line)?;
                self.log_bytes += line.len() as u64;
            }
            append.run = Some(run);
        }
        let (records, entries) = (append.next_slice().len(), append.next_entries().len());
        // They are not needed any more; dropping all of them at the end takes long.
        append.records[append.staged..][..records].fill(Vec::new());
        let written = &mut append.entries[append.staged_entries..][..entries];
        written.iter_mut().for_each(|(_, line)| *line = String::new());
        append.staged += records;
        append.staged_entries += entries;
        content.records += records as u64;
        content.entries += entries;
        Ok(())
    }

    /// Writes the records and entries of one append, except those that are written. Nothing is written if the entries do
    /// not continue the audit log.
    fn write_append(
        &mut self,
        transaction: &Transaction<'_>,
        append: &mut Append,
        content: &mut CommitContent,
    ) -> Result<Appended, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let end = self.headings.journal.audit_end.number;
        if append.is_empty() {
            return Ok(Appended { first_position: end + 1 });
        }
        let positions = self.check_entries(transaction, append)?;
        let Append { stream, records, staged, entries, staged_entries, clock, .. } = append;
        content.written = Written::Something;
        content.records += (records.len() - *staged) as u64;
        content.entries += entries.len() - *staged_entries;
        clock.iter().for_each(|now| self.headings.record_time(*stream, *now));
        let last = entries.last().map(|(entry, _)| entry.at.0);
        self.sweeper.record_time(clock.map(|now| now.wall).max(last));
        let before = self.headings.add_records(*stream, records.len());
        for (number, content) in (before + 1..).zip(records).skip(*staged) {
            write_record(transaction, *stream, number, content).map_err(failed)?;
            self.log_bytes += content.len() as u64;
        }
        self.log_bytes += STREAM_COMMIT_BYTES;
        self.write_entries(transaction, append, &positions)?;
        Ok(Appended { first_position: positions.first().copied().unwrap_or(end + 1) })
    }

    /// Folds and sweeps a little, and writes the headings.
    fn finish_transaction(
        &mut self,
        transaction: &Transaction<'_>,
        content: &CommitContent,
    ) -> rusqlite::Result<()> {
        let Self { headings, audit, folds, sweeper, forgotten, looked_at, log_bytes, .. } = self;
        *log_bytes += folds.go_on(transaction, headings, content.records)?;
        sweeper.record_entries(content.entries);
        if let Ok(file) = audit.file() {
            sweeper.go_on(file, headings);
        }
        let removed = ENTRIES_REMOVED_PER_COMMIT + 2 * content.entries as u64;
        audit.pending_mut().remove_settled(transaction, removed)?;
        folds.sweep(transaction, headings, content.records)?;
        // One of them in each commit: they may be many, and most of them stay for as long as their audit entries.
        let after = looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let next = forgotten.range((after, Bound::Unbounded)).next();
        *looked_at = next.or_else(|| forgotten.first()).copied();
        if let Some(key) = *looked_at {
            let is_swept = headings.get(key).is_some_and(StreamHeading::is_swept);
            if is_swept && !folds.is_sweeping(key) {
                headings.remove(transaction, key)?;
                forgotten.remove(&key);
            }
        }
        headings.write(transaction)?;
        *log_bytes += COMMIT_BYTES;
        Ok(())
    }

    /// Drops the records and rows of a stream; they are swept with later commits.
    fn forget(&mut self, stream: StreamKey) {
        let Some(heading) = self.headings.get(stream) else { return };
        let is_forgotten = heading.is_forgotten();
        if self.forgotten.insert(stream) {
            self.folds.cancel(stream);
            if !is_forgotten {
                self.headings.get_mut(stream).forget();
            }
            self.folds.sweep_later(stream);
            lock(&self.status.hidden).remove(&stream);
        }
    }

    /// Records that a commit is durable, if it went into files that still have their names.
    fn record_reach(&mut self, connection: &Connection) {
        let mut reach = Reach::of(&self.headings.journal);
        // Hidden entries may still be rewritten: record the last entry before them.
        let hidden = self.hidden();
        if self.hides_filed_entries(&hidden) {
            self.wait_for_audit_file();
        }
        let view = self.audit.view(connection);
        let shown_to = view.shown_to(&hidden);
        if shown_to < reach.audit_chain.number {
            let recorded = lock(&self.status.reach).audit_chain;
            let link = view.link_at(&self.headings, shown_to).filter(|_| recorded.number < shown_to);
            reach.audit_chain = link.unwrap_or(recorded);
        }
        let named = self.files.check_written();
        match named.and_then(|()| self.reach.record(&reach).map_err(|error| (&error).into())) {
            Ok(()) => *lock(&self.status.reach) = reach,
            Err(error) => self.fail(error),
        }
    }

    /// Returns true if entries may be hidden that were filed before.
    fn hides_filed_entries(&self, hidden: &BTreeMap<StreamKey, u64>) -> bool {
        hidden.iter().any(|(stream, number)| {
            let last = self.headings.get(*stream).map_or(0, |heading| heading.audit_chain.number);
            self.audit.pending().unfiled_tail(*stream, last, usize::MAX) > number.saturating_add(1)
        })
    }

    /// Verifies some audit entries when it is time.
    pub(crate) fn verify_if_due(&mut self) {
        if self.is_well() && !self.audit.is_lent() {
            self.check.go_on_if_due((&self.audit, &self.headings), &self.status.audit_check);
        }
    }

    pub(crate) fn check_files_if_due(&mut self) {
        if self.files_checked.elapsed() >= CHECK_INTERVAL {
            self.check_files();
        }
    }

    /// Checks that all files still have their names, and syncs the record of the reach.
    pub(crate) fn check_files(&mut self) {
        self.files_checked = Instant::now();
        if !self.is_well() {
            return;
        }
        let files_checked = self.files.check();
        let synced = files_checked.and_then(|()| self.reach.sync().map_err(|error| (&error).into()));
        if let Err(error) = synced {
            self.fail(error);
        }
    }

    fn checkpoint(&mut self, connection: &Connection, log: LogAfterCheckpoint) {
        match checkpoint(connection, log) {
            Ok(()) => {
                self.log_bytes = 0;
                self.swept_for_good = self.headings.journal.audit_swept.number;
            }
            Err(error) => self.fail(AppendError::from(&error)),
        }
    }

    /// Prepares the close: a healthy journal has no log afterwards.
    pub(crate) fn finish(&mut self, connection: &Connection) {
        if self.is_well() && self.swept_for_good < self.headings.journal.audit_swept.number {
            self.checkpoint(connection, LogAfterCheckpoint::Reused);
        }
        if self.is_well()
            && let Err(error) = self.file_all(connection)
        {
            self.fail(error);
        }
        if !self.is_well() {
            self.audit.keep_log_on_close();
        }
        match self.health {
            Health::Well => {
                self.checkpoint(connection, LogAfterCheckpoint::Emptied);
                if let Err(error) = self.reach.sync() {
                    self.fail((&error).into());
                }
            }
            Health::Failed(AppendError::Moved(_)) => {
                // No write has failed: if the directory is put back, all commits are in the journal, also those of a
                // log without a name. The file that is under the name of the log now may belong to another journal.
                drop(checkpoint(connection, LogAfterCheckpoint::Emptied));
                drop(keep_log_on_close(connection));
            }
            // The next opening decides about the rest of a failed write in the log.
            Health::Failed(_) => drop(keep_log_on_close(connection)),
        }
    }

    pub(crate) fn check(&mut self, result: rusqlite::Result<()>) {
        if let Err(error) = result {
            self.fail(AppendError::from(&error));
        }
    }

    /// Marks the committer as failed: nothing is written any more.
    fn fail(&mut self, error: AppendError) {
        *lock(&self.status.failure) = Some(error.clone());
        self.health = Health::Failed(error);
    }

    fn publish_status(&self, streams: impl IntoIterator<Item = StreamKey>) {
        let mut wants_fold = lock(&self.status.wants_fold);
        for stream in streams {
            let is_long = self.headings.get(stream).is_some_and(|heading| {
                heading.last - heading.base >= self.options.fold_after.max(heading.rows)
            });
            if is_long && !self.folds.is_folding(stream) {
                wants_fold.insert(stream);
            } else {
                wants_fold.remove(&stream);
            }
        }
        self.status.records.store(self.headings.journal.records, Ordering::Relaxed);
    }
}

/// Content of a transaction.
#[derive(Debug, Default)]
struct CommitContent {
    written: Written,
    records: u64,
    entries: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Written {
    #[default]
    Nothing,
    Something,
}

/// The callback of an append, and the result for it if the commit succeeds.
type AppendResult = (AppendReply, Result<Appended, AppendError>);

/// Adds the reply to a write that is refused as a whole, or written as a whole. An error of the disk ends the batch.
fn answer(
    reply: AppendReply,
    outcome: Result<Appended, AppendError>,
    batch: &mut std::vec::IntoIter<PendingWrite>,
    replies: &mut Vec<AppendResult>,
) -> Result<(), AppendError> {
    match outcome {
        Err(error) if !error.is_of_the_append() => {
            replies.push((reply, Err(AppendError::Closed)));
            replies.extend(rejected(batch.collect(), &AppendError::Closed));
            Err(error)
        }
        outcome => {
            replies.push((reply, outcome));
            Ok(())
        }
    }
}

fn rejected(batch: Vec<PendingWrite>, error: &AppendError) -> impl Iterator<Item = AppendResult> {
    let replies = batch.into_iter().filter_map(PendingWrite::into_reply);
    replies.map(|reply| (reply, Err(error.clone())))
}

/// Deletes the written records and entries of an append that is rejected: the next records of its stream get their
/// numbers.
fn discard_slices(
    transaction: &Transaction<'_>,
    headings: &Headings,
    append: &Append,
) -> rusqlite::Result<Written> {
    if append.staged == 0 && append.run.is_none() {
        return Ok(Written::Nothing);
    }
    append.run.map_or(Ok(()), |run| remove_entries(transaction, run))?;
    let last = headings.get(append.stream).map_or(0, |heading| heading.last);
    remove_records_after(transaction, append.stream, last)?;
    Ok(Written::Something)
}
