//! Resource groups.

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_control::ClusterId;
use forewarn_control::ControlError;
use forewarn_control::Permit;
use forewarn_control::request::{ResourceWrite, Transaction};
use forewarn_control::resource_id::GroupId;
use forewarn_control::resources::Link;
use forewarn_control::shared::Role;
use forewarn_lifecycle::Shape;
use forewarn_server::State;
use forewarn_server::{ResourceGroup, group_in_cluster, group_of, groups_with_id};
use serde_json::{Value, json};

use super::compute::{self, ComputeKind, Removal};
use super::page::{PAGE_MAX, PageItems, key_of_page};
use super::request::{ArmRequest, encoded};
use super::scopes::{check_subscription, cluster_for, find_group, groups_of, groups_prefix, no_group};
use super::{ArmContext, errors, responses};
use crate::{ArmError, is_gone, merge, normal_location};

/// Bytes of the name of a group.
const NAME_BYTES_MAX: usize = 90;

/// Lists the groups of a subscription.
pub(super) async fn list(
    context: &ArmContext,
    request: &ArmRequest,
    subscription: &str,
) -> Result<Response, ArmError> {
    request.version()?;
    let from = key_of_page(request, &groups_prefix(subscription))?;
    let mut page = PageItems::default();
    let look = |state: &State<'_>| {
        check_subscription(state, &request.permit, subscription)?;
        for (key, group) in groups_of(state, &request.permit, (subscription, &from), PAGE_MAX + 1) {
            if !page.visit() {
                return Ok(Some(key));
            }
            page.push(shown(state, &group));
        }
        Ok(None)
    };
    let next = context.control.look(look).map_err(|problem| errors::of_problem(&problem))??;
    Ok(page.response(request, next))
}

pub(super) async fn one(
    context: &ArmContext,
    request: &ArmRequest,
    id: GroupId,
) -> Result<Response, ArmError> {
    request.version()?;
    match request.method {
        Method::GET => {
            let (group, control) = context.group(request, (&id.subscription, &id.name)).await?;
            let look = move |state: &State<'_>| shown(state, &group);
            control.look(look).map(responses::ok).map_err(|problem| errors::of_problem(&problem))
        }
        Method::HEAD => match context.group(request, (&id.subscription, &id.name)).await {
            Ok(_) => Ok(responses::nothing()),
            Err(refused) => Err(refused),
        },
        Method::PUT | Method::PATCH => put(context, request, id).await,
        Method::DELETE => remove(context, request, id).await,
        _ => Err(super::unsupported(request)),
    }
}

async fn put(context: &ArmContext, request: &ArmRequest, id: GroupId) -> Result<Response, ArmError> {
    check_may_write(&request.permit)?;
    check_name(&id.name)?;
    let sent = request.json()?;
    let (wanted, place) = (id.clone(), sent["location"].as_str().map(str::to_owned));
    let (is_patch, permit) = (request.method == Method::PATCH, Arc::clone(&request.permit));
    let look = move |state: &State<'_>| {
        check_subscription(state, &permit, &wanted.subscription)?;
        let known = find_group(state, &permit, &wanted)?;
        if known.is_none() && is_patch {
            return Err(no_group(&wanted.name));
        }
        // A group outside the permit exists: do not create it again.
        if known.is_none() && !groups_with_id(state, &wanted).is_empty() {
            return Err(errors::of_problem(&ControlError::GroupTaken(wanted.name.clone())));
        }
        let cluster = match (&known, place) {
            (Some(group), _) => Some(group.cluster),
            (None, Some(place)) => cluster_for(state, &permit, &wanted.subscription, &place),
            (None, None) => None,
        };
        cluster.ok_or_else(|| {
            ArmError::new(400, "LocationRequired", "The location property is required for this definition.")
        })
    };
    let cluster = context.control.look(look).map_err(|problem| errors::of_problem(&problem))??;
    let caller = request.permit.context();
    let transacted =
        context.control.of(cluster).transact(caller, move |state| arrange_put(state, &id, &sent)).await;
    let (_, (is_new, shown)) = transacted.map_err(|problem| errors::of_problem(&problem))??;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown)).into_response())
}

fn arrange_put(
    state: &State<'_>,
    id: &GroupId,
    sent: &Value,
) -> Result<(Transaction, (bool, Value)), ArmError> {
    let known = group_in_cluster(state, id);
    let before = body(state, state.id, id);
    let mut merged = merge(&before, sent);
    let location = normal_location(merged["location"].as_str().unwrap_or_default());
    if let Some(known) = known.as_ref().filter(|known| normal_location(&known.location) != location) {
        let message = format!(
            "Invalid resource group location '{location}'. The Resource group already exists in location '{}'.",
            known.location
        );
        return Err(ArmError::new(409, "InvalidResourceGroupLocation", message));
    }
    merged["location"] = json!(location);
    let stored = json!({
        "location": merged["location"],
        "tags": merged.get("tags").cloned().unwrap_or_else(|| json!({})),
    });
    let spelled = known.as_ref().map_or(id, |known| &known.id);
    let body = super::written(&stored);
    let write =
        ResourceWrite::Put { id: spelled.to_string(), link: None, body, notes: super::written(&json!({})) };
    let is_new = known.is_none();
    let shown = resource(spelled, &stored, "Succeeded");
    let asked = Some(json!({ "command": "write_resource", "resource": spelled.to_string() }));
    Ok((Transaction { writes: vec![write], asked, ..Transaction::default() }, (is_new, shown)))
}

