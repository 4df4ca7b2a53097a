//! An ordered set whose copies share memory.

use std::borrow::Borrow;
use std::fmt;
use std::ops::RangeBounds;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PagedMap;

/// An ordered set whose copies share memory: a [`PagedMap`] of keys alone.
#[derive(Clone, PartialEq, Eq)]
pub struct PagedSet<K: Ord>(PagedMap<K, ()>);

impl<K: Ord> PagedSet<K> {
    /// An empty set. It takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self(PagedMap::new())
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The least key.
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.0.first().map(|(key, ())| key)
    }

    /// Returns true if the set has that key.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Every key, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// The keys within the bounds, ascending. The keys before them cost nothing.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> impl Iterator<Item = &K>
    where
        K: Clone,
    {
        self.0.range(bounds).map(|(key, ())| key)
    }
}

impl<K: Ord + Clone> PagedSet<K> {
    /// Adds a key. Returns whether it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Removes a key. Returns whether it was there. Clones the shared pages on the way to it in either case.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).is_some()
    }

    /// Removes the least key, and returns it.
    pub fn pop_first(&mut self) -> Option<K> {
        let first = self.first()?.clone();
        self.remove(&first);
        Some(first)
    }
}

#[cfg(test)]
impl<K: Ord> PagedSet<K> {
    /// The number of pages.
    pub(crate) fn page_count(&self) -> usize {
        self.0.page_count()
    }
}

impl<K: Ord> Default for PagedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone> Extend<K> for PagedSet<K> {
    fn extend<T: IntoIterator<Item = K>>(&mut self, keys: T) {
        self.0.extend(keys.into_iter().map(|key| (key, ())));
    }
}

impl<K: Ord + Clone> FromIterator<K> for PagedSet<K> {
    fn from_iter<T: IntoIterator<Item = K>>(keys: T) -> Self {
        Self(keys.into_iter().map(|key| (key, ())).collect())
    }
}

impl<K: Ord + Serialize> Serialize for PagedSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, K: Ord + Clone + Deserialize<'de>> Deserialize<'de> for PagedSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|keys: Vec<K>| keys.into_iter().collect())
    }
}

impl<K: Ord + fmt::Debug> fmt::Debug for PagedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
