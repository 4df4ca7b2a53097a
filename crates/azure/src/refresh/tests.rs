//! Bodies beside a fleet that somebody else has changed.

use super::*;
use crate::read::scale_set::read_scale_set;
use forewarn_testkit::TestCluster;

fn set_of(town: &TestCluster) -> ScaleSetId {
    town.cluster.scale_set_named("web").unwrap()
}

fn shown(town: &TestCluster, mut body: Value) -> Value {
    refresh_scale_set(&town.cluster, set_of(town), &mut body);
    let once = body.clone();
    refresh_scale_set(&town.cluster, set_of(town), &mut body);
    assert_eq!(body, once, "what is said stays");
    body
}

#[test]
fn a_body_that_is_so_stays_as_it_was_written() {
    let mut town = TestCluster::new(3);
    town.create(&json!({ "instances": 2, "terminate": "10m", "upgrade": "automatic" }));
    let body = json!({
        "sku": { "name": "s", "capacity": 2 },
        "properties": {
            "upgradePolicy": { "mode": "Automatic", "mine": 1 },
            "virtualMachineProfile": {
                "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT600S" } },
            },
        },
    });
    assert_eq!(shown(&town, body.clone()), body);
}

#[test]
fn what_an_operator_has_changed_is_said() {
    let mut town = TestCluster::new(3);
    town.create(&json!({
        "instances": 3, "terminate": "10m", "os_image": true, "orchestration": "flexible",
        "policy": { "restart": "automatic" },
    }));
    town.order(&json!({ "command": "delete", "machine": "web_2" }));
    let body =
        json!({ "sku": { "capacity": 3 }, "properties": { "upgradePolicy": { "mode": "Automatic" } } });
    let body = shown(&town, body);
    let wanted = read_scale_set(&body).unwrap();
    let set = town.cluster.scale_set(set_of(&town)).unwrap();
    assert_eq!((wanted.capacity, wanted.profile), (Some(2), set.model));
    assert_eq!((wanted.priority, wanted.upgrade), (set.priority, UpgradeWord::Manual));
    assert_eq!(wanted.policy, set.policy.into());
    assert_eq!(body["properties"]["orchestrationMode"], "Flexible");
}

#[test]
fn a_rolling_upgrade_is_said_with_its_terms() {
    let mut town = TestCluster::new(1);
    town.create(&json!({ "upgrade": { "rolling": { "batch_percent": 34, "pause": "90s" } } }));
    let body = shown(&town, json!({ "properties": { "upgradePolicy": { "mode": "Automatic" } } }));
    let rolling = json!({ "maxBatchInstancePercent": 34, "pauseTimeBetweenBatches": "PT1M30S" });
    let policy = json!({ "mode": "Rolling", "rollingUpgradePolicy": rolling });
    assert_eq!(body["properties"]["upgradePolicy"], policy);
    let said = json!({ "mode": "Rolling", "rollingUpgradePolicy": { "maxBatchInstancePercent": 34, "pauseTimeBetweenBatches": "PT90S" } });
    let body = shown(&town, json!({ "properties": { "upgradePolicy": said } }));
    assert_eq!(body["properties"]["upgradePolicy"], said);
}

#[test]
fn a_spot_set_is_said_to_be_one_and_a_regular_one_not() {
    let mut town = TestCluster::new(1);
    town.create(&json!({ "spot": "delete" }));
    for body in [json!({}), json!({ "properties": { "virtualMachineProfile": { "priority": "Regular" } } })] {
        let model = &shown(&town, body)["properties"]["virtualMachineProfile"];
        assert_eq!((&model["priority"], &model["evictionPolicy"]), (&json!("Spot"), &json!("Delete")));
    }
    let low = json!({ "properties": { "virtualMachineProfile": { "priority": "Low", "evictionPolicy": "Delete" } } });
    assert_eq!(shown(&town, low)["properties"]["virtualMachineProfile"]["priority"], "Low");
    let mut regular = json!({ "priority": "Spot", "evictionPolicy": "Delete" });
    refresh_priority(&mut regular, Priority::Regular);
    assert_eq!(regular, json!({ "priority": "Regular" }));
}

#[test]
fn so_do_bodies_of_machines_and_availability_sets() {
    let mut town = TestCluster::new(1);
    let policy = json!({ "redeploy": "automatic" });
    town.order(
        &json!({ "command": "admit_vm", "name": "solo", "host": "h1", "terminate": "5m", "policy": policy }),
    );
    town.order(&json!({ "command": "admit_availability_set", "name": "db", "policy": policy }));
    let solo = town.cluster.tenant_named("solo").unwrap();
    let machine = town.cluster.machine_named(solo, "solo").unwrap();
    let mut body = json!({});
    refresh_machine(&town.cluster, machine, &mut body);
    let approved = json!({ "userInitiatedRedeploy": { "automaticallyApprove": true } });
    let notice = json!({ "enable": true, "notBeforeTimeout": "PT5M" });
    assert_eq!(
        body["properties"],
        json!({ "scheduledEventsProfile": { "terminateNotificationProfile": notice }, "scheduledEventsPolicy": approved })
    );
    let mut body = json!({ "properties": "x" });
    refresh_availability_set(&town.cluster, town.cluster.tenant_named("db").unwrap(), &mut body);
    assert_eq!(body, json!({ "properties": { "scheduledEventsPolicy": approved } }));
}

#[test]
fn what_is_not_there_says_nothing() {
    let town = TestCluster::new(1);
    let mut body = json!({ "a": 1 });
    refresh_scale_set(&town.cluster, ScaleSetId(7), &mut body);
    refresh_machine(&town.cluster, MachineId(7), &mut body);
    refresh_availability_set(&town.cluster, TenantId(7), &mut body);
    assert_eq!(body, json!({ "a": 1 }));
}
