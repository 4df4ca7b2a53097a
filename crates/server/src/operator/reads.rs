//! Handlers of single resources, the clock and unfinished work.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query};
use axum::http::header;
use axum::response::IntoResponse;
use forewarn_control::WorkOutcome;
use forewarn_control::{
    self, ClockView, EndedView, EventView, FAILURES_MAX, HostView, MachineDetails, MachineView, RolloutEntry,
    RolloutView, ServerView, TenantView, Unfinished, clock_view, document_of, event_view, find_event,
    find_host, find_machine, find_tenant, host_view, machine_view, rollout_view, tenant_view,
};
use forewarn_explain::{PreviewError, PreviewView};
use forewarn_imds::Edition;
use forewarn_lifecycle::{
    Event, HostAttention, HostId, MachineId, Maintenance, MaintenanceId, RolloutId, Target, TenantId,
};
use forewarn_types::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::tagged::Tagged;
use crate::clock::{ClockKind, Speed};
use forewarn_control::Permit;

pub(super) type JsonResult<T> = Result<Json<T>, ApiProblem>;
pub(super) type TaggedResult<T> = Result<Tagged<T>, ApiProblem>;

/// Reads something that may not exist, with its tag.
pub(super) fn look<T: Serialize>(
    request: &OperatorRequest,
    look: impl FnOnce(&crate::snapshot::State<'_>) -> Result<T, ApiProblem>,
) -> TaggedResult<T> {
    let found = request.control.look(look)?.map_err(|problem| request.hide_names(problem))?;
    Ok(request.tagged(found))
}

/// Unwraps what exists, since it was found in the same state.
pub(super) fn existing<T>(found: Option<T>) -> Result<T, ApiProblem> {
    found.ok_or_else(|| ApiProblem::not_found("the resource no longer exists"))
}

pub(super) async fn host(request: OperatorRequest, Path(name): Path<String>) -> TaggedResult<HostView> {
    let manual = request.control.has_manual_host_work();
    look(&request, move |state| existing(host_with_reason(state, find_host(state.cluster, &name)?, manual)))
}

/// The view of a host, with the reason why it needs attention.
pub(super) fn host_with_reason(
    state: &crate::snapshot::State<'_>,
    id: HostId,
    manual: bool,
) -> Option<HostView> {
    let needs_attention = state.cluster.host(id)?.attention == HostAttention::Needed;
    let failure = if needs_attention { state.durable.step_failure(id) } else { None };
    let view = host_view(state.cluster, id, failure)?;
    Some(if manual { view.worked_on_by_hand() } else { view })
}

/// The view of a machine, with its details.
pub(super) fn view(state: &crate::snapshot::State<'_>, id: MachineId) -> Option<MachineView> {
    machine_view(state.cluster, id, state.details.get(&id).unwrap_or(&MachineDetails::default()))
}

pub(super) async fn machine(request: OperatorRequest, Path(name): Path<String>) -> TaggedResult<MachineView> {
    let permit = Arc::clone(&request.permit);
    look(&request, move |state| {
        let id = find_machine(state.cluster, &name)?;
        let machine = existing(state.cluster.machine(id))?;
        permit.check_tenant(state.cluster, machine.tenant)?;
        existing(view(state, id))
    })
}

pub(super) async fn machine_of(
    request: OperatorRequest,
    Path((tenant, name)): Path<(String, String)>,
) -> TaggedResult<MachineView> {
    machine(request, Path(format!("{tenant}/{name}"))).await
}

pub(super) async fn tenant(request: OperatorRequest, Path(name): Path<String>) -> TaggedResult<TenantView> {
    let permit = Arc::clone(&request.permit);
    look(&request, move |state| {
        let id = permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        existing(tenant_view(state.cluster, id))
    })
}

/// Query parameters of a document.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DocumentQuery {
    /// Api-version of the document; default: the newest.
    #[serde(rename = "api-version")]
    #[schemars(schema_with = "editions")]
    api_version: Option<String>,
}

fn editions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Edition::ALL.map(Edition::as_str) })
}

