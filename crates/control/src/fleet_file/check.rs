//! Checks of a fleet file alone: nothing is listed twice, and no entry contradicts itself.

use std::collections::BTreeSet;

use forewarn_lifecycle::Name;

use crate::command::entry::{InstanceEntry, PlacementEntry, ScaleSetEntry, SetEntry};
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::position::FleetPosition;
use crate::placement::bounds::check_fault_domains;
use crate::placement::scale_set::check_capacity;

impl Fleet {
    /// Checks the file without a cluster.
    ///
    /// # Errors
    /// Fails if a name is listed twice, or a scale set has a number and a list of instances.
    pub fn check(&self) -> Result<(), FleetFileError> {
        let top = FleetPosition::default();
        unique((&top, "host"), self.hosts.iter().map(|host| host.name.as_str()))?;
        unique((&top, "vm"), self.vms.iter().map(|vm| vm.name.as_str()))?;
        sets("availability_set", &self.availability_sets)?;
        sets("cloud_service", &self.cloud_services)?;
        unique((&top, "scale_set"), self.scale_sets.iter().map(|set| set.name.as_str()))?;
        let mut scale_sets = self.scale_sets.iter().enumerate();
        scale_sets.try_for_each(|(index, set)| scale_set(&top.item("scale_set", index), set))
    }
}

fn sets(list: &str, sets: &[SetEntry]) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    unique((&top, list), sets.iter().map(|set| set.name.as_str()))?;
    sets.iter().enumerate().try_for_each(|(index, set)| {
        let place = top.item(list, index);
        unique((&place, "machine"), set.machines.iter().map(|machine| machine.name.as_str()))
    })
}

fn scale_set(place: &FleetPosition, set: &ScaleSetEntry) -> Result<(), FleetFileError> {
    let mut seen = BTreeSet::new();
    for (index, instance) in set.instances.iter().enumerate() {
        let id = number(index, instance);
        if !seen.insert(id) {
            let place = place.item("instance", index).member("id");
            return Err(FleetFileError::Entry { place, text: format!("{}_{id} is listed twice", set.name) });
        }
    }
    let wrong = |member: &str, text: String| Err(FleetFileError::Entry { place: place.member(member), text });
    let placement = set.placement.iter().try_for_each(check_placement);
    placement.or_else(|text| wrong("placement", text))?;
    match (set.count, &set.placement) {
        (Some(_), _) if !set.instances.is_empty() => wrong(
            "instances",
            format!(
                "{} has a number and a list of instances\n  hint: write `instances` or `instance`",
                set.name
            ),
        ),
        (None, Some(_)) => wrong(
            "placement",
            format!(
                "{} has a placement, but no number of instances\n  hint: write `instances = N`",
                set.name
            ),
        ),
        (Some(count), _) => check_capacity(count).or_else(|error| wrong("instances", error.to_string())),
        (None, None) => Ok(()),
    }
}

/// Checks a placement, also one that no instance needs now.
fn check_placement(placement: &PlacementEntry) -> Result<(), String> {
    let PlacementEntry { hosts, zones: _, fault_domains } = placement;
    for host in hosts.iter().flatten() {
        Name::new(host).map_err(|error| format!("invalid name {host:?}: {error}"))?;
    }
    check_fault_domains(*fault_domains).map_err(|error| error.to_string())
}

/// Checks that no name is repeated. `list` is the list of the fleet that they are in.
fn unique<'a>(
    list: (&FleetPosition, &str),
    names: impl Iterator<Item = &'a str>,
) -> Result<(), FleetFileError> {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let place = list.0.item(list.1, index).member("name");
            return Err(FleetFileError::Entry { place, text: format!("{name} is listed twice") });
        }
    }
    Ok(())
}

/// The number of an instance: its `id`, or its index in the list.
pub(super) fn number(index: usize, instance: &InstanceEntry) -> u32 {
    instance.id.unwrap_or(u32::try_from(index).unwrap_or(u32::MAX))
}
