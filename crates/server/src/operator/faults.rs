//! Routes and handlers of faults, which only test servers inject.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query};
use forewarn_control::shared::Role;
use forewarn_control::{ClearedFaults, FaultView, Items, NewFault, find_machine, schema};
use forewarn_lifecycle::Cluster;
use forewarn_metadata::{CallerId, Fault, FaultTable, FaultTarget};
use forewarn_types::FAULT_REQUESTS_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::read;
use super::context::OperatorRequest;
use super::page::{Cursor, Page, PageResponse, Paging};
use super::problem::ApiProblem;
use super::problem::ProblemKind::{Ambiguous, NotFound, Refused, Unavailable};
use super::reads::{JsonResult, TaggedResult};
use super::required_permit::RequiredPermit;
use super::route::{Link, Route};
use super::webhooks::no_webhook;

/// Selects faults.
#[derive(Debug, Deserialize, JsonSchema)]
struct FaultFilter {
    /// Only faults of this machine.
    #[schemars(with = "Option<schema::MachineName>")]
    machine: Option<String>,
    /// Only faults of this webhook.
    #[schemars(with = "Option<schema::Name>")]
    webhook: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    let viewer = RequiredPermit::Cluster(Role::Viewer);
    let operator = RequiredPermit::Cluster(Role::Operator);
    let routes = [
        Route::get("/v1/faults", "listFaults", "List faults that are not used up (test servers only)", list)
            .requires(viewer)
            .query::<Paging>()
            .json::<Items<FaultView>>()
            .link(Link::next_page("listFaults"))
            .link(Link::to("getFault", "One item of the list.").with("id", "$response.body#/items/0/id"))
            .link(Link::to("removeFault", "Clear the first fault.").with("id", "$response.body#/items/0/id")),
        Route::post::<NewFault, _, _>(
            "/v1/faults",
            "addFault",
            "Inject a fault into the next answers to a machine, or messages of a webhook (test servers only)",
            add,
        )
        .storing_nothing()
        .requires(operator)
        .json::<FaultView>()
        .may_fail_with(&[NotFound, Ambiguous])
        .link(Link::to("removeFault", "Clear it.").with("id", "$response.body#/id"))
        .link(Link::to("listFaults", "List faults.")),
        Route::delete("/v1/faults", "clearFaults", "Clear faults (test servers only)", clear)
            .storing_nothing()
            .requires(operator)
            .query::<FaultFilter>()
            .json::<ClearedFaults>()
            .may_fail_with(&[NotFound, Ambiguous]),
        Route::get(
            "/v1/faults/{id}",
            "getFault",
            "Get a fault that is not used up (test servers only)",
            show,
        )
        .requires(viewer)
        .path_parameter::<u64>("id")
        .json::<FaultView>()
        .tagged()
        .link(Link::to("removeFault", "Clear it.").with("id", "$response.body#/id")),
        Route::delete("/v1/faults/{id}", "removeFault", "Clear one fault (test servers only)", remove)
            .storing_nothing()
            .requires(operator)
            .path_parameter::<u64>("id")
            .json::<ClearedFaults>(),
    ];
    routes.into_iter().map(|route| route.of_cluster().may_fail_with(&[Refused, Unavailable])).collect()
}

async fn list(request: OperatorRequest, page: Page) -> Result<PageResponse<FaultView>, ApiProblem> {
    let own = own(&request, table(&request)?)?;
    Ok(page.fill(own.into_iter().map(|view| (Cursor(view.id.into()), view))))
}

async fn show(request: OperatorRequest, Path(id): Path<String>) -> TaggedResult<FaultView> {
    let number = id.parse().ok();
    let own = own(&request, table(&request)?)?;
    let found = own.into_iter().find(|fault| Some(fault.id) == number);
    found.map(|fault| request.tagged(fault)).ok_or_else(|| no_fault(&id))
}

async fn add(request: OperatorRequest, body: Bytes) -> JsonResult<FaultView> {
    let new: NewFault = read(&body)?;
    if new.next.is_some_and(|next| !(1..=FAULT_REQUESTS_MAX).contains(&next)) {
        return Err(ApiProblem::bad(format!("invalid number: next: 1 to {FAULT_REQUESTS_MAX}")));
    }
    let table = table(&request)?;
    new.check().map_err(|bad| ApiProblem::conflict(bad.to_string()))?;
    let target = match (&new.machine, &new.webhook) {
        (Some(name), _) => FaultTarget::Machine(machine(&request, name)?, new.request.unwrap_or_default()),
        (None, webhook) => FaultTarget::Webhook(webhook_number(&request, webhook.as_deref())?),
    };
    forget_webhooks(&request, table);
    let fault = table.add(target, new.answer, new.times());
    let fault = fault.map_err(|full| ApiProblem::conflict(full.to_string()))?;
    let view = request.control.look(|state| view(&request, state.cluster, fault))?;
    view.map(Json).ok_or_else(|| ApiProblem::not_found("the target no longer exists"))
}

