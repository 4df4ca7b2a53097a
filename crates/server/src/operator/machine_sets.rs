//! Routes and handlers of availability sets and cloud services: tenants whose machines are created one by one.

use std::sync::Arc;

use axum::extract::Path;
use forewarn_control::schema::Name;
use forewarn_control::{
    Items, MachineSetSummary, MachineSetView, find_tenant, machine_set_summary, machine_set_view,
};
use forewarn_lifecycle::{Shape, TenantId};

use super::context::OperatorRequest;
use super::page::{Cursor, Page, PageResponse, Paging};
use super::problem::ApiProblem;
use super::problem::ProblemKind::Unavailable;
use super::reads::look;
use super::route::{Link, Route, RouteTag};
use super::scalesets::check_scope;
use super::tagged::Tagged;
use crate::snapshot::State;

pub(super) fn routes() -> Vec<Route> {
    vec![
        of_list(Route::get(
            "/v1/availabilitysets",
            "listAvailabilitySets",
            "List availability sets with domains and events",
            list_availability_sets,
        ))
        .link(Link::next_page("listAvailabilitySets"))
        .link(Link::to("getAvailabilitySet", "One item of the list.").with("name", FIRST)),
        of_one(Route::get(
            "/v1/availabilitysets/{name}",
            "getAvailabilitySet",
            "Get an availability set and its machines",
            show_availability_set,
        )),
        of_list(Route::get(
            "/v1/cloudservices",
            "listCloudServices",
            "List cloud services with domains and events",
            list_cloud_services,
        ))
        .link(Link::next_page("listCloudServices"))
        .link(Link::to("getCloudService", "One item of the list.").with("name", FIRST)),
        of_one(Route::get(
            "/v1/cloudservices/{name}",
            "getCloudService",
            "Get a cloud service and its role instances",
            show_cloud_service,
        )),
    ]
}

const FIRST: &str = "$response.body#/items/0/name";

fn of_list(route: Route) -> Route {
    let route = route.tag(RouteTag::Fleet).of_cluster().query::<Paging>();
    route.json::<Items<MachineSetSummary>>().may_fail_with(&[Unavailable])
}

fn of_one(route: Route) -> Route {
    let route = route.tag(RouteTag::Fleet).of_cluster().path_parameter::<Name>("name");
    let route = route.json::<MachineSetView>().tagged().may_fail_with(&[Unavailable]);
    route.link(Link::to("getTenant", "The same as a tenant.").with("name", "$response.body#/name"))
}

type PageResult = Result<PageResponse<MachineSetSummary>, ApiProblem>;
type ViewResult = Result<Tagged<MachineSetView>, ApiProblem>;

async fn list_availability_sets(request: OperatorRequest, page: Page) -> PageResult {
    list(&request, page, Shape::AvailabilitySet)
}

async fn list_cloud_services(request: OperatorRequest, page: Page) -> PageResult {
    list(&request, page, Shape::CloudService)
}

async fn show_availability_set(request: OperatorRequest, Path(name): Path<String>) -> ViewResult {
    show(&request, name, (Shape::AvailabilitySet, "an availability set"))
}

async fn show_cloud_service(request: OperatorRequest, Path(name): Path<String>) -> ViewResult {
    show(&request, name, (Shape::CloudService, "a cloud service"))
}

fn list(request: &OperatorRequest, page: Page, shape: Shape) -> PageResult {
    let permit = Arc::clone(&request.permit);
    let list = move |state: &State<'_>| {
        let tenants = state.cluster.tenants_from(TenantId(page.first_number(u32::MAX)));
        let seen = tenants.filter(|(id, _)| permit.sees(state.cluster, *id));
        let summary = |id| machine_set_summary(state.cluster, id, shape);
        page.fill(seen.filter_map(|(id, _)| Some((Cursor(id.0.into()), summary(id)?))))
    };
    Ok(request.control.look(list)?)
}

/// The set with this name, if its shape has this name.
fn show(request: &OperatorRequest, name: String, (shape, kind): (Shape, &'static str)) -> ViewResult {
    check_scope(request, &name)?;
    look(request, move |state| {
        let found = machine_set_view(state.cluster, find_tenant(state.cluster, &name)?, shape);
        found.ok_or_else(|| ApiProblem::not_found(format!("not {kind}: {name}")))
    })
}
