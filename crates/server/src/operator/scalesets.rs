//! Routes and handlers of scale sets.
//!
//! A change of a scale set is planned on the current cluster as a batch of commands. If the cluster changes before the
//! batch is decided, the change is planned again.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::schema::Name;
use forewarn_control::shared::Role;
use forewarn_control::{
    DeleteInstances, Items, LookupError, NewScaleSet, Outcome, Scale, ScaleSetChange, ScaleSetCommand,
    ScaleSetSummary, ScaleSetView, Upgrade, find_scale_set, scale_set_summary, scale_set_view,
};
use forewarn_lifecycle::{Cluster, ScaleSetId};
use serde_json::json;

use super::body::read;
use super::context::{OperatorRequest, unchanged};
use super::page::{Cursor, Page, PageResponse, Paging};
use super::problem::ApiProblem;
use super::problem::ProblemKind::{NotFound, Refused, Unavailable};
use super::reads::look;
use super::required_permit::RequiredPermit;
use super::route::{FIRST_WORK, Link, Route, RouteTag};
use super::tagged::{Tagged, tag};
use crate::snapshot::State;
use forewarn_control::Denied;
use forewarn_control::request::RequestContext;
use forewarn_control::request::{ClusterRequest, HostNames};

pub(super) fn routes() -> Vec<Route> {
    [read_routes(), write_routes()].into_iter().flatten().collect()
}

fn read_routes() -> Vec<Route> {
    let (first, name) = ("$response.body#/items/0/name", "$response.body#/name");
    let instance = json!({ "instances": ["$response.body#/instances/0/name"] });
    vec![
        Route::get("/v1/scalesets", "listScaleSets", "List scale sets with capacity and model", list)
            .tag(RouteTag::Fleet)
            .of_cluster()
            .query::<Paging>()
            .json::<Items<ScaleSetSummary>>()
            .may_fail_with(&[Unavailable])
            .link(Link::next_page("listScaleSets"))
            .link(Link::to("getScaleSet", "One item of the list.").with("name", first))
            .link(Link::to("scaleScaleSet", "Scale the first scale set.").with("name", first)),
        Route::get("/v1/scalesets/{name}", "getScaleSet", "Get a scale set and its instances", show)
            .tag(RouteTag::Fleet)
            .of_cluster()
            .path_parameter::<Name>("name")
            .json::<ScaleSetView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(
                Link::to("getTenant", "Its first placement group.").with("name", "$response.body#/tenants/0"),
            )
            .link(Link::to("explainScaleSet", "Explanation of the scale set.").with("name", name))
            .link(Link::to("getScaleSet", "Get it if it has changed.").with("name", name).changed())
            .link(Link::to("updateScaleSet", "Change it.").with("name", name).unchanged())
            .link(Link::to("scaleScaleSet", "Scale it.").with("name", name).unchanged())
            .link(Link::to("upgradeInstances", "Upgrade its instances.").with("name", name))
            .link(
                Link::to("deleteInstances", "Delete the first instance.")
                    .with("name", name)
                    .sending(instance),
            ),
    ]
}

