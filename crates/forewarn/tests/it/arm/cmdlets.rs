//! What the documented PowerShell cmdlets send, sent again: by contract, the cmdlets themselves are not run.

use serde_json::json;

use forewarn_testkit::arm::{
    AFTER_10, AFTER_15, ArmServer, NEW, instance, notification, set, shown_notification, wanted_set,
};

/// `New-AzVmssConfig -SkuCapacity 2 -UpgradePolicyMode Automatic -TerminateScheduledEvents $true
/// -TerminateScheduledEventNotBeforeTimeoutInMinutes 10`, then `New-AzVmss`.
/// promise: Z6
#[test]
fn new_az_vmss_makes_a_set_whose_instances_have_the_notification_at_once() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let mut wanted = wanted_set(2);
    wanted["properties"]["upgradePolicy"]["mode"] = json!("Automatic");
    wanted["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] =
        json!({ "terminateNotificationProfile": { "notBeforeTimeout": "PT10M", "enable": true } });
    let answered = place.put(&set(), "2023-09-01", &wanted);
    assert_eq!(answered["sku"]["capacity"], 2);
    assert_eq!(answered["properties"]["upgradePolicy"]["mode"], "Automatic");
    place.server.enrol(&[&instance(0)]);
    let operation = place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["0", "1"] }));
    for machine in [instance(0), instance(1)] {
        let seen = place.seen(&machine);
        let told: Vec<_> = seen.iter().map(|seen| (seen.whom.clone(), seen.not_before.as_str())).collect();
        assert_eq!(told, [(instance(0), AFTER_10), (instance(1), AFTER_10)]);
    }
    assert_eq!(place.status(&operation), "InProgress");
}

/// A change of the model of a set that upgrades by itself reaches its instances by itself.
/// promise: Z6
#[test]
fn an_automatic_upgrade_brings_a_change_to_every_instance() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let mut wanted = wanted_set(2);
    wanted["properties"]["upgradePolicy"]["mode"] = json!("Automatic");
    place.put(&set(), NEW, &wanted);
    place.server.enrol(&[&instance(0)]);
    place.change(
        "PATCH",
        &set(),
        NEW,
        &notification(&json!({ "notBeforeTimeout": "PT15M", "enable": true })),
    );
    for number in 0..2 {
        let shown = place.get(&format!("{}/virtualMachines/{number}", set()), NEW);
        assert_eq!(shown["properties"]["latestModelApplied"], true, "{shown}");
    }
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    assert_eq!(place.one(&instance(1)).not_before, AFTER_15);
}

/// `Update-AzVmss -ResourceGroupName … -VMScaleSetName … -TerminateScheduledEvents $true
/// -TerminateScheduledEventNotBeforeTimeoutInMinutes 15`.
/// promise: Z6
#[test]
fn update_az_vmss_is_true_for_an_instance_once_it_is_upgraded() {
    let place = ArmServer::start(crate::program());
    place.make_set(3);
    let sent = notification(&json!({ "notBeforeTimeout": "PT15M", "enable": true }));
    let answered = place.change("PATCH", &set(), "2023-09-01", &sent);
    assert_eq!(shown_notification(&answered)["notBeforeTimeout"], "PT15M");
    let is_latest = |number: u32| {
        let shown = place.get(&format!("{}/virtualMachines/{number}", set()), NEW);
        shown["properties"]["latestModelApplied"].clone()
    };
    assert_eq!([is_latest(0), is_latest(1), is_latest(2)], [false, false, false]);
    // One that has not been upgraded goes as it always went.
    place.act(&format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    assert_eq!(place.short(&instance(0)), [""; 0]);
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["2"] }));
    assert_eq!([is_latest(0), is_latest(2)], [false, true]);
    place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["2"] }));
    let seen = place.one(&instance(0));
    assert_eq!((seen.whom, seen.not_before.as_str()), (instance(2), AFTER_15));
}
