//! All resources of a resource group or a subscription in one list: `az resource list`.

use std::fmt;

use axum::response::Response;
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::resources::{Link, Resource};
use forewarn_control::shared::Role;
use forewarn_control::{ClusterId, Permit};
use forewarn_server::State;
use forewarn_server::{ControlHandle, group_of};
use serde_json::{Value, json};

use super::compute::{self, ComputeKind, found};
use super::errors;
use super::page::{PageItems, bad_token, cluster_of_page, number, token_of};
use super::request::ArmRequest;
use crate::{ApiVersion, ArmError, Expand};

/// Lists the resources of a group, or of clusters.
pub(super) async fn list(
    request: &ArmRequest,
    group: Option<GroupId>,
    handles: Vec<(ClusterId, ControlHandle)>,
) -> Result<Response, ArmError> {
    let limits = request.parameter("$filter").map(limits).transpose()?.unwrap_or_default();
    let (wanted, asker) = (ResourceFilter { group, limits }, (&*request.permit, request.version()?));
    let (begin, place) = cluster_of_page(request)?;
    let place = place.map_or(Ok(ListPlace::FIRST), ListPlace::parse)?;
    let mut page = PageItems::default();
    for (cluster, control) in handles.iter().filter(|(cluster, _)| *cluster >= begin) {
        let from = if *cluster == begin { &place } else { &ListPlace::FIRST };
        let next = control.look(|state| fill(state, asker, &wanted, from, &mut page));
        if let Some(next) = next.map_err(|problem| errors::of_problem(&problem))? {
            return Ok(page.response(request, Some(token_of(*cluster, next))));
        }
    }
    Ok(page.response(request, None::<String>))
}

/// A place in the list of a cluster: first its scale sets, availability sets and machines, each by number, then its
/// opaque resources by key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListPlace {
    Compute(ComputeKind, u32),
    Opaque(String),
}

impl ListPlace {
    const FIRST: Self = Self::Compute(ComputeKind::ScaleSet, 0);

    fn parse(text: &str) -> Result<Self, ArmError> {
        let (word, rest) = text.split_once('-').ok_or_else(bad_token)?;
        if word == OPAQUE {
            return Ok(Self::Opaque(rest.to_lowercase()));
        }
        let kind = ComputeKind::ALL.into_iter().find(|kind| word_of(*kind) == word);
        Ok(Self::Compute(kind.ok_or_else(bad_token)?, number(rest)?))
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(kind, number) => write!(f, "{}-{number}", word_of(*kind)),
            Self::Opaque(key) => write!(f, "{OPAQUE}-{key}"),
        }
    }
}

/// Word for opaque resources in a token.
const OPAQUE: &str = "r";

fn word_of(kind: ComputeKind) -> &'static str {
    match kind {
        ComputeKind::ScaleSet => "s",
        ComputeKind::AvailabilitySet => "a",
        ComputeKind::Machine => "m",
    }
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

    /// The group that all resources are in, if the list is limited to one.
    fn only_group(&self, subscription: &str) -> Option<GroupId> {
        let named = || self.limit(Limit::Group).map(str::to_owned);
        let named = || Some(GroupId { subscription: subscription.to_owned(), name: named()? });
        self.group.clone().or_else(named)
    }

    /// The value that all resources have in a member.
    fn limit(&self, limit: Limit) -> Option<&str> {
        self.limits.iter().find(|(known, _)| *known == limit).map(|(_, value)| value.as_str())
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

/// Fills a page with the resources of a cluster that pass. Returns the place of the next page.
fn fill(
    state: &State<'_>,
    asker: (&Permit, ApiVersion),
    wanted: &ResourceFilter,
    from: &ListPlace,
    page: &mut PageItems,
) -> Option<ListPlace> {
    let key = match from {
        ListPlace::Opaque(key) => key.as_str(),
        ListPlace::Compute(from, first) => {
            for kind in ComputeKind::ALL.into_iter().skip_while(|kind| kind != from) {
                let first = if kind == *from { *first } else { 0 };
                let next = fill_compute(state, asker, wanted, (kind, first), page);
                if next.is_some() {
                    return next;
                }
            }
            ""
        }
    };
    // Opaque resources belong to no tenant.
    if asker.0.check_all_tenants(Role::Viewer).is_err() {
        None
    } else {
        fill_opaque(state, wanted, key, page)
    }
}

fn fill_compute(
    state: &State<'_>,
    asker: (&Permit, ApiVersion),
    wanted: &ResourceFilter,
    (kind, first): (ComputeKind, u32),
    page: &mut PageItems,
) -> Option<ListPlace> {
    if wanted.limit(Limit::Kind).is_some_and(|wanted| !wanted.eq_ignore_ascii_case(kind.text())) {
        return None;
    }
    let group = wanted.only_group(&state.site.subscription);
    let candidates = match wanted.limit(Limit::Name) {
        Some(name) => Box::new(compute::candidates_named(state, kind, name, first).into_iter()),
        None => compute::candidates(state, kind, group.as_ref(), first),
    };
    for (number, link) in candidates {
        if !page.visit() {
            return Some(ListPlace::Compute(kind, number));
        }
        if let Some(item) = compute_item(state, asker, wanted, link) {
            page.push(item);
        }
    }
    None
}

/// A compute resource, if it passes.
fn compute_item(
    state: &State<'_>,
    asker: (&Permit, ApiVersion),
    wanted: &ResourceFilter,
    link: Link,
) -> Option<Value> {
    if !compute::is_resource(state, link) {
        return None;
    }
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
}

fn fill_opaque(
    state: &State<'_>,
    wanted: &ResourceFilter,
    from: &str,
    page: &mut PageItems,
) -> Option<ListPlace> {
    let group = wanted.only_group(&state.site.subscription);
    let prefix = group.map_or_else(|| "/subscriptions/".to_owned(), |group| format!("{}/", group.key()));
    for (key, entry) in state.durable.resources().below_from(&prefix, from) {
        if !page.visit() {
            return Some(ListPlace::Opaque(key.to_owned()));
        }
        if let Some(item) = opaque_item(wanted, entry) {
            page.push(item);
        }
    }
    None
}

/// An opaque resource, if it passes.
fn opaque_item(wanted: &ResourceFilter, entry: &Resource) -> Option<Value> {
    let id = ResourceId::parse(&entry.id).filter(|_| entry.link.is_none())?;
    let is_resource = !id.namespace.eq_ignore_ascii_case("Microsoft.Resources") && id.parts.len() == 1;
    let mut shown = json!({ "id": entry.id, "name": id.name(), "type": id.kind() });
    if !is_resource || !wanted.may_have(&id.group, &shown) {
        return None;
    }
    copy(&serde_json::from_slice(&entry.body.0).unwrap_or_default(), &mut shown);
    wanted.has(&shown).then_some(shown)
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
