//! Details of machines, by machine. Copies share what they have in common.

use std::net::IpAddr;
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

    /// Every address, with its machine.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (IpAddr, MachineId)> {
        self.iter().flat_map(|(machine, details)| {
            details.addresses.iter().map(move |address| (address.to_canonical(), machine))
        })
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

/// Builds the table at once. Of several details of one machine, the last ones count. Empty details, which older versions
/// stored, are left out.
impl FromIterator<(MachineId, Arc<MachineDetails>)> for DetailsTable {
    fn from_iter<T: IntoIterator<Item = (MachineId, Arc<MachineDetails>)>>(details: T) -> Self {
        Self(details.into_iter().filter(|(_, details)| **details != MachineDetails::default()).collect())
    }
}
