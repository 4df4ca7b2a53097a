//! Instances of scale sets, below their set.

use forewarn_lifecycle::{MachineId, Shape};
use serde_json::{Value, json};

use super::edit::{complete, put, put_if, take, text};
use super::model::{fill_machine, made_from};
use super::standing::provisioning;
use super::view::instance_view;
use super::{Expand, InstanceBody, Provisioning, ShowContext, StoredResource, put_etag};
use crate::body::at;
use crate::kind::INSTANCES;
use crate::read::scale_set::MODEL;
use forewarn_control::resource_id::{instance_id, instance_word};
use forewarn_types::Unique;

/// An instance of a scale set, made from the stored set; `own` is the body of the instance itself.
/// An empty object, if it does not exist.
#[must_use]
pub fn show_instance(
    context: &ShowContext<'_>,
    set: &StoredResource<'_>,
    own: InstanceBody<'_>,
    id: MachineId,
    expand: Expand,
) -> Value {
    let Some(mut shown) = bare(context, set, id) else { return json!({}) };
    context.put_tags(&mut shown, id);
    if let Some(own) = own.body {
        put_if(&mut shown, "tags", at(own, "tags").cloned());
        if let (Some(properties), Some(more)) = (shown.get_mut("properties"), own.get("properties")) {
            complete(properties, more);
        }
    }
    take(&mut shown, "properties.instanceView");
    let state = provisioning(context.cluster, id, Provisioning::Succeeded);
    put(&mut shown, "properties.provisioningState", state.as_str());
    put_etag(context, own.etag, &mut shown);
    if expand == Expand::InstanceView {
        let mut view = instance_view(context, id, &shown, state, set.created);
        let group = context.cluster.machine(id).map(|machine| Unique::PlacementGroup(machine.tenant));
        put_if(&mut view, "placementGroupId", group.map(|group| group.id(context.seed)));
        put(&mut shown, "properties.instanceView", view);
    }
    shown
}

/// Instance view of an instance of a scale set.
#[must_use]
pub fn instance_instance_view(
    context: &ShowContext<'_>,
    set: &StoredResource<'_>,
    own: InstanceBody<'_>,
    id: MachineId,
) -> Value {
    let mut shown = show_instance(context, set, own, id, Expand::InstanceView);
    take(&mut shown, "properties.instanceView").unwrap_or_else(|| json!({}))
}

/// The members that follow from the scale set and from the rules.
fn bare(context: &ShowContext<'_>, set: &StoredResource<'_>, id: MachineId) -> Option<Value> {
    let machine = context.cluster.machine(id)?;
    let Shape::PlacementGroup(scale_set) = context.cluster.tenant(machine.tenant)?.shape else { return None };
    let scale_set = context.cluster.scale_set(scale_set)?;
    let mut shown = json!({
        "name": machine.name.as_str(),
        "id": instance_id(set.id, scale_set, machine).to_string(),
        "type": INSTANCES,
    });
    complete(&mut shown, &made_from(context, set.body, id));
    put(&mut shown, "instanceId", instance_word(scale_set, machine));
    put_if(&mut shown, "sku.name", text(set.body, "sku.name"));
    put(&mut shown, "sku.tier", text(set.body, "sku.tier").unwrap_or("Standard"));
    let vm_id = Unique::Machine(id).id(context.seed);
    let is_latest = machine.model_version == scale_set.model_version;
    put(&mut shown, "properties.latestModelApplied", is_latest);
    put(&mut shown, "properties.modelDefinitionApplied", "VirtualMachineScaleSet");
    put(&mut shown, "properties.vmId", vm_id.as_str());
    fill_machine(&mut shown, machine.name.as_str(), &vm_id);
    let network = at(set.body, &format!("{MODEL}.networkProfile.networkInterfaceConfigurations"));
    put_if(
        &mut shown,
        "properties.networkProfileConfiguration.networkInterfaceConfigurations",
        network.cloned(),
    );
    Some(shown)
}
