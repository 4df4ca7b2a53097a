//! Bodies of a fleet that has changed by other means.

use super::*;
use crate::read::scale_set::read_scale_set;
use forewarn_testkit::TestCluster;

fn set_of(fleet: &TestCluster) -> ScaleSetId {
    fleet.rules.scale_set_named("web").unwrap()
}

fn shown(fleet: &TestCluster, mut body: Value) -> Value {
    refresh_scale_set(&fleet.rules, set_of(fleet), &mut body);
    let once = body.clone();
    refresh_scale_set(&fleet.rules, set_of(fleet), &mut body);
    assert_eq!(body, once, "a second refresh changes nothing");
    body
}

#[test]
fn a_matching_body_stays_as_written() {
    let mut fleet = TestCluster::new(3);
    fleet.create(&json!({ "instances": 2, "terminate": "10m", "upgrade": "automatic" }));
    let body = json!({
        "sku": { "name": "s", "capacity": 2 },
        "properties": {
            "upgradePolicy": { "mode": "Automatic", "mine": 1 },
            "virtualMachineProfile": {
                "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT600S" } },
            },
        },
    });
    assert_eq!(shown(&fleet, body.clone()), body);
}

#[test]
fn changes_of_an_operator_are_shown() {
    let mut fleet = TestCluster::new(3);
    fleet.create(&json!({
        "instances": 3, "terminate": "10m", "os_image": true, "orchestration": "flexible",
        "policy": { "restart": "automatic" },
    }));
    fleet.run_json(&json!({ "command": "delete", "machine": "web_2" }));
    let body =
        json!({ "sku": { "capacity": 3 }, "properties": { "upgradePolicy": { "mode": "Automatic" } } });
    let body = shown(&fleet, body);
    let wanted = read_scale_set(&body).unwrap();
    let set = fleet.rules.scale_set(set_of(&fleet)).unwrap();
    assert_eq!((wanted.capacity, wanted.profile), (Some(2), set.model));
    assert_eq!((wanted.priority, wanted.upgrade), (set.priority, UpgradeWord::Manual));
    assert_eq!(wanted.policy, set.policy.into());
    assert_eq!(body["properties"]["orchestrationMode"], "Flexible");
}

#[test]
fn a_rolling_upgrade_is_shown_with_its_policy() {
    let mut fleet = TestCluster::new(1);
    fleet.create(&json!({ "upgrade": { "rolling": { "batch_percent": 34, "pause": "90s" } } }));
    let body = shown(&fleet, json!({ "properties": { "upgradePolicy": { "mode": "Automatic" } } }));
    let rolling = json!({ "maxBatchInstancePercent": 34, "pauseTimeBetweenBatches": "PT1M30S" });
    let policy = json!({ "mode": "Rolling", "rollingUpgradePolicy": rolling });
    assert_eq!(body["properties"]["upgradePolicy"], policy);
    let given = json!({ "mode": "Rolling", "rollingUpgradePolicy": { "maxBatchInstancePercent": 34, "pauseTimeBetweenBatches": "PT90S" } });
    let body = shown(&fleet, json!({ "properties": { "upgradePolicy": given } }));
    assert_eq!(body["properties"]["upgradePolicy"], given);
}

#[test]
fn only_a_spot_set_shows_its_priority() {
    let mut fleet = TestCluster::new(1);
    fleet.create(&json!({ "spot": "delete" }));
    for body in [json!({}), json!({ "properties": { "virtualMachineProfile": { "priority": "Regular" } } })] {
        let model = &shown(&fleet, body)["properties"]["virtualMachineProfile"];
        assert_eq!((&model["priority"], &model["evictionPolicy"]), (&json!("Spot"), &json!("Delete")));
    }
    let low = json!({ "properties": { "virtualMachineProfile": { "priority": "Low", "evictionPolicy": "Delete" } } });
    assert_eq!(shown(&fleet, low)["properties"]["virtualMachineProfile"]["priority"], "Low");
    let mut regular = json!({ "priority": "Spot", "evictionPolicy": "Delete" });
    refresh_priority(&mut regular, Priority::Regular);
    assert_eq!(regular, json!({ "priority": "Regular" }));
}

#[test]
fn bodies_of_machines_and_availability_sets_are_updated() {
    let mut fleet = TestCluster::new(1);
    let policy = json!({ "redeploy": "automatic" });
    fleet.run_json(
        &json!({ "command": "admit_vm", "name": "solo", "host": "h1", "terminate": "5m", "policy": policy }),
    );
    fleet.run_json(&json!({ "command": "admit_availability_set", "name": "db", "policy": policy }));
    let solo = fleet.rules.tenant_named("solo").unwrap();
    let machine = fleet.rules.machine_named(solo, "solo").unwrap();
    let mut body = json!({});
    refresh_machine(&fleet.rules, machine, &mut body);
    let approved = json!({ "userInitiatedRedeploy": { "automaticallyApprove": true } });
    let notice = json!({ "enable": true, "notBeforeTimeout": "PT5M" });
    assert_eq!(
        body["properties"],
        json!({ "scheduledEventsProfile": { "terminateNotificationProfile": notice }, "scheduledEventsPolicy": approved })
    );
    let mut body = json!({ "properties": "x" });
    refresh_availability_set(&fleet.rules, fleet.rules.tenant_named("db").unwrap(), &mut body);
    assert_eq!(body, json!({ "properties": { "scheduledEventsPolicy": approved } }));
}

#[test]
fn a_missing_resource_leaves_the_body_unchanged() {
    let fleet = TestCluster::new(1);
    let mut body = json!({ "a": 1 });
    refresh_scale_set(&fleet.rules, ScaleSetId(7), &mut body);
    refresh_machine(&fleet.rules, MachineId(7), &mut body);
    refresh_availability_set(&fleet.rules, TenantId(7), &mut body);
    assert_eq!(body, json!({ "a": 1 }));
}
