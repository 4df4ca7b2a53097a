//! A table: rows found by number in constant time. Copies of a table share memory.
//!
//! Numbers are assigned in order and never reused, so a table is a list of chapters, and a chapter a list of pages. A
//! copy costs a pointer for each chapter; the first change after it clones one chapter and one page. A page without
//! rows is freed, and so is a chapter without pages.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::reads::count_read;

/// Rows in one page: enough that there are few pages, few enough that a last row does not keep much alive.
const ROWS: usize = 32;

/// Pages in one chapter: with a million rows there are about as many chapters as pages in each.
const PAGES: usize = 128;

/// A number by which rows are found.
pub(crate) trait RowNumber: Copy {
    fn row(self) -> usize;
    fn numbered(row: usize) -> Self;
}

/// Rows by number, in order.
#[derive(Clone)]
pub(crate) struct Table<K, V> {
    chapters: Vec<Option<Arc<Chapter<V>>>>,
    length: usize,
    key: PhantomData<K>,
}

/// A part of a table, or of a chapter.
#[derive(Clone)]
struct Block<T, const SIZE: usize> {
    slots: [Option<T>; SIZE],
    used: usize,
}

type RowPage<V> = Block<V, ROWS>;
type Chapter<V> = Block<Arc<RowPage<V>>, PAGES>;

/// The position of a row: its chapter, its page within the chapter, and its index within the page.
fn position(row: usize) -> (usize, usize, usize) {
    (row / (ROWS * PAGES), row / ROWS % PAGES, row % ROWS)
}

impl<K: RowNumber, V> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self { chapters: Vec::new(), length: 0, key: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (chapter, page, row) = position(key.row());
        count_read();
        self.chapters.get(chapter)?.as_ref()?.slots[page].as_ref()?.slots[row].as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.iter_from(K::numbered(0))
    }

    /// The rows from that number on. Earlier rows cost nothing.
    pub(crate) fn iter_from(&self, first: K) -> impl Iterator<Item = (K, &V)> {
        let first = first.row();
        let (first_chapter, ..) = position(first);
        let chapters = self.chapters.iter().enumerate().skip(first_chapter);
        let pages = chapters.flat_map(move |(number, chapter)| {
            let pages = chapter.iter().flat_map(|chapter| chapter.slots.iter().enumerate());
            let pages = pages.map(move |(page, rows)| (number * PAGES + page, rows));
            pages.skip_while(move |(number, _)| *number < first / ROWS)
        });
        pages.flat_map(move |(number, page)| {
            let rows = page.iter().flat_map(|page| page.slots.iter().enumerate());
            let rows = rows.map(move |(row, value)| (number * ROWS + row, value));
            rows.filter(move |(row, _)| *row >= first)
                .filter_map(|(row, value)| Some((K::numbered(row), value.as_ref()?)))
                .inspect(|_| count_read())
        })
    }
}

impl<K: RowNumber, V: Clone> Table<K, V> {
    /// Mutable access to a row. Clones a shared chapter and page, even if there is no such row.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (chapter, page, row) = position(key.row());
        let chapter = Arc::make_mut(self.chapters.get_mut(chapter)?.as_mut()?);
        Arc::make_mut(chapter.slots[page].as_mut()?).slots[row].as_mut()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let (chapter, page, row) = position(key.row());
        if self.chapters.len() <= chapter {
            self.chapters.resize_with(chapter + 1, || None);
        }
        let chapter = Arc::make_mut(self.chapters[chapter].get_or_insert_with(|| Arc::new(Block::new())));
        let page = chapter.get_or_insert_with(page, || Arc::new(Block::new()));
        if Arc::make_mut(page).put(row, value).is_none() {
            self.length += 1;
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (chapter_place, page_place, row) = position(key.row());
        let chapter_slot = self.chapters.get_mut(chapter_place)?;
        let chapter = Arc::make_mut(chapter_slot.as_mut()?);
        let page = Arc::make_mut(chapter.slots[page_place].as_mut()?);
        let value = page.take(row)?;
        self.length -= 1;
        if page.used == 0 {
            chapter.take(page_place);
            if chapter.used == 0 {
                *chapter_slot = None;
            }
        }
        Some(value)
    }

    /// Every row; those on shared pages are cloned. Holds a page on the heap, because callers chain and move the
    /// iterator.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = (K, V)> {
        let chapters = self.chapters.into_iter().enumerate();
        let pages = chapters.flat_map(|(number, chapter)| {
            let pages = chapter.map_or_else(Vec::new, |chapter| Arc::unwrap_or_clone(chapter).into_items());
            pages.into_iter().map(move |(page, rows)| (number * PAGES + page, rows))
        });
        pages.flat_map(|(number, page)| {
            let rows = Arc::unwrap_or_clone(page).into_items().into_iter();
            rows.map(move |(row, value)| (K::numbered(number * ROWS + row), value))
        })
    }
}

