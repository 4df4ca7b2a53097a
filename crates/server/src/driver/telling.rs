//! Telling what was asked for and what has happened: entries of the trail, in the commit of what they tell of.

use std::sync::Arc;

use forewarn_control::push::{Beside, Notice, Owner, notices};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::{ClusterId, Link};
use forewarn_control::{
    Chain, Happening, NamedCommand, Told, TrailEntry, find_event, find_machine, full_name,
};
use forewarn_imds::Moment;
use forewarn_lifecycle::{Approver, Change, Cluster, Command, MachineId, Now, Report};
use forewarn_store::{Entry, Record};
use serde_json::{Value, json};

use super::Driver;
use crate::engine::ITSELF;

/// For whom something is done at the moment.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    by: String,
    /// The number of the entry of what was asked for.
    because: Option<u64>,
    /// The reason of a failure that a driver program reports.
    reason: Option<String>,
}

impl Default for Telling {
    /// Nobody has asked: time has passed, or a machine is ready.
    fn default() -> Self {
        Self { by: ITSELF.to_owned(), because: None, reason: None }
    }
}

/// Where the trail stood, should what was asked for be refused after all.
pub(super) struct Mark {
    chain: Chain,
    told: usize,
}

/// Characters of what was asked for that are put into words.
const PHRASE_CHARACTERS_MAX: usize = 200;

impl Driver {
    /// Everything until [`Self::told`] is done for somebody who has asked for it. There is one entry of that.
    pub(super) fn tell_command(
        &mut self,
        now: Now,
        id: Option<ClusterId>,
        by: &str,
        commands: &Value,
    ) -> Mark {
        let mark = Mark { chain: self.chain, told: self.batch.trail.len() };
        let cluster = id.and_then(|id| self.kept.catalogue.cluster_name(id));
        let told = Told {
            at: Moment(now.wall),
            cluster: cluster.map(ToString::to_string).unwrap_or_default(),
            cluster_number: id.map(|id| id.0).unwrap_or_default(),
            by: by.to_owned(),
            kind: "command".to_owned(),
            text: format!("asked for: {}", phrase(commands)),
            command: Some(commands.clone()),
            ..Told::default()
        };
        let told = match id.and_then(|id| self.kept.clusters.get(&id)) {
            Some(estate) => subjects(&estate.cluster, commands, told),
            None => told,
        };
        self.seal(told);
        self.telling = Telling { because: Some(self.chain.number), ..Telling::default() };
        mark
    }

    /// Everything until [`Self::told`] is the rest of what was asked for with that entry.
    pub(super) fn tell_because(&mut self, by: &str, entry: u64) -> Mark {
        self.telling = Telling { by: by.to_owned(), because: Some(entry), reason: None };
        Mark { chain: self.chain, told: self.batch.trail.len() }
    }

    /// What somebody asked for is done.
    pub(super) fn told(&mut self) {
        self.telling = Telling::default();
    }

    /// What somebody asked for was refused: nobody is told of it.
    pub(super) fn untell(&mut self, mark: &Mark) {
        self.told();
        self.batch.trail.truncate(mark.told);
        self.chain = mark.chain;
    }

    /// Everything until [`Self::told`] is done because a machine has asked for it.
    pub(super) fn tell_submitted(&mut self, id: ClusterId, command: &Command) {
        let Command::Approve { by: Approver::Machine(machine), .. } = command else { return };
        let cluster = self.kept.clusters.get(&id).map(|estate| &estate.cluster);
        let name = cluster.map(|cluster| full_name(cluster, *machine)).unwrap_or_default();
        self.telling = Telling { by: format!("machine {name}"), ..Telling::default() };
    }

    /// Everything until [`Self::told`] happens because a driver program has answered, with that reason if it failed.
    pub(super) fn tell_completed(&mut self, reason: Option<String>) {
        self.telling = Telling { reason, ..Telling::default() };
    }

    /// The reason of the failure that a change completes some work with, if a driver program gave one. It becomes durable with
    /// the change.
    pub(super) fn note_failure(&mut self, now: Now, id: ClusterId, change: &Change) -> Option<String> {
        let Change::Completed { maintenance, machine, report: Report::Failed } = change else { return None };
        let reason = self.telling.reason.clone()?;
        let (maintenance, machine) = (*maintenance, *machine);
        let estate = self.kept.clusters.get_mut(&id)?;
        estate.failures.insert((maintenance, machine), reason.clone());
        let entry = Entry::Failed { cluster: id, maintenance, machine, reason: reason.clone() };
        self.batch.records.push(Record { now, entry });
        Some(reason)
    }

    /// Tells what has happened in a cluster.
    pub(super) fn tell(&mut self, id: ClusterId, happening: Happening, notices: Vec<Notice>) {
        let cluster = self.kept.catalogue.cluster_name(id).map(ToString::to_string).unwrap_or_default();
        let Telling { by, because, .. } = &self.telling;
        let told = happening.into_told((id.0, &cluster), by, *because);
        self.seal(Told { notices, ..told });
    }

