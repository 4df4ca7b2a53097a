//! Approval of the scheduled events of a resource by its owner, as machines do it through the metadata endpoint.

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_control::request::Transaction;
use forewarn_control::resources::Link;
use forewarn_control::{EventSelection, NamedCommand};
use forewarn_lifecycle::{Cluster, EventId, TenantId};
use forewarn_server::State;
use serde_json::{Value, json};

use super::compute::{ComputeKind, GroupScope, check_commands, find};
use super::errors;
use super::scopes::no_resource;
use crate::ArmError;

/// Events of one request.
const EVENTS_MAX: usize = 1_000;

/// Serves `…/providers/Microsoft.Maintenance/scheduledevents/…` of a machine or a set; `rest` is the rest of the path.
pub(super) async fn serve(
    scope: &GroupScope<'_>,
    (kind, name): (ComputeKind, &str),
    rest: &[String],
) -> Result<Response, ArmError> {
    let is = |position: usize, word: &str| {
        rest.get(position).is_some_and(|text: &String| text.eq_ignore_ascii_case(word))
    };
    if scope.request.method != Method::POST {
        return Err(super::unsupported(scope.request));
    }
    let events = match rest {
        [] => listed(&scope.request.json()?)?,
        [id, _] if is(1, "acknowledge") => vec![id.clone()],
        _ => return Err(super::unsupported(scope.request)),
    };
    acknowledge(scope, (kind, name), events).await
}

fn listed(body: &Value) -> Result<Vec<String>, ArmError> {
    let bad = || ArmError::invalid("value", "The ids of the events are expected as {\"value\": [\"…\"]}.");
    let ids = body["value"].as_array().ok_or_else(bad)?;
    let ids: Option<Vec<_>> = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect();
    ids.filter(|ids| !ids.is_empty() && ids.len() <= EVENTS_MAX).ok_or_else(bad)
}

async fn acknowledge(
    scope: &GroupScope<'_>,
    (kind, name): (ComputeKind, &str),
    events: Vec<String>,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&scope.request.permit), scope.request.version()?);
    let (group, id, name) = (scope.group.clone(), scope.id(kind, name), name.to_owned());
    let context = permit.context();
    let plan = move |state: &State<'_>| -> Result<(Transaction, ()), AcknowledgeError> {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
        let tenants = tenants_of(state.cluster, found.link);
        let commands =
            events.iter().map(|event| approval(state, &tenants, event).ok_or(AcknowledgeError::Unknown));
        let commands: Vec<_> = commands.collect::<Result<_, _>>()?;
        check_commands(state, &permit, &commands)?;
        let asked = Some(json!({ "command": "acknowledge", "resource": id.to_string(), "events": events }));
        Ok((Transaction { commands, asked, ..Transaction::default() }, ()))
    };
    match scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))? {
        Ok(_) => Ok(Json(json!({ "value": "Successfully approved scheduled event" })).into_response()),
        Err(AcknowledgeError::Unknown) => Ok(unknown()),
        Err(AcknowledgeError::Arm(refused)) => Err(refused),
    }
}

enum AcknowledgeError {
    Unknown,
    Arm(ArmError),
}

impl From<ArmError> for AcknowledgeError {
    fn from(refused: ArmError) -> Self {
        Self::Arm(refused)
    }
}

/// 404 for an unknown event. Its members are in another case than those of other errors.
fn unknown() -> Response {
    let body =
        json!({ "Error": { "Code": "InvalidScheduledEventId", "Message": "Scheduled event not found" } });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

/// The tenants whose events a resource has.
fn tenants_of(cluster: &Cluster, link: Link) -> Vec<TenantId> {
    match link {
        Link::Machine(machine) => {
            cluster.machine(machine).map(|machine| machine.tenant).into_iter().collect()
        }
        Link::Tenant(tenant) => vec![tenant],
        Link::ScaleSet(set) => cluster.scale_set(set).map(|set| set.groups.clone()).unwrap_or_default(),
    }
}

/// The approval of an event of one of the tenants, open or recently ended.
fn approval(state: &State<'_>, tenants: &[TenantId], event: &str) -> Option<NamedCommand> {
    let id = EventId::parse(event)?;
    let mut tenants = tenants.iter().filter_map(|tenant| state.cluster.tenant(*tenant));
    let tenant =
        tenants.find(|tenant| tenant.event(id).is_some() || tenant.ended_recently(id, state.now.steady))?;
    let events = EventSelection::Ids(vec![id.to_string()]);
    Some(NamedCommand::Approve { tenant: tenant.name.to_string(), events })
}
