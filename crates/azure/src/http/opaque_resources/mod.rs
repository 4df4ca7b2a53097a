//! Opaque resources: networks, disks and others that clients create before a machine.
//!
//! They are stored, shown and removed without any effect on the fleet. A child (a subnet, a rule) is a part of its
//! parent's body.

pub(super) mod list;

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_control::Permit;
use forewarn_control::request::{RequestContext, ResourceWrite, Transaction};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::Resource;
use forewarn_control::shared::Role;
use forewarn_server::ControlHandle;
use forewarn_server::State;
use serde_json::{Value, json};

use super::compute::{Conditions, GroupScope, WriteMethod};
use super::scopes::no_resource;
use super::{errors, responses, written};
use crate::network::{Neighbours, assign_addresses, child, is_ours, put_child, remove_child, show, tidy};
use crate::{ApiVersion, ArmError, settle};

/// Namespaces, and their opaque types; an empty list is all types.
const OPAQUE: [(&str, &[&str]); 4] = [
    ("Microsoft.Network", &[]),
    ("Microsoft.Storage", &["storageAccounts"]),
    ("Microsoft.ManagedIdentity", &["userAssignedIdentities"]),
    ("Microsoft.Compute", &["disks", "images", "proximityPlacementGroups", "sshPublicKeys"]),
];

/// Types whose creation is answered 200, as real ARM does.
const NEVER_CREATED: [&str; 2] = ["Microsoft.Compute/disks", "Microsoft.Storage/storageAccounts"];

/// A write of an opaque resource.
#[derive(Clone, Debug)]
pub(crate) struct OpaqueWrite {
    pub(crate) permit: Arc<Permit>,
    pub(crate) id: ResourceId,
    pub(crate) version: ApiVersion,
    pub(crate) sent: Value,
    pub(crate) method: WriteMethod,
    pub(crate) conditions: Conditions,
}

/// Resources of that type are opaque; `kind` is the outermost one.
pub(crate) fn is_opaque(namespace: &str, kind: &str) -> bool {
    let known = OPAQUE.iter().find(|(known, _)| known.eq_ignore_ascii_case(namespace));
    known.is_some_and(|(_, kinds)| {
        kinds.is_empty() || kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
    })
}

/// Serves the opaque resources of a group; `rest` is the path behind `providers`.
pub(super) async fn serve(scope: &GroupScope<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let (request, (parts, odd)) = (scope.request, rest[1..].as_chunks::<2>());
    let parts = parts.iter().map(|[kind, name]| (kind.clone(), name.clone())).collect();
    let id = ResourceId { group: scope.group.id.clone(), namespace: rest[0].clone(), parts };
    match (&request.method, odd) {
        (&Method::GET, [kind]) if id.parts.is_empty() => list::in_group(scope, &rest[0], kind).await,
        (&Method::GET, [kind]) => inside(scope, id, kind).await,
        (&Method::GET | &Method::HEAD, []) => one(scope, id).await.map(responses::ok),
        (&Method::PUT, []) => write_sent(scope, id, WriteMethod::Put).await,
        (&Method::PATCH, []) => write_sent(scope, id, WriteMethod::Patch).await,
        (&Method::DELETE, []) => remove(scope, id).await,
        _ => Err(super::unsupported(request)),
    }
}

/// Checks the permission for resources that belong to no tenant.
pub(super) fn check(permit: &Permit, needs: Role) -> Result<(), ArmError> {
    permit.check_all_tenants(needs).map_err(|denied| errors::of_denied(&denied))
}

async fn one(scope: &GroupScope<'_>, id: ResourceId) -> Result<Value, ArmError> {
    check(&scope.request.permit, Role::Viewer)?;
    let look = move |state: &State<'_>| shown(state, &id).ok_or_else(|| no_resource(&id));
    scope.control.look(look).map_err(|problem| errors::of_problem(&problem))?
}

/// Lists the children of one kind.
async fn inside(scope: &GroupScope<'_>, id: ResourceId, kind: &str) -> Result<Response, ArmError> {
    let shown = one(scope, id).await?;
    let members = shown["properties"].as_object().into_iter().flatten();
    let found = members.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
    let list = found.and_then(|(_, list)| list.as_array()).cloned();
    Ok(responses::list(list.unwrap_or_default()))
}

/// An opaque resource as clients see it.
pub(crate) fn shown(state: &State<'_>, id: &ResourceId) -> Option<Value> {
    let (outermost, path) = (top(id), &id.parts[1..]);
    let entry = state.all.resource(&outermost.key())?;
    let whole = show_entry(entry, &outermost);
    if path.is_empty() { Some(whole) } else { child(&whole, path).cloned() }
}

/// An entry as clients see it.
pub(super) fn show_entry(entry: &Resource, id: &ResourceId) -> Value {
    let spelled = ResourceId::parse(&entry.id);
    show(spelled.as_ref().unwrap_or(id), &body_of(entry), entry.edition)
}

fn body_of(entry: &Resource) -> Value {
    serde_json::from_slice(&entry.body.0).unwrap_or_else(|_| json!({}))
}

