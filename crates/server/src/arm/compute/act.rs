//! POST: something is done to a machine, or to instances of a scale set.

use std::sync::Arc;

use axum::response::Response;
use forewarn_azure::{Action, ArmError, Chosen, plan_instances, read_instances, read_named_instances};
use forewarn_control::full_name;
use forewarn_control::shared::Link;
use forewarn_lifecycle::MachineId;
use serde_json::{Value, json};

use super::found::{Found, Kind, find};
use super::instances::protection;
use super::write::{check_permit, image_noted};
use super::{Visit, done};
use crate::arm::place::no_resource;
use crate::arm::{answer, refusal};
use crate::engine::{Arrangement, State};

pub(super) async fn act(visit: &Visit<'_>, kind: Kind, name: &str, word: &str) -> Result<Response, ArmError> {
    let action = Action::parse(word).filter(|action| is_of(kind, *action));
    let Some(action) = action else { return Err(crate::arm::unsupported(visit.call)) };
    let body = visit.call.json()?;
    act_on(visit, (kind, name), action, move |state, found| chosen(state, found, action, &body)).await
}

/// Whether something of that kind has such an action.
pub(super) fn is_of(kind: Kind, action: Action) -> bool {
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
        Action::SimulateEviction => kind == Kind::Machine,
        // Machines have a method for it.
        Action::Delete | Action::Upgrade { .. } => kind == Kind::ScaleSet,
    }
}

/// The machines that a request is about.
fn chosen(state: &State<'_>, found: &Found, action: Action, body: &Value) -> Result<Chosen, ArmError> {
    match (found.link, action) {
        (Link::Machine(machine), _) => Ok(Chosen::These(vec![machine])),
        (Link::ScaleSet(set), Action::Delete | Action::Upgrade { .. }) => {
            read_named_instances(state.cluster, set, body)
        }
        (Link::ScaleSet(set), _) => read_instances(state.cluster, set, body),
        (Link::Tenant(_), _) => Ok(Chosen::These(Vec::new())),
    }
}

/// An upgrade reimages instances whose image is not the one of the latest model.
fn informed(action: Action, found: &Found) -> Action {
    if matches!(action, Action::Upgrade { .. }) {
        return Action::Upgrade { image_since: image_noted(found) };
    }
    action
}

/// As the trail tells it.
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

/// What the trail tells of an action.
fn told(state: &State<'_>, action: Action, found: &Found, machines: &[MachineId]) -> Value {
    let mut told = json!({ "command": word(action), "resource": found.id.to_string() });
    if let [only] = machines {
        told["machine"] = json!(full_name(state.cluster, *only));
    } else if matches!(found.link, Link::ScaleSet(_)) {
        told["scale_set"] = json!(found.id.name());
        let names = machines.iter().filter_map(|id| state.cluster.machine(*id)).map(|one| one.name.as_str());
        told["instances"] = names.collect();
    }
    told
}

/// Does something to machines of what is named.
pub(super) async fn act_on(
    visit: &Visit<'_>,
    (kind, name): (Kind, &str),
    action: Action,
    chosen: impl FnOnce(&State<'_>, &Found) -> Result<Chosen, ArmError> + Send + 'static,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&visit.call.permit), visit.call.version()?);
    let (group, id, name) = (visit.group.clone(), visit.id(kind, name), name.to_owned());
    let terms = permit.terms();
    let arrange = move |state: &State<'_>| {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
        let chosen = chosen(state, &found)?;
        let protection = |machine| protection(state, machine);
        let commands = plan_instances(state.cluster, informed(action, &found), &chosen, &protection)?;
        check_permit(state, &permit, &commands)?;
        let asked = Some(told(state, action, &found, chosen.machines()));
        Ok((Arrangement { commands, papers: Vec::new(), asked, operation: Some(id.to_string()) }, ()))
    };
    let arranged = visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))?;
    let (arranged, ()) = arranged?;
    if action == Action::SimulateEviction {
        return Ok(done());
    }
    let operation = arranged.operation.ok_or_else(|| refusal::of(&crate::engine::Problem::Unavailable))?;
    Ok(answer::accepted(visit.call, &visit.group.id.subscription, &operation))
}
