//! Removal of objects that the wanted fleet does not mention: deleted by the driver, or only forgotten. Visits the
//! fleet once, and copies only the names of the objects that go.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Cluster, ScaleSet, Shape, Tenant};

use super::list::DifferenceList;
use super::sets::SetKind;
use super::{CurrentFleet, Difference};
use crate::command::NamedCommand;
use crate::command::entry::{ScaleSetEntry, SetEntry};
use crate::fleet_file::check::number;
use crate::fleet_file::fleet::Fleet;
use crate::placement::instances::staying;
use crate::placement::{ScaleIn, instances, pick_for_scale_in};

/// The way in which machines are removed.
#[derive(Clone, Copy)]
pub(super) enum RemovalMode {
    Delete,
    Forget,
}

impl RemovalMode {
    fn machine(self, list: &mut DifferenceList, text: String, machine: String) {
        match self {
            Self::Delete => list.push(text, NamedCommand::Delete { machine }),
            Self::Forget => list.push(format!("{text}, forgotten"), NamedCommand::Forget { machine }),
        }
    }

    fn host(self, host: String) -> NamedCommand {
        match self {
            Self::Delete => NamedCommand::RemoveHost { host },
            Self::Forget => NamedCommand::ForgetHost { host },
        }
    }
}

/// Names of the machines of each set that the wanted fleet lists.
type ListedSets<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Machines first; sets and hosts are removed once they are empty.
pub(super) fn removals(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    wanted: &Fleet,
    farewell: RemovalMode,
) {
    let listed: BTreeSet<_> = wanted.vms.iter().map(|vm| vm.name.as_str()).collect();
    let availability_sets = listed_sets(SetKind::Availability, wanted);
    let cloud_services = listed_sets(SetKind::Cloud, wanted);
    // Standalone machines come first, then availability sets, then cloud services.
    let mut later = [Vec::new(), Vec::new()];
    for (_, tenant) in current.cluster.tenants() {
        let name = &tenant.name;
        match tenant.shape {
            Shape::StandaloneMachine if !listed.contains(name.as_str()) => {
                farewell.machine(list, format!("- vm {name}"), format!("{name}/{name}"));
            }
            Shape::AvailabilitySet => {
                later[0].extend(set(current, tenant, &availability_sets, farewell));
            }
            Shape::CloudService => later[1].extend(set(current, tenant, &cloud_services, farewell)),
            Shape::StandaloneMachine | Shape::PlacementGroup(_) => {}
        }
    }
    list.entries.extend(later.into_iter().flatten());
    let listed: BTreeMap<_, _> = wanted.scale_sets.iter().map(|set| (set.name.as_str(), set)).collect();
    for (_, set) in current.cluster.scale_sets() {
        scale_set(list, current, set, listed.get(set.name.as_str()).copied(), farewell);
    }
    let listed: BTreeSet<_> = wanted.hosts.iter().map(|host| host.name.as_str()).collect();
    for (_, host) in current.cluster.hosts().filter(|(_, host)| !listed.contains(host.name.as_str())) {
        let command = farewell.host(host.name.to_string());
        container(list, format!("- host {}", host.name), host.machines().is_empty(), command);
    }
}

fn listed_sets<'a>(kind: SetKind, wanted: &'a Fleet) -> ListedSets<'a> {
    let machines = |set: &'a SetEntry| set.machines.iter().map(|one| one.name.as_str()).collect();
    kind.of(wanted).iter().map(|set| (set.name.as_str(), machines(set))).collect()
}

/// An availability set or a cloud service.
fn set(
    current: CurrentFleet<'_>,
    tenant: &Tenant,
    listed: &ListedSets<'_>,
    farewell: RemovalMode,
) -> Vec<Difference> {
    let mut list = DifferenceList::new();
    let keep = listed.get(tenant.name.as_str());
    for machine in tenant.machines().iter().filter_map(|id| current.cluster.machine(*id)) {
        if keep.is_none_or(|kept| !kept.contains(machine.name.as_str())) {
            let name = format!("{}/{}", tenant.name, machine.name);
            farewell.machine(&mut list, format!("- machine {name}"), name);
        }
    }
    if keep.is_none() {
        let command = NamedCommand::RemoveTenant { tenant: tenant.name.to_string() };
        container(&mut list, format!("- {}", tenant.name), tenant.machines().is_empty(), command);
    }
    list.entries
}

fn scale_set(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    set: &ScaleSet,
    keep: Option<&ScaleSetEntry>,
    farewell: RemovalMode,
) {
    let (there, name) = (instances(current.cluster, set), &set.name);
    let going = match keep {
        Some(ScaleSetEntry { count: Some(count), .. }) => surplus(current.cluster, set, (*count).into()),
        Some(ScaleSetEntry { instances: listed, count: None, .. }) => {
            let numbered = listed.iter().enumerate();
            let kept: BTreeSet<_> = numbered.map(|(index, one)| number(index, one)).collect();
            there.iter().map(|(id, _)| *id).filter(|id| !kept.contains(id)).collect()
        }
        None => there.iter().map(|(id, _)| *id).collect(),
    };
    let numbered: BTreeMap<_, _> = there.iter().copied().collect();
    let machine = |number: &u32| current.cluster.machine(*numbered.get(number)?);
    for machine in going.iter().filter_map(machine) {
        let instance = &machine.name;
        farewell.machine(list, format!("- instance {instance}"), format!("{name}/{instance}"));
    }
    if keep.is_none() {
        let command = NamedCommand::RemoveScaleSet { scale_set: name.to_string() };
        container(list, format!("- scale set {name}"), there.is_empty(), command);
    }
}

/// The numbers of the instances that a scale set has too many, in the order in which they go.
fn surplus(cluster: &Cluster, set: &ScaleSet, count: usize) -> Vec<u32> {
    let surplus = staying(cluster, set).saturating_sub(count);
    // Fails only if instances are protected, and none is.
    pick_for_scale_in(cluster, set, surplus, &ScaleIn::default()).unwrap_or_default()
}

/// Removes an object that must be empty.
fn container(list: &mut DifferenceList, text: String, empty: bool, command: NamedCommand) {
    if empty { list.push(text, command) } else { list.later(format!("{text}, once its machines are gone")) }
}
