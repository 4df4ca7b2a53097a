//! Building the pages of a map at once, from ascending entries.

use std::sync::Arc;

use super::page::{Branch, PAGE_MAX, Page};

/// The root above entries that ascend. Every page but the last one of each depth is full.
pub(super) fn build<K: Clone, V>(entries: Vec<(K, V)>) -> Option<Arc<Page<K, V>>> {
    if entries.is_empty() {
        return None;
    }
    if entries.len() <= Page::<K, V>::LEAF_MAX {
        return Some(Arc::new(Page::Leaf(entries)));
    }
    let mut branches = pages(entries, Page::<K, V>::LEAF_MAX, |entries| {
        Some(Branch { first: entries.first()?.0.clone(), page: Arc::new(Page::Leaf(entries)) })
    });
    while branches.len() > 1 {
        branches = pages(branches, PAGE_MAX, |below| {
            Some(Branch { first: below.first()?.first.clone(), page: Arc::new(Page::Inner(below)) })
        });
    }
    branches.pop().map(|root| root.page)
}

/// Divides items into pages of at most `max`.
fn pages<K, V, T>(
    items: Vec<T>,
    max: usize,
    page: impl Fn(Vec<T>) -> Option<Branch<K, V>>,
) -> Vec<Branch<K, V>> {
    let mut branches = Vec::with_capacity(items.len().div_ceil(max));
    let mut items = items.into_iter();
    while items.len() > 0 {
        let mut taken = Vec::with_capacity(max.min(items.len()));
        taken.extend(items.by_ref().take(max));
        branches.extend(page(taken));
    }
    branches
}
