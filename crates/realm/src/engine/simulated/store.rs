//! The store of the simulated engine: keys with all of their revisions since the last compaction.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use forewarn_ownership::Revision;

use crate::engine::error::{EngineError, EngineRefusal};
use crate::engine::request::{
    EngineOperation, EngineStatus, EngineTransaction, KeyEvent, KeyPage, KeySpan, KeyValue, LeaseId,
    ReadContent, ReadRequest, TransactionAnswer,
};

/// Maximum bytes of a request, as in etcd.
pub const SIMULATED_REQUEST_BYTES_MAX: usize = 3 << 19;

/// Maximum operations of a transaction, as in etcd.
pub const SIMULATED_OPERATIONS_MAX: usize = 128;

/// A value from a revision on. None: the key was deleted.
#[derive(Clone, Debug)]
struct KeyVersion {
    revision: i64,
    value: Option<Bytes>,
}

#[derive(Clone, Debug)]
pub(super) struct SimulatedStore {
    cluster_id: u64,
    revision: i64,
    /// The first revision that can be read or watched.
    compacted: i64,
    keys: BTreeMap<Bytes, Vec<KeyVersion>>,
    /// Changes since the last compaction, by revision.
    events: BTreeMap<i64, Vec<KeyEvent>>,
    leases: BTreeMap<LeaseId, BTreeSet<Bytes>>,
    next_lease: i64,
}

impl SimulatedStore {
    pub(super) fn new(cluster_id: u64) -> Self {
        Self {
            cluster_id,
            revision: 1,
            compacted: 0,
            keys: BTreeMap::new(),
            events: BTreeMap::new(),
            leases: BTreeMap::new(),
            next_lease: 1,
        }
    }

    pub(super) fn restored(&self) -> Self {
        let mut restored = Self { cluster_id: self.cluster_id + 1, ..self.clone() };
        self.leases.keys().for_each(|lease| restored.end_lease(*lease));
        restored
    }

    pub(super) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    pub(super) fn status(&self) -> EngineStatus {
        EngineStatus { cluster_id: self.cluster_id, revision: self.revision() }
    }

    /// The keys of a span, as they were at a revision.
    fn found(&self, keys: &KeySpan, revision: i64) -> impl Iterator<Item = KeyValue> {
        let range = self.keys.range(keys.first().clone()..);
        let range = range.take_while(|(key, _)| keys.contains(key));
        range.filter_map(move |(key, versions)| {
            let version = versions.iter().rev().find(|version| version.revision <= revision)?;
            let value = version.value.clone()?;
            Some(KeyValue { key: key.clone(), value, mod_revision: Revision(version.revision) })
        })
    }

    pub(super) fn read(&self, request: &ReadRequest) -> Result<KeyPage, EngineError> {
        let revision = match request.revision {
            None => self.revision,
            Some(Revision(old)) if old < self.compacted => {
                return Err(EngineError::Compacted(Some(Revision(self.compacted))));
            }
            Some(Revision(future)) if future > self.revision => {
                return Err(EngineError::NotReached("a revision of the future".to_owned()));
            }
            Some(Revision(revision)) => revision,
        };
        let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut found = self.found(&request.keys, revision);
        let mut entries: Vec<_> = found.by_ref().take(limit).collect();
        if request.content == ReadContent::Keys {
            entries.iter_mut().for_each(|entry| entry.value = Bytes::new());
        }
        Ok(KeyPage { has_more: found.next().is_some(), entries, revision: self.revision() })
    }

    pub(super) fn transact(
        &mut self,
        transaction: &EngineTransaction,
    ) -> Result<TransactionAnswer, EngineError> {
        self.check(transaction)?;
        let succeeded = transaction.guards.iter().all(|guard| {
            let found = self.found(&KeySpan::one(guard.key.clone()), self.revision).next();
            found.map_or(Revision::ABSENT, |entry| entry.mod_revision) == guard.revision
        });
        let operations = if succeeded { &transaction.then } else { &transaction.otherwise };
        let mut events = Vec::new();
        let mut reads = Vec::new();
        for operation in operations {
            match operation {
                EngineOperation::Put { key, value, lease } => {
                    events.push(self.put(key, value, *lease));
                }
                EngineOperation::Delete(keys) => self.delete(keys, &mut events),
                EngineOperation::Read(request) => reads.push(self.read(request)?.entries),
            }
        }
        self.finish(events);
        Ok(TransactionAnswer { succeeded, revision: self.revision(), reads })
    }