fn write_routes() -> Vec<Route> {
    let (sent, same) = ("$request.body#/name", "$request.path.name");
    let oldest = json!({ "instances": ["0"] });
    let leaves = json!({ "command": "remove_scale_set", "scale_set": sent });
    vec![
        Route::post::<NewScaleSet, _, _>(
            "/v1/scalesets",
            "createScaleSet",
            "Create a scale set; the server places its instances",
            create,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .link(Link::to("getScaleSet", "Get the new scale set.").with("name", sent))
        .link(Link::to("scaleScaleSet", "Scale it.").with("name", sent))
        .link(Link::to("updateScaleSet", "Change it.").with("name", sent))
        .link(Link::to("deleteInstances", "Delete the first instance.").with("name", sent).sending(oldest))
        .link(Link::to("sendCommand", "Remove it.").sending(leaves)),
        Route::patch::<ScaleSetChange, _, _>(
            "/v1/scalesets/{name}",
            "updateScaleSet",
            "Change model or policy of a scale set; omitted members keep their value",
            update,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .path_parameter::<Name>("name")
        .link(Link::to("upgradeInstances", "Upgrade its instances.").with("name", same)),
        Route::post::<Scale, _, _>(
            "/v1/scalesets/{name}/scale",
            "scaleScaleSet",
            "Set the capacity; instances are placed, or deleted newest first",
            scale,
        )
        .edited()
        .announcing()
        .path_parameter::<Name>("name")
        .link(Link::to("getScaleSet", "Get the new state.").with("name", same)),
        Route::post::<Upgrade, _, _>(
            "/v1/scalesets/{name}/upgrade",
            "upgradeInstances",
            "Upgrade instances to the latest model",
            upgrade,
        )
        .edited()
        .path_parameter::<Name>("name"),
        Route::post::<DeleteInstances, _, _>(
            "/v1/scalesets/{name}/delete-instances",
            "deleteInstances",
            "Delete instances, with a notice if their model has one",
            delete_instances,
        )
        .edited()
        .announcing()
        .path_parameter::<Name>("name")
        .link(Link::to("getUnfinished", "Wait for the deletion.").with("work", FIRST_WORK)),
    ]
    .into_iter()
    .map(|route| {
        let route = route.tag(RouteTag::Fleet).of_cluster().json::<Outcome>();
        route.may_fail_with(&[NotFound, Refused, Unavailable])
    })
    .collect()
}

async fn list(request: OperatorRequest, page: Page) -> Result<PageResponse<ScaleSetSummary>, ApiProblem> {
    let permit = Arc::clone(&request.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let sets = state.cluster.scale_sets_from(ScaleSetId(page.first_number(u32::MAX)));
        let seen = sets.filter(|(_, set)| permit.sees_named(set.name.as_str()));
        let summary = |id| scale_set_summary(state.cluster, id);
        page.fill(seen.filter_map(|(id, _)| Some((Cursor(id.0.into()), summary(id)?))))
    };
    Ok(request.control.look(list)?)
}

async fn show(
    request: OperatorRequest,
    Path(name): Path<String>,
) -> Result<Tagged<ScaleSetView>, ApiProblem> {
    check_scope(&request, &name)?;
    look(&request, move |state| Ok(view(state.cluster, &name)?))
}

fn view(cluster: &Cluster, name: &str) -> Result<ScaleSetView, LookupError> {
    let found = scale_set_view(cluster, find_scale_set(cluster, name)?);
    found.ok_or_else(|| LookupError::Nothing {
        what: "scale set".into(),
        name: name.to_owned(),
        similar: None,
    })
}

async fn create(request: OperatorRequest, body: Bytes) -> Result<Json<Outcome>, ApiProblem> {
    apply(&request, ScaleSetCommand::CreateScaleSet(read(&body)?), &body).await
}

async fn update(
    request: OperatorRequest,
    Path(scale_set): Path<String>,
    body: Bytes,
) -> Result<Json<Outcome>, ApiProblem> {
    apply(&request, ScaleSetCommand::ChangeScaleSet { scale_set, change: read(&body)? }, &body).await
}

async fn scale(
    request: OperatorRequest,
    Path(scale_set): Path<String>,
    body: Bytes,
) -> Result<Json<Outcome>, ApiProblem> {
    apply(&request, ScaleSetCommand::Scale { scale_set, to: read(&body)? }, &body).await
}

async fn upgrade(
    request: OperatorRequest,
    Path(scale_set): Path<String>,
    body: Bytes,
) -> Result<Json<Outcome>, ApiProblem> {
    apply(&request, ScaleSetCommand::UpgradeInstances { scale_set, upgrade: read(&body)? }, &body).await
}

async fn delete_instances(
    request: OperatorRequest,
    Path(scale_set): Path<String>,
    body: Bytes,
) -> Result<Json<Outcome>, ApiProblem> {
    apply(&request, ScaleSetCommand::DeleteInstances { scale_set, which: read(&body)? }, &body).await
}

/// A set outside the scope must look like a missing one.
pub(super) fn check_scope(request: &OperatorRequest, name: &str) -> Result<(), ApiProblem> {
    if request.permit.sees_named(name) { Ok(()) } else { Err(Denied::Tenants.into()) }
}

/// Applies a change of a scale set, all of it or nothing.
async fn apply(
    request: &OperatorRequest,
    change: ScaleSetCommand,
    body: &[u8],
) -> Result<Json<Outcome>, ApiProblem> {
    check_scope(request, change.scale_set())?;
    let asked = serde_json::to_value(&change).ok();
    let context = RequestContext { asked, ..request.checked_context(body, HostNames::ChosenHere)? };
    let changed = match request.if_match()? {
        None => request.control.change_scale_set(change, context).await,
        Some(tags) => {
            let check = |state: &State<'_>| {
                // A missing scale set counts as unchanged: it is rejected later.
                let tag = view(state.cluster, change.scale_set()).ok().map(|view| tag(&view));
                unchanged(&tags, tag).map(|()| state.revision)
            };
            let make_request = |revision| {
                let context = RequestContext { if_revision: Some(revision), ..context.clone() };
                request.control.to_cluster(ClusterRequest::ScaleSet { command: change.clone(), context })
            };
            request.control.request_if(check, make_request).await
        }
    };
    Ok(Json(request.count_outcome(changed).map_err(|problem| request.hide_names(problem))?))
}

#[cfg(test)]
mod tests;
