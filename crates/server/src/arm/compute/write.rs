//! PUT and PATCH: what is shown is merged with what is sent, and becomes what is wanted.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use forewarn_azure::{
    ApiVersion, ArmError, Domains, Expand, Provisioning, image_since, plan_availability_set, plan_machine,
    plan_scale_set, read_availability_set, settle,
};
use forewarn_control::NamedCommand;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::{Link, Operation};
use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId};
use serde_json::{Value, json};

use super::found::{Found, Kind, find, is_there};
use super::instances::protection;
use super::{Visit, show};
use crate::arm::place::{Group, no_resource};
use crate::arm::{answer, refusal, written as bytes};
use crate::engine::{Arrangement, Engine, LinkTo, Paper, State};
use crate::operator::Permit;

/// Whether something is made that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is.
    Put,
    /// It is not.
    Patch,
}

/// What is wanted, by whom, of what.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) permit: Arc<Permit>,
    pub(crate) group: Group,
    pub(crate) kind: Kind,
    pub(crate) id: ResourceId,
    pub(crate) version: ApiVersion,
    pub(crate) sent: Value,
    pub(crate) way: Way,
    pub(crate) conditions: Conditions,
}

/// What must hold of what is there: `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
}

/// What has been written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Whether it was not there before.
    pub(crate) is_new: bool,
    pub(crate) operation: Operation,
    /// How it is while the operation lasts.
    pub(crate) shown: Value,
}

/// Under what the model is noted that has brought another image.
const IMAGE_SINCE: &str = "imageSince";

/// Everything is shown to whoever understands this.
const NEWEST: ApiVersion = ApiVersion::new(2099, 12, 31);

/// Where a machine says in which set it is, and of which kind that is.
const SETS: [(&str, Kind); 2] = [
    ("/properties/availabilitySet/id", Kind::AvailabilitySet),
    ("/properties/virtualMachineScaleSet/id", Kind::ScaleSet),
];

/// What the server says of a resource, whatever a client sends.
const OURS: [&str; 4] = ["id", "name", "type", "etag"];
const OUR_PROPERTIES: [&str; 6] =
    ["provisioningState", "vmId", "uniqueId", "timeCreated", "instanceView", "virtualMachines"];

/// Writes what somebody wants, and has the fleet become so.
pub(crate) async fn write(engine: &Engine, asked: Asked) -> Result<Written, ArmError> {
    let (kind, group, permit) = (asked.kind, asked.group.clone(), Arc::clone(&asked.permit));
    let (version, name) = (asked.version, asked.id.name().to_owned());
    let terms = permit.terms();
    let arranged = engine.arrange(terms, move |state| arrange(state, &asked)).await;
    let (arranged, is_new) = arranged.map_err(|problem| refusal::of(&problem))??;
    let operation =
        arranged.operation.ok_or_else(|| ArmError::new(500, "InternalServerError", "no operation"))?;
    let shown = engine.look(move |state| {
        let doing = if is_new { Provisioning::Creating } else { Provisioning::Updating };
        let found = find(state, (&permit, version), kind, &group, &name)?;
        let found = if kind == Kind::AvailabilitySet { found } else { found.being(doing) };
        Some(show(state, (&permit, version), &found, Expand::Nothing))
    });
    let shown = shown.await.map_err(|problem| refusal::of(&problem))?.unwrap_or_else(|| json!({}));
    Ok(Written { is_new, operation, shown })
}

/// What is to be done and written.
fn arrange(state: &State<'_>, asked: &Asked) -> Result<(Arrangement, bool), ArmError> {
    let Asked { permit, group, kind, id, version, sent, way, conditions } = asked;
    let before = find(state, (permit, *version), *kind, group, id.name());
    conditions.check(before.as_ref())?;
    if before.is_none() && *way == Way::Patch {
        return Err(no_resource(id));
    }
    let base = before.as_ref().map(|found| base(state, permit, found));
    let body = settle(kind.text(), base.as_ref(), &without_ours(sent.clone()), *version)?;
    let name = before.as_ref().map_or(id.name(), |found| found.id.name());
    check_references(state, group, *kind, base.as_ref(), &body)?;
    let (commands, link) = plan(state, *kind, name, before.as_ref().zip(base.as_ref()), &body)?;
    check_permit(state, permit, &commands)?;
    let notes = notes(state, before.as_ref().zip(base.as_ref()), &body);
    let paper = Paper::Put {
        id: before.as_ref().map_or(id, |found| &found.id).to_string(),
        link: Some(link),
        body: bytes(&body),
        notes: bytes(&notes),
    };
    let operation = Some(id.to_string());
    let told = Some(told("write_resource", *kind, id));
    Ok((Arrangement { commands, papers: vec![paper], asked: told, operation }, before.is_none()))
}

/// What the trail tells of something that is done to a resource.
pub(super) fn told(command: &str, kind: Kind, id: &ResourceId) -> Value {
    let mut told = json!({ "command": command, "resource": id.to_string() });
    let what = match kind {
        Kind::Machine => "machine",
        Kind::ScaleSet => "scale_set",
        Kind::AvailabilitySet => "tenant",
    };
    told[what] = json!(id.name());
    told
}

