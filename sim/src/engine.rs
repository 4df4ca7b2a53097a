//! The engine: a store of keys with transactions and leases, as etcd, for the streams of a realm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ClusterEntry, ClusterId, Entry, Record};
use forewarn_ownership::{Answer, BatchId, Head, OwnerRecord, Revision, ServerName, Transaction};

use crate::omission::Omission;

/// Time without a renewal after which the key of a server is gone, in milliseconds.
const LEASE_MILLIS: u64 = 5_000;

pub(crate) type StreamHead = Head<HeadDetails>;
pub(crate) type Payload = Arc<LogBatch>;
pub(crate) type StreamTransaction = Transaction<HeadDetails, Payload>;
pub(crate) type StreamAnswer = Answer<HeadDetails>;

/// The details of a head: the end of the audit log, and the number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadDetails {
    pub(crate) chain: Chain,
    pub(crate) records: u64,
}

/// The use of the audit entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditMode {
    Append,
    /// They replace the last entries, which no reader has seen.
    Rewrite,
}

/// One batch of a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogBatch {
    pub(crate) records: Vec<Record>,
    pub(crate) entries: Vec<Arc<AuditEntry>>,
    pub(crate) mode: AuditMode,
}

impl LogBatch {
    /// Adds the entries of the batch to an audit log.
    pub(crate) fn extend_audit(&self, log: &mut Vec<Arc<AuditEntry>>) {
        if self.mode == AuditMode::Rewrite
            && let Some(first) = self.entries.first()
        {
            log.retain(|entry| entry.number < first.number);
        }
        log.extend(self.entries.iter().cloned());
    }

    /// True if the batch ends with announcements that no VM may have read.
    pub(crate) fn announces(&self) -> bool {
        let last = self.records.last().map(|record| &record.entry);
        matches!(last, Some(Entry::Cluster(_, ClusterEntry::Unread(_))))
    }
}

/// A call of a server.
#[derive(Clone, Debug)]
pub(crate) enum EngineCall {
    Transact(ClusterId, Box<StreamTransaction>),
    /// Reads all keys at one revision, and the batches of each stream after a number.
    Look(BTreeMap<ClusterId, u64>),
    KeepLease(ServerName),
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub(crate) enum EngineAnswer {
    Transacted(Box<StreamAnswer>),
    Looked(Arc<EngineView>),
    LeaseKept,
}

/// All keys at one revision.
#[derive(Clone, Debug)]
pub(crate) struct EngineView {
    pub(crate) revision: i64,
    pub(crate) members: BTreeSet<ServerName>,
    pub(crate) streams: BTreeMap<ClusterId, StreamView>,
}

/// The keys of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamView {
    pub(crate) revision: Revision,
    pub(crate) head: Option<StreamHead>,
    pub(crate) owner: Option<OwnerRecord>,
    pub(crate) batches: Vec<(u64, Payload)>,
}

/// A batch that was written, for the observer.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) cluster: ClusterId,
    pub(crate) number: u64,
    pub(crate) batch: BatchId,
    pub(crate) payload: Payload,
    pub(crate) term: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Engine {
    revision: i64,
    streams: BTreeMap<ClusterId, StreamKeys>,
    leases: BTreeMap<ServerName, u64>,
}

/// One stream.
#[derive(Debug, Default)]
pub(crate) struct StreamKeys {
    pub(crate) revision: Revision,
    pub(crate) head: Option<StreamHead>,
    pub(crate) owner: Option<OwnerRecord>,
    pub(crate) log: BTreeMap<u64, (BatchId, Payload)>,
}

impl Engine {
    pub(crate) fn new(clusters: impl Iterator<Item = ClusterId>) -> Self {
        let streams = clusters.map(|id| (id, StreamKeys::default())).collect();
        Self { revision: 0, streams, leases: BTreeMap::new() }
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = (ClusterId, &StreamKeys)> {
        self.streams.iter().map(|(id, keys)| (*id, keys))
    }

    pub(crate) fn stream(&self, id: ClusterId) -> Option<&StreamKeys> {
        self.streams.get(&id)
    }

    /// Executes a call. Returns also the batch that it has written.
    pub(crate) fn execute(
        &mut self,
        now: u64,
        call: EngineCall,
        omission: Option<Omission>,
    ) -> (EngineAnswer, Option<Written>) {
        match call {
            EngineCall::Transact(id, transaction) => {
                let (answer, written) = self.transact(id, *transaction, omission);
                (EngineAnswer::Transacted(Box::new(answer)), written)
            }
            EngineCall::Look(after) => (EngineAnswer::Looked(Arc::new(self.look(now, &after))), None),
            EngineCall::KeepLease(server) => {
                self.leases.insert(server, now + LEASE_MILLIS);
                (EngineAnswer::LeaseKept, None)
            }
        }
    }

    fn transact(
        &mut self,
        cluster: ClusterId,
        transaction: StreamTransaction,
        omission: Option<Omission>,
    ) -> (StreamAnswer, Option<Written>) {
        let Some(keys) = self.streams.get_mut(&cluster) else { return (Answer::Rejected, None) };
        if !keys.matches(&transaction, omission) {
            return (Answer::Conflict { revision: keys.revision, head: keys.head.clone() }, None);
        }
        self.revision += 1;
        let Transaction { owner, head, payload, .. } = transaction;
        let written = payload.map(|payload| {
            keys.log.insert(head.number, (head.batch, Arc::clone(&payload)));
            Written { cluster, number: head.number, batch: head.batch, payload, term: head.term.0 }
        });
        keys.owner = owner.or(keys.owner.take());
        (keys.head, keys.revision) = (Some(head), Revision(self.revision));
        (Answer::Applied { revision: keys.revision }, written)
    }

    fn look(&self, now: u64, after: &BTreeMap<ClusterId, u64>) -> EngineView {
        let stream = |(id, keys): (&ClusterId, &StreamKeys)| {
            let first = after.get(id).copied().unwrap_or(0) + 1;
            let batches =
                keys.log.range(first..).map(|(number, (_, payload))| (*number, Arc::clone(payload)));
            let view = StreamView {
                revision: keys.revision,
                head: keys.head.clone(),
                owner: keys.owner.clone(),
                batches: batches.collect(),
            };
            (*id, view)
        };
        let live = self.leases.iter().filter(|(_, until)| **until > now);
        EngineView {
            revision: self.revision,
            members: live.map(|(server, _)| server.clone()).collect(),
            streams: self.streams.iter().map(stream).collect(),
        }
    }
}

impl StreamKeys {
    /// True if the comparison of a transaction succeeds.
    fn matches(&self, transaction: &StreamTransaction, omission: Option<Omission>) -> bool {
        let term = self.owner.as_ref().map(|owner| owner.term);
        match (omission, &transaction.owner) {
            (Some(Omission::CommitComparison), None) => Some(transaction.head.term) == term,
            (Some(Omission::TakeoverComparison), Some(_)) => true,
            (Some(_) | None, _) => transaction.expected == self.revision,
        }
    }
}
