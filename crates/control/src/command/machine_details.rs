//! Details of machines: addresses, tags and resource group.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Details of a machine that the rules do not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineDetails {
    /// Source addresses of its requests.
    pub addresses: Vec<IpAddr>,
    pub tags: BTreeMap<String, String>,
    /// Resource group and location, if they differ from those of its cluster.
    pub home: Option<ResourceGroupRef>,
}

/// A resource group of a machine that is not the group of its cluster. It is set through Azure Resource Manager only:
/// neither fleet files nor operator commands have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroupRef {
    /// Name of the group.
    pub resource_group: String,
    pub location: String,
}

/// A change of the details of a machine. None keeps the former value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineDetailsChange {
    /// Source addresses of its requests.
    pub addresses: Option<Vec<IpAddr>>,
    pub tags: Option<BTreeMap<String, String>>,
    /// Resource group and location.
    pub home: Option<ResourceGroupRef>,
}

impl MachineDetailsChange {
    #[must_use]
    pub fn apply(&self, details: &MachineDetails) -> MachineDetails {
        MachineDetails {
            addresses: self.addresses.as_ref().unwrap_or(&details.addresses).clone(),
            tags: self.tags.as_ref().unwrap_or(&details.tags).clone(),
            home: self.home.as_ref().or(details.home.as_ref()).cloned(),
        }
    }
}
