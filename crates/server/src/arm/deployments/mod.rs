//! Template deployments of a resource group.
//!
//! ```text
//!   PUT ─▶ expand ─▶ noted as begun ─▶ resource after resource ─▶ noted as over, with its outputs ─▶ 201
//!                                        └─▶ as a PUT of each: compute, or kept
//! ```
//!
//! A deployment is over when it is answered, except for operations that it has begun; those who ask see it run until they are.

mod record;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_azure::ArmError;
use forewarn_azure::deployment::{Progress, kept as kept_body, status};
use forewarn_azure::template::{Context, Expanded, expand, read};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::Role;
use serde_json::{Value, json};

use self::record::{Record, Standing, shown};
use self::run::Run;
use super::call::encoded;
use super::compute::Visit;
use super::{answer, kept, refusal, written};
use crate::engine::{Arrangement, Engine, Paper, State, Terms};
use crate::operator::Permit;

/// Characters of the name of a deployment.
const NAME_CHARS_MAX: usize = 64;

/// Deployments that a list shows: the newest.
const LISTED_MAX: usize = 800;

/// Answers what is asked about deployments; `rest` is what follows `deployments`.
pub(super) async fn serve(visit: &Visit<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let call = visit.call;
    let lower: Vec<_> = rest.iter().skip(1).map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let Some(name) = rest.first() else {
        return if call.method == Method::GET { list(visit).await } else { Err(super::unsupported(call)) };
    };
    let id = visit.group.id.resource("Microsoft.Resources", "deployments", name);
    match (lower.as_slice(), &call.method) {
        ([], &Method::PUT) => put(visit, id).await,
        ([], &Method::GET) => look(visit, id, |body, _| answer::ok(body)).await,
        ([], &Method::HEAD) => look(visit, id, |_, _| answer::nothing()).await,
        ([], &Method::DELETE) => remove(visit, id).await,
        (["validate"], &Method::POST) => validate(visit, &id).await,
        (["operationstatuses", _], &Method::GET) => look(visit, id, |_, standing| progress(&standing)).await,
        (["operations"], &Method::GET) => operations(visit, id).await.map(answer::list),
        (["operations", wanted], &Method::GET) => {
            let all = operations(visit, id).await?;
            let is_wanted =
                |one: &Value| one["operationId"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(wanted));
            all.into_iter().find(is_wanted).map(answer::ok).ok_or_else(|| super::nothing_here(call))
        }
        (["cancel"], &Method::POST) => look(visit, id, |_, _| super::show(&not_cancelled())).await,
        (["whatif"], &Method::POST) => {
            // A refusal proper would end the Azure command line with a fault of its own.
            let refused = super::unsupported(call);
            Ok(answer::ok(json!({ "status": Progress::Failed.word(), "error": refused.inner() })))
        }
        _ => Err(super::unsupported(call)),
    }
}

/// What the template of a request comes to. It may take a moment, which is not taken from others.
async fn expanded(visit: &Visit<'_>, id: &ResourceId) -> Result<Expanded, ArmError> {
    kept::check(&visit.call.permit, Role::Operator)?;
    check_name(id.name())?;
    let body = visit.call.body.clone();
    let (group, location, name) =
        (visit.group.id.clone(), visit.group.location.clone(), id.name().to_owned());
    let work = move || {
        let context = Context { group: &group, location: &location, deployment: &name };
        expand(&read(&body)?["properties"], &context)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(interrupted()))
}

