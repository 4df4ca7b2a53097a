//! Handlers of the audit log: pages and export.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header;
use axum::response::IntoResponse;
use forewarn_control::shared::Role;
use forewarn_control::{AuditPage, Stream, Subject, find_machine, full_name, schema};
use forewarn_store::{AuditBatch, AuditQuery, Direction, PAGE_ENTRIES_MAX};
use forewarn_types::Moment;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tokio_stream::wrappers::ReceiverStream;

use super::audit_cursor::AuditCursor;
use super::audit_log::AuditLog;
use super::audit_pages::{self, AuditConditions, ObjectCondition};
use super::context::OperatorRequest;
use super::problem::{ApiProblem, ProblemKind};
use super::visibility::Visibility;
use super::while_valid::{WhileValid, revoked};
use crate::snapshot::State;
use forewarn_control::{Denied, Permit};

/// Default and maximum entries of a page.
const LIMIT: u16 = 100;
const LIMIT_MAX: u16 = 1_000;

/// Pages of an export that are buffered for a slow reader.
const PAGES_WAITING_MAX: usize = 1;

/// Minimum length of an event id prefix.
const EVENT_CHARS_MIN: usize = 4;

/// Length of an event id.
const EVENT_ID_CHARS: usize = 36;

/// Filter of audit entries. All conditions have to match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct AuditFilter {
    /// Entries of this cluster; default: of every cluster in the scope of the token.
    #[schemars(with = "Option<schema::Name>")]
    #[expect(dead_code, reason = "the extractor of `OperatorRequest` reads it")]
    cluster: Option<String>,
    /// Entries of this tenant, which may be gone.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
    /// Entries of this machine: `tenant/name`, which may be gone, or the name of an existing machine.
    #[schemars(with = "Option<schema::MachineName>")]
    machine: Option<String>,
    /// Entries of this host.
    #[schemars(with = "Option<schema::Name>")]
    host: Option<String>,
    /// Entries of this event: its id, or a prefix of the id of an active event.
    #[schemars(schema_with = "event_prefix")]
    event: Option<String>,
    /// Entries of this rollout.
    rollout: Option<u64>,
    /// Entries of this actor: `token NAME`, `socket`, `anyone`, `machine TENANT/NAME`, `forewarn`.
    by: Option<String>,
    /// Entries of this kind: `command`, `announced`, `approved`, `started`, `completed`, `withdrawn`, …
    kind: Option<String>,
    /// Entries at or after this time.
    since: Option<Moment>,
    /// Entries before this time.
    until: Option<Moment>,
    /// Entries after this one: `next` of the previous page, oldest first; or `head` of an earlier one.
    after: Option<AuditCursor>,
    /// Entries before this one: `next` of the previous page, newest first.
    before: Option<AuditCursor>,
    /// Order of entries; default: newest first.
    #[serde(default)]
    order: AuditOrder,
    /// Maximum number of entries.
    #[schemars(schema_with = "limits")]
    limit: Option<u16>,
}

fn event_prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": EVENT_CHARS_MIN, "maxLength": EVENT_ID_CHARS, "pattern": "^[0-9A-Fa-f-]*$" })
}

fn limits(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT })
}

/// Order of audit entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum AuditOrder {
    #[default]
    Newest,
    Oldest,
}

/// A page of audit entries.
pub(super) async fn list(
    request: OperatorRequest,
    Query(filter): Query<AuditFilter>,
) -> Result<Json<AuditPage>, ApiProblem> {
    let visibility = Visibility::of(&request)?;
    let limit = filter.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiProblem::bad(format!("invalid limit: {limit}; a page has 1 to {LIMIT_MAX} items")));
    }
    let conditions = filter.conditions(&request)?;
    let AuditFilter { since, until, after, before, order, .. } = filter;
    let direction = match order {
        AuditOrder::Newest => Direction::NewestFirst,
        AuditOrder::Oldest => Direction::OldestFirst,
    };
    let (since, until) = (since.map(|Moment(at)| at), until.map(|Moment(at)| at));
    let (log, [after, before]) = AuditLog::of_cursors(&request.control, [after, before])?;
    let limit = limit.into();
    let query = AuditQuery { since, until, after, before, direction, limit, ..AuditQuery::default() };
    let clusters = visibility.clusters(&request);
    Ok(Json(audit_pages::read(&log, (&visibility, &clusters), &conditions, query).await?))
}

