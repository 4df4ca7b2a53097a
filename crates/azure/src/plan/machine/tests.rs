//! Bodies of machines, and a fleet whose rules must accept the commands.

use forewarn_lifecycle::{EvictionPolicy, Policy, Priority};
use serde_json::json;

use super::*;
use crate::kind::{AVAILABILITY_SETS, SCALE_SETS, VIRTUAL_MACHINES};
use crate::refresh::refresh_machine;
use crate::settle::settle;
use crate::version::ApiVersion;
use forewarn_control::find_machine;
use forewarn_testkit::TestCluster;

const NEW: ApiVersion = ApiVersion::new(2025, 4, 1);

fn reference(kind: &str, name: &str) -> Value {
    json!({ "id": format!("/subscriptions/s/resourceGroups/g/providers/{kind}/{name}") })
}

/// The stored body after a write.
fn stored(stored: Option<&Value>, mut sent: Value) -> Value {
    sent["location"] = json!("l");
    settle(VIRTUAL_MACHINES, stored, &sent, NEW).unwrap()
}

fn create(fleet: &TestCluster, name: &str, sent: Value) -> Result<MachinePlan, ArmError> {
    plan_machine(&fleet.rules, name, None, &stored(None, sent), Domains::default())
}

/// Carries a plan out. Returns its machine.
fn carry_out(fleet: &mut TestCluster, plan: &MachinePlan) -> MachineId {
    let is_of_rules = |command: &&NamedCommand| !matches!(command, NamedCommand::Describe { .. });
    plan.commands.iter().filter(is_of_rules).for_each(|command| fleet.run_named(command));
    find_machine(&fleet.rules, &plan.machine).expect("it is called so")
}

/// The commands of a PUT.
fn put(fleet: &TestCluster, id: MachineId, was: &Value, sent: Value) -> Result<Vec<NamedCommand>, ArmError> {
    let mut before = was.clone();
    refresh_machine(&fleet.rules, id, &mut before);
    let body = stored(Some(&before), sent);
    plan_machine(&fleet.rules, "any", Some((id, &before)), &body, Domains::default())
        .map(|plan| plan.commands)
}

#[test]
fn a_machine_of_its_own_is_admitted_as_it_is_wanted() {
    let mut fleet = TestCluster::new(2);
    let sent = json!({ "tags": { "a": "b" }, "properties": {
        "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": "true", "notBeforeTimeout": "PT7M30S" } },
        "scheduledEventsPolicy": { "userInitiatedReboot": { "automaticallyApprove": true } },
    } });
    let plan = create(&fleet, "solo", sent).unwrap();
    assert_eq!(plan.machine, "solo/solo");
    let [NamedCommand::AdmitVm(entry)] = plan.commands.as_slice() else { panic!("{plan:?}") };
    assert_eq!(entry.tags["a"], "b");
    let id = carry_out(&mut fleet, &plan);
    let machine = fleet.rules.machine(id).unwrap();
    assert_eq!(machine.profile.terminate.unwrap().length().as_secs(), 450);
    assert_eq!(machine.priority, Priority::Regular);
    assert_ne!(fleet.rules.tenant(machine.tenant).unwrap().policy, Policy::default());
    let spot =
        create(&fleet, "cheap", json!({ "properties": { "priority": "Low", "evictionPolicy": "delete" } }))
            .unwrap();
    let id = carry_out(&mut fleet, &spot);
    assert_eq!(fleet.rules.machine(id).unwrap().priority, Priority::Spot(EvictionPolicy::Delete));
    assert_eq!(create(&fleet, "solo", json!({})).unwrap_err().code, "Conflict");
    assert_eq!(create(&fleet, "no/name", json!({})).unwrap_err().code, "InvalidResourceName");
    assert_eq!(create(&TestCluster::new(0), "solo", json!({})).unwrap_err().code, "AllocationFailed");
}

#[test]
fn a_zone_is_where_its_hosts_are() {
    let mut fleet = TestCluster::new(1);
    fleet.run_json(&json!({ "command": "admit_host", "name": "z2", "zone": 2 }));
    let plan = create(&fleet, "solo", json!({ "zones": [2] })).unwrap();
    let id = carry_out(&mut fleet, &plan);
    let host = fleet.rules.machine(id).unwrap().host;
    assert_eq!(fleet.rules.host(host).unwrap().name.as_str(), "z2");
    assert_eq!(create(&fleet, "other", json!({ "zones": ["1"] })).unwrap_err().code, "ZonalAllocationFailed");
}