    /// What a change that was decided with others does to events. What clients of ARM have written is known under their ids.
    pub(super) fn notices(&self, id: ClusterId, change: &Change, decided: &[Change]) -> Vec<Notice> {
        let Some(estate) = self.kept.clusters.get(&id) else { return Vec::new() };
        let id_of = |owner: Owner| {
            let link = match owner {
                Owner::Machine(machine) => Link::Machine(machine),
                Owner::Tenant(tenant) => Link::Tenant(tenant),
                Owner::ScaleSet(set) => Link::ScaleSet(set),
            };
            self.kept.catalogue.entry_of(id, link).map(|(_, entry)| entry.id.clone())
        };
        let failure_of = |work, machine| estate.failures.get(&(work, machine)).cloned();
        notices(&estate.cluster, change, Beside { decided, id_of: &id_of, failure_of: &failure_of })
    }

    fn seal(&mut self, told: Told) {
        let entry: TrailEntry = self.chain.seal(told);
        self.batch.trail.push(Arc::new(entry));
    }
}

/// Commands by name as they are kept: one as it is, several as a list.
pub(super) fn commands_told(commands: &[NamedCommand]) -> Value {
    let told = |command: &NamedCommand| serde_json::to_value(command).unwrap_or_default();
    match commands {
        [only] => told(only),
        several => {
            json!({ "command": "apply_fleet", "commands": several.iter().map(told).collect::<Vec<_>>() })
        }
    }
}

/// A command in words: `restart, machine web_0`.
fn phrase(command: &Value) -> String {
    let Value::Object(members) = command else { return String::new() };
    let mut words = Vec::new();
    for (key, value) in members {
        let value = match value {
            Value::String(text) => short_id(text).unwrap_or_else(|| text.replace(['\n', '\r'], " ")),
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Array(items) if items.iter().all(Value::is_string) && !items.is_empty() => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            Value::Array(items) if !items.is_empty() => items.len().to_string(),
            Value::Array(_) | Value::Object(_) | Value::Null => continue,
        };
        words.push(match key.as_str() {
            "command" | "clock" => value.replace('_', " "),
            _ => format!("{} {value}", key.replace('_', " ")),
        });
    }
    words.join(", ").chars().take(PHRASE_CHARACTERS_MAX).collect()
}

/// An id of Azure without what is in every one: `GROUP/NAME`. All of it is kept with the command.
fn short_id(text: &str) -> Option<String> {
    let id = ResourceId::parse(text)?;
    let names = id.parts.iter().map(|(_, name)| name.as_str());
    Some([id.group.name.as_str()].into_iter().chain(names).collect::<Vec<_>>().join("/"))
}

/// Whom a command names is found under their names.
fn subjects(cluster: &Cluster, command: &Value, told: Told) -> Told {
    let text = |key: &str| command.get(key).and_then(Value::as_str);
    let texts = |key: &str| {
        let items = command.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let machine = text("machine").and_then(|name| find_machine(cluster, name).ok());
    let tenant_of = |id: MachineId| {
        let machine = cluster.machine(id)?;
        Some(cluster.tenant(machine.tenant)?.name.to_string())
    };
    let events = text("event").map(str::to_owned).into_iter().chain(texts("events"));
    let found: Vec<_> = events.filter_map(|id| find_event(cluster, &id).ok()).collect();
    let event_tenants =
        found.iter().filter_map(|(tenant, _)| Some(cluster.tenant(*tenant)?.name.to_string()));
    // A scale set has the name of its first placement group.
    let named = text("tenant").into_iter().chain(text("scale_set"));
    let mut tenants: Vec<_> = named.map(str::to_owned).collect();
    tenants.extend(machine.and_then(tenant_of));
    tenants.extend(event_tenants);
    tenants.dedup();
    let hosts = text("host").map(str::to_owned).into_iter().chain(texts("hosts")).collect();
    let events = found.iter().map(|(_, event)| event.id().to_string()).collect();
    let machines = machine.map(|id| full_name(cluster, id)).into_iter().collect();
    let rollout = match text("command") {
        // It is told before it is done; if it is refused, it is told to nobody.
        Some("start_rollout" | "update_hosts" | "update_network" | "migrate_hosts" | "reboot_hosts") => {
            Some(cluster.next_rollout().0)
        }
        Some(_) | None => command.get("rollout").and_then(Value::as_u64),
    };
    Told { tenants, machines, hosts, events, rollout, ..told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_put_into_words() {
        let said = |json: &str| phrase(&serde_json::from_str(json).unwrap());
        assert_eq!(said(r#"{"command":"restart","machine":"web_0"}"#), "restart, machine web_0");
        assert_eq!(said(r#"{"command":"update_hosts","hosts":["h1","h2"]}"#), "update hosts, hosts h1, h2");
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let json = format!(r#"{{"command":"delete","resource":"{id}","instances":["web_0","web_1"]}}"#);
        assert_eq!(said(&json), "delete, resource g/web, instances web_0, web_1");
        assert_eq!(said(r#"{"clock":"advance","by":"15m"}"#), "advance, by 15m");
        assert_eq!(said(r#"{"command":"apply_fleet","commands":[{},{}]}"#), "apply fleet, commands 2");
        assert_eq!(
            said(r#"{"command":"change_model","scale_set":"w","terminate":null}"#),
            "change model, scale set w"
        );
    }
}
