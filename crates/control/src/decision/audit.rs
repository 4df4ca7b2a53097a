//! Entries of the audit log: requests and their effects.

use std::sync::Arc;

use forewarn_lifecycle::{Approver, Change, Cluster, Command, MachineId, Now};
use forewarn_types::Moment;
use serde::Serialize;
use serde_json::Value;

use super::admissions::Admissions;
use super::attribution::Attribution;
use super::draft::{AdmissionEntries, ClusterDraft, Draft, SharedDraft};
use crate::audit::{AuditFact, CommandJson, HostNotice, NewAuditEntry};
use crate::command::lookup::machine_if_known;
use crate::command::{NamedCommand, find_event, full_name};
use crate::push::{Notice, NoticeContext, Owner, notices};
use crate::request::RequestContext;
use crate::resource_id::ResourceId;
use crate::resources::Link;
use crate::stream::{ClusterId, Stream};

/// Maximum length of a request in words.
const PHRASE_CHARACTERS_MAX: usize = 200;

impl ClusterDraft<'_> {
    /// Adds the entry of a request to a cluster, unless it continues another. Returns the number of the entry.
    pub(super) fn audit_commands(
        &mut self,
        commands: &[NamedCommand],
        machine: Option<MachineId>,
        context: &RequestContext,
    ) -> Option<u64> {
        match context.because {
            Some(entry) => {
                self.draft.attribution =
                    Attribution { by: context.by.clone(), because: Some(entry), reason: None };
                Some(entry)
            }
            None => {
                let entry = match (&context.asked, commands) {
                    (Some(asked), _) => self.entry_of_value(&context.by, asked, machine),
                    (None, [only]) => {
                        let asked = serde_json::to_value(only).unwrap_or_default();
                        self.entry_of_value(&context.by, &asked, machine)
                    }
                    (None, several) => entry_of_several(self.now(), &context.by, several),
                };
                Some(self.audit_request(entry))
            }
        }
    }

    /// The entry of a request. `machine` is the machine that it names, if that was found already.
    fn entry_of_value(&self, by: &str, asked: &Value, machine: Option<MachineId>) -> NewAuditEntry {
        subjects(self.rules(), asked, machine, entry_of_value(self.now(), by, asked))
    }

    /// Adds the entry of a request. Returns its number.
    fn audit_request(&mut self, entry: NewAuditEntry) -> u64 {
        let stream = Some(Stream::Cluster(self.id));
        let (cluster, cluster_number) = (self.name(), self.id.0);
        self.draft.seal_request(NewAuditEntry { cluster, cluster_number, stream, ..entry })
    }

    /// The name of the cluster.
    fn name(&self) -> String {
        self.shared.cluster_name(self.id).map(ToString::to_string).unwrap_or_default()
    }

    /// An approval or a poll is attributed to the machine that sent it.
    pub(super) fn attribute_to_machine(&mut self, command: &Command) {
        let (Command::Approve { by: Approver::Machine(machine), .. } | Command::Polled(machine)) = command
        else {
            return;
        };
        let name = full_name(self.rules(), *machine);
        self.draft.attribution = Attribution { by: format!("machine {name}"), ..Attribution::default() };
    }

    /// From here on, many added objects have one entry.
    pub(super) fn collect_admissions(&mut self) {
        self.admission_entries = AdmissionEntries::Collected(None);
    }

    /// Adds the entry of added objects that have none yet.
    pub(super) fn audit_admissions(&mut self) {
        if let AdmissionEntries::Collected(collected) = &mut self.admission_entries
            && let Some(admissions) = collected.take()
        {
            self.seal_fact(admissions.into_fact(), Vec::new());
        }
    }

    /// Adds a machine to the entry of those before it. Returns false if it needs an entry of its own.
    pub(super) fn joins_admissions(&mut self, change: &Change) -> bool {
        match (change, &mut self.admission_entries) {
            (Change::MachineAdmitted { new, .. }, AdmissionEntries::Collected(Some(collected))) => {
                collected.add_machine(self.draft.state.rules(), new)
            }
            (_, AdmissionEntries::Collected(_) | AdmissionEntries::Single) => false,
        }
    }

    /// Adds the entry of a change, now or with those of other added objects.
    pub(super) fn audit_change(&mut self, change: &Change, fact: AuditFact, notices: Vec<Notice>) {
        match &mut self.admission_entries {
            AdmissionEntries::Collected(collected) if Admissions::collects(change) && notices.is_empty() => {
                if let Some(complete) = Admissions::add(collected, change, fact) {
                    self.seal_fact(complete, Vec::new());
                }
            }
            AdmissionEntries::Collected(_) | AdmissionEntries::Single => {
                self.audit_admissions();
                self.seal_fact(fact, notices);
            }
        }
    }

    /// Adds an entry about a step on a host of which webhooks are notified.
    pub(super) fn audit_host(&mut self, fact: AuditFact, notices: Vec<Notice>, host: HostNotice) {
        self.audit_admissions();
        self.begin_webhooks();
        let Attribution { by, because, .. } = &self.draft.attribution;
        let entry = fact.into_entry((self.id.0, &self.name()), by, *because);
        self.draft.seal(NewAuditEntry { notices, host_notice: Some(Box::new(host)), ..entry });
    }

    fn seal_fact(&mut self, fact: AuditFact, notices: Vec<Notice>) {
        let Attribution { by, because, .. } = &self.draft.attribution;
        let entry = fact.into_entry((self.id.0, &self.name()), by, *because);
        self.draft.seal(NewAuditEntry { notices, ..entry });
    }

    /// Messages for webhooks about a change. Resources that clients of Azure have written are named by their ids.
    pub(super) fn notices(&self, change: &Change, decided: &[Change]) -> Vec<Notice> {
        let cluster = self.cluster();
        let id_of = |owner: Owner| {
            let link = match owner {
                Owner::Machine(machine) => Link::Machine(machine),
                Owner::Tenant(tenant) => Link::Tenant(tenant),
                Owner::ScaleSet(set) => Link::ScaleSet(set),
            };
            cluster.resources().linked(link).map(|(_, resource)| resource.id.clone())
        };
        let failure_of = |work, machine| cluster.failure(work, machine).map(str::to_owned);
        notices(cluster.rules(), change, NoticeContext { decided, id_of: &id_of, failure_of: &failure_of })
    }
}

