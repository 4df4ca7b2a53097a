//! Commits: one transaction with the writes of many streams.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forewarn_control::Chain;
use rusqlite::{Connection, Transaction};

use crate::audit_check::BackgroundCheck;
use crate::audit_log::{
    AuditBatch, AuditQuery, AuditSweeper, ReadError, chain_before, link_at, read_page, rewrite_entry,
    shown_to, write_entry,
};
use crate::committer_request::{Append, AppendReply, Appended, AuditWrite, PendingWrite};
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
use crate::reach::{Reach, ReachFile};
use crate::stream_key::StreamKey;

/// Interval between two checks of the files.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that a commit adds to its content: the pages around it.
const COMMIT_BYTES: u64 = 3 * 4_096;

/// The same for each stream of the commit.
const STREAM_COMMIT_BYTES: u64 = 4_096;

/// The same for audit entries, which are also in the index.
const ENTRY_COMMIT_BYTES: u64 = 10 * 4_096;

/// State of the committer: after a failure nothing is written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Failed(AppendError),
}

/// Everything that a commit changes.
pub(crate) struct CommitState {
    headings: Headings,
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
        headings: Headings,
        unknown: &[StreamKey],
        (reach, files): (ReachFile, NamedFiles),
        options: &Options,
    ) -> Self {
        let status = Arc::new(CommitterStatus::new(&headings.journal));
        let mut folds = FoldQueue::default();
        headings.streams().for_each(|(key, _)| folds.sweep_later(key));
        let mut state = Self {
            headings,
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

    pub(crate) fn read(&self, connection: &Connection, query: &AuditQuery) -> Result<AuditBatch, ReadError> {
        match self.health {
            Health::Well => read_page(connection, &self.headings, query, &lock(&self.status.hidden).clone()),
            Health::Failed(_) => Err(ReadError::Closed),
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
            self.log_bytes = 0;
            self.check(checkpoint(connection, LogAfterCheckpoint::Reused));
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
                PendingWrite::Append(append) => {
                    match self.write_append(&transaction, &append, &mut content) {
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
            }
        }
        if let Some(append) = large {
            content.written = Written::Something;
            content.records += self.write_slice(&transaction, append).map_err(failed)?;
        }
        if content.written == Written::Something {
            self.finish_transaction(&transaction, &content).map_err(failed)?;
            transaction.commit().map_err(failed)?;
        }
        Ok(content.written)
    }

    /// Writes some records of a large append. They count once all of it is there. Returns their number.
    fn write_slice(&mut self, transaction: &Transaction<'_>, append: &mut Append) -> rusqlite::Result<u64> {
        let last = self.headings.get(append.stream).map_or(0, |heading| heading.last);
        let before = last + append.staged as u64;
        let slice = append.next_slice();
        for (number, content) in (before + 1..).zip(slice) {
            write_record(transaction, append.stream, number, content)?;
            self.log_bytes += content.len() as u64;
        }
        let count = slice.len();
        // They are not needed any more; dropping all of them at the end takes long.
        append.records[append.staged..][..count].fill(Vec::new());
        append.staged += count;
        Ok(count as u64)
    }

    /// Writes the records and entries of one append, except those that are written. Nothing is written if the entries do
    /// not continue the audit log.
    fn write_append(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
        content: &mut CommitContent,
    ) -> Result<Appended, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let end = self.headings.journal.audit_end.number;
        if append.is_empty() {
            return Ok(Appended { first_position: end + 1 });
        }
        let positions = self.check_entries(transaction, append)?;
        let Append { stream, records, staged, entries, clock, .. } = append;
        content.written = Written::Something;
        content.records += (records.len() - staged) as u64;
        content.entries += entries.len();
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

    /// Verifies that the entries of an append continue the audit log of their stream, and returns their positions.
    fn check_entries(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
    ) -> Result<Vec<u64>, AppendError> {
        let Append { stream, entries, mode, .. } = append;
        let Some((first, _)) = entries.first() else { return Ok(Vec::new()) };
        let end = self.headings.journal.audit_end.number;
        let heading = self.headings.get_mut(*stream);
        let (mut chain, positions) = match mode {
            AuditWrite::Append => (heading.audit_chain, (end + 1..).take(entries.len()).collect()),
            AuditWrite::Rewrite => {
                chain_before(transaction, (*stream, heading), entries.iter().map(|(entry, _)| &**entry))?
            }
        };
        // The others continue it.
        chain.verify(first)?;
        Ok(positions)
    }

    fn write_entries(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
        positions: &[u64],
    ) -> Result<(), AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let Append { stream, entries, mode, .. } = append;
        for ((entry, line), position) in entries.iter().zip(positions) {
            let place = (*stream, *position);
            let written = match mode {
                AuditWrite::Append => write_entry(transaction, place, entry, line),
                AuditWrite::Rewrite => rewrite_entry(transaction, place, line),
            };
            self.log_bytes += written.map_err(failed)?;
        }
        let (Some((last, _)), Some(position)) = (entries.last(), positions.last()) else { return Ok(()) };
        let chain = Chain::at(last)?;
        self.log_bytes += ENTRY_COMMIT_BYTES;
        self.headings.get_mut(*stream).audit_chain = chain;
        if *position >= self.headings.journal.audit_end.number {
            self.headings.journal.audit_end = Chain { number: *position, ..chain };
        }
        Ok(())
    }

    /// Folds and sweeps a little, and writes the headings.
    fn finish_transaction(
        &mut self,
        transaction: &Transaction<'_>,
        content: &CommitContent,
    ) -> rusqlite::Result<()> {
        let Self { headings, folds, sweeper, forgotten, looked_at, log_bytes, .. } = self;
        *log_bytes += folds.go_on(transaction, headings, content.records)?;
        sweeper.go_on(transaction, headings, content.entries)?;
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
        let hidden = lock(&self.status.hidden).clone();
        let shown_to = match shown_to(connection, &hidden) {
            Ok(shown_to) => shown_to,
            Err(error) => return self.fail(AppendError::from(&error)),
        };
        if shown_to < reach.audit_chain.number {
            let recorded = lock(&self.status.reach).audit_chain;
            let link = link_at(connection, &self.headings, shown_to).filter(|_| recorded.number < shown_to);
            reach.audit_chain = link.unwrap_or(recorded);
        }
        let named = self.files.check_written();
        match named.and_then(|()| self.reach.record(&reach).map_err(|error| (&error).into())) {
            Ok(()) => *lock(&self.status.reach) = reach,
            Err(error) => self.fail(error),
        }
    }

    /// Verifies some audit entries when it is time.
    pub(crate) fn verify_if_due(&mut self, connection: &Connection) {
        if self.is_well() {
            let (hidden, found) = (lock(&self.status.hidden).clone(), &self.status.audit_check);
            self.check.go_on_if_due(connection, (&self.headings, &hidden), found);
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

    /// Prepares the close: a healthy journal has no log afterwards.
    pub(crate) fn finish(&mut self, connection: &Connection) {
        match self.health {
            Health::Well => {
                self.check(checkpoint(connection, LogAfterCheckpoint::Emptied));
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

fn rejected(batch: Vec<PendingWrite>, error: &AppendError) -> impl Iterator<Item = AppendResult> {
    let replies = batch.into_iter().filter_map(PendingWrite::into_reply);
    replies.map(|reply| (reply, Err(error.clone())))
}

/// Deletes the written records of an append that is rejected: the next ones of its stream get their numbers.
fn discard_slices(
    transaction: &Transaction<'_>,
    headings: &Headings,
    append: &Append,
) -> rusqlite::Result<Written> {
    if append.staged == 0 {
        return Ok(Written::Nothing);
    }
    let last = headings.get(append.stream).map_or(0, |heading| heading.last);
    remove_records_after(transaction, append.stream, last)?;
    Ok(Written::Something)
}
