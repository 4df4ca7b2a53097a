//! Virtual machines: standalone, in availability sets, and as instances of flexible scale sets.

use forewarn_lifecycle::{Machine, MachineId, Shape};
use serde_json::{Value, json};

use super::edit::{complete, fill, put, put_if, take, text};
use super::model::{fill_eviction, fill_machine, has_zones, made_from, plain_storage};
use super::standing::provisioning;
use super::view::instance_view;
use super::{Expand, Kept, Own, Sight, put_state, resource};
use crate::body::at;
use crate::kind::VIRTUAL_MACHINES;
use crate::read_scale_set::MODEL;
use crate::refresh::refresh_machine;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resource_id::{availability_set_id, scale_set_id};
use forewarn_imds::{USUAL_SIZE, Unique};

/// What of the model of a scale set its machines have as it is.
const ALIKE: [&str; 6] =
    ["billingProfile", "diagnosticsProfile", "evictionPolicy", "licenseType", "priority", "securityProfile"];

/// A virtual machine.
#[must_use]
pub fn show_machine(sight: &Sight<'_>, kept: &Kept<'_>, id: MachineId, expand: Expand) -> Value {
    let mut shown = resource(sight, kept, VIRTUAL_MACHINES);
    take(&mut shown, "properties.instanceView");
    let state = provisioning(sight.cluster, id, kept.state);
    if let Some(machine) = sight.cluster.machine(id) {
        put(&mut shown, "properties.vmId", Unique::Machine(id).id(sight.seed));
        overlay(sight, kept, id, machine, &mut shown);
    }
    put_state(sight, kept, state, &mut shown);
    if expand == Expand::InstanceView {
        let view = instance_view(sight, id, &shown, state, kept.created);
        put(&mut shown, "properties.instanceView", view);
    }
    shown
}

fn overlay(sight: &Sight<'_>, kept: &Kept<'_>, id: MachineId, machine: &Machine, shown: &mut Value) {
    sight.put_tags(shown, id);
    if has_zones(shown) {
        put_if(shown, "zones", sight.zone(id).map(|zone| json!([zone])));
    }
    fill_machine(shown, kept.id.name(), &Unique::Machine(id).id(sight.seed));
    fill(shown, "properties.networkProfile.networkInterfaces", json!([]));
    refresh_machine(sight.cluster, id, shown);
    fill_eviction(shown, "properties", machine.priority);
    let Some(tenant) = sight.cluster.tenant(machine.tenant) else { return };
    let group = &kept.id.group;
    match tenant.shape {
        Shape::StandaloneMachine | Shape::CloudService => {}
        Shape::AvailabilitySet => {
            put_reference(shown, "properties.availabilitySet.id", &availability_set_id(group, &tenant.name));
        }
        Shape::PlacementGroup(set) => {
            let set = sight.cluster.scale_set(set).map(|set| scale_set_id(group, &set.name));
            if let Some(set) = set {
                put_reference(shown, "properties.virtualMachineScaleSet.id", &set);
            }
        }
    }
}

/// Says that something belongs to a resource, unless its client has said so already, in whatever spelling.
fn put_reference(shown: &mut Value, path: &str, id: &ResourceId) {
    let kept = text(shown, path).and_then(ResourceId::parse);
    if !kept.is_some_and(|kept| kept.name().eq_ignore_ascii_case(id.name())) {
        put(shown, path, id.to_string());
    }
}

/// How a virtual machine is at the moment.
#[must_use]
pub fn machine_instance_view(sight: &Sight<'_>, kept: &Kept<'_>, id: MachineId) -> Value {
    let mut shown = show_machine(sight, kept, id, Expand::InstanceView);
    take(&mut shown, "properties.instanceView").unwrap_or_else(|| json!({}))
}

/// The body of a machine that no client has sent.
#[must_use]
pub fn plain_machine(sight: &Sight<'_>, id: MachineId) -> Value {
    let name = sight.cluster.machine(id).map(|machine| machine.name.to_string()).unwrap_or_default();
    let mut body = json!({ "location": sight.location(id) });
    sight.put_tags(&mut body, id);
    if !is_in_availability_set(sight, id) {
        put_if(&mut body, "zones", sight.zone(id).map(|zone| json!([zone])));
    }
    put(
        &mut body,
        "properties",
        json!({
            "hardwareProfile": { "vmSize": USUAL_SIZE },
            "storageProfile": plain_storage(),
            "osProfile": { "computerName": name },
            // What is not there cannot be referred to: clients look up every interface that is named here.
            "networkProfile": { "networkInterfaces": [] },
        }),
    );
    body
}

/// What is in an availability set cannot be in a zone, as far as clients know.
fn is_in_availability_set(sight: &Sight<'_>, id: MachineId) -> bool {
    let tenant = sight.cluster.machine(id).and_then(|machine| sight.cluster.tenant(machine.tenant));
    tenant.is_some_and(|tenant| tenant.shape == Shape::AvailabilitySet)
}

/// The body of an instance of a flexible scale set as a virtual machine; `own` is what a client has sent of the instance.
fn flexible_machine(sight: &Sight<'_>, set: &Kept<'_>, own: Option<&Value>, id: MachineId) -> Value {
    let mut body = made_from(sight, set.body, id);
    for member in ALIKE {
        let value = at(set.body, &format!("{MODEL}.{member}")).cloned();
        put_if(&mut body, &format!("properties.{member}"), value);
    }
    put(&mut body, "properties.networkProfile", json!({ "networkInterfaces": [] }));
    put(&mut body, "properties.virtualMachineScaleSet.id", set.id.to_string());
    if let Some(own) = own.and_then(|own| own.get("properties"))
        && let Some(properties) = body.get_mut("properties")
    {
        complete(properties, own);
    }
    body
}

/// An instance of a flexible scale set as a virtual machine.
#[must_use]
pub fn show_flexible_machine(
    sight: &Sight<'_>,
    set: &Kept<'_>,
    own: Own<'_>,
    id: MachineId,
    expand: Expand,
) -> Value {
    let body = flexible_machine(sight, set, own.body, id);
    let name = sight.cluster.machine(id).map(|machine| machine.name.to_string()).unwrap_or_default();
    let vm = set.id.group.resource("Microsoft.Compute", "virtualMachines", &name);
    let kept = Kept { id: &vm, body: &body, etag: own.etag, state: super::Provisioning::Succeeded, ..*set };
    show_machine(sight, &kept, id, expand)
}
