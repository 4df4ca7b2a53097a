//! Reading the audit log while the journal is in use.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::audit_log::{AuditBatch, AuditQuery, ReadError, ReadReply, RecentEntries, SUBJECTS_PER_QUERY_MAX};
use crate::committer_request::CommitterQueue;
use crate::recent_log::RecentLog;

/// A handle that queries the audit log of a journal. After the journal is closed it returns [`ReadError::Closed`]; a
/// journal that is opened again has another reader.
#[derive(Clone, Debug)]
pub struct AuditLogReader(ReaderSource);

#[derive(Clone, Debug)]
enum ReaderSource {
    Memory(Weak<Mutex<RecentEntries>>),
    /// Weak, so that a reader does not keep the committer running when the journal is closed.
    Embedded(Weak<CommitterQueue>),
}

impl AuditLogReader {
    /// The reader of a closed journal.
    #[must_use]
    pub fn closed() -> Self {
        Self(ReaderSource::Memory(Weak::new()))
    }

    pub(crate) fn of_memory(recent: &Arc<Mutex<RecentEntries>>) -> Self {
        Self(ReaderSource::Memory(Arc::downgrade(recent)))
    }

    pub(crate) fn of_committer(requests: Option<&Arc<CommitterQueue>>) -> Self {
        Self(ReaderSource::Embedded(requests.map(Arc::downgrade).unwrap_or_default()))
    }

    /// Sends a query without waiting: `done` is called once with the result, perhaps on another thread, which it must
    /// not block.
    pub fn read_then(
        &self,
        query: AuditQuery,
        done: impl FnOnce(Result<AuditBatch, ReadError>) + Send + 'static,
    ) {
        let count = query.groups.iter().map(Vec::len).sum();
        if count > SUBJECTS_PER_QUERY_MAX {
            return done(Err(ReadError::TooMany(count)));
        }
        match &self.0 {
            ReaderSource::Memory(recent) => done(match recent.upgrade() {
                Some(recent) => recent.lock().unwrap_or_else(PoisonError::into_inner).read(&query),
                None => Err(ReadError::Closed),
            }),
            ReaderSource::Embedded(requests) => {
                let reply = ReadReply::new(done);
                match requests.upgrade() {
                    Some(requests) => requests.send_read(query, reply),
                    None => reply.send(Err(ReadError::Closed)),
                }
            }
        }
    }

    /// The audit log of a journal in memory, as it is now. `None` if it is in a directory, or closed.
    #[must_use]
    pub fn recent_log(&self) -> Option<RecentLog> {
        match &self.0 {
            ReaderSource::Memory(recent) => {
                let recent = recent.upgrade()?;
                let entries = recent.lock().unwrap_or_else(PoisonError::into_inner);
                Some(RecentLog::new(entries.clone()))
            }
            ReaderSource::Embedded(_) => None,
        }
    }

    /// Sends a query, and waits for the result.
    ///
    /// # Errors
    /// Fails if the audit log could not be read.
    pub fn read(&self, query: AuditQuery) -> Result<AuditBatch, ReadError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.read_then(query, move |page| drop(sender.send(page)));
        receiver.recv().unwrap_or(Err(ReadError::Closed))
    }
}
