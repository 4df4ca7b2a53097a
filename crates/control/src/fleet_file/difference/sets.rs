//! Availability sets and cloud services.

use forewarn_lifecycle::{Shape, Tenant};

use super::CurrentFleet;
use super::list::{DifferenceList, MachineLabel, check_place, profile};
use super::sizes;
use crate::command::entry::{MachineEntry, SetEntry};
use crate::command::named::NamedCommand;
use crate::fleet_file::fleet::Fleet;
use crate::fleet_file::position::FleetPosition;

#[derive(Clone, Copy)]
pub(super) enum SetKind {
    Availability,
    Cloud,
}

impl SetKind {
    pub(super) fn of(self, fleet: &Fleet) -> &[SetEntry] {
        match self {
            Self::Availability => &fleet.availability_sets,
            Self::Cloud => &fleet.cloud_services,
        }
    }

    /// The name of their list in a fleet file.
    fn list(self) -> &'static str {
        match self {
            Self::Availability => "availability_set",
            Self::Cloud => "cloud_service",
        }
    }

    fn shape(self) -> Shape {
        match self {
            Self::Availability => Shape::AvailabilitySet,
            Self::Cloud => Shape::CloudService,
        }
    }

    fn admit(self, set: &SetEntry) -> (String, NamedCommand) {
        let (windows, machines) = (Vec::new(), Vec::new());
        let bare = SetEntry { name: set.name.clone(), policy: set.policy, windows, machines };
        match self {
            Self::Availability => {
                (format!("+ availability set {}", set.name), NamedCommand::AdmitAvailabilitySet(bare))
            }
            Self::Cloud => (format!("+ cloud service {}", set.name), NamedCommand::AdmitCloudService(bare)),
        }
    }
}

pub(super) fn sets(list: &mut DifferenceList, kind: SetKind, current: CurrentFleet<'_>, wanted: &Fleet) {
    let (top, wanted) = (FleetPosition::default(), kind.of(wanted));
    for (index, set) in wanted.iter().enumerate() {
        list.place = top.item(kind.list(), index);
        let was = current.tenant_named(&set.name, kind.shape());
        match was {
            None => {
                let (text, command) = kind.admit(set);
                list.push(text, command);
            }
            Some(was) => list.policy(&set.name, was.policy.into(), set.policy),
        }
        list.windows(&set.name, &current.windows_named(&set.name), &set.windows);
        machines(list, current, was, set);
    }
}

fn machines(list: &mut DifferenceList, current: CurrentFleet<'_>, was: Option<&Tenant>, set: &SetEntry) {
    let place = list.place.clone();
    let known = was.map(|tenant| current.machines_of(tenant)).unwrap_or_default();
    for (index, machine) in set.machines.iter().enumerate() {
        list.place = place.item("machine", index);
        let was = known.get(machine.name.as_str()).and_then(|id| current.machine(*id));
        match was {
            None => {
                let name = MachineLabel::Member(&set.name, &machine.name);
                let command =
                    NamedCommand::AdmitMachine { tenant: set.name.clone(), machine: machine.clone() };
                list.push(format!("+ machine {name} on {}", machine.host), command);
            }
            Some(was) => self::machine(list, &set.name, &was, machine),
        }
    }
}

fn machine(list: &mut DifferenceList, tenant: &str, was: &MachineEntry, machine: &MachineEntry) {
    let called = MachineLabel::Member(tenant, &machine.name);
    let name = called.full();
    let domains = |entry: &MachineEntry| (entry.update_domain, entry.fault_domain);
    check_place(list, &name, domains(was), domains(machine));
    if was.spot != machine.spot {
        list.fixed("priority", "spot", &name);
    }
    list.placement(called, &was.host, &machine.host);
    profile(list, called, (was.terminate, was.os_image), (machine.terminate, machine.os_image));
    sizes::machine(list, called, (was.cpus, was.memory), (machine.cpus, machine.memory));
    list.details(called, (&was.addresses, &was.tags), (&machine.addresses, &machine.tags));
}
