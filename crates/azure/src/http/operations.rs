//! Long-running operations, which clients poll.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use forewarn_control::resources::{Operation, OperationResult};
use forewarn_control::{ClusterId, Permit};
use forewarn_server::State;
use forewarn_types::Moment;
use serde_json::{Value, json};

use super::compute::sees;
use super::request::ArmRequest;
use super::{ArmContext, errors, responses};
use crate::ArmError;

/// Status of an operation; with `monitor`, only its result.
pub(super) async fn show(
    context: &ArmContext,
    request: &ArmRequest,
    name: &str,
) -> Result<Response, ArmError> {
    let operation = find(context, request, name).await?;
    if request.parameter("monitor").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(monitor(request, &operation));
    }
    let shown = responses::ok(status(&operation));
    Ok(if operation.is_open() { responses::later(shown) } else { shown })
}

/// Result of an operation.
pub(super) async fn result(
    context: &ArmContext,
    request: &ArmRequest,
    name: &str,
) -> Result<Response, ArmError> {
    Ok(monitor(request, &find(context, request, name).await?))
}

/// The operation, if the permit allows reading it.
async fn find(context: &ArmContext, request: &ArmRequest, name: &str) -> Result<Operation, ArmError> {
    let (wanted, permit) = (name.to_lowercase(), std::sync::Arc::clone(&request.permit));
    // Addresses of older versions do not name the cluster.
    let cluster = request.parameter("c").and_then(|number| number.parse().ok()).map(ClusterId);
    let look = move |state: &State<'_>| {
        let found = match cluster {
            Some(id) => state.all.cluster(id).and_then(|cluster| cluster.resources().operation(&wanted)),
            None => state.all.operation(&wanted),
        };
        found.filter(|operation| may_read(state, &permit, operation)).cloned()
    };
    let found = context.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    found.ok_or_else(|| ArmError::new(404, "NotFound", format!("The operation '{name}' could not be found.")))
}

/// A client may read an operation in the clusters of its token. A token that is limited to tenants may read it only if
/// the operation was started with that token, or is about a machine or a set of those tenants.
fn may_read(state: &State<'_>, permit: &Permit, operation: &Operation) -> bool {
    if !permit.reaches(operation.cluster) {
        return false;
    }
    if permit.scope.tenants.is_all() || (permit.token.is_some() && permit.token == operation.token) {
        return true;
    }
    let Some(cluster) = state.all.cluster(operation.cluster) else { return false };
    let link = state.all.resource(&operation.about).and_then(|entry| entry.link);
    link.is_some_and(|link| sees(cluster.rules(), permit, link))
}

fn monitor(request: &ArmRequest, operation: &Operation) -> Response {
    if operation.is_open() {
        return responses::ask_again(&request.again());
    }
    match ended(operation) {
        None => StatusCode::OK.into_response(),
        Some(error) => super::show(&error),
    }
}

fn status(operation: &Operation) -> Value {
    let mut status = json!({ "startTime": Moment(operation.began).to_string() });
    if let Some(at) = operation.ended {
        status["endTime"] = json!(Moment(at).to_string());
    }
    status["status"] = json!(match (&operation.result, operation.is_open()) {
        (_, true) => "InProgress",
        (OperationResult::Succeeded, false) => "Succeeded",
        (OperationResult::Canceled, false) => "Canceled",
        (OperationResult::Failed { .. }, false) => "Failed",
    });
    if let Some(error) = ended(operation).filter(|_| !operation.is_open()) {
        status["error"] = error.inner();
    }
    status["name"] = json!(operation.name);
    status
}

/// The error of an operation that did not succeed.
fn ended(operation: &Operation) -> Option<ArmError> {
    match &operation.result {
        OperationResult::Succeeded => None,
        OperationResult::Canceled => {
            Some(ArmError::new(409, "OperationCanceled", "An operator has cancelled the operation."))
        }
        OperationResult::Failed { code, message } => Some(ArmError::new(409, code.clone(), message.clone())),
    }
}
