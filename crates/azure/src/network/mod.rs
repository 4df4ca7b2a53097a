//! Network resources: stored as written, and shown with the members that clients expect. There is no actual network.
//!
//! Children (subnets of a network, rules of a load balancer) are in the body of their parent, whether they were sent
//! with it or by themselves, so both views agree.

mod address;
mod child;
mod tidy;

use serde_json::{Map, Value, json};

pub use address::{Neighbours, assign_addresses};
pub use child::{child, put_child, remove_child};
use forewarn_control::resource_id::ResourceId;
pub use tidy::tidy;

/// A resource as clients see it: its body, with ids of everything in it.
///
/// ```
/// use forewarn_azure::network;
/// use forewarn_control::resource_id::ResourceId;
/// use serde_json::json;
///
/// let text = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";
/// let body = json!({ "location": "eastus", "properties": { "subnets": [{ "name": "a" }] } });
/// let shown = network::show(&ResourceId::parse(text).unwrap(), &body, 1);
/// assert_eq!(shown["properties"]["subnets"][0]["id"], format!("{text}/subnets/a"));
/// assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
/// ```
#[must_use]
pub fn show(id: &ResourceId, body: &Value, edition: u64) -> Value {
    let mut shown = frame(&id.to_string(), &id.kind(), id.name(), edition);
    let members = body.as_object().into_iter().flatten();
    shown.extend(
        members.filter(|(name, _)| !is_ours(name)).map(|(name, value)| (name.clone(), value.clone())),
    );
    let mut shown = Value::Object(shown);
    settle(&mut shown, id, edition);
    describe(&mut shown, id);
    shown
}

/// Members that the server sets, whatever a client sends.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    ["id", "name", "type", "etag"].iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

fn frame(id: &str, kind: &str, name: &str, edition: u64) -> Map<String, Value> {
    let etag = format!("W/\"{edition}\"");
    let frame = [("name", name), ("id", id), ("etag", &etag), ("type", kind)];
    frame.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// Adds the state of a resource, and the ids of its children.
fn settle(shown: &mut Value, id: &ResourceId, edition: u64) {
    if !shown["properties"].is_object() {
        shown["properties"] = json!({});
    }
    let Some(properties) = shown["properties"].as_object_mut() else { return };
    properties.insert("provisioningState".to_owned(), json!("Succeeded"));
    for (kind, value) in properties {
        let Value::Array(list) = value else { continue };
        for inside in list {
            let Some(name) = child::name_of(inside).map(str::to_owned) else { continue };
            let id = id.child(kind, &name);
            let mut framed = frame(&id.to_string(), &id.kind(), &name, edition);
            let members = inside.as_object().into_iter().flatten();
            framed.extend(members.map(|(name, value)| (name.clone(), value.clone())));
            // Values of the client for these members are ignored.
            framed.extend(frame(&id.to_string(), &id.kind(), &name, edition));
            *inside = Value::Object(framed);
            settle(inside, &id, edition);
        }
    }
}

/// Adds members that some types have.
fn describe(shown: &mut Value, id: &ResourceId) {
    let location = shown["location"].as_str().unwrap_or_default().to_owned();
    if id.is("Microsoft.Network/publicIPAddresses") {
        let properties = &mut shown["properties"];
        for (name, value) in [("publicIPAllocationMethod", "Dynamic"), ("publicIPAddressVersion", "IPv4")] {
            if properties[name].is_null() {
                properties[name] = json!(value);
            }
        }
        // Never direct a client to a foreign machine: such a name does not resolve.
        if let Some(label) = properties["dnsSettings"]["domainNameLabel"].as_str() {
            let name = format!("{label}.{location}.cloudapp.invalid");
            properties["dnsSettings"]["fqdn"] = json!(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn id(rest: &str) -> ResourceId {
        ResourceId::parse(&format!("{GROUP}/{rest}")).unwrap()
    }

    #[test]
    fn children_have_an_id_and_a_type() {
        let body = json!({
            "location": "l",
            "id": "foreign",
            "properties": {
                "frontendIPConfigurations": [{ "name": "f", "id": "x", "properties": { "zones": [{ "name": "z" }] } }],
                "provisioningState": "Failed",
                "tags": ["a"],
                "others": [{ "id": "y" }],
            },
        });
        let shown = show(&id("loadBalancers/lb"), &body, 7);
        assert_eq!(shown["id"], format!("{GROUP}/loadBalancers/lb"));
        assert_eq!(shown["type"], "Microsoft.Network/loadBalancers");
        assert_eq!(shown["etag"], "W/\"7\"");
        assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
        let inside = &shown["properties"]["frontendIPConfigurations"][0];
        assert_eq!(inside["id"], format!("{GROUP}/loadBalancers/lb/frontendIPConfigurations/f"));
        assert_eq!(inside["type"], "Microsoft.Network/loadBalancers/frontendIPConfigurations");
        assert_eq!(
            inside["properties"]["zones"][0]["id"],
            format!("{}/zones/z", inside["id"].as_str().unwrap())
        );
        assert_eq!(
            (&shown["properties"]["tags"], &shown["properties"]["others"]),
            (&json!(["a"]), &json!([{ "id": "y" }]))
        );
    }

    #[test]
    fn a_public_address_has_a_name_that_leads_nowhere() {
        let body = json!({ "location": "l", "properties": { "dnsSettings": { "domainNameLabel": "web" } } });
        let shown = show(&id("publicIPAddresses/ip"), &body, 1);
        assert_eq!(shown["properties"]["dnsSettings"]["fqdn"], "web.l.cloudapp.invalid");
        assert_eq!(shown["properties"]["publicIPAllocationMethod"], "Dynamic");
    }
}
