//! Differences between two fleets, and the commands that remove them.
//!
//! A machine on another host than in the file is a difference with the command that records the move; the operator
//! decides whether to send it. A change to something immutable (an update domain, a zone) is an error. Nothing is
//! removed unless requested: then machines are forgotten, or deleted under the rules of deletion; announced deletions
//! complete later.

mod moves;
mod removals;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::command::entry::{
    HostEntry, InstanceEntry, MachineEntry, PolicyEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
use crate::command::named::NamedCommand;
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::position::FleetPosition;
use forewarn_types::{Span, show_duration};
use moves::HostChange;
use removals::{RemovalMode, removals};

/// One difference between two fleets.
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
/// Fails if an entry is repeated, or changes something immutable.
pub fn difference(
    current: &Fleet,
    wanted: &Fleet,
    unmentioned: UnlistedObjects,
) -> Result<Vec<Difference>, FleetFileError> {
    let place = FleetPosition::default().member("site");
    let mut list = DifferenceList { entries: Vec::new(), moves: Vec::new(), fixed: Vec::new(), place };
    let was = current.site.apply(&Site::default());
    let is = wanted.site.apply(&was);
    if was != is {
        let text = format!("~ site: {}", site(&was, &is));
        list.push(text, NamedCommand::ChangeSite(wanted.site.clone()));
    }
    hosts(&mut list, current, wanted)?;
    vms(&mut list, current, wanted)?;
    for set in [SetKind::Availability, SetKind::Cloud] {
        sets(&mut list, set, set.of(current), set.of(wanted))?;
    }
    scale_sets(&mut list, current, wanted)?;
    list.place = FleetPosition::default();
    list.entries.extend(moves::in_order(std::mem::take(&mut list.moves)));
    match unmentioned {
        UnlistedObjects::Keep => {}
        UnlistedObjects::Remove => removals(&mut list, current, wanted, RemovalMode::Delete),
        UnlistedObjects::Forget => removals(&mut list, current, wanted, RemovalMode::Forget),
    }
    list.finish()
}

/// Maximum number of immutable parts that one error names.
const FIXED_NAMED_MAX: usize = 20;

struct DifferenceList {
    entries: Vec<Difference>,
    /// Machines that are on other hosts in the wanted fleet.
    moves: Vec<HostChange>,
    /// Changes to immutable parts.
    fixed: Vec<FixedPart>,
    /// The entry of the wanted fleet that is compared now.
    place: FleetPosition,
}

/// An immutable part of an entry that differs.
struct FixedPart {
    what: &'static str,
    name: String,
    place: FleetPosition,
}

impl DifferenceList {
    fn push(&mut self, text: String, command: NamedCommand) {
        self.entries.push(Difference { text, command: Some(command), place: self.place.clone() });
    }

    /// Records that an immutable part of the current entry differs.
    fn fixed(&mut self, what: &'static str, member: &str, name: &str) {
        self.fixed.push(FixedPart { what, name: name.to_owned(), place: self.place.member(member) });
    }

    /// All differences; or an error that names every immutable part, at the position of the first.
    fn finish(self) -> Result<Vec<Difference>, FleetFileError> {
        let text = match self.fixed.as_slice() {
            [] => return Ok(self.entries),
            [FixedPart { what, name, .. }] => format!(
                "the {what} of {name} cannot be changed\n  hint: delete it first, or leave the {what} as it is"
            ),
            several => {
                let named = several.iter().take(FIXED_NAMED_MAX);
                let mut named: Vec<_> =
                    named.map(|FixedPart { what, name, .. }| format!("the {what} of {name}")).collect();
                let more = several.len().saturating_sub(FIXED_NAMED_MAX);
                named.extend((more > 0).then(|| format!("{more} more")));
                format!(
                    "these cannot be changed: {}\n  hint: delete what they belong to first, or leave them as they are",
                    named.join(", ")
                )
            }
        };
        let place = self.fixed.into_iter().next().map(|part| part.place).unwrap_or_default();
        Err(FleetFileError::Entry { place, text })
    }

    fn later(&mut self, text: String) {
        self.entries.push(Difference { text, command: None, place: self.place.clone() });
    }

