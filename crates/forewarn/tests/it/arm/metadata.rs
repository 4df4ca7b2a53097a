//! What machines of ARM clients read about themselves: their names, computer names and sizes.

use serde_json::{Value, json};

use forewarn_testkit::arm::{ArmServer, NEW, compute, set, text, wanted_set};

/// The computer name and the size that a machine reads about itself.
fn read(place: &ArmServer, machine: &str) -> [String; 2] {
    let leaf = |path: &str| {
        let target = format!("/metadata/instance/compute/{path}?api-version=2021-02-01&format=text");
        let response = place.server.get(machine, &target);
        assert_eq!(response.status(), 200, "{machine}: {}", response.body);
        response.body
    };
    [leaf("osProfile/computerName"), leaf("vmSize")]
}

/// The same, as ARM shows it.
fn shown(body: &Value) -> [String; 2] {
    let properties = &body["properties"];
    [text(&properties["osProfile"]["computerName"]), text(&properties["hardwareProfile"]["vmSize"])]
}

fn machine(more: &Value) -> Value {
    let mut properties = json!({ "storageProfile": {} });
    properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "location": "eastus", "properties": properties })
}

/// promise: M1
#[test]
fn computer_name_and_size_are_those_of_the_request() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let path = |name: &str| format!("{}/virtualMachines/{name}", compute());
    let described = json!({
        "hardwareProfile": { "vmSize": "Standard_E4s_v5" },
        "osProfile": { "computerName": "db-primary", "adminUsername": "azureuser" },
    });
    place.put(&path("db0"), NEW, &machine(&described));
    assert_eq!(read(&place, "db0"), ["db-primary", "Standard_E4s_v5"]);
    assert_eq!(read(&place, "db0"), shown(&place.get(&path("db0"), NEW)));

    // A resize is seen at once; members that the client leaves out keep their values.
    let resized = json!({ "hardwareProfile": { "vmSize": "Standard_E8s_v5" } });
    place.put(&path("db0"), NEW, &machine(&resized));
    assert_eq!(read(&place, "db0"), ["db-primary", "Standard_E8s_v5"]);

    // Without a description, the machine has its own name and the usual size.
    place.put(&path("bare"), NEW, &machine(&json!({})));
    assert_eq!(read(&place, "bare"), ["bare", "Standard_D2s_v5"]);
    // A number is taken as a text, by both.
    place.put(&path("odd"), NEW, &machine(&json!({ "osProfile": { "computerName": 7 } })));
    assert_eq!(read(&place, "odd"), ["7", "Standard_D2s_v5"]);
    assert_eq!(read(&place, "odd"), shown(&place.get(&path("odd"), NEW)));
}

/// promise: M1
#[test]
fn instances_have_the_prefix_and_the_size_of_their_scale_set() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    place.make_set(2);
    let second = place.get(&format!("{}/virtualMachines/1", set()), NEW);
    assert_eq!(read(&place, &text(&second["name"])), ["web000001", "Standard_D2s_v3"]);
    assert_eq!(read(&place, &text(&second["name"])), shown(&second));
    let resized = json!({ "location": "eastus", "sku": { "name": "Standard_D8s_v5", "capacity": 2 } });
    place.put(&set(), NEW, &resized);
    assert_eq!(read(&place, &text(&second["name"])), ["web000001", "Standard_D8s_v5"]);
}

/// promise: Z1, Z6
#[test]
fn instances_of_a_flexible_set_are_named_by_eight_hexadecimal_digits() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let mut wanted = wanted_set(3);
    wanted["properties"]["orchestrationMode"] = json!("Flexible");
    wanted["properties"]["virtualMachineProfile"]["osProfile"]["computerNamePrefix"] = json!("flex");
    let path = format!("{}/virtualMachineScaleSets/flex", compute());
    place.put(&path, NEW, &wanted);
    let names = |place: &ArmServer| -> Vec<String> {
        let listed = place.get(&format!("{}/virtualMachines", compute()), NEW);
        let mut names: Vec<_> =
            listed["value"].as_array().unwrap().iter().map(|vm| text(&vm["name"])).collect();
        names.sort();
        names
    };
    let first = names(&place);
    assert_eq!(first.len(), 3, "{first:?}");
    for name in &first {
        let digits = name.strip_prefix("flex_").unwrap_or_else(|| panic!("{name}"));
        assert!(
            digits.len() == 8 && digits.bytes().all(|byte| b"0123456789abcdef".contains(&byte)),
            "{name}"
        );
        let vm = place.get(&format!("{}/virtualMachines/{name}", compute()), NEW);
        assert_eq!(read(&place, name), shown(&vm));
        let instance = place.get(&format!("{path}/virtualMachines/{name}"), NEW);
        assert_eq!([&instance["name"], &instance["instanceId"]], [name, name], "{instance}");
    }
    // Names are not given twice, and instances that stay keep theirs.
    let gone = &text(&place.server.json(&["vm", "show", "flex_0"])["name"]);
    place.act(&format!("{path}/delete"), &json!({ "instanceIds": [gone] }));
    wanted["sku"]["capacity"] = json!(3);
    place.put(&path, NEW, &wanted);
    let later = names(&place);
    assert_eq!(later.len(), 3, "{later:?}");
    assert!(!later.contains(gone), "{later:?} after {first:?}");
    assert_eq!(later.iter().filter(|name| first.contains(name)).count(), 2, "{later:?} after {first:?}");

    // The number is an address: of commands, and of a machine that polls.
    let numbered = read(&place, "flex_1");
    assert!(numbered[0].starts_with("flex00000"), "{numbered:?}");
    place.server.run(&["vm", "restart", "flex_1"]);
    let shown = text(&place.server.json(&["vm", "show", "flex_1"])["name"]);
    assert!(later.contains(&shown), "{shown}: {later:?}");
}
