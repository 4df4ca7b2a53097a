//! The thread that writes the audit file.
//!
//! The committer lends it the connection with a job, goes on with its commits, and takes the connection back with the
//! result: at any time exactly one thread has the file.
//!
//! ```text
//!   committer ──file, entries──▶ filer: one transaction, and a checkpoint if it is time
//!             ◀──file, result───
//! ```

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use forewarn_control::AuditEntry;
use rusqlite::Connection;

use crate::audit_log::{FiledEntry, file_entry, remove_swept};
use crate::database::{LogAfterCheckpoint, checkpoint};
use crate::pending::{FilingSlice, WaitingEntry};

/// Work after which a job ends: the bytes of its entries, and for each of their subjects the work of about 512 bytes.
const WORK_PER_JOB: u64 = 2 << 20;
const SUBJECT_WORK: u64 = 512;

/// Bytes that a subject adds to the log.
const SUBJECT_BYTES: u64 = 128;

/// Swept entries that a job removes, in addition to as many as it files.
const ENTRIES_REMOVED_PER_JOB: u64 = 64;

/// Treatment of swept entries by a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweptEntries {
    Remove,
    /// A copy of the file is being made.
    Keep,
}

/// Slices, and the entries of each.
pub(crate) type FilingSlices = Vec<(FilingSlice, Vec<WaitingEntry>)>;

/// Work on the audit file, in one transaction.
#[derive(Debug)]
pub(crate) struct FilingJob {
    pub(crate) slices: FilingSlices,
    /// Position of the last swept entry.
    pub(crate) swept: u64,
    pub(crate) removal: SweptEntries,
    /// A checkpoint after the transaction makes everything that is filed durable.
    pub(crate) settlement: Option<LogAfterCheckpoint>,
}

/// A removal of swept entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Position of the last swept entry.
    pub(crate) swept: u64,
    /// Position of the last entry before those that remain in the file.
    pub(crate) removed: u64,
}

/// Outcome of a job.
#[derive(Debug)]
pub(crate) enum FilingOutcome {
    Filed {
        /// The entries that are filed.
        slices: Vec<FilingSlice>,
        /// Approximate number of bytes that were added to the log of the file.
        bytes: u64,
        /// The removal of swept entries; `None` if they were kept.
        removal: Option<Removal>,
        /// Whether a checkpoint has made them durable.
        is_settled: bool,
    },
    /// An entry is not what it should be.
    Wrong(String),
}

/// The file, and a job.
pub(crate) type Lent = Box<(Connection, FilingJob)>;

/// The file, and the outcome of a job.
pub(crate) type Returned = (Connection, rusqlite::Result<FilingOutcome>);

/// Handle of the thread.
#[derive(Debug)]
pub(crate) struct Filer {
    /// `None` only while it is dropped.
    jobs: Option<Sender<Lent>>,
    results: Receiver<Returned>,
    thread: Option<JoinHandle<()>>,
}

impl Filer {
    /// Starts the thread, which calls `wake` after each job. `None` if the system cannot start a thread.
    pub(crate) fn start(wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (jobs, inbox) = mpsc::channel::<Lent>();
        let (outbox, results) = mpsc::channel();
        let thread = thread::Builder::new().name("forewarn-audit".to_owned()).spawn(move || {
            for lent in inbox {
                let (file, job) = *lent;
                let outcome = perform(&file, job);
                if outbox.send((file, outcome)).is_err() {
                    return;
                }
                wake();
            }
        });
        Some(Self { jobs: Some(jobs), results, thread: Some(thread.ok()?) })
    }

    /// Lends the file for a job. Returns both if the thread has ended.
    pub(crate) fn lend(&self, lent: Lent) -> Result<(), Lent> {
        match &self.jobs {
            Some(jobs) => jobs.send(lent).map_err(|mpsc::SendError(lent)| lent),
            None => Err(lent),
        }
    }

    /// The file and the outcome of the job, if it has ended. Fails if the thread has ended without returning them.
    pub(crate) fn take_back(&self) -> Result<Option<Returned>, FilerEnded> {
        match self.results.try_recv() {
            Ok(returned) => Ok(Some(returned)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(FilerEnded),
        }
    }

    /// Waits for the end of the job.
    pub(crate) fn wait(&self) -> Result<Returned, FilerEnded> {
        self.results.recv().map_err(|_| FilerEnded)
    }
}

/// The thread has ended, and the file is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilerEnded;

impl Drop for Filer {
    fn drop(&mut self) {
        self.jobs = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Files entries until there is enough work, removes swept ones, and settles everything if it is time.
pub(crate) fn perform(file: &Connection, job: FilingJob) -> rusqlite::Result<FilingOutcome> {
    let FilingJob { slices, swept, removal, settlement } = job;
    let transaction = file.unchecked_transaction()?;
    let (mut filed, mut bytes, mut work) = (Vec::new(), 0, 0);
    for (slice, entries) in slices {
        let mut count = 0;
        for entry in entries {
            if work >= WORK_PER_JOB {
                break;
            }
            count += 1;
            if entry.position <= swept {
                continue;
            }
            let subjects = match file_one(&transaction, &slice, &entry)? {
                Ok(subjects) => subjects,
                Err(what) => return Ok(FilingOutcome::Wrong(what)),
            };
            let length = entry.line.len() as u64;
            bytes += length + SUBJECT_BYTES * subjects;
            work += length + SUBJECT_WORK * subjects;
        }
        filed.push(FilingSlice { count, ..slice });
    }
    let removal = match removal {
        SweptEntries::Remove => {
            let count = filed.iter().map(|slice| slice.count).sum::<u64>() + ENTRIES_REMOVED_PER_JOB;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            Some(Removal { swept, removed: remove_swept(&transaction, swept, count)? })
        }
        SweptEntries::Keep => None,
    };
    transaction.commit()?;
    if let Some(log) = settlement {
        checkpoint(file, log)?;
    }
    Ok(FilingOutcome::Filed { slices: filed, bytes, removal, is_settled: settlement.is_some() })
}

/// Files an entry. Returns the number of its subjects, or what is wrong with it.
fn file_one(
    file: &Connection,
    slice: &FilingSlice,
    waiting: &WaitingEntry,
) -> rusqlite::Result<Result<u64, String>> {
    let WaitingEntry { position, line, entry } = waiting;
    let entry = match entry {
        Some(entry) => Ok(Arc::clone(entry)),
        None => serde_json::from_str(line).map(Arc::new),
    };
    let entry: Arc<AuditEntry> = match entry {
        Ok(entry) => entry,
        Err(error) => return Ok(Err(format!("audit entry {position}: {error}"))),
    };
    let (found, subjects) = file_entry(file, (slice.stream, *position), &entry, line)?;
    Ok(match found {
        FiledEntry::Same => Ok(subjects),
        FiledEntry::Another => Err(format!("another audit entry {position} is there")),
    })
}
