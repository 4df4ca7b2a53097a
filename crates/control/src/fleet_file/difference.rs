//! Differences between a fleet file and the fleet of a cluster, and the commands that remove them.
//!
//! Every entry of the file is looked up by its name: the comparison costs as much as the file is long, whatever the
//! size of the fleet. Only the removal of objects that the file does not mention visits the whole fleet, once.
//!
//! A machine on another host than in the file is a difference with the command that records the move; the operator
//! decides whether to send it. A change to something immutable (an update domain, a zone) is an error. Nothing is
//! removed unless requested: then machines are forgotten, or deleted under the rules of deletion; announced deletions
//! complete later.

mod growth;
mod list;
mod moves;
mod removals;
mod scale_sets;
mod sets;
mod sizes;

use forewarn_lifecycle::Shape;

use crate::command::enrolment::EnrolmentWord;
use crate::command::entry::VmEntry;
use crate::command::named::{NamedCommand, SettingsChange};
use crate::fleet_file::current::CurrentFleet;
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::position::FleetPosition;
use list::{DifferenceList, MachineLabel, changed, check_place, profile};
use removals::{RemovalMode, removals};
use sets::SetKind;

/// One difference between a fleet file and a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Description: `+ host h3`, `~ web: terminate 5m -> 10m`, `- vm solo`.
    pub text: String,
    /// The command that removes the difference. None if another object must be removed first.
    pub command: Option<NamedCommand>,
    /// Position of the entry in the wanted fleet; the whole fleet if no entry is the reason.
    pub place: FleetPosition,
}

/// Treatment of objects that a fleet file does not mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlistedObjects {
    /// Objects stay as they are.
    Keep,
    /// Objects are removed: machines are deleted.
    Remove,
    /// Objects are no longer managed: machines stay as they are.
    Forget,
}

/// The differences that turn `current` into `wanted`, in the order in which they must be applied.
///
/// # Errors
/// Fails if an entry is repeated or contradicts itself, if it changes something immutable, or if no host can take an
/// instance.
pub fn difference(
    current: CurrentFleet<'_>,
    wanted: &Fleet,
    unmentioned: UnlistedObjects,
) -> Result<Vec<Difference>, FleetFileError> {
    wanted.check()?;
    let mut list = DifferenceList::new();
    enrolment(&mut list, current, wanted);
    site(&mut list, current, wanted);
    hosts(&mut list, current, wanted);
    vms(&mut list, current, wanted);
    for kind in [SetKind::Availability, SetKind::Cloud] {
        sets::sets(&mut list, kind, current, wanted);
    }
    scale_sets::scale_sets(&mut list, current, wanted);
    growth::growth(&mut list, current, wanted, unmentioned)?;
    list.place = FleetPosition::default();
    let moves = std::mem::take(&mut list.moves);
    list.entries.extend(moves::in_order(moves));
    match unmentioned {
        UnlistedObjects::Keep => {}
        UnlistedObjects::Remove => removals(&mut list, current, wanted, RemovalMode::Delete),
        UnlistedObjects::Forget => removals(&mut list, current, wanted, RemovalMode::Forget),
    }
    list.finish()
}

/// The rule of enrolment comes first: it applies to the tenants that the file adds.
fn enrolment(list: &mut DifferenceList, current: CurrentFleet<'_>, wanted: &Fleet) {
    let was = EnrolmentWord::from(current.cluster.settings().enrolment);
    if let Some(is) = wanted.enrolment.filter(|is| *is != was) {
        list.place = FleetPosition::default().member("enrolment");
        let change = SettingsChange { enrolment: Some(is), ..SettingsChange::default() };
        let text = format!("~ enrolment: {} -> {}", was.word(), is.word());
        list.push(text, NamedCommand::ChangeSettings(change));
    }
}

fn site(list: &mut DifferenceList, current: CurrentFleet<'_>, wanted: &Fleet) {
    let (was, is) = (current.site, wanted.site.apply(current.site));
    if *was != is {
        list.place = FleetPosition::default().member("site");
        let text = changed([
            ("location", was.location != is.location),
            ("subscription", was.subscription != is.subscription),
            ("resource group", was.resource_group != is.resource_group),
        ]);
        list.push(format!("~ site: {text}"), NamedCommand::ChangeSite(wanted.site.clone()));
    }
}

fn hosts(list: &mut DifferenceList, current: CurrentFleet<'_>, wanted: &Fleet) {
    let top = FleetPosition::default();
    for (index, host) in wanted.hosts.iter().enumerate() {
        list.place = top.item("host", index);
        let name = &host.name;
        let known = current.cluster.host_named(name).and_then(|id| current.cluster.host(id));
        match known.map(|known| known.zone.map(|zone| zone.0)) {
            None => list.push(format!("+ host {name}"), NamedCommand::AdmitHost(host.clone())),
            Some(zone) if zone != host.zone => list.fixed("zone", "zone", name),
            Some(_) => sizes::capacity(list, current, host),
        }
    }
}

fn vms(list: &mut DifferenceList, current: CurrentFleet<'_>, wanted: &Fleet) {
    let top = FleetPosition::default();
    for (index, vm) in wanted.vms.iter().enumerate() {
        list.place = top.item("vm", index);
        let tenant = current.tenant_named(&vm.name, Shape::StandaloneMachine);
        match tenant.and_then(|tenant| current.vm(tenant)) {
            None => {
                let text = format!("+ vm {} on {}", vm.name, vm.host);
                let bare = VmEntry { windows: Vec::new(), ..vm.clone() };
                list.push(text, NamedCommand::AdmitVm(bare));
            }
            Some(was) => self::vm(list, &was, vm),
        }
        list.windows(&vm.name, &current.windows_named(&vm.name), &vm.windows);
    }
}

fn vm(list: &mut DifferenceList, was: &VmEntry, vm: &VmEntry) {
    let name = &vm.name;
    check_place(list, name, (was.update_domain, was.fault_domain), (vm.update_domain, vm.fault_domain));
    if was.spot != vm.spot {
        list.fixed("priority", "spot", name);
    }
    list.policy(name, was.policy, vm.policy);
    let called = MachineLabel::Alone(name);
    list.placement(called, &was.host, &vm.host);
    profile(list, called, (was.terminate, was.os_image), (vm.terminate, vm.os_image));
    sizes::machine(list, called, (was.cpus, was.memory), (vm.cpus, vm.memory));
    list.details(called, (&was.addresses, &was.tags), (&vm.addresses, &vm.tags));
}