/// What is there now, without what only the server says of it.
pub(super) fn base(state: &State<'_>, permit: &Permit, found: &Found) -> Value {
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

/// What the server notes: the model of a scale set that has brought another image.
fn notes(state: &State<'_>, before: Option<(&Found, &Value)>, body: &Value) -> Value {
    let Some((found, base)) = before else { return json!({}) };
    let mut notes = found.notes.clone();
    if let Link::ScaleSet(set) = found.link
        && let Some(version) = image_since(state.cluster, set, image_noted(found), base, body)
    {
        notes[IMAGE_SINCE] = json!(version);
    }
    notes
}

/// The model of a scale set that has brought another image, if one did.
pub(super) fn image_noted(found: &Found) -> Option<u32> {
    found.notes[IMAGE_SINCE].as_u64().and_then(|version| u32::try_from(version).ok())
}

/// The set that a machine joins is in the group of the machine: both go with it.
fn check_references(
    state: &State<'_>,
    group: &Group,
    kind: Kind,
    base: Option<&Value>,
    body: &Value,
) -> Result<(), ArmError> {
    if kind != Kind::Machine {
        return Ok(());
    }
    for (place, kind) in SETS {
        let referred = |body: &Value| ResourceId::parse(body.pointer(place)?.as_str()?);
        let Some(id) = referred(body).filter(|id| id.is(kind.text())) else { continue };
        let was = base.and_then(referred);
        let stays = was.is_some_and(|was| was.key() == id.key());
        if !stays && (id.group.key() != group.id.key() || !is_there(state, kind, &id)) {
            return Err(no_resource(&id));
        }
    }
    Ok(())
}

/// What makes the fleet as a body wants it, and what the resource is in the rules then.
fn plan(
    state: &State<'_>,
    kind: Kind,
    name: &str,
    before: Option<(&Found, &Value)>,
    body: &Value,
) -> Result<(Vec<NamedCommand>, LinkTo), ArmError> {
    let cluster = state.cluster;
    let known = before.map(|(found, _)| LinkTo::Known(found.link));
    let before = before.map(|(found, base)| (found.link, base));
    let (commands, link) = match kind {
        Kind::Machine => {
            let before = before.and_then(|(link, base)| Some((machine(link)?, base)));
            let plan = plan_machine(cluster, name, before, body, domains(state, body))?;
            (plan.commands, LinkTo::Machine(plan.machine))
        }
        Kind::ScaleSet => {
            let before = before.and_then(|(link, base)| Some((scale_set(link)?, base)));
            let commands =
                plan_scale_set(cluster, name, before, body, &|machine| protection(state, machine))?;
            (commands, LinkTo::ScaleSet(name.to_owned()))
        }
        Kind::AvailabilitySet => {
            let before = before.and_then(|(link, base)| Some((tenant(link)?, base)));
            (plan_availability_set(cluster, name, before, body)?, LinkTo::Tenant(name.to_owned()))
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

/// Over how many domains the availability set is spread that a machine joins.
fn domains(state: &State<'_>, body: &Value) -> Domains {
    let set = body.pointer("/properties/availabilitySet/id").and_then(Value::as_str);
    let key = set.and_then(ResourceId::parse).map(|id| id.key());
    let entry = key.and_then(|key| state.catalogue.entry(&key));
    let body = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    let read = body.and_then(|body: Value| read_availability_set(&body).ok());
    read.map(|wanted| wanted.domains).unwrap_or_default()
}

/// Whether somebody may have all that done.
pub(crate) fn check_permit(
    state: &State<'_>,
    permit: &Permit,
    commands: &[NamedCommand],
) -> Result<(), ArmError> {
    permit.check_role(forewarn_control::shared::Role::Operator).map_err(|denied| refusal::denied(&denied))?;
    let mut checked = commands.iter().map(|command| permit.check_command(command, state.cluster));
    checked.try_for_each(|check| check).map_err(|denied| refusal::denied(&denied))
}

impl Conditions {
    /// Those of a request.
    pub(crate) fn of(call: &crate::arm::Call) -> Self {
        let header = |name: &str| call.header(name).map(str::to_owned);
        Self { if_match: header("if-match"), if_none_match: header("if-none-match") }
    }

    pub(super) fn check(&self, found: Option<&Found>) -> Result<(), ArmError> {
        self.check_edition(found.map(|found| found.edition))
    }

    /// Whether they hold of something that was written so often; or of nothing.
    pub(crate) fn check_edition(&self, edition: Option<u64>) -> Result<(), ArmError> {
        let fits = |wanted: &str| {
            let mut wanted =
                wanted.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
            edition.is_some_and(|edition| wanted.any(|tag| tag == "*" || tag == edition.to_string()))
        };
        let failed = self.if_match.as_deref().is_some_and(|wanted| !fits(wanted))
            || self.if_none_match.as_deref().is_some_and(fits);
        if failed { Err(refusal::of(&crate::engine::Problem::Changed)) } else { Ok(()) }
    }
}

/// Answers a PUT or a PATCH.
pub(super) async fn reply(visit: &Visit<'_>, kind: Kind, name: &str, way: Way) -> Result<Response, ArmError> {
    let call = visit.call;
    let asked = Asked {
        permit: Arc::clone(&call.permit),
        group: visit.group.clone(),
        kind,
        id: visit.id(kind, name),
        version: call.version()?,
        sent: call.json()?,
        way,
        conditions: Conditions::of(call),
    };
    let written = write(&visit.engine, asked).await?;
    if kind == Kind::AvailabilitySet {
        return Ok(answer::ok(written.shown));
    }
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::put(call, &visit.group.id.subscription, status, written.shown, &written.operation))
}
