//! The state of the register, and its indexes.

use std::sync::Arc;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};
use forewarn_lifecycle::{MaintenanceId, Now};

use super::entry::{Entry, Leaving, Link};
use super::operation::Operation;
use super::{Ending, Filed};
use crate::shared::cluster::ClusterId;
use crate::shared::limits::OPERATIONS_ENDED_MAX;

/// Entries and operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Register {
    entries: PagedMap<Arc<str>, Arc<Entry>>,
    operations: PagedMap<u64, Arc<Operation>>,
    next_operation: u64,
    bytes: usize,

    links: PagedMap<(ClusterId, Link), Arc<str>>,
    leaving: PagedSet<Arc<str>>,
    names: PagedMap<Arc<str>, u64>,
    /// Work, and the number of an operation that waits for it.
    waits: PagedSet<(ClusterId, MaintenanceId, u64)>,
    /// The number of open operations, by the key of what they are about.
    open: PagedMap<Arc<str>, usize>,
    ended: PagedSet<u64>,
}

impl Register {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key).map(Arc::as_ref)
    }

    /// Entries whose key begins so, by key.
    pub(crate) fn below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
        let prefix: Arc<str> = prefix.into();
        let from = self.entries.range(Arc::clone(&prefix)..);
        from.take_while(move |(key, _)| key.starts_with(&*prefix)).map(|(key, entry)| (&**key, &**entry))
    }

    pub(crate) fn linked(&self, cluster: ClusterId, link: Link) -> Option<(&str, &Entry)> {
        let key = self.links.get(&(cluster, link))?;
        self.entry(key).map(|entry| (&**key, entry))
    }

    pub(crate) fn leaving(&self) -> impl Iterator<Item = &str> {
        self.leaving.iter().map(Arc::as_ref)
    }

    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(self.names.get(name)?).map(Arc::as_ref)
    }

    pub(crate) fn is_awaited(&self, cluster: ClusterId, maintenance: MaintenanceId) -> bool {
        self.waiting(cluster, maintenance).next().is_some()
    }

    /// The numbers of operations that wait for some work.
    fn waiting(&self, cluster: ClusterId, maintenance: MaintenanceId) -> impl Iterator<Item = u64> {
        let all = (cluster, maintenance, u64::MIN)..=(cluster, maintenance, u64::MAX);
        self.waits.range(all).map(|(_, _, number)| *number)
    }

    pub(crate) fn has_open(&self, about: &str) -> bool {
        self.open.contains_key(about)
    }

    pub(crate) fn open_count(&self) -> usize {
        self.operations.len() - self.ended.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn next_operation(&self) -> u64 {
        self.next_operation
    }

    pub(crate) fn evolve(&mut self, now: Now, filed: &Filed) {
        match filed {
            Filed::Put(entry) => self.put(entry.clone()),
            Filed::Removed(key) => self.remove(key),
            Filed::Marked { key, leaving } => self.mark(key, *leaving),
            Filed::Opened(operation) => self.open(operation.clone()),
            Filed::OpenedWith { operation, token } => {
                self.open(Operation { token: Some(*token), ..operation.clone() });
            }
            Filed::Over { cluster, maintenance, how } => self.over(now, *cluster, *maintenance, how),
        }
    }

    /// Everything of a cluster goes with it.
    pub(crate) fn forget(&mut self, cluster: ClusterId) {
        let gone = self.entries.iter().filter(|(_, entry)| entry.cluster == cluster);
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.remove(key));
    }

    fn put(&mut self, entry: Entry) {
        let key: Arc<str> = entry.key().into();
        self.remove(&key);
        self.bytes += entry.bytes();
        if let Some(link) = entry.link {
            self.links.insert((entry.cluster, link), Arc::clone(&key));
        }
        if entry.leaving == Leaving::Leaves {
            self.leaving.insert(Arc::clone(&key));
        }
        self.entries.insert(key, Arc::new(entry));
    }

    fn remove(&mut self, key: &str) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.bytes -= entry.bytes();
        self.leaving.remove(key);
        if let Some(link) = entry.link {
            self.links.remove(&(entry.cluster, link));
        }
    }

    fn mark(&mut self, key: &str, leaving: Leaving) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        Arc::make_mut(entry).leaving = leaving;
        match leaving {
            Leaving::Stays => drop(self.leaving.remove(key)),
            Leaving::Leaves => drop(self.leaving.insert(key.into())),
        }
    }

    /// An operation begins. Of those that have ended, the oldest is forgotten when there are too many.
    fn open(&mut self, operation: Operation) {
        self.next_operation = self.next_operation.max(operation.number.saturating_add(1));
        self.restore_operation(operation);
        while self.ended.len() > OPERATIONS_ENDED_MAX {
            let Some(oldest) = self.ended.pop_first() else { break };
            if let Some(forgotten) = self.operations.remove(&oldest) {
                self.names.remove(forgotten.name.as_str());
            }
        }
    }

    fn over(&mut self, now: Now, cluster: ClusterId, maintenance: MaintenanceId, how: &Ending) {
        let waiting: Vec<_> = self.waiting(cluster, maintenance).collect();
        for number in waiting {
            self.waits.remove(&(cluster, maintenance, number));
            let Some(operation) = self.operations.get_mut(&number).map(Arc::make_mut) else { continue };
            operation.over(maintenance, how, now.wall);
            if operation.is_open() {
                continue;
            }
            self.ended.insert(number);
            if let Some(count) = self.open.get_mut(operation.about.as_str()) {
                *count -= 1;
                if *count == 0 {
                    self.open.remove(operation.about.as_str());
                }
            }
        }
    }

    /// As rows: entries, then operations.
    pub(crate) fn into_rows(self) -> (impl Iterator<Item = Entry>, impl Iterator<Item = Operation>) {
        let entries = self.entries.into_iter().map(|(_, entry)| Arc::unwrap_or_clone(entry));
        let operations = self.operations.into_iter().map(|(_, operation)| Arc::unwrap_or_clone(operation));
        (entries, operations)
    }

    pub(crate) fn restore_entry(&mut self, entry: Entry) {
        self.put(entry);
    }

    pub(crate) fn restore_operation(&mut self, operation: Operation) {
        let number = operation.number;
        self.names.insert(operation.name.as_str().into(), number);
        if operation.is_open() {
            *self.open.get_or_default(&operation.about.as_str().into()) += 1;
            for work in operation.waits.iter() {
                self.waits.insert((operation.cluster, *work, number));
            }
        } else {
            self.ended.insert(number);
        }
        self.operations.insert(number, Arc::new(operation));
    }

    pub(crate) fn restore_next(&mut self, next: u64) {
        self.next_operation = next;
    }

    pub(crate) fn last_operation(&self) -> Option<u64> {
        self.operations.last().map(|(number, _)| *number)
    }
}
