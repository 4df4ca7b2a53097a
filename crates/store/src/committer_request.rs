//! Requests to the committer thread, and the queue in which they wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use forewarn_control::shared::SharedState;
use forewarn_control::{AuditEntry, Chain, ClusterState, Entry, Record, StateRow, Stream};
use forewarn_lifecycle::Now;

use crate::audit_log::{AuditQuery, ReadError, ReadReply};
use crate::error::{AppendError, CopyError};
use crate::stream_key::StreamKey;

/// Queries that wait for the committer.
const PENDING_READS_MAX: usize = 64;

/// An append of more records and entries, or more bytes, is a large one: others do not wait for it.
const SMALL_APPEND_ITEMS_MAX: usize = 256;
const SMALL_APPEND_BYTES_MAX: usize = 64 << 10;

/// Records or entries, and bytes, of a slice of a large append: it takes less time than the sync that it shares with
/// others.
const SLICE_ITEMS_MAX: usize = 32;
const SLICE_BYTES_MAX: usize = 8 << 10;

/// Outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Position of its first audit entry in the log of the server; the others follow. Without entries, the position of
    /// the next one. Of a rewrite, the position of the first entry that was replaced.
    pub first_position: u64,
}

/// The state of a stream, to be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamState {
    Shared(Arc<SharedState>),
    Cluster(Arc<ClusterState>),
}

impl StreamState {
    /// Applies a record, as replay does. A record of another kind of stream changes nothing.
    pub fn apply(&mut self, record: &Record) {
        match (self, &record.entry) {
            (Self::Shared(shared), Entry::Shared(change)) => {
                drop(Arc::make_mut(shared).apply(record.now, change));
            }
            (Self::Cluster(cluster), Entry::Cluster(id, change)) => {
                drop(Arc::make_mut(cluster).apply(*id, record.now, change));
            }
            (Self::Shared(_), Entry::Cluster(..)) | (Self::Cluster(_), Entry::Shared(_)) => {}
        }
    }

    pub(crate) fn into_rows(self) -> Box<dyn Iterator<Item = StateRow> + Send> {
        match self {
            Self::Shared(shared) => Box::new(Arc::unwrap_or_clone(shared).into_rows().map(StateRow::Shared)),
            Self::Cluster(cluster) => Box::new(Arc::unwrap_or_clone(cluster).into_rows()),
        }
    }
}

/// Checks that records and entries belong to a stream. Entries in the form of the common log name none.
pub(crate) fn check_stream(
    stream: Stream,
    records: &[Record],
    entries: &[Arc<AuditEntry>],
) -> Result<(), AppendError> {
    let is_own = |entry: &Arc<AuditEntry>| entry.stream.is_none_or(|of| of == stream);
    if records.iter().all(|record| record.stream() == stream) && entries.iter().all(is_own) {
        Ok(())
    } else {
        Err(AppendError::OtherStream)
    }
}

/// A request to the committer.
pub(crate) enum CommitterRequest {
    Write(PendingWrite),
    /// Queries the audit log.
    Read {
        query: AuditQuery,
        reply: ReadReply,
    },
    /// Copies everything that is committed.
    Copy {
        to: PathBuf,
        done: CopyCallback,
    },
    /// The audit file can be taken back.
    FilingEnded,
    /// Ends the committer after all earlier requests.
    Close {
        done: CloseCallback,
    },
}

/// A write to one stream that may share a commit with others.
pub(crate) enum PendingWrite {
    /// Writes records and audit entries.
    Append(Append),
    /// Folds the state after all earlier requests.
    Fold { stream: StreamKey, state: StreamState },
    /// Removes the records and rows of a stream.
    Forget { stream: StreamKey },
    /// Replaces everything of a stream by a later state.
    Install(Install),
    /// Writes audit entries that were missing.
    Fill(Filling),
}

