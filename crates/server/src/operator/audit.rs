//! The trail, page by page and as a whole.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header;
use axum::response::IntoResponse;
use forewarn_control::{AuditPage, Subject, find_machine, full_name, schema};
use forewarn_store::{AuditBatch, AuditQuery, Direction, PAGE_ENTRIES_MAX};
use forewarn_types::Moment;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tokio_stream::wrappers::ReceiverStream;

use super::audience::Audience;
use super::fault::Fault;
use super::visit::Visit;
use super::while_valid::{WhileValid, revoked};
use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use forewarn_control::Denied;

/// Entries on a page, unless said.
const LIMIT: u16 = 100;
const LIMIT_MAX: u16 = 1_000;

/// Questions that one page may cost: the work of each has a limit. There is more to find after that, for who asks again.
const QUESTIONS_MAX: usize = 32;

/// Pages of an export that wait for a slow reader.
const PAGES_WAITING_MAX: usize = 1;

/// Characters of the beginning of an id, at least.
const EVENT_CHARS_MIN: usize = 4;

/// Characters of a whole id of an event.
const EVENT_ID_CHARS: usize = 36;

/// Which entries are wanted. All conditions have to be met.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Filter {
    /// Only what is about that cluster; what is about any that the token is good for, if not said.
    #[schemars(with = "Option<schema::Name>")]
    #[expect(dead_code, reason = "whoever visits has read it")]
    cluster: Option<String>,
    /// Only what concerns that tenant, whether it is there or gone.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
    /// Only what concerns that machine: `tenant/name`, whether it is there or gone; or the name of one that is there.
    #[schemars(with = "Option<schema::MachineName>")]
    machine: Option<String>,
    /// Only what concerns that host.
    #[schemars(with = "Option<schema::Name>")]
    host: Option<String>,
    /// Only what concerns that event: its id, or how that of one begins that can be seen.
    #[schemars(schema_with = "beginning")]
    event: Option<String>,
    /// Only what concerns that rollout.
    rollout: Option<u64>,
    /// Only what that one did: `token NAME`, `socket`, `anyone`, `machine TENANT/NAME`, `forewarn`.
    by: Option<String>,
    /// Only that kind: `command`, `announced`, `approved`, `started`, `completed`, `withdrawn`, …
    kind: Option<String>,
    /// Nothing from before.
    since: Option<Moment>,
    /// Only what is from before.
    until: Option<Moment>,
    /// Only entries with a greater number: `next` of the page before, where the oldest come first.
    after: Option<u64>,
    /// Only entries with a smaller number: `next` of the page before, where the newest come first.
    before: Option<u64>,
    /// Which come first; the newest, if not said.
    #[serde(default)]
    order: Order,
    /// How many at most.
    #[schemars(schema_with = "limits")]
    limit: Option<u16>,
}

fn beginning(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": EVENT_CHARS_MIN, "maxLength": EVENT_ID_CHARS, "pattern": "^[0-9A-Fa-f-]*$" })
}

fn limits(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT })
}

/// Which entries come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Order {
    #[default]
    Newest,
    Oldest,
}

/// A page of the trail.
pub(super) async fn list(visit: Visit, Query(filter): Query<Filter>) -> Result<Json<AuditPage>, Fault> {
    let audience = Audience::of(&visit)?;
    let limit = filter.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Fault::bad(format!("a page has 1 to {LIMIT_MAX} things, not {limit}")));
    }
    let mut groups = audience.groups();
    groups.extend(filter.groups(&visit, &audience.clusters(&visit))?);
    let Filter { since, until, after, before, order, .. } = filter;
    let direction = match order {
        Order::Newest => Direction::NewestFirst,
        Order::Oldest => Direction::OldestFirst,
    };
    let (since, until) = (since.map(|Moment(at)| at), until.map(|Moment(at)| at));
    let query = AuditQuery { groups, since, until, after, before, direction, limit: limit.into() };
    Ok(Json(read(&visit.engine, &audience, query).await?))
}

/// Asks until the page is full, everything has been looked at, or it was enough work.
async fn read(
    engine: &ControlHandle,
    audience: &Audience,
    mut query: AuditQuery,
) -> Result<AuditPage, Fault> {
    let limit = query.limit;
    let mut items = Vec::new();
    let mut questions = QUESTIONS_MAX;
    loop {
        query.limit = limit - items.len();
        let AuditBatch { entries, next, head, swept } = engine.read_trail(query.clone()).await?;
        let admitted = entries.into_iter().filter(|entry| audience.admits(entry));
        items.extend(admitted.map(Arc::unwrap_or_clone));
        questions -= 1;
        let Some(place) = next.filter(|_| items.len() < limit && questions > 0) else {
            return Ok(AuditPage { items, next, head, swept });
        };
        match query.direction {
            Direction::OldestFirst => query.after = Some(place),
            Direction::NewestFirst => query.before = Some(place),
        }
    }
}

impl Filter {
    /// What was never there may be asked for, but only by what can be a name.
    fn check(&self) -> Result<(), Fault> {
        let is_event = |id: &str| {
            let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            (EVENT_CHARS_MIN..=EVENT_ID_CHARS).contains(&id.len()) && id.bytes().all(is_digit)
        };
        let wrong =
            |said: &Option<String>, is_right: fn(&str) -> bool| said.clone().filter(|said| !is_right(said));
        let said = [
            wrong(&self.tenant, schema::Name::admits),
            wrong(&self.host, schema::Name::admits),
            wrong(&self.machine, schema::MachineName::admits),
            wrong(&self.event, is_event),
        ];
        let said = said.into_iter().flatten().next();
        said.map_or(Ok(()), |said| Err(Fault::bad(format!("nothing can have such a name: {said:?}"))))
    }

