//! Deployments as clients see them: parameters, outputs and progress.

use std::collections::BTreeMap;

use forewarn_lifecycle::Timestamp;
use serde_json::{Value, json};

use super::template::{Declared, Expanded};
use super::{ArmError, providers};
use forewarn_control::resource_id::ResourceId;
use forewarn_types::Moment;

/// Progress of a deployment or of one of its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Accepted,
    /// Work or operations are pending.
    Running,
    Succeeded,
    Failed,
    /// An operator has cancelled an operation.
    Canceled,
}

/// A deployment for [`show`].
#[derive(Clone, Copy, Debug)]
pub struct DeploymentView<'a> {
    pub id: &'a ResourceId,
    /// Its stored part: see [`stored_part`].
    pub stored: &'a Value,
    pub progress: Progress,
    pub began: Timestamp,
    /// End time, or the current time.
    pub until: Timestamp,
    /// Error of a failed deployment.
    pub error: Option<&'a Value>,
}

impl Progress {
    /// The word of Azure.
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

/// The stored part of a deployment: the result of its template, without the template and without secrets.
#[must_use]
pub fn stored_part(expanded: &Expanded, location: &str) -> Value {
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

/// Maximum number of dependencies that a response lists.
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

/// Id, type and name of a resource.
fn named(id: &ResourceId) -> Value {
    json!({ "id": id.to_string(), "resourceType": id.kind(), "resourceName": names(id) })
}

fn names(id: &ResourceId) -> String {
    id.parts.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("/")
}

/// A deployment as clients see it.
#[must_use]
pub fn show(shown: &DeploymentView<'_>) -> Value {
    let DeploymentView { id, stored, progress, began, until, error } = *shown;
    let mut properties = json!({
        "provisioningState": progress.word(),
        "timestamp": Moment(until).to_string(),
        "duration": duration(began, until),
        "correlationId": correlation(began),
    });
    if let (Some(properties), Some(stored)) = (properties.as_object_mut(), stored.as_object()) {
        properties.extend(stored.iter().map(|(name, value)| (name.clone(), value.clone())));
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

/// Progress of a deployment, for polling clients.
#[must_use]
pub fn status(progress: Progress, error: Option<&Value>) -> Value {
    let mut status = json!({ "status": progress.word() });
    if let Some(error) = error {
        status["error"] = error.clone();
    }
    status
}

/// The operation of one resource.
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

/// The error of a failed deployment, in the form that clients know.
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

/// Correlation id of a deployment.
fn correlation(began: Timestamp) -> String {
    format!("00000000-0000-0000-0000-{:012x}", began.millis() & 0xffff_ffff_ffff)
}
