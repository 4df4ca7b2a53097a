//! A journal in a directory: opens it, and sends requests to its committer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX, Record, Stream};
use forewarn_lifecycle::Now;

use crate::audit_check::AuditCheck;
use crate::audit_log::AuditView;
use crate::audit_log_reader::AuditLogReader;
use crate::audit_store::AuditStore;
use crate::codec::{RECORD_BYTES_MAX, to_bytes};
use crate::commit::CommitState;
use crate::committer::Committer;
use crate::committer_request::{
    Append, AppendCallback, AppendReply, Appended, AuditWrite, CommitterQueue, CommitterRequest, Filling,
    Install, InstalledState, PendingWrite, StreamState, check_stream,
};
use crate::committer_status::CommitterStatus;
use crate::creation::create_empty;
use crate::database::CheckDepth;
use crate::error::{AppendError, CopyError, OpenError};
use crate::filer::Filer;
use crate::files::{Directory, NamedFiles};
use crate::heading::{Headings, later};
use crate::lock::lock;
use crate::options::{IfMissing, Options, UnreadEntries};
use crate::pending::PendingEntries;
use crate::reach::{self, Reach, ReachFile};
use crate::recover::{OpenedJournal, Recovered, open_and_recover, remove_leftovers};
use crate::stream_key::StreamKey;
use crate::upgrade;

/// Runs of entries that the rewrites of one batch may have left: each of them begins a new one.
const RUNS_REPLACED_MAX: usize = 8;

/// Handle of a journal in a directory.
#[derive(Debug)]
pub struct Embedded {
    /// `None` after the committer has ended.
    requests: Option<Arc<CommitterQueue>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    status: Arc<CommitterStatus>,
}

