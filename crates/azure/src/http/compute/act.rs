//! POST: actions on a machine, or on instances of a scale set.

use std::sync::Arc;

use axum::response::Response;
use forewarn_control::ControlError;
use forewarn_control::full_name;
use forewarn_control::request::Transaction;
use forewarn_control::resources::Link;
use forewarn_lifecycle::MachineId;
use forewarn_server::State;
use serde_json::{Value, json};

use super::lookup::{ComputeKind, FoundResource, find, protection};
use super::write::{check_permit, image_noted};
use super::{GroupScope, done};
use crate::http::scopes::no_resource;
use crate::http::{errors, responses};
use crate::{Action, ArmError, InstanceSelection, plan_instances, read_instances, read_named_instances};

pub(super) async fn act(
    scope: &GroupScope<'_>,
    kind: ComputeKind,
    name: &str,
    word: &str,
) -> Result<Response, ArmError> {
    let action = Action::parse(word).filter(|action| is_of(kind, *action));
    let Some(action) = action else { return Err(crate::http::unsupported(scope.request)) };
    let body = scope.request.json()?;
    act_on(scope, (kind, name), action, move |state, found| chosen(state, found, action, &body)).await
}

/// Resources of that kind have the action.
pub(super) fn is_of(kind: ComputeKind, action: Action) -> bool {
    match action {
        Action::Restart
        | Action::Redeploy
        | Action::Reimage
        | Action::Start
        | Action::PowerOff
        | Action::Deallocate
        | Action::PerformMaintenance
        | Action::Reapply => true,
        // Instances are evicted one by one.
        Action::SimulateEviction => kind == ComputeKind::Machine,
        // Machines have the method DELETE.
        Action::Delete | Action::Upgrade { .. } => kind == ComputeKind::ScaleSet,
    }
}

/// The machines of a request.
fn chosen(
    state: &State<'_>,
    found: &FoundResource,
    action: Action,
    body: &Value,
) -> Result<InstanceSelection, ArmError> {
    match (found.link, action) {
        (Link::Machine(machine), _) => Ok(InstanceSelection::These(vec![machine])),
        (Link::ScaleSet(set), Action::Delete | Action::Upgrade { .. }) => {
            read_named_instances(state.cluster, set, body)
        }
        (Link::ScaleSet(set), _) => read_instances(state.cluster, set, body),
        (Link::Tenant(_), _) => Ok(InstanceSelection::These(Vec::new())),
    }
}

/// Adds the image of the latest model to an upgrade: instances with another image are reimaged.
fn informed(action: Action, found: &FoundResource) -> Action {
    if matches!(action, Action::Upgrade { .. }) {
        return Action::Upgrade { image_since: image_noted(found) };
    }
    action
}

/// Name of the action in the audit log.
fn word(action: Action) -> &'static str {
    match action {
        Action::Restart => "restart",
        Action::Redeploy => "redeploy",
        Action::Reimage => "reimage",
        Action::Start => "start",
        Action::PowerOff => "stop",
        Action::Deallocate => "deallocate",
        Action::PerformMaintenance => "perform_maintenance",
        Action::Reapply => "reapply",
        Action::SimulateEviction => "evict",
        Action::Delete => "delete",
        Action::Upgrade { .. } => "upgrade_instance",
    }
}

/// Audit entry of an action.
fn audit_entry(state: &State<'_>, action: Action, found: &FoundResource, machines: &[MachineId]) -> Value {
    let mut audit_entry = json!({ "command": word(action), "resource": found.id.to_string() });
    if let [only] = machines {
        audit_entry["machine"] = json!(full_name(state.cluster, *only));
    } else if matches!(found.link, Link::ScaleSet(_)) {
        audit_entry["scale_set"] = json!(found.id.name());
        let names = machines.iter().filter_map(|id| state.cluster.machine(*id)).map(|one| one.name.as_str());
        audit_entry["instances"] = names.collect();
    }
    audit_entry
}

/// Carries an action out on machines of a resource.
pub(super) async fn act_on(
    scope: &GroupScope<'_>,
    (kind, name): (ComputeKind, &str),
    action: Action,
    chosen: impl Fn(&State<'_>, &FoundResource) -> Result<InstanceSelection, ArmError> + Send + 'static,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&scope.request.permit), scope.request.version()?);
    let (group, id, name) = (scope.group.clone(), scope.id(kind, name), name.to_owned());
    let context = permit.context();
    let plan = move |state: &State<'_>| {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
        let chosen = chosen(state, &found)?;
        let protection = |machine| protection(state, machine);
        let commands = plan_instances(state.cluster, informed(action, &found), &chosen, &protection)?;
        check_permit(state, &permit, &commands)?;
        let asked = Some(audit_entry(state, action, &found, chosen.machines()));
        Ok((Transaction { commands, writes: Vec::new(), asked, operation: Some(id.to_string()) }, ()))
    };
    let transacted =
        scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
    let (transacted, ()) = transacted?;
    if action == Action::SimulateEviction {
        return Ok(done());
    }
    let operation = transacted.operation.ok_or_else(|| errors::of_problem(&ControlError::Unavailable))?;
    Ok(responses::accepted(scope.request, &scope.group.id.subscription, &operation))
}
