//! Details of machines, by machine. Copies share what they have in common.

use std::sync::Arc;

use forewarn_lifecycle::MachineId;
use forewarn_lifecycle::paged::PagedMap;

use crate::command::MachineDetails;

/// Details of the machines that have some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailsTable(PagedMap<MachineId, Arc<MachineDetails>>);

impl DetailsTable {
    /// The details of a machine, if it has some.
    #[must_use]
    pub fn get(&self, machine: &MachineId) -> Option<&MachineDetails> {
        self.0.get(machine).map(|details| &**details)
    }

    /// Every machine that has details.
    pub fn iter(&self) -> impl Iterator<Item = (MachineId, &MachineDetails)> {
        self.0.iter().map(|(machine, details)| (*machine, &**details))
    }

    /// Sets the details of a machine. Returns those that it had. Empty details are not stored.
    pub fn insert(&mut self, machine: MachineId, details: MachineDetails) -> Option<Arc<MachineDetails>> {
        if details == MachineDetails::default() {
            return self.remove(&machine);
        }
        self.0.insert(machine, Arc::new(details))
    }

    /// Removes the details of a machine. Returns them.
    pub fn remove(&mut self, machine: &MachineId) -> Option<Arc<MachineDetails>> {
        if self.0.contains_key(machine) { self.0.remove(machine) } else { None }
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = (MachineId, MachineDetails)> + Send + 'static {
        self.0.into_iter().map(|(machine, details)| (machine, Arc::unwrap_or_clone(details)))
    }
}
