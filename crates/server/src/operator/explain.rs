//! Explanations: gathers their input. The wording is that of [`forewarn_explain`].

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query};
use forewarn_control::resource_id::GroupId;
use forewarn_control::resources::Link;
use forewarn_control::{
    AuditEntry, MachineDetails, Stream, Subject, find_event, find_machine, find_scale_set, full_name,
};
use forewarn_explain::{
    AuditHistory, AzureContext, EventExplanation, ExplainedMachine, ExplanationContext, HistoryLookup,
    MachineExplanation, Resource, ScaleSetExplanation, Viewer, explain_event, explain_machine,
    explain_scale_set,
};
use forewarn_lifecycle::EventId;
use forewarn_store::{AuditBatch, AuditQuery, Direction};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::audit_cursor::AuditCursor;
use super::audit_log::AuditLog;
use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::reads::JsonResult;
use super::visibility::Visibility;
use crate::control_handle::ControlHandle;
use crate::resource_groups::{group_in_cluster, group_of};
use crate::snapshot::State;
use forewarn_control::Permit;

/// Maximum entries of one event.
const EVENT_ENTRIES_MAX: usize = 1_000;

/// Default and maximum entries of the history of a machine.
const HISTORY: u16 = 20;
const HISTORY_MAX: u16 = 200;

/// Maximum entries that are looked up to find requesters.
const LOOKED_UP_MAX: usize = 512;

/// Maximum queries for the entries of a subject.
const QUERIES_MAX: usize = 8;

/// Input of an explanation, and the caller's view of it.
struct ExplanationQuery {
    control: ControlHandle,
    cluster: String,
    visibility: Visibility,
    permit: Arc<Permit>,
    history: AuditHistory,
    /// Position of the next page.
    next: Option<u64>,
    /// True if entries of the audit log were removed by retention.
    swept: bool,
}

pub(super) async fn event(request: OperatorRequest, Path(id): Path<String>) -> JsonResult<EventExplanation> {
    let nothing = || ApiProblem::not_found(format!("no such event: {id}"));
    let id =
        EventId::parse(&id).ok_or_else(nothing).map_err(|problem| request.hide_names(problem))?.to_string();
    let subject = |cluster| Subject::Event { cluster, id: id.clone() };
    let log = AuditLog::own(&request.control);
    let context =
        gather((&request, &log), subject, EVENT_ENTRIES_MAX, (Direction::OldestFirst, None)).await?;
    let explain = move |state: &State<'_>| {
        let ExplanationQuery { visibility, permit, history, .. } = &context;
        let may_know = match find_event(state.cluster, &id) {
            Ok((tenant, _)) => permit.sees(state.cluster, tenant),
            // Only the audit log knows the tenant of a completed event.
            Err(_) => history.entries().any(|entry| visibility.admits(entry)),
        };
        let explanation =
            if may_know { context.with_context(state, |context| explain_event(context, &id)) } else { None };
        explanation.ok_or_else(|| ApiProblem::not_found(format!("no such event: {id}")))
    };
    request.control.look(explain)?.map(Json).map_err(|problem| request.hide_names(problem))
}

/// Part of the history of a machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct HistoryQuery {
    /// Maximum number of entries.
    #[schemars(schema_with = "limits")]
    limit: Option<u16>,
    /// Entries before this one: `next` of the previous response.
    before: Option<AuditCursor>,
}

fn limits(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": HISTORY_MAX, "default": HISTORY })
}

pub(super) async fn machine_of(
    request: OperatorRequest,
    Path((tenant, name)): Path<(String, String)>,
    history: Query<HistoryQuery>,
) -> JsonResult<MachineExplanation> {
    machine(request, Path(format!("{tenant}/{name}")), history).await
}

pub(super) async fn machine(
    request: OperatorRequest,
    Path(name): Path<String>,
    Query(HistoryQuery { limit, before }): Query<HistoryQuery>,
) -> JsonResult<MachineExplanation> {
    let limit = limit.unwrap_or(HISTORY);
    if !(1..=HISTORY_MAX).contains(&limit) {
        return Err(ApiProblem::bad(format!(
            "invalid limit: {limit}; a history has 1 to {HISTORY_MAX} entries"
        )));
    }
    let requested = name.clone();
    // A deleted machine needs its full name. A standalone machine has the name of its tenant.
    let find = move |state: &State<'_>| match find_machine(state.cluster, &requested) {
        Ok(id) => full_name(state.cluster, id),
        Err(_) if requested.contains('/') => requested,
        Err(_) => format!("{requested}/{requested}"),
    };
    let full = request.control.look(find)?;
    let subject = |cluster| Subject::Machine { cluster, name: full.clone() };
    let (log, [before]) = AuditLog::of_cursors(&request.control, [before])?;
    let context = gather((&request, &log), subject, limit.into(), (Direction::NewestFirst, before)).await?;
    let explain = move |state: &State<'_>| {
        let ExplanationQuery { visibility, permit, history, next, swept, .. } = &context;
        let found = find_machine(state.cluster, &name);
        let tenant = found.as_ref().ok().and_then(|id| Some(state.cluster.machine(*id)?.tenant));
        let may_know = match tenant {
            Some(tenant) => permit.sees(state.cluster, tenant),
            None => history.entries().any(|entry| visibility.admits(entry)),
        };
        let nothing = MachineDetails::default();
        let machine = match &found {
            Ok(id) => ExplainedMachine::Existing(*id, state.details.get(id).unwrap_or(&nothing)),
            Err(_) => ExplainedMachine::Removed(&full),
        };
        let explanation = if may_know {
            context.with_context(state, |context| explain_machine(context, machine))
        } else {
            None
        };
        match (explanation, found) {
            (Some(explanation), _) => {
                let next = next.map(|next| log.cursor(next));
                Ok(MachineExplanation { next, swept: *swept, ..explanation })
            }
            (None, Err(unknown)) => Err(unknown.into()),
            (None, Ok(_)) => Err(ApiProblem::not_found(format!("no such machine: {name}"))),
        }
    };
    request.control.look(explain)?.map(Json).map_err(|problem| request.hide_names(problem))
}

