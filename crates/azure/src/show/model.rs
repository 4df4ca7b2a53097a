//! Members of machines: image, size, priority; and defaults for those that clients leave out.

use forewarn_lifecycle::{Cluster, MachineId, Priority, Shape};
use serde_json::{Value, json};

use super::ShowContext;
use super::edit::{fill, put, put_if, take, text};
use crate::body::at;
use crate::read::scale_set::MODEL;
use forewarn_imds::{OsType, USUAL_SIZE, computer_name};

/// The operating system of the machine that is described at `holder`.
pub(super) fn os_type(body: &Value, holder: &str) -> OsType {
    let is_windows = at(body, &format!("{holder}.osProfile.windowsConfiguration")).is_some()
        || text(body, &format!("{holder}.storageProfile.osDisk.osType"))
            .is_some_and(|os| os.eq_ignore_ascii_case("Windows"));
    if is_windows { OsType::Windows } else { OsType::Linux }
}

/// Default image and disk.
pub(super) fn plain_storage() -> Value {
    json!({
        "imageReference": {
            "publisher": "Canonical",
            "offer": "0001-com-ubuntu-server-jammy",
            "sku": "22_04-lts-gen2",
            "version": "latest",
        },
        "osDisk": {
            "osType": "Linux",
            "createOption": "FromImage",
            "caching": "ReadWrite",
            "managedDisk": { "storageAccountType": "Premium_LRS" },
        },
    })
}

/// Adds the members that every machine has, where the client left them out.
pub(super) fn fill_machine(body: &mut Value, name: &str, vm_id: &str) {
    fill(body, "properties.hardwareProfile.vmSize", USUAL_SIZE);
    let os = os_type(body, "properties").as_str();
    fill(body, "properties.storageProfile.osDisk.osType", os);
    let disk = format!("{name}_OsDisk_1_{}", vm_id.replace('-', ""));
    fill(body, "properties.storageProfile.osDisk.name", disk);
    fill(body, "properties.storageProfile.dataDisks", json!([]));
    if at(body, "properties.osProfile").is_some() {
        fill(body, "properties.osProfile.computerName", name);
        fill(body, "properties.osProfile.secrets", json!([]));
        fill(body, "properties.osProfile.allowExtensionOperations", true);
        fill(body, "properties.osProfile.requireGuestProvisionSignal", true);
    }
}

/// Members of a machine from its scale set: location, tags, and the properties of the model.
pub(super) fn made_from(context: &ShowContext<'_>, set: &Value, id: MachineId) -> Value {
    let mut made = json!({ "location": text(set, "location").unwrap_or(context.location(id)) });
    put_if(&mut made, "tags", at(set, "tags").cloned());
    if has_zones(set) {
        put_if(&mut made, "zones", context.zone(id).map(|zone| json!([zone])));
    }
    put(&mut made, "properties", from_model(set, instance_computer_name(context.cluster, set, id)));
    made
}

/// The properties of a machine that is made from the model of a scale set.
fn from_model(set: &Value, computer_name: String) -> Value {
    let part = |path: &str| at(set, &format!("{MODEL}.{path}")).cloned();
    let mut os_profile = part("osProfile").unwrap_or_else(|| json!({}));
    take(&mut os_profile, "computerNamePrefix");
    put(&mut os_profile, "computerName", computer_name);
    let size = text(set, "sku.name").unwrap_or(USUAL_SIZE);
    json!({
        "hardwareProfile": { "vmSize": size },
        "storageProfile": part("storageProfile").unwrap_or_else(plain_storage),
        "osProfile": os_profile,
    })
}

/// Computer name of an instance, from the prefix of its scale set.
fn instance_computer_name(cluster: &Cluster, set_body: &Value, id: MachineId) -> String {
    let Some(machine) = cluster.machine(id) else { return String::new() };
    let set = match cluster.tenant(machine.tenant).map(|tenant| tenant.shape) {
        Some(Shape::PlacementGroup(set)) => cluster.scale_set(set),
        Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => None,
    };
    let number = set.and_then(|set| Some((set, machine.name.instance_number(&set.name)?)));
    let Some((set, number)) = number else { return machine.name.to_string() };
    let prefix = text(set_body, &format!("{MODEL}.osProfile.computerNamePrefix"));
    computer_name(prefix.unwrap_or(set.name.as_str()), number)
}

/// The body names zones.
pub(super) fn has_zones(body: &Value) -> bool {
    at(body, "zones").and_then(Value::as_array).is_some_and(|zones| !zones.is_empty())
}

/// Adds the eviction policy to a spot machine, also if it is the default.
pub(super) fn fill_eviction(body: &mut Value, holder: &str, priority: Priority) {
    match priority {
        Priority::Regular => {}
        Priority::Spot(_) => fill(body, &format!("{holder}.evictionPolicy"), "Deallocate"),
    }
}
