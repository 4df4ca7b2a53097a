//! Paged maps beside the ordered maps of the standard library, and the sharing of pages.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// One change of a map.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    /// Ascending keys from there on.
    Run(u16, u16),
    Change(u16),
    Remove(u16),
    /// Keys from there on, whether or not they are there.
    RemoveRun(u16, u16),
    Copy,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u16>().prop_map(Step::Insert),
        2 => (any::<u16>(), 1..400u16).prop_map(|(from, length)| Step::Run(from, length)),
        1 => any::<u16>().prop_map(Step::Change),
        3 => any::<u16>().prop_map(Step::Remove),
        2 => (any::<u16>(), 1..900u16).prop_map(|(from, length)| Step::RemoveRun(from, length)),
        1 => Just(Step::Copy),
    ];
    prop::collection::vec(step, 1..60)
}

/// Few different keys, so that many are met again.
fn key(number: u16) -> u16 {
    number % 3_000
}

/// A map beside an ordered map of the standard library, changed in the same way.
#[derive(Clone, Default)]
struct Pair {
    paged: PagedMap<u16, u32>,
    plain: BTreeMap<u16, u32>,
}

impl Pair {
    fn take(&mut self, number: u32, step: &Step) {
        match *step {
            Step::Insert(at) => self.insert(at, number),
            Step::Run(from, length) => {
                (0..length).for_each(|more| self.insert(from.wrapping_add(more), number));
            }
            Step::Change(at) => {
                let (paged, plain) = (self.paged.get_mut(&key(at)), self.plain.get_mut(&key(at)));
                assert_eq!(paged, plain);
                paged.into_iter().chain(plain).for_each(|value| *value += 1);
            }
            Step::Remove(at) => self.remove(at),
            Step::RemoveRun(from, length) => {
                (0..length).for_each(|more| self.remove(from.wrapping_add(more)));
            }
            Step::Copy => {}
        }
    }

    fn insert(&mut self, at: u16, value: u32) {
        assert_eq!(self.paged.insert(key(at), value), self.plain.insert(key(at), value));
    }

    fn remove(&mut self, at: u16) {
        assert_eq!(self.paged.remove(&key(at)), self.plain.remove(&key(at)));
    }

    fn check(&self) {
        let Self { paged, plain } = self;
        assert_eq!((paged.len(), paged.is_empty()), (plain.len(), plain.is_empty()));
        assert_eq!(paged.first(), plain.first_key_value());
        assert_eq!(paged.last(), plain.last_key_value());
        assert!(paged.iter().eq(plain));
        assert!(paged.keys().eq(plain.keys()) && paged.values().eq(plain.values()));
        if let Some(root) = &paged.root {
            let (depth, pages) = root.check(None, None);
            assert!(depth <= 4, "{depth}");
            // Of two neighbours at most one is small, whatever was removed.
            assert!(pages <= 3 + plain.len() / 2, "{pages} pages of {} entries", plain.len());
        }
    }

    fn check_ranges(&self, from: u16, to: u16) {
        let Self { paged, plain } = self;
        assert!(paged.range(from..).eq(plain.range(from..)));
        assert!(paged.range(..to).eq(plain.range(..to)));
        let (from, to) = (from.min(to), from.max(to));
        assert!(paged.range(from..to).eq(plain.range(from..to)));
        assert!(paged.range(from..=to).eq(plain.range(from..=to)));
        if from < to {
            let open = (Bound::Excluded(from), Bound::Excluded(to));
            assert!(paged.range(open).eq(plain.range(open)));
        }
        let (before, after) = (Bound::Excluded(u16::MAX), Bound::Unbounded);
        assert_eq!(paged.range((before, after)).next(), None);
    }
}

proptest! {
    #[test]
    fn a_map_is_an_ordered_map_and_a_copy_stays_as_it_was(
        steps in steps(),
        bounds in prop::collection::vec((0..3_100u16, 0..3_100u16), 3),
    ) {
        let mut pair = Pair::default();
        let mut copies = Vec::new();
        for (number, step) in (0..).zip(&steps) {
            if let Step::Copy = step {
                copies.push(pair.clone());
            }
            pair.take(number, step);
            if number % 4 == 0 {
                pair.check();
            }
        }
        copies.push(pair);
        for copy in copies {
            copy.check();
            bounds.iter().for_each(|(from, to)| copy.check_ranges(*from, *to));
            let again: PagedMap<_, _> = copy.plain.clone().into_iter().collect();
            prop_assert_eq!(&again, &copy.paged);
            prop_assert_eq!(format!("{:?}", copy.paged), format!("{:?}", copy.plain));
            let shared = copy.paged.clone();
            prop_assert!(copy.paged.into_iter().eq(copy.plain.clone()), "its pages are shared");
            prop_assert!(shared.into_iter().eq(copy.plain), "its pages are its own");
        }
    }
}

#[test]
fn a_copy_shares_all_pages_but_those_on_the_way_to_a_change() {
    let mut map: PagedMap<u32, u32> = (0..100_000).map(|number| (number, number)).collect();
    let copy = map.clone();
    assert!(Arc::ptr_eq(map.root.as_ref().unwrap(), copy.root.as_ref().unwrap()));
    map.insert(77_777, 0);
    *map.get_mut(&77_778).unwrap() = 1;
    let (own, shared) = count_shared(map.root.as_ref().unwrap(), copy.root.as_ref().unwrap());
    assert!(own <= 4 && shared > 0, "{own} pages of its own, {shared} branches shared");
    assert_eq!((copy.get(&77_777), copy.get(&77_778)), (Some(&77_777), Some(&77_778)));
}

