//! `az vm`: made, restarted, redeployed, stopped, started, evicted and deleted, and what the machine sees of it.

use serde_json::json;

use forewarn_testkit::arm::{AFTER_15, GROUP, text};
use forewarn_testkit::az::Az;
use forewarn_testkit::wait_until;

const CREATE: &str = "vm create --resource-group myResourceGroup --image UbuntuLTS --admin-username azureuser --generate-ssh-keys";

/// What `az` calls the state of a machine.
fn power(az: &Az, name: &str) -> String {
    let view = az.ok(&format!("vm get-instance-view --resource-group {GROUP} --name {name}"));
    text(&view["instanceView"]["statuses"][1]["code"])
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_machine_is_made_and_asked_before_it_is_restarted_and_redeployed() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let made = az.ok(&format!("{CREATE} --name solo --tags owner=me"));
    assert_eq!(
        (&made["powerState"], &made["resourceGroup"]),
        (&json!("VM running"), &json!(GROUP)),
        "{made}"
    );
    place.server.enrol(&["solo"]);
    let shown = az.ok(&format!("vm show --resource-group {GROUP} --name solo"));
    assert_eq!((&shown["provisioningState"], &shown["tags"]["owner"]), (&json!("Succeeded"), &json!("me")));
    let id =
        place.server.get("solo", "/metadata/instance/compute/vmId?api-version=2021-02-01&format=text").body;
    assert_eq!(shown["vmId"], id.as_str());
    let listed = az.ok(&format!("vm list --resource-group {GROUP} --show-details"));
    assert_eq!(
        (&listed[0]["name"], &listed[0]["powerState"]),
        (&json!("solo"), &json!("VM running")),
        "{listed}"
    );

    for (command, event) in [("restart", "Reboot"), ("redeploy", "Redeploy")] {
        let mut running = az.begin(&format!("vm {command} --resource-group {GROUP} --name solo"));
        wait_until("it is told", || (!place.seen("solo").is_empty()).then_some(()));
        assert_eq!(place.short("solo"), [format!("{event} Scheduled solo")], "{command}");
        assert!(!running.is_over());
        place.approve("solo", "solo");
        assert_eq!(place.short("solo"), [format!("{event} Started solo")], "{command}");
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        place.server.advance("5m");
        assert_eq!(place.short("solo"), [""; 0]);
    }
    // Nobody has to wait who does not want to.
    az.ok(&format!("vm restart --resource-group {GROUP} --name solo --no-wait"));
    assert_eq!(place.short("solo"), ["Reboot Scheduled solo"]);
    let again = az.refused(&format!("vm restart --resource-group {GROUP} --name solo"));
    assert!(again.contains(&place.one("solo").id), "{again}");
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_machine_is_stopped_started_and_deleted_without_a_word() {
    let az = Az::start(crate::program());
    let place = &az.server;
    az.ok(&format!("{CREATE} --name solo"));
    place.server.enrol(&["solo"]);
    for (command, state) in [
        ("stop", "PowerState/stopped"),
        ("start", "PowerState/running"),
        ("deallocate", "PowerState/deallocated"),
        ("start", "PowerState/running"),
        ("reimage", "PowerState/running"),
        ("reapply", "PowerState/running"),
    ] {
        let ran = az.run(&format!("vm {command} --resource-group {GROUP} --name solo"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(place.short("solo"), [""; 0], "{command}");
        assert_eq!(power(&az, "solo"), state, "{command}");
    }
    let refused = az.refused(&format!("vm simulate-eviction --resource-group {GROUP} --name solo"));
    assert!(
        refused.contains(
            "(OperationNotAllowed) Operation 'simulateEviction' is allowed only for Spot Virtual Machines"
        ),
        "{refused}"
    );
    let updated = az.ok(&format!("vm update --resource-group {GROUP} --name solo --set tags.role=db"));
    assert_eq!(updated["tags"]["role"], "db");
    let tag =
        place.server.get("solo", "/metadata/instance/compute/tags?api-version=2021-02-01&format=text").body;
    assert_eq!(tag, "role:db");
    az.ok(&format!("vm delete --resource-group {GROUP} --name solo --yes"));
    assert_eq!(az.ok(&format!("vm list --resource-group {GROUP}")), json!([]));
    place.server.advance("5m");
    assert!(!place.is_there("solo"));
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_spot_machine_is_evicted_and_a_machine_of_its_own_is_told_of_its_deletion() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let spot = "--priority Spot --eviction-policy Deallocate";
    let evicted = az.begin(&format!("{CREATE} --name cheap {spot}"));
    let told = az.begin(&format!("{CREATE} --name dear --enable-user-reboot-scheduled-events true"));
    evicted.end().value();
    told.end().value();
    place.server.enrol(&["cheap", "dear"]);
    az.ok(&format!("vm simulate-eviction --resource-group {GROUP} --name cheap"));
    assert_eq!(place.short("cheap"), ["Preempt Scheduled cheap"]);
    assert_eq!(place.one("cheap").not_before, "Thu, 01 Jan 2026 00:00:30 GMT");
    place.server.advance("30s");
    assert_eq!(place.short("cheap"), ["Preempt Started cheap"]);
    place.server.advance("5m");
    assert_eq!(power(&az, "cheap"), "PowerState/deallocated");

    // A policy agrees for the machine.
    az.ok(&format!("vm restart --resource-group {GROUP} --name dear"));
    assert_eq!(place.short("dear"), ["Reboot Started dear"]);
    place.server.advance("5m");
    let profile = r#"{"terminateNotificationProfile":{"enable":true,"notBeforeTimeout":"PT15M"}}"#;
    az.ok(&format!("vm update --resource-group {GROUP} --name dear --set scheduledEventsProfile={profile}"));
    let deletion = az.begin(&format!("vm delete --resource-group {GROUP} --name dear --yes"));
    wait_until("it is told", || (!place.seen("dear").is_empty()).then_some(()));
    let seen = place.one("dear");
    assert_eq!(seen.what, "Terminate Scheduled");
    assert_ne!(seen.not_before, AFTER_15, "the clock has gone on");
    place.approve("dear", "dear");
    assert_eq!(deletion.end().code, Some(0));
    let gone = az.run(&format!("vm show --resource-group {GROUP} --name dear"));
    assert_eq!(gone.code, Some(3), "{gone:?}");
}