    fn policy(&mut self, tenant: &str, was: PolicyEntry, policy: PolicyEntry) {
        if was != policy {
            let tenant = tenant.to_owned();
            self.push(format!("~ {tenant}: policy"), NamedCommand::ChangePolicy { tenant, policy });
        }
    }

    /// Records a machine that is on another host in the wanted fleet.
    fn placement(&mut self, machine: MachineLabel<'_>, was: &str, is: &str) {
        if was != is {
            let command = NamedCommand::Move { machine: machine.full(), host: is.to_owned(), force: false };
            let text = format!("~ {machine}: host {was} -> {is}");
            let difference = Difference { text, command: Some(command), place: self.place.clone() };
            let (tenant, from, to) = (machine.tenant().to_owned(), was.to_owned(), is.to_owned());
            self.moves.push(HostChange { tenant, from, to, difference });
        }
    }

    fn details(
        &mut self,
        machine: MachineLabel<'_>,
        was: (&[IpAddr], &BTreeMap<String, String>),
        is: (&[IpAddr], &BTreeMap<String, String>),
    ) {
        if was != is {
            let command = NamedCommand::Describe {
                machine: machine.full(),
                addresses: (was.0 != is.0).then(|| is.0.to_vec()),
                tags: (was.1 != is.1).then(|| is.1.clone()),
            };
            let what = changed([("addresses", was.0 != is.0), ("tags", was.1 != is.1)]);
            self.push(format!("~ {machine}: {what}"), command);
        }
    }
}

/// Name of a machine, for people and for commands.
#[derive(Clone, Copy)]
enum MachineLabel<'a> {
    /// A standalone machine: people know it by its name, but another tenant may have a machine with that name.
    Alone(&'a str),
    /// A machine of a set: the tenant, and its name there.
    Member(&'a str, &'a str),
}

impl MachineLabel<'_> {
    fn tenant(&self) -> &str {
        match self {
            Self::Alone(tenant) | Self::Member(tenant, _) => tenant,
        }
    }

    fn full(self) -> String {
        match self {
            Self::Alone(name) => format!("{name}/{name}"),
            Self::Member(tenant, name) => format!("{tenant}/{name}"),
        }
    }
}

impl fmt::Display for MachineLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(name) => f.write_str(name),
            Self::Member(tenant, name) => write!(f, "{tenant}/{name}"),
        }
    }
}

/// The names of the parts that differ.
fn changed<const N: usize>(parts: [(&str, bool); N]) -> String {
    let changed: Vec<_> = parts.into_iter().filter_map(|(part, has)| has.then_some(part)).collect();
    changed.join(", ")
}

fn site(was: &Site, is: &Site) -> String {
    changed([
        ("location", was.location != is.location),
        ("subscription", was.subscription != is.subscription),
        ("resource group", was.resource_group != is.resource_group),
    ])
}

/// Entries by their names, each once. `list` is the list of the fleet that they are in.
fn by_name<'a, T>(
    list: (&FleetPosition, &str),
    all: &'a [T],
    name: impl Fn(&T) -> &str,
) -> Result<BTreeMap<String, &'a T>, FleetFileError> {
    let mut map = BTreeMap::new();
    for (index, one) in all.iter().enumerate() {
        let name = name(one).to_owned();
        if map.insert(name.clone(), one).is_some() {
            let place = list.0.item(list.1, index).member("name");
            return Err(FleetFileError::Entry { place, text: format!("{name} is listed twice") });
        }
    }
    Ok(map)
}

fn hosts(list: &mut DifferenceList, current: &Fleet, wanted: &Fleet) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    let known = by_name((&top, "host"), &current.hosts, |host: &HostEntry| &host.name)?;
    by_name((&top, "host"), &wanted.hosts, |host: &HostEntry| &host.name)?;
    for (index, host) in wanted.hosts.iter().enumerate() {
        list.place = top.item("host", index);
        let name = &host.name;
        match known.get(name) {
            None => list.push(format!("+ host {name}"), NamedCommand::AdmitHost(host.clone())),
            Some(was) if was.zone != host.zone => list.fixed("zone", "zone", name),
            Some(_) => {}
        }
    }
    Ok(())
}

