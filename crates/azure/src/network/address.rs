//! Addresses of network interfaces and public IP addresses, each unique.
//!
//! They are not reachable. Interfaces get one of their subnet, public addresses one of a range for tests.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use forewarn_control::resource_id::ResourceId;

const INTERFACES: &str = "Microsoft.Network/networkInterfaces";
const PUBLIC: &str = "Microsoft.Network/publicIPAddresses";

/// Range of public addresses: 198.18.0.0/15.
const PUBLIC_RANGE: Range = Range { first: 0xc612_0001, last: 0xc613_fffe };
/// Range of interfaces whose subnet does not exist or has no range: 10.0.0.0/16.
const DEFAULT_RANGE: Range = Range { first: 0x0a00_0004, last: 0x0a00_fffe };

/// Other resources that assignment depends on.
pub struct Neighbours<'a> {
    /// Bodies of other resources of the same type.
    pub others: &'a mut dyn Iterator<Item = Value>,
    /// Returns the body of a network.
    pub network: &'a dyn Fn(&ResourceId) -> Option<Value>,
}

#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
}

/// Assigns addresses to a resource that has none. A resource keeps the addresses of `before`, its former body.
pub fn assign_addresses(
    id: &ResourceId,
    body: &mut Value,
    before: Option<&Value>,
    neighbours: &mut Neighbours<'_>,
) {
    if !body.is_object() {
        return;
    }
    if id.is(PUBLIC) {
        let before = before.and_then(|before| before["properties"]["ipAddress"].as_str());
        let taken: BTreeSet<_> =
            (&mut *neighbours.others).filter_map(|other| read(&other["properties"]["ipAddress"])).collect();
        assign(&mut body["properties"], "ipAddress", before, PUBLIC_RANGE, &taken);
    } else if id.is(INTERFACES) {
        assign_private(body, before, neighbours);
        assign_number(body);
    }
}

/// Assigns a MAC address to an interface.
fn assign_number(body: &mut Value) {
    let first = private(body).first().copied();
    let Some(Value::Object(properties)) = body.get_mut("properties") else { return };
    if let (Some(address), None) = (first, properties.get("macAddress")) {
        let [_, two, three, four] = address.to_be_bytes();
        let number = format!("00-0D-3A-{two:02X}-{three:02X}-{four:02X}");
        properties.insert("macAddress".to_owned(), json!(number));
    }
}

fn assign_private(body: &mut Value, before: Option<&Value>, neighbours: &mut Neighbours<'_>) {
    let mut taken: BTreeSet<_> = (&mut *neighbours.others).flat_map(|other| private(&other)).collect();
    let had = |name: &Value| {
        let all = before?["properties"]["ipConfigurations"].as_array()?;
        all.iter().find(|one| one["name"] == *name)?["properties"]["privateIPAddress"].as_str()
    };
    let Some(Value::Array(configurations)) = body.pointer_mut("/properties/ipConfigurations") else { return };
    for configuration in configurations.iter_mut().filter(|one| one.is_object()) {
        let subnet = configuration["properties"]["subnet"]["id"].as_str().and_then(ResourceId::parse);
        let range = subnet.and_then(|subnet| range_of(&subnet, neighbours.network)).unwrap_or(DEFAULT_RANGE);
        let had = had(&configuration["name"]);
        assign(&mut configuration["properties"], "privateIPAddress", had, range, &taken);
        taken.extend(read(&configuration["properties"]["privateIPAddress"]));
        if configuration["properties"]["privateIPAllocationMethod"].is_null() {
            configuration["properties"]["privateIPAllocationMethod"] = json!("Dynamic");
        }
    }
}

/// Assigns the former address, or the first free one, if there is one.
fn assign(properties: &mut Value, name: &str, had: Option<&str>, range: Range, taken: &BTreeSet<u32>) {
    if !properties.is_object() {
        *properties = json!({});
    }
    if properties[name].as_str().is_some_and(|given| !given.is_empty()) {
        return;
    }
    let former = had.and_then(|had| had.parse::<Ipv4Addr>().ok());
    let free =
        || (range.first..=range.last).find(|address| !taken.contains(address)).map(Ipv4Addr::from_bits);
    if let Some(address) = former.or_else(free) {
        properties[name] = json!(address.to_string());
    }
}

fn read(address: &Value) -> Option<u32> {
    address.as_str()?.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits)
}

fn private(body: &Value) -> Vec<u32> {
    let all = body["properties"]["ipConfigurations"].as_array().into_iter().flatten();
    all.filter_map(|one| read(&one["properties"]["privateIPAddress"])).collect()
}

