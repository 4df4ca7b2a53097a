//! The committer: the one thread that writes the journal.
//!
//! It owns the only connection. It takes all pending requests, commits them in one transaction, and calls each back
//! when the commit is on the disk: the higher the load, the more goes into one sync. Any error ends it: the outcome of
//! a failed write is unknown, so nothing more is written through this connection, not even on close.
//!
//! ```text
//!   small appends of all streams ──┐
//!   a slice of a large append    ──┴▶ one transaction ──▶ callbacks
//! ```
//!
//! A large append is written in slices, so that small ones do not wait for it. Its records and audit entries count once
//! the last slice has changed the heading of the stream; until then they are leftovers that the next opening removes.
//! Audit entries are filed on another thread ([`crate::audit_store`]).
//!
//! Each commit is also recorded in `journal.reach` ([`crate::reach::ReachFile`]), and is acknowledged only if the files
//! are still under their names ([`crate::files::NamedFiles`]). About once a second, also without requests, the thread
//! checks the names and syncs the record.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use crate::audit_log::{AuditQuery, ReadReply};
use crate::commit::{CHECK_INTERVAL, CommitState, FilingNeed};
use crate::committer_request::{
    Append, CloseCallback, CommitterInbox, CommitterRequest, CopyCallback, PendingWrite,
};
use crate::copy::{CopySource, UnpublishedCopy, copy_journal};
use crate::error::CopyError;
use crate::filer::SweptEntries;
use crate::files::Directory;
use crate::stream_key::StreamKey;

/// Requests, and bytes, of one round.
const REQUESTS_PER_COMMIT_MAX: usize = 1_024;
const BYTES_PER_COMMIT_MAX: usize = 1 << 20;

pub(crate) struct Committer {
    connection: Connection,
    inbox: CommitterInbox,
    reads: PendingReads,
    queue: WriteQueue,
    work: CommitState,
    /// Gives a copy its name.
    publishing: Option<JoinHandle<()>>,
    /// Locked until the connection is closed.
    _directory: Directory,
}

/// Pending queries of the audit log. One is served between two commits, so that a writer waits for no more, and once
/// all entries are filed that were visible when it arrived.
#[derive(Default)]
struct PendingReads(VecDeque<PendingRead>);

struct PendingRead {
    query: AuditQuery,
    reply: ReadReply,
    /// Position of the last entry at its first turn, which is after all earlier appends.
    end: Option<u64>,
}

/// Writes that wait for their commit. Those of one stream keep their order.
#[derive(Default)]
struct WriteQueue {
    /// Writes of the next commit.
    batch: Vec<PendingWrite>,
    batch_bytes: usize,
    /// Streams with a large append: one of them has its turn in each commit.
    backlogs: VecDeque<Backlog>,
}

/// A large append, and the writes to its stream after it.
struct Backlog {
    stream: StreamKey,
    writes: VecDeque<PendingWrite>,
}

impl WriteQueue {
    fn add(&mut self, write: PendingWrite) {
        let stream = write.stream();
        if let Some(backlog) = self.backlogs.iter_mut().find(|backlog| backlog.stream == stream) {
            backlog.writes.push_back(write);
        } else if write.is_large() {
            self.backlogs.push_back(Backlog { stream, writes: VecDeque::from([write]) });
        } else {
            self.batch_bytes += write.bytes();
            self.batch.push(write);
        }
    }

    fn is_full(&self) -> bool {
        self.batch_bytes >= BYTES_PER_COMMIT_MAX
    }

    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.backlogs.is_empty()
    }

    /// The writes of the next commit, and a large append of which it writes a slice.
    fn take_round(&mut self) -> (Vec<PendingWrite>, Option<&mut Append>) {
        let mut batch = self.take_batch();
        if let Some(mut backlog) = self.backlogs.pop_front() {
            batch.extend(backlog.writes.pop_front_if(|write| !write.is_large()));
            if !backlog.writes.is_empty() {
                self.backlogs.push_back(backlog);
            }
        }
        let next = self.backlogs.back_mut().and_then(|backlog| backlog.writes.front_mut());
        (batch, next.and_then(PendingWrite::as_large_append))
    }

    /// Everything, in its order: it is rejected.
    fn take_all(&mut self) -> Vec<PendingWrite> {
        let mut all = self.take_batch();
        all.extend(self.backlogs.drain(..).flat_map(|backlog| backlog.writes));
        all
    }

    fn take_batch(&mut self) -> Vec<PendingWrite> {
        self.batch_bytes = 0;
        std::mem::take(&mut self.batch)
    }

    /// Commits the batch, and a slice of a large append.
    fn commit_round(&mut self, work: &mut CommitState, connection: &Connection) {
        if !work.is_well() {
            return work.commit(connection, self.take_all(), None);
        }
        let (batch, large) = self.take_round();
        work.commit(connection, batch, large);
    }
}

