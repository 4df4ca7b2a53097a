//! Scale sets and their instances.

use std::collections::BTreeMap;

use forewarn_lifecycle::ScaleSet;

use super::list::{DifferenceList, MachineLabel, check_place, notices};
use super::{CurrentFleet, check_unique};
use crate::command::entry::{InstanceEntry, ScaleSetEntry};
use crate::command::named::NamedCommand;
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::position::FleetPosition;
use crate::placement;

pub(super) fn scale_sets(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    wanted: &Fleet,
) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    check_unique((&top, "scale_set"), wanted.scale_sets.iter().map(|set| set.name.as_str()))?;
    for (index, set) in wanted.scale_sets.iter().enumerate() {
        list.place = top.item("scale_set", index);
        let was = current.scale_set_named(&set.name);
        match was {
            None => {
                let text = format!("+ scale set {}", set.name);
                list.push(text, NamedCommand::AdmitScaleSet(set.without_instances()));
            }
            Some(was) => scale_set(list, &CurrentFleet::bare_scale_set(was), set),
        }
        instances(list, current, was, set)?;
    }
    Ok(())
}

fn scale_set(list: &mut DifferenceList, was: &ScaleSetEntry, set: &ScaleSetEntry) {
    let name = &set.name;
    if was.spot != set.spot {
        list.fixed("priority", "spot", name);
    }
    if was.orchestration != set.orchestration {
        list.fixed("orchestration", "orchestration", name);
    }
    if was.upgrade != set.upgrade {
        let command = NamedCommand::ChangeUpgradePolicy { scale_set: name.clone(), upgrade: set.upgrade };
        list.push(format!("~ {name}: upgrade {} -> {}", was.upgrade, set.upgrade), command);
    }
    list.policy(name, was.policy, set.policy);
    if (was.terminate, was.os_image) != (set.terminate, set.os_image) {
        let (terminate, os_image) = (set.terminate, set.os_image);
        let command = NamedCommand::ChangeModel { scale_set: name.clone(), terminate, os_image };
        let text = notices((was.terminate, was.os_image), (terminate, os_image));
        list.push(format!("~ {name}: {text}"), command);
    }
}

fn instances(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    was: Option<&ScaleSet>,
    set: &ScaleSetEntry,
) -> Result<(), FleetFileError> {
    let place = list.place.clone();
    let wanted = by_number(&place, set)?;
    if wanted.is_empty() {
        return Ok(());
    }
    let known = was.map(|was| placement::instances(current.cluster, was)).unwrap_or_default();
    for (id, (index, instance)) in wanted {
        list.place = place.item("instance", index);
        let found = known.binary_search_by_key(&id, |(number, _)| *number).ok();
        match found.and_then(|found| current.instance(id, known[found].1)) {
            None => {
                let instance = InstanceEntry { id: Some(id), ..instance.clone() };
                let text = format!("+ instance {}_{id} on {}", set.name, instance.host);
                list.push(text, NamedCommand::AdmitInstance { scale_set: set.name.clone(), instance });
            }
            Some(was) => self::instance(list, &set.name, (id, &was), instance),
        }
    }
    Ok(())
}

fn instance(
    list: &mut DifferenceList,
    set: &str,
    (id, was): (u32, &InstanceEntry),
    instance: &InstanceEntry,
) {
    let name = format!("{set}_{id}");
    let domains = |entry: &InstanceEntry| (entry.update_domain, entry.fault_domain);
    check_place(list, &name, domains(was), domains(instance));
    let called = MachineLabel::Member(set, &name);
    list.placement(called, &was.host, &instance.host);
    list.details(called, (&was.addresses, &was.tags), (&instance.addresses, &instance.tags));
}

/// Instances by their numbers, each once, with their indexes in the list. The rules give out numbers in ascending
/// order, so instances are admitted in that order, however the file lists them.
fn by_number<'a>(
    place: &FleetPosition,
    set: &'a ScaleSetEntry,
) -> Result<BTreeMap<u32, (usize, &'a InstanceEntry)>, FleetFileError> {
    let mut map = BTreeMap::new();
    for (index, instance) in set.instances.iter().enumerate() {
        let id = number(index, instance);
        if map.insert(id, (index, instance)).is_some() {
            let place = place.item("instance", index).member("id");
            return Err(FleetFileError::Entry { place, text: format!("{}_{id} is listed twice", set.name) });
        }
    }
    Ok(map)
}

/// The number of an instance: its `id`, or its index in the list.
pub(super) fn number(index: usize, instance: &InstanceEntry) -> u32 {
    instance.id.unwrap_or(u32::try_from(index).unwrap_or(u32::MAX))
}