    /// Refuses what etcd refuses.
    fn check(&self, transaction: &EngineTransaction) -> Result<(), EngineError> {
        let too_large = |message: &str| Err(EngineError::refused(EngineRefusal::TooLarge, message));
        if transaction.bytes() > SIMULATED_REQUEST_BYTES_MAX {
            return too_large("request is too large");
        }
        let EngineTransaction { guards, then, otherwise } = transaction;
        if [guards.len(), then.len(), otherwise.len()].iter().any(|count| *count > SIMULATED_OPERATIONS_MAX) {
            return too_large("too many operations in a transaction");
        }
        let mut written = BTreeSet::new();
        for operation in then {
            if let EngineOperation::Put { key, lease, .. } = operation {
                if !written.insert(key) {
                    return Err(EngineError::refused(EngineRefusal::Invalid, "duplicate key"));
                }
                lease.map_or(Ok(()), |lease| self.check_lease(lease))?;
            }
        }
        Ok(())
    }

    /// Writes a key at the next revision.
    fn put(&mut self, key: &Bytes, value: &Bytes, lease: Option<LeaseId>) -> KeyEvent {
        let revision = self.revision + 1;
        for keys in self.leases.values_mut() {
            keys.remove(key);
        }
        if let Some(keys) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            keys.insert(key.clone());
        }
        let versions = self.keys.entry(key.clone()).or_default();
        versions.push(KeyVersion { revision, value: Some(value.clone()) });
        let (key, value) = (key.clone(), value.clone());
        KeyEvent::Put(KeyValue { key, value, mod_revision: Revision(revision) })
    }

    /// Deletes keys at the next revision.
    fn delete(&mut self, keys: &KeySpan, events: &mut Vec<KeyEvent>) {
        let revision = self.revision + 1;
        let found: Vec<_> = self.found(keys, revision).map(|entry| entry.key).collect();
        for key in found {
            if let Some(versions) = self.keys.get_mut(&key) {
                versions.push(KeyVersion { revision, value: None });
            }
            events.push(KeyEvent::Deleted { key, mod_revision: Revision(revision) });
        }
    }

    fn finish(&mut self, events: Vec<KeyEvent>) {
        if !events.is_empty() {
            self.revision += 1;
            self.events.insert(self.revision, events);
        }
    }

    /// Events of a span from a revision on, with the first revision after them.
    pub(super) fn events_from(
        &self,
        keys: &KeySpan,
        start: i64,
    ) -> Result<(Vec<KeyEvent>, i64), EngineError> {
        if start < self.compacted {
            return Err(EngineError::Compacted(Some(Revision(self.compacted))));
        }
        let events = self.events.range(start..).flat_map(|(_, events)| events);
        let events = events.filter(|event| keys.contains(event.key())).cloned().collect();
        Ok((events, start.max(self.revision + 1)))
    }

    pub(super) fn compact(&mut self, Revision(revision): Revision) -> Result<(), EngineError> {
        if revision > self.revision {
            return Err(EngineError::refused(EngineRefusal::Invalid, "a revision of the future"));
        }
        if revision <= self.compacted {
            return Ok(());
        }
        self.compacted = revision;
        self.events = self.events.split_off(&revision);
        self.keys.retain(|_, versions| {
            let kept = versions.iter().rposition(|version| version.revision <= revision);
            versions.drain(..kept.unwrap_or(0));
            !matches!(versions[..], [KeyVersion { value: None, revision: last }] if last <= revision)
        });
        Ok(())
    }

    pub(super) fn grant_lease(&mut self) -> LeaseId {
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        self.leases.insert(lease, BTreeSet::new());
        lease
    }

    pub(super) fn check_lease(&self, lease: LeaseId) -> Result<(), EngineError> {
        match self.leases.get(&lease) {
            Some(_) => Ok(()),
            None => Err(EngineError::refused(EngineRefusal::NoLease, "no such lease")),
        }
    }

    pub(super) fn end_lease(&mut self, lease: LeaseId) {
        let keys = self.leases.remove(&lease).unwrap_or_default();
        let mut events = Vec::new();
        keys.into_iter().for_each(|key| self.delete(&KeySpan::one(key), &mut events));
        self.finish(events);
    }

    pub(super) fn damage(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let version = self.keys.get_mut(key).and_then(|versions| versions.last_mut());
        let Some(value) = version.and_then(|version| version.value.as_mut()) else { return false };
        let mut bytes = value.to_vec();
        change(&mut bytes);
        *value = bytes.into();
        true
    }

    pub(super) fn contents(&self) -> Vec<KeyValue> {
        self.keys
            .keys()
            .filter_map(|key| self.found(&KeySpan::one(key.clone()), self.revision).next())
            .collect()
    }
}
