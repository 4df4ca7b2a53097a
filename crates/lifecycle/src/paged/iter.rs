//! Iteration over the entries of a map, in the order of the keys.

use std::ops::Bound;
use std::sync::Arc;
use std::{slice, vec};

use super::page::{Branch, Page, branch_index};
use crate::reads::count_read;

/// Entries of a map from some key on. Holds one leaf at a time; the next leaf is found from the root.
pub struct Iter<'a, K, V> {
    root: Option<&'a Page<K, V>>,
    leaf: slice::Iter<'a, (K, V)>,
    /// Lower bound of the keys of the next leaf; every key of the current leaf is less. `None` after the last leaf.
    next_leaf: Option<&'a K>,
}

/// Entries of a map whose keys lie within bounds.
pub struct Range<'a, K, V> {
    entries: Iter<'a, K, V>,
    end: Bound<K>,
}

/// The entries of a consumed map. Entries on shared pages are cloned.
pub struct IntoIter<K, V> {
    leaf: vec::IntoIter<(K, V)>,
    /// The pages that are left, from the root down.
    left: Vec<vec::IntoIter<Branch<K, V>>>,
}

impl<'a, K: Ord, V> Iter<'a, K, V> {
    pub(super) fn starting(root: Option<&'a Page<K, V>>, start: Bound<&K>) -> Self {
        let mut iter = Self { root, leaf: [].iter(), next_leaf: None };
        iter.enter_leaf(start);
        iter
    }

    fn enter_leaf(&mut self, start: Bound<&K>) {
        self.next_leaf = None;
        let Some(mut page) = self.root else { return };
        while let Page::Inner(branches) = page {
            let index = match start {
                Bound::Unbounded => 0,
                Bound::Included(key) | Bound::Excluded(key) => branch_index(branches, key),
            };
            if let Some(next) = branches.get(index + 1) {
                self.next_leaf = Some(&next.first);
            }
            page = &branches[index].page;
        }
        if let Page::Leaf(entries) = page {
            let before = match start {
                Bound::Unbounded => 0,
                Bound::Included(start) => entries.partition_point(|(key, _)| key < start),
                Bound::Excluded(start) => entries.partition_point(|(key, _)| key <= start),
            };
            self.leaf = entries[before..].iter();
        }
    }
}

impl<'a, K: Ord, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                count_read();
                return Some((key, value));
            }
            let first = self.next_leaf?;
            self.enter_leaf(Bound::Included(first));
        }
    }
}

impl<'a, K: Ord, V> Range<'a, K, V> {
    pub(super) fn new(entries: Iter<'a, K, V>, end: Bound<K>) -> Self {
        Self { entries, end }
    }

    fn is_within(&self, key: &K) -> bool {
        match &self.end {
            Bound::Unbounded => true,
            Bound::Included(last) => key <= last,
            Bound::Excluded(end) => key < end,
        }
    }
}

impl<'a, K: Ord, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        // Does not look up a next leaf that begins after the end.
        let is_over =
            self.entries.leaf.len() == 0 && self.entries.next_leaf.is_none_or(|first| !self.is_within(first));
        if is_over {
            return None;
        }
        self.entries.next().filter(|(key, _)| self.is_within(key))
    }
}

impl<K, V> IntoIter<K, V> {
    pub(super) fn new(root: Option<Arc<Page<K, V>>>) -> Self
    where
        K: Clone,
        V: Clone,
    {
        let mut iter = Self { leaf: Vec::new().into_iter(), left: Vec::new() };
        if let Some(root) = root {
            iter.enter(root);
        }
        iter
    }

    fn enter(&mut self, page: Arc<Page<K, V>>)
    where
        K: Clone,
        V: Clone,
    {
        match Arc::unwrap_or_clone(page) {
            Page::Leaf(entries) => self.leaf = entries.into_iter(),
            Page::Inner(branches) => self.left.push(branches.into_iter()),
        }
    }
}

impl<K: Clone, V: Clone> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.leaf.next() {
                return Some(entry);
            }
            match self.left.last_mut()?.next() {
                Some(branch) => self.enter(branch.page),
                None => drop(self.left.pop()),
            }
        }
    }
}