/// A state of a stream at a later place than this journal has, and the callback for the outcome.
pub(crate) struct Install {
    pub(crate) stream: StreamKey,
    pub(crate) state: InstalledState,
    pub(crate) reply: AppendReply,
}

/// A state of a stream that another journal has, at one place of the stream.
#[derive(Clone, Debug)]
pub struct InstalledState {
    pub state: StreamState,
    /// Number of records of the stream up to it.
    pub records: u64,
    /// End of the audit log at that state. Entries before it may be missing in this journal.
    pub chain: Chain,
    /// The clocks at that state.
    pub clock: Now,
}

/// The last entries of a gap, and the callback for the outcome.
pub(crate) struct Filling {
    pub(crate) stream: StreamKey,
    /// The entry before them.
    pub(crate) before: Chain,
    /// The last of them.
    pub(crate) end: Chain,
    /// Entries, and each as a line.
    pub(crate) entries: Vec<(Arc<AuditEntry>, String)>,
    pub(crate) reply: AppendReply,
}

/// Records of a stream with their audit entries, and the callback for the outcome.
pub(crate) struct Append {
    pub(crate) stream: StreamKey,
    pub(crate) records: Vec<Vec<u8>>,
    /// Number of records that are written and do not count yet.
    pub(crate) staged: usize,
    /// Entries, and each as a line.
    pub(crate) entries: Vec<(Arc<AuditEntry>, String)>,
    /// Number of entries that are written and do not count yet.
    pub(crate) staged_entries: usize,
    /// The run of its entries, once one of them is written.
    pub(crate) run: Option<u64>,
    pub(crate) mode: AuditWrite,
    /// Time of the clocks, if there are records.
    pub(crate) clock: Option<Now>,
    pub(crate) reply: AppendReply,
}

/// Place of the entries of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditWrite {
    /// After the last entry of the stream.
    Append,
    /// In place of the last entries of the stream, which no reader has seen.
    Rewrite,
}

pub(crate) type AppendCallback = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;
pub(crate) type CopyCallback = Box<dyn FnOnce(Result<(), CopyError>) + Send>;
pub(crate) type CloseCallback = Box<dyn FnOnce(Result<(), AppendError>) + Send>;

/// Callback for the outcome of an append. Dropping it sends [`AppendError::Closed`], so that no caller waits forever.
pub(crate) struct AppendReply(Option<AppendCallback>);

impl AppendReply {
    pub(crate) fn new(done: AppendCallback) -> Self {
        Self(Some(done))
    }

    pub(crate) fn send(mut self, outcome: Result<Appended, AppendError>) {
        if let Some(done) = self.0.take() {
            done(outcome);
        }
    }
}

impl Drop for AppendReply {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(AppendError::Closed));
        }
    }
}

impl Append {
    /// Bytes of its content.
    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(Vec::len).sum::<usize>() + self.entry_bytes()
    }

    fn entry_bytes(&self) -> usize {
        self.entries.iter().map(|(_, line)| line.len()).sum()
    }

    /// Returns true if small appends must not wait for the rest of it.
    fn is_large(&self) -> bool {
        let (records, entries) = (&self.records[self.staged..], &self.entries[self.staged_entries..]);
        let bytes = || {
            let entries = entries.iter().map(|(_, line)| line.len()).sum::<usize>();
            records.iter().map(Vec::len).sum::<usize>() + entries
        };
        let items = records.len() + entries.len();
        items > SMALL_APPEND_ITEMS_MAX || items > 0 && bytes() > SMALL_APPEND_BYTES_MAX
    }

    /// The records of the next slice.
    pub(crate) fn next_slice(&self) -> &[Vec<u8>] {
        slice_of(&self.records[self.staged..], Vec::len)
    }

    /// The entries of the next slice, once all records are written.
    pub(crate) fn next_entries(&self) -> &[(Arc<AuditEntry>, String)] {
        if self.staged < self.records.len() {
            return &[];
        }
        slice_of(&self.entries[self.staged_entries..], |(_, line)| line.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.entries.is_empty()
    }
}

