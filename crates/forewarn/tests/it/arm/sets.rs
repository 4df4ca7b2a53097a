//! `az vm availability-set`: its machines share a document.

use serde_json::json;

use forewarn_testkit::arm::{GROUP, text};
use forewarn_testkit::az::{Az, id};
use forewarn_testkit::wait_until;

const OF_SET: &str = "--resource-group myResourceGroup --name db";

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn an_availability_set_is_made_filled_shown_and_deleted() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let made = az.ok(&format!(
        "vm availability-set create {OF_SET} --platform-fault-domain-count 2 --platform-update-domain-count 3"
    ));
    assert_eq!(made["name"], "db", "{made}");
    assert_eq!(
        (&made["platformFaultDomainCount"], &made["platformUpdateDomainCount"]),
        (&json!(2), &json!(3))
    );
    let create = "vm create --resource-group myResourceGroup --image UbuntuLTS --admin-username azureuser --generate-ssh-keys";
    for name in ["db-0", "db-1"] {
        az.ok(&format!("{create} --name {name} --availability-set db"));
    }
    place.server.enrol(&["db-0"]);
    let shown = az.ok(&format!("vm availability-set show {OF_SET}"));
    let mut members: Vec<_> = shown["virtualMachines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| text(&member["id"]).to_lowercase())
        .collect();
    members.sort();
    let expected = ["db-0", "db-1"].map(|name| id("Microsoft.Compute/virtualMachines", name).to_lowercase());
    assert_eq!(members, expected, "{shown}");
    let listed = az.ok(&format!("vm availability-set list --resource-group {GROUP}"));
    assert_eq!(listed[0]["name"], "db", "{listed}");
    let member = az.ok(&format!("vm show --resource-group {GROUP} --name db-1"));
    assert!(
        text(&member["availabilitySet"]["id"])
            .eq_ignore_ascii_case(&id("Microsoft.Compute/availabilitySets", "db"))
    );
    let view = az.ok(&format!("vm get-instance-view --resource-group {GROUP} --name db-1"));
    assert_eq!(view["instanceView"]["platformUpdateDomain"], 1, "{view}");

    // One is restarted, and both can read it; each may agree for the other.
    let running = az.begin(&format!("vm restart --resource-group {GROUP} --name db-1"));
    wait_until("they are told", || (!place.seen("db-0").is_empty()).then_some(()));
    assert_eq!(place.short("db-0"), ["Reboot Scheduled db-1"]);
    assert_eq!(place.short("db-1"), ["Reboot Scheduled db-1"]);
    place.approve("db-0", "db-1");
    assert_eq!(running.end().code, Some(0));
    place.server.advance("5m");

    // A policy of the set agrees from now on.
    let changed =
        az.ok(&format!("vm availability-set update {OF_SET} --enable-user-reboot-scheduled-events true"));
    assert_eq!(
        changed["scheduledEventsPolicy"]["userInitiatedReboot"]["automaticallyApprove"], true,
        "{changed}"
    );
    az.ok(&format!("vm restart --resource-group {GROUP} --name db-0"));
    assert_eq!(place.short("db-1"), ["Reboot Started db-0"]);

    let refused = az.refused(&format!("vm availability-set delete {OF_SET}"));
    assert!(refused.contains("(OperationNotAllowed)"), "{refused}");
    for name in ["db-0", "db-1"] {
        az.ok(&format!("vm delete --resource-group {GROUP} --name {name} --yes"));
    }
    az.ok(&format!("vm availability-set delete {OF_SET}"));
    assert_eq!(az.ok(&format!("vm availability-set list --resource-group {GROUP}")), json!([]));
}
