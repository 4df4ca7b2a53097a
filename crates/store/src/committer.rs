//! The committer: the one thread that writes.
//!
//! It owns the only connection. It takes all pending requests, commits them batch, and calls each back when the
//! commit is on the disk: the higher the load, the more goes into one sync. Any error ends it: the outcome of a failed
//! write is unknown, so nothing more is written through this connection, not even on close.
//!
//! Each commit is also recorded in `journal.reach` ([`ReachFile`]), and is acknowledged only if the files are still
//! under their names ([`NamedFiles`]). About once a second, also without requests, the thread checks the names and
//! syncs the record.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX};
use rusqlite::Connection;

use crate::audit_log::{
    AuditQuery, AuditSweeper, ReadError, ReadReply, chain_before, read_page, rewrite_entry, write_entry,
};
use crate::committer_request::{Append, AppendCallback, AuditWrite, CommitterRequest};
use crate::copy::copy_database;
use crate::database::{
    Heading, LogAfterCheckpoint, checkpoint, keep_log_on_close, write_heading, write_record,
};
use crate::error::{AppendError, CopyError};
use crate::files::{Directory, NamedFiles};
use crate::fold::{FOLD_BYTES_PER_COMMIT, FoldProgress, Folding, sweep};
use crate::options::Options;
use crate::reach::{Reach, ReachFile};
use forewarn_control::ControlState;

/// A write that may share a commit with others.
enum PendingWrite {
    Append(Append),
    Fold(Box<ControlState>),
}

/// Status of the committer that other threads read.
#[derive(Debug)]
pub(crate) struct CommitterStatus {
    pub(crate) wants_fold: AtomicBool,
    /// Number of the last durable record.
    pub(crate) last: AtomicU64,
    /// End of the durable and recorded journal.
    pub(crate) reach: Mutex<Reach>,
    /// Error that ended the committer.
    pub(crate) failure: Mutex<Option<AppendError>>,
    /// Last audit entry that readers see, if it is durable.
    pub(crate) entries_shown_to: AtomicU64,
}

/// An open journal: everything that the committer writes to, and the lock.
pub(crate) struct OpenJournal {
    pub(crate) connection: Connection,
    pub(crate) reach: ReachFile,
    pub(crate) files: NamedFiles,
    pub(crate) directory: Directory,
}

/// Interval between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

const REQUESTS_PER_COMMIT_MAX: usize = 64;

const PENDING_READS_MAX: usize = 64;

/// Bytes that a commit adds to its content: the pages around it.
const COMMIT_BYTES: u64 = 3 * 4_096;

/// The same for audit entries, which are also in the index.
const ENTRY_COMMIT_BYTES: u64 = 10 * 4_096;

pub(crate) struct Committer {
    connection: Connection,
    requests: Receiver<CommitterRequest>,
    reads: PendingReads,
    work: CommitState,
    /// Locked until the connection is closed.
    _directory: Directory,
}

/// Pending queries of the audit log. One is served between two commits, so that a writer waits for no more.
#[derive(Default)]
struct PendingReads(VecDeque<(AuditQuery, ReadReply)>);

struct CommitState {
    heading: Heading,
    swept: u64,
    sweeper: AuditSweeper,
    folding: Option<Folding>,
    options: Options,
    /// Approximate size of the write-ahead log.
    log_bytes: u64,
    shared: Arc<CommitterStatus>,
    health: Health,
    reach: ReachFile,
    files: NamedFiles,
    /// Time of the last check of the files.
    files_checked: Instant,
}

/// State of the committer: after a failure nothing is written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Failed(AppendError),
}

impl Committer {
    pub(crate) fn new(
        written: OpenJournal,
        requests: Receiver<CommitterRequest>,
        (heading, swept): (Heading, u64),
        options: &Options,
    ) -> (Self, Arc<CommitterStatus>) {
        let OpenJournal { connection, reach, files, directory } = written;
        let shared = Arc::new(CommitterStatus {
            wants_fold: AtomicBool::new(false),
            last: AtomicU64::new(heading.last),
            reach: Mutex::new(Reach::of(&heading)),
            failure: Mutex::new(None),
            // Readers see every entry.
            entries_shown_to: AtomicU64::new(u64::MAX),
        });
        let work = CommitState {
            heading,
            swept,
            sweeper: AuditSweeper::new(options.audit_retention),
            folding: None,
            options: *options,
            log_bytes: 0,
            shared: Arc::clone(&shared),
            health: Health::Well,
            reach,
            files,
            files_checked: Instant::now(),
        };
        work.publish_status();
        (Self { connection, requests, reads: PendingReads::default(), work, _directory: directory }, shared)
    }

