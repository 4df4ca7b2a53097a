//! Scale sets, without their instances.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{MachineId, Orchestration, ScaleSet, ScaleSetId};
use serde_json::{Value, json};

use super::edit::{fill, put, put_if};
use super::model::{fill_eviction, plain_storage};
use super::standing::{PowerState, provisioning};
use super::view::{code_of, code_of_power, status_of};
use super::{Provisioning, ShowContext, StoredResource, put_state, resource};
use crate::body::at;
use crate::kind::SCALE_SETS;
use crate::presence::instances_there;
use crate::read::scale_set::MODEL;
use crate::refresh::refresh_scale_set;
use forewarn_control::FAULT_DOMAINS;
use forewarn_imds::USUAL_SIZE;
use forewarn_types::Unique;

/// Fault domains of a scale set.
const FAULT_DOMAINS_MAX: u64 = 5;

#[must_use]
pub fn show_scale_set(context: &ShowContext<'_>, stored: &StoredResource<'_>, id: ScaleSetId) -> Value {
    let mut shown = resource(context, stored, SCALE_SETS);
    if let Some(set) = context.cluster.scale_set(id) {
        overlay(context, id, set, &mut shown);
        put(&mut shown, "properties.uniqueId", Unique::ScaleSet(id).id(context.seed));
    }
    put_state(context, stored, stored.state, &mut shown);
    shown
}

fn overlay(context: &ShowContext<'_>, id: ScaleSetId, set: &ScaleSet, shown: &mut Value) {
    refresh_scale_set(context.cluster, id, shown);
    fill(shown, "sku.name", USUAL_SIZE);
    fill(shown, "sku.tier", "Standard");
    match set.orchestration {
        Orchestration::Uniform => {
            put(shown, "properties.orchestrationMode", "Uniform");
            fill(shown, "properties.singlePlacementGroup", true);
            fill(shown, "properties.overprovision", true);
            fill(shown, "properties.doNotRunExtensionsOnOverprovisionedVMs", false);
        }
        Orchestration::Flexible => {
            put(shown, "properties.orchestrationMode", "Flexible");
            fill(shown, "properties.singlePlacementGroup", false);
        }
    }
    if set.groups.len() > 1 {
        put(shown, "properties.singlePlacementGroup", false);
    }
    // Another mode is already in the body.
    fill(shown, "properties.upgradePolicy.mode", "Manual");
    fill_eviction(shown, MODEL, set.priority);
    put_fault_domains(context, &instances_there(context.cluster, id), shown);
}

/// At least the used domains, at most those that clients can name.
fn put_fault_domains(context: &ShowContext<'_>, instances: &[(u32, MachineId)], shown: &mut Value) {
    let path = "properties.platformFaultDomainCount";
    let machines = instances.iter().filter_map(|(_, id)| context.cluster.machine(*id));
    let used = machines.map(|machine| u64::from(machine.fault_domain.0) + 1).max().unwrap_or(0);
    let given = at(shown, path).and_then(Value::as_u64).unwrap_or(FAULT_DOMAINS.into());
    put(shown, path, given.max(used).min(FAULT_DOMAINS_MAX));
}

/// Instance view of a scale set: the number of instances in each state.
#[must_use]
pub fn scale_set_instance_view(
    context: &ShowContext<'_>,
    stored: &StoredResource<'_>,
    id: ScaleSetId,
) -> Value {
    let (mut states, mut powers) = (BTreeMap::new(), BTreeMap::new());
    for (_, machine) in instances_there(context.cluster, id) {
        let state = provisioning(context.cluster, machine, Provisioning::Succeeded);
        *states.entry(code_of(state)).or_insert(0_usize) += 1;
        *powers.entry(code_of_power(PowerState::of(context.cluster, machine))).or_insert(0_usize) += 1;
    }
    let summary = states.into_iter().chain(powers);
    let summary: Vec<_> = summary.map(|(code, count)| json!({ "code": code, "count": count })).collect();
    json!({
        "virtualMachine": { "statusesSummary": summary },
        "statuses": [status_of(stored.state, stored.created)],
    })
}

/// The body of a scale set that no client has sent.
#[must_use]
pub fn plain_scale_set(context: &ShowContext<'_>, id: ScaleSetId) -> Value {
    let name = context.cluster.scale_set(id).map(|set| set.name.to_string()).unwrap_or_default();
    let instances = instances_there(context.cluster, id);
    let location = instances.first().map_or(context.site.location.as_str(), |(_, id)| context.location(*id));
    let mut body = json!({
        "location": location,
        "sku": { "name": USUAL_SIZE, "tier": "Standard" },
    });
    // All instances have a zone, or the set has none.
    let zones: Option<BTreeSet<_>> = instances.iter().map(|(_, id)| context.zone(*id)).collect();
    put_if(&mut body, "zones", zones.filter(|zones| !zones.is_empty()).map(|zones| json!(zones)));
    put(
        &mut body,
        MODEL,
        json!({
            "storageProfile": plain_storage(),
            "osProfile": { "computerNamePrefix": name },
            "networkProfile": { "networkInterfaceConfigurations": [] },
        }),
    );
    body
}
