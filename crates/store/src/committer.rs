//! The one thread that writes.
//!
//! It owns the only connection. It takes everything that waits for it, commits that together, and answers each when the
//! commit is on the disk: the more is asked of it, the more goes into one sync. An error of any kind ends it: what a failed
//! write has left is known to nobody, so nothing more is written through this connection, not even when it is closed.
//!
//! Each commit is also recorded in `journal.reach` ([`ReachFile`]), and is answered only if the files are still under their
//! names ([`NamedFiles`]). About once a second, also while it has no orders, the thread checks the names and syncs the record.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX};
use rusqlite::Connection;

use crate::copy::copy_database;
use crate::database::{Heading, Log, checkpoint, keep_log_on_close, write_heading, write_record};
use crate::error::{AppendFailed, CopyError};
use crate::files::{Directory, NamedFiles};
use crate::fold::{FOLD_BYTES_PER_COMMIT, Folding, Progress, sweep};
use crate::options::Options;
use crate::order::{Append, Done, Order, TrailWrite};
use crate::reach::{Reach, ReachFile};
use crate::trail::{
    Answer, AuditQuery, ReadFailed, Sweeping, chain_before, read_page, rewrite_entry, write_entry,
};
use forewarn_control::ControlState;

/// What may go into one commit.
enum Write {
    Append(Append),
    Fold(Box<ControlState>),
}

/// What others may know of the thread's work.
#[derive(Debug)]
pub(crate) struct Shared {
    /// It is time to fold.
    pub(crate) wants_fold: AtomicBool,
    /// The number of the last record that is durable.
    pub(crate) last: AtomicU64,
    /// The end of what is durable and recorded.
    pub(crate) reach: Mutex<Reach>,
    /// The reason why nothing more is written.
    pub(crate) failure: Mutex<Option<AppendFailed>>,
    /// The number of the last entry of the trail that readers see, if it is durable.
    pub(crate) trail_shown_to: AtomicU64,
}

/// An open journal: everything that the thread writes to, and the lock.
pub(crate) struct Written {
    pub(crate) connection: Connection,
    pub(crate) reach: ReachFile,
    pub(crate) files: NamedFiles,
    pub(crate) directory: Directory,
}

/// The time between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Orders that are committed together.
const ORDERS_PER_COMMIT_MAX: usize = 64;

/// Questions that wait to be answered.
const READS_WAITING_MAX: usize = 64;

/// Bytes that a commit writes besides what it is about: the pages around it.
const COMMIT_BYTES: u64 = 3 * 4_096;

/// The same for entries of the trail, which are found in several places.
const ENTRY_COMMIT_BYTES: u64 = 10 * 4_096;

pub(crate) struct Committer {
    connection: Connection,
    orders: Receiver<Order>,
    reads: Reads,
    work: Work,
    /// Kept locked until the connection is closed.
    _directory: Directory,
}

/// Questions about the trail. One is answered between two commits: nobody who writes waits for more.
#[derive(Default)]
struct Reads(VecDeque<(AuditQuery, Answer)>);

struct Work {
    heading: Heading,
    swept: u64,
    sweeping: Sweeping,
    folding: Option<Folding>,
    options: Options,
    /// About what is in the log.
    log_bytes: u64,
    shared: Arc<Shared>,
    health: Health,
    reach: ReachFile,
    files: NamedFiles,
    /// The moment of the last look at the files.
    looked: Instant,
}

/// Whether anything may still be written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Failed(AppendFailed),
}

impl Committer {
    pub(crate) fn new(
        written: Written,
        orders: Receiver<Order>,
        (heading, swept): (Heading, u64),
        options: &Options,
    ) -> (Self, Arc<Shared>) {
        let Written { connection, reach, files, directory } = written;
        let shared = Arc::new(Shared {
            wants_fold: AtomicBool::new(false),
            last: AtomicU64::new(heading.last),
            reach: Mutex::new(Reach::of(&heading)),
            failure: Mutex::new(None),
            // Readers see every entry.
            trail_shown_to: AtomicU64::new(u64::MAX),
        });
        let work = Work {
            heading,
            swept,
            sweeping: Sweeping::new(options.trail_keep),
            folding: None,
            options: *options,
            log_bytes: 0,
            shared: Arc::clone(&shared),
            health: Health::Well,
            reach,
            files,
            looked: Instant::now(),
        };
        work.tell();
        (Self { connection, orders, reads: Reads::default(), work, _directory: directory }, shared)
    }

