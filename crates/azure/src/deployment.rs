//! Deployments as they are shown: what a template was, what came of it, and how far it is.

use std::collections::BTreeMap;

use forewarn_lifecycle::Timestamp;
use serde_json::{Value, json};

use super::template::{Declared, Expanded};
use super::{ArmError, providers};
use forewarn_control::resource_id::ResourceId;
use forewarn_types::Moment;

/// How far a deployment is, or one of its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has just been taken on.
    Accepted,
    /// Something is still to be done, or waited for.
    Running,
    /// All is there.
    Succeeded,
    /// Something could not be done.
    Failed,
    /// An operator has taken something back.
    Canceled,
}

/// A deployment.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its id.
    pub id: &'a ResourceId,
    /// What was kept of it: see [`kept`].
    pub kept: &'a Value,
    /// How far it is.
    pub progress: Progress,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; or now.
    pub until: Timestamp,
    /// Why it has failed.
    pub error: Option<&'a Value>,
}

impl Progress {
    /// As Azure spells it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// What is kept of a deployment: what its template came to, without the template and without secrets.
#[must_use]
pub fn kept(expanded: &Expanded, location: &str) -> Value {
    let resources = expanded.resources.as_slice();
    json!({
        "mode": "Incremental",
        "parameters": expanded.parameters(),
        "providers": namespaces(resources, location),
        "dependencies": dependencies(resources),
        "outputResources": resources.iter().map(|one| json!({ "id": one.id.to_string() })).collect::<Vec<_>>(),
    })
}

fn namespaces(resources: &[Declared], location: &str) -> Vec<Value> {
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ResourceId { namespace, parts, .. } in resources.iter().map(|one| &one.id) {
        let kind = parts.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>().join("/");
        let known = kinds.entry(namespace).or_default();
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    let shown = |(namespace, kinds): (&str, Vec<String>)| {
        let kinds = kinds.iter().map(|kind| providers::resource_type(namespace, kind, location));
        json!({ "namespace": namespace, "resourceTypes": kinds.collect::<Vec<_>>() })
    };
    kinds.into_iter().map(shown).collect()
}

/// Pairs that a deployment shows: a large template may have far more than anybody looks at.
const DEPENDENCIES_SHOWN_MAX: usize = 1_000;

fn dependencies(resources: &[Declared]) -> Vec<Value> {
    let mut room = DEPENDENCIES_SHOWN_MAX;
    let mut shown = Vec::new();
    for one in resources.iter().filter(|one| !one.depends_on.is_empty()) {
        let Some(left) = room.checked_sub(one.depends_on.len()) else { break };
        room = left;
        let mut dependency = named(&one.id);
        dependency["dependsOn"] = one.depends_on.iter().map(named).collect();
        shown.push(dependency);
    }
    shown
}

/// A resource by its id, its type and its name.
fn named(id: &ResourceId) -> Value {
    json!({ "id": id.to_string(), "resourceType": id.kind(), "resourceName": names(id) })
}

fn names(id: &ResourceId) -> String {
    id.parts.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("/")
}

/// A deployment as it is shown.
#[must_use]
pub fn show(shown: &Shown<'_>) -> Value {
    let Shown { id, kept, progress, began, until, error } = *shown;
    let mut properties = json!({
        "provisioningState": progress.word(),
        "timestamp": Moment(until).to_string(),
        "duration": duration(began, until),
        "correlationId": correlation(began),
    });
    if let (Some(properties), Some(kept)) = (properties.as_object_mut(), kept.as_object()) {
        properties.extend(kept.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    if let Some(error) = error {
        properties["error"] = error.clone();
    }
    json!({
        "id": id.to_string(),
        "name": id.name(),
        "type": "Microsoft.Resources/deployments",
        "properties": properties,
    })
}

/// How far it is, for those who ask again and again.
#[must_use]
pub fn status(progress: Progress, error: Option<&Value>) -> Value {
    let mut status = json!({ "status": progress.word() });
    if let Some(error) = error {
        status["error"] = error.clone();
    }
    status
}

/// What was done for one resource.
#[must_use]
pub fn operation(
    deployment: &ResourceId,
    number: usize,
    resource: &ResourceId,
    (progress, at, error): (Progress, Timestamp, Option<&Value>),
) -> Value {
    let name = format!("{number:016X}");
    let code = match progress {
        Progress::Accepted | Progress::Running => "Accepted",
        Progress::Succeeded => "OK",
        Progress::Failed | Progress::Canceled => "Conflict",
    };
    let mut properties = json!({
        "provisioningOperation": "Create",
        "provisioningState": progress.word(),
        "timestamp": Moment(at).to_string(),
        "duration": "PT0S",
        "statusCode": code,
        "targetResource": named(resource),
    });
    if let Some(error) = error {
        properties["statusMessage"] = json!({ "error": error });
    }
    json!({ "id": format!("{deployment}/operations/{name}"), "operationId": name, "properties": properties })
}

/// A deployment that has failed because of something, in the words that clients know.
#[must_use]
pub fn failure(deployment: &ResourceId, cause: ArmError) -> ArmError {
    let message = "At least one resource deployment operation failed. Please list deployment operations for details. \
                   Please see https://aka.ms/arm-deployment-operations for usage details.";
    ArmError::new(cause.status, "DeploymentFailed", message).at(deployment.to_string()).because(vec![cause])
}

/// `PT1.234S`
fn duration(from: Timestamp, until: Timestamp) -> String {
    let millis = until.millis().saturating_sub(from.millis());
    format!("PT{}.{:03}S", millis / 1_000, millis % 1_000)
}

/// A name for everything that belongs to one deployment.
fn correlation(began: Timestamp) -> String {
    format!("00000000-0000-0000-0000-{:012x}", began.millis() & 0xffff_ffff_ffff)
}
