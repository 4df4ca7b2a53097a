//! Explanations: what is gathered for them. The words are those of [`forewarn_explain`].

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query};
use forewarn_control::resource_id::GroupId;
use forewarn_control::resources::Link;
use forewarn_control::{
    AuditEntry, MachineDetails, Subject, find_event, find_machine, find_scale_set, full_name,
};
use forewarn_explain::{
    Azure, Chronicle, EventExplanation, Explained, MachineExplanation, Onlooker, Resource,
    ScaleSetExplanation, Scene, Wanted, explain_event, explain_machine, explain_scale_set,
};
use forewarn_lifecycle::EventId;
use forewarn_store::{AuditBatch, AuditQuery, Direction};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::audience::Audience;
use super::fault::Fault;
use super::visit::Visit;
use crate::control_handle::ControlHandle;
use crate::resource_groups::{group_in_cluster, group_of};
use crate::snapshot::State;
use forewarn_control::Permit;

type Answer<T> = Result<Json<T>, Fault>;

/// Entries about one event that are told.
const EVENT_ENTRIES_MAX: usize = 1_000;

/// Entries about one machine that are told at once, unless said, and at most.
const HISTORY: u16 = 20;
const HISTORY_MAX: u16 = 200;

/// Entries that are looked up to say who asked for something.
const LOOKED_UP_MAX: usize = 512;

/// Questions in which enough entries about something are found, or there are none.
const QUESTIONS_MAX: usize = 8;

/// What somebody may know of a cluster.
struct Gathered {
    engine: ControlHandle,
    cluster: String,
    audience: Audience,
    permit: Arc<Permit>,
    chronicle: Chronicle,
    next: Option<u64>,
    swept: u64,
}

pub(super) async fn event(visit: Visit, Path(id): Path<String>) -> Answer<EventExplanation> {
    let nothing = || Fault::not_found(format!("no such event: {id}"));
    let id = EventId::parse(&id).ok_or_else(nothing).map_err(|fault| visit.discreet(fault))?.to_string();
    let subject = |cluster| Subject::Event { cluster, id: id.clone() };
    let gathered = gather(&visit, subject, EVENT_ENTRIES_MAX, (Direction::OldestFirst, None)).await?;
    let explain = move |state: &State<'_>| {
        let Gathered { audience, permit, chronicle, .. } = &gathered;
        let may_know = match find_event(state.cluster, &id) {
            Ok((tenant, _)) => permit.sees(state.cluster, tenant),
            // Of what is over only the trail knows whose it was.
            Err(_) => chronicle.entries().any(|entry| audience.admits(entry)),
        };
        let explanation =
            if may_know { gathered.with_scene(state, |scene| explain_event(scene, &id)) } else { None };
        explanation.ok_or_else(|| Fault::not_found(format!("no such event: {id}")))
    };
    visit.engine.look(explain)?.map(Json).map_err(|fault| visit.discreet(fault))
}

/// How much of the history of a machine is wanted.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct History {
    /// How many entries at most.
    #[schemars(schema_with = "limits")]
    limit: Option<u16>,
    /// Only entries with a smaller number: `next` of the answer before.
    before: Option<u64>,
}

fn limits(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": HISTORY_MAX, "default": HISTORY })
}

pub(super) async fn machine_of(
    visit: Visit,
    Path((tenant, name)): Path<(String, String)>,
    history: Query<History>,
) -> Answer<MachineExplanation> {
    machine(visit, Path(format!("{tenant}/{name}")), history).await
}

pub(super) async fn machine(
    visit: Visit,
    Path(name): Path<String>,
    Query(History { limit, before }): Query<History>,
) -> Answer<MachineExplanation> {
    let limit = limit.unwrap_or(HISTORY);
    if !(1..=HISTORY_MAX).contains(&limit) {
        return Err(Fault::bad(format!("a history has 1 to {HISTORY_MAX} entries, not {limit}")));
    }
    let asked = name.clone();
    // What was called so may be gone: then its full name is needed. A machine of its own has the name of its tenant.
    let find = move |state: &State<'_>| match find_machine(state.cluster, &asked) {
        Ok(id) => full_name(state.cluster, id),
        Err(_) if asked.contains('/') => asked,
        Err(_) => format!("{asked}/{asked}"),
    };
    let full = visit.engine.look(find)?;
    let subject = |cluster| Subject::Machine { cluster, name: full.clone() };
    let gathered = gather(&visit, subject, limit.into(), (Direction::NewestFirst, before)).await?;
    let explain = move |state: &State<'_>| {
        let Gathered { audience, permit, chronicle, next, swept, .. } = &gathered;
        let found = find_machine(state.cluster, &name);
        let tenant = found.as_ref().ok().and_then(|id| Some(state.cluster.machine(*id)?.tenant));
        let may_know = match tenant {
            Some(tenant) => permit.sees(state.cluster, tenant),
            None => chronicle.entries().any(|entry| audience.admits(entry)),
        };
        let nothing = MachineDetails::default();
        let machine = match &found {
            Ok(id) => Explained::There(*id, state.details.get(id).unwrap_or(&nothing)),
            Err(_) => Explained::Gone(&full),
        };
        let explanation =
            if may_know { gathered.with_scene(state, |scene| explain_machine(scene, machine)) } else { None };
        match (explanation, found) {
            (Some(explanation), _) => Ok(MachineExplanation { next: *next, swept: *swept, ..explanation }),
            (None, Err(unknown)) => Err(unknown.into()),
            (None, Ok(_)) => Err(Fault::not_found(format!("no such machine: {name}"))),
        }
    };
    visit.engine.look(explain)?.map(Json).map_err(|fault| visit.discreet(fault))
}

