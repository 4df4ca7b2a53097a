//! A journal in a directory: opens it, and sends requests to its committer.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use forewarn_control::{AuditEntry, ControlState, Record};
use forewarn_lifecycle::Now;

use crate::audit_log_reader::AuditLogReader;
use crate::codec::{RECORD_BYTES_MAX, to_bytes};
use crate::committer::{Committer, CommitterStatus, OpenJournal};
use crate::committer_request::{Append, AppendCallback, AuditWrite, CommitterRequest};
use crate::creation::create;
use crate::database::{CheckDepth, Heading};
use crate::error::{AppendError, CopyError, OpenError};
use crate::files::{Directory, NamedFiles};
use crate::options::{IfMissing, Options};
use crate::reach::{self, Reach, ReachFile};
use crate::recover::{Recovered, open_and_recover, read_swept};
use crate::upgrade;

/// Requests that wait for the committer; the sender of one more blocks.
const REQUESTS_WAITING_MAX: usize = 256;

/// Handle of a journal in a directory.
#[derive(Debug)]
pub struct Embedded {
    /// `None` after the committer has ended.
    requests: Option<Arc<SyncSender<CommitterRequest>>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<CommitterStatus>,
}

impl Embedded {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let directory = match options.missing {
            IfMissing::Create => Directory::own(path)?,
            IfMissing::Refuse => Directory::with_journal(path)?,
        };
        if !directory.has_journal()? {
            create(
                &directory,
                Heading::new(options.seed, options.now),
                ControlState::new(options.seed),
                &[],
            )?;
        }
        let journal = directory.journal();
        let recorded = reach::read(&directory)?;
        let due: Vec<_> =
            recorded.map(|recorded| recorded.reach).into_iter().chain(options.reached).collect();
        upgrade::upgrade_if_old(&directory, &due)?;
        let (connection, heading, recovered) =
            open_and_recover(&directory, (options.sync, CheckDepth::Quick), &due)?;
        let swept = read_swept(&connection, &heading);
        let swept = swept.map_err(|source| OpenError::database(&journal, source))?;
        let reach = ReachFile::open(&directory, recorded, &Reach::of(&heading))?;
        let files = NamedFiles::of(&directory)?;
        let (requests, inbox) = mpsc::sync_channel(REQUESTS_WAITING_MAX);
        let written = OpenJournal { connection, reach, files, directory };
        let (committer, shared) = Committer::new(written, inbox, (heading, swept), options);
        let thread = thread::Builder::new().name("forewarn-journal".to_owned());
        let thread = thread.spawn(move || committer.run());
        let thread = thread.map_err(OpenError::io("start the thread of", &journal))?;
        Ok((Self { requests: Some(Arc::new(requests)), thread: Some(thread), shared }, recovered))
    }

    pub(crate) fn append(&self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        self.append_and_wait(records, entries, AuditWrite::Append)
    }

    pub(crate) fn rewrite(&self, records: &[Record], entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        self.append_and_wait(records, entries, AuditWrite::Rewrite)
    }

    fn append_and_wait(
        &self,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        mode: AuditWrite,
    ) -> Result<(), AppendError> {
        if records.is_empty() && entries.is_empty() {
            return Ok(());
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        // The caller waits for the result below.
        self.send_append(records, entries, mode, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or(Err(AppendError::Closed))
    }

    pub(crate) fn append_then(&self, records: &[Record], entries: &[Arc<AuditEntry>], done: AppendCallback) {
        self.send_append(records, entries, AuditWrite::Append, done);
    }

    pub(crate) fn show_entries_to(&self, number: u64) {
        self.shared.entries_shown_to.store(number, Ordering::Release);
    }

    fn send_append(
        &self,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
        mode: AuditWrite,
        done: AppendCallback,
    ) {
        let mut contents = Vec::with_capacity(records.len());
        let mut clock: Option<Now> = None;
        for record in records {
            let content = to_bytes(record);
            if content.len() > RECORD_BYTES_MAX {
                return done(Err(AppendError::TooLarge(content.len())));
            }
            contents.push(content);
            clock = Some(clock.map_or(record.now, |clock| later(clock, record.now)));
        }
        self.send(CommitterRequest::Append(Append {
            records: contents,
            entries: entries.to_vec(),
            mode,
            clock,
            done,
        }));
    }

    pub(crate) fn audit_log_reader(&self) -> AuditLogReader {
        AuditLogReader::of_committer(self.requests.as_ref())
    }

    pub(crate) fn wants_fold(&self) -> bool {
        self.shared.wants_fold.load(Ordering::Relaxed)
    }

    pub(crate) fn fold(&self, state: ControlState) {
        // Not again before the committer has seen this one.
        self.shared.wants_fold.store(false, Ordering::Relaxed);
        self.send(CommitterRequest::Fold(Box::new(state)));
    }

    pub(crate) fn copy_then(&self, to: &Path, done: Box<dyn FnOnce(Result<(), CopyError>) + Send>) {
        self.send(CommitterRequest::Copy { to: to.to_owned(), done });
    }

    /// The end of the durable journal.
    pub(crate) fn reach(&self) -> Reach {
        *self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error that ended the committer, if any.
    pub(crate) fn failure(&self) -> Option<AppendError> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn length(&self) -> u64 {
        self.shared.last.load(Ordering::Relaxed)
    }

    pub(crate) fn close(mut self) -> Result<(), AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(CommitterRequest::Close { done: Box::new(move |result| drop(sender.send(result))) });
        let closed = receiver.recv().unwrap_or(Err(AppendError::Closed));
        self.end();
        closed
    }

    fn send(&self, request: CommitterRequest) {
        let Some(requests) = &self.requests else { return request.refuse() };
        if let Err(mpsc::SendError(request)) = requests.send(request) {
            request.refuse();
        }
    }

    fn end(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, every waiting caller has got `Closed`.
            drop(thread.join());
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.end();
    }
}

fn later(one: Now, other: Now) -> Now {
    Now { wall: one.wall.max(other.wall), steady: one.steady.max(other.steady) }
}