/// Removes a group and its resources. The group of a cluster's fleet stays, empty.
async fn remove(context: &ArmContext, request: &ArmRequest, id: GroupId) -> Result<Response, ArmError> {
    check_may_write(&request.permit)?;
    let (group, control) = context.group(request, (&id.subscription, &id.name)).await?;
    let context = request.permit.context();
    let (permit, version) = (Arc::clone(&request.permit), request.version()?);
    let plan = move |state: &State<'_>| -> Result<(Transaction, ()), ArmError> {
        let mut all = Removal::default();
        for link in links_of(state, &group.id) {
            let Some(found) = compute::found(state, (&permit, version), link, &group.id) else { continue };
            all.extend(compute::removal(state, &found)?);
        }
        all.check_permit(state, &permit)?;
        all.writes.extend(others_of(state, &group.id));
        if !group.is_site {
            all.writes.push(ResourceWrite::Leave(group.id.to_string()));
        }
        let (operation, Removal { commands, writes, .. }) = (Some(group.id.to_string()), all);
        let asked = Some(json!({ "command": "delete_resource", "resource": group.id.to_string() }));
        Ok((Transaction { commands, writes, asked, operation }, ()))
    };
    let transacted = control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
    let (transacted, ()) = transacted?;
    let operation = transacted.operation.ok_or_else(|| errors::of_problem(&ControlError::Unavailable))?;
    let (base, subscription, name) = (&request.base, encoded(&id.subscription), &operation.name);
    let query = encoded(request.parameter("api-version").unwrap_or("2021-04-01"));
    let path = format!("{base}/subscriptions/{subscription}/operationresults/{name}");
    let location = format!("{path}?api-version={query}&c={}", operation.cluster.0);
    Ok(responses::ask_again(&location))
}

/// Compute resources of a group: sets first, then the machines that are in no set.
fn links_of(state: &State<'_>, group: &GroupId) -> Vec<Link> {
    let cluster = state.cluster;
    let goes_with_a_set = |link: &Link| match link {
        Link::ScaleSet(_) | Link::Tenant(_) => false,
        Link::Machine(id) => {
            let tenant = cluster.machine(*id).and_then(|machine| cluster.tenant(machine.tenant));
            tenant.is_none_or(|tenant| tenant.shape != Shape::StandaloneMachine) || is_gone(cluster, *id)
        }
    };
    let kinds = ComputeKind::ALL.into_iter();
    let all = kinds.flat_map(|kind| compute::candidates(state, kind, Some(group), 0)).map(|(_, link)| link);
    let own = all.filter(|link| compute::is_resource(state, *link) && !goes_with_a_set(link));
    own.filter(|link| group_of(state, *link).key() == group.key()).collect()
}

/// Other entries of a group; they are removed at once.
fn others_of(state: &State<'_>, group: &GroupId) -> Vec<ResourceWrite> {
    let below = state.all.resources_below(&format!("{}/", group.key()));
    let others = below.filter(|(_, entry)| entry.link.is_none());
    others.map(|(_, entry)| ResourceWrite::Remove(entry.id.clone())).collect()
}

fn check_may_write(permit: &Permit) -> Result<(), ArmError> {
    permit.check_all_tenants(Role::Operator).map_err(|denied| errors::of_denied(&denied))
}

fn check_name(name: &str) -> Result<(), ArmError> {
    let is_good = |letter: char| letter.is_alphanumeric() || "-_().".contains(letter);
    if name.len() <= NAME_BYTES_MAX && name.chars().all(is_good) && !name.ends_with('.') {
        return Ok(());
    }
    let message = format!(
        "The provided resource group name '{name}' is not valid: letters, digits, '-', '_', '(', ')' and '.', at most {NAME_BYTES_MAX} bytes, no '.' at the end."
    );
    Err(ArmError::new(400, "InvalidResourceGroup", message))
}

/// Body of a group: the stored one, or that of the fleet's group.
fn body(state: &State<'_>, cluster: ClusterId, id: &GroupId) -> Value {
    let entry = state.all.resource(&id.key()).filter(|entry| entry.cluster == cluster);
    let written = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    let site = || {
        let group = groups_with_id(state, id).into_iter().find(|group| group.cluster == cluster);
        group.map(|group| json!({ "location": group.location, "tags": {} }))
    };
    written.or_else(site).unwrap_or_else(|| json!({}))
}

fn shown(state: &State<'_>, group: &ResourceGroup) -> Value {
    let entry = state.all.resource(&group.id.key()).filter(|entry| entry.cluster == group.cluster);
    let is_leaving = entry.is_some_and(|entry| entry.leaving == forewarn_control::resources::Leaving::Leaves);
    resource(
        &group.id,
        &body(state, group.cluster, &group.id),
        if is_leaving { "Deleting" } else { "Succeeded" },
    )
}

fn resource(id: &GroupId, body: &Value, state: &str) -> Value {
    json!({
        "id": id.to_string(),
        "name": id.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": body["location"],
        "tags": body["tags"],
        "properties": { "provisioningState": state },
    })
}