impl SharedDraft<'_> {
    /// Adds the entry of a request to the shared state. Returns its number.
    pub(super) fn audit_request(&mut self, by: &str, asked: &Value) -> u64 {
        let entry = entry_of_value(self.now(), by, asked);
        self.seal_request(NewAuditEntry { stream: Some(Stream::Shared), ..entry })
    }
}

impl<S> Draft<'_, S> {
    fn seal(&mut self, entry: NewAuditEntry) {
        let entry = self.audit_end.seal(entry);
        self.audit.push(Arc::new(entry));
    }

    /// Adds the entry of a request: its effects follow from it.
    fn seal_request(&mut self, entry: NewAuditEntry) -> u64 {
        self.seal(entry);
        self.attribution = Attribution { because: Some(self.audit_end.number), ..Attribution::default() };
        self.audit_end.number
    }
}

/// The entry of a request that a value describes.
fn entry_of_value(now: Now, by: &str, asked: &Value) -> NewAuditEntry {
    request_entry(now, by, &phrase(asked), CommandJson::from_value(asked))
}

/// The entry of a command of a caller, as a decision about the cluster has it: for rules without a server.
#[must_use]
pub fn describe_request(
    rules: &Cluster,
    now: Now,
    (cluster_number, cluster): (u32, &str),
    by: &str,
    command: &NamedCommand,
) -> NewAuditEntry {
    let asked = serde_json::to_value(command).unwrap_or_default();
    let entry = subjects(rules, &asked, None, entry_of_value(now, by, &asked));
    let (cluster, stream) = (cluster.to_owned(), Some(Stream::Cluster(ClusterId(cluster_number))));
    NewAuditEntry { cluster, cluster_number, stream, ..entry }
}