async fn clear(request: OperatorRequest, Query(filter): Query<FaultFilter>) -> JsonResult<ClearedFaults> {
    let table = table(&request)?;
    let machine = filter.machine.as_deref().map(|name| machine(&request, name)).transpose()?;
    let webhook = filter.webhook.as_deref().map(|name| webhook_number(&request, Some(name))).transpose()?;
    let is_any = machine.is_none() && webhook.is_none();
    let is_meant = |fault: &Fault| match fault.target {
        FaultTarget::Machine(id, _) => is_any || machine == Some(id),
        FaultTarget::Webhook(number) => is_any || webhook == Some(number),
    };
    remove_own(&request, table, is_meant)
}

async fn remove(request: OperatorRequest, Path(id): Path<String>) -> JsonResult<ClearedFaults> {
    let table = table(&request)?;
    let number = id.parse().ok();
    let Json(cleared) = remove_own(&request, table, |fault| Some(fault.id) == number)?;
    if cleared.cleared == 0 {
        return Err(no_fault(&id));
    }
    Ok(Json(cleared))
}

fn no_fault(id: &str) -> ApiProblem {
    ApiProblem::not_found(format!(
        "no such fault: {id}\n  hint: `forewarn fault ls` lists faults; one that is used up is gone"
    ))
}

/// The faults, unless this server injects none.
fn table(request: &OperatorRequest) -> Result<&FaultTable, ApiProblem> {
    request.control.directory().faults().map(Arc::as_ref).ok_or_else(|| {
        ApiProblem::conflict("this server injects no faults\n  hint: only a server for development does")
    })
}

/// Faults of the cluster, and those of webhooks if the permit is for the whole server.
fn own(request: &OperatorRequest, table: &FaultTable) -> Result<Vec<FaultView>, ApiProblem> {
    let faults = table.list();
    let view =
        |cluster: &Cluster| faults.into_iter().filter_map(|fault| view(request, cluster, fault)).collect();
    Ok(request.control.look(|state| view(state.cluster))?)
}

/// Removes faults that [`own`] lists.
fn remove_own(
    request: &OperatorRequest,
    table: &FaultTable,
    is_meant: impl Fn(&Fault) -> bool,
) -> JsonResult<ClearedFaults> {
    let own = own(request, table)?;
    let removed = table.remove(|fault| is_meant(fault) && own.iter().any(|view| view.id == fault.id));
    Ok(Json(ClearedFaults { cleared: u32::try_from(removed).unwrap_or(u32::MAX) }))
}

/// The view of a fault; None if it belongs to another cluster, or its target is gone.
fn view(request: &OperatorRequest, cluster: &Cluster, fault: Fault) -> Option<FaultView> {
    let Fault { id, target, answer, left, used } = fault;
    let (machine, webhook, kind) = match target {
        FaultTarget::Machine(caller, kind) if caller.cluster == request.cluster_id() => {
            let machine = cluster.machine(caller.machine)?;
            let tenant = &cluster.tenant(machine.tenant)?.name;
            (Some(format!("{tenant}/{}", machine.name)), None, Some(kind))
        }
        FaultTarget::Webhook(number) if request.permit.check_server(Role::Viewer).is_ok() => {
            (None, Some(request.control.shared().find_webhook(number)?.name.to_string()), None)
        }
        FaultTarget::Machine(..) | FaultTarget::Webhook(_) => return None,
    };
    Some(FaultView { id, machine, webhook, request: kind, answer, left, used })
}

fn machine(request: &OperatorRequest, name: &str) -> Result<CallerId, ApiProblem> {
    let machine = request.control.look(|state| find_machine(state.cluster, name))?;
    Ok(CallerId { cluster: request.cluster_id(), machine: machine? })
}

fn webhook_number(request: &OperatorRequest, name: Option<&str>) -> Result<u32, ApiProblem> {
    request.permit.check_server(Role::Operator)?;
    let (shared, name) = (request.control.shared(), name.unwrap_or_default());
    let webhook = shared.webhook_named(name).ok_or_else(|| no_webhook(name, &shared))?;
    Ok(webhook.number)
}

/// Removes faults of webhooks that are gone.
fn forget_webhooks(request: &OperatorRequest, table: &FaultTable) {
    let shared = request.control.shared();
    table.remove(|fault| match fault.target {
        FaultTarget::Machine(..) => false,
        FaultTarget::Webhook(number) => shared.find_webhook(number).is_none(),
    });
}
