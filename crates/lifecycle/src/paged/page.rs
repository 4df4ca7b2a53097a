//! The pages of a map: searching, inserting and removing.
//!
//! All leaves lie equally deep. A full page is split. A page that has become small is joined with a neighbour, if the
//! two then leave room to grow; so of two neighbours at most one is small.

use std::borrow::Borrow;
use std::mem;
use std::sync::Arc;

/// The most branches of an inner page, and the most entries of a leaf.
pub(super) const PAGE_MAX: usize = 32;

/// A leaf of large entries holds fewer of them: about that many bytes.
const LEAF_BYTES: usize = 1024;
const LEAF_MIN: usize = 8;

/// Room that the first entries of a page get at once.
const CAPACITY_MIN: usize = 4;

#[derive(Clone)]
pub(super) enum Page<K, V> {
    /// Entries, ascending.
    Leaf(Vec<(K, V)>),
    Inner(Vec<Branch<K, V>>),
}

/// A page below another one.
#[derive(Clone)]
pub(super) struct Branch<K, V> {
    /// Lower bound of the keys below; every key of an earlier branch is less. Not necessarily an existing key.
    /// Meaningless for the first branch.
    pub(super) first: K,
    pub(super) page: Arc<Page<K, V>>,
}

/// The effect of an insertion on a page.
pub(super) enum Insertion<K, V> {
    /// The key had this value.
    Replaced(V),
    Added,
    /// The page was full: its upper part is this branch now.
    Split(Branch<K, V>),
}

/// The index of a key among entries, or the index at which to insert it.
pub(super) fn find<K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    entries.binary_search_by(|(other, _)| other.borrow().cmp(key))
}

/// The branch in which a key belongs.
pub(super) fn branch_index<K: Borrow<Q>, V, Q: Ord + ?Sized>(branches: &[Branch<K, V>], key: &Q) -> usize {
    branches.partition_point(|branch| branch.first.borrow() <= key).saturating_sub(1)
}

impl<K, V> Page<K, V> {
    pub(super) const LEAF_MAX: usize = {
        let size = if size_of::<(K, V)>() == 0 { 1 } else { size_of::<(K, V)>() };
        let fitting = LEAF_BYTES / size;
        if fitting < LEAF_MIN {
            LEAF_MIN
        } else if fitting > PAGE_MAX {
            PAGE_MAX
        } else {
            fitting
        }
    };

    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(branches) => branches.len(),
        }
    }

    fn max(&self) -> usize {
        match self {
            Self::Leaf(_) => Self::LEAF_MAX,
            Self::Inner(_) => PAGE_MAX,
        }
    }

    /// The only page below this one, if there is just one.
    pub(super) fn only_child(&self) -> Option<Arc<Self>> {
        match self {
            Self::Inner(branches) if branches.len() == 1 => {
                branches.first().map(|branch| Arc::clone(&branch.page))
            }
            Self::Inner(_) | Self::Leaf(_) => None,
        }
    }
}