fn vms(list: &mut DifferenceList, current: &Fleet, wanted: &Fleet) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    let known = by_name((&top, "vm"), &current.vms, |vm: &VmEntry| &vm.name)?;
    by_name((&top, "vm"), &wanted.vms, |vm: &VmEntry| &vm.name)?;
    for (index, vm) in wanted.vms.iter().enumerate() {
        list.place = top.item("vm", index);
        let name = &vm.name;
        let Some(was) = known.get(name) else {
            list.push(format!("+ vm {name} on {}", vm.host), NamedCommand::AdmitVm(vm.clone()));
            continue;
        };
        check_place(list, name, (was.update_domain, was.fault_domain), (vm.update_domain, vm.fault_domain));
        if was.spot != vm.spot {
            list.fixed("priority", "spot", name);
        }
        list.policy(name, was.policy, vm.policy);
        let called = MachineLabel::Alone(name);
        list.placement(called, &was.host, &vm.host);
        profile(list, called, (was.terminate, was.os_image), (vm.terminate, vm.os_image));
        list.details(called, (&was.addresses, &was.tags), (&vm.addresses, &vm.tags));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum SetKind {
    Availability,
    Cloud,
}

impl SetKind {
    fn of(self, fleet: &Fleet) -> &[SetEntry] {
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

    fn admit(self, set: &SetEntry) -> (String, NamedCommand) {
        let bare = SetEntry { machines: Vec::new(), ..set.clone() };
        match self {
            Self::Availability => {
                (format!("+ availability set {}", set.name), NamedCommand::AdmitAvailabilitySet(bare))
            }
            Self::Cloud => (format!("+ cloud service {}", set.name), NamedCommand::AdmitCloudService(bare)),
        }
    }
}

fn sets(
    list: &mut DifferenceList,
    kind: SetKind,
    current: &[SetEntry],
    wanted: &[SetEntry],
) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    let known = by_name((&top, kind.list()), current, |set: &SetEntry| &set.name)?;
    by_name((&top, kind.list()), wanted, |set: &SetEntry| &set.name)?;
    for (index, set) in wanted.iter().enumerate() {
        list.place = top.item(kind.list(), index);
        let was = known.get(&set.name);
        match was {
            None => {
                let (text, command) = kind.admit(set);
                list.push(text, command);
            }
            Some(was) => list.policy(&set.name, was.policy, set.policy),
        }
        let there = was.map_or(&[][..], |was| &was.machines);
        machines(list, &set.name, there, &set.machines)?;
    }
    Ok(())
}

fn machines(
    list: &mut DifferenceList,
    tenant: &str,
    current: &[MachineEntry],
    wanted: &[MachineEntry],
) -> Result<(), FleetFileError> {
    let set = list.place.clone();
    let known = by_name((&set, "machine"), current, |machine: &MachineEntry| &machine.name)?;
    by_name((&set, "machine"), wanted, |machine: &MachineEntry| &machine.name)?;
    for (index, machine) in wanted.iter().enumerate() {
        list.place = set.item("machine", index);
        let called = MachineLabel::Member(tenant, &machine.name);
        let name = called.full();
        let Some(was) = known.get(&machine.name) else {
            let command = NamedCommand::AdmitMachine { tenant: tenant.to_owned(), machine: machine.clone() };
            list.push(format!("+ machine {name} on {}", machine.host), command);
            continue;
        };
        let domains = |entry: &MachineEntry| (entry.update_domain, entry.fault_domain);
        check_place(list, &name, domains(was), domains(machine));
        if was.spot != machine.spot {
            list.fixed("priority", "spot", &name);
        }
        list.placement(called, &was.host, &machine.host);
        profile(list, called, (was.terminate, was.os_image), (machine.terminate, machine.os_image));
        list.details(called, (&was.addresses, &was.tags), (&machine.addresses, &machine.tags));
    }
    Ok(())
}

fn scale_sets(list: &mut DifferenceList, current: &Fleet, wanted: &Fleet) -> Result<(), FleetFileError> {
    let top = FleetPosition::default();
    let known = by_name((&top, "scale_set"), &current.scale_sets, |set: &ScaleSetEntry| &set.name)?;
    by_name((&top, "scale_set"), &wanted.scale_sets, |set: &ScaleSetEntry| &set.name)?;
    for (index, set) in wanted.scale_sets.iter().enumerate() {
        list.place = top.item("scale_set", index);
        let name = &set.name;
        let was = known.get(name);
        match was {
            None => {
                let bare = ScaleSetEntry { instances: Vec::new(), ..set.clone() };
                list.push(format!("+ scale set {name}"), NamedCommand::AdmitScaleSet(bare));
            }
            Some(was) => scale_set(list, was, set),
        }
        instances(list, name, was.map_or(&[][..], |was| &was.instances), &set.instances)?;
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
    set: &str,
    current: &[InstanceEntry],
    wanted: &[InstanceEntry],
) -> Result<(), FleetFileError> {
    let place = list.place.clone();
    let known = by_number(&place, set, current)?;
    for (id, (index, instance)) in by_number(&place, set, wanted)? {
        list.place = place.item("instance", index);
        let name = format!("{set}_{id}");
        let Some((_, was)) = known.get(&id) else {
            let instance = InstanceEntry { id: Some(id), ..instance.clone() };
            let text = format!("+ instance {name} on {}", instance.host);
            list.push(text, NamedCommand::AdmitInstance { scale_set: set.to_owned(), instance });
            continue;
        };
        let domains = |entry: &InstanceEntry| (entry.update_domain, entry.fault_domain);
        check_place(list, &name, domains(was), domains(instance));
        let called = MachineLabel::Member(set, &name);
        list.placement(called, &was.host, &instance.host);
        list.details(called, (&was.addresses, &was.tags), (&instance.addresses, &instance.tags));
    }
    Ok(())
}

/// Instances by their numbers, each once, with their indexes in the list. The rules give out numbers in ascending
/// order, so instances are admitted in that order, however the file lists them.
fn by_number<'a>(
    set_place: &FleetPosition,
    set: &str,
    all: &'a [InstanceEntry],
) -> Result<BTreeMap<u32, (usize, &'a InstanceEntry)>, FleetFileError> {
    let mut map = BTreeMap::new();
    for (index, instance) in all.iter().enumerate() {
        let id = number(index, instance);
        if map.insert(id, (index, instance)).is_some() {
            let place = set_place.item("instance", index).member("id");
            return Err(FleetFileError::Entry { place, text: format!("{set}_{id} is listed twice") });
        }
    }
    Ok(map)
}

/// The number of an instance: its `id`, or its index in the list.
fn number(index: usize, instance: &InstanceEntry) -> u32 {
    instance.id.unwrap_or(u32::try_from(index).unwrap_or(u32::MAX))
}

fn check_place(list: &mut DifferenceList, name: &str, was: (u16, u16), is: (u16, u16)) {
    if was.0 != is.0 {
        list.fixed("update domain", "update_domain", name);
    }
    if was.1 != is.1 {
        list.fixed("fault domain", "fault_domain", name);
    }
}

fn profile(
    list: &mut DifferenceList,
    machine: MachineLabel<'_>,
    was: (Option<Span>, bool),
    is: (Option<Span>, bool),
) {
    if was != is {
        let (terminate, os_image) = is;
        let command = NamedCommand::ChangeProfile { machine: machine.full(), terminate, os_image };
        list.push(format!("~ {machine}: {}", notices(was, is)), command);
    }
}

/// The changes of the notices of deletion and of new images.
fn notices(was: (Option<Span>, bool), is: (Option<Span>, bool)) -> String {
    let span = |span: Option<Span>| span.map_or_else(|| "off".to_owned(), |Span(span)| show_duration(span));
    let word = |on: bool| if on { "on" } else { "off" };
    let mut changes = Vec::new();
    if was.0 != is.0 {
        changes.push(format!("terminate {} -> {}", span(was.0), span(is.0)));
    }
    if was.1 != is.1 {
        changes.push(format!("os_image {} -> {}", word(was.1), word(is.1)));
    }
    changes.join(", ")
}
