//! Removal of objects that the wanted fleet does not mention: deleted by the driver, or only forgotten.

use std::collections::BTreeSet;

use super::{DifferenceList, SetKind, number};
use crate::command::HostEntry;
use crate::command::NamedCommand;
use crate::fleet_file::Fleet;

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

/// Machines first; sets and hosts are removed once they are empty.
pub(super) fn removals(list: &mut DifferenceList, current: &Fleet, wanted: &Fleet, farewell: RemovalMode) {
    let delete =
        |list: &mut DifferenceList, text: String, machine: String| farewell.machine(list, text, machine);
    let wanted_vms: BTreeSet<_> = wanted.vms.iter().map(|vm| &vm.name).collect();
    for vm in current.vms.iter().filter(|vm| !wanted_vms.contains(&vm.name)) {
        delete(list, format!("- vm {}", vm.name), format!("{0}/{0}", vm.name));
    }
    for kind in [SetKind::Availability, SetKind::Cloud] {
        for set in kind.of(current) {
            let keep = kind.of(wanted).iter().find(|one| one.name == set.name);
            let kept: BTreeSet<_> = keep.iter().flat_map(|set| &set.machines).map(|one| &one.name).collect();
            for machine in set.machines.iter().filter(|one| !kept.contains(&one.name)) {
                let name = format!("{}/{}", set.name, machine.name);
                delete(list, format!("- machine {name}"), name);
            }
            if keep.is_none() {
                let tenant = set.name.clone();
                let command = NamedCommand::RemoveTenant { tenant };
                container(list, format!("- {}", set.name), set.machines.is_empty(), command);
            }
        }
    }
    for set in &current.scale_sets {
        let keep = wanted.scale_sets.iter().find(|one| one.name == set.name);
        let listed = keep.map_or(&[][..], |set| &set.instances);
        let kept: BTreeSet<_> = listed.iter().enumerate().map(|(index, one)| number(index, one)).collect();
        let there = set.instances.iter().enumerate().map(|(index, one)| number(index, one));
        for id in there.filter(|id| !kept.contains(id)) {
            delete(list, format!("- instance {0}_{id}", set.name), format!("{0}/{0}_{id}", set.name));
        }
        if keep.is_none() {
            let command = NamedCommand::RemoveScaleSet { scale_set: set.name.clone() };
            container(list, format!("- scale set {}", set.name), set.instances.is_empty(), command);
        }
    }
    let used = used_hosts(current);
    let wanted_hosts: BTreeSet<_> = wanted.hosts.iter().map(|host| &host.name).collect();
    for HostEntry { name, .. } in current.hosts.iter().filter(|host| !wanted_hosts.contains(&host.name)) {
        let command = farewell.host(name.clone());
        container(list, format!("- host {name}"), !used.contains(name.as_str()), command);
    }
}

/// Removes an object that must be empty.
fn container(list: &mut DifferenceList, text: String, empty: bool, command: NamedCommand) {
    if empty { list.push(text, command) } else { list.later(format!("{text}, once its machines are gone")) }
}

fn used_hosts(fleet: &Fleet) -> BTreeSet<&str> {
    let sets = fleet.availability_sets.iter().chain(&fleet.cloud_services);
    let machines = sets.flat_map(|set| &set.machines).map(|machine| machine.host.as_str());
    let instances = fleet.scale_sets.iter().flat_map(|set| &set.instances).map(|one| one.host.as_str());
    fleet.vms.iter().map(|vm| vm.host.as_str()).chain(machines).chain(instances).collect()
}
