//! PUT and PATCH: the current body, merged with the one sent, is the wanted state.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use forewarn_control::ControlError;
use forewarn_control::NamedCommand;
use forewarn_control::request::{LinkTarget, ResourceWrite, Transaction};
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::{Link, Operation};
use forewarn_control::shared::Role;
use forewarn_control::{Denied, Permit};
use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId};
use forewarn_server::State;
use forewarn_server::{ControlHandle, ResourceGroup};
use serde_json::{Value, json};

use super::lookup::{ComputeKind, FoundResource, find, is_there, protection};
use super::{GroupScope, show};
use crate::http::request::ArmRequest;
use crate::http::scopes::no_resource;
use crate::http::{errors, responses, written as bytes};
use crate::{
    ApiVersion, ArmError, Domains, Expand, Provisioning, image_since, plan_availability_set, plan_machine,
    plan_scale_set, read_availability_set, settle,
};

/// Method of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMethod {
    /// Creates a resource that does not exist.
    Put,
    /// Fails if the resource does not exist.
    Patch,
}

/// A write of a compute resource.
#[derive(Clone, Debug)]
pub(crate) struct WriteRequest {
    pub(crate) permit: Arc<Permit>,
    pub(crate) group: ResourceGroup,
    pub(crate) kind: ComputeKind,
    pub(crate) id: ResourceId,
    pub(crate) version: ApiVersion,
    pub(crate) sent: Value,
    pub(crate) method: WriteMethod,
    pub(crate) conditions: Conditions,
}

/// Preconditions: `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
}

/// A write that was carried out.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The resource did not exist before.
    pub(crate) is_new: bool,
    pub(crate) operation: Operation,
    /// The resource while the operation lasts.
    pub(crate) shown: Value,
}

/// Note with the model that brought another image.
const IMAGE_SINCE: &str = "imageSince";

/// A version in which every member is shown.
const NEWEST: ApiVersion = ApiVersion::new(2099, 12, 31);

/// Members of a machine that refer to its set, and the kind of the set.
const SETS: [(&str, ComputeKind); 2] = [
    ("/properties/availabilitySet/id", ComputeKind::AvailabilitySet),
    ("/properties/virtualMachineScaleSet/id", ComputeKind::ScaleSet),
];

/// Members that the server sets, whatever a client sends.
const OURS: [&str; 4] = ["id", "name", "type", "etag"];
const OUR_PROPERTIES: [&str; 6] =
    ["provisioningState", "vmId", "uniqueId", "timeCreated", "instanceView", "virtualMachines"];

/// Writes a resource, and changes the fleet accordingly.
pub(crate) async fn write(control: &ControlHandle, request: WriteRequest) -> Result<Written, ArmError> {
    let (kind, group, permit) = (request.kind, request.group.clone(), Arc::clone(&request.permit));
    let (version, name) = (request.version, request.id.name().to_owned());
    let context = permit.context();
    let transacted = control.transact(context, move |state| plan_write(state, &request)).await;
    let (transacted, is_new) = transacted.map_err(|problem| errors::of_problem(&problem))??;
    let operation =
        transacted.operation.ok_or_else(|| ArmError::new(500, "InternalServerError", "no operation"))?;
    let shown = control.look(move |state| {
        let doing = if is_new { Provisioning::Creating } else { Provisioning::Updating };
        let found = find(state, (&permit, version), kind, &group, &name)?;
        let found = if kind == ComputeKind::AvailabilitySet { found } else { found.being(doing) };
        Some(show(state, (&permit, version), &found, Expand::Nothing))
    });
    let shown = shown.map_err(|problem| errors::of_problem(&problem))?.unwrap_or_else(|| json!({}));
    Ok(Written { is_new, operation, shown })
}