    /// The conditions, each as the subjects of which one will do: the same name may be in every cluster.
    fn groups(&self, visit: &Visit, clusters: &[String]) -> Result<Vec<Vec<Subject>>, Fault> {
        self.check()?;
        let mut groups = Vec::new();
        let mut each = |make: &dyn Fn(String) -> Subject| {
            groups.push(clusters.iter().cloned().map(make).collect::<Vec<_>>());
        };
        if let Some(name) = &self.tenant {
            each(&|cluster| Subject::Tenant { cluster, name: name.clone() });
        }
        if let Some(name) = &self.machine {
            let name = &whole_name(visit, name.clone())?;
            each(&|cluster| Subject::Machine { cluster, name: name.clone() });
        }
        if let Some(name) = &self.host {
            each(&|cluster| Subject::Host { cluster, name: name.clone() });
        }
        if let Some(beginning) = &self.event {
            let id = &whole_id(visit, beginning)?;
            each(&|cluster| Subject::Event { cluster, id: id.clone() });
        }
        if let Some(number) = self.rollout {
            each(&|cluster| Subject::Rollout { cluster, number });
        }
        groups.extend(self.by.clone().map(|by| vec![Subject::By(by)]));
        groups.extend(self.kind.clone().map(|kind| vec![Subject::Kind(kind)]));
        Ok(groups)
    }
}

/// The name of a machine as the trail has it. One that is not there any more has to be called by its full name.
fn whole_name(visit: &Visit, name: String) -> Result<String, Fault> {
    let permit = Arc::clone(&visit.permit);
    let find = move |state: &State<'_>| match find_machine(state.cluster, &name) {
        Ok(id) => {
            let tenant = state.cluster.machine(id).map(|machine| machine.tenant);
            if tenant.is_some_and(|tenant| permit.sees(state.cluster, tenant)) {
                return Ok(full_name(state.cluster, id));
            }
            // As if there were none.
            if name.contains('/') { Ok(name) } else { Err(Denied::Tenants.into()) }
        }
        Err(_) if name.contains('/') => Ok(name),
        Err(unknown) => Err(Fault::from(unknown)),
    };
    visit.engine.look(find)?.map_err(|fault| visit.discreet(fault))
}

/// The id that is meant. Of events that cannot be seen any more, only the whole one is known.
fn whole_id(visit: &Visit, beginning: &str) -> Result<String, Fault> {
    let beginning = beginning.to_ascii_uppercase();
    if beginning.len() == EVENT_ID_CHARS {
        return Ok(beginning);
    }
    let permit = Arc::clone(&visit.permit);
    let find = move |state: &State<'_>| {
        let seen = state.cluster.maintenances().flat_map(|work| &work.plan.parts);
        let seen = seen.filter(|part| permit.sees(state.cluster, part.tenant));
        let ids = seen.filter_map(|part| part.announcement.as_ref()).map(|told| told.id.to_string());
        let mut fitting = ids.filter(|id| id.starts_with(&beginning));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (None, _) => Err(Fault::not_found(format!(
                "no such event: {beginning}\n  hint: of one that is over, the whole id is needed"
            ))),
            (Some(one), Some(other)) => Err(Fault::new(
                super::fault::Kind::Ambiguous,
                format!("several events begin so: {beginning}\n  hint: write {one} or {other}"),
            )),
        }
    };
    visit.engine.look(find)?.map_err(|fault| visit.discreet(fault))
}

/// Which part of the trail is wanted.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct Part {
    /// Only entries with a greater number.
    after: Option<u64>,
}

/// The whole trail, one entry a line, as it was when this was asked for. It breaks off if it cannot be read to its end.
pub(super) async fn export(visit: Visit, Query(part): Query<Part>) -> Result<impl IntoResponse, Fault> {
    let first = visit.engine.read_trail(query(part.after, None)).await?;
    let (lines, stream) = tokio::sync::mpsc::channel(PAGES_WAITING_MAX);
    let engine = visit.engine.clone();
    tokio::spawn(async move { send(&engine, first, &lines).await });
    let stream = WhileValid::new(&visit, ReceiverStream::new(stream)).or_error(Err(revoked()));
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(stream)))
}

/// One JSON value a line.
pub(super) const NDJSON: &str = "application/x-ndjson";

fn query(after: Option<u64>, before: Option<u64>) -> AuditQuery {
    AuditQuery { after, before, limit: PAGE_ENTRIES_MAX, ..AuditQuery::default() }
}

type Lines = tokio::sync::mpsc::Sender<std::io::Result<Bytes>>;

/// Sends page after page, as far as the trail went at first: nobody follows it here.
async fn send(engine: &ControlHandle, mut page: AuditBatch, lines: &Lines) {
    let end = page.head.saturating_add(1);
    let mut last = None;
    loop {
        let numbers = page.entries.first().map(|entry| entry.number);
        if let Some((last, next)) = last.zip(numbers)
            && next != last + 1
        {
            // A gap would look like a broken chain.
            let gone = std::io::Error::other("entries are swept faster than they are read");
            return drop(lines.send(Err(gone)).await);
        }
        last = page.entries.last().map(|entry| entry.number).or(last);
        let text: String = page.entries.iter().map(|entry| entry.to_line() + "\n").collect();
        // Whoever hangs up needs no more.
        if !text.is_empty() && lines.send(Ok(text.into())).await.is_err() {
            return;
        }
        let Some(next) = page.next else { return };
        page = match engine.read_trail(query(Some(next), Some(end))).await {
            Ok(page) => page,
            Err(problem) => return drop(lines.send(Err(std::io::Error::other(problem))).await),
        };
    }
}