/// The addresses of a subnet, without the first few, which are reserved.
fn range_of(subnet: &ResourceId, network: &dyn Fn(&ResourceId) -> Option<Value>) -> Option<Range> {
    let body = network(&subnet.parent()?)?;
    let subnet = super::child(&body, &subnet.parts[1..])?;
    let properties = &subnet["properties"];
    let prefix =
        properties["addressPrefix"].as_str().or_else(|| properties["addressPrefixes"][0].as_str())?;
    let (address, length) = prefix.split_once('/')?;
    let length = length.parse::<u32>().ok().filter(|length| (8..=29).contains(length))?;
    let size = 1_u32 << (32 - length);
    let first = address.parse::<Ipv4Addr>().ok()?.to_bits() & !(size - 1);
    Some(Range { first: first.checked_add(4)?, last: first + (size - 2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn id(rest: &str) -> ResourceId {
        ResourceId::parse(&format!("{GROUP}/{rest}")).unwrap()
    }

    fn network(id: &ResourceId) -> Option<Value> {
        let subnet = json!({ "name": "a", "properties": { "addressPrefix": "192.168.1.0/29" } });
        (id.name() == "v").then(|| json!({ "properties": { "subnets": [subnet] } }))
    }

    fn interface(subnet: &str) -> Value {
        let properties = json!({ "subnet": { "id": format!("{GROUP}/virtualNetworks/{subnet}") } });
        json!({ "properties": { "ipConfigurations": [{ "name": "c", "properties": properties }] } })
    }

    fn give(mut body: Value, before: Option<&Value>, others: &[Value]) -> Value {
        let mut others = others.iter().cloned();
        let mut neighbours = Neighbours { others: &mut others, network: &network };
        assign_addresses(&id("networkInterfaces/n"), &mut body, before, &mut neighbours);
        body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].take()
    }

    /// promise: Z4
    #[test]
    fn an_interface_has_the_first_free_address_of_its_subnet() {
        assert_eq!(give(interface("v/subnets/a"), None, &[]), "192.168.1.4");
        let mut other = interface("v/subnets/a");
        other["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = json!("192.168.1.4");
        assert_eq!(give(interface("v/subnets/a"), None, &[other.clone()]), "192.168.1.5");
        // It keeps its former address.
        assert_eq!(give(interface("v/subnets/a"), Some(&other), &[]), "192.168.1.4");
        assert_eq!(give(other.clone(), None, &[other]), "192.168.1.4");
        assert_eq!(give(interface("w/subnets/a"), None, &[]), "10.0.0.4");
        let full: Vec<_> = (4..7)
            .map(|last| {
                let mut other = interface("v/subnets/a");
                let address = format!("192.168.1.{last}");
                other["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = json!(address);
                other
            })
            .collect();
        assert_eq!(give(interface("v/subnets/a"), None, &full), Value::Null);
    }

    #[test]
    fn an_interface_has_a_number_made_of_its_address() {
        let (mut body, mut others) = (interface("v/subnets/a"), std::iter::empty());
        let mut neighbours = Neighbours { others: &mut others, network: &network };
        assign_addresses(&id("networkInterfaces/n"), &mut body, None, &mut neighbours);
        assert_eq!(body["properties"]["macAddress"], "00-0D-3A-A8-01-04");
    }

    #[test]
    fn a_public_address_has_one_that_no_other_has() {
        let taken = json!({ "properties": { "ipAddress": "198.18.0.1" } });
        let mut body = json!({});
        let mut others = [taken].into_iter();
        let mut neighbours = Neighbours { others: &mut others, network: &network };
        assign_addresses(&id("publicIPAddresses/ip"), &mut body, None, &mut neighbours);
        assert_eq!(body["properties"]["ipAddress"], "198.18.0.2");
    }

    #[test]
    fn odd_bodies_are_left_alone() {
        for written in [
            json!({ "properties": { "ipConfigurations": [1, { "properties": 1 }] } }),
            json!({ "properties": { "ipConfigurations": 1 } }),
            json!({ "properties": 1 }),
            json!({}),
            json!(1),
        ] {
            for kind in ["networkInterfaces/n", "publicIPAddresses/n", "others/n"] {
                let (mut body, mut others) = (written.clone(), [written.clone()].into_iter());
                let mut neighbours = Neighbours { others: &mut others, network: &network };
                assign_addresses(&id(kind), &mut body, Some(&written), &mut neighbours);
                assert_eq!(body.is_object(), written.is_object());
            }
        }
    }
}
