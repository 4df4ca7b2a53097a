//! Resources that are only kept: networks, and what else clients make before they make a machine.
//!
//! They are written, shown and forgotten; nothing is done. What is inside of one (a subnet, a rule) is a part of its body.

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_azure::network::{
    Neighbours, assign_addresses, child, is_ours, put_child, remove_child, show, tidy,
};
use forewarn_azure::{ApiVersion, ArmError, settle};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::{Entry, Role};
use serde_json::{Value, json};

use super::compute::{Conditions, Visit, Way};
use super::place::no_resource;
use super::{answer, kept_list, refusal, written};
use crate::engine::{Arrangement, Engine, Paper, State, Terms};
use crate::operator::Permit;

/// Namespaces, and those of their types that are kept; none: all.
const KEPT: [(&str, &[&str]); 4] = [
    ("Microsoft.Network", &[]),
    ("Microsoft.Storage", &["storageAccounts"]),
    ("Microsoft.ManagedIdentity", &["userAssignedIdentities"]),
    ("Microsoft.Compute", &["disks", "images", "proximityPlacementGroups", "sshPublicKeys"]),
];

/// Types of which a new one is answered like one that was there.
const NEVER_CREATED: [&str; 2] = ["Microsoft.Compute/disks", "Microsoft.Storage/storageAccounts"];

/// What is wanted, by whom, of what.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) permit: Arc<Permit>,
    pub(crate) id: ResourceId,
    pub(crate) version: ApiVersion,
    pub(crate) sent: Value,
    pub(crate) way: Way,
    pub(crate) conditions: Conditions,
}

/// Whether resources of that type are kept; `kind` is the outermost one.
pub(crate) fn is_kept(namespace: &str, kind: &str) -> bool {
    let known = KEPT.iter().find(|(known, _)| known.eq_ignore_ascii_case(namespace));
    known.is_some_and(|(_, kinds)| {
        kinds.is_empty() || kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
    })
}

/// Answers what is asked about something of a group that is only kept; `rest` is what follows `providers`.
pub(super) async fn serve(visit: &Visit<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let (call, (parts, odd)) = (visit.call, rest[1..].as_chunks::<2>());
    let parts = parts.iter().map(|[kind, name]| (kind.clone(), name.clone())).collect();
    let id = ResourceId { group: visit.group.id.clone(), namespace: rest[0].clone(), parts };
    match (&call.method, odd) {
        (&Method::GET, [kind]) if id.parts.is_empty() => kept_list::in_group(visit, &rest[0], kind).await,
        (&Method::GET, [kind]) => inside(visit, id, kind).await,
        (&Method::GET | &Method::HEAD, []) => one(visit, id).await.map(answer::ok),
        (&Method::PUT, []) => write_sent(visit, id, Way::Put).await,
        (&Method::PATCH, []) => write_sent(visit, id, Way::Patch).await,
        (&Method::DELETE, []) => remove(visit, id).await,
        _ => Err(super::unsupported(call)),
    }
}

/// Whether somebody may see, or write, what belongs to no tenant.
pub(super) fn check(permit: &Permit, needs: Role) -> Result<(), ArmError> {
    permit.check_all_tenants(needs).map_err(|denied| refusal::denied(&denied))
}

async fn one(visit: &Visit<'_>, id: ResourceId) -> Result<Value, ArmError> {
    check(&visit.call.permit, Role::Viewer)?;
    let look = move |state: &State<'_>| shown(state, &id).ok_or_else(|| no_resource(&id));
    visit.engine.look(look).await.map_err(|problem| refusal::of(&problem))?
}

/// Those of one kind that are inside of something.
async fn inside(visit: &Visit<'_>, id: ResourceId, kind: &str) -> Result<Response, ArmError> {
    let shown = one(visit, id).await?;
    let members = shown["properties"].as_object().into_iter().flatten();
    let found = members.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
    let list = found.and_then(|(_, list)| list.as_array()).cloned();
    Ok(answer::list(list.unwrap_or_default()))
}

/// Something that is kept, as it is shown.
pub(crate) fn shown(state: &State<'_>, id: &ResourceId) -> Option<Value> {
    let (outermost, path) = (top(id), &id.parts[1..]);
    let entry = state.catalogue.entry(&outermost.key())?;
    let whole = show_entry(entry, &outermost);
    if path.is_empty() { Some(whole) } else { child(&whole, path).cloned() }
}

/// What was written, as it is shown.
pub(super) fn show_entry(entry: &Entry, id: &ResourceId) -> Value {
    let spelled = ResourceId::parse(&entry.id);
    show(spelled.as_ref().unwrap_or(id), &body_of(entry), entry.edition)
}

fn body_of(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.body.0).unwrap_or_else(|_| json!({}))
}

/// What something is in, or itself: it has the entry.
fn top(id: &ResourceId) -> ResourceId {
    ResourceId { parts: id.parts.iter().take(1).cloned().collect(), ..id.clone() }
}

