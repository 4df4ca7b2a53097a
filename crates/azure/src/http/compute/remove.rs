//! DELETE: a machine, a scale set with its instances, an availability set without machines.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use forewarn_control::ControlError;
use forewarn_control::NamedCommand;
use forewarn_control::Permit;
use forewarn_control::request::{LinkTarget, ResourceWrite, Transaction};
use forewarn_control::resources::Link;
use forewarn_lifecycle::MachineId;
use forewarn_server::State;

use super::lookup::{ComputeKind, FoundResource, find};
use super::write::{Conditions, audit_entry, check_permit};
use super::{GroupScope, done};
use crate::http::{errors, responses, written as bytes};
use crate::{Action, ArmError, instances_there, plan_action};

/// Steps that remove a resource.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    pub(crate) commands: Vec<NamedCommand>,
    /// Commands that follow from the others. The permit must allow them too.
    then: Vec<NamedCommand>,
    pub(crate) writes: Vec<ResourceWrite>,
}

impl Removal {
    /// Adds the steps of another removal.
    pub(crate) fn extend(&mut self, Removal { commands, then, writes }: Removal) {
        self.commands.extend(commands);
        self.then.extend(then);
        self.writes.extend(writes);
    }

    /// Checks that the permit allows all commands.
    pub(crate) fn check_permit(&self, state: &State<'_>, permit: &Permit) -> Result<(), ArmError> {
        check_permit(state, permit, &self.commands)?;
        check_permit(state, permit, &self.then)
    }
}

/// Steps that remove a resource.
pub(crate) fn removal(state: &State<'_>, found: &FoundResource) -> Result<Removal, ArmError> {
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

/// Removes machines, and then their set.
fn leave(
    state: &State<'_>,
    found: &FoundResource,
    machines: &[MachineId],
    then: Option<NamedCommand>,
) -> Result<Removal, ArmError> {
    let id = found.id.to_string();
    let put = ResourceWrite::Put {
        id: id.clone(),
        link: Some(LinkTarget::Known(found.link)),
        body: bytes(&found.body),
        notes: bytes(&found.notes),
    };
    let commands = plan_action(state.cluster, Action::Delete, machines)?;
    Ok(Removal { commands, then: then.into_iter().collect(), writes: vec![put, ResourceWrite::Leave(id)] })
}

pub(super) async fn reply(
    scope: &GroupScope<'_>,
    kind: ComputeKind,
    name: &str,
) -> Result<Response, ArmError> {
    let (permit, version) = (Arc::clone(&scope.request.permit), scope.request.version()?);
    let (group, id, name) = (scope.group.clone(), scope.id(kind, name), name.to_owned());
    let (context, conditions) = (permit.context(), Conditions::of(scope.request));
    let plan = move |state: &State<'_>| -> Result<(Transaction, ()), Option<ArmError>> {
        let found = find(state, (&permit, version), kind, &group, &name).ok_or(None)?;
        conditions.check(Some(&found))?;
        check_unused(state, &found)?;
        let removal = removal(state, &found)?;
        removal.check_permit(state, &permit)?;
        let Removal { commands, writes, .. } = removal;
        let asked = Some(audit_entry("delete_resource", kind, &found.id));
        Ok((Transaction { commands, writes, asked, operation: Some(id.to_string()) }, ()))
    };
    match scope.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))? {
        Err(None) => Ok(done()),
        Err(Some(refused)) => Err(refused),
        Ok(_) if kind == ComputeKind::AvailabilitySet => Ok(StatusCode::OK.into_response()),
        Ok((transacted, ())) => {
            let subscription = &scope.group.id.subscription;
            let operation =
                transacted.operation.ok_or_else(|| errors::of_problem(&ControlError::Unavailable))?;
            Ok(responses::accepted(scope.request, subscription, &operation))
        }
    }
}

/// Checks that an availability set is empty.
fn check_unused(state: &State<'_>, found: &FoundResource) -> Result<(), ArmError> {
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
