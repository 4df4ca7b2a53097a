//! The list of differences, and the comparisons that several kinds of entries share.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use super::Difference;
use super::moves::HostChange;
use crate::command::entry::PolicyEntry;
use crate::command::named::NamedCommand;
use crate::command::window::WindowEntry;
use crate::fleet_file::fleet::FleetFileError;
use crate::fleet_file::position::FleetPosition;
use forewarn_types::{Span, show_duration};

/// Maximum number of immutable parts that one error names.
const FIXED_NAMED_MAX: usize = 20;

/// The differences so far, in the order in which they must be applied.
pub(super) struct DifferenceList {
    pub(super) entries: Vec<Difference>,
    /// Machines that are on other hosts in the wanted fleet.
    pub(super) moves: Vec<HostChange>,
    /// Changes to immutable parts.
    fixed: Vec<FixedPart>,
    /// The entry of the wanted fleet that is compared now.
    pub(super) place: FleetPosition,
}

/// An immutable part of an entry that differs.
struct FixedPart {
    what: &'static str,
    name: String,
    place: FleetPosition,
}

impl DifferenceList {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), moves: Vec::new(), fixed: Vec::new(), place: FleetPosition::default() }
    }

    pub(super) fn push(&mut self, text: String, command: NamedCommand) {
        self.entries.push(Difference { text, command: Some(command), place: self.place.clone() });
    }

    /// Records that an immutable part of the current entry differs.
    pub(super) fn fixed(&mut self, what: &'static str, member: &str, name: &str) {
        self.fixed.push(FixedPart { what, name: name.to_owned(), place: self.place.member(member) });
    }

    /// All differences; or an error that names every immutable part, at the position of the first.
    pub(super) fn finish(self) -> Result<Vec<Difference>, FleetFileError> {
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

    pub(super) fn later(&mut self, text: String) {
        self.entries.push(Difference { text, command: None, place: self.place.clone() });
    }

    pub(super) fn policy(&mut self, tenant: &str, was: PolicyEntry, policy: PolicyEntry) {
        if was != policy {
            let tenant = tenant.to_owned();
            self.push(format!("~ {tenant}: policy"), NamedCommand::ChangePolicy { tenant, policy });
        }
    }

    /// Windows are set by a command of their own, also those of a new tenant.
    pub(super) fn windows(&mut self, tenant: &str, was: &[WindowEntry], wanted: &[WindowEntry]) {
        if was.is_empty() && wanted.is_empty() {
            return;
        }
        let shown = |windows: &[WindowEntry]| {
            let windows: Vec<_> = windows.iter().map(ToString::to_string).collect();
            if windows.is_empty() { "any time".to_owned() } else { windows.join("; ") }
        };
        let (from, to) = (shown(was), shown(wanted));
        // Names of time zones may be written in any case.
        if !from.eq_ignore_ascii_case(&to) {
            let windows = wanted.iter().cloned().collect();
            let command = NamedCommand::ChangeWindows { tenant: tenant.to_owned(), windows };
            self.push(format!("~ {tenant}: windows {from} -> {to}"), command);
        }
    }

    /// Records a machine that is on another host in the wanted fleet.
    pub(super) fn placement(&mut self, machine: MachineLabel<'_>, was: &str, is: &str) {
        if was != is {
            let command = NamedCommand::Move { machine: machine.full(), host: is.to_owned(), force: false };
            let text = format!("~ {machine}: host {was} -> {is}");
            let difference = Difference { text, command: Some(command), place: self.place.clone() };
            let (tenant, from, to) = (machine.tenant().to_owned(), was.to_owned(), is.to_owned());
            self.moves.push(HostChange { tenant, from, to, difference });
        }
    }

    pub(super) fn details(
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
pub(super) enum MachineLabel<'a> {
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

    pub(super) fn full(self) -> String {
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
pub(super) fn changed<const N: usize>(parts: [(&str, bool); N]) -> String {
    let changed: Vec<_> = parts.into_iter().filter_map(|(part, has)| has.then_some(part)).collect();
    changed.join(", ")
}

pub(super) fn check_place(list: &mut DifferenceList, name: &str, was: (u16, u16), is: (u16, u16)) {
    if was.0 != is.0 {
        list.fixed("update domain", "update_domain", name);
    }
    if was.1 != is.1 {
        list.fixed("fault domain", "fault_domain", name);
    }
}

pub(super) fn profile(
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
pub(super) fn notices(was: (Option<Span>, bool), is: (Option<Span>, bool)) -> String {
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