/// The entry of several commands: the audit log stores them as a list.
fn entry_of_several(now: Now, by: &str, commands: &[NamedCommand]) -> NewAuditEntry {
    let list = CommandList { command: "apply_fleet", commands };
    let phrase = match commands.len() {
        0 => "apply fleet".to_owned(),
        count => format!("apply fleet, commands {count}"),
    };
    request_entry(now, by, &phrase, CommandJson::from_type(&list))
}

/// Several commands as the audit log stores them.
#[derive(Serialize)]
struct CommandList<'a> {
    command: &'a str,
    commands: &'a [NamedCommand],
}

fn request_entry(now: Now, by: &str, phrase: &str, command: Option<CommandJson>) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(now.wall),
        by: by.to_owned(),
        kind: "command".to_owned(),
        text: format!("requested: {phrase}"),
        command,
        ..NewAuditEntry::default()
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

/// Short form of a resource id: `GROUP/NAME`. The full id is stored with the command.
fn short_id(text: &str) -> Option<String> {
    let id = ResourceId::parse(text)?;
    let names = id.parts.iter().map(|(_, name)| name.as_str());
    Some([id.group.name.as_str()].into_iter().chain(names).collect::<Vec<_>>().join("/"))
}

/// Adds the names of the objects that a command names: the entry is found under them.
fn subjects(
    cluster: &Cluster,
    command: &Value,
    machine: Option<MachineId>,
    entry: NewAuditEntry,
) -> NewAuditEntry {
    let text = |key: &str| command.get(key).and_then(Value::as_str);
    let texts = |key: &str| {
        let items = command.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let machine = text("machine").and_then(|name| machine.or_else(|| machine_if_known(cluster, name)));
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
        // The entry precedes the rollout. If the rollout is refused, the entry is dropped.
        Some("start_rollout" | "update_hosts" | "update_network" | "migrate_hosts" | "reboot_hosts") => {
            Some(cluster.next_rollout().0)
        }
        Some(_) | None => command.get("rollout").and_then(Value::as_u64),
    };
    NewAuditEntry { tenants, machines, hosts, events, rollout, ..entry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_commands_have_the_entry_of_their_value() {
        let now = Now::at_millis(5);
        let restart = |machine: &str| NamedCommand::Restart { machine: machine.to_owned() };
        for commands in [vec![], vec![restart("web_0"), NamedCommand::BrakeOn {}, restart("\"ü\"")]] {
            let value = serde_json::json!({ "command": "apply_fleet", "commands": commands });
            assert_eq!(entry_of_several(now, "socket", &commands), entry_of_value(now, "socket", &value));
        }
    }

    #[test]
    fn commands_are_put_into_words() {
        let text_of = |json: &str| phrase(&serde_json::from_str(json).unwrap());
        assert_eq!(text_of(r#"{"command":"restart","machine":"web_0"}"#), "restart, machine web_0");
        assert_eq!(
            text_of(r#"{"command":"update_hosts","hosts":["h1","h2"]}"#),
            "update hosts, hosts h1, h2"
        );
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let json = format!(r#"{{"command":"delete","resource":"{id}","instances":["web_0","web_1"]}}"#);
        assert_eq!(text_of(&json), "delete, resource g/web, instances web_0, web_1");
        assert_eq!(text_of(r#"{"clock":"advance","by":"15m"}"#), "advance, by 15m");
        assert_eq!(text_of(r#"{"command":"apply_fleet","commands":[{},{}]}"#), "apply fleet, commands 2");
        assert_eq!(
            text_of(r#"{"command":"change_model","scale_set":"w","terminate":null}"#),
            "change model, scale set w"
        );
    }
}
