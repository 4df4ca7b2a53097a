//! Evictions, until no pod is left that has to go.
//!
//! Each round looks at the pods that are there and asks those to go that were not asked yet: nothing is remembered between rounds,
//! so it does not matter which agent has begun.

use std::collections::BTreeMap;

use forewarn_types::Span;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, read, told};
use super::{KubernetesWork, check_name};
use crate::hands::bounds::Bounds;
use crate::hands::uri;

/// Pods of one answer.
const PAGE: u32 = 100;

/// Pods that are named while they are waited for.
const NAMED_MAX: usize = 5;

/// Pods of kubelets' own making: they are not known to the API server but by name.
const MIRROR: &str = "kubernetes.io/config.mirror";

#[derive(Debug, Deserialize)]
struct Pods {
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
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    owner_references: Option<Vec<Owner>>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Owner {
    kind: String,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    termination_grace_period_seconds: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Status {
    #[serde(default)]
    phase: Option<String>,
}

impl Pod {
    fn shown(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Whether it has to go.
    fn goes(&self, bare_pods: bool) -> bool {
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

/// What became of an eviction.
enum Eviction {
    /// It was asked to go, or has gone.
    Taken,
    /// Not now.
    Later(String),
}

/// Evicts every pod that has to go, and waits until they have gone.
pub(super) async fn drain(
    api: &mut Api<'_>,
    node: &str,
    work: &KubernetesWork,
    bounds: &Bounds,
) -> Result<(), String> {
    loop {
        let pods = pods(api, node).await?;
        let there: Vec<_> = pods.into_iter().filter(|pod| pod.goes(work.bare_pods)).collect();
        if there.is_empty() {
            return Ok(());
        }
        let mut waits = Vec::new();
        for pod in &there {
            if pod.metadata.deletion_timestamp.is_some() {
                waits.push(format!("{} ends", pod.shown()));
                continue;
            }
            match evict(api, pod, grace(pod, work.grace, bounds)).await? {
                Eviction::Taken => waits.push(format!("{} ends", pod.shown())),
                Eviction::Later(why) => waits.push(format!("{}: {why}", pod.shown())),
            }
        }
        *api.waits = summary(&waits);
        api.pause().await;
    }
}

/// All pods of a node.
async fn pods(api: &mut Api<'_>, node: &str) -> Result<Vec<Pod>, String> {
    let first = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&limit={PAGE}");
    let (mut all, mut path) = (Vec::new(), first.clone());
    loop {
        let answer = api.get(&path).await?;
        match answer.status {
            200 => {}
            // It has taken too long to turn the pages: from the beginning.
            410 => {
                all.clear();
                path.clone_from(&first);
                api.pause().await;
                continue;
            }
            _ => return Err(api.refused(&answer, "")),
        }
        let page: Pods = read(&answer)?;
        all.extend(page.items.into_iter().flatten());
        match page.metadata.and_then(|metadata| metadata.next).filter(|next| !next.is_empty()) {
            Some(next) => path = format!("{first}&continue={}", uri::part(&next)),
            None => return Ok(all),
        }
    }
}

/// How long a pod gets, if that is less than it wants.
fn grace(pod: &Pod, most: Option<Span>, bounds: &Bounds) -> Option<u64> {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
    // A second to see that it has gone.
    let left = bounds.left().as_secs().saturating_sub(1);
    let allowed = most.map_or(left, |Span(most)| most.as_secs().min(left));
    // 0 is not a short time but none: the pod would vanish without a word.
    (allowed < wanted).then_some(allowed.max(1))
}

async fn evict(api: &mut Api<'_>, pod: &Pod, grace: Option<u64>) -> Result<Eviction, String> {
    let Metadata { name, namespace, uid, .. } = &pod.metadata;
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
    let answer = api.post(&format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"), &eviction).await?;
    match answer.status {
        200..300 | 404 => Ok(Eviction::Taken),
        429 => Ok(Eviction::Later("a budget does not let it go yet".to_owned())),
        // Another pod has its name by now; or something that may pass.
        408 | 409 | 500..600 => Ok(Eviction::Later(told(&answer))),
        403 if told(&answer).contains("is being terminated") => {
            Ok(Eviction::Later("its namespace goes".to_owned()))
        }
        _ => Err(api.refused(&answer, "")),
    }
}

/// What is waited for, in not too many words.
fn summary(waits: &[String]) -> String {
    let named = waits.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = waits.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let pods = if waits.len() == 1 { "1 pod is" } else { &format!("{} pods are", waits.len()) };
    format!("{pods} left: {named}{more}")
}
