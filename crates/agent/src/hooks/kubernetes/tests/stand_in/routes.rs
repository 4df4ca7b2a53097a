//! The responses of the stand-in.

use serde_json::{Value, json};

use super::objects::{Cluster, merge, strategic_merge};
use super::{RecordedRequest, TOKEN, VIEWER};

type StandInResponse = (u16, Value);

pub(super) fn respond(cluster: &mut Cluster, request: &RecordedRequest) -> StandInResponse {
    cluster.recorded.push(request.clone());
    let line = format!("{} {}", request.method, request.target);
    if let Some(at) = cluster.faults.iter().position(|(what, _)| line.starts_with(what))
        && let Some((_, code)) = cluster.faults.remove(at)
    {
        return status(code, "InternalError", "the stand-in is configured to fail");
    }
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match request.token.as_deref() {
        Some(TOKEN) => {}
        Some(VIEWER) if request.method == "GET" => {}
        Some(VIEWER) => return forbidden(request, &parts),
        Some(_) | None => return status(401, "Unauthorized", "Unauthorized"),
    }
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["api" | "apis" | "version", ..]) if parts.len() <= 3 && !is_resource(&parts) => {
            discovery(&parts)
        }
        ("GET", ["api", "v1", "nodes"]) => nodes(cluster, query),
        ("GET", ["api", "v1", "nodes", name]) => match cluster.nodes.get(*name) {
            Some(node) => (200, node.clone()),
            None => not_found("nodes", name),
        },
        ("PATCH", ["api", "v1", "nodes", name]) => patch(cluster, request, name, false),
        ("PATCH", ["api", "v1", "nodes", name, "status"]) => patch(cluster, request, name, true),
        ("GET", ["api", "v1", "pods"]) => pods(cluster, query),
        ("GET", ["api", "v1", "namespaces", namespace, "pods", name]) => pod(cluster, namespace, name),
        ("POST", ["api", "v1", "namespaces", namespace, "pods", name, "eviction"]) => {
            evict(cluster, request, query, namespace, name)
        }
        ("GET", ["apis", "apps", "v1", "namespaces", namespace, "daemonsets", name]) => {
            let is_there = cluster.daemon_sets.iter().any(|(a, b)| a == namespace && b == name);
            if !is_there {
                return not_found("daemonsets.apps", name);
            }
            (
                200,
                json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": name, "namespace": namespace } }),
            )
        }
        _ => status(404, "NotFound", "the server could not find the requested resource"),
    }
}

fn is_resource(parts: &[&str]) -> bool {
    matches!(parts, ["api", "v1", "nodes" | "pods"])
}

/// API discovery, which `kubectl` requests first.
fn discovery(parts: &[&str]) -> StandInResponse {
    let resource = |name: &str, kind: &str, namespaced: bool, group: &str| {
        let mut resource = json!({ "name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list", "patch", "create"] });
        if !group.is_empty() {
            resource["group"] = json!(group);
            resource["version"] = json!("v1");
        }
        resource
    };
    let list = |group: &str, resources: Vec<Value>| json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources });
    let body = match parts {
        ["api"] => json!({ "kind": "APIVersions", "versions": ["v1"] }),
        ["apis"] => {
            let group = |name: &str| {
                let version = json!({ "groupVersion": format!("{name}/v1"), "version": "v1" });
                json!({ "name": name, "versions": [version], "preferredVersion": version })
            };
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group("apps"), group("policy")] })
        }
        ["api", "v1"] => list(
            "v1",
            vec![
                resource("nodes", "Node", false, ""),
                resource("nodes/status", "Node", false, ""),
                resource("pods", "Pod", true, ""),
                resource("pods/eviction", "Eviction", true, "policy"),
            ],
        ),
        ["apis", "apps", "v1"] => list("apps/v1", vec![resource("daemonsets", "DaemonSet", true, "")]),
        ["apis", "policy", "v1"] => {
            list("policy/v1", vec![resource("poddisruptionbudgets", "PodDisruptionBudget", true, "")])
        }
        ["version"] => json!({ "major": "1", "minor": "33", "gitVersion": "v1.33.0" }),
        _ => return status(404, "NotFound", "the server could not find the requested resource"),
    };
    (200, body)
}

/// A value of a query, as it was meant.
fn value(query: &str, name: &str) -> Option<String> {
    let found = query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))?.1;
    let text = found.replace("%3D", "=").replace("%2F", "/").replace("%3A", ":");
    Some(text).filter(|text| !text.is_empty())
}

