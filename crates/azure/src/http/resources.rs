//! All resources of a resource group or a subscription in one list: `az resource list`.

use std::sync::Arc;

use axum::response::Response;
use forewarn_control::Permit;
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::resources::Link;
use forewarn_control::shared::Role;
use forewarn_server::State;
use forewarn_server::{ControlHandle, group_of};
use serde_json::{Value, json};

use super::compute::{self, ComputeKind, found};
use super::request::ArmRequest;
use super::{errors, responses};
use crate::{ApiVersion, ArmError, Expand};

/// Resources of one list; clients with more list them by type.
const LISTED_MAX: usize = 5_000;

/// Lists the resources of a group, or of clusters.
pub(super) async fn list(
    request: &ArmRequest,
    group: Option<GroupId>,
    handles: Vec<ControlHandle>,
) -> Result<Response, ArmError> {
    let limits = request.parameter("$filter").map(limits).transpose()?.unwrap_or_default();
    let wanted = Arc::new(ResourceFilter { group, limits });
    let mut items = Vec::new();
    for control in handles {
        let (permit, version, wanted) =
            (Arc::clone(&request.permit), request.version()?, Arc::clone(&wanted));
        let look = move |state: &State<'_>| all_of(state, (&permit, version), &wanted);
        items.extend(control.look(look).map_err(|problem| errors::of_problem(&problem))?);
    }
    if items.len() > LISTED_MAX {
        let message = format!("There are more than {LISTED_MAX} resources; list them by type.");
        return Err(ArmError::new(400, "ResponseTooLarge", message));
    }
    Ok(responses::list(items))
}

/// Filter of a list.
struct ResourceFilter {
    /// Only resources of this group.
    group: Option<GroupId>,
    /// Conditions of `$filter`.
    limits: Vec<(Limit, String)>,
}

impl ResourceFilter {
    /// A resource may pass, as far as its group and the members known so far tell.
    fn may_have(&self, group: &GroupId, begun: &Value) -> bool {
        let is_within = |(limit, wanted): &(Limit, String)| {
            limit.value(begun).is_none_or(|own| own.eq_ignore_ascii_case(wanted))
        };
        self.group.as_ref().is_none_or(|wanted| wanted.key() == group.key())
            && self.limits.iter().all(is_within)
    }

    /// A complete resource passes.
    fn has(&self, item: &Value) -> bool {
        let is_within = |(limit, wanted): &(Limit, String)| {
            limit.value(item).is_some_and(|own| own.eq_ignore_ascii_case(wanted))
        };
        self.limits.iter().all(is_within)
    }
}

/// Member of a resource that `$filter` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Kind,
    Group,
    Name,
    Location,
}

impl Limit {
    /// The member with that name in a filter.
    fn of(word: &str) -> Option<Self> {
        let all = [
            ("resourceType", Self::Kind),
            ("resourceGroup", Self::Group),
            ("name", Self::Name),
            ("location", Self::Location),
        ];
        all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, limit)| limit)
    }

    /// Value of the member.
    fn value(self, item: &Value) -> Option<String> {
        let text = |name: &str| item[name].as_str().map(str::to_owned);
        match self {
            Self::Kind => text("type"),
            Self::Group => Some(ResourceId::parse(item["id"].as_str()?)?.group.name),
            Self::Name => text("name"),
            Self::Location => text("location"),
        }
    }
}

/// Parses a filter: `resourceType eq 'Microsoft.Compute/virtualMachines' and resourceGroup eq 'g'`.
fn limits(filter: &str) -> Result<Vec<(Limit, String)>, ArmError> {
    let unclear = || {
        let known = "resourceType, resourceGroup, name and location eq '…', joined by and";
        ArmError::invalid("$filter", format!("Unsupported filter: only {known}, are supported."))
    };
    let limit = |clause: &str| {
        let (word, rest) = clause.trim().split_once(' ')?;
        let (eq, value) = rest.trim().split_once(' ')?;
        let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        let is_clear = eq.eq_ignore_ascii_case("eq") && !value.contains('\'');
        Some((Limit::of(word)?, value.to_owned())).filter(|_| is_clear)
    };
    filter.split(" and ").map(|clause| limit(clause).ok_or_else(unclear)).collect()
}

/// Resources of a cluster that pass, at most one more than a list may have.
fn all_of(state: &State<'_>, asker: (&Permit, ApiVersion), wanted: &ResourceFilter) -> Vec<Value> {
    let compute = compute::links(state).filter_map(|link| {
        let group = group_of(state, link);
        // Filter by id first: rendering a resource is expensive.
        let id = name_of(state, link).map(|(kind, name)| {
            let (namespace, kind) = kind.text().split_once('/').unwrap_or_default();
            group.resource(namespace, kind, name)
        })?;
        let begun = json!({ "id": id.to_string(), "name": id.name(), "type": id.kind() });
        let found = wanted.may_have(&group, &begun).then(|| found(state, asker, link, &group)).flatten()?;
        let shown = short(&compute::show(state, asker, &found, Expand::Nothing));
        wanted.has(&shown).then_some(shown)
    });
    let mut items: Vec<_> = compute.take(LISTED_MAX + 1).collect();
    if asker.0.check_all_tenants(Role::Viewer).is_err() {
        // Opaque resources belong to no tenant.
        return items;
    }
    let written = state.all.resources_below("/subscriptions/");
    let written = written.filter(|(_, entry)| entry.cluster == state.id && entry.link.is_none());
    let opaque = written.filter_map(|(_, entry)| {
        let id = ResourceId::parse(&entry.id)?;
        let is_resource = !id.namespace.eq_ignore_ascii_case("Microsoft.Resources") && id.parts.len() == 1;
        let mut shown = json!({ "id": entry.id, "name": id.name(), "type": id.kind() });
        if !is_resource || !wanted.may_have(&id.group, &shown) {
            return None;
        }
        copy(&serde_json::from_slice(&entry.body.0).unwrap_or_default(), &mut shown);
        wanted.has(&shown).then_some(shown)
    });
    let room = (LISTED_MAX + 1).saturating_sub(items.len());
    items.extend(opaque.take(room));
    items
}

/// Kind and name of a compute resource.
fn name_of<'a>(state: &'a State<'_>, link: Link) -> Option<(ComputeKind, &'a str)> {
    let cluster = state.cluster;
    Some(match link {
        Link::Machine(id) => (ComputeKind::Machine, cluster.machine(id)?.name.as_str()),
        Link::ScaleSet(id) => (ComputeKind::ScaleSet, cluster.scale_set(id)?.name.as_str()),
        Link::Tenant(id) => (ComputeKind::AvailabilitySet, cluster.tenant(id)?.name.as_str()),
    })
}

/// The members of a resource that this list shows.
fn short(shown: &Value) -> Value {
    let mut short = json!({ "id": shown["id"], "name": shown["name"], "type": shown["type"] });
    copy(shown, &mut short);
    short
}

fn copy(from: &Value, to: &mut Value) {
    for name in ["location", "tags", "sku", "zones", "kind"] {
        if let Some(value) = from.get(name) {
            to[name] = value.clone();
        }
    }
}