async fn write_sent(visit: &Visit<'_>, id: ResourceId, way: Way) -> Result<Response, ArmError> {
    let call = visit.call;
    let wish = Wish {
        permit: Arc::clone(&call.permit),
        id,
        version: call.version()?,
        sent: call.json()?,
        way,
        conditions: Conditions::of(call),
    };
    // Clients do not take for made what real ARM would say in another way.
    let is_never_created = NEVER_CREATED.iter().any(|kind| wish.id.is(kind));
    let (is_new, shown) = write(&visit.engine, wish).await?;
    let status = if is_new && !is_never_created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown)).into_response())
}

/// Writes what somebody wants. Says whether it was not there before, and how it is shown.
pub(crate) async fn write(engine: &Engine, wish: Wish) -> Result<(bool, Value), ArmError> {
    check(&wish.permit, Role::Operator)?;
    let told = json!({ "command": "write_resource", "resource": wish.id.to_string() });
    let terms = Terms { asked: Some(told), ..wish.permit.terms() };
    let id = wish.id.clone();
    let arranged = engine.arrange(terms, move |state| arrange(state, &wish)).await;
    let (_, is_new) = arranged.map_err(|problem| refusal::of(&problem))??;
    let look = move |state: &State<'_>| shown(state, &id).ok_or_else(|| no_resource(&id));
    let shown = engine.look(look).await.map_err(|problem| refusal::of(&problem))??;
    Ok((is_new, shown))
}

fn arrange(state: &State<'_>, wish: &Wish) -> Result<(Arrangement, bool), ArmError> {
    let outermost = top(&wish.id);
    let entry = state.catalogue.entry(&outermost.key());
    wish.conditions.check_edition(entry.map(|entry| entry.edition))?;
    let before = entry.map(body_of);
    let sent = without_ours(&wish.sent);
    let (mut body, is_new) = match &wish.id.parts[1..] {
        [] => {
            if before.is_none() && wish.way == Way::Patch {
                return Err(no_resource(&wish.id));
            }
            (settle(&wish.id.kind(), before.as_ref(), &sent, wish.version)?, before.is_none())
        }
        path => {
            let mut body = before.clone().ok_or_else(|| no_parent(&wish.id))?;
            let is_new = put_child(&mut body, path, &sent).ok_or_else(|| no_parent(&wish.id))?;
            (body, is_new)
        }
    };
    if body["location"].as_str().is_none_or(str::is_empty) {
        let message = "The location property is required for this definition.";
        return Err(ArmError::new(400, "LocationRequired", message));
    }
    tidy(&mut body);
    let mut others = neighbours(state, &outermost);
    let network = |id: &ResourceId| state.catalogue.entry(&id.key()).map(body_of);
    let mut besides = Neighbours { others: &mut others, network: &network };
    assign_addresses(&outermost, &mut body, before.as_ref(), &mut besides);
    let id = entry.map_or_else(|| outermost.to_string(), |entry| entry.id.clone());
    let paper = Paper::Put { id, link: None, body: written(&body), notes: written(&json!({})) };
    Ok((Arrangement { papers: vec![paper], ..Arrangement::default() }, is_new))
}

/// Others of the same kind, in the same group.
fn neighbours<'a>(state: &State<'a>, id: &ResourceId) -> impl Iterator<Item = Value> + use<'a> {
    let own = id.key();
    let kind = own.rsplit_once('/').map_or_else(String::new, |(kind, _)| format!("{kind}/"));
    let all = state.catalogue.entries_below(&kind);
    all.filter(move |(key, _)| **key != own).map(|(_, entry)| body_of(entry))
}

fn without_ours(sent: &Value) -> Value {
    let members = sent.as_object().into_iter().flatten();
    let theirs = members.filter(|(name, _)| !is_ours(name));
    Value::Object(theirs.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn no_parent(id: &ResourceId) -> ArmError {
    let (kind, parent) = (id.kind(), id.parent().map_or_else(String::new, |parent| parent.to_string()));
    let message = format!(
        "Failed to perform 'write' on resource(s) of type '{kind}', because the parent resource '{parent}' could not be found."
    );
    ArmError::new(404, "ParentResourceNotFound", message)
}

async fn remove(visit: &Visit<'_>, id: ResourceId) -> Result<Response, ArmError> {
    check(&visit.call.permit, Role::Operator)?;
    let told = json!({ "command": "delete_resource", "resource": id.to_string() });
    let terms = Terms { asked: Some(told), ..visit.call.permit.terms() };
    let conditions = Conditions::of(visit.call);
    let arrange = move |state: &State<'_>| {
        let Some(entry) = state.catalogue.entry(&top(&id).key()) else {
            return Ok((Arrangement::default(), false));
        };
        conditions.check_edition(Some(entry.edition))?;
        let mut body = body_of(entry);
        let (paper, was_there) = match &id.parts[1..] {
            [] => (Paper::Remove(entry.id.clone()), true),
            path => {
                let was_there = remove_child(&mut body, path);
                let (body, notes) = (written(&body), entry.notes.clone());
                (Paper::Put { id: entry.id.clone(), link: None, body, notes }, was_there)
            }
        };
        Ok::<_, ArmError>((Arrangement { papers: vec![paper], ..Arrangement::default() }, was_there))
    };
    let arranged = visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    let (_, was_there) = arranged?;
    Ok(if was_there { StatusCode::OK.into_response() } else { answer::nothing() })
}
