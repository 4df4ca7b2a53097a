//! Names of a running server, for completion.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use clap_complete::CompletionCandidate;
use forewarn_control::Items;
use serde_json::Value;

use crate::operator::GlobalOptions;

/// The time for all requests. A shell waits for the answer.
pub(super) const DEADLINE: Duration = Duration::from_millis(900);

/// Names that are read: one page of the server.
const NAMES_MAX: usize = 1_000;

/// Characters of an event id that identify it among a few.
const SHORT_ID_CHARS: usize = 8;

/// A kind of resource, whose names are completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Machine,
    Host,
    Tenant,
    ScaleSet,
    AvailabilitySet,
    CloudService,
    Event,
    Rollout,
    Cluster,
    Server,
    Token,
    Webhook,
    Fault,
}

/// The global options of a line.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct TypedOptions {
    #[command(flatten)]
    options: GlobalOptions,
}

impl NameKind {
    fn path(self) -> &'static str {
        match self {
            Self::Machine => "/v1/machines",
            Self::Host => "/v1/hosts",
            Self::Tenant => "/v1/tenants",
            Self::ScaleSet => "/v1/scalesets",
            Self::AvailabilitySet => "/v1/availabilitysets",
            Self::CloudService => "/v1/cloudservices",
            Self::Event => "/v1/events",
            Self::Rollout => "/v1/rollouts",
            Self::Cluster => "/v1/clusters",
            Self::Server => "/v1/servers",
            Self::Token => "/v1/tokens",
            Self::Webhook => "/v1/webhooks",
            Self::Fault => "/v1/faults",
        }
    }

    fn is_of_cluster(self) -> bool {
        match self {
            Self::Cluster | Self::Server | Self::Token | Self::Webhook => false,
            Self::Machine
            | Self::Host
            | Self::Tenant
            | Self::ScaleSet
            | Self::AvailabilitySet
            | Self::CloudService
            | Self::Event
            | Self::Rollout
            | Self::Fault => true,
        }
    }

    /// Names of this kind that begin with the typed text. None without a server that answers.
    ///
    /// The server is the one of the options in the words of the line, or of the environment.
    pub(super) fn beginning_with(self, typed: &str, words: &[OsString]) -> Option<Vec<CompletionCandidate>> {
        let options = options(words)?;
        let cluster = options.cluster().ok()?.filter(|_| self.is_of_cluster());
        let cluster = cluster.map(|name| format!("&cluster={}", forewarn_url::percent::encode(&name)));
        let path = format!("{}?limit={NAMES_MAX}{}", self.path(), cluster.unwrap_or_default());
        let client = options.client().ok()?.with_timeout(DEADLINE);
        let page: Items<Value> = client.get(&path).ok()?;
        Some(self.candidates(&page.items, typed))
    }

    fn candidates(self, items: &[Value], typed: &str) -> Vec<CompletionCandidate> {
        let names = match self {
            Self::Machine => machine_names(items, typed),
            Self::Event => event_ids(items, typed),
            Self::Rollout | Self::Fault => texts(items, "id"),
            Self::Host
            | Self::Tenant
            | Self::ScaleSet
            | Self::AvailabilitySet
            | Self::CloudService
            | Self::Cluster
            | Self::Server
            | Self::Token
            | Self::Webhook => texts(items, "name"),
        };
        let begins = |name: &str| {
            name.get(..typed.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(typed))
        };
        let meant = names.into_iter().filter(|(name, _)| begins(name) && is_safe(name)).take(NAMES_MAX);
        let candidate = |(name, help): (String, Option<String>)| {
            CompletionCandidate::new(name).help(help.map(Into::into))
        };
        meant.map(candidate).collect()
    }
}

/// Names of machines; with their tenants where a name is not unique, or a tenant is typed.
fn machine_names(items: &[Value], typed: &str) -> Vec<(String, Option<String>)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for (name, _) in texts(items, "name") {
        *counts.entry(name).or_default() += 1;
    }
    let name = |item: &Value| {
        let (name, tenant) = (text(item, "name")?, text(item, "tenant")?);
        let is_full = typed.contains('/') || counts.get(&name).is_some_and(|count| *count > 1);
        let help = text(item, "host").map(|host| format!("on {host}"));
        Some((if is_full { format!("{tenant}/{name}") } else { name }, help))
    };
    items.iter().filter_map(name).collect()
}