pub(super) async fn scale_set(
    request: OperatorRequest,
    Path(name): Path<String>,
) -> JsonResult<ScaleSetExplanation> {
    let (visibility, control) = (Visibility::of(&request)?, request.control.clone());
    let cluster = request.control.look(|state| state.name.to_string())?;
    let (permit, history) = (Arc::clone(&request.permit), AuditHistory::default());
    let context =
        ExplanationQuery { control, cluster, visibility, permit, history, next: None, swept: false };
    let explain = move |state: &State<'_>| {
        let may_know = context.permit.sees_named(&name);
        let explanation = if may_know {
            context.with_context(state, |context| explain_scale_set(context, &name))
        } else {
            None
        };
        explanation.ok_or_else(|| match find_scale_set(state.cluster, &name) {
            Err(unknown) => ApiProblem::from(unknown),
            Ok(_) => ApiProblem::not_found(format!("no such scale set: {name}")),
        })
    };
    request.control.look(explain)?.map(Json).map_err(|problem| request.hide_names(problem))
}

impl ExplanationQuery {
    /// Runs `explain` on the current state, restricted to the caller's view.
    fn with_context<T>(&self, state: &State<'_>, explain: impl FnOnce(&ExplanationContext<'_>) -> T) -> T {
        let polls = |machine| state.polls.of(machine);
        let is_here = |group: &GroupId| group_in_cluster(state, group).is_some();
        let refusals = self.control.rejections().of_groups(is_here);
        let group = |resource| match resource {
            Resource::Machine(machine) => group_of(state, Link::Machine(machine)),
            Resource::ScaleSet(set) => group_of(state, Link::ScaleSet(set)),
        };
        let viewer = Viewer {
            may_read: &|entry: &AuditEntry| self.visibility.admits(entry),
            may_see: &|tenant| self.permit.sees(state.cluster, tenant),
            is_limited: !self.permit.scope.tenants.is_all(),
        };
        explain(&ExplanationContext {
            name: &self.cluster,
            cluster: state.cluster,
            now: state.now,
            polls: &polls,
            driver_errors: state.delays,
            history: &self.history,
            azure: AzureContext { group_of: &group, refusals: &refusals },
            viewer,
        })
    }
}

/// Reads the audit entries of a subject, and the entries that name its requesters.
async fn gather(
    (request, log): (&OperatorRequest, &AuditLog),
    subject: impl FnOnce(String) -> Subject,
    limit: usize,
    (direction, before): (Direction, Option<u64>),
) -> Result<ExplanationQuery, ApiProblem> {
    let visibility = Visibility::of(request)?;
    let cluster = request.control.look(|state| state.name.to_string())?;
    let key = request.cluster_key();
    let groups = vec![vec![subject(key.clone())]];
    let mut query = AuditQuery { groups, direction, before, limit, ..AuditQuery::default() };
    let (mut entries, mut swept, mut next) = (Vec::new(), false, None);
    for _ in 0..QUERIES_MAX {
        query.limit = limit - entries.len();
        let page = log.read(query.clone()).await?;
        AuditCursor::check(query.after.max(query.before), page.end)?;
        entries.extend(page.entries.into_iter().map(|logged| logged.entry));
        (swept, next) = (page.swept > 0, page.next);
        let Some(cursor) = next.filter(|_| entries.len() < limit) else { break };
        match direction {
            Direction::OldestFirst => query.after = Some(cursor),
            Direction::NewestFirst => query.before = Some(cursor),
        }
    }
    let mut history = AuditHistory::new(entries);
    let mut looked_up = BTreeSet::new();
    loop {
        let missing = history.missing();
        if missing.is_empty() || looked_up.len() >= LOOKED_UP_MAX {
            break;
        }
        for wanted in missing.into_iter().take(LOOKED_UP_MAX) {
            let found = look_up(request, &key, wanted).await?;
            looked_up.insert(wanted);
            history.add(wanted, found);
        }
    }
    let (control, permit) = (request.control.clone(), Arc::clone(&request.permit));
    Ok(ExplanationQuery { control, cluster, visibility, permit, history, next, swept })
}

/// One audit entry. None if it was swept.
async fn look_up(
    request: &OperatorRequest,
    cluster: &str,
    wanted: HistoryLookup,
) -> Result<Option<Arc<AuditEntry>>, ApiProblem> {
    let cluster = cluster.to_owned();
    let first = |subject| AuditQuery { groups: vec![vec![subject]], limit: 1, ..AuditQuery::default() };
    let query = match wanted {
        HistoryLookup::Entry(number) => {
            // Within a stream, a query is by number.
            let stream = Some(Stream::Cluster(request.cluster_id()));
            let (after, before) = (number.checked_sub(1), number.checked_add(1));
            AuditQuery { stream, after, before, limit: 1, ..AuditQuery::default() }
        }
        HistoryLookup::OfWork(number) => first(Subject::Work { cluster, number }),
        HistoryLookup::OfRollout(number) => first(Subject::Rollout { cluster, number }),
    };
    let AuditBatch { entries, .. } = request.control.read_audit_log(query).await?;
    Ok(entries.into_iter().next().map(|logged| logged.entry))
}