    /// Works until it is closed, or nobody can ask for anything any more.
    pub(crate) fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let first = if self.reads.0.is_empty() {
                self.orders.recv_timeout(LOOK_EVERY).map_err(|problem| match problem {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            } else {
                self.orders.try_recv()
            };
            match first {
                Ok(first) => closing = self.obey(first),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            self.reads.answer_one(&self.connection, &self.work);
            self.work.look_if_due();
        }
        let Self { connection, mut work, _directory: directory, .. } = self;
        work.look();
        work.finish(&connection);
        work.check(connection.close().map_err(|(_, problem)| problem));
        drop(directory);
        if let Some(done) = closing {
            done(work.answer());
        }
    }

    /// Does what is asked for, and what waits behind it. Gives whom to tell when it was asked to end.
    fn obey(&mut self, first: Order) -> Option<Done> {
        let mut next = Some(first);
        let (mut together, mut taken) = (Vec::new(), 0);
        while let Some(order) = next.take() {
            match order {
                Order::Append(append) => self.work.take(&self.connection, append, &mut together),
                Order::Fold(state) => together.push(Write::Fold(state)),
                Order::Read { query, answer } => self.reads.add(query, answer),
                Order::Copy { to, done } => {
                    self.work.commit(&self.connection, std::mem::take(&mut together));
                    let (copied, closing) = self.copy(&to);
                    done(copied);
                    if closing.is_some() {
                        return closing;
                    }
                }
                Order::Close { done } => {
                    self.work.commit(&self.connection, together);
                    return Some(done);
                }
            }
            taken += 1;
            if taken < ORDERS_PER_COMMIT_MAX {
                next = self.orders.try_recv().ok();
            }
        }
        self.work.commit(&self.connection, together);
        None
    }

    /// Copies some pages, commits what has come meanwhile, copies some more: nobody waits for a copy but who asked for it.
    fn copy(&mut self, to: &Path) -> (Result<(), CopyError>, Option<Done>) {
        let mut closing = None;
        let Self { connection, orders, reads, work, .. } = self;
        let copied = copy_database(connection, to, || {
            let (mut together, mut taken) = (Vec::new(), 0);
            while taken < ORDERS_PER_COMMIT_MAX
                && closing.is_none()
                && let Ok(order) = orders.try_recv()
            {
                match order {
                    Order::Append(append) => work.take(connection, append, &mut together),
                    Order::Fold(state) => together.push(Write::Fold(state)),
                    Order::Read { query, answer } => reads.add(query, answer),
                    Order::Copy { done, .. } => done(Err(CopyError::Busy)),
                    Order::Close { done } => closing = Some(done),
                }
                taken += 1;
            }
            work.commit(connection, together);
            reads.answer_one(connection, work);
            work.look_if_due();
            if work.health == Health::Well { Ok(()) } else { Err(CopyError::Closed) }
        });
        (copied, closing)
    }
}

impl Reads {
    fn add(&mut self, query: AuditQuery, answer: Answer) {
        if self.0.len() < READS_WAITING_MAX {
            self.0.push_back((query, answer));
        } else {
            answer.give(Err(ReadFailed::Busy));
        }
    }

    fn answer_one(&mut self, connection: &Connection, work: &Work) {
        let Some((query, answer)) = self.0.pop_front() else { return };
        answer.give(match work.health {
            Health::Well => {
                let shown_to = work.shared.trail_shown_to.load(Ordering::Acquire);
                read_page(connection, &work.heading, &query, shown_to)
            }
            Health::Failed(_) => Err(ReadFailed::Closed),
        });
    }
}

impl Work {
    /// Adds an append to what is committed together. One that rewrites entries is committed alone, after those before it.
    fn take(&mut self, connection: &Connection, append: Append, together: &mut Vec<Write>) {
        match append.how {
            TrailWrite::Append => together.push(Write::Append(append)),
            TrailWrite::Rewrite => {
                self.commit(connection, std::mem::take(together));
                self.commit(connection, vec![Write::Append(append)]);
            }
        }
    }