/// The outermost resource of an id: the one with an entry.
fn top(id: &ResourceId) -> ResourceId {
    ResourceId { parts: id.parts.iter().take(1).cloned().collect(), ..id.clone() }
}

async fn write_sent(
    scope: &GroupScope<'_>,
    id: ResourceId,
    method: WriteMethod,
) -> Result<Response, ArmError> {
    let request = scope.request;
    let change = OpaqueWrite {
        permit: Arc::clone(&request.permit),
        id,
        version: request.version()?,
        sent: request.json()?,
        method,
        conditions: Conditions::of(request),
    };
    // Clients of these types expect 200 also for a new resource.
    let is_never_created = NEVER_CREATED.iter().any(|kind| change.id.is(kind));
    let (is_new, shown) = write(&scope.control, change).await?;
    let status = if is_new && !is_never_created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown)).into_response())
}

/// Writes an opaque resource. Returns whether it is new, and how clients see it.
pub(crate) async fn write(control: &ControlHandle, change: OpaqueWrite) -> Result<(bool, Value), ArmError> {
    check(&change.permit, Role::Operator)?;
    let audited = json!({ "command": "write_resource", "resource": change.id.to_string() });
    let context = RequestContext { asked: Some(audited), ..change.permit.context() };
    let id = change.id.clone();
    let transacted = control.transact(context, move |state| plan_write(state, &change)).await;
    let (_, is_new) = transacted.map_err(|problem| errors::of_problem(&problem))??;
    let look = move |state: &State<'_>| shown(state, &id).ok_or_else(|| no_resource(&id));
    let shown = control.look(look).map_err(|problem| errors::of_problem(&problem))??;
    Ok((is_new, shown))
}

fn plan_write(state: &State<'_>, change: &OpaqueWrite) -> Result<(Transaction, bool), ArmError> {
    let outermost = top(&change.id);
    let entry = state.all.resource(&outermost.key());
    change.conditions.check_edition(entry.map(|entry| entry.edition))?;
    let before = entry.map(body_of);
    let sent = without_ours(&change.sent);
    let (mut body, is_new) = match &change.id.parts[1..] {
        [] => {
            if before.is_none() && change.method == WriteMethod::Patch {
                return Err(no_resource(&change.id));
            }
            (settle(&change.id.kind(), before.as_ref(), &sent, change.version)?, before.is_none())
        }
        path => {
            let mut body = before.clone().ok_or_else(|| no_parent(&change.id))?;
            let is_new = put_child(&mut body, path, &sent).ok_or_else(|| no_parent(&change.id))?;
            (body, is_new)
        }
    };
    if body["location"].as_str().is_none_or(str::is_empty) {
        let message = "The location property is required for this definition.";
        return Err(ArmError::new(400, "LocationRequired", message));
    }
    tidy(&mut body);
    let mut others = neighbours(state, &outermost);
    let network = |id: &ResourceId| state.all.resource(&id.key()).map(body_of);
    let mut besides = Neighbours { others: &mut others, network: &network };
    assign_addresses(&outermost, &mut body, before.as_ref(), &mut besides);
    let id = entry.map_or_else(|| outermost.to_string(), |entry| entry.id.clone());
    let paper = ResourceWrite::Put { id, link: None, body: written(&body), notes: written(&json!({})) };
    Ok((Transaction { writes: vec![paper], ..Transaction::default() }, is_new))
}

/// Other resources of the same type in the same group.
fn neighbours<'a>(state: &State<'a>, id: &ResourceId) -> impl Iterator<Item = Value> + use<'a> {
    let own = id.key();
    let kind = own.rsplit_once('/').map_or_else(String::new, |(kind, _)| format!("{kind}/"));
    let all = state.all.resources_below(&kind);
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

async fn remove(scope: &GroupScope<'_>, id: ResourceId) -> Result<Response, ArmError> {
    check(&scope.request.permit, Role::Operator)?;
    let audited = json!({ "command": "delete_resource", "resource": id.to_string() });
    let context = RequestContext { asked: Some(audited), ..scope.request.permit.context() };
    let conditions = Conditions::of(scope.request);
    let plan = move |state: &State<'_>| {
        let Some(entry) = state.all.resource(&top(&id).key()) else {
            return Ok((Transaction::default(), false));
        };
        conditions.check_edition(Some(entry.edition))?;
        let mut body = body_of(entry);
        let (paper, was_there) = match &id.parts[1..] {
            [] => (ResourceWrite::Remove(entry.id.clone()), true),
            path => {
                let was_there = remove_child(&mut body, path);
                let (body, notes) = (written(&body), entry.notes.clone());
                (ResourceWrite::Put { id: entry.id.clone(), link: None, body, notes }, was_there)
            }
        };
        Ok::<_, ArmError>((Transaction { writes: vec![paper], ..Transaction::default() }, was_there))
    };
    let transacted =
        scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
    let (_, was_there) = transacted?;
    Ok(if was_there { StatusCode::OK.into_response() } else { responses::nothing() })
}
