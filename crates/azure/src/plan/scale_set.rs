//! Plans for the body of a scale set.
//!
//! Capacity, mode, profile and policy are compared with the rules. Members that the rules do not know, like image and
//! size, are compared with the body that was shown before: if they differ, the model gets a new version.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Cluster, MachineId, Orchestration, ScaleSet, ScaleSetId};
use serde_json::{Map, Value};

use super::action::{Action, plan_instances};
use super::common::{change_policy, check_priority, describe, no_room_in_zones};
use crate::body::{at, flag_at};
use crate::error::ArmError;
use crate::instances::{InstanceSelection, instances_of};
use crate::names::{NameOwner, check_new_name};
use crate::read::common::read_image;
use crate::read::machine::Protection;
use crate::read::scale_set::{MODEL, ScaleSetWanted, read_scale_set};
use crate::refusals::{not_changeable, not_found, scale_set_error};
use forewarn_control::{
    NamedCommand, NewScaleSet, Scale, ScaleIn, ScaleSetCommand, ScaleSetError, UpgradeWord, full_name,
    notices, pick_for_scale_in, spot,
};

/// The commands that make a scale set match its body. `before` is the scale set and its current body, canonical;
/// none, if the scale set is new. Protected instances stay when it shrinks.
///
/// # Errors
/// Fails if the body is invalid, changes something that cannot change, or there is no room for all instances.
pub fn plan_scale_set(
    cluster: &Cluster,
    name: &str,
    before: Option<(ScaleSetId, &Value)>,
    body: &Value,
    protection: &dyn Fn(MachineId) -> Protection,
) -> Result<Vec<NamedCommand>, ArmError> {
    let wanted = read_scale_set(body)?;
    let Some((id, before)) = before else { return create(cluster, name, &wanted) };
    let set = cluster.scale_set(id).ok_or_else(not_found)?;
    check_unchanged(set, &wanted, before, body)?;
    let mut commands = change(set, &wanted, before, body);
    for machine in instances_of(cluster, set) {
        commands.extend(describe(cluster, machine, before, body)?);
    }
    let scaled = scale(cluster, set, &wanted, protection)?;
    if image_changes(before, body) && wanted.upgrade == UpgradeWord::Automatic {
        commands.extend(reimage(cluster, set, &scaled, protection)?);
    }
    commands.extend(scaled);
    Ok(commands)
}

/// The version of the model that brought the image of the body: the next version if the image is another one
/// than before, else the noted one.
#[must_use]
pub fn image_since(
    cluster: &Cluster,
    id: ScaleSetId,
    noted: Option<u32>,
    before: &Value,
    body: &Value,
) -> Option<u32> {
    if image_changes(before, body) { cluster.scale_set(id).map(|set| set.model_version + 1) } else { noted }
}

fn create(cluster: &Cluster, name: &str, wanted: &ScaleSetWanted) -> Result<Vec<NamedCommand>, ArmError> {
    check_new_name(cluster, name, NameOwner::ScaleSet)?;
    let (terminate, os_image) = notices(wanted.profile);
    let new = NewScaleSet {
        name: name.to_owned(),
        orchestration: wanted.orchestration,
        upgrade: wanted.upgrade,
        cpus: None,
        memory: None,
        spot: spot(wanted.priority),
        terminate,
        os_image,
        policy: wanted.policy,
        instances: wanted.capacity.unwrap_or(0),
        hosts: None,
        zones: zones(wanted),
        fault_domains: wanted.fault_domains,
    };
    grown(cluster, &ScaleSetCommand::CreateScaleSet(new), wanted)
}

fn zones(wanted: &ScaleSetWanted) -> Vec<u16> {
    wanted.zones.iter().map(|zone| zone.0).collect()
}

/// The commands of a scale set command; new instances get the tags of the scale set.
fn grown(
    cluster: &Cluster,
    change: &ScaleSetCommand,
    wanted: &ScaleSetWanted,
) -> Result<Vec<NamedCommand>, ArmError> {
    let mut commands = change.commands(cluster).map_err(|bad| {
        let error = scale_set_error(&bad);
        match bad {
            ScaleSetError::NoHost { .. } if !wanted.zones.is_empty() => {
                let zones: Vec<_> = wanted.zones.iter().map(|zone| zone.0.to_string()).collect();
                no_room_in_zones(&format!("Zones: {}. {}", zones.join(", "), error.message))
            }
            ScaleSetError::NoHost { .. }
            | ScaleSetError::Unknown(_)
            | ScaleSetError::TooMany(_)
            | ScaleSetError::FaultDomains(_)
            | ScaleSetError::Protected { .. } => error,
        }
    })?;
    for command in &mut commands {
        if let NamedCommand::AdmitInstance { instance, .. } = command {
            instance.tags = wanted.tags.clone().unwrap_or_default();
        }
    }
    Ok(commands)
}

