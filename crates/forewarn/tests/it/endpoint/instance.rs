//! The rest of the metadata service.
//!
//! | behaviour | test |
//! |---|---|
//! | each field from its version on; all values are strings | `each_field_is_there_from_its_version_on` |
//! | a single value as text only; lists of what is below; paths without case | `a_machine_is_asked_piece_by_piece` |
//! | `compute.name` is what `Resources` says; the computer's name on a scale set is another | `a_machine_finds_itself_in_resources` |
//! | network interfaces | `a_machine_has_a_network` |
//! | the list of versions, which needs none | `versions_need_no_version` |
//! | members of the tenant | `members_are_the_names_of_the_own_tenant` |
//! | identity token | `a_token_is_given_to_whoever_insists` |

use serde_json::{Value, json};

use forewarn_testkit::TestServer;

const VERSIONS: [&str; 35] = [
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-08-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
];

const FIELDS: [(&str, &str); 19] = [
    ("/compute/name", "2017-04-02"),
    ("/compute/location", "2017-04-02"),
    ("/compute/osType", "2017-04-02"),
    ("/compute/vmId", "2017-04-02"),
    ("/compute/platformFaultDomain", "2017-04-02"),
    ("/compute/platformUpdateDomain", "2017-04-02"),
    ("/compute/placementGroupId", "2017-08-01"),
    ("/compute/resourceGroupName", "2017-08-01"),
    ("/compute/subscriptionId", "2017-08-01"),
    ("/compute/tags", "2017-08-01"),
    ("/compute/vmScaleSetName", "2017-12-01"),
    ("/compute/zone", "2017-12-01"),
    ("/compute/resourceId", "2019-03-11"),
    ("/compute/tagsList", "2019-06-04"),
    ("/compute/osProfile/computerName", "2020-07-15"),
    ("/compute/priority", "2020-12-01"),
    ("/compute/evictionPolicy", "2020-12-01"),
    ("/compute/virtualMachineScaleSet/id", "2021-03-01"),
    ("/network/interface/0/macAddress", "2017-03-01"),
];

