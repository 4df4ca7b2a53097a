//! Template deployments of a resource group.
//!
//! ```text
//!   PUT ─▶ expand ─▶ recorded as begun ─▶ resource after resource ─▶ recorded as ended, with its outputs ─▶ 201
//!                                           └─▶ as a PUT of each: compute, or opaque
//! ```
//!
//! A deployment ends before its response, except for operations that it has started; it is shown as running until they
//! end.

mod owner;
#[cfg(test)]
mod realm_tests;
mod record;
mod recorder;
mod run;
#[cfg(test)]
mod tenant_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_control::request::{RequestContext, ResourceWrite, Transaction};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::Resource;
use forewarn_control::shared::Role;
use forewarn_server::State;
use serde_json::{Value, json};

use self::owner::{Owner, shown_id};
use self::record::{DeploymentState, Record, shown};
use self::recorder::{DeploymentEnd, Recorder};
use self::run::Run;
use super::compute::GroupScope;
use super::request::encoded;
use super::{errors, responses};
use crate::ArmError;
use crate::deployment::{Progress, status, stored_part};
use crate::template::{Context, Expanded, expand, read};

/// Characters of a deployment's name.
const NAME_CHARS_MAX: usize = 64;

/// Deployments of one list, the newest.
const LISTED_MAX: usize = 800;

/// Serves deployments; `rest` is the path behind `deployments`.
pub(super) async fn serve(scope: &GroupScope<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let request = scope.request;
    let lower: Vec<_> = rest.iter().skip(1).map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let Some(name) = rest.first() else {
        return if request.method == Method::GET {
            list(scope).await
        } else {
            Err(super::unsupported(request))
        };
    };
    let needs = if request.method == Method::GET || request.method == Method::HEAD {
        Role::Viewer
    } else {
        Role::Operator
    };
    let id = Owner::of(&request.permit, needs)?.stored_id(&scope.group.id, name);
    match (lower.as_slice(), &request.method) {
        ([], &Method::PUT) => put(scope, id).await,
        ([], &Method::GET) => look(scope, id, |body, _| responses::ok(body)),
        ([], &Method::HEAD) => look(scope, id, |_, _| responses::nothing()),
        ([], &Method::DELETE) => remove(scope, id).await,
        (["validate"], &Method::POST) => validate(scope, &id).await,
        (["operationstatuses", _], &Method::GET) => look(scope, id, |_, standing| progress(&standing)),
        (["operations"], &Method::GET) => operations(scope, id).await.map(responses::list),
        (["operations", wanted], &Method::GET) => {
            let all = operations(scope, id).await?;
            let is_wanted =
                |one: &Value| one["operationId"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(wanted));
            all.into_iter().find(is_wanted).map(responses::ok).ok_or_else(|| super::nothing_here(request))
        }
        (["cancel"], &Method::POST) => look(scope, id, |_, _| super::show(&not_cancelled())),
        (["whatif"], &Method::POST) => {
            // The Azure command line crashes on an error status here.
            let refused = super::unsupported(request);
            Ok(responses::ok(json!({ "status": Progress::Failed.word(), "error": refused.inner() })))
        }
        _ => Err(super::unsupported(request)),
    }
}

/// Expands the template of a request, on a thread for blocking work.
async fn expanded(scope: &GroupScope<'_>, id: &ResourceId) -> Result<Expanded, ArmError> {
    let id = shown_id(id);
    check_name(id.name())?;
    let body = scope.request.body.clone();
    let (group, location, name) =
        (scope.group.id.clone(), scope.group.location.clone(), id.name().to_owned());
    let work = move || {
        let context = Context { group: &group, location: &location, deployment: &name };
        expand(&read(&body)?["properties"], &context)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(interrupted()))
}

async fn put(scope: &GroupScope<'_>, id: ResourceId) -> Result<Response, ArmError> {
    let request = scope.request;
    let (record, live) = Record::begun(&scope.control);
    let began = record.began();
    let run = checked(scope, &id, record).await?;
    let body = stored_part(&run.expanded, &scope.group.location);
    let recorder =
        Recorder { control: scope.control.clone(), permit: Arc::clone(&request.permit), id: id.clone() };
    let first = recorder.begin(&run.record, &body).await?;
    // The deployment goes on when its client disconnects.
    let work = tokio::spawn(async move { recorder.end(carry_out(run, body).await, live).await });
    work.await.unwrap_or_else(|_| Err(interrupted()))?;
    let mut response = (StatusCode::CREATED, Json(first)).into_response();
    let version = encoded(request.parameter("api-version").unwrap_or_default());
    let (base, id) = (&request.base, encoded(&shown_id(&id).to_string()));
    let address = format!("{base}{id}/operationStatuses/{:016X}?api-version={version}", began.millis());
    if let Ok(address) = HeaderValue::from_str(&address) {
        response.headers_mut().insert("azure-asyncoperation", address);
    }
    Ok(responses::later(response))
}

/// A run of the template of a request. For a client that is limited to tenants, all of it was planned.
async fn checked(scope: &GroupScope<'_>, id: &ResourceId, record: Record) -> Result<Run, ArmError> {
    let expanded = expanded(scope, id).await?;
    let run = Run {
        control: scope.control.clone(),
        permit: Arc::clone(&scope.request.permit),
        group: scope.group.clone(),
        id: shown_id(id),
        version: scope.request.version()?,
        expanded,
        record,
    };
    if !run.permit.scope.tenants.is_all() {
        run.clone().plan_only().await?;
    }
    Ok(run)
}