    /// Commits everything together, and answers everybody.
    fn commit(&mut self, connection: &Connection, together: Vec<Write>) {
        let (mut contents, mut entries, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        let mut how = TrailWrite::Append;
        for write in together {
            match write {
                Write::Append(Append { records, trail, how: place, clock, done }) => {
                    how = place;
                    clock.into_iter().for_each(|now| self.heading.saw(now));
                    let told = trail.last().map(|entry| entry.at.0);
                    self.sweeping.saw(clock.map(|now| now.wall).max(told));
                    contents.extend(records);
                    entries.extend(trail);
                    waiting.push(done);
                }
                Write::Fold(state) => {
                    let base = self.heading.last + contents.len() as u64;
                    self.folding = Some(Folding::begin(*state, self.heading.generation + 1, base));
                }
            }
        }
        match self.health {
            Health::Well if !contents.is_empty() || !entries.is_empty() => {
                match self.lines(connection, &entries, how) {
                    Ok(lines) => {
                        let written = self.write(connection, &contents, &lines, how);
                        self.check(written);
                        self.record_reach();
                    }
                    Err(problem) => self.fail(problem),
                }
            }
            Health::Well | Health::Failed(_) => {}
        }
        self.tell();
        let answer = self.answer();
        waiting.into_iter().for_each(|done| done(answer.clone()));
        if self.health == Health::Well && self.log_bytes > self.options.log_bytes {
            self.log_bytes = 0;
            self.check(checkpoint(connection, Log::Reused));
        }
    }

    /// The entries as they are written, which continue the trail.
    fn lines<'a>(
        &self,
        connection: &Connection,
        entries: &'a [Arc<AuditEntry>],
        how: TrailWrite,
    ) -> Result<Vec<(&'a AuditEntry, String)>, AppendFailed> {
        let mut chain = match how {
            TrailWrite::Append => self.heading.trail,
            TrailWrite::Rewrite => chain_before(connection, &self.heading, entries)?,
        };
        let line = |entry: &'a Arc<AuditEntry>| {
            chain.verify(entry)?;
            let line = entry.to_line();
            if line.len() > ENTRY_BYTES_MAX {
                return Err(AppendFailed::TooLarge(line.len()));
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
        how: TrailWrite,
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
                Progress::Goes => {}
                Progress::Done => self.folding = None,
            }
        }
        for (entry, line) in lines {
            self.log_bytes += match how {
                TrailWrite::Append => write_entry(&transaction, entry, line)?,
                TrailWrite::Rewrite => rewrite_entry(&transaction, entry, line)?,
            };
        }
        if let Some((entry, _)) = lines.last() {
            self.heading.trail = Chain::at(entry).unwrap_or(self.heading.trail);
            self.log_bytes += ENTRY_COMMIT_BYTES;
        }
        self.sweeping.go_on(&transaction, &mut self.heading, lines.len())?;
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
        if self.shared.trail_shown_to.load(Ordering::Acquire) < reach.trail.number {
            // Entries that no reader has seen may still be rewritten: the file names the last entry before them.
            reach.trail = self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner).trail;
        }
        let named = self.files.check_written();
        match named.and_then(|()| self.reach.record(&reach).map_err(|problem| (&problem).into())) {
            Ok(()) => *self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner) = reach,
            Err(problem) => self.fail(problem),
        }
    }

    fn look_if_due(&mut self) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.look();
        }
    }

    /// Checks that all files still have their names, and syncs the record of the reach.
    fn look(&mut self) {
        self.looked = Instant::now();
        if self.health != Health::Well {
            return;
        }
        let looked = self.files.check();
        let synced = looked.and_then(|()| self.reach.sync().map_err(|problem| (&problem).into()));
        if let Err(problem) = synced {
            self.fail(problem);
        }
    }

    /// Prepares the end: a journal that is well has no log after it.
    fn finish(&mut self, connection: &Connection) {
        match self.health {
            Health::Well => {
                self.check(checkpoint(connection, Log::Emptied));
                if let Err(problem) = self.reach.sync() {
                    self.fail((&problem).into());
                }
            }
            Health::Failed(AppendFailed::Moved(_)) => {
                // No write has failed: whoever puts the directory back finds all commits in the journal, also those of a log
                // without a name. The file that is under the name of the log now may belong to another journal.
                drop(checkpoint(connection, Log::Emptied));
                drop(keep_log_on_close(connection));
            }
            // What a failed write has left in the log is for the next opening to judge.
            Health::Failed(_) => drop(keep_log_on_close(connection)),
        }
    }

    fn check(&mut self, result: rusqlite::Result<()>) {
        if let Err(problem) = result {
            self.fail(AppendFailed::from(&problem));
        }
    }

    /// Writes nothing more from now on.
    fn fail(&mut self, problem: AppendFailed) {
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem.clone());
        self.health = Health::Failed(problem);
    }

    fn answer(&self) -> Result<(), AppendFailed> {
        match &self.health {
            Health::Well => Ok(()),
            Health::Failed(problem) => Err(problem.clone()),
        }
    }

    fn tell(&self) {
        let long = self.heading.last - self.heading.base >= self.options.fold_after.max(self.heading.rows);
        self.shared.wants_fold.store(long && self.folding.is_none(), Ordering::Relaxed);
        self.shared.last.store(self.heading.last, Ordering::Relaxed);
    }
}
