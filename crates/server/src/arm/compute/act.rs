//! POST: something is done to a machine, or to instances of a scale set.

use std::sync::Arc;

use axum::response::Response;
use forewarn_catalogue::Link;
use forewarn_lifecycle::MachineId;
use forewarn_wire::arm::{Action, ArmError, chosen_instances, plan_action};
use forewarn_wire::operator::full_name;
use serde_json::{Value, json};

use super::found::{Found, Kind, find};
use super::write::check_permit;
use super::{Visit, done};
use crate::arm::place::no_resource;
use crate::arm::{answer, refusal};
use crate::engine::{Arrangement, State, Terms};

/// The actions of machines, as they are in a path, in lower case.
const OF_MACHINES: [(&str, Action); 9] = [
    ("restart", Action::Restart),
    ("redeploy", Action::Redeploy),
    ("reimage", Action::Reimage),
    ("start", Action::Start),
    ("poweroff", Action::PowerOff),
    ("deallocate", Action::Deallocate),
    ("performmaintenance", Action::PerformMaintenance),
    ("reapply", Action::Reapply),
    ("simulateeviction", Action::SimulateEviction),
];

/// Those of scale sets besides.
const OF_SCALE_SETS: [(&str, Action); 4] = [
    ("manualupgrade", Action::Upgrade),
    ("delete", Action::Delete),
    ("reimageall", Action::Reimage),
    ("osrollingupgrade", Action::Reimage),
];

/// The action of that name on something of that kind.
pub(super) fn action_named(kind: Kind, name: &str) -> Option<Action> {
    let of_machines = OF_MACHINES.iter();
    let of_sets = OF_SCALE_SETS.iter().filter(|_| kind == Kind::ScaleSet);
    let mut known = of_machines.chain(of_sets);
    known.find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, action)| *action)
}

pub(super) async fn act(visit: &Visit<'_>, kind: Kind, name: &str, word: &str) -> Result<Response, ArmError> {
    let action = action_named(kind, word).filter(|action| {
        // Instances are evicted one by one.
        kind == Kind::Machine || *action != Action::SimulateEviction
    });
    let Some(action) = action else { return Err(crate::arm::unsupported(visit.call)) };
    let body = visit.call.json()?;
    act_on(visit, (kind, name), action, move |state, found| machines(state, found, &body)).await
}

/// The machines that a request is about.
fn machines(state: &State<'_>, found: &Found, body: &Value) -> Result<Vec<MachineId>, ArmError> {
    match found.link {
        Link::Machine(machine) => Ok(vec![machine]),
        Link::ScaleSet(set) => chosen_instances(state.cluster, set, body),
        Link::Tenant(_) => Ok(Vec::new()),
    }
}

/// What the trail tells of an action.
fn told(state: &State<'_>, action: Action, found: &Found, machines: &[MachineId]) -> Value {
    let mut told = json!({ "command": action.word(), "resource": found.id.to_string() });
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
    machines: impl FnOnce(&State<'_>, &Found) -> Result<Vec<MachineId>, ArmError> + Send + 'static,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&visit.call.permit), visit.call.version()?);
    let (group, id, name) = (visit.group.clone(), visit.id(kind, name), name.to_owned());
    let terms = Terms { by: permit.by.clone(), ..Terms::default() };
    let arrange = move |state: &State<'_>| {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
        let machines = machines(state, &found)?;
        let commands = plan_action(state.cluster, action, &machines)?;
        check_permit(state, &permit, &commands)?;
        let asked = Some(told(state, action, &found, &machines));
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