/// Counts the pages of one that are not pages of the other, and the branches that both have.
fn count_shared(one: &Arc<Page<u32, u32>>, other: &Arc<Page<u32, u32>>) -> (usize, usize) {
    if Arc::ptr_eq(one, other) {
        return (0, 1);
    }
    let (Page::Inner(one), Page::Inner(other)) = (&**one, &**other) else { return (1, 0) };
    let below = one.iter().zip(other).map(|(one, other)| count_shared(&one.page, &other.page));
    below.fold((1, 0), |(own, shared), (more, both)| (own + more, shared + both))
}

#[test]
fn ascending_keys_leave_no_gaps_and_empty_pages_are_freed() {
    let mut map: PagedMap<u32, ()> = (0..32_768).map(|number| (number, ())).collect();
    let (depth, pages) = map.root.as_ref().unwrap().check(None, None);
    assert_eq!((depth, pages), (3, 1_024 + 32 + 1));
    // From the front, as an agenda is worked off.
    for number in 0..32_768 {
        assert_eq!(map.remove(&number), Some(()));
    }
    assert!(map.root.is_none() && map == PagedMap::new());
}

#[test]
fn small_pages_are_joined() {
    let mut map: PagedMap<u32, ()> = (0..32_768).map(|number| (number, ())).collect();
    for number in (0..32_768).filter(|number| number % 16 != 0) {
        map.remove(&number);
    }
    let (_, pages) = map.root.as_ref().unwrap().check(None, None);
    // 2,048 keys on leaves of 32, of which neighbours together are more than three quarters full.
    assert!(pages < 2 * 2_048 / 24 + 20, "{pages}");
}

#[test]
fn large_values_lie_on_small_pages() {
    let map: PagedMap<u32, [u64; 64]> = (0..64).map(|number| (number, [0; 64])).collect();
    let (_, pages) = map.root.as_ref().unwrap().check(None, None);
    assert_eq!(pages, 64 / 8 + 1);
}

#[test]
fn a_key_without_a_value_gets_the_default_one() {
    let mut map: PagedMap<u32, u32> = PagedMap::new();
    for key in [1, 2, 1] {
        *map.get_or_default(&key) += 1;
    }
    assert!(map.iter().eq([(&1, &2), (&2, &1)]) && map.len() == 2);
}

#[test]
fn a_set_is_an_ordered_set() {
    let numbers = [5u32, 1, 9, 5, 3];
    let mut set: PagedSet<u32> = numbers.into_iter().collect();
    let mut plain: BTreeSet<u32> = numbers.into_iter().collect();
    assert_eq!((set.len(), set.first()), (4, Some(&1)));
    for number in [9, 2, 2] {
        assert_eq!(set.insert(number), plain.insert(number), "{number}");
    }
    for number in [1, 1, 8] {
        assert_eq!(set.remove(&number), plain.remove(&number), "{number}");
    }
    set.extend([7]);
    plain.extend([7]);
    assert!(set.iter().eq(&plain) && set.range(3..=7).eq(plain.range(3..=7)));
    assert!(set.contains(&3) && !set.contains(&4) && !set.is_empty());
    assert_eq!(format!("{set:?}"), format!("{plain:?}"));
    assert_eq!(set, plain.iter().copied().collect());
    while !plain.is_empty() {
        assert_eq!(set.pop_first(), plain.pop_first());
    }
    assert_eq!((set.pop_first(), set.is_empty()), (None, true));
}

/// A key that counts how often it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CountingKey(u32);

thread_local! {
    static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl PartialOrd for CountingKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CountingKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0.cmp(&other.0)
    }
}

#[test]
fn a_map_of_ascending_entries_is_built_with_one_comparison_for_each() {
    for count in [0, 1, 31, 32, 33, 1_024, 1_025, 40_000] {
        COMPARISONS.set(0);
        let map: PagedMap<_, _> = (0..count).map(|number| (CountingKey(number), number)).collect();
        assert!(COMPARISONS.get() <= count as usize, "{count}: {}", COMPARISONS.get());
        assert!(map.iter().map(|(key, value)| (key.0, *value)).eq((0..count).map(|number| (number, number))));
        assert_eq!(map.len(), count as usize);
        if let Some(root) = &map.root {
            let (_, pages) = root.check(None, None);
            // Full pages: the leaves, and a thirty-second of them above.
            assert!(pages <= count as usize / 30 + 4, "{count}: {pages}");
        }
    }
}

#[test]
fn of_entries_with_one_key_the_last_one_counts() {
    let numbers = (0..5_000u32).map(|step| (step * 37 % 700, step));
    let (built, plain): (PagedMap<_, _>, BTreeMap<_, _>) = (numbers.clone().collect(), numbers.collect());
    assert!(built.iter().eq(plain.iter()));
    assert_eq!(built.len(), plain.len());
    built.root.as_ref().unwrap().check(None, None);
}
