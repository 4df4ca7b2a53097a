//! Updates stored bodies to the state of the rules: the fleet may have changed by other means than Azure clients.
//!
//! A request is merged into the actual state, not into the last body; otherwise a client that scales out would undo
//! changes of an operator. Members that already match stay as written.

use forewarn_lifecycle::{
    Cluster, EvictionPolicy, MachineId, Orchestration, Priority, ScaleSetId, Shape, Tenant, TenantId,
};
use serde_json::{Map, Value, json};

use super::body::at;
use super::policy::refresh_policy;
use super::presence::is_leaving;
use super::profile::refresh_profile;
use crate::read::common::read_priority;
use crate::read::scale_set::{read_upgrade, upgrade_body};
use forewarn_control::UpgradeWord;

/// Updates the body of a scale set: capacity, mode, priority, profile and policy.
pub(super) fn refresh_scale_set(cluster: &Cluster, id: ScaleSetId, body: &mut Value) {
    let Some(set) = cluster.scale_set(id) else { return };
    let groups = set.groups.iter().filter_map(|group| cluster.tenant(*group));
    let staying = groups.flat_map(Tenant::machines).filter(|machine| !is_leaving(cluster, **machine)).count();
    write(body, "sku", "capacity", json!(staying));
    let orchestration = match set.orchestration {
        Orchestration::Uniform => "Uniform",
        Orchestration::Flexible => "Flexible",
    };
    let was = at(body, "properties.orchestrationMode").and_then(Value::as_str).unwrap_or("Uniform");
    if !was.eq_ignore_ascii_case(orchestration) {
        write(body, "properties", "orchestrationMode", json!(orchestration));
    }
    let (was, is) = (read_upgrade(body).ok(), UpgradeWord::from(set.upgrade));
    if was != Some(is) {
        write(body, "properties", "upgradePolicy", upgrade_body(is));
    }
    let properties = object(body, "properties");
    refresh_policy(properties, set.policy);
    let model = object(properties, "virtualMachineProfile");
    refresh_priority(model, set.priority);
    refresh_profile(model, set.model);
}

/// Updates the body of a machine: priority, profile and, for a standalone one, policy.
pub(super) fn refresh_machine(cluster: &Cluster, id: MachineId, body: &mut Value) {
    let Some(machine) = cluster.machine(id) else { return };
    let properties = object(body, "properties");
    refresh_priority(properties, machine.priority);
    refresh_profile(properties, machine.profile);
    if let Some(tenant) = cluster.tenant(machine.tenant)
        && tenant.shape == Shape::StandaloneMachine
    {
        refresh_policy(properties, tenant.policy);
    }
}

/// Updates the body of an availability set: its policy.
pub(super) fn refresh_availability_set(cluster: &Cluster, id: TenantId, body: &mut Value) {
    if let Some(tenant) = cluster.tenant(id) {
        refresh_policy(object(body, "properties"), tenant.policy);
    }
}

fn refresh_priority(holder: &mut Value, is: Priority) {
    if read_priority(holder) == Ok(is) {
        return;
    }
    let (Value::Object(members), eviction) = (
        holder,
        match is {
            Priority::Regular => None,
            Priority::Spot(EvictionPolicy::Deallocate) => Some("Deallocate"),
            Priority::Spot(EvictionPolicy::Delete) => Some("Delete"),
        },
    ) else {
        return;
    };
    members.shift_remove("evictionPolicy");
    match eviction {
        Some(eviction) => {
            members.insert("priority".to_owned(), json!("Spot"));
            members.insert("evictionPolicy".to_owned(), json!(eviction));
        }
        None => {
            members.insert("priority".to_owned(), json!("Regular"));
        }
    }
}

/// A member that is an object, created if necessary.
fn object<'a>(holder: &'a mut Value, name: &str) -> &'a mut Value {
    if !holder.is_object() {
        *holder = Value::Object(Map::new());
    }
    let found = &mut holder[name];
    if !found.is_object() {
        *found = Value::Object(Map::new());
    }
    found
}

fn write(body: &mut Value, holder: &str, name: &str, value: Value) {
    object(body, holder)[name] = value;
}

#[cfg(test)]
mod tests;
