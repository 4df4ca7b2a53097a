//! Default resource ids, for objects that no client has written: in the resource group of their cluster or of their
//! machines.

use forewarn_lifecycle::{Cluster, Machine, MachineId, Name, Orchestration, ScaleSet, Shape};

use crate::command::{MachineDetails, Site};
use crate::resource_id::{GroupId, ResourceId};

const COMPUTE: &str = "Microsoft.Compute";

/// The resource group of a machine: its own, or that of its cluster.
#[must_use]
pub fn group_of(site: &Site, details: Option<&MachineDetails>) -> GroupId {
    let home = details.and_then(|details| details.home.as_ref());
    let name = home.map_or(&site.resource_group, |home| &home.resource_group);
    GroupId { subscription: site.subscription.clone(), name: name.clone() }
}

/// Id of a machine in a group: a virtual machine, an instance of a scale set, or a role instance of a cloud service.
/// None if the machine does not exist.
#[must_use]
pub fn machine_id(cluster: &Cluster, group: &GroupId, machine: MachineId) -> Option<ResourceId> {
    let machine = cluster.machine(machine)?;
    let tenant = cluster.tenant(machine.tenant)?;
    Some(match tenant.shape {
        Shape::PlacementGroup(set) => {
            let set = cluster.scale_set(set)?;
            match set.orchestration {
                Orchestration::Uniform => instance_id(&scale_set_id(group, &set.name), set, machine),
                Orchestration::Flexible => vm_id(group, &machine.name),
            }
        }
        Shape::CloudService => {
            let service = group.resource(COMPUTE, "cloudServices", tenant.name.as_str());
            service.child("roleInstances", machine.name.as_str())
        }
        Shape::StandaloneMachine | Shape::AvailabilitySet => vm_id(group, &machine.name),
    })
}

/// Id of a scale set in a group.
#[must_use]
pub fn scale_set_id(group: &GroupId, set: &Name) -> ResourceId {
    group.resource(COMPUTE, "virtualMachineScaleSets", set.as_str())
}

/// Id of an availability set in a group.
#[must_use]
pub fn availability_set_id(group: &GroupId, set: &Name) -> ResourceId {
    group.resource(COMPUTE, "availabilitySets", set.as_str())
}

/// Id of an instance below its scale set.
#[must_use]
pub fn instance_id(set_id: &ResourceId, set: &ScaleSet, machine: &Machine) -> ResourceId {
    set_id.child("virtualMachines", &instance_word(set, machine))
}

/// Name of an instance below its scale set: its number, or its full name.
#[must_use]
pub fn instance_word(set: &ScaleSet, machine: &Machine) -> String {
    match (set.orchestration, machine.name.instance_number(&set.name)) {
        (Orchestration::Uniform, Some(number)) => number.to_string(),
        (Orchestration::Uniform, None) | (Orchestration::Flexible, _) => machine.name.to_string(),
    }
}

fn vm_id(group: &GroupId, name: &Name) -> ResourceId {
    group.resource(COMPUTE, "virtualMachines", name.as_str())
}