impl AuditFilter {
    /// Rejects invalid names. Valid names may belong to nothing.
    fn check(&self) -> Result<(), ApiProblem> {
        let is_event = |id: &str| {
            let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            (EVENT_CHARS_MIN..=EVENT_ID_CHARS).contains(&id.len()) && id.bytes().all(is_digit)
        };
        let invalid =
            |name: &Option<String>, is_valid: fn(&str) -> bool| name.clone().filter(|name| !is_valid(name));
        let names = [
            invalid(&self.tenant, schema::Name::admits),
            invalid(&self.host, schema::Name::admits),
            invalid(&self.machine, schema::MachineName::admits),
            invalid(&self.event, is_event),
        ];
        let first = names.into_iter().flatten().next();
        first.map_or(Ok(()), |name| Err(ApiProblem::bad(format!("invalid name: {name:?}"))))
    }

    /// The conditions on objects, which each cluster may have, and the others.
    fn conditions(&self, request: &OperatorRequest) -> Result<AuditConditions, ApiProblem> {
        self.check()?;
        let machine = self.machine.clone().map(|name| full_machine_name(request, name)).transpose()?;
        let event = self.event.as_ref().map(|prefix| full_event_id(request, prefix)).transpose()?;
        let objects = [
            self.tenant.clone().map(ObjectCondition::Tenant),
            machine.map(ObjectCondition::Machine),
            self.host.clone().map(ObjectCondition::Host),
            event.map(ObjectCondition::Event),
            self.rollout.map(ObjectCondition::Rollout),
        ];
        let others = [self.by.clone().map(Subject::By), self.kind.clone().map(Subject::Kind)];
        Ok(AuditConditions {
            objects: objects.into_iter().flatten().collect(),
            others: others.into_iter().flatten().collect(),
        })
    }
}

/// Full name of a machine. A deleted machine can only be found by its full name.
fn full_machine_name(request: &OperatorRequest, name: String) -> Result<String, ApiProblem> {
    let permit = Arc::clone(&request.permit);
    let find = move |state: &State<'_>| match find_machine(state.cluster, &name) {
        Ok(id) => {
            let tenant = state.cluster.machine(id).map(|machine| machine.tenant);
            if tenant.is_some_and(|tenant| permit.sees(state.cluster, tenant)) {
                return Ok(full_name(state.cluster, id));
            }
            // A machine outside the scope looks like a missing one.
            if name.contains('/') { Ok(name) } else { Err(Denied::Tenants.into()) }
        }
        Err(_) if name.contains('/') => Ok(name),
        Err(unknown) => Err(ApiProblem::from(unknown)),
    };
    request.control.look(find)?.map_err(|problem| request.hide_names(problem))
}

/// The full id of an event. Prefixes work for active events only.
fn full_event_id(request: &OperatorRequest, prefix: &str) -> Result<String, ApiProblem> {
    let prefix = prefix.to_ascii_uppercase();
    if prefix.len() == EVENT_ID_CHARS {
        return Ok(prefix);
    }
    let permit = Arc::clone(&request.permit);
    let find = move |state: &State<'_>| {
        let seen = state.cluster.maintenances().flat_map(|work| &work.plan.parts);
        let seen = seen.filter(|part| permit.sees(state.cluster, part.tenant));
        let ids = seen
            .filter_map(|part| part.announcement.as_ref())
            .map(|announcement| announcement.id.to_string());
        let mut fitting = ids.filter(|id| id.starts_with(&prefix));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (None, _) => Err(ApiProblem::not_found(format!(
                "no such event: {prefix}\n  hint: a completed event needs its full id"
            ))),
            (Some(one), Some(other)) => Err(ApiProblem::new(
                ProblemKind::Ambiguous,
                format!("several events begin with {prefix}\n  hint: write {one} or {other}"),
            )),
        }
    };
    request.control.look(find)?.map_err(|problem| request.hide_names(problem))
}