    /// Runs until the journal is closed, or all senders are gone.
    pub(crate) fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let first = if self.reads.0.is_empty() {
                self.requests.recv_timeout(CHECK_INTERVAL).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            } else {
                self.requests.try_recv()
            };
            match first {
                Ok(first) => closing = self.execute(first),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            self.reads.serve_one(&self.connection, &self.work);
            self.work.check_files_if_due();
        }
        let Self { connection, mut work, _directory: directory, .. } = self;
        work.look();
        work.finish(&connection);
        work.check(connection.close().map_err(|(_, error)| error));
        drop(directory);
        if let Some(done) = closing {
            done(work.outcome());
        }
    }

    /// Executes a request and those that wait behind it. Returns the callback of a close request.
    fn execute(&mut self, first: CommitterRequest) -> Option<AppendCallback> {
        let mut next = Some(first);
        let (mut batch, mut taken) = (Vec::new(), 0);
        while let Some(request) = next.take() {
            match request {
                CommitterRequest::Append(append) => self.work.take(&self.connection, append, &mut batch),
                CommitterRequest::Fold(state) => batch.push(PendingWrite::Fold(state)),
                CommitterRequest::Read { query, reply } => self.reads.add(query, reply),
                CommitterRequest::Copy { to, done } => {
                    self.work.commit(&self.connection, std::mem::take(&mut batch));
                    let (copied, closing) = self.copy(&to);
                    done(copied);
                    if closing.is_some() {
                        return closing;
                    }
                }
                CommitterRequest::Close { done } => {
                    self.work.commit(&self.connection, batch);
                    return Some(done);
                }
            }
            taken += 1;
            if taken < REQUESTS_PER_COMMIT_MAX {
                next = self.requests.try_recv().ok();
            }
        }
        self.work.commit(&self.connection, batch);
        None
    }

    /// Copies some pages, commits pending requests, copies some more: only the request for the copy waits for it.
    fn copy(&mut self, to: &Path) -> (Result<(), CopyError>, Option<AppendCallback>) {
        let mut closing = None;
        let Self { connection, requests, reads, work, .. } = self;
        let copied = copy_database(connection, to, || {
            let (mut batch, mut taken) = (Vec::new(), 0);
            while taken < REQUESTS_PER_COMMIT_MAX
                && closing.is_none()
                && let Ok(request) = requests.try_recv()
            {
                match request {
                    CommitterRequest::Append(append) => work.take(connection, append, &mut batch),
                    CommitterRequest::Fold(state) => batch.push(PendingWrite::Fold(state)),
                    CommitterRequest::Read { query, reply } => reads.add(query, reply),
                    CommitterRequest::Copy { done, .. } => done(Err(CopyError::Busy)),
                    CommitterRequest::Close { done } => closing = Some(done),
                }
                taken += 1;
            }
            work.commit(connection, batch);
            reads.serve_one(connection, work);
            work.check_files_if_due();
            if work.health == Health::Well { Ok(()) } else { Err(CopyError::Closed) }
        });
        (copied, closing)
    }
}

impl PendingReads {
    fn add(&mut self, query: AuditQuery, reply: ReadReply) {
        if self.0.len() < PENDING_READS_MAX {
            self.0.push_back((query, reply));
        } else {
            reply.send(Err(ReadError::Busy));
        }
    }

    fn serve_one(&mut self, connection: &Connection, work: &CommitState) {
        let Some((query, reply)) = self.0.pop_front() else { return };
        reply.send(match work.health {
            Health::Well => {
                let shown_to = work.shared.entries_shown_to.load(Ordering::Acquire);
                read_page(connection, &work.heading, &query, shown_to)
            }
            Health::Failed(_) => Err(ReadError::Closed),
        });
    }
}

impl CommitState {
    /// Adds an append to the next commit. One that rewrites entries is committed alone, after those before it.
    fn take(&mut self, connection: &Connection, append: Append, batch: &mut Vec<PendingWrite>) {
        match append.mode {
            AuditWrite::Append => batch.push(PendingWrite::Append(append)),
            AuditWrite::Rewrite => {
                self.commit(connection, std::mem::take(batch));
                self.commit(connection, vec![PendingWrite::Append(append)]);
            }
        }
    }

