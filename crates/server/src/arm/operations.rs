//! Operations: what clients ask again and again until it has ended.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use forewarn_azure::ArmError;
use forewarn_control::shared::{Ending, Operation};
use forewarn_imds::Moment;
use serde_json::{Value, json};

use super::call::Call;
use super::compute::sees;
use super::{Arm, answer, refusal};
use crate::engine::State;
use crate::operator::Permit;

/// How an operation goes; with `monitor`, whether it is over.
pub(super) async fn show(arm: &Arm, call: &Call, name: &str) -> Result<Response, ArmError> {
    let operation = find(arm, call, name).await?;
    if call.parameter("monitor").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(monitor(call, &operation));
    }
    let shown = answer::ok(status(&operation));
    Ok(if operation.is_open() { answer::later(shown) } else { shown })
}

/// Whether an operation is over, for those who know no other way of asking.
pub(super) async fn result(arm: &Arm, call: &Call, name: &str) -> Result<Response, ArmError> {
    Ok(monitor(call, &find(arm, call, name).await?))
}

/// One look at it is enough for who asks, and may ask.
async fn find(arm: &Arm, call: &Call, name: &str) -> Result<Operation, ArmError> {
    let (wanted, permit) = (name.to_lowercase(), std::sync::Arc::clone(&call.permit));
    let look = move |state: &State<'_>| {
        state.catalogue.operation(&wanted).filter(|operation| may_read(state, &permit, operation)).cloned()
    };
    let found = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    found.ok_or_else(|| ArmError::new(404, "NotFound", format!("The operation '{name}' could not be found.")))
}

/// Whether a client may read an operation: it is in the clusters of its token, and, for a token that is limited to tenants,
/// it was begun with that token or is about a machine or a set of those tenants.
fn may_read(state: &State<'_>, permit: &Permit, operation: &Operation) -> bool {
    if !permit.reaches(operation.cluster) {
        return false;
    }
    if permit.scope.tenants.is_all() || (permit.token.is_some() && permit.token == operation.token) {
        return true;
    }
    let Some(cluster) = state.all.get(&operation.cluster).map(|estate| &estate.cluster) else { return false };
    let link = state.catalogue.entry(&operation.about).and_then(|entry| entry.link);
    link.is_some_and(|link| sees(cluster, permit, link))
}

fn monitor(call: &Call, operation: &Operation) -> Response {
    if operation.is_open() {
        return answer::ask_again(&call.again());
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
    status["status"] = json!(match (&operation.ending, operation.is_open()) {
        (_, true) => "InProgress",
        (Ending::Succeeded, false) => "Succeeded",
        (Ending::Canceled, false) => "Canceled",
        (Ending::Failed { .. }, false) => "Failed",
    });
    if let Some(error) = ended(operation).filter(|_| !operation.is_open()) {
        status["error"] = error.inner();
    }
    status["name"] = json!(operation.name);
    status
}

/// Why it did not do what was asked for, if so.
fn ended(operation: &Operation) -> Option<ArmError> {
    match &operation.ending {
        Ending::Succeeded => None,
        Ending::Canceled => {
            Some(ArmError::new(409, "OperationCanceled", "An operator has taken the operation back."))
        }
        Ending::Failed { code, message } => Some(ArmError::new(409, code.clone(), message.clone())),
    }
}
