//! Scale sets and their instances.

use std::collections::BTreeMap;

use forewarn_lifecycle::ScaleSet;

use super::CurrentFleet;
use super::list::{DifferenceList, MachineLabel, check_place, notices};
use super::sizes;
use crate::command::entry::{InstanceEntry, ScaleSetEntry};
use crate::command::named::NamedCommand;
use crate::fleet_file::check::number;
use crate::fleet_file::fleet::Fleet;
use crate::fleet_file::position::FleetPosition;
use crate::placement;

pub(super) fn scale_sets(list: &mut DifferenceList, current: CurrentFleet<'_>, wanted: &Fleet) {
    let top = FleetPosition::default();
    for (index, set) in wanted.scale_sets.iter().enumerate() {
        list.place = top.item("scale_set", index);
        let was = current.scale_set_named(&set.name);
        match was {
            None => {
                let text = format!("+ scale set {}", set.name);
                list.push(text, NamedCommand::AdmitScaleSet(set.without_instances()));
            }
            Some((id, was)) => scale_set(list, &current.bare_scale_set(id, was), set),
        }
        list.windows(&set.name, &current.windows_named(&set.name), &set.windows);
        instances(list, current, was.map(|(_, was)| was), set);
    }
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
    sizes::instances(list, name, (was.cpus, was.memory), (set.cpus, set.memory));
}

fn instances(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    was: Option<&ScaleSet>,
    set: &ScaleSetEntry,
) {
    let place = list.place.clone();
    let wanted = by_number(set);
    if wanted.is_empty() {
        return;
    }
    let known = was.map(|was| placement::instances(current.cluster, was)).unwrap_or_default();
    for (id, (index, instance)) in wanted {
        list.place = place.item("instance", index);
        let found = known.binary_search_by_key(&id, |(number, _)| *number).ok();
        let found = found.map(|found| known[found].1);
        let name = |id| current.cluster.machine(id).map(|machine| machine.name.to_string());
        match found.and_then(|machine| Some((name(machine)?, current.instance(id, machine)?))) {
            None => {
                let instance = InstanceEntry { id: Some(id), ..instance.clone() };
                let text = format!("+ instance {} on {}", set.instance_name(id), instance.host);
                list.push(text, NamedCommand::AdmitInstance { scale_set: set.name.clone(), instance });
            }
            Some((name, was)) => self::instance(list, &set.name, (&name, &was), instance),
        }
    }
}

fn instance(
    list: &mut DifferenceList,
    set: &str,
    (name, was): (&str, &InstanceEntry),
    instance: &InstanceEntry,
) {
    let domains = |entry: &InstanceEntry| (entry.update_domain, entry.fault_domain);
    check_place(list, name, domains(was), domains(instance));
    let called = MachineLabel::Member(set, name);
    list.placement(called, &was.host, &instance.host);
    list.details(called, (&was.addresses, &was.tags), (&instance.addresses, &instance.tags));
}

/// Instances by their numbers, with their indexes in the list. The rules give out numbers in ascending order, so
/// instances are admitted in that order, however the file lists them.
fn by_number(set: &ScaleSetEntry) -> BTreeMap<u32, (usize, &InstanceEntry)> {
    let numbered = |(index, instance)| (number(index, instance), (index, instance));
    set.instances.iter().enumerate().map(numbered).collect()
}