/// The first items of a list that fit into a slice, and at least one.
fn slice_of<T>(rest: &[T], length: impl Fn(&T) -> usize) -> &[T] {
    let mut bytes = 0;
    let fitting = rest.iter().take(SLICE_ITEMS_MAX).take_while(|item| {
        let fits = bytes < SLICE_BYTES_MAX;
        bytes += length(item);
        fits
    });
    let count = fitting.count();
    &rest[..count]
}

impl PendingWrite {
    pub(crate) fn stream(&self) -> StreamKey {
        match self {
            Self::Append(Append { stream, .. })
            | Self::Fold { stream, .. }
            | Self::Forget { stream }
            | Self::Install(Install { stream, .. })
            | Self::Fill(Filling { stream, .. }) => *stream,
        }
    }

    /// The callback, if it has one.
    pub(crate) fn into_reply(self) -> Option<AppendReply> {
        match self {
            Self::Append(Append { reply, .. })
            | Self::Install(Install { reply, .. })
            | Self::Fill(Filling { reply, .. }) => Some(reply),
            Self::Fold { .. } | Self::Forget { .. } => None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.bytes(),
            Self::Fill(filling) => filling.entries.iter().map(|(_, line)| line.len()).sum(),
            Self::Fold { .. } | Self::Forget { .. } | Self::Install(_) => 0,
        }
    }

    /// Returns true if it is written in slices.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Append(append) => append.is_large(),
            Self::Fold { .. } | Self::Forget { .. } | Self::Install(_) | Self::Fill(_) => false,
        }
    }

    /// The append, if it is written in slices.
    pub(crate) fn as_large_append(&mut self) -> Option<&mut Append> {
        match self {
            Self::Append(append) if append.is_large() => Some(append),
            Self::Append(_) | Self::Fold { .. } | Self::Forget { .. } | Self::Install(_) | Self::Fill(_) => {
                None
            }
        }
    }
}

/// The sending side of the queue. Writes never block and are never refused for their number: each stream has about one
/// in flight. Queries are limited.
#[derive(Debug)]
pub(crate) struct CommitterQueue {
    requests: Sender<CommitterRequest>,
    reads: Arc<AtomicUsize>,
}

/// The receiving side of the queue.
#[derive(Debug)]
pub(crate) struct CommitterInbox {
    pub(crate) requests: Receiver<CommitterRequest>,
    /// Number of queries without a result.
    pub(crate) reads: Arc<AtomicUsize>,
}

impl CommitterQueue {
    pub(crate) fn new() -> (Self, CommitterInbox) {
        let (sender, receiver) = mpsc::channel();
        let reads = Arc::new(AtomicUsize::new(0));
        let inbox = CommitterInbox { requests: receiver, reads: Arc::clone(&reads) };
        (Self { requests: sender, reads }, inbox)
    }

    pub(crate) fn send(&self, request: CommitterRequest) {
        if let Err(mpsc::SendError(request)) = self.requests.send(request) {
            request.refuse();
        }
    }

    pub(crate) fn send_read(&self, query: AuditQuery, reply: ReadReply) {
        let waiting = self.reads.fetch_add(1, Ordering::Relaxed);
        if waiting < PENDING_READS_MAX {
            self.send(CommitterRequest::Read { query, reply });
        } else {
            self.reads.fetch_sub(1, Ordering::Relaxed);
            reply.send(Err(ReadError::Busy));
        }
    }
}

impl CommitterRequest {
    /// Rejects the request: the committer has ended.
    pub(crate) fn refuse(self) {
        match self {
            Self::Close { done } => done(Err(AppendError::Closed)),
            Self::Copy { done, .. } => done(Err(CopyError::Closed)),
            // Dropping a reply sends `Closed`.
            Self::Write(_) | Self::Read { .. } | Self::FilingEnded => {}
        }
    }
}