/// The commands and the entry of a write.
pub(crate) fn plan_write(state: &State<'_>, request: &WriteRequest) -> Result<(Transaction, bool), ArmError> {
    let WriteRequest { permit, group, kind, id, version, sent, method, conditions } = request;
    let before = find(state, (permit, *version), *kind, group, id.name());
    conditions.check(before.as_ref())?;
    if before.is_none() && *method == WriteMethod::Patch {
        return Err(no_resource(id));
    }
    let base = before.as_ref().map(|found| base(state, permit, found));
    let body = settle(kind.text(), base.as_ref(), &without_ours(sent.clone()), *version)?;
    let name = before.as_ref().map_or(id.name(), |found| found.id.name());
    if before.is_none() {
        check_creation(state, request, &body)?;
    }
    check_references(state, request, base.as_ref(), &body)?;
    let (commands, link) = plan(state, *kind, name, before.as_ref().zip(base.as_ref()), &body)?;
    check_permit(state, permit, &commands)?;
    let notes = notes(state, before.as_ref().zip(base.as_ref()), &body);
    let write = ResourceWrite::Put {
        id: before.as_ref().map_or(id, |found| &found.id).to_string(),
        link: Some(link),
        body: bytes(&body),
        notes: bytes(&notes),
    };
    let operation = Some(id.to_string());
    let audit_entry = Some(audit_entry("write_resource", *kind, id));
    Ok((Transaction { commands, writes: vec![write], asked: audit_entry, operation }, before.is_none()))
}

/// Audit entry of a command on a resource.
pub(super) fn audit_entry(command: &str, kind: ComputeKind, id: &ResourceId) -> Value {
    let mut audit_entry = json!({ "command": command, "resource": id.to_string() });
    let what = match kind {
        ComputeKind::Machine => "machine",
        ComputeKind::ScaleSet => "scale_set",
        ComputeKind::AvailabilitySet => "tenant",
    };
    audit_entry[what] = json!(id.name());
    audit_entry
}

/// The current body, without the members that the server sets.
pub(super) fn base(state: &State<'_>, permit: &Permit, found: &FoundResource) -> Value {
    without_ours(show(state, (permit, NEWEST), found, Expand::Nothing))
}

pub(super) fn without_ours(mut body: Value) -> Value {
    if let Value::Object(members) = &mut body {
        OURS.iter().for_each(|name| drop(members.shift_remove(*name)));
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            OUR_PROPERTIES.iter().for_each(|name| drop(properties.shift_remove(*name)));
        }
    }
    body
}

/// Notes of the server: the model of a scale set that brought another image.
fn notes(state: &State<'_>, before: Option<(&FoundResource, &Value)>, body: &Value) -> Value {
    let Some((found, base)) = before else { return json!({}) };
    let mut notes = found.notes.clone();
    if let Link::ScaleSet(set) = found.link
        && let Some(version) = image_since(state.cluster, set, image_noted(found), base, body)
    {
        notes[IMAGE_SINCE] = json!(version);
    }
    notes
}

/// The model of a scale set that brought another image.
pub(super) fn image_noted(found: &FoundResource) -> Option<u32> {
    found.notes[IMAGE_SINCE].as_u64().and_then(|version| u32::try_from(version).ok())
}

/// Checks that a client may create a resource. One that is limited to tenants creates only machines in their scale sets:
/// everything else, and the name of a machine of another tenant, gets the same answer.
fn check_creation(state: &State<'_>, request: &WriteRequest, body: &Value) -> Result<(), ArmError> {
    let WriteRequest { permit, kind, id, .. } = request;
    if permit.scope.tenants.is_all() {
        return Ok(());
    }
    let joins =
        *kind == ComputeKind::Machine && body.pointer("/properties/virtualMachineScaleSet/id").is_some();
    let denied = permit.check_role(Role::Operator).err();
    let denied = denied.or_else(|| (!joins || is_there(state, *kind, id)).then_some(Denied::Tenants));
    denied.map_or(Ok(()), |denied| Err(errors::of_denied(&denied)))
}

/// Checks that the set of a machine is in the machine's group: the group is removed with both.
fn check_references(
    state: &State<'_>,
    request: &WriteRequest,
    base: Option<&Value>,
    body: &Value,
) -> Result<(), ArmError> {
    let WriteRequest { permit, group, version, .. } = request;
    if request.kind != ComputeKind::Machine {
        return Ok(());
    }
    for (path, kind) in SETS {
        let referred = |body: &Value| ResourceId::parse(body.pointer(path)?.as_str()?);
        let Some(id) = referred(body).filter(|id| id.is(kind.text())) else { continue };
        let was = base.and_then(referred);
        let stays = was.is_some_and(|was| was.key() == id.key());
        let is_there = || find(state, (permit, *version), kind, group, id.name()).is_some();
        if !stays && (id.group.key() != group.id.key() || !is_there()) {
            return Err(no_resource(&id));
        }
    }
    Ok(())
}