/// A Scheduled Events document. The members of an event depend on the api-version.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "PascalCase")]
#[expect(dead_code, reason = "documents are rendered elsewhere; this says what they look like")]
pub(super) struct ScheduledEvents {
    /// Grows with each event that appears, starts or ends.
    document_incarnation: u64,
    /// Active events.
    events: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// The document that the machines of a tenant read. It is rendered without enrolling the tenant.
pub(super) async fn document(
    request: OperatorRequest,
    Path(name): Path<String>,
    Query(DocumentQuery { api_version }): Query<DocumentQuery>,
) -> Result<impl IntoResponse, ApiProblem> {
    let edition = match api_version {
        Some(text) => {
            Edition::parse(&text).ok_or_else(|| ApiProblem::bad(format!("no such api-version: {text}")))?
        }
        None => Edition::newest(),
    };
    let permit = Arc::clone(&request.permit);
    let read = move |state: &crate::snapshot::State<'_>| {
        let id = permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        Ok::<_, ApiProblem>(document_of(existing(state.cluster.tenant(id))?).render(edition))
    };
    let body = request.control.look(read)?.map_err(|problem| request.hide_names(problem))?;
    Ok(([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body))
}

pub(super) async fn event(request: OperatorRequest, Path(id): Path<String>) -> TaggedResult<EventView> {
    let permit = Arc::clone(&request.permit);
    look(&request, move |state| {
        let (tenant, event) = find_event(state.cluster, &id)?;
        permit.check_tenant(state.cluster, tenant)?;
        Ok(event_with_delays(state, &permit, tenant, event))
    })
}

/// The view of an event, with the reasons why orders to the driver program are repeated.
pub(super) fn event_with_delays(
    state: &crate::snapshot::State<'_>,
    permit: &Permit,
    tenant: TenantId,
    event: &Event,
) -> EventView {
    let sees = |other| permit.sees(state.cluster, other);
    let mut view = event_view(state.cluster, tenant, event, &sees);
    let of_event = (event.maintenance, Target::FIRST)..=(event.maintenance, Target::LAST);
    for reason in state.delays.range(of_event).map(|(_, reason)| reason) {
        view.progress.push_str("; ");
        view.progress.push_str(reason);
    }
    view
}

pub(super) async fn rollout(request: OperatorRequest, Path(id): Path<String>) -> TaggedResult<RolloutView> {
    let unknown = ApiProblem::not_found(format!("no such rollout: {id}"));
    let Ok(id) = id.parse().map(RolloutId) else { return Err(unknown) };
    look(&request, move |state| rollout_view(state.cluster, state.now, id).ok_or(unknown))
}

/// Simulates a rollout on a copy of the cluster, outside the driver.
pub(super) async fn preview(request: OperatorRequest, body: Bytes) -> JsonResult<PreviewView> {
    let entry: RolloutEntry = super::body::read(&body)?;
    let (cluster, now) = request.control.look(|state| (state.cluster.clone(), state.now))?;
    let played = tokio::task::spawn_blocking(move || forewarn_explain::preview(&cluster, now, &entry)).await;
    let played = played.map_err(|_| ApiProblem::from(forewarn_control::ControlError::Unavailable))?;
    let view = played.map_err(|problem| match problem {
        PreviewError::Bad(bad) => ApiProblem::from(forewarn_control::ControlError::Bad(bad)),
        PreviewError::Refused(refusal) => ApiProblem::from(forewarn_control::ControlError::Refused(refusal)),
    })?;
    Ok(Json(if request.control.has_manual_host_work() { view.by_persons() } else { view }))
}

pub(super) async fn clock(request: OperatorRequest) -> JsonResult<ClockView> {
    let kind = match request.control.clock().kind() {
        ClockKind::Real => "real",
        ClockKind::Accelerated { .. } => "accelerated",
        ClockKind::Virtual => "virtual",
    };
    let Speed(speed) = request.control.clock().speed();
    let shown = move |state: &crate::snapshot::State<'_>| clock_view(state.now, kind, speed, state.next_in());
    Ok(Json(request.control.look(shown)?))
}

pub(super) async fn server(request: OperatorRequest) -> Json<ServerView> {
    Json(ServerView::clone(&request.api.about))
}

/// Query parameters of unfinished work.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UnfinishedQuery {
    /// Comma-separated numbers of work.
    #[serde(default)]
    #[schemars(schema_with = "number_list")]
    work: String,
    /// Comma-separated numbers of rollouts.
    #[serde(default)]
    #[schemars(schema_with = "number_list")]
    rollouts: String,
    /// All work and rollouts that have not ended, instead of lists of numbers.
    #[serde(default)]
    all: bool,
    /// Maximum time to wait until all of it has finished: at most 60 seconds.
    wait: Option<Span>,
}

