//! GET of one resource.

use axum::response::Response;
use forewarn_control::Permit;
use forewarn_control::resource_id::{ResourceId, machine_id};
use forewarn_control::resources::Link;
use forewarn_lifecycle::ScaleSetId;
use forewarn_server::State;
use forewarn_server::group_of;
use forewarn_types::Moment;
use serde_json::{Value, json};

use super::lookup::{ComputeKind, FoundResource, flexible_set_of, found, show_context};
use super::{GroupScope, expand};
use crate::http::responses;
use crate::{
    ApiVersion, ArmError, Expand, InstanceBody, hide_newer, is_gone, machine_instance_view,
    scale_set_instance_view, show_availability_set, show_flexible_machine, show_machine, show_scale_set,
};

/// A resource as clients of an api-version see it.
pub(crate) fn show(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    found: &FoundResource,
    expand: Expand,
) -> Value {
    let context = show_context(state, version);
    let (kind, mut shown) = match found.link {
        Link::Machine(machine) => {
            let set = flexible_set_of(state.cluster, machine);
            let set = set.and_then(|set| found_set(state, (permit, version), set));
            let shown = match set {
                Some(set) => {
                    let body = state.durable.resources().linked(found.link).map(|_| &found.body);
                    let own = InstanceBody { body, etag: found.edition };
                    show_flexible_machine(&context, &set.stored(), own, machine, expand)
                }
                None => show_machine(&context, &found.stored(), machine, expand),
            };
            (ComputeKind::Machine, shown)
        }
        Link::ScaleSet(set) => (ComputeKind::ScaleSet, show_scale_set(&context, &found.stored(), set)),
        Link::Tenant(tenant) => {
            let machines = state.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
            let id = |machine: &forewarn_lifecycle::MachineId| -> Option<ResourceId> {
                machine_id(state.cluster, &group_of(state, Link::Machine(*machine)), *machine)
            };
            let there = machines.iter().filter(|machine| !is_gone(state.cluster, **machine));
            let members: Vec<_> = there.filter_map(id).collect();
            (ComputeKind::AvailabilitySet, show_availability_set(&context, &found.stored(), tenant, &members))
        }
    };
    hide_newer(kind.text(), &mut shown, version);
    shown
}

/// The scale set of an instance.
pub(super) fn found_set(
    state: &State<'_>,
    asker: (&Permit, ApiVersion),
    set: ScaleSetId,
) -> Option<FoundResource> {
    let link = Link::ScaleSet(set);
    found(state, asker, link, &group_of(state, link))
}

pub(super) async fn one(scope: &GroupScope<'_>, kind: ComputeKind, name: &str) -> Result<Response, ArmError> {
    let (permit, version) = (std::sync::Arc::clone(&scope.request.permit), scope.request.version()?);
    let expand = expand(scope.request);
    let shown =
        scope.look(kind, name, move |state, found| Ok(show(state, (&permit, version), &found, expand)));
    shown.map(responses::ok)
}

/// Instance view of a resource.
pub(super) async fn instance_view(
    scope: &GroupScope<'_>,
    kind: ComputeKind,
    name: &str,
) -> Result<Response, ArmError> {
    let (permit, version) = (std::sync::Arc::clone(&scope.request.permit), scope.request.version()?);
    let view = move |state: &State<'_>, found: FoundResource| {
        let view = |context: &crate::ShowContext<'_>| match found.link {
            Link::Machine(machine) if flexible_set_of(state.cluster, machine).is_none() => {
                machine_instance_view(context, &found.stored(), machine)
            }
            Link::Machine(_) => {
                let shown = show(state, (&permit, version), &found, Expand::InstanceView);
                shown.pointer("/properties/instanceView").cloned().unwrap_or_else(|| json!({}))
            }
            Link::ScaleSet(set) => scale_set_instance_view(context, &found.stored(), set),
            Link::Tenant(_) => json!({}),
        };
        Ok(view(&show_context(state, version)))
    };
    scope.look(kind, name, view).map(responses::ok)
}

/// Sizes that a scale set can be changed to: all of them.
pub(super) async fn skus(scope: &GroupScope<'_>, name: &str) -> Result<Response, ArmError> {
    let skus = |_: &State<'_>, found: FoundResource| {
        let sku = found.body.get("sku").cloned().unwrap_or_else(|| json!({}));
        let capacity =
            json!({ "minimum": 0, "maximum": 1000, "defaultCapacity": 1, "scaleType": "Automatic" });
        Ok(json!({ "resourceType": ComputeKind::ScaleSet.text(), "sku": sku, "capacity": capacity }))
    };
    scope.look(ComputeKind::ScaleSet, name, skus).map(|sku| responses::list(vec![sku]))
}

/// Progress of a scale set's instances towards its latest model.
pub(super) async fn rolling_upgrade(scope: &GroupScope<'_>, name: &str) -> Result<Response, ArmError> {
    let latest = |state: &State<'_>, found: FoundResource| {
        let Link::ScaleSet(id) = found.link else { return Ok(json!({})) };
        let set = state.cluster.scale_set(id);
        let newest = set.map(|set| set.model_version);
        let instances = crate::instances_there(state.cluster, id);
        let versions = instances.iter().filter_map(|(_, id)| state.cluster.machine(*id));
        let (done, waiting): (Vec<_>, Vec<_>) =
            versions.partition(|machine| Some(machine.model_version) == newest);
        let code = if waiting.is_empty() { "Completed" } else { "RollingForward" };
        let progress = json!({
            "successfulInstanceCount": done.len(),
            "failedInstanceCount": 0,
            "inProgressInstanceCount": 0,
            "pendingInstanceCount": waiting.len(),
        });
        let policy = found.body.pointer("/properties/upgradePolicy/rollingUpgradePolicy").cloned();
        Ok(json!({
            "location": found.body["location"],
            "properties": {
                "policy": policy.unwrap_or_else(|| json!({})),
                "runningStatus": { "code": code, "lastActionTime": Moment(state.now.wall).to_string() },
                "progress": progress,
            },
        }))
    };
    scope.look(ComputeKind::ScaleSet, name, latest).map(responses::ok)
}
