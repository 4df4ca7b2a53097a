//! Instances of a scale set: shown, written (what protects them), deleted, and acted on.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::response::Response;
use forewarn_catalogue::Link;
use forewarn_lifecycle::{MachineId, ScaleSetId};
use forewarn_wire::arm::{
    Action, ArmError, INSTANCES, Provisioning, ResourceId, canonical, chosen_instances, hide_newer,
    instance_instance_view, instances_there, is_gone, merge, show_instance,
};
use forewarn_wire::operator::full_name;
use serde_json::{Value, json};

use super::act::{act_on, action_named};
use super::found::{Found, Kind, find, sight};
use super::list::shown;
use super::write::{Conditions, check_permit, without_ours};
use super::{Visit, expand};
use crate::arm::place::no_resource;
use crate::arm::{answer, refusal, written as bytes};
use crate::engine::{Arrangement, LinkTo, Paper, State, Terms};
use crate::operator::Permit;
use forewarn_wire::arm::{ApiVersion, Expand};

/// Answers what is asked of the instances of a scale set; `rest` is what follows `virtualMachines`.
pub(super) async fn serve(visit: &Visit<'_>, set: &str, rest: &[String]) -> Result<Response, ArmError> {
    let call = visit.call;
    match (rest, &call.method) {
        ([], &Method::GET) => list(visit, set).await,
        ([id], &Method::GET) => one(visit, set, id, View::Whole).await,
        ([id], &Method::PUT | &Method::PATCH) => write(visit, set, id).await,
        ([id], &Method::DELETE) => {
            let gone = act(visit, set, id, Action::Delete).await;
            // What is not there need not be deleted.
            match gone {
                Err(refused) if refused.status == 404 => Ok(answer::nothing()),
                other => other,
            }
        }
        ([id, view], &Method::GET) if view.eq_ignore_ascii_case("instanceView") => {
            one(visit, set, id, View::Instance).await
        }
        ([id, word], &Method::POST) => match action_named(Kind::Machine, word) {
            Some(action) => act(visit, set, id, action).await,
            None if word.eq_ignore_ascii_case("reimageall") => act(visit, set, id, Action::Reimage).await,
            None => Err(crate::arm::unsupported(call)),
        },
        (_, _) => Err(crate::arm::unsupported(call)),
    }
}

/// How much of an instance is wanted.
#[derive(Clone, Copy)]
enum View {
    Whole,
    Instance,
}

async fn list(visit: &Visit<'_>, set: &str) -> Result<Response, ArmError> {
    let (permit, version, expand) =
        (Arc::clone(&visit.call.permit), visit.call.version()?, expand(visit.call));
    let items = move |state: &State<'_>, found: Found| {
        let Link::ScaleSet(id) = found.link else { return Ok(Vec::new()) };
        let instances = instances_there(state.cluster, id);
        let one = |(_, machine): (u32, MachineId)| show(state, (&permit, version), &found, machine, expand);
        Ok(instances.into_iter().map(one).collect())
    };
    let items = visit.look(Kind::ScaleSet, set, items).await?;
    Ok(shown(visit.call, items, None))
}

async fn one(visit: &Visit<'_>, set: &str, id: &str, view: View) -> Result<Response, ArmError> {
    let (permit, version, expand) =
        (Arc::clone(&visit.call.permit), visit.call.version()?, expand(visit.call));
    let (instance, id) = (visit.instance_id(set, id), id.to_owned());
    let shown = move |state: &State<'_>, found: Found| {
        let machine = instance_named(state, &found, &id).ok_or_else(|| no_instance(&instance))?;
        Ok(match view {
            View::Whole => show(state, (&permit, version), &found, machine, expand),
            View::Instance => {
                let own = own(state, machine);
                instance_instance_view(&sight(state, version), &found.kept(), own.as_ref(), machine)
            }
        })
    };
    visit.look(Kind::ScaleSet, set, shown).await.map(answer::ok)
}

fn show(
    state: &State<'_>,
    (_, version): (&Permit, ApiVersion),
    set: &Found,
    machine: MachineId,
    expand: Expand,
) -> Value {
    let own = own(state, machine);
    let mut shown = show_instance(&sight(state, version), &set.kept(), own.as_ref(), machine, expand);
    hide_newer(INSTANCES, &mut shown, version);
    shown
}

/// What a client has written of an instance itself.
fn own(state: &State<'_>, machine: MachineId) -> Option<Value> {
    let (_, entry) = state.catalogue.entry_of(state.id, Link::Machine(machine))?;
    serde_json::from_slice(&entry.body.0).ok()
}

