//! Sizes of machines and capacities of hosts. They are applied as they are written: no event, no call of the driver.

use std::num::NonZeroU16;

use forewarn_lifecycle::{HostRoom, Size};

use super::CurrentFleet;
use super::list::{DifferenceList, MachineLabel};
use crate::command::entry::HostEntry;
use crate::command::named::NamedCommand;
use crate::command::size::{Memory, size};

/// CPUs and memory of an entry.
type EntrySize = (Option<NonZeroU16>, Option<Memory>);

pub(super) fn capacity(list: &mut DifferenceList, current: CurrentFleet<'_>, host: &HostEntry) {
    let HostEntry { name, cpus, memory, .. } = host;
    let known = current.cluster.host_named(name);
    let was = known.map(|id| current.cluster.room_of(id).capacity).unwrap_or_default();
    let is = size(*cpus, *memory);
    if was != is {
        let words = |capacity: Size| {
            if capacity.is_none() { "no limit".to_owned() } else { capacity.to_string() }
        };
        let command = NamedCommand::ChangeCapacity { host: name.clone(), cpus: *cpus, memory: *memory };
        let used = known.map(|id| current.cluster.room_of(id).used).unwrap_or_default();
        let is_exceeded = HostRoom { capacity: is, used }.is_exceeded();
        let less = if is_exceeded { "; warning: its machines take more" } else { "" };
        list.push(format!("~ host {name}: capacity {} -> {}{less}", words(was), words(is)), command);
    }
}

pub(super) fn machine(list: &mut DifferenceList, label: MachineLabel<'_>, was: EntrySize, is: EntrySize) {
    if was != is {
        let (cpus, memory) = is;
        let command = NamedCommand::Resize { machine: label.full(), cpus, memory };
        list.push(format!("~ {label}: {}", change(was, is)), command);
    }
}

pub(super) fn instances(list: &mut DifferenceList, name: &str, was: EntrySize, is: EntrySize) {
    if was != is {
        let (cpus, memory) = is;
        let command = NamedCommand::ResizeInstances { scale_set: name.to_owned(), cpus, memory };
        list.push(format!("~ {name}: {}", change(was, is)), command);
    }
}

fn change(was: EntrySize, is: EntrySize) -> String {
    format!("size {} -> {}", size(was.0, was.1), size(is.0, is.1))
}
