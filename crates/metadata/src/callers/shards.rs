//! A table in shards, each of which is replaced as a whole: a reader never waits for a writer, and a writer copies only
//! the shards that it changes, each of them once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

/// A change copies one of so many parts: a hundred entries of a table with a hundred thousand.
const SHARDS: usize = 1_024;

#[derive(Debug)]
pub(super) struct Shards<K, V> {
    hasher: RandomState,
    shards: Box<[TableShard<K, V>]>,
}

#[derive(Debug)]
struct TableShard<K, V> {
    entries: ArcSwap<HashMap<K, V>>,
    /// Held by the writer that replaces the entries.
    writer: Mutex<()>,
    #[cfg(test)]
    copies: AtomicUsize,
}

impl<K, V> Default for TableShard<K, V> {
    fn default() -> Self {
        Self {
            entries: ArcSwap::from_pointee(HashMap::new()),
            writer: Mutex::default(),
            #[cfg(test)]
            copies: AtomicUsize::default(),
        }
    }
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| TableShard::default()).collect();
        Self { hasher: RandomState::new(), shards }
    }
}

impl<K: Hash + Eq + Copy, V: Clone> Shards<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.shard(key).entries.load().get(key).cloned()
    }

    /// The same, after every addition that has begun.
    pub(super) fn get_settled(&self, key: &K) -> Option<V> {
        let shard = self.shard(key);
        let _writer = shard.lock();
        shard.entries.load().get(key).cloned()
    }

    /// The value of a key, which is made and added if it is missing, unless there is none. No other value of its shard
    /// is added or removed meanwhile.
    pub(super) fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> Option<V>) -> Option<V> {
        if let Some(known) = self.get(&key) {
            return Some(known);
        }
        let shard = self.shard(&key);
        let writer = shard.lock();
        if let Some(known) = shard.entries.load().get(&key) {
            return Some(known.clone());
        }
        let value = make()?;
        shard.replace(&writer, |entries| drop(entries.insert(key, value.clone())));
        Some(value)
    }

    /// Removes keys. Only shards that have one of them are copied, each of them once.
    pub(super) fn remove(&self, keys: impl IntoIterator<Item = K>) {
        let mut by_shard = BTreeMap::<_, Vec<_>>::new();
        for key in keys {
            by_shard.entry(self.place(&key)).or_default().push(key);
        }
        for (place, keys) in by_shard {
            let shard = &self.shards[place];
            let writer = shard.lock();
            let known = shard.entries.load();
            if keys.iter().any(|key| known.contains_key(key)) {
                shard.replace(&writer, |entries| keys.iter().for_each(|key| drop(entries.remove(key))));
            }
        }
    }

    /// Removes all entries, and returns them. Whatever is added later was made after this began.
    pub(super) fn take_all(&self) -> Vec<(K, V)> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            let writer = shard.lock();
            let known = shard.entries.load_full();
            if !known.is_empty() {
                taken.extend(known.iter().map(|(key, value)| (*key, value.clone())));
                shard.replace(&writer, HashMap::clear);
            }
        }
        taken
    }

    /// All keys, as they are in one shard after the other.
    pub(super) fn keys(&self) -> Vec<K> {
        self.shards
            .iter()
            .flat_map(|shard| shard.entries.load().keys().copied().collect::<Vec<_>>())
            .collect()
    }

    fn shard(&self, key: &K) -> &TableShard<K, V> {
        &self.shards[self.place(key)]
    }

    fn place(&self, key: &K) -> usize {
        usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0)
    }

    /// The number of copies that were made of shards.
    #[cfg(test)]
    pub(super) fn copies(&self) -> usize {
        self.shards.iter().map(|shard| shard.copies.load(Ordering::Relaxed)).sum()
    }
}

impl<K: Hash + Eq + Copy, V: Clone> TableShard<K, V> {
    /// The entries are replaced as a whole, so they are consistent even if a holder of the lock panicked.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, _writer: &MutexGuard<'_, ()>, change: impl FnOnce(&mut HashMap<K, V>)) {
        let mut entries = HashMap::clone(&self.entries.load());
        #[cfg(test)]
        self.copies.fetch_add(1, Ordering::Relaxed);
        change(&mut entries);
        self.entries.store(Arc::new(entries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_unless_there_is_none() {
        let table = Shards::default();
        assert_eq!(table.get_or_insert_with(1, || None), None);
        assert_eq!(table.get_or_insert_with(1, || Some('a')), Some('a'));
        assert_eq!(table.get_or_insert_with(1, || unreachable!("it is there")), Some('a'));
        assert_eq!((table.get(&1), table.get_settled(&1), table.get(&2)), (Some('a'), Some('a'), None));
        assert_eq!(table.keys(), [1]);
        table.remove([2, 1]);
        assert_eq!((table.get(&1), table.keys()), (None, Vec::new()));
    }

    #[test]
    fn only_shards_that_change_are_copied() {
        let table = Shards::default();
        for _ in 0..3 {
            table.get_or_insert_with(1, || Some('a'));
        }
        table.remove(2..100_000);
        assert_eq!(table.copies(), 1);
        table.remove(0..100_000);
        assert_eq!(table.copies(), 2);
    }

    /// promise: M3
    #[test]
    fn concurrent_writers_lose_nothing() {
        const WRITERS: u32 = 8;
        const EACH: u32 = 2_000;
        let table = Shards::default();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..EACH {
                        table.get_or_insert_with(writer * EACH + number, || Some(()));
                    }
                });
            }
        });
        let missing = (0..WRITERS * EACH).filter(|key| table.get(key).is_none()).count();
        assert_eq!(missing, 0);
    }
}