fn instance(server: &TestServer, machine: &str, version: &str) -> Value {
    let answer = server.get(machine, &format!("/metadata/instance?api-version={version}"));
    assert_eq!(answer.status(), 200, "{version}: {answer:?}");
    assert_eq!(answer.header("Content-Type"), Some("application/json; charset=utf-8"));
    assert!(answer.body.starts_with(r#"{"compute":{"#), "compact, and in this order: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

fn text(server: &TestServer, machine: &str, path: &str) -> (u16, String) {
    let target = format!("/metadata/instance{path}?api-version=2021-03-01&format=text");
    let answer = server.get(machine, &target);
    (answer.status(), answer.body)
}

#[test]
fn each_field_is_there_from_its_version_on() {
    let server = TestServer::start(crate::program());
    for version in VERSIONS {
        let instance = instance(&server, "web_1", version);
        for (field, since) in FIELDS {
            assert_eq!(instance.pointer(field).is_some(), version >= since, "{field} in {version}");
        }
        assert_leaves_are_texts(&instance);
    }
}

fn assert_leaves_are_texts(value: &Value) {
    match value {
        Value::String(_) => {}
        Value::Object(members) => members.values().for_each(assert_leaves_are_texts),
        Value::Array(items) => items.iter().for_each(assert_leaves_are_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => panic!("not a text: {value}"),
    }
}

#[test]
fn a_machine_is_asked_piece_by_piece() {
    let server = TestServer::start(crate::program());
    for path in ["/compute/name", "/Compute/NAME", "/compute/name/"] {
        assert_eq!(text(&server, "web_1", path), (200, "web_1".to_owned()), "{path}");
    }
    let get = |target: &str| server.get("web_1", &format!("/metadata/instance{target}"));
    let leaf = get("/compute/name?api-version=2021-02-01");
    assert_eq!(leaf.short(), (400, r#"{ "error": "Bad request: a single value needs format=text" }"#));
    assert_eq!(get("/compute/name?api-version=2021-02-01&format=json").status(), 400);
    let shown = get("/compute/name?format=TEXT&api-version=2021-02-01");
    assert_eq!(shown.header("Content-Type"), Some("text/plain; charset=utf-8"));
    let format = get("?api-version=2021-02-01&format=xml");
    assert_eq!(format.short(), (400, r#"{ "error": "Bad request: format must be json or text" }"#));
    assert_eq!(get("/compute/nothing?api-version=2021-02-01").status(), 404);
    assert_eq!(get("/compute/osProfile/computerName?api-version=2017-04-02&format=text").status(), 404);
    assert_eq!(get("?api-version=2021-02-01&format=text").body, "compute/\nnetwork/");
    assert_eq!(get("/network/interface?api-version=2021-02-01&format=text").body, "0/");
    let compute = get("/compute?api-version=2021-02-01");
    let whole = instance(&server, "web_1", "2021-02-01");
    assert_eq!(serde_json::from_str::<Value>(&compute.body).unwrap(), whole["compute"]);
}

#[test]
fn a_machine_finds_itself_in_resources() {
    let server = TestServer::start(crate::program());
    for (machine, set, computer) in [
        ("web_1", "web", Some("web000001")),
        ("batch_0", "batch", Some("batch000000")),
        ("db-0", "", None),
        ("solo", "", None),
        ("FrontEnd_IN_0", "", None),
    ] {
        server.enrol(&[machine]);
        server.restart(machine);
        let name = text(&server, machine, "/compute/name").1;
        assert_eq!(server.document(machine)["Events"][0]["Resources"], json!([name]));
        assert_eq!(text(&server, machine, "/compute/vmScaleSetName").1, set, "{machine}");
        if let Some(computer) = computer {
            assert_eq!(text(&server, machine, "/compute/osProfile/computerName").1, computer);
        }
    }
    let of_spot = instance(&server, "batch_0", "2021-03-01")["compute"].clone();
    assert_eq!(of_spot["priority"], "Spot");
    assert!(["Delete", "Deallocate"].contains(&of_spot["evictionPolicy"].as_str().unwrap()));
    let regular = instance(&server, "solo", "2021-03-01")["compute"].clone();
    assert_eq!((&regular["priority"], &regular["evictionPolicy"]), (&json!("Regular"), &json!("")));
}

#[test]
fn a_machine_has_a_network() {
    let server = TestServer::start(crate::program());
    let addresses = ["web_0", "web_1", "solo"].map(|machine| {
        let network = instance(&server, machine, "2021-02-01")["network"].clone();
        let interface = &network["interface"][0];
        let mac = interface["macAddress"].as_str().unwrap().to_owned();
        assert_eq!(mac.len(), 12);
        assert!(mac.chars().all(|c| c.is_ascii_digit() || ('A'..='F').contains(&c)), "{mac}");
        let address = interface["ipv4"]["ipAddress"][0]["privateIpAddress"].as_str().unwrap();
        address.parse::<std::net::Ipv4Addr>().expect("an address");
        assert!(interface["ipv4"]["subnet"][0]["prefix"].is_string());
        (mac, address.to_owned())
    });
    assert_ne!(addresses[0].0, addresses[1].0, "no two machines share a hardware address");
    assert_ne!(addresses[1], addresses[2]);
}

#[test]
fn versions_need_no_version() {
    let server = TestServer::start(crate::program());
    let expected: Vec<_> = VERSIONS.iter().map(|version| format!(r#""{version}""#)).collect();
    let expected = format!(r#"{{"apiVersions":[{}]}}"#, expected.join(","));
    assert_eq!(server.get("solo", "/metadata/versions").short(), (200, expected.as_str()));
}

#[test]
fn members_are_the_names_of_the_own_tenant() {
    let server = TestServer::start(crate::program());
    let target = "/metadata/forewarn/members?api-version=2020-07-01";
    for (machine, members) in [
        ("web_3", r#"{"members":["web_0","web_1","web_2","web_3","web_4"]}"#),
        ("db-1", r#"{"members":["db-0","db-1","db-2"]}"#),
        ("BackEnd_IN_0", r#"{"members":["FrontEnd_IN_0","BackEnd_IN_0"]}"#),
        ("solo", r#"{"members":["solo"]}"#),
    ] {
        assert_eq!(server.get(machine, target).short(), (200, members));
    }
    server.run(&["vm", "delete", "db-2"]);
    assert_eq!(server.get("db-0", target).short(), (200, r#"{"members":["db-0","db-1"]}"#));
}

#[test]
fn a_token_is_given_to_whoever_insists() {
    let server = TestServer::start(crate::program());
    let target = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fr%2F";
    let answer = server.get("solo", target);
    assert_eq!(answer.status(), 200, "{answer:?}");
    let token: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(token["resource"], "https://r/");
    assert_eq!(token["token_type"], "Bearer");
    let seconds = |name: &str| token[name].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(seconds("expires_on") - seconds("not_before"), seconds("expires_in"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(seconds("expires_on") > now, "in the time of whoever asks, whatever the virtual clock shows");
    assert_eq!(token["access_token"].as_str().unwrap().split('.').count(), 3);
}
