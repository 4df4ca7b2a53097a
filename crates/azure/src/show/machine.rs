//! Virtual machines: standalone, in availability sets, and as instances of flexible scale sets.

use forewarn_lifecycle::{Machine, MachineId, Shape};
use serde_json::{Value, json};

use super::edit::{complete, fill, put, put_if, take, text};
use super::model::{fill_eviction, fill_machine, has_zones, made_from, plain_storage};
use super::standing::provisioning;
use super::view::instance_view;
use super::{Expand, InstanceBody, ShowContext, StoredResource, put_state, resource};
use crate::body::at;
use crate::kind::VIRTUAL_MACHINES;
use crate::read::scale_set::MODEL;
use crate::refresh::refresh_machine;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resource_id::{availability_set_id, scale_set_id};
use forewarn_imds::USUAL_SIZE;
use forewarn_types::Unique;

/// Members of a scale set's model that its machines have unchanged.
const ALIKE: [&str; 6] =
    ["billingProfile", "diagnosticsProfile", "evictionPolicy", "licenseType", "priority", "securityProfile"];

#[must_use]
pub fn show_machine(
    context: &ShowContext<'_>,
    stored: &StoredResource<'_>,
    id: MachineId,
    expand: Expand,
) -> Value {
    let mut shown = resource(context, stored, VIRTUAL_MACHINES);
    take(&mut shown, "properties.instanceView");
    let state = provisioning(context.cluster, id, stored.state);
    if let Some(machine) = context.cluster.machine(id) {
        put(&mut shown, "properties.vmId", Unique::Machine(id).id(context.seed));
        overlay(context, stored, id, machine, &mut shown);
    }
    put_state(context, stored, state, &mut shown);
    if expand == Expand::InstanceView {
        let view = instance_view(context, id, &shown, state, stored.created);
        put(&mut shown, "properties.instanceView", view);
    }
    shown
}

fn overlay(
    context: &ShowContext<'_>,
    stored: &StoredResource<'_>,
    id: MachineId,
    machine: &Machine,
    shown: &mut Value,
) {
    context.put_tags(shown, id);
    if has_zones(shown) {
        put_if(shown, "zones", context.zone(id).map(|zone| json!([zone])));
    }
    fill_machine(shown, stored.id.name(), &Unique::Machine(id).id(context.seed));
    fill(shown, "properties.networkProfile.networkInterfaces", json!([]));
    refresh_machine(context.cluster, id, shown);
    fill_eviction(shown, "properties", machine.priority);
    let Some(tenant) = context.cluster.tenant(machine.tenant) else { return };
    let group = &stored.id.group;
    match tenant.shape {
        Shape::StandaloneMachine | Shape::CloudService => {}
        Shape::AvailabilitySet => {
            put_reference(shown, "properties.availabilitySet.id", &availability_set_id(group, &tenant.name));
        }
        Shape::PlacementGroup(set) => {
            let set = context.cluster.scale_set(set).map(|set| scale_set_id(group, &set.name));
            if let Some(set) = set {
                put_reference(shown, "properties.virtualMachineScaleSet.id", &set);
            }
        }
    }
}

/// Sets a reference to a resource, unless the body has it already, in any case.
fn put_reference(shown: &mut Value, path: &str, id: &ResourceId) {
    let stored = text(shown, path).and_then(ResourceId::parse);
    if !stored.is_some_and(|stored| stored.name().eq_ignore_ascii_case(id.name())) {
        put(shown, path, id.to_string());
    }
}

/// Instance view of a virtual machine.
#[must_use]
pub fn machine_instance_view(context: &ShowContext<'_>, stored: &StoredResource<'_>, id: MachineId) -> Value {
    let mut shown = show_machine(context, stored, id, Expand::InstanceView);
    take(&mut shown, "properties.instanceView").unwrap_or_else(|| json!({}))
}

/// The body of a machine that no client has sent.
#[must_use]
pub fn plain_machine(context: &ShowContext<'_>, id: MachineId) -> Value {
    let name = context.cluster.machine(id).map(|machine| machine.name.to_string()).unwrap_or_default();
    let mut body = json!({ "location": context.location(id) });
    context.put_tags(&mut body, id);
    if !is_in_availability_set(context, id) {
        put_if(&mut body, "zones", context.zone(id).map(|zone| json!([zone])));
    }
    put(
        &mut body,
        "properties",
        json!({
            "hardwareProfile": { "vmSize": USUAL_SIZE },
            "storageProfile": plain_storage(),
            "osProfile": { "computerName": name },
            // Clients look up every interface that is named here, and these do not exist.
            "networkProfile": { "networkInterfaces": [] },
        }),
    );
    body
}

/// Machines of an availability set have no zone.
fn is_in_availability_set(context: &ShowContext<'_>, id: MachineId) -> bool {
    let tenant = context.cluster.machine(id).and_then(|machine| context.cluster.tenant(machine.tenant));
    tenant.is_some_and(|tenant| tenant.shape == Shape::AvailabilitySet)
}

/// The body of an instance of a flexible scale set as a virtual machine; `own` is the body of the instance itself.
fn flexible_machine(
    context: &ShowContext<'_>,
    set: &StoredResource<'_>,
    own: Option<&Value>,
    id: MachineId,
) -> Value {
    let mut body = made_from(context, set.body, id);
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
    context: &ShowContext<'_>,
    set: &StoredResource<'_>,
    own: InstanceBody<'_>,
    id: MachineId,
    expand: Expand,
) -> Value {
    let body = flexible_machine(context, set, own.body, id);
    let name = context.cluster.machine(id).map(|machine| machine.name.to_string()).unwrap_or_default();
    let vm = set.id.group.resource("Microsoft.Compute", "virtualMachines", &name);
    let stored = StoredResource {
        id: &vm,
        body: &body,
        etag: own.etag,
        state: super::Provisioning::Succeeded,
        ..*set
    };
    show_machine(context, &stored, id, expand)
}