/// Carries a deployment out. Returns the end to be recorded.
async fn carry_out(run: Run, mut body: Value) -> DeploymentEnd {
    let control = run.control.clone();
    let (record, outcome) = run.carry_out().await;
    let at = control.clock().now().wall;
    match outcome {
        Ok(outputs) => {
            body["outputs"] = outputs;
            DeploymentEnd { at, record: record.over(at, None), body }
        }
        Err(refused) => DeploymentEnd { at, record: record.over(at, Some(&refused)), body },
    }
}

/// Expands a template without deploying it.
async fn validate(scope: &GroupScope<'_>, id: &ResourceId) -> Result<Response, ArmError> {
    let (record, _live) = Record::begun(&scope.control);
    let (run, id) = (checked(scope, id, record).await?, shown_id(id));
    let mut properties = stored_part(&run.expanded, &scope.group.location);
    properties["validatedResources"] = properties["outputResources"].take();
    properties["provisioningState"] = json!(Progress::Succeeded.word());
    Ok(responses::ok(json!({
        "id": id.to_string(),
        "name": id.name(),
        "type": "Microsoft.Resources/deployments",
        "properties": properties,
    })))
}

/// Answers with a deployment and its progress.
fn look(
    scope: &GroupScope<'_>,
    id: ResourceId,
    answer: impl FnOnce(Value, DeploymentState) -> Response,
) -> Result<Response, ArmError> {
    let look = move |state: &State<'_>| {
        let entry = state.all.resource(&id.key());
        let shown = entry.and_then(|entry| shown(&scope.control, state.all, state.now.wall, entry));
        shown.ok_or_else(|| absent(&id))
    };
    let found = scope.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    found.map(|(body, standing)| answer(body, standing))
}

fn progress((progress, error): &DeploymentState) -> Response {
    let shown = responses::ok(status(*progress, error.as_ref()));
    match progress {
        Progress::Accepted | Progress::Running => responses::later(shown),
        Progress::Succeeded | Progress::Failed | Progress::Canceled => shown,
    }
}

async fn operations(scope: &GroupScope<'_>, id: ResourceId) -> Result<Vec<Value>, ArmError> {
    let look = move |state: &State<'_>| {
        let record = state.all.resource(&id.key()).and_then(Record::of).ok_or_else(|| absent(&id))?;
        Ok(record.operations(state.all, &shown_id(&id)))
    };
    scope.control.look(look).map_err(|problem| errors::of_problem(&problem))?
}

async fn list(scope: &GroupScope<'_>) -> Result<Response, ArmError> {
    let owner = Owner::of(&scope.request.permit, Role::Viewer)?;
    let prefix = format!("{}/providers/microsoft.resources/deployments/", scope.group.id.key());
    let look = move |state: &State<'_>| {
        let is_own = |entry: &&Resource| ResourceId::parse(&entry.id).is_some_and(|id| owner.owns(&id));
        let all = state.all.resources_below(&prefix).map(|(_, entry)| entry);
        let mut all: Vec<_> = all.filter(is_own).collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.created));
        let shown =
            all.into_iter().filter_map(|entry| shown(&scope.control, state.all, state.now.wall, entry));
        shown.map(|(body, _)| body).take(LISTED_MAX).collect()
    };
    scope.control.look(look).map(responses::list).map_err(|problem| errors::of_problem(&problem))
}

/// Removes a deployment; its resources stay.
async fn remove(scope: &GroupScope<'_>, id: ResourceId) -> Result<Response, ArmError> {
    let audited = json!({ "command": "delete_resource", "resource": shown_id(&id).to_string() });
    let context = RequestContext { asked: Some(audited), ..scope.request.permit.context() };
    let plan = move |state: &State<'_>| {
        let record = state.all.resource(&id.key()).and_then(Record::of);
        if record.is_some_and(|record| record.is_underway(&scope.control)) {
            return Err(active(&id));
        }
        let writes = vec![ResourceWrite::Remove(id.to_string())];
        Ok((Transaction { writes, ..Transaction::default() }, ()))
    };
    let transacted =
        scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
    transacted.map(|_| responses::nothing())
}

fn check_name(name: &str) -> Result<(), ArmError> {
    let is_good = |letter: char| letter.is_alphanumeric() || "-_().".contains(letter);
    if name.chars().count() <= NAME_CHARS_MAX && name.chars().all(is_good) {
        return Ok(());
    }
    let message = format!(
        "The deployment name '{name}' is not valid: letters, digits, '-', '_', '(', ')' and '.', at most {NAME_CHARS_MAX}."
    );
    Err(ArmError::new(400, "InvalidDeploymentName", message))
}

fn absent(id: &ResourceId) -> ArmError {
    ArmError::new(
        404,
        "DeploymentNotFound",
        format!("Deployment '{}' could not be found.", shown_id(id).name()),
    )
}

fn active(id: &ResourceId) -> ArmError {
    let message = format!(
        "The deployment with resource id '{}' cannot be saved, because this would overwrite an existing deployment \
         which is still active.",
        shown_id(id)
    );
    ArmError::new(409, "DeploymentActive", message)
}

fn not_cancelled() -> ArmError {
    let message = "The deployment cannot be cancelled: all of its resources have been requested.";
    ArmError::new(409, "DeploymentCannotBeCancelled", message)
}

fn interrupted() -> ArmError {
    ArmError::new(500, "InternalServerError", "The deployment was interrupted.")
}
