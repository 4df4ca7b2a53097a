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

    /// The objects that may have a name, in any case, ascending.
    pub(crate) fn candidates(&self, name: &str) -> impl Iterator<Item = Id> {
        let hash = hash(name);
        let all = (hash, Id::numbered(0))..=(hash, Id::numbered(usize::MAX));
        self.0.range(all).map(|(_, id)| *id)
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
    fn an_entry_takes_eight_bytes() {
        assert_eq!(size_of::<(u32, MachineId)>(), 8);
    }
}