#[test]
fn machines_of_an_availability_set_are_spread_over_its_domains() {
    let mut fleet = TestCluster::new(4);
    let body = json!({ "location": "l", "properties": { "platformUpdateDomainCount": 2, "platformFaultDomainCount": 2 } });
    let domains = read_availability_set(&body).unwrap().domains;
    let commands = plan_availability_set(&fleet.rules, "db", None, &body).unwrap();
    commands.iter().for_each(|command| fleet.run_named(command));
    let sent = || json!({ "properties": { "availabilitySet": reference(AVAILABILITY_SETS, "DB") } });
    for name in ["db1", "db2", "db3"] {
        let body = stored(None, sent());
        let plan = plan_machine(&fleet.rules, name, None, &body, domains).unwrap();
        assert_eq!(plan.machine, format!("db/{name}"));
        carry_out(&mut fleet, &plan);
    }
    let domain = |name: &str| {
        let machine = fleet.rules.machine(find_machine(&fleet.rules, name).unwrap()).unwrap();
        (machine.update_domain.0, machine.fault_domain.0)
    };
    assert_eq!([domain("db1"), domain("db2"), domain("db3")], [(0, 0), (1, 1), (0, 0)]);
    assert_eq!(create(&fleet, "db1", sent()).unwrap_err().code, "Conflict");
    let nowhere = json!({ "properties": { "availabilitySet": reference(AVAILABILITY_SETS, "x") } });
    assert_eq!(create(&fleet, "db4", nowhere).unwrap_err().code, "ResourceNotFound");
    let machine = find_machine(&fleet.rules, "db1").unwrap();
    let was = stored(None, sent());
    assert_eq!(put(&fleet, machine, &was, json!({})).unwrap(), []);
    let other = json!({ "properties": { "availabilitySet": reference(AVAILABILITY_SETS, "other") } });
    let error = put(&fleet, machine, &was, other).unwrap_err();
    assert_eq!((error.status, error.target.as_deref()), (409, Some("availabilitySet.id")));
}

#[test]
fn a_machine_that_joins_a_flexible_scale_set_is_another_instance() {
    let mut fleet = TestCluster::new(3);
    fleet.create(&json!({ "instances": 1, "orchestration": "flexible", "terminate": "5m" }));
    let joins = |more: Value| {
        let mut properties = json!({ "virtualMachineScaleSet": reference(SCALE_SETS, "web") });
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "tags": { "a": "b" }, "properties": properties })
    };
    let plan = create(&fleet, "mine", joins(json!({}))).unwrap();
    assert_eq!(plan.machine, "web/web_c3d18c1c");
    let id = carry_out(&mut fleet, &plan);
    assert!(fleet.rules.machine(id).unwrap().profile.terminate.is_some(), "it has the model of its set");
    // A name that a next instance would get is given to it, under its number, too.
    let plan = create(&fleet, "web_c1bd6afc", joins(json!({}))).unwrap();
    assert_eq!(plan.machine, "web/web_c1bd6afc");
    let seventh = carry_out(&mut fleet, &plan);
    assert_eq!(find_machine(&fleet.rules, "web_7"), Ok(seventh));
    let plan = create(&fleet, "web_9", joins(json!({}))).unwrap();
    let ninth = carry_out(&mut fleet, &plan);
    assert_eq!(find_machine(&fleet.rules, "web_9"), Ok(ninth));
    // An arbitrary name does not use up the numbers.
    let plan = create(&fleet, "web_99000000", joins(json!({}))).unwrap();
    let tenth = carry_out(&mut fleet, &plan);
    assert_eq!(find_machine(&fleet.rules, "web_10"), Ok(tenth));
    for (more, target) in [
        (json!({ "priority": "Spot" }), "priority"),
        (
            json!({ "scheduledEventsProfile": { "osImageNotificationProfile": { "enable": true } } }),
            "scheduledEventsProfile",
        ),
    ] {
        let error = create(&fleet, "more", joins(more)).unwrap_err();
        assert_eq!((error.status, error.target.as_deref()), (409, Some(target)));
    }
    let nowhere = json!({ "properties": { "virtualMachineScaleSet": reference(SCALE_SETS, "x") } });
    assert_eq!(create(&fleet, "more", nowhere).unwrap_err().status, 404);
    let mut uniform = TestCluster::new(1);
    uniform.create(&json!({}));
    assert_eq!(create(&uniform, "more", joins(json!({}))).unwrap_err().code, "OperationNotAllowed");
}

