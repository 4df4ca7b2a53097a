//! Rows found by a number, in one step however many there are.
//!
//! Numbers are given out in order and never used again, so a table is a list of pages. A page whose last row is removed is
//! given back; what stays of it are eight bytes.

use std::fmt;
use std::marker::PhantomData;

/// Rows in one page: enough that the list of pages is short, few enough that a last row does not keep much alive.
const ROWS: usize = 32;

/// A number by which rows are found.
pub(crate) trait Row: Copy {
    fn row(self) -> usize;
    fn numbered(row: usize) -> Self;
}

/// Rows by number, in order.
#[derive(Clone)]
pub(crate) struct Table<K, V> {
    pages: Vec<Option<Box<Page<V>>>>,
    length: usize,
    key: PhantomData<K>,
}

#[derive(Clone)]
struct Page<V> {
    rows: [Option<V>; ROWS],
    used: usize,
}

impl<K: Row, V> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self { pages: Vec::new(), length: 0, key: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let row = key.row();
        self.pages.get(row / ROWS)?.as_ref()?.rows[row % ROWS].as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let row = key.row();
        self.pages.get_mut(row / ROWS)?.as_mut()?.rows[row % ROWS].as_mut()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let row = key.row();
        if self.pages.len() <= row / ROWS {
            self.pages.resize_with(row / ROWS + 1, || None);
        }
        let page = self.pages[row / ROWS].get_or_insert_with(|| Box::new(Page::new()));
        if page.rows[row % ROWS].replace(value).is_none() {
            page.used += 1;
            self.length += 1;
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let row = key.row();
        let slot = self.pages.get_mut(row / ROWS)?;
        let page = slot.as_mut()?;
        let value = page.rows[row % ROWS].take()?;
        page.used -= 1;
        self.length -= 1;
        if page.used == 0 {
            *slot = None;
        }
        Some(value)
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = (K, V)> {
        self.pages.into_iter().enumerate().flat_map(|(number, page)| {
            let rows = page.into_iter().flat_map(|page| page.rows.into_iter().enumerate());
            rows.filter_map(move |(row, value)| Some((K::numbered(number * ROWS + row), value?)))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.iter_from(K::numbered(0))
    }

    /// From that row on; what comes before costs nothing.
    pub(crate) fn iter_from(&self, first: K) -> impl Iterator<Item = (K, &V)> {
        let first = first.row();
        self.pages.iter().enumerate().skip(first / ROWS).flat_map(move |(number, page)| {
            let rows = page.iter().flat_map(|page| page.rows.iter().enumerate());
            let rows = rows.map(move |(row, value)| (number * ROWS + row, value));
            rows.filter(move |(row, _)| *row >= first)
                .filter_map(|(row, value)| Some((K::numbered(row), value.as_ref()?)))
        })
    }
}

impl<V> Page<V> {
    fn new() -> Self {
        Self { rows: std::array::from_fn(|_| None), used: 0 }
    }
}

impl<K: Row + PartialEq, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Row + PartialEq, V: Eq> Eq for Table<K, V> {}

impl<K: Row + fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MachineId;
    use std::collections::BTreeMap;

    #[test]
    fn a_table_is_an_ordered_map() {
        let mut table = Table::new();
        let mut map = BTreeMap::new();
        let mut removed = 0;
        // Gaps, page borders, the last row of a page, removals of what is and of what is not there.
        for step in 0u32..400 {
            let key = MachineId((step * 37) % 150);
            if step % 7 > 3 {
                let value = map.remove(&key);
                removed += usize::from(value.is_some());
                assert_eq!(table.remove(&key), value, "{step}");
            } else {
                table.insert(key, step);
                map.insert(key, step);
            }
            assert_eq!(table.len(), map.len());
            assert_eq!(table.get(&key), map.get(&key));
            assert_eq!(table.get_mut(&key), map.get_mut(&key));
            assert!(table.iter().eq(map.iter().map(|(key, value)| (*key, value))), "{step}");
            let rest = map.range(key..).map(|(key, value)| (*key, value));
            assert!(table.iter_from(key).eq(rest), "{step}");
        }
        assert!(removed > 20, "{removed}");
        assert_eq!(table.get(&MachineId(1_000)), None);
        assert_eq!(table.get_mut(&MachineId(1_000)), None);
        assert_eq!(table.remove(&MachineId(1_000)), None);
        assert_eq!(format!("{table:?}"), format!("{map:?}"));
    }

    #[test]
    fn an_empty_page_is_given_back_and_tables_are_equal_by_what_they_hold() {
        let mut table = Table::new();
        (0..40).for_each(|number| table.insert(MachineId(number), number));
        let full = table.clone();
        assert_eq!(full, table);
        assert_eq!(table.pages.len(), 2);
        for number in 0..32 {
            assert!(table.pages[0].is_some());
            table.remove(&MachineId(number));
        }
        assert!(table.pages[0].is_none() && table.pages[1].is_some());
        assert_ne!(full, table);
        (0..32).for_each(|number| table.insert(MachineId(number), number));
        assert_eq!(full, table);
        assert!((0..40).all(|number| table.remove(&MachineId(number)) == Some(number)));
        assert_eq!(table, Table::new());
    }
}
