//! Everything that is in a resource group, or in a subscription, in one list: `az resource list`.

use std::sync::Arc;

use axum::response::Response;
use forewarn_azure::{ApiVersion, ArmError, Expand};
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::shared::{Link, Role};
use serde_json::{Value, json};

use super::call::Call;
use super::compute::{self, Kind, found, group_of};
use super::{answer, refusal};
use crate::engine::{Engine, State};
use crate::operator::Permit;

/// Resources that are listed at once; who has more asks for one type after the other.
const LISTED_MAX: usize = 5_000;

/// Lists what is in a group, or in all of some clusters.
pub(super) async fn list(
    call: &Call,
    group: Option<GroupId>,
    engines: Vec<Engine>,
) -> Result<Response, ArmError> {
    let limits = call.parameter("$filter").map(limits).transpose()?.unwrap_or_default();
    let wanted = Arc::new(Wanted { group, limits });
    let mut items = Vec::new();
    for engine in engines {
        let (permit, version, wanted) = (Arc::clone(&call.permit), call.version()?, Arc::clone(&wanted));
        let look = move |state: &State<'_>| all_of(state, (&permit, version), &wanted);
        items.extend(engine.look(look).await.map_err(|problem| refusal::of(&problem))?);
    }
    if items.len() > LISTED_MAX {
        let message = format!("There are more than {LISTED_MAX} resources; list them by type.");
        return Err(ArmError::new(400, "ResponseTooLarge", message));
    }
    Ok(answer::list(items))
}

/// What is listed.
struct Wanted {
    /// The group that it is in, if not all are wanted.
    group: Option<GroupId>,
    /// What it has to be besides.
    limits: Vec<(Limit, String)>,
}

impl Wanted {
    /// Whether something may be wanted that is in that group, by as much as is known of it yet.
    fn may_have(&self, group: &GroupId, begun: &Value) -> bool {
        let is_within = |(limit, wanted): &(Limit, String)| {
            limit.value(begun).is_none_or(|own| own.eq_ignore_ascii_case(wanted))
        };
        self.group.as_ref().is_none_or(|wanted| wanted.key() == group.key())
            && self.limits.iter().all(is_within)
    }

    /// Whether something is wanted that may be.
    fn has(&self, item: &Value) -> bool {
        let is_within = |(limit, wanted): &(Limit, String)| {
            limit.value(item).is_some_and(|own| own.eq_ignore_ascii_case(wanted))
        };
        self.limits.iter().all(is_within)
    }
}

/// What a list is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Kind,
    Group,
    Name,
    Location,
}

impl Limit {
    /// What limits a list, by the word of a filter.
    fn of(word: &str) -> Option<Self> {
        let all = [
            ("resourceType", Self::Kind),
            ("resourceGroup", Self::Group),
            ("name", Self::Name),
            ("location", Self::Location),
        ];
        all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, limit)| limit)
    }

    /// What an item has there.
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

/// The filters that are understood: `resourceType eq 'Microsoft.Compute/virtualMachines' and resourceGroup eq 'g'`.
fn limits(filter: &str) -> Result<Vec<(Limit, String)>, ArmError> {
    let unclear = || {
        let known = "resourceType, resourceGroup, name and location eq '…', joined by and";
        ArmError::invalid("$filter", format!("The filter is not understood: only {known}, are."))
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

/// What is wanted of a cluster; one more than can be listed is enough.
fn all_of(state: &State<'_>, asker: (&Permit, ApiVersion), wanted: &Wanted) -> Vec<Value> {
    let compute = compute::links(state).filter_map(|link| {
        let group = group_of(state, link);
        // Most of what is not wanted need not be shown to know.
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
        // What is only kept belongs to no tenant.
        return items;
    }
    let written = state.catalogue.entries_below("/subscriptions/");
    let written = written.filter(|(_, entry)| entry.cluster == state.id && entry.link.is_none());
    let kept = written.filter_map(|(_, entry)| {
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
    items.extend(kept.take(room));
    items
}

/// What something of the rules is as a resource, and what it is called.
fn name_of<'a>(state: &'a State<'_>, link: Link) -> Option<(Kind, &'a str)> {
    let cluster = state.cluster;
    Some(match link {
        Link::Machine(id) => (Kind::Machine, cluster.machine(id)?.name.as_str()),
        Link::ScaleSet(id) => (Kind::ScaleSet, cluster.scale_set(id)?.name.as_str()),
        Link::Tenant(id) => (Kind::AvailabilitySet, cluster.tenant(id)?.name.as_str()),
    })
}

/// What a list of everything shows of a resource.
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