/// promise: Z1
#[test]
fn mutable_properties_change_and_others_are_rejected() {
    let mut fleet = TestCluster::new(1);
    let was = stored(
        None,
        json!({ "properties": {
        "storageProfile": { "imageReference": { "publisher": "P", "offer": "O", "sku": "S", "version": "latest" } },
    } }),
    );
    let plan = create(&fleet, "solo", was.clone()).unwrap();
    let id = carry_out(&mut fleet, &plan);
    assert_eq!(put(&fleet, id, &was, json!({})).unwrap(), []);
    let sent = json!({ "tags": { "x": "y" }, "properties": {
        "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true } },
        "scheduledEventsPolicy": { "allInstancesDown": { "automaticallyApprove": false } },
    } });
    let commands = put(&fleet, id, &was, sent).unwrap();
    let words: Vec<_> =
        commands.iter().map(|command| serde_json::to_value(command).unwrap()["command"].clone()).collect();
    assert_eq!(words, ["change_profile", "change_policy", "describe"]);
    carry_out(&mut fleet, &MachinePlan { commands, machine: "solo/solo".to_owned() });
    assert!(fleet.rules.machine(id).unwrap().profile.terminate.is_some());
    // A change by an operator stays, although the stored body differs.
    fleet.run_json(&json!({ "command": "change_profile", "machine": "solo", "terminate": "15m" }));
    assert_eq!(put(&fleet, id, &was, json!({ "properties": { "mine": 1 } })).unwrap(), []);
    let image = |version: &str| json!({ "properties": { "storageProfile": { "imageReference": { "version": version } } } });
    for (sent, status, target) in [
        (json!({ "properties": { "priority": "Spot" } }), 400, "terminateNotificationProfile"),
        (json!({ "zones": ["1"] }), 400, "zones"),
        (image("2.0"), 409, "imageReference"),
        (
            json!({ "properties": { "availabilitySet": reference(AVAILABILITY_SETS, "solo2") } }),
            409,
            "availabilitySet.id",
        ),
        (
            json!({ "properties": { "virtualMachineScaleSet": reference(SCALE_SETS, "x") } }),
            409,
            "virtualMachineScaleSet.id",
        ),
    ] {
        let error = put(&fleet, id, &was, sent).unwrap_err();
        assert_eq!((error.status, error.target.as_deref()), (status, Some(target)), "{error}");
    }
    assert_eq!(put(&fleet, id, &was, image("LATEST")).unwrap(), []);
    assert_eq!(put(&fleet, MachineId(9), &was, json!({})).unwrap_err().status, 404);
}

#[test]
fn an_instance_may_be_protected_and_tagged_and_keeps_what_its_set_says() {
    let mut fleet = TestCluster::new(1);
    fleet.create(&json!({ "instances": 1, "orchestration": "flexible" }));
    let id = find_machine(&fleet.rules, "web_0").unwrap();
    let protect =
        json!({ "tags": { "a": "b" }, "properties": { "protectionPolicy": { "protectFromScaleIn": true } } });
    let commands = plan_instance(&fleet.rules, id, &json!({}), &protect).unwrap();
    let [NamedCommand::Describe { machine, tags: Some(tags), .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!((machine.as_str(), tags["a"].as_str()), ("web/web_dd6d6b41", "b"));
    assert_eq!(plan_instance(&fleet.rules, id, &protect, &protect), Ok(vec![]));
    assert_eq!(plan_instance(&fleet.rules, MachineId(9), &protect, &protect).unwrap_err().status, 404);
    let announced = json!({ "properties": { "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true } } } });
    let error = put(&fleet, id, &json!({}), announced).unwrap_err();
    assert_eq!((error.status, error.target.as_deref()), (409, Some("scheduledEventsProfile")));
}

#[test]
fn an_availability_set_keeps_its_domains_and_may_change_its_policy() {
    let mut fleet = TestCluster::new(1);
    let body = json!({ "properties": { "platformFaultDomainCount": 2 } });
    let plan = |fleet: &TestCluster, before: Option<(TenantId, &Value)>, body: &Value| {
        plan_availability_set(&fleet.rules, "db", before, body)
    };
    let commands = plan(&fleet, None, &body).unwrap();
    commands.iter().for_each(|command| fleet.run_named(command));
    let id = fleet.rules.tenant_named("db").unwrap();
    assert_eq!(plan(&fleet, Some((id, &body)), &body), Ok(vec![]));
    let mut approved = body.clone();
    approved["properties"]["scheduledEventsPolicy"] =
        json!({ "userInitiatedRedeploy": { "automaticallyApprove": true } });
    let commands = plan(&fleet, Some((id, &body)), &approved).unwrap();
    assert!(matches!(commands.as_slice(), [NamedCommand::ChangePolicy { tenant, .. }] if tenant == "db"));
    commands.iter().for_each(|command| fleet.run_named(command));
    for name in ["platformFaultDomainCount", "platformUpdateDomainCount"] {
        let mut other = body.clone();
        other["properties"][name] = json!(3);
        let error = plan(&fleet, Some((id, &body)), &other).unwrap_err();
        assert_eq!((error.status, error.code.as_ref()), (409, "PropertyChangeNotAllowed"));
        assert_eq!(error.target.as_deref(), Some(name));
    }
    assert_eq!(plan(&fleet, None, &body).unwrap_err().code, "Conflict");
    assert_eq!(plan(&fleet, Some((TenantId(9), &body)), &body).unwrap_err().status, 404);
}
