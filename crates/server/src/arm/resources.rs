//! Everything that is in a resource group, or in a subscription, in one list: `az resource list`.

use std::sync::Arc;

use axum::response::Response;
use forewarn_catalogue::{Link, Role};
use forewarn_lifecycle::Shape;
use forewarn_wire::arm::{ApiVersion, ArmError, Expand, GroupId, ResourceId};
use serde_json::{Value, json};

use super::call::Call;
use super::compute::{self, found, group_of, is_machine};
use super::{answer, refusal};
use crate::engine::{Engine, State};
use crate::operator::Permit;

/// Resources that are listed at once; who has more asks for one type after the other.
const LISTED_MAX: usize = 5_000;

/// What a filter may ask for at once.
const CLAUSES_MAX: usize = 8;

/// Lists what is in a group, or in all of some clusters.
pub(super) async fn list(
    call: &Call,
    group: Option<GroupId>,
    engines: Vec<Engine>,
) -> Result<Response, ArmError> {
    let clauses = call.parameter("$filter").map(clauses).transpose()?.unwrap_or_default();
    let mut items = Vec::new();
    for engine in engines {
        let (permit, version, group) = (Arc::clone(&call.permit), call.version()?, group.clone());
        let look = move |state: &State<'_>| all_of(state, (&permit, version), group.as_ref());
        items.extend(engine.look(look).await.map_err(|problem| refusal::of(&problem))?);
    }
    items.retain(|item: &Value| clauses.iter().all(|clause| holds(clause, item)));
    if items.len() > LISTED_MAX {
        let message = format!("There are more than {LISTED_MAX} resources; list them by type.");
        return Err(ArmError::new(400, "ResponseTooLarge", message));
    }
    Ok(answer::list(items))
}

/// What must hold of a resource: some member of it has that value.
type Clause = (Field, String);

/// What a filter may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Kind,
    Group,
    Name,
    Location,
}

/// The filters that are understood: `resourceType eq 'Microsoft.Compute/virtualMachines' and resourceGroup eq 'mine'`.
fn clauses(filter: &str) -> Result<Vec<Clause>, ArmError> {
    let mut words = filter.split_whitespace();
    let mut clauses = Vec::new();
    loop {
        let field = match words.next().map(str::to_lowercase).as_deref() {
            Some("resourcetype") => Some(Field::Kind),
            Some("resourcegroup") => Some(Field::Group),
            Some("name") => Some(Field::Name),
            Some("location") => Some(Field::Location),
            Some(_) | None => None,
        };
        let field = field.filter(|_| words.next().is_some_and(|word| word.eq_ignore_ascii_case("eq")));
        let value = words.next().and_then(|word| word.strip_prefix('\'')?.strip_suffix('\''));
        let clause = field.zip(value).ok_or_else(|| {
            let message = "The filter is not understood: resourceType, resourceGroup, name and location eq '…' are, with and.";
            ArmError::invalid("$filter", message)
        })?;
        clauses.push((clause.0, clause.1.to_owned()));
        match words.next() {
            None => return Ok(clauses),
            Some(word) if word.eq_ignore_ascii_case("and") && clauses.len() < CLAUSES_MAX => {}
            Some(_) => return Err(ArmError::invalid("$filter", "The filter is not understood.")),
        }
    }
}

fn holds((field, wanted): &Clause, item: &Value) -> bool {
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    let own = match field {
        Field::Kind => text("type"),
        Field::Name => text("name"),
        Field::Location => text("location"),
        Field::Group => text("id").and_then(|id| ResourceId::parse(&id)).map(|id| id.group.name),
    };
    own.is_some_and(|own| own.eq_ignore_ascii_case(wanted))
}

fn all_of(state: &State<'_>, asker: (&Permit, ApiVersion), group: Option<&GroupId>) -> Vec<Value> {
    let is_wanted = |own: &GroupId| group.is_none_or(|group| group.key() == own.key());
    let mut items = Vec::new();
    for link in links(state).take(LISTED_MAX + 1) {
        let own = group_of(state, link);
        if let Some(found) = is_wanted(&own).then(|| found(state, asker, link, &own)).flatten() {
            items.push(short(&compute::show(state, asker, &found, Expand::Nothing)));
        }
    }
    if asker.0.check_all_tenants(Role::Viewer).is_err() {
        // What is only kept belongs to no tenant.
        return items;
    }
    let written = state.catalogue.entries_below("/subscriptions/");
    let written = written.filter(|(_, entry)| entry.cluster == state.id && entry.link.is_none());
    for (_, entry) in written {
        let Some(id) = ResourceId::parse(&entry.id).filter(|id| is_wanted(&id.group)) else { continue };
        let is_resource = !id.namespace.eq_ignore_ascii_case("Microsoft.Resources") && id.parts.len() == 1;
        if is_resource {
            let body: Value = serde_json::from_slice(&entry.body.0).unwrap_or_default();
            let mut shown = json!({ "id": entry.id, "name": id.name(), "type": id.kind() });
            copy(&body, &mut shown);
            items.push(shown);
        }
    }
    items
}

fn links<'a>(state: &'a State<'_>) -> impl Iterator<Item = Link> + 'a {
    let cluster = state.cluster;
    let sets = cluster.scale_sets().map(|(id, _)| Link::ScaleSet(id));
    let tenants = cluster.tenants().filter(|(_, tenant)| tenant.shape == Shape::AvailabilitySet);
    let tenants = tenants.map(|(id, _)| Link::Tenant(id));
    let machines = cluster.machines().map(|(id, _)| id).filter(|id| is_machine(cluster, *id));
    sets.chain(tenants).chain(machines.map(Link::Machine))
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
