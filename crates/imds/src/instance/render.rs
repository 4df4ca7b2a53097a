//! The tree of an instance, with the fields of a version, in alphabetical order.

use serde_json::{Map, Value, json};

use super::{Instance, Interface, ScaleSetMembership};
use crate::instance_version::InstanceVersion;

pub(super) fn tree(instance: &Instance, version: InstanceVersion) -> Value {
    json!({ "compute": compute(instance, version), "network": network(&instance.interfaces) })
}

fn compute(instance: &Instance, version: InstanceVersion) -> Value {
    type V = InstanceVersion;
    let set = instance.scale_set.as_ref();
    let of_set = |part: fn(&ScaleSetMembership) -> &String| json!(set.map_or("", |set| part(set)));
    let fields = [
        ("evictionPolicy", V::V2020_12_01, json!(instance.eviction_policy)),
        ("location", V::V2017_04_02, json!(instance.location)),
        ("name", V::V2017_04_02, json!(instance.name.as_str())),
        ("osProfile", V::V2020_07_15, json!({ "computerName": instance.computer_name })),
        ("osType", V::V2017_04_02, json!(instance.os_type.as_str())),
        ("placementGroupId", V::V2017_08_01, of_set(|set| &set.placement_group_id)),
        ("platformFaultDomain", V::V2017_04_02, json!(instance.fault_domain.to_string())),
        ("platformUpdateDomain", V::V2017_04_02, json!(instance.update_domain.to_string())),
        ("priority", V::V2020_12_01, json!(instance.priority)),
        ("resourceGroupName", V::V2017_08_01, json!(instance.resource_group_name)),
        ("resourceId", V::V2019_03_11, json!(instance.resource_id)),
        ("subscriptionId", V::V2017_08_01, json!(instance.subscription_id)),
        ("tags", V::V2017_08_01, json!(tags(&instance.tags))),
        ("tagsList", V::V2019_06_04, tags_list(&instance.tags)),
        ("virtualMachineScaleSet", V::V2021_03_01, json!({ "id": of_set(|set| &set.id) })),
        ("vmId", V::V2017_04_02, json!(instance.vm_id)),
        ("vmScaleSetName", V::V2017_12_01, of_set(|set| &set.name)),
        ("vmSize", V::V2017_04_02, json!(instance.vm_size)),
        ("zone", V::V2017_12_01, json!(instance.zone.map(|zone| zone.to_string()).unwrap_or_default())),
    ];
    let known = fields.into_iter().filter(|(_, since, _)| version >= *since);
    Value::Object(known.map(|(key, _, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn network(interfaces: &[Interface]) -> Value {
    json!({ "interface": interfaces.iter().map(interface).collect::<Vec<_>>() })
}

fn interface(interface: &Interface) -> Value {
    let public = interface.public.map(|address| address.to_string()).unwrap_or_default();
    let address = json!({ "privateIpAddress": interface.private.to_string(), "publicIpAddress": public });
    let prefix = interface.subnet_prefix_bits.to_string();
    let subnet = json!({ "address": interface.subnet.to_string(), "prefix": prefix });
    json!({
        "ipv4": { "ipAddress": [address], "subnet": [subnet] },
        "ipv6": { "ipAddress": [] },
        "macAddress": interface.mac.map(|byte| format!("{byte:02X}")).concat(),
    })
}

fn tags(tags: &[(String, String)]) -> String {
    tags.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>().join(";")
}

fn tags_list(tags: &[(String, String)]) -> Value {
    tags.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}