impl<T, const SIZE: usize> Block<T, SIZE> {
    fn new() -> Self {
        Self { slots: std::array::from_fn(|_| None), used: 0 }
    }

    fn put(&mut self, index: usize, item: T) -> Option<T> {
        let before = self.slots[index].replace(item);
        self.used += usize::from(before.is_none());
        before
    }

    fn take(&mut self, index: usize) -> Option<T> {
        let item = self.slots[index].take()?;
        self.used -= 1;
        Some(item)
    }

    fn into_items(self) -> Vec<(usize, T)> {
        let items = self.slots.into_iter().enumerate();
        items.filter_map(|(index, item)| Some((index, item?))).collect()
    }

    fn get_or_insert_with(&mut self, index: usize, new: impl FnOnce() -> T) -> &mut T {
        let slot = &mut self.slots[index];
        self.used += usize::from(slot.is_none());
        slot.get_or_insert_with(new)
    }
}

impl<K: RowNumber + PartialEq, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: RowNumber + PartialEq, V: Eq> Eq for Table<K, V> {}

impl<K: RowNumber + fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_types::MachineId;
    use std::collections::BTreeMap;

    #[test]
    fn a_table_is_an_ordered_map() {
        let mut table = Table::new();
        let mut map = BTreeMap::new();
        let mut removed = 0;
        // Gaps, page borders, the last row of a page, removals of present and absent rows.
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
    fn an_empty_page_is_freed_and_tables_are_equal_by_their_rows() {
        let mut table = Table::new();
        (0..40).for_each(|number| table.insert(MachineId(number), number));
        let full = table.clone();
        assert_eq!(full, table);
        let pages =
            |table: &Table<MachineId, u32>| table.chapters[0].as_ref().map_or(0, |chapter| chapter.used);
        assert_eq!((table.chapters.len(), pages(&table)), (1, 2));
        for number in 0..32 {
            assert_eq!(pages(&table), 2);
            table.remove(&MachineId(number));
        }
        assert_eq!((pages(&table), pages(&full)), (1, 2));
        assert_ne!(full, table);
        (0..32).for_each(|number| table.insert(MachineId(number), number));
        assert_eq!(full, table);
        assert!((0..40).all(|number| table.remove(&MachineId(number)) == Some(number)));
        assert!(table.chapters[0].is_none());
        assert_eq!(table, Table::new());
        assert!(full.into_rows().eq((0..40).map(|number| (MachineId(number), number))));
    }

    #[test]
    fn rows_are_found_from_any_number_on_across_chapters() {
        let mut table = Table::new();
        let numbers = [0u32, 31, 32, 4_095, 4_096, 8_191, 12_289];
        numbers.iter().for_each(|number| table.insert(MachineId(*number), *number));
        for first in [0u32, 1, 31, 33, 4_000, 4_096, 4_097, 8_192, 12_289, 12_290, 99_999] {
            let found: Vec<_> = table.iter_from(MachineId(first)).map(|(_, number)| *number).collect();
            let expected: Vec<_> = numbers.into_iter().filter(|number| *number >= first).collect();
            assert_eq!(found, expected, "{first}");
        }
        assert!(table.clone().into_rows().eq(table.iter().map(|(key, number)| (key, *number))));
    }

    #[test]
    fn a_change_after_a_copy_clones_one_chapter_and_one_page() {
        let mut table = Table::new();
        (0..10_000).for_each(|number| table.insert(MachineId(number), number));
        let copy = table.clone();
        *table.get_mut(&MachineId(5_000)).unwrap() = 1;
        table.remove(&MachineId(5_001));
        assert_eq!((copy.get(&MachineId(5_000)), copy.get(&MachineId(5_001))), (Some(&5_000), Some(&5_001)));
        let both = table.chapters.iter().flatten().zip(copy.chapters.iter().flatten());
        let own: Vec<_> = both.filter(|(one, other)| !Arc::ptr_eq(one, other)).collect();
        assert_eq!(own.len(), 1);
        let (one, other) = own[0];
        let pages = one.slots.iter().flatten().zip(other.slots.iter().flatten());
        assert_eq!(pages.filter(|(one, other)| !Arc::ptr_eq(one, other)).count(), 1);
    }
}
