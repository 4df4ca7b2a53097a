//! What there is, one by one.

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
use forewarn_explain::{NoPreview, PreviewView};
use forewarn_imds::Edition;
use forewarn_lifecycle::{Event, MachineId, Maintenance, MaintenanceId, RolloutId, TenantId};
use forewarn_types::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::tagged::Tagged;
use super::visit::Visit;
use crate::clock::{Kind, Speed};
use forewarn_control::Permit;

type Answer<T> = Result<Json<T>, Fault>;
type TaggedAnswer<T> = Result<Tagged<T>, Fault>;

/// Asks the engine for something that may not be there.
pub(super) fn look<T: Serialize>(
    visit: &Visit,
    look: impl FnOnce(&crate::snapshot::State<'_>) -> Result<T, Fault>,
) -> TaggedAnswer<T> {
    let found = visit.engine.look(look)?.map_err(|fault| visit.discreet(fault))?;
    Ok(visit.tagged(found))
}

/// Whatever was found a moment ago, in the same state, is there.
pub(super) fn there<T>(found: Option<T>) -> Result<T, Fault> {
    found.ok_or_else(|| Fault::not_found("it is gone"))
}

pub(super) async fn host(visit: Visit, Path(name): Path<String>) -> TaggedAnswer<HostView> {
    look(&visit, move |state| there(host_view(state.cluster, find_host(state.cluster, &name)?)))
}

/// A machine, with what is known of it besides.
pub(super) fn view(state: &crate::snapshot::State<'_>, id: MachineId) -> Option<MachineView> {
    machine_view(state.cluster, id, state.details.get(&id).unwrap_or(&MachineDetails::default()))
}

pub(super) async fn machine(visit: Visit, Path(name): Path<String>) -> TaggedAnswer<MachineView> {
    let permit = Arc::clone(&visit.permit);
    look(&visit, move |state| {
        let id = find_machine(state.cluster, &name)?;
        let machine = there(state.cluster.machine(id))?;
        permit.check_tenant(state.cluster, machine.tenant)?;
        there(view(state, id))
    })
}

pub(super) async fn machine_of(
    visit: Visit,
    Path((tenant, name)): Path<(String, String)>,
) -> TaggedAnswer<MachineView> {
    machine(visit, Path(format!("{tenant}/{name}"))).await
}

pub(super) async fn tenant(visit: Visit, Path(name): Path<String>) -> TaggedAnswer<TenantView> {
    let permit = Arc::clone(&visit.permit);
    look(&visit, move |state| {
        let id = permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        there(tenant_view(state.cluster, id))
    })
}

/// In which form a document is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Version {
    /// The edition; the newest, if not said.
    #[serde(rename = "api-version")]
    #[schemars(schema_with = "editions")]
    api_version: Option<String>,
}

fn editions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Edition::ALL.map(Edition::as_str) })
}