/// Checks the members of a scale set that cannot change.
fn check_unchanged(
    set: &ScaleSet,
    wanted: &ScaleSetWanted,
    before: &Value,
    body: &Value,
) -> Result<(), ArmError> {
    if set.orchestration != Orchestration::from(wanted.orchestration) {
        return Err(not_changeable("orchestrationMode"));
    }
    check_priority(set.priority, wanted.priority)?;
    let domains = |body: &Value| at(body, "properties.platformFaultDomainCount").cloned();
    if domains(before).is_some() && domains(before) != domains(body) {
        return Err(not_changeable("platformFaultDomainCount"));
    }
    let is_single = |body: &Value| flag_at(body, "properties.singlePlacementGroup");
    if is_single(before)? == Some(false) && is_single(body)? == Some(true) {
        return Err(not_changeable("singlePlacementGroup"));
    }
    Ok(())
}

/// The commands for the members of a scale set that may change.
fn change(set: &ScaleSet, wanted: &ScaleSetWanted, before: &Value, body: &Value) -> Vec<NamedCommand> {
    let name = || set.name.to_string();
    let mut commands = Vec::new();
    // First: a new model reaches instances as the new policy says.
    if wanted.upgrade != UpgradeWord::from(set.upgrade) {
        let upgrade = wanted.upgrade;
        commands.push(NamedCommand::ChangeUpgradePolicy { scale_set: name(), upgrade });
    }
    if wanted.profile != set.model {
        let (terminate, os_image) = notices(wanted.profile);
        commands.push(NamedCommand::ChangeModel { scale_set: name(), terminate, os_image });
    } else if model_changes(before, body) {
        commands.push(NamedCommand::ReviseModel { scale_set: name() });
    }
    commands.extend(change_policy(set.policy.into(), wanted.policy, name()));
    commands
}

/// The part of the model that the rules do not know has changed.
fn model_changes(before: &Value, body: &Value) -> bool {
    let size = |body: &Value| at(body, "sku.name").and_then(Value::as_str).map(str::to_lowercase);
    let has_other_size = size(before).is_some() && size(before) != size(body);
    has_other_size || unknown_model(before) != unknown_model(body)
}

/// The model without members that the rules know, and without empty ones.
fn unknown_model(body: &Value) -> Value {
    let mut model = at(body, MODEL).cloned().unwrap_or_default();
    if let Value::Object(members) = &mut model {
        for known in ["scheduledEventsProfile", "priority", "evictionPolicy"] {
            members.shift_remove(known);
        }
    }
    without_empty(&model).unwrap_or_default()
}

/// A value without empty objects and lists.
fn without_empty(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(members) => {
            let nonempty =
                members.iter().filter_map(|(name, value)| Some((name.clone(), without_empty(value)?)));
            let nonempty: Map<_, _> = nonempty.collect();
            (!nonempty.is_empty()).then_some(Value::Object(nonempty))
        }
        Value::Array(items) => {
            let nonempty: Vec<_> = items.iter().map(|item| without_empty(item).unwrap_or_default()).collect();
            (!nonempty.is_empty()).then_some(Value::Array(nonempty))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// The image has changed.
fn image_changes(before: &Value, body: &Value) -> bool {
    let image = |body: &Value| at(body, MODEL).and_then(read_image);
    image(before).is_some() && image(before) != image(body)
}

/// The commands that reach the wanted number of instances.
fn scale(
    cluster: &Cluster,
    set: &ScaleSet,
    wanted: &ScaleSetWanted,
    protection: &dyn Fn(MachineId) -> Protection,
) -> Result<Vec<NamedCommand>, ArmError> {
    let Some(capacity) = wanted.capacity else { return Ok(Vec::new()) };
    let number = |id: MachineId| cluster.machine(id)?.name.instance_number(&set.name);
    let staying = instances_of(cluster, set).into_iter().filter(|id| !cluster.is_leaving(*id));
    let staying: BTreeMap<_, _> = staying.filter_map(|id| Some((number(id)?, id))).collect();
    let Some(surplus) = staying.len().checked_sub(capacity.into()).filter(|surplus| *surplus > 0) else {
        let (zones, fault_domains) = (zones(wanted), wanted.fault_domains);
        let to = Scale { capacity, hosts: None, zones, fault_domains };
        return grown(cluster, &ScaleSetCommand::Scale { scale_set: set.name.to_string(), to }, wanted);
    };
    let protected = staying.iter().filter(|(_, id)| protection(**id).stays()).map(|(number, _)| *number);
    let how = ScaleIn { rule: wanted.scale_in, protected: protected.collect() };
    let go = pick_for_scale_in(cluster, set, surplus, &how).map_err(|bad| scale_set_error(&bad))?;
    let go = go.iter().filter_map(|number| staying.get(number));
    Ok(go.map(|id| NamedCommand::Delete { machine: full_name(cluster, *id) }).collect())
}

/// Reimages the remaining instances whose state allows it.
fn reimage(
    cluster: &Cluster,
    set: &ScaleSet,
    scaled: &[NamedCommand],
    protection: &dyn Fn(MachineId) -> Protection,
) -> Result<Vec<NamedCommand>, ArmError> {
    let gone = scaled.iter().filter_map(|command| {
        if let NamedCommand::Delete { machine } = command { Some(machine.as_str()) } else { None }
    });
    let gone: BTreeSet<_> = gone.collect();
    let mut stay = instances_of(cluster, set);
    stay.retain(|id| !gone.contains(full_name(cluster, *id).as_str()));
    plan_instances(cluster, Action::Reimage, &InstanceSelection::All(stay), protection)
}

#[cfg(test)]
mod tests;