/// A page of a list.
fn page(kind: &str, query: &str, items: Vec<Value>) -> StandInResponse {
    let limit: usize = value(query, "limit")
        .and_then(|limit| limit.parse().ok())
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    let skip: usize =
        value(query, "continue").and_then(|token| token.strip_prefix("skip:")?.parse().ok()).unwrap_or(0);
    let rest = items.len().saturating_sub(skip);
    let mut metadata = json!({ "resourceVersion": "1" });
    if rest > limit {
        metadata["continue"] = json!(format!("skip:{}", skip + limit));
        metadata["remainingItemCount"] = json!(rest - limit);
    }
    let items: Vec<_> = items.into_iter().skip(skip).take(limit).collect();
    (200, json!({ "kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items }))
}

fn nodes(cluster: &Cluster, query: &str) -> StandInResponse {
    let label = value(query, "labelSelector");
    let fits =
        |node: &&Value| label.as_ref().is_none_or(|label| node["metadata"]["labels"].get(label).is_some());
    page("NodeList", query, cluster.nodes.values().filter(fits).cloned().collect())
}

fn pods(cluster: &mut Cluster, query: &str) -> StandInResponse {
    let node = value(query, "fieldSelector")
        .and_then(|selector| selector.strip_prefix("spec.nodeName=").map(str::to_owned));
    let Some(node) = node else {
        return status(400, "BadRequest", "the stand-in lists the pods of one node");
    };
    let keys: Vec<_> = cluster
        .pods
        .iter()
        .filter(|(_, pod)| pod.object["spec"]["nodeName"] == *node)
        .map(|(key, _)| key.clone())
        .collect();
    keys.iter().for_each(|key| cluster.touch_pod(key));
    let items = keys.iter().filter_map(|key| cluster.pods.get(key)).map(|pod| pod.object.clone());
    page("PodList", query, items.collect())
}

fn pod(cluster: &mut Cluster, namespace: &str, name: &str) -> StandInResponse {
    let key = (namespace.to_owned(), name.to_owned());
    cluster.touch_pod(&key);
    match cluster.pods.get(&key) {
        Some(pod) => (200, pod.object.clone()),
        None => not_found("pods", name),
    }
}

fn patch(cluster: &mut Cluster, request: &RecordedRequest, name: &str, of_status: bool) -> StandInResponse {
    if let Some(edit) = cluster.meddling.pop_front() {
        cluster.edit_node(name, edit);
    }
    let Some(node) = cluster.nodes.get(name).cloned() else { return not_found("nodes", name) };
    let current = node["metadata"]["resourceVersion"].clone();
    let mut patched = node.clone();
    match request.content_type.as_str() {
        "application/merge-patch+json" => merge(&mut patched, &request.body),
        "application/strategic-merge-patch+json" => strategic_merge(&mut patched, &request.body),
        other => {
            let message_text = format!(
                "the body of the request was in an unknown format - accepted media types include: \
                application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, got {other}"
            );
            return status(415, "UnsupportedMediaType", &message_text);
        }
    }
    if patched["metadata"]["resourceVersion"] != current {
        let message_text = format!(
            "Operation cannot be fulfilled on nodes \"{name}\": the object has been modified; please apply your \
            changes to the latest version and try again"
        );
        return status(409, "Conflict", &message_text);
    }
    // Each of the two ways changes its own half.
    if of_status {
        let status = patched["status"].take();
        patched = node.clone();
        patched["status"] = status;
    } else {
        patched["status"] = node["status"].clone();
    }
    if patched != node {
        patched["metadata"]["resourceVersion"] = json!(cluster.next_version());
        cluster.nodes.insert(name.to_owned(), patched.clone());
    }
    (200, patched)
}

fn evict(
    cluster: &mut Cluster,
    request: &RecordedRequest,
    query: &str,
    namespace: &str,
    name: &str,
) -> StandInResponse {
    // Clients older than 1.22 ask in words of their own.
    let versions = ["policy/v1", "policy/v1beta1"];
    let is_eviction = request.body["kind"] == "Eviction"
        && versions.iter().any(|version| request.body["apiVersion"] == *version);
    if !is_eviction || request.body["metadata"]["name"] != *name {
        return status(400, "BadRequest", "the object provided is no eviction of this pod");
    }
    let key = (namespace.to_owned(), name.to_owned());
    let Some(pod) = cluster.pods.get(&key) else { return not_found("pods", name) };
    let uid = &request.body["deleteOptions"]["preconditions"]["uid"];
    if !uid.is_null() && *uid != pod.object["metadata"]["uid"] {
        let message_text = format!(
            "Operation cannot be fulfilled on Pod \"{name}\": the UID in the precondition ({uid}) does not match the UID in record"
        );
        return status(409, "Conflict", &message_text);
    }
    let is_dry = value(query, "dryRun").is_some() || request.body["deleteOptions"]["dryRun"][0] == "All";
    let app = pod.object["metadata"]["labels"]["app"].clone();
    let mut budgets =
        cluster.budgets.iter_mut().filter(|budget| budget.namespace == namespace && app == *budget.app);
    if let Some(budget) = budgets.next() {
        if budgets.next().is_some() {
            let message_text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return status(500, "InternalError", message_text);
        }
        let Some(fewer) = budget.allowed.checked_sub(1) else {
            let message_text = "Cannot evict pod as it would violate the pod's disruption budget.";
            let (code, mut body) = status(429, "TooManyRequests", message_text);
            body["details"] = json!({ "causes": [{ "reason": "DisruptionBudget", "message": "The disruption budget needs more healthy pods" }] });
            return (code, body);
        };
        if !is_dry {
            budget.allowed = fewer;
        }
    }
    if !is_dry && let Some(pod) = cluster.pods.get_mut(&key) {
        pod.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        let grace = request.body["deleteOptions"].get("gracePeriodSeconds").cloned();
        pod.object["metadata"]["deletionGracePeriodSeconds"] = grace.unwrap_or(json!(30));
    }
    (201, json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }))
}

fn not_found(what: &str, name: &str) -> StandInResponse {
    status(404, "NotFound", &format!("{what} \"{name}\" not found"))
}

fn forbidden(request: &RecordedRequest, parts: &[&str]) -> StandInResponse {
    let verb = if request.method == "PATCH" { "patch" } else { "create" };
    let what = if parts.contains(&"pods") { "pods/eviction" } else { "nodes" };
    let message_text = format!(
        "{what} is forbidden: User \"system:serviceaccount:default:viewer\" cannot {verb} resource \"{what}\" in API group \"\" at the cluster scope"
    );
    status(403, "Forbidden", &message_text)
}

fn status(code: u16, reason: &str, message: &str) -> StandInResponse {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    (code, body)
}
