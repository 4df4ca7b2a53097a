//! Scale sets and availability sets: shown, and scale sets changed as a whole.
//!
//! What somebody wants of a scale set is made into commands by looking at the cluster, and ordered as one order, on the
//! condition that it still comes to the same commands. Where it does not, because something has changed in between, it is
//! looked at again.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::schema::Name;
use forewarn_control::shared::Role;
use forewarn_control::{
    AvailabilitySetSummary, AvailabilitySetView, DeleteInstances, Items, NewScaleSet, Outcome, Scale,
    ScaleSetChange, ScaleSetCommand, ScaleSetSummary, ScaleSetView, Unknown, Upgrade,
    availability_set_summary, availability_set_view, find_scale_set, find_tenant, leaving, scale_set_summary,
    scale_set_view,
};
use forewarn_lifecycle::{Cluster, ScaleSetId, Shape, TenantId};
use serde_json::json;

use super::body::read;
use super::fault::Fault;
use super::fault::Kind::{NotFound, Refused, Unavailable};
use super::needs::Needs;
use super::page::{Cursor, Page, Paging, Shown};
use super::reads::look;
use super::route::{FIRST_WORK, Link, Route, Subject};
use super::tagged::{Tagged, tag};
use super::visit::{Visit, unchanged};
use crate::snapshot::State;
use forewarn_control::Denied;
use forewarn_control::request::RequestContext;
use forewarn_control::request::{ClusterRequest, HostNames};

pub(super) fn routes() -> Vec<Route> {
    [shown(), changed()].into_iter().flatten().collect()
}

