//! Names in `Resources` where they are easily confused: some clients look for their own name inside another.

use std::fs;

use serde_json::json;

use forewarn_testkit::TestServer;

/// One tenant with names that begin alike, and another tenant with one of the same names.
const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }]

[[availability_set]]
name = "pool"
machine = [
    { name = "vm1", host = "h1", update_domain = 0 },
    { name = "vm10", host = "h1", update_domain = 0 },
    { name = "vm100", host = "h2", update_domain = 1 },
    { name = "VM1-a", host = "h2", update_domain = 1 },
]

[[availability_set]]
name = "other"
machine = [{ name = "vm1", host = "h2" }]
"#;

/// promise: T1
#[test]
fn names_that_begin_alike_are_not_confused() {
    let directory = tempfile::tempdir().unwrap();
    let fleet = directory.path().join("fleet.toml");
    fs::write(&fleet, FLEET).unwrap();
    let server = TestServer::start_with(crate::program(), &["--fleet", fleet.to_str().unwrap()]);
    server.enrol(&["pool/vm1", "other/vm1"]);
    server.restart("vm10");
    let resources = |reader: &str| {
        let events = server.document(reader)["Events"].clone();
        events.as_array().unwrap().iter().map(|event| event["Resources"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(resources("pool/vm1"), [json!(["vm10"])]);
    assert_eq!(resources("vm100"), [json!(["vm10"])]);
    assert_eq!(resources("other/vm1").len(), 0, "the same name in another tenant is another machine");
    server.restart("pool/vm1");
    assert_eq!(resources("vm10"), [json!(["vm10"]), json!(["vm1"])], "two events, each for one machine");
    server.run(&["host", "reboot", "h2"]);
    let both = resources("pool/vm1").pop().unwrap();
    assert_eq!(both, json!(["vm100", "VM1-a"]), "in the order in which they came");
    assert_eq!(resources("other/vm1"), [json!(["vm1"])]);
    let name = server.get("vm10", "/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    assert_eq!(name.short(), (200, "vm10"));
}