impl Committer {
    pub(crate) fn new(
        connection: Connection,
        directory: Directory,
        inbox: CommitterInbox,
        work: CommitState,
    ) -> Self {
        let (reads, queue) = (PendingReads::default(), WriteQueue::default());
        Self { connection, inbox, reads, queue, work, publishing: None, _directory: directory }
    }

    pub(crate) fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let can_read = !self.reads.0.is_empty() && !self.work.is_filing();
            let is_idle = !can_read && self.queue.backlogs.is_empty() && !self.work.wants_filing();
            let first = if is_idle {
                self.inbox.requests.recv_timeout(CHECK_INTERVAL).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            } else {
                self.inbox.requests.try_recv()
            };
            let mut need = FilingNeed::None;
            match first {
                Ok(first) => closing = self.take(first),
                Err(TryRecvError::Empty) if is_idle => need = FilingNeed::Idle,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            self.commit_round();
            if !self.reads.0.is_empty() {
                need = FilingNeed::Reader;
            }
            self.work.file_if_due(&self.connection, need, SweptEntries::Remove);
            self.serve_one_read();
            self.work.verify_if_due();
            self.work.check_files_if_due();
        }
        self.commit_all();
        let Self { connection, mut work, publishing, _directory: directory, .. } = self;
        // The callback of a copy is called before that of the close request.
        drop(publishing.map(JoinHandle::join));
        work.check_files();
        work.finish(&connection);
        work.check(connection.close().map_err(|(_, error)| error));
        let outcome = work.close_audit();
        drop(directory);
        if let Some(done) = closing {
            done(outcome);
        }
    }

    /// Takes a request and those that wait behind it. Returns the callback of a close request.
    fn take(&mut self, first: CommitterRequest) -> Option<CloseCallback> {
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(request) = next.take() {
            match request {
                CommitterRequest::Write(write) => self.queue.add(write),
                CommitterRequest::Read { query, reply } => self.reads.add(query, reply),
                CommitterRequest::Copy { to, done } => {
                    // A copy has everything that was acknowledged; the rest of the queue goes on meanwhile.
                    self.commit_round();
                    let closing = self.copy_if_free(&to, done);
                    if closing.is_some() {
                        return closing;
                    }
                }
                CommitterRequest::FilingEnded => {}
                CommitterRequest::Close { done } => {
                    self.commit_all();
                    return Some(done);
                }
            }
            taken += 1;
            if taken < REQUESTS_PER_COMMIT_MAX && !self.queue.is_full() {
                next = self.inbox.requests.try_recv().ok();
            }
        }
        None
    }

    fn commit_round(&mut self) {
        self.queue.commit_round(&mut self.work, &self.connection);
    }

    /// Commits everything that waits.
    fn commit_all(&mut self) {
        while !self.queue.is_empty() {
            self.commit_round();
        }
    }

    fn serve_one_read(&mut self) {
        self.reads.serve_one(&self.connection, &self.inbox, &self.work);
    }

    /// Copies the journal. The copy is synced and renamed on another thread, one at a time.
    fn copy_if_free(&mut self, to: &Path, done: CopyCallback) -> Option<CloseCallback> {
        if self.publishing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            done(Err(CopyError::Busy));
            return None;
        }
        let (copied, closing) = self.copy(to);
        match copied {
            Ok(copy) => self.publishing = publish_elsewhere(copy, done),
            Err(error) => done(Err(error)),
        }
        closing
    }

    /// Copies some pages, commits pending requests, copies some more: only the request for the copy waits for it.
    fn copy(&mut self, to: &Path) -> (Result<UnpublishedCopy, CopyError>, Option<CloseCallback>) {
        let mut closing = None;
        let Self { connection, inbox, reads, queue, work, .. } = self;
        let mut rounds = CopyRounds { connection, inbox, reads, queue, work, closing: &mut closing };
        let copied = copy_journal(connection, to, &mut rounds);
        (copied, closing)
    }
}

/// Rounds of the committer while a copy is made.
struct CopyRounds<'a> {
    connection: &'a Connection,
    inbox: &'a CommitterInbox,
    reads: &'a mut PendingReads,
    queue: &'a mut WriteQueue,
    work: &'a mut CommitState,
    closing: &'a mut Option<CloseCallback>,
}