fn shown() -> Vec<Route> {
    let (first, name) = ("$response.body#/items/0/name", "$response.body#/name");
    let instance = json!({ "instances": ["$response.body#/instances/0/name"] });
    vec![
        Route::get("/v1/scalesets", "listScaleSets", "Scale sets: how many instances, which model", list)
            .about(Subject::Fleet)
            .of_cluster()
            .query::<Paging>()
            .json::<Items<ScaleSetSummary>>()
            .may_be(&[Unavailable])
            .link(Link::next_page("listScaleSets"))
            .link(Link::to("getScaleSet", "One of them.").with("name", first))
            .link(Link::to("scaleScaleSet", "One of them is scaled.").with("name", first)),
        Route::get("/v1/scalesets/{name}", "getScaleSet", "A scale set and its instances", show)
            .about(Subject::Fleet)
            .of_cluster()
            .part::<Name>("name")
            .json::<ScaleSetView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(
                Link::to("getTenant", "Its first placement group.").with("name", "$response.body#/tenants/0"),
            )
            .link(Link::to("explainScaleSet", "What its instances are told.").with("name", name))
            .link(Link::to("getScaleSet", "What it is by then.").with("name", name).changed())
            .link(Link::to("updateScaleSet", "It is changed.").with("name", name).unchanged())
            .link(Link::to("scaleScaleSet", "It is scaled.").with("name", name).unchanged())
            .link(Link::to("upgradeInstances", "It is upgraded.").with("name", name))
            .link(Link::to("deleteInstances", "One of it goes.").with("name", name).sending(instance)),
        Route::get(
            "/v1/availabilitysets",
            "listAvailabilitySets",
            "Availability sets: over how many domains, events",
            list_availability_sets,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .query::<Paging>()
        .json::<Items<AvailabilitySetSummary>>()
        .may_be(&[Unavailable])
        .link(Link::next_page("listAvailabilitySets"))
        .link(Link::to("getAvailabilitySet", "One of them.").with("name", first)),
        Route::get(
            "/v1/availabilitysets/{name}",
            "getAvailabilitySet",
            "An availability set and its machines",
            show_availability_set,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .part::<Name>("name")
        .json::<AvailabilitySetView>()
        .tagged()
        .may_be(&[Unavailable])
        .link(Link::to("getTenant", "The same as a tenant.").with("name", "$response.body#/name")),
    ]
}

fn changed() -> Vec<Route> {
    let (sent, same) = ("$request.body#/name", "$request.path.name");
    let oldest = json!({ "instances": ["0"] });
    let leaves = json!({ "command": "remove_scale_set", "scale_set": sent });
    vec![
        Route::post::<NewScaleSet, _, _>(
            "/v1/scalesets",
            "createScaleSet",
            "A scale set joins, with instances that are placed by themselves",
            create,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .link(Link::to("getScaleSet", "What has joined.").with("name", sent))
        .link(Link::to("scaleScaleSet", "It is scaled.").with("name", sent))
        .link(Link::to("updateScaleSet", "It is changed.").with("name", sent))
        .link(Link::to("deleteInstances", "The first of it goes.").with("name", sent).sending(oldest))
        .link(Link::to("sendCommand", "It leaves.").sending(leaves)),
        Route::patch::<ScaleSetChange, _, _>(
            "/v1/scalesets/{name}",
            "updateScaleSet",
            "Another model or policy; what is not said stays",
            update,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .part::<Name>("name")
        .link(Link::to("upgradeInstances", "Its instances get it.").with("name", same)),
        Route::post::<Scale, _, _>(
            "/v1/scalesets/{name}/scale",
            "scaleScaleSet",
            "So many instances: new ones are placed, or some go, the newest first",
            scale,
        )
        .edited()
        .part::<Name>("name")
        .link(Link::to("getScaleSet", "What it is now.").with("name", same)),
        Route::post::<Upgrade, _, _>(
            "/v1/scalesets/{name}/upgrade",
            "upgradeInstances",
            "Instances get the latest model",
            upgrade,
        )
        .edited()
        .part::<Name>("name"),
        Route::post::<DeleteInstances, _, _>(
            "/v1/scalesets/{name}/delete-instances",
            "deleteInstances",
            "Instances go, announced if their model says so",
            delete_instances,
        )
        .edited()
        .part::<Name>("name")
        .link(Link::to("getUnfinished", "Whether they are gone.").with("work", FIRST_WORK)),
    ]
    .into_iter()
    .map(|route| {
        let route = route.about(Subject::Fleet).of_cluster().json::<Outcome>();
        route.may_be(&[NotFound, Refused, Unavailable])
    })
    .collect()
}

async fn list(visit: Visit, page: Page) -> Result<Shown<ScaleSetSummary>, Fault> {
    let permit = Arc::clone(&visit.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let leaving = leaving(state.cluster);
        let sets = state.cluster.scale_sets_from(ScaleSetId(page.first_number(u32::MAX)));
        let seen = sets.filter(|(_, set)| permit.sees_named(set.name.as_str()));
        let summary = |id| scale_set_summary(state.cluster, id, &leaving);
        page.fill(seen.filter_map(|(id, _)| Some((Cursor(id.0.into()), summary(id)?))))
    };
    Ok(visit.engine.look(list)?)
}

async fn show(visit: Visit, Path(name): Path<String>) -> Result<Tagged<ScaleSetView>, Fault> {
    check_scope(&visit, &name)?;
    look(&visit, move |state| Ok(view(state.cluster, &name)?))
}

fn view(cluster: &Cluster, name: &str) -> Result<ScaleSetView, Unknown> {
    let found = scale_set_view(cluster, find_scale_set(cluster, name)?, &leaving(cluster));
    found.ok_or_else(|| Unknown::Nothing { what: "scale set", name: name.to_owned(), similar: None })
}

async fn list_availability_sets(visit: Visit, page: Page) -> Result<Shown<AvailabilitySetSummary>, Fault> {
    let permit = Arc::clone(&visit.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let tenants = state.cluster.tenants_from(TenantId(page.first_number(u32::MAX)));
        let sets = tenants.filter(|(_, tenant)| tenant.shape == Shape::AvailabilitySet);
        let seen = sets.filter(|(id, _)| permit.sees(state.cluster, *id));
        let summary = |id| availability_set_summary(state.cluster, id);
        page.fill(seen.filter_map(|(id, _)| Some((Cursor(id.0.into()), summary(id)?))))
    };
    Ok(visit.engine.look(list)?)
}

async fn show_availability_set(
    visit: Visit,
    Path(name): Path<String>,
) -> Result<Tagged<AvailabilitySetView>, Fault> {
    check_scope(&visit, &name)?;
    look(&visit, move |state| {
        let found =
            availability_set_view(state.cluster, find_tenant(state.cluster, &name)?, &leaving(state.cluster));
        found.ok_or_else(|| Fault::not_found(format!("not an availability set: {name}")))
    })
}

async fn create(visit: Visit, body: Bytes) -> Result<Json<Outcome>, Fault> {
    fulfil(&visit, ScaleSetCommand::CreateScaleSet(read(&body)?), &body).await
}

async fn update(visit: Visit, Path(scale_set): Path<String>, body: Bytes) -> Result<Json<Outcome>, Fault> {
    fulfil(&visit, ScaleSetCommand::ChangeScaleSet { scale_set, change: read(&body)? }, &body).await
}

async fn scale(visit: Visit, Path(scale_set): Path<String>, body: Bytes) -> Result<Json<Outcome>, Fault> {
    fulfil(&visit, ScaleSetCommand::Scale { scale_set, to: read(&body)? }, &body).await
}

async fn upgrade(visit: Visit, Path(scale_set): Path<String>, body: Bytes) -> Result<Json<Outcome>, Fault> {
    fulfil(&visit, ScaleSetCommand::UpgradeInstances { scale_set, upgrade: read(&body)? }, &body).await
}

async fn delete_instances(
    visit: Visit,
    Path(scale_set): Path<String>,
    body: Bytes,
) -> Result<Json<Outcome>, Fault> {
    fulfil(&visit, ScaleSetCommand::DeleteInstances { scale_set, which: read(&body)? }, &body).await
}

/// What is outside of a permit and what is not there look alike.
fn check_scope(visit: &Visit, name: &str) -> Result<(), Fault> {
    if visit.permit.sees_named(name) { Ok(()) } else { Err(Denied::Tenants.into()) }
}

/// Carries out a change of a scale set, all of it or nothing.
async fn fulfil(visit: &Visit, wish: ScaleSetCommand, body: &[u8]) -> Result<Json<Outcome>, Fault> {
    check_scope(visit, wish.scale_set())?;
    let asked = serde_json::to_value(&wish).ok();
    let context = RequestContext { asked, ..visit.checked_context(body, HostNames::ChosenHere)? };
    let changed = match visit.if_match()? {
        None => visit.engine.change_scale_set(wish, context).await,
        Some(tags) => {
            let check = |state: &State<'_>| {
                // A scale set that does not exist has not changed, and is refused as such.
                let tag = view(state.cluster, wish.scale_set()).ok().map(|view| tag(&view));
                unchanged(&tags, tag).map(|()| state.revision)
            };
            let request = |revision| {
                let context = RequestContext { if_revision: Some(revision), ..context.clone() };
                visit.engine.to_cluster(ClusterRequest::ScaleSet { wish: wish.clone(), context })
            };
            visit.engine.request_if(check, request).await
        }
    };
    Ok(Json(visit.counted(changed).map_err(|fault| visit.discreet(fault))?))
}

#[cfg(test)]
mod tests;
