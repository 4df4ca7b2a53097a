//! The resources and operations of a cluster, and their indexes.

use std::sync::Arc;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};
use forewarn_lifecycle::{BadRows, MaintenanceId, Now, Timestamp};

use super::change::ResourceChange;
use super::operation::{Operation, OperationResult};
use super::resource::{Leaving, Link, Resource};
use crate::limits::OPERATIONS_ENDED_MAX;
use crate::rows::{check_new, check_number_known};
use crate::stream::ClusterId;

/// The resources and operations of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    resources: PagedMap<Arc<str>, Arc<Resource>>,
    operations: PagedMap<u64, Arc<Operation>>,
    next_operation: u64,
    bytes: usize,

    links: PagedMap<Link, Arc<str>>,
    leaving: PagedSet<Arc<str>>,
    names: PagedMap<Arc<str>, u64>,
    /// Work, and the number of an operation that waits for it.
    waits: PagedSet<(MaintenanceId, u64)>,
    /// The number of open operations, by the key of the resource that they are about.
    open: PagedMap<Arc<str>, usize>,
    ended: PagedSet<u64>,
}

/// One row of the stored form of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRow {
    Resource(Resource),
    /// An operation. They ascend.
    Operation(Operation),
    /// The number of the next operation. It follows the operations.
    NextOperation(u64),
}

impl ResourceRow {
    /// The cluster that the row names.
    pub(crate) fn cluster(&self) -> Option<ClusterId> {
        match self {
            Self::Resource(resource) => Some(resource.cluster),
            Self::Operation(operation) => Some(operation.cluster),
            Self::NextOperation(_) => None,
        }
    }
}

