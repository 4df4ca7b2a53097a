//! An index of names: the ids of the objects that may have a name, without the names.
//!
//! The index holds a hash of each name and an id, eight bytes in all; the name itself is in the row of the object. A
//! candidate may have another name with the same hash, so callers compare names. Names that differ in case only have
//! the same hash: lookups with and without case use one index.

use forewarn_types::caseless_hash as hash;

use crate::paged::PagedSet;
use crate::table::RowNumber;

/// Ids of objects by the hash of their names. Copies share memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameIndex<Id: Ord>(PagedSet<(u32, Id)>);

impl<Id: Ord + RowNumber> NameIndex<Id> {
    pub(crate) fn new() -> Self {
        Self(PagedSet::new())
    }

    pub(crate) fn insert(&mut self, name: &str, id: Id) {
        self.0.insert((hash(name), id));
    }

    pub(crate) fn remove(&mut self, name: &str, id: Id) {
        self.0.remove(&(hash(name), id));
    }

    /// Returns true if no two objects have the same name. Only names with the same hash are compared.
    pub(crate) fn is_unique<'a>(&self, name_of: impl Fn(Id) -> Option<&'a str>) -> bool {
        let entries: Vec<_> = self.0.iter().copied().collect();
        let mut alike = entries.chunk_by(|one, other| one.0 == other.0).filter(|alike| alike.len() > 1);
        alike.all(|alike| {
            let mut names: Vec<_> = alike.iter().filter_map(|(_, id)| name_of(*id)).collect();
            names.sort_unstable();
            names.is_sorted_by(|one, other| one < other)
        })
    }

    /// The objects that may have a name, in any case, ascending.
    pub(crate) fn candidates(&self, name: &str) -> impl Iterator<Item = Id> {
        let hash = hash(name);
        let all = (hash, Id::numbered(0))..=(hash, Id::numbered(usize::MAX));
        self.0.range(all).map(|(_, id)| *id)
    }
}

/// An index that is being built: its pages are made at once, after the last name.
#[derive(Clone, Debug)]
pub(crate) struct NameIndexBuilder<Id>(Vec<(u32, Id)>);

impl<Id: Ord + RowNumber> NameIndexBuilder<Id> {
    pub(crate) fn add(&mut self, name: &str, id: Id) {
        self.0.push((hash(name), id));
    }

    pub(crate) fn build(self) -> NameIndex<Id> {
        NameIndex(self.0.into_iter().collect())
    }
}

impl<Id> Default for NameIndexBuilder<Id> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
impl<Id: Ord> NameIndex<Id> {
    /// The number of pages.
    pub(crate) fn page_count(&self) -> usize {
        self.0.page_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_types::MachineId;

    #[test]
    fn candidates_have_the_name_in_any_case_and_ascend() {
        let mut index = NameIndex::new();
        for (number, name) in ["web", "db", "WEB", "web"].into_iter().enumerate() {
            index.insert(name, MachineId::numbered(number));
        }
        let found = |index: &NameIndex<MachineId>, name| index.candidates(name).collect::<Vec<_>>();
        assert_eq!(found(&index, "Web"), [MachineId(0), MachineId(2), MachineId(3)]);
        assert_eq!(found(&index, "none"), []);
        index.remove("WEB", MachineId(2));
        assert_eq!(found(&index, "web"), [MachineId(0), MachineId(3)]);
    }

    #[test]
    fn an_index_that_is_built_at_once_is_the_same_and_finds_equal_names() {
        let names = ["web", "db", "WEB", "cache"];
        let (mut builder, mut index) = (NameIndexBuilder::default(), NameIndex::new());
        for (number, name) in names.into_iter().enumerate() {
            builder.add(name, MachineId::numbered(number));
            index.insert(name, MachineId::numbered(number));
        }
        assert_eq!(builder.build(), index);
        assert!(index.is_unique(|id| names.get(id.row()).copied()));
        assert!(!index.is_unique(|id| names.get(id.row()).map(|name| if *name == "WEB" {
            "web"
        } else {
            name
        })));
    }

    #[test]
    fn an_entry_takes_eight_bytes() {
        assert_eq!(size_of::<(u32, MachineId)>(), 8);
    }
}
