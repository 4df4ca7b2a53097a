//! The state of the register, and its indexes.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{MaintenanceId, Now};

use super::entry::{Entry, Leaving, Link};
use super::operation::Operation;
use super::{Ending, Filed};
use crate::shared::cluster::ClusterId;
use crate::shared::limits::OPERATIONS_ENDED_MAX;

/// Entries and operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Register {
    entries: BTreeMap<String, Entry>,
    operations: BTreeMap<u64, Operation>,
    next_operation: u64,
    bytes: usize,

    links: BTreeMap<(ClusterId, Link), String>,
    leaving: BTreeSet<String>,
    names: BTreeMap<String, u64>,
    /// Which operations wait for some work.
    waits: BTreeMap<(ClusterId, MaintenanceId), BTreeSet<u64>>,
    /// How many operations are open, by what they are about.
    open: BTreeMap<String, usize>,
    ended: BTreeSet<u64>,
}

impl Register {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Entries whose key begins so, by key.
    pub(crate) fn below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
        let from =
            self.entries.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        let owned = prefix.to_owned();
        from.take_while(move |(key, _)| key.starts_with(&owned)).map(|(key, entry)| (key.as_str(), entry))
    }

    pub(crate) fn linked(&self, cluster: ClusterId, link: Link) -> Option<(&str, &Entry)> {
        let key = self.links.get(&(cluster, link))?;
        self.entries.get_key_value(key).map(|(key, entry)| (key.as_str(), entry))
    }

    pub(crate) fn leaving(&self) -> impl Iterator<Item = &str> {
        self.leaving.iter().map(String::as_str)
    }

    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(self.names.get(name)?)
    }

    pub(crate) fn is_awaited(&self, cluster: ClusterId, maintenance: MaintenanceId) -> bool {
        self.waits.contains_key(&(cluster, maintenance))
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
        let key = entry.key();
        self.remove(&key);
        self.bytes += entry.bytes();
        if let Some(link) = entry.link {
            self.links.insert((entry.cluster, link), key.clone());
        }
        if entry.leaving == Leaving::Leaves {
            self.leaving.insert(key.clone());
        }
        self.entries.insert(key, entry);
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
        entry.leaving = leaving;
        match leaving {
            Leaving::Stays => drop(self.leaving.remove(key)),
            Leaving::Leaves => drop(self.leaving.insert(key.to_owned())),
        }
    }

    /// An operation begins. Of those that have ended, the oldest is forgotten when there are too many.
    fn open(&mut self, operation: Operation) {
        self.next_operation = self.next_operation.max(operation.number.saturating_add(1));
        self.restore_operation(operation);
        while self.ended.len() > OPERATIONS_ENDED_MAX {
            let Some(oldest) = self.ended.pop_first() else { break };
            if let Some(forgotten) = self.operations.remove(&oldest) {
                self.names.remove(&forgotten.name);
            }
        }
    }

    fn over(&mut self, now: Now, cluster: ClusterId, maintenance: MaintenanceId, how: &Ending) {
        for number in self.waits.remove(&(cluster, maintenance)).unwrap_or_default() {
            let Some(operation) = self.operations.get_mut(&number) else { continue };
            operation.over(maintenance, how, now.wall);
            if operation.is_open() {
                continue;
            }
            self.ended.insert(number);
            if let Some(count) = self.open.get_mut(&operation.about) {
                *count -= 1;
                if *count == 0 {
                    self.open.remove(&operation.about);
                }
            }
        }
    }

    /// As rows: entries, then operations.
    pub(crate) fn into_rows(self) -> (impl Iterator<Item = Entry>, impl Iterator<Item = Operation>) {
        (self.entries.into_values(), self.operations.into_values())
    }

    pub(crate) fn restore_entry(&mut self, entry: Entry) {
        self.put(entry);
    }

    pub(crate) fn restore_operation(&mut self, operation: Operation) {
        let number = operation.number;
        self.names.insert(operation.name.clone(), number);
        if operation.is_open() {
            *self.open.entry(operation.about.clone()).or_default() += 1;
            for work in &operation.waits {
                self.waits.entry((operation.cluster, *work)).or_default().insert(number);
            }
        } else {
            self.ended.insert(number);
        }
        self.operations.insert(number, operation);
    }

    pub(crate) fn restore_next(&mut self, next: u64) {
        self.next_operation = next;
    }

    pub(crate) fn last_operation(&self) -> Option<u64> {
        self.operations.last_key_value().map(|(number, _)| *number)
    }
}
