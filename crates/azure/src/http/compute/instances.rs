//! Instances of a scale set: show, write (protection), delete, and actions.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::response::Response;
use forewarn_control::ControlError;
use forewarn_control::full_name;
use forewarn_control::request::{LinkTarget, ResourceWrite, Transaction};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::Link;
use forewarn_lifecycle::MachineId;
use forewarn_server::State;
use serde_json::{Value, json};

use super::act::{act_on, is_of};
use super::list::first_of_page;
use super::lookup::{ComputeKind, FoundResource, find, own, show_context};
use super::write::{Conditions, check_permit, without_ours};
use super::{GroupScope, expand};
use crate::http::page::PageItems;
use crate::http::scopes::no_resource;
use crate::http::{errors, responses, written as bytes};
use crate::{
    Action, ApiVersion, ArmError, Expand, INSTANCES, InstanceBody, InstanceSelection, Provisioning,
    find_instance, hide_newer, instance_instance_view, instances_there, is_gone, plan_instance, settle,
    show_instance,
};

/// Serves the instances of a scale set; `rest` is the path behind `virtualMachines`.
pub(super) async fn serve(scope: &GroupScope<'_>, set: &str, rest: &[String]) -> Result<Response, ArmError> {
    let request = scope.request;
    match (rest, &request.method) {
        ([], &Method::GET) => list(scope, set).await,
        ([id], &Method::GET) => one(scope, set, id, View::Whole).await,
        ([id], &Method::PUT | &Method::PATCH) => write(scope, set, id).await,
        ([id], &Method::DELETE) => {
            let gone = act(scope, set, id, Action::Delete).await;
            // Deleting an absent instance succeeds.
            match gone {
                Err(refused) if refused.status == 404 => Ok(responses::nothing()),
                other => other,
            }
        }
        ([id, view], &Method::GET) if view.eq_ignore_ascii_case("instanceView") => {
            one(scope, set, id, View::Instance).await
        }
        ([id, word], &Method::POST) => {
            match Action::parse(word).filter(|action| is_of(ComputeKind::Machine, *action)) {
                Some(action) => act(scope, set, id, action).await,
                None => Err(crate::http::unsupported(request)),
            }
        }
        (_, _) => Err(crate::http::unsupported(request)),
    }
}

/// Part of an instance that a request reads.
#[derive(Clone, Copy)]
enum View {
    Whole,
    Instance,
}

async fn list(scope: &GroupScope<'_>, set: &str) -> Result<Response, ArmError> {
    if scope.request.parameter("$filter").is_some_and(|filter| !filter.is_empty()) {
        return Err(ArmError::invalid("$filter", "Instances cannot be filtered here."));
    }
    let (version, expand, first) =
        (scope.request.version()?, expand(scope.request), first_of_page(scope.request)?);
    let mut page = PageItems::default();
    let fill = |state: &State<'_>, found: FoundResource| {
        let Link::ScaleSet(id) = found.link else { return Ok(None) };
        for (number, machine) in instances_there(state.cluster, id) {
            if number >= first && !page.visit() {
                return Ok(Some(number));
            }
            if number >= first {
                page.push(show(state, version, &found, machine, expand));
            }
        }
        Ok(None)
    };
    let next = scope.look(ComputeKind::ScaleSet, set, fill)?;
    Ok(page.response(scope.request, next))
}

async fn one(scope: &GroupScope<'_>, set: &str, id: &str, view: View) -> Result<Response, ArmError> {
    let (version, expand) = (scope.request.version()?, expand(scope.request));
    let (instance, id) = (scope.instance_id(set, id), id.to_owned());
    let shown = move |state: &State<'_>, found: FoundResource| {
        let machine = instance_named(state, &found, &id).ok_or_else(|| no_instance(&instance))?;
        Ok(match view {
            View::Whole => show(state, version, &found, machine, expand),
            View::Instance => {
                let (body, etag) = own(state, machine);
                let own = InstanceBody { body: body.as_ref(), etag };
                instance_instance_view(&show_context(state, version), &found.stored(), own, machine)
            }
        })
    };
    scope.look(ComputeKind::ScaleSet, set, shown).map(responses::ok)
}

