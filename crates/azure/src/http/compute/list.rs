//! Lists of a resource group or a subscription, page by page.

use std::sync::Arc;

use axum::response::Response;
use forewarn_control::Permit;
use forewarn_control::resource_id::{GroupId, scale_set_id};
use forewarn_control::resources::Link;
use forewarn_lifecycle::{MachineId, ScaleSetId, Shape, TenantId};
use forewarn_server::State;
use forewarn_server::{ControlHandle, group_of};
use serde_json::{Value, json};

use super::lookup::{ComputeKind, flexible_set_of, found, is_machine};
use super::{GroupScope, expand, show};
use crate::http::request::ArmRequest;
use crate::http::{errors, responses};
use crate::{ApiVersion, ArmError, Expand};

/// Resources of one page.
pub(super) const PAGE_MAX: usize = 500;

/// Parameters of a list.
#[derive(Clone)]
struct ListQuery {
    permit: Arc<Permit>,
    version: ApiVersion,
    kind: ComputeKind,
    group: Option<GroupId>,
    expand: Expand,
    /// Number of the first resource.
    first: u32,
    /// Key of the scale set whose machines are listed; none: all machines.
    scale_set: Option<String>,
}

/// Lists the resources of a group.
pub(super) async fn list(scope: &GroupScope<'_>, kind: ComputeKind) -> Result<Response, ArmError> {
    let query = ListQuery::of(scope.request, kind, Some(scope.group.id.clone()))?;
    let (items, next) = page(&scope.control, query).await?;
    Ok(shown(scope.request, &items, next.map(|next| next.to_string())))
}

/// Lists the resources of a subscription, cluster by cluster.
pub(crate) async fn list_all(
    request: &ArmRequest,
    kind: ComputeKind,
    handles: Vec<ControlHandle>,
) -> Result<Response, ArmError> {
    let token = request.page().unwrap_or("0-0");
    let (cluster, first) = token
        .split_once('-')
        .and_then(|(one, two)| Some((one.parse().ok()?, two.parse().ok()?)))
        .ok_or_else(bad_token)?;
    let mut items = Vec::new();
    let query = ListQuery { first, ..ListQuery::of(request, kind, None)? };
    for (position, control) in handles.iter().enumerate().skip(cluster) {
        let first = if position == cluster { first } else { 0 };
        let (more, next) = page(control, ListQuery { first, ..query.clone() }).await?;
        items.extend(more);
        let next = match next {
            Some(next) => Some(format!("{position}-{next}")),
            None if items.len() >= PAGE_MAX && position + 1 < handles.len() => {
                Some(format!("{}-0", position + 1))
            }
            None => None,
        };
        if next.is_some() {
            return Ok(shown(request, &items, next));
        }
    }
    Ok(shown(request, &items, None))
}

impl ListQuery {
    fn of(request: &ArmRequest, kind: ComputeKind, group: Option<GroupId>) -> Result<Self, ArmError> {
        let (permit, version, expand) = (Arc::clone(&request.permit), request.version()?, expand(request));
        let first = if group.is_some() { first_of_page(request)? } else { 0 };
        let scale_set = request.parameter("$filter").map(scale_set_wanted).transpose()?;
        Ok(Self { permit, version, kind, group, expand, first, scale_set })
    }

    /// The resource belongs to the scale set of the list.
    fn has(&self, state: &State<'_>, link: Link) -> bool {
        let Some(query) = &self.scale_set else { return true };
        let Link::Machine(machine) = link else { return false };
        let own = flexible_set_of(state.cluster, machine).and_then(|set| {
            let group = group_of(state, Link::ScaleSet(set));
            Some(scale_set_id(&group, &state.cluster.scale_set(set)?.name).key())
        });
        own.as_ref() == Some(query)
    }
}

/// Number of the first resource of a page.
pub(super) fn first_of_page(request: &ArmRequest) -> Result<u32, ArmError> {
    request.page().map_or(Ok(0), |text| text.parse().map_err(|_| bad_token()))
}

fn bad_token() -> ArmError {
    ArmError::invalid("$skiptoken", "The skip token is invalid.")
}

/// Parses the only filter: `'virtualMachineScaleSet/id' eq '/subscriptions/…'`.
fn scale_set_wanted(filter: &str) -> Result<String, ArmError> {
    let words: Vec<_> = filter.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    match words.as_slice() {
        [what, "eq", id] if what.eq_ignore_ascii_case("virtualMachineScaleSet/id") => Ok(id.to_lowercase()),
        _ => Err(ArmError::invalid(
            "$filter",
            "Unsupported filter: only 'virtualMachineScaleSet/id' eq '…' is supported.",
        )),
    }
}

/// One page, and the number of the first resource of the next.
async fn page(control: &ControlHandle, query: ListQuery) -> Result<(Vec<Value>, Option<u32>), ArmError> {
    control.look(move |state| fill(state, &query)).map_err(|problem| errors::of_problem(&problem))
}

fn fill(state: &State<'_>, query: &ListQuery) -> (Vec<Value>, Option<u32>) {
    let cluster = state.cluster;
    let links: Box<dyn Iterator<Item = (u32, Link)>> = match query.kind {
        ComputeKind::Machine => {
            let machines = cluster.machines_from(MachineId(query.first)).map(|(id, _)| id);
            let own = machines.filter(|id| is_machine(cluster, *id));
            Box::new(own.map(|id| (id.0, Link::Machine(id))))
        }
        ComputeKind::ScaleSet => {
            let sets = cluster.scale_sets_from(ScaleSetId(query.first));
            Box::new(sets.map(|(id, _)| (id.0, Link::ScaleSet(id))))
        }
        ComputeKind::AvailabilitySet => {
            let tenants = cluster.tenants_from(TenantId(query.first));
            let sets = tenants.filter(|(_, tenant)| tenant.shape == Shape::AvailabilitySet);
            Box::new(sets.map(|(id, _)| (id.0, Link::Tenant(id))))
        }
    };
    let asker = (&*query.permit, query.version);
    let mut items = Vec::new();
    for (number, link) in links {
        let group = group_of(state, link);
        if !query.has(state, link) || query.group.as_ref().is_some_and(|query| query.key() != group.key()) {
            continue;
        }
        if items.len() == PAGE_MAX {
            return (items, Some(number));
        }
        let found = found(state, asker, link, &group);
        items.extend(found.map(|found| show(state, asker, &found, query.expand)));
    }
    (items, None)
}

/// Response with a page, and the URL of the next.
pub(super) fn shown(request: &ArmRequest, items: &[Value], next: Option<String>) -> Response {
    let mut body = json!({ "value": items });
    if let Some(next) = next {
        body["nextLink"] = json!(request.next_page(&next));
    }
    responses::ok(body)
}
