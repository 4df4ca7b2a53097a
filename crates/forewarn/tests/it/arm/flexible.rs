//! `az vmss` on a Flexible scale set: its instances are machines with names of their own.

use serde_json::json;

use crate::arm::scale_sets::{CREATE, OF_SET};
use forewarn_testkit::arm::{AFTER_10, GROUP, SET, text};
use forewarn_testkit::az::{Az, id};
use forewarn_testkit::wait_until;

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_flexible_scale_set_is_made_listed_and_its_machines_go_with_notice() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let made = az.ok(&CREATE.replace("Uniform", "Flexible"));
    assert_eq!(made["vmss"]["orchestrationMode"], "Flexible", "{made}");
    let notification =
        &made["vmss"]["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"];
    assert_eq!(notification, &json!({ "enable": true, "notBeforeTimeout": "PT10M" }));

    let listed = az.ok(&format!("vm list --resource-group {GROUP}"));
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|shown| text(&shown["name"])).collect();
    assert_eq!(names.len(), 2, "{listed}");
    for name in &names {
        let rest = name.strip_prefix(&format!("{SET}_")).unwrap_or_else(|| panic!("{name}"));
        assert!(rest.len() == 8 && rest.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
    }
    let [first, second] = [&names[0], &names[1]];
    let shown = az.ok(&format!("vm show --resource-group {GROUP} --name {first}"));
    let of = text(&shown["virtualMachineScaleSet"]["id"]);
    assert!(of.eq_ignore_ascii_case(&id("Microsoft.Compute/virtualMachineScaleSets", SET)), "{shown}");
    let instances = az.ok(&format!("vmss list-instances {OF_SET}"));
    assert_eq!(instances.as_array().unwrap().len(), 2, "{instances}");

    place.server.enrol(&[first]);
    let mut deletion = az.begin(&format!("vmss delete-instances {OF_SET} --instance-ids {second}"));
    wait_until("it is told", || (!place.seen(first).is_empty()).then_some(()));
    let seen = place.one(first);
    assert_eq!((seen.what.as_str(), &seen.whom), ("Terminate Scheduled", second));
    assert_eq!(seen.not_before, AFTER_10);
    assert!(!deletion.is_over());
    place.approve(second, second);
    assert_eq!(deletion.end().code, Some(0));
    assert_eq!(az.ok(&format!("vm list --resource-group {GROUP}")).as_array().unwrap().len(), 1);
    place.server.advance("5m");

    // Deleted as a machine, it is told, too.
    let deletion = az.begin(&format!("vm delete --resource-group {GROUP} --name {first} --yes"));
    wait_until("it is told", || (!place.seen(first).is_empty()).then_some(()));
    assert_eq!(place.one(first).what, "Terminate Scheduled");
    place.server.advance("10m");
    assert_eq!(deletion.end().code, Some(0));
    assert_eq!(az.ok(&format!("vmss show {OF_SET}"))["sku"]["capacity"], 0);
    az.ok(&format!("group delete --name {GROUP} --yes"));
    assert_eq!(az.ok(&format!("group exists --name {GROUP}")), json!(false));
}
