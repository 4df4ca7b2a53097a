//! The compute clients of Azure for Python and for JavaScript, with the identity of the machine that they run on.

use std::path::Path;

use serde_json::{Value, json};

use forewarn_testkit::arm::{AFTER_10, AFTER_15, ArmServer, SUBSCRIPTION, instance};
use forewarn_testkit::az::{Az, RunningAz, client};
use forewarn_testkit::wait_until;

/// A server with the group of the documentation, and a program that is pointed at it.
fn start() -> Az {
    let az = Az::point_at(ArmServer::start(crate::program()));
    az.server.make_group();
    az
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/arm").join(name)
}

fn python(az: &Az, part: &str) -> RunningAz {
    let mut command = az.program(client("FOREWARN_AZURE_PYTHON"));
    command.arg(script("client.py")).args([&az.server.arm(), SUBSCRIPTION, part]);
    az.spawn(part, command)
}

/// The same in JavaScript, where that could be installed.
fn node(az: &Az, part: &str) -> Option<RunningAz> {
    let Some(clients) = std::env::var_os("FOREWARN_AZURE_NODE") else {
        eprintln!("SKIPPED: the client for JavaScript is not installed");
        return None;
    };
    let mut command = az.program("node".into());
    command.arg(script("client.mjs")).arg(clients).args([&az.server.arm(), SUBSCRIPTION, part]);
    Some(az.spawn(part, command))
}

/// promise: Z6
#[test]
#[ignore = "needs the compute client for Python; `cargo xtask azure` installs it"]
fn the_client_for_python_makes_changes_and_deletes_instances() {
    let az = start();
    let place = &az.server;
    let told = python(&az, "scale_set").end().value();
    let expected = json!({
        "state": "Succeeded", "capacity": 3, "enable": true, "notBeforeTimeout": "PT15M",
        "before": [false, false, false], "after": [true, true, true],
        "names": ["myVMScaleSet"], "everywhere": ["myVMScaleSet"], "power": "PowerState/running",
        "refused": [400, "InvalidParameter"], "missing": [404, "ResourceNotFound"],
    });
    assert_eq!(told, expected);
    place.server.enrol(&[&instance(0)]);
    let mut deletion = python(&az, "delete_instances");
    wait_until("both are told", || (place.seen(&instance(0)).len() == 2).then_some(()));
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.not_before == AFTER_15));
    place.approve(&instance(1), &instance(1));
    assert!(!deletion.is_over());
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Scheduled"));
    place.approve(&instance(2), &instance(2));
    assert_eq!(deletion.end().value(), json!(["0"]));
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Started"));
}

/// promise: Z6
#[test]
#[ignore = "needs the compute client for Python; `cargo xtask azure` installs it"]
fn the_client_for_python_restarts_and_deletes_a_machine() {
    let az = start();
    let place = &az.server;
    let made = python(&az, "machine").end().value();
    assert_eq!(made, json!({ "state": "Succeeded", "members": ["db-0"] }));
    place.server.enrol(&["db-0"]);
    let mut restart = python(&az, "restart");
    wait_until("it is told", || (!place.seen("db-0").is_empty()).then_some(()));
    assert_eq!(place.short("db-0"), ["Reboot Scheduled db-0"]);
    assert!(!restart.is_over());
    place.approve("db-0", "db-0");
    assert_eq!(
        restart.end().value()["power"].as_str().map(|code| code.starts_with("PowerState/")),
        Some(true)
    );
    place.server.advance("5m");
    assert_eq!(python(&az, "delete").end().value(), json!([]));
    assert!(!place.is_there("db-0"));
}

/// promise: Z6
#[test]
#[ignore = "needs the compute client for JavaScript; `cargo xtask azure` installs it"]
fn the_client_for_javascript_makes_changes_and_deletes_instances() {
    let az = start();
    let place = &az.server;
    let Some(made) = node(&az, "scaleSet") else { return };
    let listed = |is_latest: bool| json!([["0", is_latest], ["1", is_latest], ["2", is_latest]]);
    let expected: Value = json!({
        "profile": { "enable": true, "notBeforeTimeout": "PT10M" },
        "before": listed(false), "after": listed(true),
    });
    assert_eq!(made.end().value(), expected);
    place.server.enrol(&[&instance(0)]);
    let mut deletion = node(&az, "deleteInstances").expect("it was there before");
    wait_until("both are told", || (place.seen(&instance(0)).len() == 2).then_some(()));
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.not_before == AFTER_10));
    place.approve(&instance(1), &instance(1));
    assert!(!deletion.is_over());
    place.approve(&instance(2), &instance(2));
    assert_eq!(deletion.end().value(), json!([["0", true]]));
    let missing = node(&az, "missing").expect("it was there before");
    assert_eq!(missing.end().value(), json!([404, "ResourceNotFound"]));
}
