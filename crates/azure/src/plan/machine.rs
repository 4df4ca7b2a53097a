//! Plans for the body of a machine or an availability set.

use forewarn_lifecycle::{
    Cluster, Machine, MachineId, Name, Orchestration, Profile, Shape, Tenant, TenantId,
};
use serde_json::Value;

use super::common::{change_policy, check_priority, describe, host_name, place};
use crate::body::at;
use crate::error::ArmError;
use crate::names::{NameOwner, check_new_name, no_such_resource, tenant_of};
use crate::read::machine::{Domains, MachineWanted, read_availability_set, read_machine, read_protection};
use crate::refusals::{not_changeable, not_found, scale_set_error};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::{
    INSTANCES_MAX, MachineEntry, NamedCommand, Scale, ScaleSetCommand, SetEntry, VmEntry, full_name, notices,
    spot,
};

/// Commands that make the fleet match the body of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePlan {
    /// The commands, in order; none, if nothing changes.
    pub commands: Vec<NamedCommand>,
    /// Full name of the machine afterwards: `tenant/name`.
    pub machine: String,
}

/// The commands that make a machine match its body. `before` is the machine and its current body; none, if it is
/// new. `domains` are those of the availability set that it joins.
///
/// # Errors
/// Fails if the body is invalid, changes something that cannot change, or no host can take the machine.
pub fn plan_machine(
    cluster: &Cluster,
    name: &str,
    before: Option<(MachineId, &Value)>,
    body: &Value,
    domains: Domains,
) -> Result<MachinePlan, ArmError> {
    let wanted = read_machine(body)?;
    let Some((id, before)) = before else {
        return match (&wanted.availability_set, &wanted.scale_set) {
            (Some(set), _) => join_availability_set(cluster, name, &wanted, set, domains),
            (None, Some(set)) => join_scale_set(cluster, name, &wanted, set, body),
            (None, None) => standalone(cluster, name, &wanted),
        };
    };
    let machine = cluster.machine(id).ok_or_else(not_found)?;
    check_unchanged(cluster, machine, &wanted, &read_machine(before)?)?;
    let commands = change(cluster, id, machine, &wanted, before, body)?;
    Ok(MachinePlan { commands, machine: full_name(cluster, id) })
}

/// The commands that make an instance of a scale set match its body: protection and tags.
///
/// # Errors
/// Fails if the body is invalid, or the instance does not exist.
pub fn plan_instance(
    cluster: &Cluster,
    id: MachineId,
    before: &Value,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    cluster.machine(id).ok_or_else(not_found)?;
    read_protection(body)?;
    Ok(describe(cluster, id, before, body)?.into_iter().collect())
}

/// The commands that make an availability set match its body.
///
/// # Errors
/// Fails if the body is invalid, or changes something that cannot change.
pub fn plan_availability_set(
    cluster: &Cluster,
    name: &str,
    before: Option<(TenantId, &Value)>,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    let wanted = read_availability_set(body)?;
    let Some((id, before)) = before else {
        check_new_name(cluster, name, NameOwner::AvailabilitySet)?;
        let (windows, machines) = (Vec::new(), Vec::new());
        let entry = SetEntry { name: name.to_owned(), policy: wanted.policy, windows, machines };
        return Ok(vec![NamedCommand::AdmitAvailabilitySet(entry)]);
    };
    let tenant = cluster.tenant(id).ok_or_else(not_found)?;
    let was = read_availability_set(before)?.domains;
    if was.fault != wanted.domains.fault {
        return Err(not_changeable("platformFaultDomainCount"));
    }
    if was.update != wanted.domains.update {
        return Err(not_changeable("platformUpdateDomainCount"));
    }
    let name = tenant.name.to_string();
    Ok(change_policy(tenant.policy.into(), wanted.policy, name).into_iter().collect())
}

fn standalone(cluster: &Cluster, name: &str, wanted: &MachineWanted) -> Result<MachinePlan, ArmError> {
    check_new_name(cluster, name, NameOwner::Machine)?;
    let place = place(cluster, None, wanted.zone, Domains { update: 1, fault: 1 })?;
    let (terminate, os_image) = notices(wanted.profile);
    let entry = VmEntry {
        windows: Vec::new(),
        name: name.to_owned(),
        host: host_name(cluster, place),
        update_domain: place.update_domain,
        fault_domain: place.fault_domain,
        cpus: None,
        memory: None,
        spot: spot(wanted.priority),
        terminate,
        os_image,
        policy: wanted.policy,
        addresses: Vec::new(),
        tags: wanted.tags.clone().unwrap_or_default(),
    };
    Ok(MachinePlan { commands: vec![NamedCommand::AdmitVm(entry)], machine: format!("{name}/{name}") })
}

fn join_availability_set(
    cluster: &Cluster,
    name: &str,
    wanted: &MachineWanted,
    set: &ResourceId,
    domains: Domains,
) -> Result<MachinePlan, ArmError> {
    let id = tenant_of(cluster, set).ok_or_else(|| no_such_resource(set))?;
    let tenant = cluster.tenant(id).filter(|tenant| tenant.shape == Shape::AvailabilitySet);
    let tenant = tenant.ok_or_else(|| no_such_resource(set))?.name.to_string();
    check_new_name(cluster, name, NameOwner::Machine)?;
    let place = place(cluster, Some(id), wanted.zone, domains)?;
    let (terminate, os_image) = notices(wanted.profile);
    let machine = MachineEntry {
        name: name.to_owned(),
        host: host_name(cluster, place),
        update_domain: place.update_domain,
        fault_domain: place.fault_domain,
        cpus: None,
        memory: None,
        spot: spot(wanted.priority),
        terminate,
        os_image,
        addresses: Vec::new(),
        tags: wanted.tags.clone().unwrap_or_default(),
    };
    let full = format!("{tenant}/{name}");
    Ok(MachinePlan { commands: vec![NamedCommand::AdmitMachine { tenant, machine }], machine: full })
}

