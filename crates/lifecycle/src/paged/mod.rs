//! Ordered maps and sets whose copies share memory.
//!
//! ```text
//!   PagedMap ── root page ──┬── inner page ──┬── leaf page: up to 32 entries, ascending
//!                           │                └── …
//!                           └── …                         every page is behind an Arc
//! ```
//!
//! A copy of a map is one pointer. The first change after a copy clones the pages between the root and one leaf; every
//! other page stays shared. A page that no copy shares is changed in place. An entry that holds much memory of its own
//! belongs behind an `Arc`, because its whole leaf is cloned.

mod build;
mod iter;
mod page;
mod set;

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

pub use iter::{IntoIter, Iter, Range};
pub use set::PagedSet;

use page::{Branch, Insertion, Page};

use crate::reads::count_read;

/// An ordered map whose copies share memory.
///
/// ```
/// use forewarn_lifecycle::paged::PagedMap;
/// let mut map: PagedMap<&str, u32> = [("b", 2), ("a", 1)].into_iter().collect();
/// let copy = map.clone();
/// map.insert("c", 3);
/// assert_eq!(copy.iter().collect::<Vec<_>>(), [(&"a", &1), (&"b", &2)]);
/// assert_eq!(map.get("c"), Some(&3));
/// ```
#[derive(Clone)]
pub struct PagedMap<K, V> {
    root: Option<Arc<Page<K, V>>>,
    length: usize,
}

impl<K, V> PagedMap<K, V> {
    /// An empty map. It takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: None, length: 0 }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        let mut page = self.root.as_deref()?;
        loop {
            match page {
                Page::Leaf(entries) => return entries.first().map(|(key, value)| (key, value)),
                Page::Inner(branches) => page = &branches.first()?.page,
            }
        }
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last(&self) -> Option<(&K, &V)> {
        let mut page = self.root.as_deref()?;
        loop {
            match page {
                Page::Leaf(entries) => return entries.last().map(|(key, value)| (key, value)),
                Page::Inner(branches) => page = &branches.last()?.page,
            }
        }
    }
}

impl<K: Ord, V> PagedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        count_read();
        let mut page = self.root.as_deref()?;
        loop {
            match page {
                Page::Leaf(entries) => {
                    let index = page::find(entries, key).ok()?;
                    return Some(&entries[index].1);
                }
                Page::Inner(branches) => page = &branches[page::branch_index(branches, key)].page,
            }
        }
    }

    /// Returns true if there is an entry with that key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Every entry, in the order of the keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::starting(self.root.as_deref(), Bound::Unbounded)
    }

    /// Every key, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Every value, in the order of the keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The entries whose keys lie within the bounds. The entries before them cost nothing.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> Range<'_, K, V>
    where
        K: Clone,
    {
        let entries = Iter::starting(self.root.as_deref(), bounds.start_bound());
        Range::new(entries, bounds.end_bound().cloned())
    }
}

impl<K: Ord + Clone, V: Clone> PagedMap<K, V> {
    /// The value of a key, to be changed. Clones the shared pages on the way to it, even if there is no such key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let mut page = Arc::make_mut(self.root.as_mut()?);
        loop {
            match page {
                Page::Leaf(entries) => {
                    let index = page::find(entries, key).ok()?;
                    return Some(&mut entries[index].1);
                }
                Page::Inner(branches) => {
                    let index = page::branch_index(branches, key);
                    page = Arc::make_mut(&mut branches[index].page);
                }
            }
        }
    }

    /// The value of a key, to be changed. A key without a value gets the default one.
    pub fn get_or_default(&mut self, key: &K) -> &mut V
    where
        V: Default,
    {
        if !self.contains_key(key) {
            self.insert(key.clone(), V::default());
        }
        self.get_mut(key).expect("a key with a value")
    }

    /// Gives a key a value, and returns the value that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Page::Leaf(vec![(key, value)])));
            self.length = 1;
            return None;
        };
        match Arc::make_mut(root).insert(key, value) {
            Insertion::Replaced(before) => return Some(before),
            Insertion::Added => {}
            Insertion::Split(right) => {
                let first = right.first.clone();
                let left = Branch { first, page: Arc::clone(root) };
                *root = Arc::new(Page::Inner(vec![left, right]));
            }
        }
        self.length += 1;
        None
    }

    /// Removes the entry of a key, and returns its value. Clones the shared pages on the way to it, even if there is no
    /// such key.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let root = self.root.as_mut()?;
        let value = Arc::make_mut(root).remove(key)?;
        self.length -= 1;
        if self.length == 0 {
            self.root = None;
        } else if let Some(only) = root.only_child() {
            *root = only;
        }
        Some(value)
    }
}

impl<K, V> Default for PagedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for PagedMap<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Builds whole pages. Of several entries with one key, the last one counts.
impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for PagedMap<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    std::mem::swap(later, earlier);
                }
                is_same
            });
        }
        let length = entries.len();
        Self { root: build::build(entries), length }
    }
}

impl<K: Clone, V: Clone> IntoIterator for PagedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter::new(self.root)
    }
}

impl<'a, K: Ord, V> IntoIterator for &'a PagedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord, V: PartialEq> PartialEq for PagedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length && self.iter().eq(other.iter())
    }
}

impl<K: Ord, V: Eq> Eq for PagedMap<K, V> {}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for PagedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
impl<K: Ord, V> PagedMap<K, V> {
    /// The number of pages.
    pub(crate) fn page_count(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.check(None, None).1)
    }
}

#[cfg(test)]
mod tests;
