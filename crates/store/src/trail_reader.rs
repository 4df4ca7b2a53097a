//! Reading the audit log while the journal is in use.

use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::order::Order;
use crate::trail::{Answer, AuditBatch, AuditQuery, ReadFailed, Recent, SUBJECTS_PER_QUERY_MAX};

/// A handle that reads the audit log of a journal. When the journal is closed it answers [`ReadFailed::Closed`]: one that is opened
/// again has another reader.
#[derive(Clone, Debug)]
pub struct TrailReader(Source);

#[derive(Clone, Debug)]
enum Source {
    Memory(Weak<Mutex<Recent>>),
    /// Weak, so that a reader does not keep the committer running when the journal is closed.
    Embedded(Weak<SyncSender<Order>>),
}

impl TrailReader {
    /// The reader of a journal that is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self(Source::Memory(Weak::new()))
    }

    pub(crate) fn of_memory(recent: &Arc<Mutex<Recent>>) -> Self {
        Self(Source::Memory(Arc::downgrade(recent)))
    }

    pub(crate) fn of_committer(orders: Option<&Arc<SyncSender<Order>>>) -> Self {
        Self(Source::Embedded(orders.map(Arc::downgrade).unwrap_or_default()))
    }

    /// Asks, and does not wait: `done` is called once with the answer, perhaps on another thread, which it must not hold up.
    pub fn read_then(
        &self,
        query: AuditQuery,
        done: impl FnOnce(Result<AuditBatch, ReadFailed>) + Send + 'static,
    ) {
        let count = query.groups.iter().map(Vec::len).sum();
        if count > SUBJECTS_PER_QUERY_MAX {
            return done(Err(ReadFailed::TooMany(count)));
        }
        match &self.0 {
            Source::Memory(recent) => done(match recent.upgrade() {
                Some(recent) => recent.lock().unwrap_or_else(PoisonError::into_inner).read(&query),
                None => Err(ReadFailed::Closed),
            }),
            Source::Embedded(orders) => {
                let answer = Answer::new(done);
                let Some(orders) = orders.upgrade() else { return answer.give(Err(ReadFailed::Closed)) };
                match orders.try_send(Order::Read { query, answer }) {
                    Ok(()) => {}
                    Err(TrySendError::Full(order)) => order.refuse_as_busy(),
                    Err(TrySendError::Disconnected(order)) => order.refuse(),
                }
            }
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the trail could not be read.
    pub fn read(&self, query: AuditQuery) -> Result<AuditBatch, ReadFailed> {
        let (tell, told) = mpsc::sync_channel(1);
        self.read_then(query, move |page| drop(tell.send(page)));
        told.recv().unwrap_or(Err(ReadFailed::Closed))
    }
}
