//! The node: its condition, its drain slot, and its cordon.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api::{Api, Patch, read};
use crate::hooks::Job;
use crate::hooks::event::{EventVariable, event_variables, moment_in};

/// Annotation with the id of the event for which this hook has cordoned the node. Absent if someone else has cordoned
/// it.
pub(super) const CORDONED_BY: &str = "forewarn.dev/cordoned-by";

/// Label of a node that holds a drain slot. A label, because nodes can be selected by it.
pub(super) const SLOT_LABEL: &str = "forewarn.dev/turn";

/// The condition type for events.
pub(super) const CONDITION: &str = "ScheduledEvent";

const NODE_HINT: &str = "set `node`, or the variable NODE_NAME";

#[derive(Debug, Deserialize)]
struct Node {
    metadata: NodeMetadata,
    #[serde(default)]
    spec: Option<NodeSpec>,
    #[serde(default)]
    status: Option<NodeStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeMetadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeSpec {
    #[serde(default)]
    unschedulable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Option<Vec<NodeCondition>>,
}

#[derive(Debug, Deserialize)]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Node {
    fn is_cordoned(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
    }

    fn is_cordoned_by_us(&self) -> bool {
        self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(CORDONED_BY))
    }

    fn has_slot(&self) -> bool {
        self.metadata.labels.as_ref().is_some_and(|all| all.contains_key(SLOT_LABEL))
    }

    fn condition(&self) -> Option<&NodeCondition> {
        let all = self.status.as_ref()?.conditions.as_ref()?;
        all.iter().find(|condition| condition.kind == CONDITION)
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// The node; `None` if it does not exist.
async fn find_node(api: &mut Api<'_>, name: &str) -> Result<Option<Node>, String> {
    let response = api.get(&path(name)).await?;
    match response.status {
        200 => read(&response).map(Some),
        404 => Ok(None),
        _ => Err(api.unexpected(&response, "")),
    }
}

async fn require_node(api: &mut Api<'_>, name: &str) -> Result<Node, String> {
    find_node(api, name).await?.ok_or_else(|| format!("node {name} not found\n  hint: {NODE_HINT}"))
}

/// Patches the node if it has not changed. Returns whether it was patched.
async fn patch_if_unchanged(
    api: &mut Api<'_>,
    name: &str,
    current: &Node,
    mut patch: Value,
) -> Result<bool, String> {
    patch["metadata"]["resourceVersion"] = json!(current.metadata.resource_version);
    let response = api.patch(&path(name), Patch::Merge, &patch).await?;
    match response.status {
        200 => Ok(true),
        409 => {
            "the node is being changed by other clients".clone_into(api.pending_condition);
            api.pause().await;
            Ok(false)
        }
        _ => Err(api.unexpected(&response, "")),
    }
}

/// Cordons the node. An existing cordon is left as it is.
pub(super) async fn cordon(api: &mut Api<'_>, name: &str, event: &str) -> Result<(), String> {
    loop {
        let node = require_node(api, name).await?;
        if node.is_cordoned() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": { CORDONED_BY: event } }, "spec": { "unschedulable": true } });
        if patch_if_unchanged(api, name, &node, patch).await? {
            return Ok(());
        }
    }
}

/// Uncordons the node if this hook has cordoned it, and releases the drain slot.
pub(super) async fn uncordon(api: &mut Api<'_>, name: &str) -> Result<(), String> {
    loop {
        // A node that no longer exists needs nothing.
        let Some(node) = find_node(api, name).await? else { return Ok(()) };
        let mut patch = json!({ "metadata": {} });
        if node.has_slot() {
            patch["metadata"]["labels"] = json!({ SLOT_LABEL: null });
        }
        if node.is_cordoned_by_us() {
            patch["metadata"]["annotations"] = json!({ CORDONED_BY: null });
            patch["spec"] = json!({ "unschedulable": null });
        }
        let is_clean = patch["metadata"].as_object().is_some_and(Map::is_empty);
        if is_clean || patch_if_unchanged(api, name, &node, patch).await? {
            return Ok(());
        }
    }
}

/// Waits for a drain slot, until fewer than `at_once` other nodes hold one or until time is short.
///
/// A node first sets the label and then counts: of all nodes that take a slot, the one that counts last sees all
/// others. So the limit is never exceeded; two nodes that start at the same moment may both step back and retry at
/// different times.
pub(super) async fn take_slot(
    api: &mut Api<'_>,
    name: &str,
    at_once: u32,
    is_urgent: impl Fn() -> bool,
) -> Result<(), String> {
    let node = require_node(api, name).await?;
    if node.is_cordoned_by_us() {
        // The slot was taken by an earlier process of this agent, or for another event.
        return Ok(());
    }
    loop {
        if is_urgent() {
            return set_slot(api, name, true).await;
        }
        if count_other_slots(api, name).await? < at_once {
            set_slot(api, name, true).await?;
            if count_other_slots(api, name).await? < at_once {
                return Ok(());
            }
        }
        set_slot(api, name, false).await?;
        *api.pending_condition =
            format!("waiting for a drain slot: at most {at_once} nodes may be drained at once");
        api.pause().await;
    }
}

/// Number of other nodes that hold a drain slot.
async fn count_other_slots(api: &mut Api<'_>, name: &str) -> Result<u32, String> {
    #[derive(Deserialize)]
    struct NodeList {
        #[serde(default)]
        items: Option<Vec<Node>>,
    }
    let response =
        api.get(&format!("/api/v1/nodes?labelSelector={}", SLOT_LABEL.replace('/', "%2F"))).await?;
    if response.status != 200 {
        return Err(api.unexpected(&response, ""));
    }
    let nodes: NodeList = read(&response)?;
    let count_other_slots = nodes.items.iter().flatten().filter(|node| node.metadata.name != name).count();
    Ok(u32::try_from(count_other_slots).unwrap_or(u32::MAX))
}

async fn set_slot(api: &mut Api<'_>, name: &str, taken: bool) -> Result<(), String> {
    loop {
        let node = require_node(api, name).await?;
        if node.has_slot() == taken {
            return Ok(());
        }
        let value = if taken { json!("taken") } else { Value::Null };
        if patch_if_unchanged(api, name, &node, json!({ "metadata": { "labels": { SLOT_LABEL: value } } }))
            .await?
        {
            return Ok(());
        }
    }
}

/// Sets the node condition for an event, or clears it.
pub(super) async fn set_condition(api: &mut Api<'_>, name: &str, job: Option<&Job>) -> Result<(), String> {
    let node = match job {
        Some(_) => require_node(api, name).await?,
        None => match find_node(api, name).await? {
            Some(node) => node,
            None => return Ok(()),
        },
    };
    let now = moment_in(Duration::ZERO);
    let (status, reason, message) = match job {
        Some(job) => ("True", reason(job), message(job)),
        None => ("False", "NoScheduledEvent".to_owned(), "no event is pending for this machine".to_owned()),
    };
    let mut condition = json!({
        "type": CONDITION, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now,
    });
    match (node.condition(), job) {
        (None, None) => return Ok(()),
        (Some(known), _) if known.status == status => {}
        (Some(_) | None, _) => condition["lastTransitionTime"] = json!(now),
    }
    let patch = json!({ "status": { "conditions": [condition] } });
    let response = api.patch(&format!("{}/status", path(name)), Patch::Strategic, &patch).await?;
    match (response.status, job) {
        (200, _) | (404, None) => Ok(()),
        _ => Err(api.unexpected(&response, "")),
    }
}

/// The reason of the condition: `RebootScheduled`, `FreezeStarted`.
fn reason(job: &Job) -> String {
    let current = &job.run.observed;
    let kind: String = current.kind.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
    let kind =
        if kind.starts_with(|c: char| c.is_ascii_alphabetic()) { kind } else { format!("Event{kind}") };
    format!("{kind}{}", current.status.as_str())
}

fn message(job: &Job) -> String {
    let event_variables = event_variables(job);
    let part = |name: &str, word: &str| {
        let variable = event_variables
            .iter()
            .find(|variable: &&EventVariable| variable.variable == name && !variable.value.is_empty());
        variable.map(|variable| format!("{word}{}", variable.value)).unwrap_or_default()
    };
    let text = [
        part("EVENT_TYPE", ""),
        part("EVENT_NOTBEFORE", ", not before "),
        part("EVENT_SOURCE", ", caused by "),
        part("EVENT_ID", ", event "),
        part("EVENT_DESCRIPTION", ": "),
    ];
    text.concat().chars().take(1_000).collect()
}