impl Embedded {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let directory = match options.missing {
            IfMissing::Create => Directory::own(path)?,
            IfMissing::Refuse => Directory::with_journal(path)?,
        };
        if !directory.has_journal()? {
            create_empty(&directory, options)?;
        }
        let journal = directory.journal();
        let recorded = reach::read(&directory)?;
        let due: Vec<_> =
            recorded.map(|recorded| recorded.reach).into_iter().chain(options.reached).collect();
        upgrade::upgrade_if_old(&directory, &due, |_, _| ())?;
        let opened = open_and_recover(&directory, (options.sync, CheckDepth::Quick), &due)?;
        let OpenedJournal { connection, headings, recovered, pending, audit } = opened;
        let failed = |source| OpenError::database(&journal, source);
        let mut audit = AuditStore::open(&directory, (audit, pending), (&connection, &headings))?;
        audit.pending().remove_leftovers(&connection).map_err(failed)?;
        let unknown = remove_leftovers(&connection, &headings, &recovered.state).map_err(failed)?;
        let hidden = match options.unread {
            UnreadEntries::Shown => BTreeMap::new(),
            UnreadEntries::Hidden => replaceable(&recovered, (&headings, audit.pending())),
        };
        let end = shown_reach(&headings, &audit.view(&connection), &hidden);
        let reach = ReachFile::open(&directory, recorded, &end)?;
        let files = NamedFiles::of(&directory, audit.state())?;
        let (requests, inbox) = CommitterQueue::new();
        let requests = Arc::new(requests);
        let queue = Arc::downgrade(&requests);
        audit.file_on(Filer::start(move || {
            if let Some(queue) = queue.upgrade() {
                queue.send(CommitterRequest::FilingEnded);
            }
        }));
        let work = CommitState::new((headings, audit), &unknown, (reach, files), options);
        let status = Arc::clone(work.status());
        (*lock(&status.hidden), *lock(&status.reach)) = (hidden, end);
        let committer = Committer::new(connection, directory, inbox, work);
        let thread = thread::Builder::new().name("forewarn-journal".to_owned());
        let thread = thread.spawn(move || committer.run());
        let thread = thread.map_err(OpenError::io("start the thread of", &journal))?;
        let thread = Mutex::new(Some(thread));
        Ok((Self { requests: Some(requests), thread, status }, recovered))
    }

    /// Appends or rewrites, and waits for the outcome.
    pub(crate) fn append(
        &self,
        stream: Stream,
        (records, entries): (&[Record], &[Arc<AuditEntry>]),
        mode: AuditWrite,
    ) -> Result<Appended, AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        // The caller waits for the result below.
        let done = Box::new(move |result| drop(sender.send(result)));
        self.append_then(stream, (records, entries), mode, done);
        receiver.recv().unwrap_or(Err(AppendError::Closed))
    }

    pub(crate) fn append_then(
        &self,
        stream: Stream,
        (records, entries): (&[Record], &[Arc<AuditEntry>]),
        mode: AuditWrite,
        done: AppendCallback,
    ) {
        let reply = AppendReply::new(done);
        match encode(stream, records, entries) {
            Ok((records, entries, clock)) => {
                let stream = stream.into();
                let append = Append {
                    stream,
                    records,
                    staged: 0,
                    entries,
                    staged_entries: 0,
                    run: None,
                    mode,
                    clock,
                    reply,
                };
                self.write(PendingWrite::Append(append));
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    pub(crate) fn install_then(&self, stream: Stream, state: InstalledState, done: AppendCallback) {
        let (stream, reply) = (stream.into(), AppendReply::new(done));
        self.write(PendingWrite::Install(Install { stream, state, reply }));
    }

    pub(crate) fn fill_then(
        &self,
        stream: Stream,
        before: Chain,
        entries: &[Arc<AuditEntry>],
        done: AppendCallback,
    ) {
        let reply = AppendReply::new(done);
        match encode(stream, &[], entries)
            .and_then(|(_, entries, _)| Ok((end_after(before, &entries)?, entries)))
        {
            Ok((end, entries)) => {
                let stream = stream.into();
                self.write(PendingWrite::Fill(Filling { stream, before, end, entries, reply }));
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    pub(crate) fn missing_entries(&self) -> BTreeMap<Stream, RangeInclusive<u64>> {
        let missing = lock(&self.status.missing);
        missing.iter().map(|(stream, (first, last))| (*stream, *first..=*last)).collect()
    }

    pub(crate) fn hide_entries_after(&self, stream: Stream, number: u64) {
        let mut hidden = lock(&self.status.hidden);
        hidden.entry(stream.into()).and_modify(|last| *last = number.min(*last)).or_insert(number);
    }

    pub(crate) fn show_all_entries(&self, stream: Stream) {
        lock(&self.status.hidden).remove(&stream.into());
    }

    pub(crate) fn audit_log_reader(&self) -> AuditLogReader {
        AuditLogReader::of_committer(self.requests.as_ref())
    }

    pub(crate) fn wants_fold(&self, stream: Stream) -> bool {
        lock(&self.status.wants_fold).contains(&stream.into())
    }

    pub(crate) fn fold(&self, stream: Stream, state: StreamState) {
        let stream = stream.into();
        // Not again before the committer has seen this one.
        lock(&self.status.wants_fold).remove(&stream);
        self.write(PendingWrite::Fold { stream, state });
    }

    pub(crate) fn forget(&self, stream: Stream) {
        self.write(PendingWrite::Forget { stream: stream.into() });
    }

    pub(crate) fn copy_then(&self, to: &Path, done: Box<dyn FnOnce(Result<(), CopyError>) + Send>) {
        self.send(CommitterRequest::Copy { to: to.to_owned(), done });
    }

    /// The end of the durable journal.
    pub(crate) fn reach(&self) -> Reach {
        *lock(&self.status.reach)
    }

    /// The error that ended the committer, if any.
    pub(crate) fn failure(&self) -> Option<AppendError> {
        lock(&self.status.failure).clone()
    }

    pub(crate) fn audit_check(&self) -> AuditCheck {
        lock(&self.status.audit_check).clone()
    }

    pub(crate) fn length(&self) -> u64 {
        self.status.records.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) -> Result<(), AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(CommitterRequest::Close { done: Box::new(move |result| drop(sender.send(result))) });
        let closed = receiver.recv().unwrap_or(Err(AppendError::Closed));
        self.join();
        closed
    }

    fn write(&self, write: PendingWrite) {
        self.send(CommitterRequest::Write(write));
    }

    fn send(&self, request: CommitterRequest) {
        match &self.requests {
            Some(requests) => requests.send(request),
            None => request.refuse(),
        }
    }

    fn join(&self) {
        if let Some(thread) = lock(&self.thread).take() {
            // If it panicked, every waiting caller has got `Closed`.
            drop(thread.join());
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The committer ends when nothing can send any more.
        self.requests = None;
        self.join();
    }
}

/// The chain after entries that continue another one. All but the first are verified.
fn end_after(before: Chain, entries: &[(Arc<AuditEntry>, String)]) -> Result<Chain, AppendError> {
    let (Some((first, line)), Some((last, _))) = (entries.first(), entries.last()) else {
        return Err(AppendError::OtherEntry);
    };
    let mut chain = before;
    chain.verify_line(first, line)?;
    Ok(Chain::at(last)?)
}

type EncodedAppend = (Vec<Vec<u8>>, Vec<(Arc<AuditEntry>, String)>, Option<Now>);

/// The last number that readers see, of streams that end with announcements which no VM may have read.
fn replaceable(
    recovered: &Recovered,
    (headings, pending): (&Headings, &PendingEntries),
) -> BTreeMap<StreamKey, u64> {
    let streams = recovered.unread.iter().map(|(id, _)| StreamKey::from(Stream::Cluster(*id)));
    let shown_to = |stream: StreamKey| {
        let last = headings.get(stream)?.audit_chain.number;
        Some((stream, pending.unfiled_tail(stream, last, RUNS_REPLACED_MAX).saturating_sub(1)))
    };
    streams.filter_map(shown_to).collect()
}

/// The end of a journal without the entries that may still be replaced.
fn shown_reach(headings: &Headings, view: &AuditView<'_>, hidden: &BTreeMap<StreamKey, u64>) -> Reach {
    let end = Reach::of(&headings.journal);
    let shown_to = view.shown_to(hidden);
    if shown_to >= end.audit_chain.number {
        return end;
    }
    let link = view.link_at(headings, shown_to).unwrap_or(headings.journal.audit_swept);
    Reach { audit_chain: link, ..end }
}

/// Verifies that entries continue the first one. The committer verifies the first: hashing takes time, and others wait
/// for the committer.
fn verify_later_entries(entries: &[(Arc<AuditEntry>, String)]) -> Result<(), AppendError> {
    let Some(((first, _), later)) = entries.split_first() else { return Ok(()) };
    if later.is_empty() {
        return Ok(());
    }
    let mut chain = Chain::at(first)?;
    Ok(later.iter().try_for_each(|(entry, line)| chain.verify_line(entry, line))?)
}

/// The stored form of records and entries, and the latest time of the records.
fn encode(
    stream: Stream,
    records: &[Record],
    entries: &[Arc<AuditEntry>],
) -> Result<EncodedAppend, AppendError> {
    check_stream(stream, records, entries)?;
    let mut contents = Vec::with_capacity(records.len());
    let mut clock: Option<Now> = None;
    for record in records {
        let content = to_bytes(record);
        if content.len() > RECORD_BYTES_MAX {
            return Err(AppendError::TooLarge(content.len()));
        }
        contents.push(content);
        clock = Some(clock.map_or(record.now, |clock| later(clock, record.now)));
    }
    let mut lines = Vec::with_capacity(entries.len());
    for entry in entries {
        let line = entry.to_line();
        if line.len() > ENTRY_BYTES_MAX {
            return Err(AppendError::TooLarge(line.len()));
        }
        lines.push((Arc::clone(entry), line));
    }
    verify_later_entries(&lines)?;
    Ok((contents, lines, clock))
}