async fn put(visit: &Visit<'_>, id: ResourceId) -> Result<Response, ArmError> {
    let call = visit.call;
    let expanded = expanded(visit, &id).await?;
    let now = visit.engine.clock().now().wall;
    let ((record, live), body) = (Record::begun(now), kept_body(&expanded, &visit.group.location));
    let writer = Writer { engine: visit.engine.clone(), permit: Arc::clone(&call.permit), id: id.clone() };
    let first = writer.write(&record, &body, Begins::Yes).await?;
    let run = Run {
        engine: visit.engine.clone(),
        permit: Arc::clone(&call.permit),
        group: visit.group.clone(),
        id: id.clone(),
        version: call.version()?,
        expanded,
        record,
    };
    // Whoever asked may go: what was begun is done to its end all the same.
    let work = tokio::spawn(async move {
        let finished = finish(run, writer, body).await;
        drop(live);
        finished
    });
    work.await.unwrap_or_else(|_| Err(interrupted()))?;
    let mut response = (StatusCode::CREATED, Json(first)).into_response();
    let version = encoded(call.parameter("api-version").unwrap_or_default());
    let (base, id) = (&call.base, encoded(&id.to_string()));
    let address = format!("{base}{id}/operationStatuses/{:016X}?api-version={version}", now.millis());
    if let Ok(address) = HeaderValue::from_str(&address) {
        response.headers_mut().insert("azure-asyncoperation", address);
    }
    Ok(answer::later(response))
}

/// Carries a deployment out, and notes how it went.
async fn finish(run: Run, writer: Writer, mut body: Value) -> Result<(), ArmError> {
    let (record, outcome) = run.carry_out().await;
    let at = writer.engine.clock().now().wall;
    match outcome {
        Ok(outputs) => {
            let mut whole = body.clone();
            whole["outputs"] = outputs;
            let written = writer.write(&record.clone().over(at, None), &whole, Begins::No).await;
            let Err(refused) = written else { return Ok(()) };
            // What is too long to be kept is left out: the resources are there.
            body["outputs"] = json!({});
            writer.write(&record.over(at, Some(&refused)), &body, Begins::No).await?;
        }
        Err(refused) => drop(writer.write(&record.over(at, Some(&refused)), &body, Begins::No).await?),
    }
    Ok(())
}

/// Writes what is noted of a deployment.
struct Writer {
    engine: Engine,
    permit: Arc<Permit>,
    id: ResourceId,
}

/// Whether a deployment begins: only one of a name may be under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Yes,
    No,
}

impl Writer {
    /// Writes it. Gives it as it is shown to whoever has just put it.
    async fn write(&self, record: &Record, body: &Value, begins: Begins) -> Result<Value, ArmError> {
        let asked = match begins {
            Begins::Yes => Some(json!({ "command": "write_resource", "resource": self.id.to_string() })),
            Begins::No => None,
        };
        // How a deployment ended is written down also if its token was revoked meanwhile.
        let token = self.permit.terms().token.filter(|_| begins == Begins::Yes);
        let terms = Terms { asked, token, ..self.permit.terms() };
        let (id, notes, body) = (self.id.clone(), written(&record.notes()), written(body));
        let arrange = move |state: &State<'_>| {
            let entry = state.catalogue.entry(&id.key());
            let is_underway = entry.and_then(Record::of).is_some_and(|record| record.is_underway());
            if begins == Begins::Yes && is_underway {
                return Err(active(&id));
            }
            let spelled = entry.map_or_else(|| id.to_string(), |entry| entry.id.clone());
            let paper = Paper::Put { id: spelled, link: None, body, notes };
            Ok((Arrangement { papers: vec![paper], ..Arrangement::default() }, ()))
        };
        let arranged = self.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
        arranged?;
        let id = self.id.clone();
        let look = move |state: &State<'_>| {
            let entry = state.catalogue.entry(&id.key())?;
            shown(state.catalogue, state.now.wall, entry)
        };
        let found = self.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
        let (mut shown, _) = found.ok_or_else(interrupted)?;
        shown["properties"]["provisioningState"] = json!(Progress::Accepted.word());
        Ok(shown)
    }
}

