//! Lists of a resource group or a subscription, page by page.

use std::sync::Arc;

use axum::response::Response;
use forewarn_control::resource_id::{GroupId, scale_set_id};
use forewarn_control::resources::Link;
use forewarn_control::{ClusterId, Permit};
use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId};
use forewarn_server::State;
use forewarn_server::{ControlHandle, group_of};

use super::lookup::{ComputeKind, flexible_set_of, found, is_resource};
use super::{GroupScope, expand, show};
use crate::http::errors;
use crate::http::page::{PageItems, cluster_of_page, number, token_of};
use crate::http::request::ArmRequest;
use crate::{ApiVersion, ArmError, Expand};

/// Parameters of a list.
#[derive(Clone)]
struct ListQuery {
    permit: Arc<Permit>,
    version: ApiVersion,
    kind: ComputeKind,
    group: Option<GroupId>,
    expand: Expand,
    /// Key of the scale set whose machines are listed; none: all machines.
    scale_set: Option<String>,
}

/// Lists the resources of a group.
pub(super) async fn list(scope: &GroupScope<'_>, kind: ComputeKind) -> Result<Response, ArmError> {
    let first = first_of_page(scope.request)?;
    let query = ListQuery::of(scope.request, kind, Some(scope.group.id.clone()))?;
    let mut page = PageItems::default();
    let next = scope.control.look(|state| fill(state, &query, first, &mut page));
    let next = next.map_err(|problem| errors::of_problem(&problem))?;
    Ok(page.response(scope.request, next))
}

/// Lists the resources of a subscription, cluster by cluster.
pub(crate) async fn list_all(
    request: &ArmRequest,
    kind: ComputeKind,
    handles: Vec<(ClusterId, ControlHandle)>,
) -> Result<Response, ArmError> {
    let (begin, first) = cluster_of_page(request)?;
    let first = first.map_or(Ok(0), number)?;
    let query = ListQuery::of(request, kind, None)?;
    let mut page = PageItems::default();
    for (cluster, control) in handles.iter().filter(|(cluster, _)| *cluster >= begin) {
        let first = if *cluster == begin { first } else { 0 };
        let next = control.look(|state| fill(state, &query, first, &mut page));
        if let Some(next) = next.map_err(|problem| errors::of_problem(&problem))? {
            return Ok(page.response(request, Some(token_of(*cluster, next))));
        }
    }
    Ok(page.response(request, None::<String>))
}

impl ListQuery {
    fn of(request: &ArmRequest, kind: ComputeKind, group: Option<GroupId>) -> Result<Self, ArmError> {
        let (permit, version, expand) = (Arc::clone(&request.permit), request.version()?, expand(request));
        let scale_set = request.parameter("$filter").map(scale_set_wanted).transpose()?;
        Ok(Self { permit, version, kind, group, expand, scale_set })
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
    request.page().map_or(Ok(0), number)
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

/// Fills a page. Returns the number of the first resource of the next one.
fn fill(state: &State<'_>, query: &ListQuery, first: u32, page: &mut PageItems) -> Option<u32> {
    let asker = (&*query.permit, query.version);
    let candidates = match &query.scale_set {
        Some(key) => Box::new(instances_by_number(state, key, first).into_iter()),
        None => candidates(state, query.kind, query.group.as_ref(), first),
    };
    for (number, link) in candidates {
        if !page.visit() {
            return Some(number);
        }
        if !is_resource(state, link) {
            continue;
        }
        let group = group_of(state, link);
        if !query.has(state, link) || query.group.as_ref().is_some_and(|query| query.key() != group.key()) {
            continue;
        }
        if let Some(found) = found(state, asker, link, &group) {
            page.push(show(state, asker, &found, query.expand));
        }
    }
    None
}

/// Objects of a kind that a list may have, by number from `first` on: the members of a group, or all.
pub(crate) fn candidates<'a>(
    state: &'a State<'_>,
    kind: ComputeKind,
    group: Option<&GroupId>,
    first: u32,
) -> Box<dyn Iterator<Item = (u32, Link)> + 'a> {
    let (cluster, durable) = (state.cluster, state.durable);
    let of_site = GroupId::of_site(state.site).key();
    let links: Box<dyn Iterator<Item = Link>> = match (kind, group.filter(|group| group.key() != of_site)) {
        (ComputeKind::Machine, Some(group)) => {
            Box::new(durable.chosen_members(group, Link::Machine(MachineId(first))))
        }
        (ComputeKind::ScaleSet, Some(group)) => {
            Box::new(durable.chosen_members(group, Link::ScaleSet(ScaleSetId(first))))
        }
        (ComputeKind::AvailabilitySet, Some(group)) => {
            Box::new(durable.chosen_members(group, Link::Tenant(TenantId(first))))
        }
        (ComputeKind::Machine, None) => {
            Box::new(cluster.machines_from(MachineId(first)).map(|(id, _)| Link::Machine(id)))
        }
        (ComputeKind::ScaleSet, None) => {
            Box::new(cluster.scale_sets_from(ScaleSetId(first)).map(|(id, _)| Link::ScaleSet(id)))
        }
        (ComputeKind::AvailabilitySet, None) => {
            Box::new(cluster.tenants_from(TenantId(first)).map(|(id, _)| Link::Tenant(id)))
        }
    };
    Box::new(numbered(links))
}

/// Objects of a kind that have a name, by number from `first` on.
pub(crate) fn candidates_named(
    state: &State<'_>,
    kind: ComputeKind,
    name: &str,
    first: u32,
) -> Vec<(u32, Link)> {
    let cluster = state.cluster;
    let links: Vec<_> = match kind {
        ComputeKind::Machine => {
            cluster.machines_named_in_any_case(name).map(|(id, _)| Link::Machine(id)).collect()
        }
        ComputeKind::ScaleSet => {
            cluster.scale_sets_named_in_any_case(name).map(|(id, _)| Link::ScaleSet(id)).collect()
        }
        ComputeKind::AvailabilitySet => {
            cluster.tenants_named_in_any_case(name).map(|(id, _)| Link::Tenant(id)).collect()
        }
    };
    numbered(links.into_iter()).filter(|(number, _)| *number >= first).collect()
}

fn numbered(links: impl Iterator<Item = Link>) -> impl Iterator<Item = (u32, Link)> {
    links.map(|link| match link {
        Link::Machine(MachineId(number))
        | Link::Tenant(TenantId(number))
        | Link::ScaleSet(ScaleSetId(number)) => (number, link),
    })
}

/// The instances of the scale set with that key, by the number of the machine.
fn instances_by_number(state: &State<'_>, key: &str, first: u32) -> Vec<(u32, Link)> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let sets = state.cluster.scale_sets_named_in_any_case(name);
    let groups = sets.flat_map(|(_, set)| &set.groups).filter_map(|group| state.cluster.tenant(*group));
    let machines = groups.flat_map(|group| group.machines().iter().copied()).filter(|id| id.0 >= first);
    let mut machines: Vec<_> = numbered(machines.map(Link::Machine)).collect();
    machines.sort_unstable();
    machines
}
