//! Resource groups.

use std::sync::Arc;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use forewarn_azure::{ArmError, is_gone, merge, normal_location};
use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::{ClusterId, Link, Role};
use forewarn_lifecycle::Shape;
use serde_json::{Value, json};

use super::call::{Call, encoded};
use super::compute::{self, Removal};
use super::place::{
    Group, check_subscription, cluster_for, find_group, group_here, groups_called, groups_of, no_group,
};
use super::{Arm, answer, refusal};
use crate::engine::{Arrangement, Paper, Problem, State};
use crate::operator::Permit;

/// Bytes of the name of a group.
const NAME_BYTES_MAX: usize = 90;

/// Every group of a subscription.
pub(super) async fn list(arm: &Arm, call: &Call, subscription: &str) -> Result<Response, ArmError> {
    call.version()?;
    let (wanted, permit) = (subscription.to_owned(), Arc::clone(&call.permit));
    let look = move |state: &State<'_>| {
        check_subscription(state, &permit, &wanted)?;
        Ok(groups_of(state, &permit, &wanted).iter().map(|group| shown(state, group)).collect())
    };
    arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?.map(answer::list)
}

/// One of them.
pub(super) async fn one(arm: &Arm, call: &Call, id: GroupId) -> Result<Response, ArmError> {
    call.version()?;
    match call.method {
        Method::GET => {
            let (group, engine) = arm.group(call, (&id.subscription, &id.name)).await?;
            let look = move |state: &State<'_>| shown(state, &group);
            engine.look(look).await.map(answer::ok).map_err(|problem| refusal::of(&problem))
        }
        Method::HEAD => match arm.group(call, (&id.subscription, &id.name)).await {
            Ok(_) => Ok(answer::nothing()),
            Err(refused) => Err(refused),
        },
        Method::PUT | Method::PATCH => put(arm, call, id).await,
        Method::DELETE => remove(arm, call, id).await,
        _ => Err(super::unsupported(call)),
    }
}

async fn put(arm: &Arm, call: &Call, id: GroupId) -> Result<Response, ArmError> {
    check_may_write(&call.permit)?;
    check_name(&id.name)?;
    let sent = call.json()?;
    let (wanted, place) = (id.clone(), sent["location"].as_str().map(str::to_owned));
    let (is_patch, permit) = (call.method == Method::PATCH, Arc::clone(&call.permit));
    let look = move |state: &State<'_>| {
        check_subscription(state, &permit, &wanted.subscription)?;
        let known = find_group(state, &permit, &wanted)?;
        // What is there, and not for whoever asks, is not made again.
        if known.is_none() && (is_patch || !groups_called(state, &wanted).is_empty()) {
            return Err(no_group(&wanted.name));
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
    let cluster = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))??;
    let terms = call.permit.terms();
    let arranged = arm.engine.of(cluster).arrange(terms, move |state| arrange_put(state, &id, &sent)).await;
    let (_, (is_new, shown)) = arranged.map_err(|problem| refusal::of(&problem))??;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown)).into_response())
}

fn arrange_put(
    state: &State<'_>,
    id: &GroupId,
    sent: &Value,
) -> Result<(Arrangement, (bool, Value)), ArmError> {
    let known = group_here(state, id);
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
    let kept = json!({
        "location": merged["location"],
        "tags": merged.get("tags").cloned().unwrap_or_else(|| json!({})),
    });
    let spelled = known.as_ref().map_or(id, |known| &known.id);
    let body = super::written(&kept);
    let paper = Paper::Put { id: spelled.to_string(), link: None, body, notes: super::written(&json!({})) };
    let is_new = known.is_none();
    let shown = resource(spelled, &kept, "Succeeded");
    let asked = Some(json!({ "command": "write_resource", "resource": spelled.to_string() }));
    Ok((Arrangement { papers: vec![paper], asked, ..Arrangement::default() }, (is_new, shown)))
}

/// A group goes, and everything that is in it. The group of a cluster's own fleet is empty then, and stays.
async fn remove(arm: &Arm, call: &Call, id: GroupId) -> Result<Response, ArmError> {
    check_may_write(&call.permit)?;
    let (group, engine) = arm.group(call, (&id.subscription, &id.name)).await?;
    let terms = call.permit.terms();
    let (permit, version) = (Arc::clone(&call.permit), call.version()?);
    let arrange = move |state: &State<'_>| -> Result<(Arrangement, ()), ArmError> {
        let mut all = Removal::default();
        for link in links_of(state, &group.id) {
            let Some(found) = compute::found(state, (&permit, version), link, &group.id) else { continue };
            all.extend(compute::removal(state, &found)?);
        }
        all.check_permit(state, &permit)?;
        all.papers.extend(others_of(state, &group.id));
        if !group.is_site {
            all.papers.push(Paper::Leave(group.id.to_string()));
        }
        let (operation, Removal { commands, papers, .. }) = (Some(group.id.to_string()), all);
        let asked = Some(json!({ "command": "delete_resource", "resource": group.id.to_string() }));
        Ok((Arrangement { commands, papers, asked, operation }, ()))
    };
    let arranged = engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    let (arranged, ()) = arranged?;
    let operation = arranged.operation.ok_or_else(|| refusal::of(&Problem::Unavailable))?;
    let (base, subscription, name) = (&call.base, encoded(&id.subscription), &operation.name);
    let query = encoded(call.parameter("api-version").unwrap_or("2021-04-01"));
    let location = format!("{base}/subscriptions/{subscription}/operationresults/{name}?api-version={query}");
    Ok(answer::ask_again(&location))
}

/// What the rules have in a group: sets first, then the machines that are in none that goes.
fn links_of(state: &State<'_>, group: &GroupId) -> Vec<Link> {
    let cluster = state.cluster;
    let goes_with_a_set = |link: &Link| match link {
        Link::ScaleSet(_) | Link::Tenant(_) => false,
        Link::Machine(id) => {
            let tenant = cluster.machine(*id).and_then(|machine| cluster.tenant(machine.tenant));
            tenant.is_none_or(|tenant| tenant.shape != Shape::StandaloneMachine) || is_gone(cluster, *id)
        }
    };
    let all = compute::links(state).filter(|link| !goes_with_a_set(link));
    all.filter(|link| compute::group_of(state, *link).key() == group.key()).collect()
}

/// What else was written in a group: it goes at once.
fn others_of(state: &State<'_>, group: &GroupId) -> Vec<Paper> {
    let below = state.catalogue.entries_below(&format!("{}/", group.key()));
    let others = below.filter(|(_, entry)| entry.link.is_none());
    others.map(|(_, entry)| Paper::Remove(entry.id.clone())).collect()
}

fn check_may_write(permit: &Permit) -> Result<(), ArmError> {
    permit.check_all_tenants(Role::Operator).map_err(|denied| refusal::denied(&denied))
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

/// What was written of a group, or what might have been.
fn body(state: &State<'_>, cluster: ClusterId, id: &GroupId) -> Value {
    let entry = state.catalogue.entry(&id.key()).filter(|entry| entry.cluster == cluster);
    let written = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    let site = || {
        let group = groups_called(state, id).into_iter().find(|group| group.cluster == cluster);
        group.map(|group| json!({ "location": group.location, "tags": {} }))
    };
    written.or_else(site).unwrap_or_else(|| json!({}))
}

fn shown(state: &State<'_>, group: &Group) -> Value {
    let entry = state.catalogue.entry(&group.id.key()).filter(|entry| entry.cluster == group.cluster);
    let is_leaving = entry.is_some_and(|entry| entry.leaving == forewarn_control::shared::Leaving::Leaves);
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