fn show(
    state: &State<'_>,
    version: ApiVersion,
    set: &FoundResource,
    machine: MachineId,
    expand: Expand,
) -> Value {
    let (body, etag) = own(state, machine);
    let own = InstanceBody { body: body.as_ref(), etag };
    let mut shown = show_instance(&show_context(state, version), &set.stored(), own, machine, expand);
    hide_newer(INSTANCES, &mut shown, version);
    shown
}

fn instance_named(state: &State<'_>, set: &FoundResource, id: &str) -> Option<MachineId> {
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

impl GroupScope<'_> {
    fn instance_id(&self, set: &str, id: &str) -> ResourceId {
        self.id(ComputeKind::ScaleSet, set).child("virtualMachines", id)
    }
}

/// Carries an action out on one instance.
async fn act(scope: &GroupScope<'_>, set: &str, id: &str, action: Action) -> Result<Response, ArmError> {
    let (instance, id) = (scope.instance_id(set, id), id.to_owned());
    let conditions = match action {
        Action::Delete => Conditions::of(scope.request),
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
    let one = move |state: &State<'_>, found: &FoundResource| {
        let machine = instance_named(state, found, &id).ok_or_else(|| no_instance(&instance))?;
        conditions.check_edition(Some(own(state, machine).1))?;
        Ok(InstanceSelection::These(vec![machine]))
    };
    act_on(scope, (ComputeKind::ScaleSet, set), action, one).await
}

/// Writes the body of one instance. It has no effect on the rules.
async fn write(scope: &GroupScope<'_>, set: &str, id: &str) -> Result<Response, ArmError> {
    let request = scope.request;
    let (permit, version, sent) = (Arc::clone(&request.permit), request.version()?, request.json()?);
    let (group, name, wanted) = (scope.group.clone(), set.to_owned(), id.to_owned());
    let (set_id, instance) = (scope.id(ComputeKind::ScaleSet, set), scope.instance_id(set, id));
    let conditions = Conditions::of(request);
    let context = permit.context();
    let asker = (Arc::clone(&permit), group.clone(), name.clone(), wanted.clone());
    let plan = move |state: &State<'_>| -> Result<(Transaction, ()), ArmError> {
        let found = find(state, (&permit, version), ComputeKind::ScaleSet, &group, &name);
        let found = found.ok_or_else(|| no_resource(&set_id))?;
        let machine = instance_named(state, &found, &wanted).ok_or_else(|| no_instance(&instance))?;
        let (before, edition) = own(state, machine);
        conditions.check_edition(Some(edition))?;
        let before = before.unwrap_or_else(|| json!({}));
        let body = settle(INSTANCES, Some(&before), &without_ours(own_part(&sent)), version)?;
        let commands = plan_instance(state.cluster, machine, &before, &body)?;
        check_permit(state, &permit, &commands)?;
        let known = state.durable.resources().linked(Link::Machine(machine));
        let id = known.map_or_else(|| instance.to_string(), |(_, entry)| entry.id.clone());
        let link = Some(LinkTarget::Known(Link::Machine(machine)));
        let put = ResourceWrite::Put { id: id.clone(), link, body: bytes(&body), notes: bytes(&json!({})) };
        let asked = json!({ "command": "write_resource", "resource": id, "machine": full_name(state.cluster, machine) });
        let writes = vec![put];
        Ok((Transaction { commands, writes, asked: Some(asked), operation: Some(id) }, ()))
    };
    let transacted =
        scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
    let (transacted, ()) = transacted?;
    let (permit, group, name, wanted) = asker;
    let shown = scope.control.look(move |state| {
        let found = find(state, (&permit, version), ComputeKind::ScaleSet, &group, &name)?;
        let machine = instance_named(state, &found, &wanted)?;
        let mut shown = show(state, version, &found, machine, Expand::Nothing);
        shown["properties"]["provisioningState"] = json!(Provisioning::Updating.as_str());
        Some(shown)
    });
    let shown = shown.map_err(|problem| errors::of_problem(&problem))?.unwrap_or_else(|| json!({}));
    let operation = transacted.operation.ok_or_else(|| errors::of_problem(&ControlError::Unavailable))?;
    Ok(responses::put(request, &scope.group.id.subscription, StatusCode::OK, shown, &operation))
}

/// The members of an instance that do not follow from its scale set.
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
