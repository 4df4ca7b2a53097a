//! The node: its condition, its turn, and whether it takes new pods.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api::{Api, Patch, read};
use crate::hands::Job;
use crate::hands::event::{Fact, facts, moment_in};

/// Who has cordoned a node: the id of the event for which it was done. Where it is missing, somebody else has.
pub(super) const CORDONED_BY: &str = "forewarn.dev/cordoned-by";

/// The label of a node that has its turn. A label, because nodes can be found by it.
pub(super) const TURN: &str = "forewarn.dev/turn";

/// The condition that tells of an event.
pub(super) const CONDITION: &str = "ScheduledEvent";

const MISSING: &str = "name the node: set `node`, or the variable NODE_NAME";

#[derive(Debug, Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(default)]
    status: Option<NodeStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
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
struct Spec {
    #[serde(default)]
    unschedulable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
struct Condition {
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

    fn has_turn(&self) -> bool {
        self.metadata.labels.as_ref().is_some_and(|all| all.contains_key(TURN))
    }

    fn condition(&self) -> Option<&Condition> {
        let all = self.status.as_ref()?.conditions.as_ref()?;
        all.iter().find(|condition| condition.kind == CONDITION)
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// The node as it is; nothing, if there is none of that name.
async fn look(api: &mut Api<'_>, name: &str) -> Result<Option<Node>, String> {
    let answer = api.get(&path(name)).await?;
    match answer.status {
        200 => read(&answer).map(Some),
        404 => Ok(None),
        _ => Err(api.refused(&answer, "")),
    }
}

async fn find(api: &mut Api<'_>, name: &str) -> Result<Node, String> {
    look(api, name).await?.ok_or_else(|| format!("there is no node {name}\n  hint: {MISSING}"))
}

/// Changes the node, if it is still as it was seen. Whether it was.
async fn change(api: &mut Api<'_>, name: &str, seen: &Node, mut patch: Value) -> Result<bool, String> {
    patch["metadata"]["resourceVersion"] = json!(seen.metadata.resource_version);
    let answer = api.patch(&path(name), Patch::Merge, &patch).await?;
    match answer.status {
        200 => Ok(true),
        409 => {
            "the node is changed by others".clone_into(api.waits);
            api.pause().await;
            Ok(false)
        }
        _ => Err(api.refused(&answer, "")),
    }
}

/// Keeps new pods away. One that somebody else keeps them from stays theirs.
pub(super) async fn cordon(api: &mut Api<'_>, name: &str, event: &str) -> Result<(), String> {
    loop {
        let node = find(api, name).await?;
        if node.is_cordoned() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": { CORDONED_BY: event } }, "spec": { "unschedulable": true } });
        if change(api, name, &node, patch).await? {
            return Ok(());
        }
    }
}

/// Lets new pods in again, if it was cordoned here, and gives the turn back.
pub(super) async fn uncordon(api: &mut Api<'_>, name: &str) -> Result<(), String> {
    loop {
        // A node that is no more needs nothing.
        let Some(node) = look(api, name).await? else { return Ok(()) };
        let mut patch = json!({ "metadata": {} });
        if node.has_turn() {
            patch["metadata"]["labels"] = json!({ TURN: null });
        }
        if node.is_cordoned_by_us() {
            patch["metadata"]["annotations"] = json!({ CORDONED_BY: null });
            patch["spec"] = json!({ "unschedulable": null });
        }
        let is_clean = patch["metadata"].as_object().is_some_and(Map::is_empty);
        if is_clean || change(api, name, &node, patch).await? {
            return Ok(());
        }
    }
}

/// Waits until no more than so many nodes are drained at once, this one included; or until there is no time to wait any longer.
///
/// Whoever takes a turn says so first and counts then: of all who believe that it is theirs, the one who counted last has seen
/// all the others. So never too many do; two who come at the same moment may both step back, and try again at different times.
pub(super) async fn take_turn(
    api: &mut Api<'_>,
    name: &str,
    at_once: u32,
    is_urgent: impl Fn() -> bool,
) -> Result<(), String> {
    let node = find(api, name).await?;
    if node.is_cordoned_by_us() {
        // It has had its turn, in an earlier life of this agent or for another event.
        return Ok(());
    }
    loop {
        if is_urgent() {
            return set_turn(api, name, true).await;
        }
        if others(api, name).await? < at_once {
            set_turn(api, name, true).await?;
            if others(api, name).await? < at_once {
                return Ok(());
            }
        }
        set_turn(api, name, false).await?;
        *api.waits = format!("it is not this node's turn: no more than {at_once} may be drained at once");
        api.pause().await;
    }
}

/// How many other nodes have their turn.
async fn others(api: &mut Api<'_>, name: &str) -> Result<u32, String> {
    #[derive(Deserialize)]
    struct Nodes {
        #[serde(default)]
        items: Option<Vec<Node>>,
    }
    let answer = api.get(&format!("/api/v1/nodes?labelSelector={}", TURN.replace('/', "%2F"))).await?;
    if answer.status != 200 {
        return Err(api.refused(&answer, ""));
    }
    let nodes: Nodes = read(&answer)?;
    let others = nodes.items.iter().flatten().filter(|node| node.metadata.name != name).count();
    Ok(u32::try_from(others).unwrap_or(u32::MAX))
}

async fn set_turn(api: &mut Api<'_>, name: &str, taken: bool) -> Result<(), String> {
    loop {
        let node = find(api, name).await?;
        if node.has_turn() == taken {
            return Ok(());
        }
        let value = if taken { json!("taken") } else { Value::Null };
        if change(api, name, &node, json!({ "metadata": { "labels": { TURN: value } } })).await? {
            return Ok(());
        }
    }
}

/// Tells of an event, or that there is none, in the condition of the node.
pub(super) async fn tell(api: &mut Api<'_>, name: &str, job: Option<&Job>) -> Result<(), String> {
    let node = match job {
        Some(_) => find(api, name).await?,
        None => match look(api, name).await? {
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
    let answer = api.patch(&format!("{}/status", path(name)), Patch::Strategic, &patch).await?;
    match (answer.status, job) {
        (200, _) | (404, None) => Ok(()),
        _ => Err(api.refused(&answer, "")),
    }
}

/// One word: `RebootScheduled`, `FreezeStarted`.
fn reason(job: &Job) -> String {
    let seen = &job.run.seen;
    let kind: String = seen.kind.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
    let kind =
        if kind.starts_with(|c: char| c.is_ascii_alphabetic()) { kind } else { format!("Event{kind}") };
    format!("{kind}{}", seen.status.as_str())
}

fn message(job: &Job) -> String {
    let facts = facts(job);
    let told = |name: &str, word: &str| {
        let fact = facts.iter().find(|fact: &&Fact| fact.variable == name && !fact.value.is_empty());
        fact.map(|fact| format!("{word}{}", fact.value)).unwrap_or_default()
    };
    let text = [
        told("EVENT_TYPE", ""),
        told("EVENT_NOTBEFORE", ", not before "),
        told("EVENT_SOURCE", ", caused by "),
        told("EVENT_ID", ", event "),
        told("EVENT_DESCRIPTION", ": "),
    ];
    text.concat().chars().take(1_000).collect()
}
