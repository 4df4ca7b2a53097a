//! Showing one of them.

use axum::response::Response;
use forewarn_azure::{
    ApiVersion, ArmError, Expand, Own, hide_newer, is_gone, machine_instance_view, scale_set_instance_view,
    show_availability_set, show_flexible_machine, show_machine, show_scale_set,
};
use forewarn_control::resource_id::{ResourceId, machine_id};
use forewarn_control::shared::Link;
use forewarn_imds::Moment;
use forewarn_lifecycle::ScaleSetId;
use serde_json::{Value, json};

use super::found::{Found, Kind, flexible_set_of, found, group_of, sight};
use super::{Visit, expand};
use crate::arm::answer;
use crate::engine::State;
use crate::operator::Permit;

/// Something that is there, as a client of that version sees it.
pub(crate) fn show(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    found: &Found,
    expand: Expand,
) -> Value {
    let sight = sight(state, version);
    let (kind, mut shown) = match found.link {
        Link::Machine(machine) => {
            let set = flexible_set_of(state.cluster, machine);
            let set = set.and_then(|set| found_set(state, (permit, version), set));
            let shown = match set {
                Some(set) => {
                    let body = state.catalogue.entry_of(state.id, found.link).map(|_| &found.body);
                    let own = Own { body, etag: found.edition };
                    show_flexible_machine(&sight, &set.kept(), own, machine, expand)
                }
                None => show_machine(&sight, &found.kept(), machine, expand),
            };
            (Kind::Machine, shown)
        }
        Link::ScaleSet(set) => (Kind::ScaleSet, show_scale_set(&sight, &found.kept(), set)),
        Link::Tenant(tenant) => {
            let machines = state.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
            let id = |machine: &forewarn_lifecycle::MachineId| -> Option<ResourceId> {
                machine_id(state.cluster, &group_of(state, Link::Machine(*machine)), *machine)
            };
            let there = machines.iter().filter(|machine| !is_gone(state.cluster, **machine));
            let members: Vec<_> = there.filter_map(id).collect();
            (Kind::AvailabilitySet, show_availability_set(&sight, &found.kept(), tenant, &members))
        }
    };
    hide_newer(kind.text(), &mut shown, version);
    shown
}

/// The scale set of an instance.
pub(super) fn found_set(state: &State<'_>, asker: (&Permit, ApiVersion), set: ScaleSetId) -> Option<Found> {
    let link = Link::ScaleSet(set);
    found(state, asker, link, &group_of(state, link))
}

pub(super) async fn one(visit: &Visit<'_>, kind: Kind, name: &str) -> Result<Response, ArmError> {
    let (permit, version) = (std::sync::Arc::clone(&visit.call.permit), visit.call.version()?);
    let expand = expand(visit.call);
    let shown =
        visit.look(kind, name, move |state, found| Ok(show(state, (&permit, version), &found, expand)));
    shown.await.map(answer::ok)
}

/// How something is at the moment.
pub(super) async fn instance_view(visit: &Visit<'_>, kind: Kind, name: &str) -> Result<Response, ArmError> {
    let (permit, version) = (std::sync::Arc::clone(&visit.call.permit), visit.call.version()?);
    let view = move |state: &State<'_>, found: Found| {
        let view = |sight: &forewarn_azure::Sight<'_>| match found.link {
            Link::Machine(machine) if flexible_set_of(state.cluster, machine).is_none() => {
                machine_instance_view(sight, &found.kept(), machine)
            }
            Link::Machine(_) => {
                let shown = show(state, (&permit, version), &found, Expand::InstanceView);
                shown.pointer("/properties/instanceView").cloned().unwrap_or_else(|| json!({}))
            }
            Link::ScaleSet(set) => scale_set_instance_view(sight, &found.kept(), set),
            Link::Tenant(_) => json!({}),
        };
        Ok(view(&sight(state, version)))
    };
    visit.look(kind, name, view).await.map(answer::ok)
}

/// The sizes to which a scale set can be changed: all are alike here.
pub(super) async fn skus(visit: &Visit<'_>, name: &str) -> Result<Response, ArmError> {
    let skus = |_: &State<'_>, found: Found| {
        let sku = found.body.get("sku").cloned().unwrap_or_else(|| json!({}));
        let capacity =
            json!({ "minimum": 0, "maximum": 1000, "defaultCapacity": 1, "scaleType": "Automatic" });
        Ok(json!({ "resourceType": Kind::ScaleSet.text(), "sku": sku, "capacity": capacity }))
    };
    visit.look(Kind::ScaleSet, name, skus).await.map(|sku| answer::list(vec![sku]))
}

/// How far the instances of a scale set have got with its latest model.
pub(super) async fn rolling_upgrade(visit: &Visit<'_>, name: &str) -> Result<Response, ArmError> {
    let latest = |state: &State<'_>, found: Found| {
        let Link::ScaleSet(id) = found.link else { return Ok(json!({})) };
        let set = state.cluster.scale_set(id);
        let newest = set.map(|set| set.model_version);
        let instances = forewarn_azure::instances_there(state.cluster, id);
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
    visit.look(Kind::ScaleSet, name, latest).await.map(answer::ok)
}