/// The commands that make the fleet match a body, and the resource's link afterwards.
fn plan(
    state: &State<'_>,
    kind: ComputeKind,
    name: &str,
    before: Option<(&FoundResource, &Value)>,
    body: &Value,
) -> Result<(Vec<NamedCommand>, LinkTarget), ArmError> {
    let cluster = state.cluster;
    let known = before.map(|(found, _)| LinkTarget::Known(found.link));
    let before = before.map(|(found, base)| (found.link, base));
    let (commands, link) = match kind {
        ComputeKind::Machine => {
            let before = before.and_then(|(link, base)| Some((machine(link)?, base)));
            let plan = plan_machine(cluster, name, before, body, domains(state, body))?;
            (plan.commands, LinkTarget::Machine(plan.machine))
        }
        ComputeKind::ScaleSet => {
            let before = before.and_then(|(link, base)| Some((scale_set(link)?, base)));
            let commands =
                plan_scale_set(cluster, name, before, body, &|machine| protection(state, machine))?;
            (commands, LinkTarget::ScaleSet(name.to_owned()))
        }
        ComputeKind::AvailabilitySet => {
            let before = before.and_then(|(link, base)| Some((tenant(link)?, base)));
            (plan_availability_set(cluster, name, before, body)?, LinkTarget::Tenant(name.to_owned()))
        }
    };
    Ok((commands, known.unwrap_or(link)))
}

fn machine(link: Link) -> Option<MachineId> {
    if let Link::Machine(id) = link { Some(id) } else { None }
}

fn scale_set(link: Link) -> Option<ScaleSetId> {
    if let Link::ScaleSet(id) = link { Some(id) } else { None }
}

fn tenant(link: Link) -> Option<TenantId> {
    if let Link::Tenant(id) = link { Some(id) } else { None }
}

/// Domains of the availability set of a machine.
fn domains(state: &State<'_>, body: &Value) -> Domains {
    let set = body.pointer("/properties/availabilitySet/id").and_then(Value::as_str);
    let key = set.and_then(ResourceId::parse).map(|id| id.key());
    let entry = key.and_then(|key| state.all.resource(&key));
    let body = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    let read = body.and_then(|body: Value| read_availability_set(&body).ok());
    read.map(|wanted| wanted.domains).unwrap_or_default()
}

/// Checks that the permit allows all commands.
pub(crate) fn check_permit(
    state: &State<'_>,
    permit: &Permit,
    commands: &[NamedCommand],
) -> Result<(), ArmError> {
    permit.check_role(Role::Operator).map_err(|denied| errors::of_denied(&denied))?;
    let mut checked = commands.iter().map(|command| permit.check_command(command, state.cluster));
    checked.try_for_each(|check| check).map_err(|denied| errors::of_denied(&denied))
}

impl Conditions {
    /// The preconditions of a request.
    pub(crate) fn of(request: &ArmRequest) -> Self {
        let header = |name: &str| request.header(name).map(str::to_owned);
        Self { if_match: header("if-match"), if_none_match: header("if-none-match") }
    }

    pub(super) fn check(&self, found: Option<&FoundResource>) -> Result<(), ArmError> {
        self.check_edition(found.map(|found| found.edition))
    }

    /// Checks the preconditions for a resource with that number of writes, or for none.
    pub(crate) fn check_edition(&self, edition: Option<u64>) -> Result<(), ArmError> {
        let fits = |wanted: &str| {
            let mut wanted =
                wanted.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
            edition.is_some_and(|edition| wanted.any(|tag| tag == "*" || tag == edition.to_string()))
        };
        let failed = self.if_match.as_deref().is_some_and(|wanted| !fits(wanted))
            || self.if_none_match.as_deref().is_some_and(fits);
        if failed { Err(errors::of_problem(&ControlError::Changed)) } else { Ok(()) }
    }
}

/// Serves a PUT or a PATCH.
pub(super) async fn reply(
    scope: &GroupScope<'_>,
    kind: ComputeKind,
    name: &str,
    method: WriteMethod,
) -> Result<Response, ArmError> {
    let request = scope.request;
    let write_request = WriteRequest {
        permit: Arc::clone(&request.permit),
        group: scope.group.clone(),
        kind,
        id: scope.id(kind, name),
        version: request.version()?,
        sent: request.json()?,
        method,
        conditions: Conditions::of(request),
    };
    let written = write(&scope.control, write_request).await?;
    if kind == ComputeKind::AvailabilitySet {
        return Ok(responses::ok(written.shown));
    }
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(responses::put(request, &scope.group.id.subscription, status, written.shown, &written.operation))
}