fn number_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9]{1,19}(,[0-9]{1,19})*)?$" })
}

/// Maximum wait.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Unfinished work; the response comes when all is finished, or when the wait has passed.
pub(super) async fn unfinished(
    request: OperatorRequest,
    Query(query): Query<UnfinishedQuery>,
) -> JsonResult<Unfinished> {
    let (work, rollouts) = (numbers(&query.work)?, numbers(&query.rollouts)?);
    let wait = query.wait.map_or(Duration::ZERO, |Span(span)| span.min(WAIT_MAX));
    let deadline = tokio::time::Instant::now() + wait;
    let mut commits = request.control.commits();
    loop {
        let (work, rollouts, permit) = (work.clone(), rollouts.clone(), Arc::clone(&request.permit));
        let left = request.control.look(move |state| {
            if query.all { all_left(state, &permit) } else { left_of(state, &permit, &work, &rollouts) }
        })?;
        if left.work.is_empty() && left.rollouts.is_empty() {
            return Ok(Json(left));
        }
        match tokio::time::timeout_at(deadline, commits.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Ok(Json(left)),
        }
        if !request.control.admits(&request.permit) {
            return Err(forewarn_control::ControlError::TokenGone.into());
        }
    }
}

/// Maximum number of pieces of work, and of rollouts, in a response.
const LEFT_MAX: usize = 1_000;

/// All work and rollouts that have not ended: the first of each.
fn all_left(state: &crate::snapshot::State<'_>, permit: &Permit) -> Unfinished {
    let work: Vec<_> = state.cluster.maintenances().map(|work| work.plan.id.0).collect();
    let rollouts: Vec<_> = state.cluster.rollouts().map(|(id, _)| id.0).collect();
    let mut left = left_of(state, permit, &work, &rollouts);
    left.work.truncate(LEFT_MAX);
    left.rollouts.truncate(LEFT_MAX);
    left
}

/// A token with a tenant scope sees work that touches these tenants, and no rollouts.
fn left_of(
    state: &crate::snapshot::State<'_>,
    permit: &Permit,
    work: &[u64],
    rollouts: &[u64],
) -> Unfinished {
    let cluster = state.cluster;
    let sees_all = permit.scope.tenants.is_all();
    let is_seen =
        |work: &Maintenance| sees_all || work.plan.parts.iter().any(|part| permit.sees(cluster, part.tenant));
    let ended = work.iter().filter_map(|id| {
        let WorkOutcome { ending, tenants, failures } = state.outcomes.of(MaintenanceId(*id))?;
        let is_seen = sees_all || tenants.iter().any(|name| permit.sees_named(name.as_str()));
        // The same for failures.
        let visible = failures.iter().filter(|(whose, _)| sees_all || permit.sees_named(whose.as_str()));
        let failures = || visible.map(|(_, failure)| failure.clone()).take(FAILURES_MAX).collect();
        is_seen.then(|| EndedView { work: *id, how: *ending, failures: failures() })
    });
    let ended = ended.collect();
    let work = work.iter().copied().filter(|id| cluster.maintenance(MaintenanceId(*id)).is_some_and(is_seen));
    let rollouts =
        rollouts.iter().copied().filter(|id| sees_all && cluster.rollout(RolloutId(*id)).is_some());
    Unfinished { work: work.collect(), rollouts: rollouts.collect(), ended }
}

fn numbers(text: &str) -> Result<Vec<u64>, ApiProblem> {
    let words = text.split(',').filter(|word| !word.is_empty());
    let numbers: Result<_, _> = words.map(str::parse).collect();
    numbers.map_err(|_| ApiProblem::bad(format!("invalid list of numbers: {text}")))
}