/// A document of Scheduled Events. What an event in it has depends on the edition.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "PascalCase")]
#[expect(dead_code, reason = "documents are rendered elsewhere; this says what they look like")]
pub(super) struct ScheduledEvents {
    /// It grows with each event that appears, starts or goes.
    document_incarnation: u64,
    /// The events that can be seen.
    events: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// What the machines of a tenant would read, without enrolling it.
pub(super) async fn document(
    visit: Visit,
    Path(name): Path<String>,
    Query(Version { api_version }): Query<Version>,
) -> Result<impl IntoResponse, Fault> {
    let edition = match api_version {
        Some(text) => {
            Edition::parse(&text).ok_or_else(|| Fault::bad(format!("no such api-version: {text}")))?
        }
        None => Edition::newest(),
    };
    let permit = Arc::clone(&visit.permit);
    let read = move |state: &crate::snapshot::State<'_>| {
        let id = permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        Ok::<_, Fault>(document_of(there(state.cluster.tenant(id))?).render(edition))
    };
    let body = visit.engine.look(read)?.map_err(|fault| visit.discreet(fault))?;
    Ok(([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body))
}

pub(super) async fn event(visit: Visit, Path(id): Path<String>) -> TaggedAnswer<EventView> {
    let permit = Arc::clone(&visit.permit);
    look(&visit, move |state| {
        let (tenant, event) = find_event(state.cluster, &id)?;
        permit.check_tenant(state.cluster, tenant)?;
        Ok(shown(state, tenant, event))
    })
}

/// An event, with what keeps its work from being done.
pub(super) fn shown(state: &crate::snapshot::State<'_>, tenant: TenantId, event: &Event) -> EventView {
    let mut view = event_view(state.cluster, tenant, event);
    let of_event = (event.maintenance, MachineId(0))..=(event.maintenance, MachineId(u32::MAX));
    for trouble in state.delays.range(of_event).map(|(_, trouble)| trouble) {
        view.progress.push_str("; ");
        view.progress.push_str(trouble);
    }
    view
}

pub(super) async fn rollout(visit: Visit, Path(id): Path<String>) -> TaggedAnswer<RolloutView> {
    let unknown = Fault::not_found(format!("no such rollout: {id}"));
    let Ok(id) = id.parse().map(RolloutId) else { return Err(unknown) };
    look(&visit, move |state| rollout_view(state.cluster, state.now, id).ok_or(unknown))
}

/// What a rollout would do: played on a copy of the cluster, beside the driver.
pub(super) async fn preview(visit: Visit, body: Bytes) -> Answer<PreviewView> {
    let entry: RolloutEntry = super::body::read(&body)?;
    let (cluster, now) = visit.engine.look(|state| (state.cluster.clone(), state.now))?;
    let played = tokio::task::spawn_blocking(move || forewarn_explain::preview(&cluster, now, &entry)).await;
    let played = played.map_err(|_| Fault::from(forewarn_control::ControlError::Unavailable))?;
    let view = played.map_err(|problem| match problem {
        NoPreview::Bad(bad) => Fault::from(forewarn_control::ControlError::Bad(bad)),
        NoPreview::Refused(refusal) => Fault::from(forewarn_control::ControlError::Refused(refusal)),
    })?;
    Ok(Json(view))
}

pub(super) async fn clock(visit: Visit) -> Answer<ClockView> {
    let kind = match visit.engine.clock().kind() {
        Kind::Real => "real",
        Kind::Virtual => "virtual",
    };
    let Speed(speed) = visit.engine.clock().speed();
    let shown = move |state: &crate::snapshot::State<'_>| clock_view(state.now, kind, speed, state.next_in);
    Ok(Json(visit.engine.look(shown)?))
}

pub(super) async fn server(visit: Visit) -> Json<ServerView> {
    Json(ServerView::clone(&visit.api.about))
}

/// What somebody waits for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Asked {
    /// Numbers of work, with commas between them.
    #[serde(default)]
    #[schemars(schema_with = "number_list")]
    work: String,
    /// Numbers of rollouts, with commas between them.
    #[serde(default)]
    #[schemars(schema_with = "number_list")]
    rollouts: String,
    /// How long to wait until all of it is over: 60 seconds at most.
    wait: Option<Span>,
}

fn number_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9]{1,19}(,[0-9]{1,19})*)?$" })
}

/// The longest that a question waits for its answer.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What of some work is not over; answered when all of it is, or when the time is up.
pub(super) async fn unfinished(visit: Visit, Query(asked): Query<Asked>) -> Answer<Unfinished> {
    let (work, rollouts) = (numbers(&asked.work)?, numbers(&asked.rollouts)?);
    let wait = asked.wait.map_or(Duration::ZERO, |Span(span)| span.min(WAIT_MAX));
    let deadline = tokio::time::Instant::now() + wait;
    let mut commits = visit.engine.commits();
    loop {
        let (work, rollouts, permit) = (work.clone(), rollouts.clone(), Arc::clone(&visit.permit));
        let left = visit.engine.look(move |state| left_of(state, &permit, &work, &rollouts))?;
        if left.work.is_empty() && left.rollouts.is_empty() {
            return Ok(Json(left));
        }
        match tokio::time::timeout_at(deadline, commits.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Ok(Json(left)),
        }
        if !visit.engine.admits(&visit.permit) {
            return Err(forewarn_control::ControlError::TokenGone.into());
        }
    }
}

/// Who is limited to tenants is told of work that touches them, and of no rollout.
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
        // Who is limited to tenants is told of failures of theirs.
        let told = failures.iter().filter(|(whose, _)| sees_all || permit.sees_named(whose.as_str()));
        let failures = || told.map(|(_, failure)| failure.clone()).take(FAILURES_MAX).collect();
        is_seen.then(|| EndedView { work: *id, how: *ending, failures: failures() })
    });
    let ended = ended.collect();
    let work = work.iter().copied().filter(|id| cluster.maintenance(MaintenanceId(*id)).is_some_and(is_seen));
    let rollouts =
        rollouts.iter().copied().filter(|id| sees_all && cluster.rollout(RolloutId(*id)).is_some());
    Unfinished { work: work.collect(), rollouts: rollouts.collect(), ended }
}

fn numbers(text: &str) -> Result<Vec<u64>, Fault> {
    let words = text.split(',').filter(|word| !word.is_empty());
    let numbers: Result<_, _> = words.map(str::parse).collect();
    numbers.map_err(|_| Fault::bad(format!("not a list of numbers: {text}")))
}
