//! Instances of a scale set: shown, written (what protects them), deleted, and acted on.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::response::Response;
use forewarn_azure::{
    Action, ApiVersion, ArmError, Chosen, Expand, INSTANCES, Own, Protection, Provisioning, find_instance,
    hide_newer, instance_instance_view, instances_there, is_gone, plan_instance, read_protection, settle,
    show_instance,
};
use forewarn_control::full_name;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::Link;
use forewarn_lifecycle::MachineId;
use serde_json::{Value, json};

use super::act::{act_on, is_of};
use super::found::{Found, Kind, find, sight};
use super::list::{PAGE_MAX, first_of_page, shown};
use super::write::{Conditions, check_permit, without_ours};
use super::{Visit, expand};
use crate::arm::place::no_resource;
use crate::arm::{answer, refusal, written as bytes};
use crate::engine::{Arrangement, LinkTo, Paper, State};

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
        ([id, word], &Method::POST) => {
            match Action::parse(word).filter(|action| is_of(Kind::Machine, *action)) {
                Some(action) => act(visit, set, id, action).await,
                None => Err(crate::arm::unsupported(call)),
            }
        }
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
    if visit.call.parameter("$filter").is_some_and(|filter| !filter.is_empty()) {
        return Err(ArmError::invalid("$filter", "Instances cannot be filtered here."));
    }
    let (version, expand, first) = (visit.call.version()?, expand(visit.call), first_of_page(visit.call)?);
    let page = move |state: &State<'_>, found: Found| {
        let Link::ScaleSet(id) = found.link else { return Ok((Vec::new(), None)) };
        let mut instances = instances_there(state.cluster, id);
        instances.retain(|(number, _)| *number >= first);
        let next = instances.get(PAGE_MAX).map(|(number, _)| number.to_string());
        let page = instances.iter().take(PAGE_MAX);
        Ok((page.map(|(_, machine)| show(state, version, &found, *machine, expand)).collect(), next))
    };
    let (items, next): (Vec<Value>, _) = visit.look(Kind::ScaleSet, set, page).await?;
    Ok(shown(visit.call, &items, next))
}

async fn one(visit: &Visit<'_>, set: &str, id: &str, view: View) -> Result<Response, ArmError> {
    let (version, expand) = (visit.call.version()?, expand(visit.call));
    let (instance, id) = (visit.instance_id(set, id), id.to_owned());
    let shown = move |state: &State<'_>, found: Found| {
        let machine = instance_named(state, &found, &id).ok_or_else(|| no_instance(&instance))?;
        Ok(match view {
            View::Whole => show(state, version, &found, machine, expand),
            View::Instance => {
                let (body, etag) = own(state, machine);
                let own = Own { body: body.as_ref(), etag };
                instance_instance_view(&sight(state, version), &found.kept(), own, machine)
            }
        })
    };
    visit.look(Kind::ScaleSet, set, shown).await.map(answer::ok)
}

fn show(state: &State<'_>, version: ApiVersion, set: &Found, machine: MachineId, expand: Expand) -> Value {
    let (body, etag) = own(state, machine);
    let own = Own { body: body.as_ref(), etag };
    let mut shown = show_instance(&sight(state, version), &set.kept(), own, machine, expand);
    hide_newer(INSTANCES, &mut shown, version);
    shown
}

/// What clients have written of an instance itself, and how often.
fn own(state: &State<'_>, machine: MachineId) -> (Option<Value>, u64) {
    let entry = state.catalogue.entry_of(state.id, Link::Machine(machine)).map(|(_, entry)| entry);
    let body = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    (body, entry.map_or(0, |entry| entry.edition))
}

fn instance_named(state: &State<'_>, set: &Found, id: &str) -> Option<MachineId> {
    let Link::ScaleSet(set) = set.link else { return None };
    let found = find_instance(state.cluster, state.cluster.scale_set(set)?, id);
    found.filter(|machine| !is_gone(state.cluster, *machine))
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
    let conditions = match action {
        Action::Delete => Conditions::of(visit.call),
        Action::Restart
        | Action::Redeploy
        | Action::Reimage
        | Action::Start
        | Action::PowerOff
        | Action::Deallocate
        | Action::PerformMaintenance
        | Action::Reapply
        | Action::SimulateEviction
        | Action::Upgrade { .. } => Conditions::default(),
    };
    let one = move |state: &State<'_>, found: &Found| {
        let machine = instance_named(state, found, &id).ok_or_else(|| no_instance(&instance))?;
        conditions.check_edition(Some(own(state, machine).1))?;
        Ok(Chosen::These(vec![machine]))
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
    let terms = permit.terms();
    let asker = (Arc::clone(&permit), group.clone(), name.clone(), wanted.clone());
    let arrange = move |state: &State<'_>| -> Result<(Arrangement, ()), ArmError> {
        let found = find(state, (&permit, version), Kind::ScaleSet, &group, &name);
        let found = found.ok_or_else(|| no_resource(&set_id))?;
        let machine = instance_named(state, &found, &wanted).ok_or_else(|| no_instance(&instance))?;
        let (before, edition) = own(state, machine);
        conditions.check_edition(Some(edition))?;
        let before = before.unwrap_or_else(|| json!({}));
        let body = settle(INSTANCES, Some(&before), &without_ours(own_part(&sent)), version)?;
        let commands = plan_instance(state.cluster, machine, &before, &body)?;
        check_permit(state, &permit, &commands)?;
        let known = state.catalogue.entry_of(state.id, Link::Machine(machine));
        let id = known.map_or_else(|| instance.to_string(), |(_, entry)| entry.id.clone());
        let link = Some(LinkTo::Known(Link::Machine(machine)));
        let put = Paper::Put { id: id.clone(), link, body: bytes(&body), notes: bytes(&json!({})) };
        let asked = json!({ "command": "write_resource", "resource": id, "machine": full_name(state.cluster, machine) });
        let papers = vec![put];
        Ok((Arrangement { commands, papers, asked: Some(asked), operation: Some(id) }, ()))
    };
    let arranged = visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    let (arranged, ()) = arranged?;
    let (permit, group, name, wanted) = asker;
    let shown = visit.engine.look(move |state| {
        let found = find(state, (&permit, version), Kind::ScaleSet, &group, &name)?;
        let machine = instance_named(state, &found, &wanted)?;
        let mut shown = show(state, version, &found, machine, Expand::Nothing);
        shown["properties"]["provisioningState"] = json!(Provisioning::Updating.as_str());
        Some(shown)
    });
    let shown = shown.await.map_err(|problem| refusal::of(&problem))?.unwrap_or_else(|| json!({}));
    let operation = arranged.operation.ok_or_else(|| refusal::of(&crate::engine::Problem::Unavailable))?;
    Ok(answer::put(call, &visit.group.id.subscription, StatusCode::OK, shown, &operation))
}

/// What of an instance is its own: the rest follows from its scale set.
fn own_part(sent: &Value) -> Value {
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

/// What an instance is protected from.
pub(super) fn protection(state: &State<'_>, machine: MachineId) -> Protection {
    own(state, machine).0.and_then(|own| read_protection(&own).ok()).unwrap_or_default()
}