/// Part of the audit log to export.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ExportQuery {
    /// Entries of this cluster, and the common log of older versions, which it may continue; default: all entries.
    #[schemars(with = "Option<schema::Name>")]
    #[expect(dead_code, reason = "the extractor of `OperatorRequest` reads it")]
    cluster: Option<String>,
    /// Entries after this one: `head` of a page of the audit log.
    after: Option<AuditCursor>,
}

/// The audit log up to the start of the request, one entry per line. A read error breaks the response off.
pub(super) async fn export(
    request: OperatorRequest,
    Query(part): Query<ExportQuery>,
) -> Result<impl IntoResponse, ApiProblem> {
    let (log, [after]) = AuditLog::of_cursors(&request.control, [part.after])?;
    let first = log.read(query(after, None)).await?;
    AuditCursor::check(after, first.end)?;
    let (lines, stream) = tokio::sync::mpsc::channel(PAGES_WAITING_MAX);
    let only = request.named.as_ref().map(|_| Stream::Cluster(request.cluster_id()));
    check_exportable(&request.permit, only, &first)?;
    let export = AuditExport { log, only, lines };
    tokio::spawn(async move { export.send(first).await });
    let stream = WhileValid::new(&request, ReceiverStream::new(stream)).or_error(Err(revoked()));
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(stream)))
}

/// Rejects an export with entries of clusters outside the scope of the token. The common log, if there is one, comes
/// first, and has entries of all clusters.
pub(super) fn check_exportable(
    permit: &Permit,
    only: Option<Stream>,
    first: &AuditBatch,
) -> Result<(), ApiProblem> {
    if permit.check_server(Role::Viewer).is_ok() {
        return Ok(());
    }
    let detail = match only {
        None => {
            "the token is limited to some clusters, and the audit log has entries of all of them\n  \
                 hint: name the cluster to export, or use an unlimited token"
        }
        Some(_) if first.entries.first().is_some_and(|logged| logged.entry.stream.is_none()) => {
            "the token is limited to some clusters, and the common log of older versions, which the export would \
             contain, has entries of all of them\n  hint: use an unlimited token"
        }
        Some(_) => return Ok(()),
    };
    Err(ApiProblem::new(ProblemKind::Denied, detail))
}

/// One JSON value per line.
pub(super) const NDJSON: &str = "application/x-ndjson";

fn query(after: Option<u64>, before: Option<u64>) -> AuditQuery {
    AuditQuery { after, before, limit: PAGE_ENTRIES_MAX, ..AuditQuery::default() }
}

/// An export that is being sent.
struct AuditExport {
    log: AuditLog,
    /// The only stream, besides the common log. None: all.
    only: Option<Stream>,
    lines: tokio::sync::mpsc::Sender<std::io::Result<Bytes>>,
}

impl AuditExport {
    /// Sends the pages up to the initial end of the log.
    async fn send(&self, mut page: AuditBatch) {
        let end = page.head.saturating_add(1);
        let mut last = None;
        loop {
            let first = page.entries.first().map(|logged| logged.position);
            if let Some((last, next)) = last.zip(first)
                && next != last + 1
            {
                // A gap would look like a broken chain.
                let gone = std::io::Error::other("audit entries were swept before they could be sent");
                return drop(self.lines.send(Err(gone)).await);
            }
            last = page.entries.last().map(|logged| logged.position).or(last);
            let is_wanted =
                |stream: Option<Stream>| self.only.is_none() || stream.is_none() || stream == self.only;
            let wanted = page.entries.iter().filter(|logged| is_wanted(logged.entry.stream));
            let text: String = wanted.map(|logged| logged.entry.to_line() + "\n").collect();
            // The client has disconnected.
            if !text.is_empty() && self.lines.send(Ok(text.into())).await.is_err() {
                return;
            }
            let Some(next) = page.next else { return };
            page = match self.log.read(query(Some(next), Some(end))).await {
                Ok(page) => page,
                Err(error) => return drop(self.lines.send(Err(std::io::Error::other(error))).await),
            };
        }
    }
}