fn instance_named(state: &State<'_>, set: &Found, id: &str) -> Option<MachineId> {
    let Link::ScaleSet(set) = set.link else { return None };
    let chosen = chosen_instances(state.cluster, set, &json!({ "instanceIds": [id] })).ok()?;
    chosen.first().copied().filter(|machine| !is_gone(state.cluster, *machine))
}

fn no_instance(id: &ResourceId) -> ArmError {
    let mut refused = no_resource(id);
    "NotFound".clone_into(refused.code.to_mut());
    "The entity was not found in this Azure location.".clone_into(&mut refused.message);
    refused
}

impl Visit<'_> {
    fn instance_id(&self, set: &str, id: &str) -> ResourceId {
        self.id(Kind::ScaleSet, set).child("virtualMachines", id)
    }
}

/// Does something to one instance.
async fn act(visit: &Visit<'_>, set: &str, id: &str, action: Action) -> Result<Response, ArmError> {
    let (instance, id) = (visit.instance_id(set, id), id.to_owned());
    let one = move |state: &State<'_>, found: &Found| {
        instance_named(state, found, &id).map(|machine| vec![machine]).ok_or_else(|| no_instance(&instance))
    };
    act_on(visit, (Kind::ScaleSet, set), action, one).await
}

/// Writes what a client says of one instance. The rules need to know nothing of it.
async fn write(visit: &Visit<'_>, set: &str, id: &str) -> Result<Response, ArmError> {
    let call = visit.call;
    let (permit, version, sent) = (Arc::clone(&call.permit), call.version()?, call.json()?);
    let (group, name, wanted) = (visit.group.clone(), set.to_owned(), id.to_owned());
    let (set_id, instance) = (visit.id(Kind::ScaleSet, set), visit.instance_id(set, id));
    let conditions = Conditions::of(call);
    let terms = Terms { by: permit.by.clone(), ..Terms::default() };
    let arrange = move |state: &State<'_>| -> Result<(Arrangement, Value), ArmError> {
        let found = find(state, (&permit, version), Kind::ScaleSet, &group, &name);
        let found = found.ok_or_else(|| no_resource(&set_id))?;
        conditions.check(Some(&found))?;
        let machine = instance_named(state, &found, &wanted).ok_or_else(|| no_instance(&instance))?;
        check_permit(state, &permit, &[])?;
        let mut body =
            merge(&own(state, machine).unwrap_or_else(|| json!({})), &without_ours(protection(&sent)));
        canonical(INSTANCES, &mut body);
        let known = state.catalogue.entry_of(state.id, Link::Machine(machine));
        let id = known.map_or_else(|| instance.to_string(), |(_, entry)| entry.id.clone());
        let link = Some(LinkTo::Known(Link::Machine(machine)));
        let put = Paper::Put { id: id.clone(), link, body: bytes(&body), notes: bytes(&json!({})) };
        let found = found.being(Provisioning::Updating);
        let mut shown =
            show_instance(&sight(state, version), &found.kept(), Some(&body), machine, Expand::Nothing);
        shown["properties"]["provisioningState"] = json!(Provisioning::Updating.as_str());
        let asked = json!({ "command": "write_resource", "resource": id, "machine": full_name(state.cluster, machine) });
        let (commands, papers) = (Vec::new(), vec![put]);
        let arrangement = Arrangement { commands, papers, asked: Some(asked), operation: Some(id) };
        Ok((arrangement, shown))
    };
    let arranged = visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    let (arranged, shown) = arranged?;
    let operation = arranged.operation.ok_or_else(|| refusal::of(&crate::engine::Problem::Unavailable))?;
    Ok(answer::put(call, &visit.group.id.subscription, StatusCode::OK, shown, &operation))
}

/// What of an instance is its own: the rest follows from its scale set.
fn protection(sent: &Value) -> Value {
    let mut own = json!({});
    if let Some(tags) = sent.get("tags") {
        own["tags"] = tags.clone();
    }
    for member in ["protectionPolicy", "userData"] {
        if let Some(value) = sent.get("properties").and_then(|properties| properties.get(member)) {
            own["properties"][member] = value.clone();
        }
    }
    own
}

/// The numbers of instances that a scale-in leaves alone.
pub(crate) fn protected(state: &State<'_>, set: ScaleSetId) -> std::collections::BTreeSet<u32> {
    let is_protected = |machine: MachineId| {
        own(state, machine).is_some_and(|own| {
            own.pointer("/properties/protectionPolicy/protectFromScaleIn") == Some(&Value::Bool(true))
        })
    };
    let instances = instances_there(state.cluster, set);
    instances.into_iter().filter(|(_, id)| is_protected(*id)).map(|(number, _)| number).collect()
}