/// What a template would come to. What is wrong with it is said in the body.
async fn validate(visit: &Visit<'_>, id: &ResourceId) -> Result<Response, ArmError> {
    let expanded = expanded(visit, id).await?;
    let mut properties = kept_body(&expanded, &visit.group.location);
    properties["validatedResources"] = properties["outputResources"].take();
    properties["provisioningState"] = json!(Progress::Succeeded.word());
    Ok(answer::ok(json!({
        "id": id.to_string(),
        "name": id.name(),
        "type": "Microsoft.Resources/deployments",
        "properties": properties,
    })))
}

/// Answers with a deployment that is there, and how far it is.
async fn look(
    visit: &Visit<'_>,
    id: ResourceId,
    answer: impl FnOnce(Value, Standing) -> Response,
) -> Result<Response, ArmError> {
    kept::check(&visit.call.permit, Role::Viewer)?;
    let look = move |state: &State<'_>| {
        let entry = state.catalogue.entry(&id.key());
        entry.and_then(|entry| shown(state.catalogue, state.now.wall, entry)).ok_or_else(|| absent(&id))
    };
    let found = visit.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    found.map(|(body, standing)| answer(body, standing))
}

fn progress((progress, error): &Standing) -> Response {
    let shown = answer::ok(status(*progress, error.as_ref()));
    match progress {
        Progress::Accepted | Progress::Running => answer::later(shown),
        Progress::Succeeded | Progress::Failed | Progress::Canceled => shown,
    }
}

async fn operations(visit: &Visit<'_>, id: ResourceId) -> Result<Vec<Value>, ArmError> {
    kept::check(&visit.call.permit, Role::Viewer)?;
    let look = move |state: &State<'_>| {
        let record = state.catalogue.entry(&id.key()).and_then(Record::of).ok_or_else(|| absent(&id))?;
        Ok(record.operations(state.catalogue, &id))
    };
    visit.engine.look(look).await.map_err(|problem| refusal::of(&problem))?
}

async fn list(visit: &Visit<'_>) -> Result<Response, ArmError> {
    kept::check(&visit.call.permit, Role::Viewer)?;
    let prefix = format!("{}/providers/microsoft.resources/deployments/", visit.group.id.key());
    let look = move |state: &State<'_>| {
        let mut all: Vec<_> = state.catalogue.entries_below(&prefix).map(|(_, entry)| entry).collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.created));
        let shown = all.into_iter().filter_map(|entry| shown(state.catalogue, state.now.wall, entry));
        shown.map(|(body, _)| body).take(LISTED_MAX).collect()
    };
    visit.engine.look(look).await.map(answer::list).map_err(|problem| refusal::of(&problem))
}

/// A deployment is forgotten; what it has made stays.
async fn remove(visit: &Visit<'_>, id: ResourceId) -> Result<Response, ArmError> {
    kept::check(&visit.call.permit, Role::Operator)?;
    let told = json!({ "command": "delete_resource", "resource": id.to_string() });
    let terms = Terms { asked: Some(told), ..visit.call.permit.terms() };
    let arrange = move |state: &State<'_>| {
        let record = state.catalogue.entry(&id.key()).and_then(Record::of);
        if record.is_some_and(|record| record.is_underway()) {
            return Err(active(&id));
        }
        let papers = vec![Paper::Remove(id.to_string())];
        Ok((Arrangement { papers, ..Arrangement::default() }, ()))
    };
    let arranged = visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    arranged.map(|_| answer::nothing())
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
    ArmError::new(404, "DeploymentNotFound", format!("Deployment '{}' could not be found.", id.name()))
}

fn active(id: &ResourceId) -> ArmError {
    let message = format!(
        "The deployment with resource id '{id}' cannot be saved, because this would overwrite an existing deployment \
         which is still active."
    );
    ArmError::new(409, "DeploymentActive", message)
}

fn not_cancelled() -> ArmError {
    let message = "The deployment cannot be cancelled: all of it has been asked for.";
    ArmError::new(409, "DeploymentCannotBeCancelled", message)
}

fn interrupted() -> ArmError {
    ArmError::new(500, "InternalServerError", "The deployment was interrupted.")
}
