//! Evicts the pods of a node and waits until they are gone.
//!
//! Each round lists the pods and evicts those that are not terminating yet. No state is kept between rounds, so a
//! restarted agent continues seamlessly.

use std::collections::BTreeMap;

use forewarn_types::Span;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, describe, read};
use super::{KubernetesWork, check_name};
use crate::hooks::time_limit::TimeLimit;
use crate::hooks::uri;

/// Page size of lists.
const PAGE: u32 = 100;

/// Limit of pods named in a message.
const NAMED_MAX: usize = 5;

/// Annotation of mirror pods, which the API server cannot evict.
const MIRROR: &str = "kubernetes.io/config.mirror";

#[derive(Debug, Deserialize)]
struct PodList {
    #[serde(default)]
    metadata: Option<ListMetadata>,
    #[serde(default)]
    items: Option<Vec<Pod>>,
}

#[derive(Debug, Deserialize)]
struct ListMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Pod {
    metadata: PodMetadata,
    #[serde(default)]
    spec: Option<PodSpec>,
    #[serde(default)]
    status: Option<PodStatus>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMetadata {
    name: String,
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    owner_references: Option<Vec<OwnerReference>>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct OwnerReference {
    kind: String,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    termination_grace_period_seconds: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: Option<String>,
}

impl Pod {
    fn full_name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// True if the pod has to be evicted.
    fn must_go(&self, bare_pods: bool) -> bool {
        let is_mirror = self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MIRROR));
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
        let owner =
            self.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let stays = match owner {
            Some(owner) => owner.kind == "DaemonSet",
            None => !bare_pods,
        };
        !is_mirror && !has_ended && !stays
    }
}

/// The result of an eviction.
enum Eviction {
    /// The pod is terminating or gone.
    Accepted,
    /// To be retried, with the reason.
    Retry(String),
}

/// Evicts all pods that have to go, and waits until they are gone.
pub(super) async fn drain(
    api: &mut Api<'_>,
    node: &str,
    work: &KubernetesWork,
    time_limit: &TimeLimit,
) -> Result<(), String> {
    loop {
        let pods = pods(api, node).await?;
        let there: Vec<_> = pods.into_iter().filter(|pod| pod.must_go(work.bare_pods)).collect();
        if there.is_empty() {
            return Ok(());
        }
        let mut pending_condition = Vec::new();
        for pod in &there {
            if pod.metadata.deletion_timestamp.is_some() {
                pending_condition.push(format!("{} is terminating", pod.full_name()));
                continue;
            }
            match evict(api, pod, grace(pod, work.grace, time_limit)).await? {
                Eviction::Accepted => pending_condition.push(format!("{} is terminating", pod.full_name())),
                Eviction::Retry(reason) => pending_condition.push(format!("{}: {reason}", pod.full_name())),
            }
        }
        *api.pending_condition = summary(&pending_condition);
        api.pause().await;
    }
}

/// All pods of a node.
async fn pods(api: &mut Api<'_>, node: &str) -> Result<Vec<Pod>, String> {
    let first = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&limit={PAGE}");
    let (mut all, mut path) = (Vec::new(), first.clone());
    loop {
        let response = api.get(&path).await?;
        match response.status {
            200 => {}
            // The list has expired between two pages: start again.
            410 => {
                all.clear();
                path.clone_from(&first);
                api.pause().await;
                continue;
            }
            _ => return Err(api.unexpected(&response, "")),
        }
        let page: PodList = read(&response)?;
        all.extend(page.items.into_iter().flatten());
        match page.metadata.and_then(|metadata| metadata.next).filter(|next| !next.is_empty()) {
            Some(next) => path = format!("{first}&continue={}", uri::part(&next)),
            None => return Ok(all),
        }
    }
}

/// The grace period of a pod, if it has to be shorter than the pod's own.
fn grace(pod: &Pod, limit: Option<Span>, time_limit: &TimeLimit) -> Option<u64> {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
    // Leave a second to observe that the pod is gone.
    let left = time_limit.left().as_secs().saturating_sub(1);
    let allowed = limit.map_or(left, |Span(limit)| limit.as_secs().min(left));
    // A grace period of 0 would delete the pod at once.
    (allowed < wanted).then_some(allowed.max(1))
}

async fn evict(api: &mut Api<'_>, pod: &Pod, grace: Option<u64>) -> Result<Eviction, String> {
    let PodMetadata { name, namespace, uid, .. } = &pod.metadata;
    check_name("pod", name)?;
    check_name("namespace", namespace)?;
    let mut options = json!({ "preconditions": { "uid": uid } });
    if let Some(seconds) = grace {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    let eviction: Value = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": name, "namespace": namespace },
        "deleteOptions": options,
    });
    let response =
        api.post(&format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"), &eviction).await?;
    match response.status {
        200..300 | 404 => Ok(Eviction::Accepted),
        429 => Ok(Eviction::Retry("a disruption budget does not allow it yet".to_owned())),
        // Another pod has this name by now, or the error is temporary.
        408 | 409 | 500..600 => Ok(Eviction::Retry(describe(&response))),
        403 if describe(&response).contains("is being terminated") => {
            Ok(Eviction::Retry("its namespace is terminating".to_owned()))
        }
        _ => Err(api.unexpected(&response, "")),
    }
}

/// Summarises the pods that are waited for.
fn summary(pending_condition: &[String]) -> String {
    let named = pending_condition.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = pending_condition.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let pods = if pending_condition.len() == 1 {
        "1 pod is"
    } else {
        &format!("{} pods are", pending_condition.len())
    };
    format!("{pods} left: {named}{more}")
}
