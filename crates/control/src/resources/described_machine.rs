//! The members of stored bodies that machines see in their metadata: size and computer name.
//!
//! Bodies are stored in one spelling, and whatever else they contain is skipped without being copied. A member that is
//! no text counts as absent.

use forewarn_lifecycle::{Cluster, MachineId, ScaleSetId, Shape};
use serde::Deserialize;
use serde_json::Value;

use super::resource::Link;
use super::state::Resources;

/// The description of a machine by the client that created it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedMachine {
    /// The size, such as `Standard_D2s_v5`.
    pub size: Option<String>,
    pub computer_name: Option<DescribedName>,
}

/// The computer name of a machine by its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribedName {
    /// The name of a virtual machine.
    Whole(String),
    /// The part before the number of an instance.
    Prefix(String),
}

impl Resources {
    /// The description of a machine in the body that a client has written for it, or for its scale set.
    #[must_use]
    pub fn described(&self, cluster: &Cluster, machine: MachineId) -> DescribedMachine {
        let tenant = cluster.machine(machine).and_then(|machine| cluster.tenant(machine.tenant));
        match tenant.map(|tenant| tenant.shape) {
            Some(Shape::PlacementGroup(set)) => self.described_by_set(set),
            Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => {
                self.described_by_itself(machine)
            }
        }
    }

    fn described_by_itself(&self, machine: MachineId) -> DescribedMachine {
        let MachineBody { properties: MachineMembers { hardware_profile, os_profile } } =
            self.body(Link::Machine(machine));
        let name = os_profile.and_then(|profile| text(profile.computer_name));
        DescribedMachine {
            size: hardware_profile.and_then(|profile| text(profile.vm_size)),
            computer_name: name.map(DescribedName::Whole),
        }
    }

    fn described_by_set(&self, set: ScaleSetId) -> DescribedMachine {
        let SetBody { sku, properties: SetMembers { virtual_machine_profile } } =
            self.body(Link::ScaleSet(set));
        let profile = virtual_machine_profile.and_then(|model| model.os_profile);
        let prefix = profile.and_then(|profile| text(profile.computer_name_prefix));
        DescribedMachine {
            size: sku.and_then(|sku| text(sku.name)),
            computer_name: prefix.map(DescribedName::Prefix),
        }
    }

    fn body<B: Default + for<'de> Deserialize<'de>>(&self, link: Link) -> B {
        let stored = self.linked(link).map(|(_, resource)| &resource.body.0);
        stored.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }
}

fn text(value: Value) -> Option<String> {
    if let Value::String(text) = value { Some(text).filter(|text| !text.is_empty()) } else { None }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MachineBody {
    properties: MachineMembers,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineMembers {
    hardware_profile: Option<HardwareProfile>,
    os_profile: Option<OsProfile>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HardwareProfile {
    vm_size: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OsProfile {
    computer_name: Value,
    computer_name_prefix: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SetBody {
    sku: Option<Sku>,
    properties: SetMembers,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sku {
    name: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SetMembers {
    virtual_machine_profile: Option<InstanceModel>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InstanceModel {
    os_profile: Option<OsProfile>,
}