/// Adds a machine to a flexible scale set as a new instance, with the name of an instance.
fn join_scale_set(
    cluster: &Cluster,
    name: &str,
    wanted: &MachineWanted,
    id: &ResourceId,
    body: &Value,
) -> Result<MachinePlan, ArmError> {
    let group = tenant_of(cluster, id).and_then(|tenant| cluster.tenant(tenant));
    let set = match group.map(|group| group.shape) {
        Some(Shape::PlacementGroup(set)) => cluster.scale_set(set),
        Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => None,
    };
    let set = set.ok_or_else(|| no_such_resource(id))?;
    if set.orchestration == Orchestration::Uniform {
        let message = "A virtual machine can only be added to a Virtual Machine Scale Set with 'orchestrationMode' Flexible.";
        return Err(ArmError::new(409, "OperationNotAllowed", message).at("virtualMachineScaleSet"));
    }
    let says_priority = at(body, "properties.priority").is_some();
    if says_priority && wanted.priority != set.priority {
        return Err(of_its_set("priority"));
    }
    if wanted.profile != Profile::default() && wanted.profile != set.model {
        return Err(of_its_set("scheduledEventsProfile"));
    }
    let staying = group.map_or(&[][..], Tenant::machines).iter().filter(|id| !cluster.is_leaving(**id));
    let capacity = u16::try_from(staying.count() + 1).unwrap_or(u16::MAX);
    let zones = wanted.zone.into_iter().map(|zone| zone.0).collect();
    let to = Scale { capacity, zones, ..Scale::default() };
    let change = ScaleSetCommand::Scale { scale_set: set.name.to_string(), to };
    let mut commands = change.commands(cluster).map_err(|bad| scale_set_error(&bad))?;
    // A machine that was an instance before gets its name back, but an arbitrary name does not use up the numbers.
    let soon = set.next_instance..set.next_instance.saturating_add(INSTANCES_MAX.into());
    let own = Name::restored(name).ok().and_then(|name| name.instance_number(&set.name));
    let number = own.filter(|number| soon.contains(number)).unwrap_or(set.next_instance);
    for command in &mut commands {
        if let NamedCommand::AdmitInstance { instance, .. } = command {
            instance.id = Some(number);
            instance.tags = wanted.tags.clone().unwrap_or_default();
        }
    }
    Ok(MachinePlan { commands, machine: format!("{}/{}", set.name, set.instance_name(number)) })
}

fn of_its_set(property: &'static str) -> ArmError {
    let message = format!(
        "The property '{property}' of a virtual machine in a Virtual Machine Scale Set comes with the scale set: change \
         it there."
    );
    ArmError::new(409, "OperationNotAllowed", message).at(property)
}

/// Checks the members of a machine that cannot change.
fn check_unchanged(
    cluster: &Cluster,
    machine: &Machine,
    wanted: &MachineWanted,
    was: &MachineWanted,
) -> Result<(), ArmError> {
    let other = |id: &Option<ResourceId>| {
        id.as_ref().is_some_and(|id| tenant_of(cluster, id) != Some(machine.tenant))
    };
    if other(&wanted.availability_set) {
        return Err(not_changeable("availabilitySet.id"));
    }
    if other(&wanted.scale_set) {
        return Err(not_changeable("virtualMachineScaleSet.id"));
    }
    check_priority(machine.priority, wanted.priority)?;
    if was.image.is_some() && was.image != wanted.image {
        return Err(not_changeable("imageReference"));
    }
    if was.zone != wanted.zone {
        let message = "Zones cannot be added, updated or removed once the resource is created. The resource cannot be \
                       updated from regional to zonal or vice-versa.";
        return Err(ArmError::new(400, "ResourceAvailabilityZonesCannotBeModified", message).at("zones"));
    }
    Ok(())
}

/// The commands for the members of a machine that may change.
fn change(
    cluster: &Cluster,
    id: MachineId,
    machine: &Machine,
    wanted: &MachineWanted,
    before: &Value,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    let tenant = cluster.tenant(machine.tenant).ok_or_else(not_found)?;
    let mut commands = Vec::new();
    if machine.profile != wanted.profile {
        if let Shape::PlacementGroup(_) = tenant.shape {
            return Err(of_its_set("scheduledEventsProfile"));
        }
        let (terminate, os_image) = notices(wanted.profile);
        let machine = full_name(cluster, id);
        commands.push(NamedCommand::ChangeProfile { machine, terminate, os_image });
    }
    if tenant.shape == Shape::StandaloneMachine {
        commands.extend(change_policy(tenant.policy.into(), wanted.policy, tenant.name.to_string()));
    }
    commands.extend(describe(cluster, id, before, body)?);
    Ok(commands)
}

#[cfg(test)]
mod tests;