/// Ids of events: their beginnings, where these are unique and nothing longer is typed.
fn event_ids(items: &[Value], typed: &str) -> Vec<(String, Option<String>)> {
    let ids: Vec<_> = texts(items, "id").into_iter().map(|(id, _)| id).collect();
    let beginning = |id: &str| id.get(..SHORT_ID_CHARS).unwrap_or(id).to_owned();
    let is_unique = |short: &str| ids.iter().filter(|id| id.starts_with(short)).count() == 1;
    let id = |item: &Value| {
        let id = text(item, "id")?;
        let short = beginning(&id);
        let machines = item
            .get("resources")
            .and_then(Value::as_array)
            .map(|machines| machines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "));
        let help = format!("{} of {}", text(item, "kind")?, machines.unwrap_or_default());
        let is_short = typed.len() <= SHORT_ID_CHARS && is_unique(&short);
        Some((if is_short { short } else { id }, Some(help)))
    };
    items.iter().filter_map(id).collect()
}

fn texts(items: &[Value], member: &str) -> Vec<(String, Option<String>)> {
    items.iter().filter_map(|item| Some((text(item, member)?, None))).collect()
}

/// A text or a number of an item.
fn text(item: &Value, member: &str) -> Option<String> {
    match item.get(member)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns true if a name has only characters without a meaning for a shell, and is no option.
fn is_safe(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// The global options among the words of a line, else those of the environment. None if one is invalid.
fn options(words: &[OsString]) -> Option<GlobalOptions> {
    let command = TypedOptions::command();
    let longs: Vec<_> = command
        .get_arguments()
        .filter(|argument| argument.get_action().takes_values())
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    let mut picked = Vec::new();
    let mut words = words.iter().skip(1).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, None), |(name, value)| (name, Some(value)));
        if !longs.iter().any(|long| long == name) {
            continue;
        }
        // Without a value, the option itself is being completed.
        let Some(value) = value.map(OsString::from).or_else(|| words.next().cloned()) else { break };
        picked.extend([OsString::from(name), value]);
    }
    TypedOptions::try_parse_from(picked).ok().map(|typed| typed.options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(kind: NameKind, items: &Value, typed: &str) -> Vec<String> {
        let candidates = kind.candidates(items.as_array().unwrap(), typed);
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_machine_that_is_not_unique_has_its_tenant() {
        let machines = serde_json::json!([
            {"name": "web_0", "tenant": "web", "host": "h1"},
            {"name": "a", "tenant": "x", "host": "h1"},
            {"name": "a", "tenant": "y", "host": "h1"},
        ]);
        assert_eq!(completed(NameKind::Machine, &machines, ""), ["web_0", "x/a", "y/a"]);
        assert_eq!(completed(NameKind::Machine, &machines, "we"), ["web_0"]);
        assert_eq!(completed(NameKind::Machine, &machines, "web/"), ["web/web_0"]);
    }

    #[test]
    fn an_event_is_completed_to_a_unique_beginning() {
        let events = serde_json::json!([
            {"id": "28512AF7-C957-4500-9BC4-842D6FB531E4", "kind": "Reboot", "resources": ["web_0"]},
            {"id": "55CC1B1A-0000-4500-9BC4-842D6FB531E4", "kind": "Freeze", "resources": ["web_1"]},
            {"id": "55CC1B1A-1111-4500-9BC4-842D6FB531E4", "kind": "Freeze", "resources": ["web_2"]},
        ]);
        assert_eq!(completed(NameKind::Event, &events, "285"), ["28512AF7"]);
        assert_eq!(
            completed(NameKind::Event, &events, "28512af7-"),
            ["28512AF7-C957-4500-9BC4-842D6FB531E4"]
        );
        assert_eq!(completed(NameKind::Event, &events, "5").len(), 2);
        assert!(
            completed(NameKind::Event, &events, "5")[0].len() > SHORT_ID_CHARS,
            "the beginning is not unique"
        );
    }

    #[test]
    fn only_names_that_mean_nothing_to_a_shell_are_offered() {
        let hosts = ["h1", "web:1", "-rf", "a b", "$(id)", "`id`", "a;b", "*", "ü", "a\nb", ""];
        let items: Value = hosts.iter().map(|name| serde_json::json!({ "name": name })).collect();
        assert_eq!(completed(NameKind::Host, &items, ""), ["h1", "web:1"]);
    }

    #[test]
    fn the_server_is_the_one_on_the_line() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let api =
            |line: &str| options(&words(line)).and_then(|options| options.api_option().map(str::to_owned));
        assert_eq!(api("forewarn vm show --api http://x:1 --wait").as_deref(), Some("http://x:1"));
        assert_eq!(api("forewarn --api=http://x:2 vm show").as_deref(), Some("http://x:2"));
        assert_eq!(api("forewarn test -- --api http://x:3"), api("forewarn"));
        assert_eq!(api("forewarn vm ls --cluster"), api("forewarn"), "its value is being completed");
        let west = options(&words("forewarn --cluster west vm")).unwrap();
        assert_eq!(west.cluster().unwrap().as_deref(), Some("west"));
        assert!(options(&words("forewarn --output nonsense vm")).is_none());
    }
}