pub(super) async fn scale_set(visit: Visit, Path(name): Path<String>) -> Answer<ScaleSetExplanation> {
    let (audience, engine) = (Audience::of(&visit)?, visit.engine.clone());
    let cluster = visit.engine.look(|state| state.name.to_string())?;
    let (permit, chronicle) = (Arc::clone(&visit.permit), Chronicle::default());
    let gathered = Gathered { engine, cluster, audience, permit, chronicle, next: None, swept: 0 };
    let explain = move |state: &State<'_>| {
        let may_know = gathered.permit.sees_named(&name);
        let explanation =
            if may_know { gathered.with_scene(state, |scene| explain_scale_set(scene, &name)) } else { None };
        explanation.ok_or_else(|| match find_scale_set(state.cluster, &name) {
            Err(unknown) => Fault::from(unknown),
            Ok(_) => Fault::not_found(format!("no such scale set: {name}")),
        })
    };
    visit.engine.look(explain)?.map(Json).map_err(|fault| visit.discreet(fault))
}

impl Gathered {
    /// Explains something, as it is now, to whoever asks.
    fn with_scene<T>(&self, state: &State<'_>, explain: impl FnOnce(&Scene<'_>) -> T) -> T {
        let polls = |machine| state.polls.of(machine);
        let is_here = |group: &GroupId| group_in_cluster(state, group).is_some();
        let refusals = self.engine.rejections().of_groups(is_here);
        let group = |resource| match resource {
            Resource::Machine(machine) => group_of(state, Link::Machine(machine)),
            Resource::ScaleSet(set) => group_of(state, Link::ScaleSet(set)),
        };
        let onlooker = Onlooker {
            knows: &|entry: &AuditEntry| self.audience.admits(entry),
            sees: &|tenant| self.permit.sees(state.cluster, tenant),
            is_limited: !self.permit.scope.tenants.is_all(),
        };
        explain(&Scene {
            name: &self.cluster,
            cluster: state.cluster,
            now: state.now,
            polls: &polls,
            troubles: state.delays,
            chronicle: &self.chronicle,
            azure: Azure { group_of: &group, refusals: &refusals },
            onlooker,
        })
    }
}

/// Reads what the trail tells of something, and whatever says who asked for it.
async fn gather(
    visit: &Visit,
    subject: impl FnOnce(String) -> Subject,
    limit: usize,
    (direction, before): (Direction, Option<u64>),
) -> Result<Gathered, Fault> {
    let audience = Audience::of(visit)?;
    let cluster = visit.engine.look(|state| state.name.to_string())?;
    let key = visit.cluster_key();
    let groups = vec![vec![subject(key.clone())]];
    let mut query = AuditQuery { groups, direction, before, limit, ..AuditQuery::default() };
    let (mut entries, mut swept, mut next) = (Vec::new(), 0, None);
    for _ in 0..QUESTIONS_MAX {
        query.limit = limit - entries.len();
        let page = visit.engine.read_trail(query.clone()).await?;
        entries.extend(page.entries);
        (swept, next) = (page.swept, page.next);
        let Some(place) = next.filter(|_| entries.len() < limit) else { break };
        match direction {
            Direction::OldestFirst => query.after = Some(place),
            Direction::NewestFirst => query.before = Some(place),
        }
    }
    let mut chronicle = Chronicle::new(entries);
    let mut looked_up = BTreeSet::new();
    loop {
        let wants = chronicle.wants();
        if wants.is_empty() || looked_up.len() >= LOOKED_UP_MAX {
            break;
        }
        for wanted in wants.into_iter().take(LOOKED_UP_MAX) {
            let found = look_up(visit, &key, wanted).await?;
            looked_up.insert(wanted);
            chronicle.learn(wanted, found);
        }
    }
    let (engine, permit) = (visit.engine.clone(), Arc::clone(&visit.permit));
    Ok(Gathered { engine, cluster, audience, permit, chronicle, next, swept })
}

/// One entry of the trail, if it is kept.
async fn look_up(visit: &Visit, cluster: &str, wanted: Wanted) -> Result<Option<Arc<AuditEntry>>, Fault> {
    let cluster = cluster.to_owned();
    let first = |subject| AuditQuery { groups: vec![vec![subject]], limit: 1, ..AuditQuery::default() };
    let query = match wanted {
        Wanted::Entry(number) => {
            let (after, before) = (number.checked_sub(1), number.checked_add(1));
            AuditQuery { after, before, limit: 1, ..AuditQuery::default() }
        }
        Wanted::OfWork(number) => first(Subject::Work { cluster, number }),
        Wanted::OfRollout(number) => first(Subject::Rollout { cluster, number }),
    };
    let AuditBatch { entries, .. } = visit.engine.read_trail(query).await?;
    Ok(entries.into_iter().next())
}