impl<K: Ord + Clone, V: Clone> Page<K, V> {
    pub(super) fn insert(&mut self, key: K, value: V) -> Insertion<K, V> {
        match self {
            Self::Leaf(entries) => match find(entries, &key) {
                Ok(index) => Insertion::Replaced(mem::replace(&mut entries[index].1, value)),
                Err(index) => match add(entries, index, (key, value), Self::LEAF_MAX) {
                    Some(right) => Insertion::split(right[0].0.clone(), Self::Leaf(right)),
                    None => Insertion::Added,
                },
            },
            Self::Inner(branches) => {
                let index = branch_index(branches, &key);
                let below = Arc::make_mut(&mut branches[index].page).insert(key, value);
                let Insertion::Split(new) = below else { return below };
                match add(branches, index + 1, new, PAGE_MAX) {
                    Some(right) => Insertion::split(right[0].first.clone(), Self::Inner(right)),
                    None => Insertion::Added,
                }
            }
        }
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Leaf(entries) => find(entries, key).ok().map(|index| entries.remove(index).1),
            Self::Inner(branches) => {
                let index = branch_index(branches, key);
                let below = Arc::make_mut(&mut branches[index].page);
                let value = below.remove(key)?;
                if below.len() < below.max() / 4 {
                    join(branches, index);
                }
                Some(value)
            }
        }
    }

    /// Appends the contents of the next page, which has the same depth and no key less than `first`.
    fn append(&mut self, first: K, next: Self) {
        match (self, next) {
            (Self::Leaf(entries), Self::Leaf(more)) => {
                entries.reserve_exact(more.len());
                entries.extend(more);
            }
            (Self::Inner(branches), Self::Inner(mut more)) => {
                more[0].first = first;
                branches.reserve_exact(more.len());
                branches.extend(more);
            }
            (Self::Leaf(_), Self::Inner(_)) | (Self::Inner(_), Self::Leaf(_)) => {
                unreachable!("all leaves lie equally deep")
            }
        }
    }
}

impl<K, V> Insertion<K, V> {
    fn split(first: K, page: Page<K, V>) -> Self {
        Self::Split(Branch { first, page: Arc::new(page) })
    }
}

/// Adds an item to a list of at most `max`. A full list is split, and its upper part returned. A list that grows at its
/// end stays full, so that keys that ascend leave no gaps.
fn add<T>(list: &mut Vec<T>, index: usize, item: T, max: usize) -> Option<Vec<T>> {
    if list.len() < max {
        if list.len() == list.capacity() {
            let room = list.len().max(CAPACITY_MIN).min(max - list.len());
            list.reserve_exact(room);
        }
        list.insert(index, item);
        return None;
    }
    if index == max {
        return Some(vec![item]);
    }
    let mut upper = list.split_off(max / 2);
    if index <= list.len() {
        list.insert(index, item);
    } else {
        upper.insert(index - list.len(), item);
    }
    Some(upper)
}

/// Removes a small branch if it is empty, and otherwise joins it with a neighbour that is small enough.
fn join<K: Ord + Clone, V: Clone>(branches: &mut Vec<Branch<K, V>>, index: usize) {
    if branches[index].page.len() == 0 {
        branches.remove(index);
        return;
    }
    let fits = |left: &usize| match branches.get(*left..left + 2) {
        Some([one, other]) => one.page.len() + other.page.len() <= one.page.max() * 3 / 4,
        Some(_) | None => false,
    };
    let left = index.checked_sub(1).filter(fits).or(Some(index).filter(fits));
    if let Some(left) = left {
        let Branch { first, page } = branches.remove(left + 1);
        Arc::make_mut(&mut branches[left].page).append(first, Arc::unwrap_or_clone(page));
    }
}

#[cfg(test)]
impl<K: Ord, V> Page<K, V> {
    /// Checks the invariants of every page, and returns the depth of its leaves and the number of pages.
    pub(super) fn check(&self, lower: Option<&K>, upper: Option<&K>) -> (usize, usize) {
        assert!(self.len() > 0 && self.len() <= self.max());
        match self {
            Self::Leaf(entries) => {
                assert!(entries.is_sorted_by(|one, other| one.0 < other.0));
                assert!(lower.is_none_or(|lower| *lower <= entries[0].0));
                assert!(upper.is_none_or(|upper| entries[entries.len() - 1].0 < *upper));
                (1, 1)
            }
            Self::Inner(branches) => {
                let mut depth = None;
                let mut pages = 1;
                for (index, branch) in branches.iter().enumerate() {
                    let from = if index == 0 { lower } else { Some(&branch.first) };
                    let to = branches.get(index + 1).map(|next| &next.first).or(upper);
                    let (below, count) = branch.page.check(from, to);
                    assert_eq!(*depth.get_or_insert(below), below);
                    pages += count;
                }
                (depth.unwrap_or(0) + 1, pages)
            }
        }
    }
}
