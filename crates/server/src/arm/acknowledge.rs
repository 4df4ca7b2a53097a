//! Scheduled events of a resource, and approving them: what machines do through the metadata endpoint, their owner does here.

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_azure::ArmError;
use forewarn_control::shared::Link;
use forewarn_control::{EventSelection, NamedCommand};
use forewarn_lifecycle::{Cluster, EventId, TenantId};
use serde_json::{Value, json};

use super::compute::{Kind, Visit, check_commands, find};
use super::place::no_resource;
use super::refusal;
use crate::engine::{Arrangement, State};

/// Events that are approved with one request.
const EVENTS_MAX: usize = 1_000;

/// Answers `…/providers/Microsoft.Maintenance/scheduledevents/…` of a machine or a set; `rest` is what follows.
pub(super) async fn serve(
    visit: &Visit<'_>,
    (kind, name): (Kind, &str),
    rest: &[String],
) -> Result<Response, ArmError> {
    let is = |place: usize, word: &str| {
        rest.get(place).is_some_and(|text: &String| text.eq_ignore_ascii_case(word))
    };
    if visit.call.method != Method::POST {
        return Err(super::unsupported(visit.call));
    }
    let events = match rest {
        [] => listed(&visit.call.json()?)?,
        [id, _] if is(1, "acknowledge") => vec![id.clone()],
        _ => return Err(super::unsupported(visit.call)),
    };
    acknowledge(visit, (kind, name), events).await
}

fn listed(body: &Value) -> Result<Vec<String>, ArmError> {
    let bad = || ArmError::invalid("value", "The ids of the events are expected as {\"value\": [\"…\"]}.");
    let ids = body["value"].as_array().ok_or_else(bad)?;
    let ids: Option<Vec<_>> = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect();
    ids.filter(|ids| !ids.is_empty() && ids.len() <= EVENTS_MAX).ok_or_else(bad)
}

async fn acknowledge(
    visit: &Visit<'_>,
    (kind, name): (Kind, &str),
    events: Vec<String>,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&visit.call.permit), visit.call.version()?);
    let (group, id, name) = (visit.group.clone(), visit.id(kind, name), name.to_owned());
    let terms = permit.terms();
    let arrange = move |state: &State<'_>| -> Result<(Arrangement, ()), Refused> {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
        let tenants = tenants_of(state.cluster, found.link);
        let commands = events.iter().map(|event| approval(state, &tenants, event).ok_or(Refused::Unknown));
        let commands: Vec<_> = commands.collect::<Result<_, _>>()?;
        check_commands(state, &permit, &commands)?;
        let asked = Some(json!({ "command": "acknowledge", "resource": id.to_string(), "events": events }));
        Ok((Arrangement { commands, asked, ..Arrangement::default() }, ()))
    };
    match visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))? {
        Ok(_) => Ok(Json(json!({ "value": "Successfully approved scheduled event" })).into_response()),
        Err(Refused::Unknown) => Ok(unknown()),
        Err(Refused::Arm(refused)) => Err(refused),
    }
}

enum Refused {
    Unknown,
    Arm(ArmError),
}

impl From<ArmError> for Refused {
    fn from(refused: ArmError) -> Self {
        Self::Arm(refused)
    }
}

/// This one is spelled otherwise than all others.
fn unknown() -> Response {
    let body =
        json!({ "Error": { "Code": "InvalidScheduledEventId", "Message": "Scheduled event not found" } });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

/// The tenants whose events are those of a resource.
fn tenants_of(cluster: &Cluster, link: Link) -> Vec<TenantId> {
    match link {
        Link::Machine(machine) => {
            cluster.machine(machine).map(|machine| machine.tenant).into_iter().collect()
        }
        Link::Tenant(tenant) => vec![tenant],
        Link::ScaleSet(set) => cluster.scale_set(set).map(|set| set.groups.clone()).unwrap_or_default(),
    }
}

/// The approval of an event that one of the tenants sees, or has just seen.
fn approval(state: &State<'_>, tenants: &[TenantId], event: &str) -> Option<NamedCommand> {
    let id = EventId::parse(event)?;
    let mut tenants = tenants.iter().filter_map(|tenant| state.cluster.tenant(*tenant));
    let tenant =
        tenants.find(|tenant| tenant.event(id).is_some() || tenant.ended_recently(id, state.now.steady))?;
    let events = EventSelection::Ids(vec![id.to_string()]);
    Some(NamedCommand::Approve { tenant: tenant.name.to_string(), events })
}