impl Resources {
    /// The resource with a key: its id in lower case.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Resource> {
        self.resources.get(key).map(Arc::as_ref)
    }

    /// Resources whose key begins with a prefix, by key.
    pub fn below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        self.below_from(prefix, "")
    }

    /// The resource that stands for an object of the rules, with its key.
    #[must_use]
    pub fn linked(&self, link: Link) -> Option<(&str, &Resource)> {
        let key = self.links.get(&link)?;
        self.get(key).map(|resource| (&**key, resource))
    }

    /// The objects of the rules that resources stand for.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.links.keys().copied()
    }

    /// Resources whose key begins with a prefix, from a key on. Earlier ones cost nothing.
    pub fn below_from<'a>(
        &'a self,
        prefix: &str,
        from: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        let prefix: Arc<str> = prefix.into();
        let from = self.resources.range(Arc::from(from.max(&*prefix))..);
        from.take_while(move |(key, _)| key.starts_with(&*prefix)).map(|(key, one)| (&**key, &**one))
    }

    /// Resources directly below a prefix, from a key on. Those inside of others cost nothing.
    pub fn directly_below<'a>(
        &'a self,
        prefix: &str,
        from: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        let prefix = prefix.to_owned();
        let mut entries = self.below_from(&prefix, from);
        std::iter::from_fn(move || {
            loop {
                let (key, resource) = entries.next()?;
                let Some(end) = key[prefix.len()..].find('/') else { return Some((key, resource)) };
                // The character after a slash: the first key that is not inside.
                entries = self.below_from(&prefix, &format!("{}0", &key[..prefix.len() + end]));
            }
        })
    }

    /// The keys of resources that are marked for removal.
    pub fn leaving(&self) -> impl Iterator<Item = &str> {
        self.leaving.iter().map(Arc::as_ref)
    }

    /// The operation with a name, if it is open or ended not long ago.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(self.names.get(name)?).map(Arc::as_ref)
    }

    /// Returns true while an operation about the resource with that key is open.
    #[must_use]
    pub fn is_operated_on(&self, key: &str) -> bool {
        self.open.contains_key(key)
    }

    /// The lowest number that the next operation can have.
    #[must_use]
    pub fn next_operation(&self) -> u64 {
        self.next_operation
    }

    pub(super) fn is_awaited(&self, maintenance: MaintenanceId) -> bool {
        self.waiting(maintenance).next().is_some()
    }

    /// The numbers of operations that wait for some work.
    fn waiting(&self, maintenance: MaintenanceId) -> impl Iterator<Item = u64> {
        let all = (maintenance, u64::MIN)..=(maintenance, u64::MAX);
        self.waits.range(all).map(|(_, number)| *number)
    }

    pub(super) fn open_count(&self) -> usize {
        self.operations.len() - self.ended.len()
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn apply(&mut self, now: Now, change: &ResourceChange) {
        match change {
            ResourceChange::Put(resource) => self.put(resource.clone()),
            ResourceChange::Removed(key) => self.remove(key),
            ResourceChange::Marked { key, leaving } => self.mark(key, *leaving),
            ResourceChange::Opened(operation) => self.open(operation.clone()),
            ResourceChange::WorkEnded { maintenance, result } => {
                self.work_ended(now.wall, *maintenance, result);
            }
        }
    }

    fn put(&mut self, resource: Resource) {
        let key: Arc<str> = resource.key().into();
        self.remove(&key);
        self.bytes += resource.bytes();
        if let Some(link) = resource.link {
            self.links.insert(link, Arc::clone(&key));
        }
        if resource.leaving == Leaving::Leaves {
            self.leaving.insert(Arc::clone(&key));
        }
        self.resources.insert(key, Arc::new(resource));
    }

    fn remove(&mut self, key: &str) {
        let Some(resource) = self.resources.remove(key) else { return };
        self.bytes -= resource.bytes();
        self.leaving.remove(key);
        if let Some(link) = resource.link {
            self.links.remove(&link);
        }
    }

    fn mark(&mut self, key: &str, leaving: Leaving) {
        let Some(resource) = self.resources.get_mut(key) else { return };
        Arc::make_mut(resource).leaving = leaving;
        match leaving {
            Leaving::Stays => drop(self.leaving.remove(key)),
            Leaving::Leaves => drop(self.leaving.insert(key.into())),
        }
    }

    /// Opens an operation. Of those that have ended, the oldest is removed when there are too many.
    fn open(&mut self, operation: Operation) {
        self.next_operation = self.next_operation.max(operation.number.saturating_add(1));
        self.put_operation(operation);
        while self.ended.len() > OPERATIONS_ENDED_MAX {
            let Some(oldest) = self.ended.pop_first() else { break };
            if let Some(removed) = self.operations.remove(&oldest) {
                self.names.remove(removed.name.as_str());
            }
        }
    }

    fn put_operation(&mut self, operation: Operation) {
        let number = operation.number;
        self.names.insert(operation.name.as_str().into(), number);
        if operation.is_open() {
            *self.open.get_or_default(&operation.about.as_str().into()) += 1;
            self.waits.extend(operation.waits.iter().map(|work| (*work, number)));
        } else {
            self.ended.insert(number);
        }
        self.operations.insert(number, Arc::new(operation));
    }

    fn work_ended(&mut self, now: Timestamp, maintenance: MaintenanceId, result: &OperationResult) {
        let waiting: Vec<_> = self.waiting(maintenance).collect();
        for number in waiting {
            self.waits.remove(&(maintenance, number));
            let Some(operation) = self.operations.get_mut(&number).map(Arc::make_mut) else { continue };
            operation.work_ended(maintenance, result, now);
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

    /// The resources as rows.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = ResourceRow> + Send + 'static {
        let next = self.next_operation;
        let resources = self.resources.into_iter();
        let resources = resources.map(|(_, one)| ResourceRow::Resource(Arc::unwrap_or_clone(one)));
        let operations = self.operations.into_iter();
        let operations = operations.map(|(_, one)| ResourceRow::Operation(Arc::unwrap_or_clone(one)));
        resources.chain(operations).chain(std::iter::once(ResourceRow::NextOperation(next)))
    }

    /// Takes the next row.
    pub(crate) fn restore(&mut self, row: ResourceRow) -> Result<(), BadRows> {
        let last = self.operations.last().map(|(number, _)| *number);
        match row {
            ResourceRow::Resource(resource) => {
                check_new(self.get(&resource.key()))?;
                check_new(resource.link.and_then(|link| self.links.get(&link)))?;
                self.put(resource);
            }
            ResourceRow::Operation(operation) => {
                check_new(self.operation(&operation.name))?;
                if last.is_some_and(|last| last >= operation.number) {
                    return Err(BadRows("operations do not ascend"));
                }
                if operation.is_open() == operation.waits.is_empty() {
                    return Err(BadRows("an operation waits for nothing, or for something after its end"));
                }
                self.put_operation(operation);
            }
            ResourceRow::NextOperation(next) => {
                last.map_or(Ok(()), |last| check_number_known(&last, &next))?;
                self.next_operation = next;
            }
        }
        Ok(())
    }
}
