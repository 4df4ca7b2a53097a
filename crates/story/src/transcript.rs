//! What every machine could have seen, and what became of the machines.
//!
//! After each line of a story, and at each instant at which something changes while the clock runs, the documents that
//! differ from what was shown before are written down. Events are called E1, E2 … in the order in which they appear.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use forewarn_lifecycle::{Cluster, EventId, Machine, Power, Priority, Tenant, TenantId};
use forewarn_wire::{Document, Edition, ReadEvent, Reading, Word, read_document, show_duration};

use crate::world::World;

/// The record of a story that was played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    text: String,
    shown: BTreeMap<TenantId, (String, u64)>,
    aliases: BTreeMap<EventId, usize>,
    stamped: Option<Duration>,
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Transcript {
    /// A line of the story, at its time.
    pub(crate) fn line(&mut self, world: &World, plain: &str) {
        self.stamp(world);
        self.push(plain);
    }

    /// Something worth saying about the line before.
    pub(crate) fn remark(&mut self, remark: &str) {
        for line in remark.lines() {
            self.push(&format!("    {}", line.trim()));
        }
    }

    /// The documents that differ from what was shown before.
    pub(crate) fn documents(&mut self, world: &World) {
        for (id, tenant) in world.cluster.tenants() {
            let known = self.shown.get(&id).map(|(_, incarnation)| *incarnation);
            if tenant.events().is_empty() && known.is_none() {
                continue;
            }
            if known != Some(tenant.incarnation) {
                self.stamp(world);
                self.document(world, id, tenant);
            }
        }
        let gone: Vec<_> =
            self.shown.keys().filter(|id| world.cluster.tenant(**id).is_none()).copied().collect();
        for id in gone {
            if let Some((name, _)) = self.shown.remove(&id) {
                self.stamp(world);
                self.push(&format!("    {name} is gone"));
            }
        }
    }

    /// Writes down the document that a machine of the tenant would read: rendered, and read again.
    fn document(&mut self, world: &World, id: TenantId, tenant: &Tenant) {
        self.shown.insert(id, (tenant.name.to_string(), tenant.incarnation));
        let body = Document::of(tenant).render(Edition::newest());
        let (name, head) = (&tenant.name, "sees document");
        match read_document(body.as_bytes()) {
            Ok(Reading::Document(read)) if read.events.is_empty() => {
                self.push(&format!("    {name} {head} {}: nothing", read.incarnation));
            }
            Ok(Reading::Document(read)) => {
                self.push(&format!("    {name} {head} {}", read.incarnation));
                for event in &read.events {
                    let line = self.event(world, event);
                    self.push(&format!("      {line}"));
                }
            }
            Ok(Reading::NoNews) => self.push(&format!("    {name} sees nothing yet")),
            Err(unreadable) => self.push(&format!("    {name} cannot read its document: {unreadable}")),
        }
    }

    fn event(&mut self, world: &World, event: &ReadEvent) -> String {
        let mut line = format!("E{} {} {}", self.alias(event.id), word(&event.kind), word(&event.status));
        if let Some(not_before) = event.not_before {
            let _ = write!(line, ", not before {}", show_duration(world.since_beginning(not_before)));
        }
        if let Some(source) = &event.source {
            let _ = write!(line, ", {}", word(source));
        }
        if let Some(seconds) = event.duration_seconds {
            let _ = write!(line, ", {seconds} s");
        }
        if let Some(description) = event.description.as_ref().filter(|text| !text.is_empty()) {
            let _ = write!(line, ", {description:?}");
        }
        let _ = write!(line, ": {}", event.resources.join(" "));
        line
    }

    fn alias(&mut self, id: EventId) -> usize {
        let next = self.aliases.len() + 1;
        *self.aliases.entry(id).or_insert(next)
    }

    /// The event that the transcript calls by that name.
    pub(crate) fn event_called(&self, name: &str) -> Option<EventId> {
        let number: usize = name.strip_prefix('E')?.parse().ok()?;
        self.aliases.iter().find(|(_, alias)| **alias == number).map(|(id, _)| *id)
    }

    /// What became of the machines.
    pub(crate) fn machines(&mut self, cluster: &Cluster) {
        self.text.push_str("\nin the end\n");
        let width = cluster.machines().map(|(_, machine)| machine.name.as_str().len()).max().unwrap_or(0);
        for (_, machine) in cluster.machines().take(MACHINES_SHOWN_MAX) {
            let host = cluster.host(machine.host).map_or("nowhere", |host| host.name.as_str());
            let line = format!("  {:width$}  {}", machine.name.as_str(), state(machine, host));
            self.push(&line);
        }
        if cluster.machines().count() > MACHINES_SHOWN_MAX {
            self.push(&format!("  and {} more", cluster.machines().count() - MACHINES_SHOWN_MAX));
        }
    }

    /// The time, once for everything that happens at it.
    fn stamp(&mut self, world: &World) {
        let elapsed = world.elapsed();
        if self.stamped != Some(elapsed) {
            self.stamped = Some(elapsed);
            let _ = writeln!(self.text, "at {}", show_duration(elapsed));
        }
    }

    fn push(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {}", line.trim_end());
    }
}

/// Machines listed at the end of a transcript.
const MACHINES_SHOWN_MAX: usize = 40;

fn word<T: fmt::Debug>(word: &Word<T>) -> String {
    match word {
        Word::Known(known) => format!("{known:?}"),
        Word::Other(text) => text.clone(),
    }
}

fn state(machine: &Machine, host: &str) -> String {
    let power = power(machine.power);
    let spot = match machine.priority {
        Priority::Regular => "",
        Priority::Spot(_) => ", spot",
    };
    let model = match machine.model_version {
        0 => String::new(),
        version => format!(", model {version}"),
    };
    let (boots, disk) = (machine.boots, machine.ephemeral_generation);
    let domain = machine.update_domain;
    format!("{power} on {host}, update domain {domain}, boot {boots}, disk {disk}{spot}{model}")
}

pub(crate) fn power(power: Power) -> &'static str {
    match power {
        Power::Running => "running",
        Power::Stopped => "stopped",
        Power::Deallocated => "deallocated",
    }
}
