//! DELETE: a machine, a scale set with its instances, an availability set without machines.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use forewarn_azure::{Action, ArmError, instances_there, plan_action};
use forewarn_control::NamedCommand;
use forewarn_control::shared::Link;
use forewarn_lifecycle::MachineId;

use super::found::{Found, Kind, find};
use super::write::{Conditions, check_permit, told};
use super::{Visit, done};
use crate::arm::{answer, refusal, written as bytes};
use crate::engine::{Arrangement, LinkTo, Paper, State};
use crate::operator::Permit;

/// What has to be done so that something goes.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    pub(crate) commands: Vec<NamedCommand>,
    /// What follows by itself, once they are done: whoever asks has to be allowed that too.
    then: Vec<NamedCommand>,
    pub(crate) papers: Vec<Paper>,
}

impl Removal {
    /// This, and another one.
    pub(crate) fn extend(&mut self, Removal { commands, then, papers }: Removal) {
        self.commands.extend(commands);
        self.then.extend(then);
        self.papers.extend(papers);
    }

    /// Whether somebody may have all that done.
    pub(crate) fn check_permit(&self, state: &State<'_>, permit: &Permit) -> Result<(), ArmError> {
        check_permit(state, permit, &self.commands)?;
        check_permit(state, permit, &self.then)
    }
}

/// What has to be done so that something goes.
pub(crate) fn removal(state: &State<'_>, found: &Found) -> Result<Removal, ArmError> {
    let cluster = state.cluster;
    match found.link {
        Link::Machine(machine) => {
            let commands = plan_action(cluster, Action::Delete, &[machine])?;
            Ok(Removal { commands, ..Removal::default() })
        }
        Link::ScaleSet(set) => {
            let machines: Vec<_> = instances_there(cluster, set).into_iter().map(|(_, id)| id).collect();
            let name = cluster.scale_set(set).map(|set| set.name.to_string());
            let then = name.map(|scale_set| NamedCommand::RemoveScaleSet { scale_set });
            leave(state, found, &machines, then)
        }
        Link::Tenant(tenant) => {
            let tenant = cluster.tenant(tenant);
            let machines = tenant.map(|tenant| tenant.machines().to_vec()).unwrap_or_default();
            let name = tenant.map(|tenant| tenant.name.to_string());
            leave(state, found, &machines, name.map(|tenant| NamedCommand::RemoveTenant { tenant }))
        }
    }
}

/// Machines go, and then what they are in.
fn leave(
    state: &State<'_>,
    found: &Found,
    machines: &[MachineId],
    then: Option<NamedCommand>,
) -> Result<Removal, ArmError> {
    let id = found.id.to_string();
    let put = Paper::Put {
        id: id.clone(),
        link: Some(LinkTo::Known(found.link)),
        body: bytes(&found.body),
        notes: bytes(&found.notes),
    };
    let commands = plan_action(state.cluster, Action::Delete, machines)?;
    Ok(Removal { commands, then: then.into_iter().collect(), papers: vec![put, Paper::Leave(id)] })
}

pub(super) async fn reply(visit: &Visit<'_>, kind: Kind, name: &str) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&visit.call.permit), visit.call.version()?);
    let (group, id, name) = (visit.group.clone(), visit.id(kind, name), name.to_owned());
    let (terms, conditions) = (permit.terms(), Conditions::of(visit.call));
    let arrange = move |state: &State<'_>| -> Result<(Arrangement, ()), Option<ArmError>> {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or(None)?;
        conditions.check(Some(&found))?;
        check_unused(state, &found)?;
        let removal = removal(state, &found)?;
        removal.check_permit(state, &permit)?;
        let Removal { commands, papers, .. } = removal;
        let asked = Some(told("delete_resource", kind, &found.id));
        Ok((Arrangement { commands, papers, asked, operation: Some(id.to_string()) }, ()))
    };
    match visit.engine.arrange(terms, arrange).await.map_err(|problem| refusal::of(&problem))? {
        Err(None) => Ok(done()),
        Err(Some(refused)) => Err(refused),
        Ok(_) if kind == Kind::AvailabilitySet => Ok(StatusCode::OK.into_response()),
        Ok((arranged, ())) => {
            let subscription = &visit.group.id.subscription;
            let operation =
                arranged.operation.ok_or_else(|| refusal::of(&crate::engine::Problem::Unavailable))?;
            Ok(answer::accepted(visit.call, subscription, &operation))
        }
    }
}

/// An availability set goes when nothing is in it.
fn check_unused(state: &State<'_>, found: &Found) -> Result<(), ArmError> {
    let Link::Tenant(tenant) = found.link else { return Ok(()) };
    if state.cluster.tenant(tenant).is_none_or(|tenant| tenant.machines().is_empty()) {
        return Ok(());
    }
    let message = format!(
        "Availability Set '{}' cannot be deleted. Before deleting an Availability Set please ensure that it does not contain any VM.",
        found.id.name()
    );
    Err(ArmError::new(409, "OperationNotAllowed", message))
}