    /// Commits all writes batch, and calls their callbacks.
    fn commit(&mut self, connection: &Connection, batch: Vec<PendingWrite>) {
        let (mut contents, mut entries, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        let mut write_mode = AuditWrite::Append;
        for write in batch {
            match write {
                PendingWrite::Append(Append { records, entries: appended, mode, clock, done }) => {
                    write_mode = mode;
                    clock.into_iter().for_each(|now| self.heading.record_time(now));
                    let last = appended.last().map(|entry| entry.at.0);
                    self.sweeper.record_time(clock.map(|now| now.wall).max(last));
                    contents.extend(records);
                    entries.extend(appended);
                    waiting.push(done);
                }
                PendingWrite::Fold(state) => {
                    let base = self.heading.last + contents.len() as u64;
                    self.folding = Some(Folding::begin(*state, self.heading.generation + 1, base));
                }
            }
        }
        match self.health {
            Health::Well if !contents.is_empty() || !entries.is_empty() => {
                match self.lines(connection, &entries, write_mode) {
                    Ok(lines) => {
                        let written = self.write(connection, &contents, &lines, write_mode);
                        self.check(written);
                        self.record_reach();
                    }
                    Err(error) => self.fail(error),
                }
            }
            Health::Well | Health::Failed(_) => {}
        }
        self.publish_status();
        let outcome = self.outcome();
        waiting.into_iter().for_each(|done| done(outcome.clone()));
        if self.health == Health::Well && self.log_bytes > self.options.log_bytes {
            self.log_bytes = 0;
            self.check(checkpoint(connection, LogAfterCheckpoint::Reused));
        }
    }

    /// Serialises entries, and verifies that they continue the chain.
    fn lines<'a>(
        &self,
        connection: &Connection,
        entries: &'a [Arc<AuditEntry>],
        write_mode: AuditWrite,
    ) -> Result<Vec<(&'a AuditEntry, String)>, AppendError> {
        let mut chain = match write_mode {
            AuditWrite::Append => self.heading.audit_chain,
            AuditWrite::Rewrite => chain_before(connection, &self.heading, entries)?,
        };
        let line = |entry: &'a Arc<AuditEntry>| {
            chain.verify(entry)?;
            let line = entry.to_line();
            if line.len() > ENTRY_BYTES_MAX {
                return Err(AppendError::TooLarge(line.len()));
            }
            Ok((&**entry, line))
        };
        entries.iter().map(line).collect()
    }

    fn write(
        &mut self,
        connection: &Connection,
        contents: &[Vec<u8>],
        lines: &[(&AuditEntry, String)],
        write_mode: AuditWrite,
    ) -> rusqlite::Result<()> {
        let transaction = connection.unchecked_transaction()?;
        for content in contents {
            self.heading.last += 1;
            write_record(&transaction, self.heading.last, content)?;
            self.log_bytes += content.len() as u64;
        }
        if let Some(folding) = &mut self.folding {
            self.log_bytes += FOLD_BYTES_PER_COMMIT;
            match folding.go_on(&transaction, &mut self.heading)? {
                FoldProgress::Goes => {}
                FoldProgress::Done => self.folding = None,
            }
        }
        for (entry, line) in lines {
            self.log_bytes += match write_mode {
                AuditWrite::Append => write_entry(&transaction, entry, line)?,
                AuditWrite::Rewrite => rewrite_entry(&transaction, entry, line)?,
            };
        }
        if let Some((entry, _)) = lines.last() {
            self.heading.audit_chain = Chain::at(entry).unwrap_or(self.heading.audit_chain);
            self.log_bytes += ENTRY_COMMIT_BYTES;
        }
        self.sweeper.go_on(&transaction, &mut self.heading, lines.len())?;
        sweep(&transaction, &self.heading, &mut self.swept)?;
        write_heading(&transaction, &self.heading)?;
        self.log_bytes += COMMIT_BYTES;
        transaction.commit()
    }

    /// Records that a commit is durable, if it went into files that still have their names.
    fn record_reach(&mut self) {
        if self.health != Health::Well {
            return;
        }
        let mut reach = Reach::of(&self.heading);
        if self.shared.entries_shown_to.load(Ordering::Acquire) < reach.audit_chain.number {
            // Hidden entries may still be rewritten: record the last entry before them.
            reach.audit_chain = self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner).audit_chain;
        }
        let named = self.files.check_written();
        match named.and_then(|()| self.reach.record(&reach).map_err(|error| (&error).into())) {
            Ok(()) => *self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner) = reach,
            Err(error) => self.fail(error),
        }
    }

    fn check_files_if_due(&mut self) {
        if self.files_checked.elapsed() >= CHECK_INTERVAL {
            self.look();
        }
    }

    /// Checks that all files still have their names, and syncs the record of the reach.
    fn look(&mut self) {
        self.files_checked = Instant::now();
        if self.health != Health::Well {
            return;
        }
        let files_checked = self.files.check();
        let synced = files_checked.and_then(|()| self.reach.sync().map_err(|error| (&error).into()));
        if let Err(error) = synced {
            self.fail(error);
        }
    }

    /// Prepares the close: a healthy journal has no log afterwards.
    fn finish(&mut self, connection: &Connection) {
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

    fn check(&mut self, result: rusqlite::Result<()>) {
        if let Err(error) = result {
            self.fail(AppendError::from(&error));
        }
    }

    /// Marks the committer as failed: nothing is written any more.
    fn fail(&mut self, error: AppendError) {
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        self.health = Health::Failed(error);
    }

    fn outcome(&self) -> Result<(), AppendError> {
        match &self.health {
            Health::Well => Ok(()),
            Health::Failed(error) => Err(error.clone()),
        }
    }

    fn publish_status(&self) {
        let long = self.heading.last - self.heading.base >= self.options.fold_after.max(self.heading.rows);
        self.shared.wants_fold.store(long && self.folding.is_none(), Ordering::Relaxed);
        self.shared.last.store(self.heading.last, Ordering::Relaxed);
    }
}