impl CopySource for CopyRounds<'_> {
    fn audit(&mut self) -> Option<&Connection> {
        self.work.audit_file()
    }

    fn serve(&mut self) -> Result<(), CopyError> {
        let Self { connection, inbox, reads, queue, work, closing } = self;
        let mut taken = 0;
        while taken < REQUESTS_PER_COMMIT_MAX
            && !queue.is_full()
            && closing.is_none()
            && let Ok(request) = inbox.requests.try_recv()
        {
            match request {
                CommitterRequest::Write(write) => queue.add(write),
                CommitterRequest::Read { query, reply } => reads.add(query, reply),
                CommitterRequest::Copy { done, .. } => done(Err(CopyError::Busy)),
                CommitterRequest::FilingEnded => {}
                CommitterRequest::Close { done } => **closing = Some(done),
            }
            taken += 1;
        }
        queue.commit_round(work, connection);
        let need = if reads.0.is_empty() { FilingNeed::None } else { FilingNeed::Reader };
        work.file_if_due(connection, need, SweptEntries::Keep);
        reads.serve_one(connection, inbox, work);
        work.verify_if_due();
        work.check_files_if_due();
        if work.is_well() { Ok(()) } else { Err(CopyError::Closed) }
    }
}

/// Publishes a copy and calls back, on another thread.
fn publish_elsewhere(copy: UnpublishedCopy, done: CopyCallback) -> Option<JoinHandle<()>> {
    let thread = thread::Builder::new().name("forewarn-copy".to_owned());
    // Without a thread, dropping the callback tells the caller that the copy has failed.
    thread.spawn(move || done(copy.publish())).ok()
}

impl PendingReads {
    fn add(&mut self, query: AuditQuery, reply: ReadReply) {
        self.0.push_back(PendingRead { query, reply, end: None });
    }

    fn serve_one(&mut self, connection: &Connection, inbox: &CommitterInbox, work: &CommitState) {
        let end = work.audit_end();
        self.0.iter_mut().rev().take_while(|read| read.end.is_none()).for_each(|read| read.end = Some(end));
        let Some(PendingRead { query, end: needed, .. }) = self.0.front() else { return };
        let Some(result) = work.read(connection, query, needed.unwrap_or(end)) else { return };
        let Some(PendingRead { reply, .. }) = self.0.pop_front() else { return };
        inbox.reads.fetch_sub(1, Ordering::Relaxed);
        reply.send(result);
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterId, Stream};

    use super::*;
    use crate::committer_request::{AppendReply, AuditWrite};

    fn append(cluster: u32, records: usize) -> PendingWrite {
        PendingWrite::Append(Append {
            stream: Stream::Cluster(ClusterId(cluster)).into(),
            records: vec![vec![0; 10]; records],
            staged: 0,
            entries: Vec::new(),
            staged_entries: 0,
            run: None,
            mode: AuditWrite::Append,
            clock: None,
            reply: AppendReply::new(Box::new(drop)),
        })
    }

    /// Streams and numbers of records of the next commit, and the stream of the large append with its rest.
    type Round = (Vec<(StreamKey, usize)>, Option<(StreamKey, usize)>);

    /// Takes a round, and stages all but the last records of its large append.
    fn round(queue: &mut WriteQueue) -> Round {
        let (batch, large) = queue.take_round();
        let batch = batch.iter().map(|write| (write.stream(), write.bytes() / 10)).collect();
        let large = large.map(|large| {
            large.staged = large.records.len() - 1;
            (large.stream, large.records.len())
        });
        (batch, large)
    }

    #[test]
    fn small_writes_do_not_wait_for_large_ones_of_other_streams() {
        let mut queue = WriteQueue::default();
        for (cluster, records) in [(1, 1), (2, 1_000), (1, 2), (2, 3), (3, 4), (4, 2_000)] {
            queue.add(append(cluster, records));
        }
        let [one, two, three, four] = [1, 2, 3, 4].map(|id| StreamKey::from(Stream::Cluster(ClusterId(id))));
        assert_eq!(round(&mut queue), (vec![(one, 1), (one, 2), (three, 4)], Some((two, 1_000))));
        // The streams take turns.
        assert_eq!(round(&mut queue), (vec![], Some((four, 2_000))));
        // The stream is still behind.
        queue.add(append(2, 5));
        queue.add(append(3, 6));
        assert_eq!(round(&mut queue), (vec![(three, 6), (two, 1_000)], None));
        assert_eq!(round(&mut queue), (vec![(four, 2_000)], None));
        assert_eq!(round(&mut queue), (vec![(two, 3)], None));
        assert_eq!(round(&mut queue), (vec![(two, 5)], None));
        assert!(queue.is_empty());
        queue.add(append(2, 7));
        assert_eq!(round(&mut queue), (vec![(two, 7)], None));
    }

    #[test]
    fn everything_is_taken_in_its_order() {
        let mut queue = WriteQueue::default();
        [(2, 1_000), (1, 1), (2, 2)]
            .into_iter()
            .for_each(|(cluster, records)| queue.add(append(cluster, records)));
        let records: Vec<_> = queue.take_all().iter().map(|write| write.bytes() / 10).collect();
        assert_eq!((records, queue.is_empty()), (vec![1, 1_000, 2], true));
    }
}
