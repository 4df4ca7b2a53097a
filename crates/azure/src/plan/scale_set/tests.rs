//! Bodies of scale sets, and a fleet whose rules must accept the commands.

use forewarn_lifecycle::{Command, EvictionPolicy, Policy, Priority, Report, UpgradePolicy};
use serde_json::json;

use super::*;
use crate::canonical::canonical;
use crate::kind::SCALE_SETS;
use crate::refresh::refresh_scale_set;
use crate::settle::settle;
use crate::version::ApiVersion;
use forewarn_control::find_machine;
use forewarn_testkit::TestCluster;

const NEW: ApiVersion = ApiVersion::new(2025, 4, 1);

fn unprotected(_: MachineId) -> Protection {
    Protection::default()
}

/// A server that stores the body of one scale set.
struct TestScaleSet {
    fleet: TestCluster,
    stored: Value,
}

impl TestScaleSet {
    /// A client has PUT a scale set.
    fn new(hosts: u32, sent: &Value) -> Self {
        let mut server = Self { fleet: TestCluster::new(hosts), stored: json!({}) };
        let mut sent = sent.clone();
        sent["location"] = json!("l");
        let body = settle(SCALE_SETS, None, &sent, NEW).unwrap();
        let commands = plan_scale_set(&server.fleet.rules, "web", None, &body, &unprotected).unwrap();
        server.carry_out(&commands);
        server.stored = body;
        server
    }

    fn set(&self) -> &ScaleSet {
        self.fleet.rules.scale_set(self.id()).unwrap()
    }

    fn id(&self) -> ScaleSetId {
        self.fleet.rules.scale_set_named("web").unwrap()
    }

    fn carry_out(&mut self, commands: &[NamedCommand]) {
        let is_of_rules = |command: &&NamedCommand| !matches!(command, NamedCommand::Describe { .. });
        commands.iter().filter(is_of_rules).for_each(|command| self.fleet.run_named(command));
    }

    fn plan(
        &self,
        sent: &Value,
        protection: &dyn Fn(MachineId) -> Protection,
    ) -> Result<(Value, Vec<NamedCommand>), ArmError> {
        let mut before = self.stored.clone();
        refresh_scale_set(&self.fleet.rules, self.id(), &mut before);
        let body = settle(SCALE_SETS, Some(&before), sent, NEW)?;
        let commands =
            plan_scale_set(&self.fleet.rules, "web", Some((self.id(), &before)), &body, protection)?;
        Ok((body, commands))
    }

    /// A client PUTs or PATCHes. Returns the commands.
    fn put(&mut self, sent: &Value) -> Vec<String> {
        let (body, commands) = self.plan(sent, &unprotected).unwrap();
        self.carry_out(&commands);
        self.stored = body;
        words(&commands)
    }

    fn refused(&self, sent: &Value) -> (u16, String, String) {
        let error = self.plan(sent, &unprotected).unwrap_err();
        (error.status, error.code.into_owned(), error.target.unwrap_or_default())
    }

    /// Seconds of notice that each instance gives of its deletion.
    fn notices(&self) -> Vec<Option<u64>> {
        let machines = instances_of(&self.fleet.rules, self.set());
        let profile = |id: &MachineId| self.fleet.rules.machine(*id).unwrap().profile;
        machines.iter().map(|id| profile(id).terminate.map(|notice| notice.length().as_secs())).collect()
    }
}

fn words(commands: &[NamedCommand]) -> Vec<String> {
    let word = |command: &NamedCommand| {
        let value = serde_json::to_value(command).unwrap();
        let about = value["machine"].as_str().unwrap_or_default();
        format!("{} {about}", value["command"].as_str().unwrap()).trim().to_owned()
    };
    commands.iter().map(word).collect()
}

fn terminate(notice: &Value) -> Value {
    let profile = json!({ "scheduledEventsProfile": { "terminateNotificationProfile": notice } });
    json!({ "properties": { "virtualMachineProfile": profile } })
}

fn model(model: &Value) -> Value {
    json!({ "properties": { "virtualMachineProfile": model } })
}

#[test]
fn a_new_scale_set_is_admitted_with_its_instances() {
    let server = TestScaleSet::new(
        3,
        &json!({
            "sku": { "name": "s", "capacity": "3" }, "tags": { "a": "b" },
            "properties": {
                "orchestrationMode": "flexible",
                "upgradePolicy": { "mode": "automatic" },
                "scheduledEventsPolicy": { "userInitiatedReboot": { "automaticallyApprove": true } },
                "virtualMachineProfile": { "priority": "Low", "evictionPolicy": "Delete" },
            },
        }),
    );
    let set = server.set();
    assert_eq!((set.orchestration, set.upgrade), (Orchestration::Flexible, UpgradePolicy::Automatic));
    assert_eq!(set.priority, Priority::Spot(EvictionPolicy::Delete));
    assert_ne!(set.policy, Policy::default());
    assert_eq!(server.notices(), [None, None, None]);
    let body = json!({ "sku": { "capacity": 1 }, "tags": { "a": "b" } });
    let commands = plan_scale_set(&server.fleet.rules, "api", None, &body, &unprotected).unwrap();
    let [_, NamedCommand::AdmitInstance { instance, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!(instance.tags["a"], "b");
    let taken = plan_scale_set(&server.fleet.rules, "WEB", None, &json!({}), &unprotected).unwrap_err();
    assert_eq!((taken.status, taken.code.as_ref()), (409, "Conflict"));
}

#[test]
fn without_room_a_scale_set_is_not_made() {
    let mut fleet = TestCluster::new(0);
    let plan =
        |fleet: &TestCluster, body: Value| plan_scale_set(&fleet.rules, "web", None, &body, &unprotected);
    let error = plan(&fleet, json!({ "sku": { "capacity": 1 } })).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (409, "AllocationFailed"));
    fleet.run_json(&json!({ "command": "admit_host", "name": "z1", "zone": 1 }));
    let error = plan(&fleet, json!({ "sku": { "capacity": 1 }, "zones": ["2"] })).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (409, "ZonalAllocationFailed"));
    assert_eq!(plan(&fleet, json!({ "sku": { "capacity": 1 }, "zones": ["1", "2"] })).unwrap().len(), 2);
    assert_eq!(plan(&fleet, json!({ "sku": { "capacity": 1001 } })).unwrap_err().status, 400);
    assert_eq!(plan(&fleet, json!({})).unwrap().len(), 1, "it may be empty");
}

#[test]
fn instances_are_in_as_many_fault_domains_as_are_wanted() {
    for (count, used) in [(json!(null), 3), (json!(1), 1), (json!(2), 2), (json!(5), 5)] {
        let sent = json!({ "sku": { "capacity": 6 }, "properties": { "platformFaultDomainCount": count } });
        let server = TestScaleSet::new(6, &sent);
        let machines = instances_of(&server.fleet.rules, server.set());
        let domains = machines.iter().map(|id| server.fleet.rules.machine(*id).unwrap().fault_domain.0);
        assert_eq!(domains.collect::<BTreeSet<_>>(), (0..used).collect(), "{count}");
    }
}

/// The documented New-AzVmss and Update-AzVmss.
/// promise: T5
#[test]
fn notices_reach_instances_by_upgrade_mode() {
    let mut server = TestScaleSet::new(
        3,
        &json!({ "sku": { "capacity": 2 }, "properties": {
        "upgradePolicy": { "mode": "Automatic" },
        "virtualMachineProfile": { "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT10M" } } },
    } }),
    );
    assert_eq!(server.notices(), [Some(600), Some(600)]);
    assert_eq!(server.put(&terminate(&json!({ "notBeforeTimeout": "PT15M" }))), ["change_model"]);
    assert_eq!(server.notices(), [Some(900), Some(900)]);
    let mut server = TestScaleSet::new(3, &json!({ "sku": { "capacity": 2 } }));
    assert_eq!(
        server.put(&terminate(&json!({ "enable": true, "notBeforeTimeout": "PT15M" }))),
        ["change_model"]
    );
    assert_eq!(server.notices(), [None, None]);
    server.fleet.run_json(&json!({ "command": "upgrade_instance", "machine": "web_0" }));
    assert_eq!(server.notices(), [Some(900), None]);
    assert_eq!(server.put(&terminate(&json!({ "enable": true }))), [] as [&str; 0]);
    assert_eq!(
        server.put(&terminate(&json!({ "notBeforeTimeout": "PT900S" }))),
        [] as [&str; 0],
        "the same length"
    );
    assert_eq!(server.put(&terminate(&json!({ "enable": false }))), ["change_model"]);
    assert_eq!(server.refused(&terminate(&json!({ "notBeforeTimeout": "PT16M" }))).2, "notBeforeTimeout");
}

#[test]
fn a_spot_set_announces_no_deletion() {
    let server = TestScaleSet::new(1, &model(&json!({ "priority": "Spot" })));
    let error = server.refused(&terminate(&json!({ "enable": true })));
    assert_eq!((error.0, error.2.as_str()), (400, "terminateNotificationProfile"));
}

#[test]
fn capacity_is_what_az_vmss_scale_sends() {
    let mut server = TestScaleSet::new(3, &json!({ "sku": { "name": "s", "capacity": 2 } }));
    assert_eq!(
        server.put(&json!({ "location": "l", "sku": { "name": "s", "capacity": 3 } })),
        ["admit_instance"]
    );
    assert_eq!(server.put(&json!({ "sku": { "capacity": 1 } })), ["delete web/web_2", "delete web/web_1"]);
    assert_eq!(
        server.put(&json!({ "sku": { "capacity": 1 } })),
        [] as [&str; 0],
        "they are on their way out"
    );
    assert_eq!(server.put(&json!({ "sku": { "name": "S" } })), [] as [&str; 0]);
    assert_eq!(
        server.put(&json!({ "sku": { "name": "t" } })),
        ["revise_model"],
        "another size is another model"
    );
    let error = server
        .refused(&json!({ "sku": { "capacity": 200 }, "properties": { "singlePlacementGroup": true } }));
    assert_eq!(error.2, "singlePlacementGroup");
}

/// promise: T6
#[test]
fn scale_in_follows_policy_and_protection() {
    let mut server = TestScaleSet::new(
        4,
        &json!({ "sku": { "capacity": 4 }, "properties": { "scaleInPolicy": { "rules": ["OldestVM"] } } }),
    );
    let first = find_machine(&server.fleet.rules, "web_0").unwrap();
    let protection = |id| Protection { from_scale_in: id == first, ..Protection::default() };
    let shrink = |to: u16| json!({ "sku": { "capacity": to } });
    let (_, commands) = server.plan(&shrink(2), &protection).unwrap();
    assert_eq!(words(&commands), ["delete web/web_1", "delete web/web_2"]);
    let error = server.plan(&shrink(0), &protection).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (409, "OperationNotAllowed"));
    assert_eq!(server.put(&shrink(3)), ["delete web/web_0"]);
}

/// promise: T5
#[test]
fn a_change_of_the_model_makes_instances_old() {
    let image = |version: &str| {
        model(
            &json!({ "storageProfile": { "imageReference": { "id": "/x", "version": version, "mine": version } } }),
        )
    };
    let mut sent = image("1");
    sent["sku"] = json!({ "capacity": 1 });
    let mut server = TestScaleSet::new(2, &sent);
    assert_eq!(server.put(&image("1")), [] as [&str; 0]);
    assert_eq!(
        server.put(&model(
            &json!({ "extensionProfile": { "extensions": [] }, "osProfile": { "secrets": [] } })
        )),
        [] as [&str; 0]
    );
    assert_eq!(server.put(&image("2")), ["revise_model"]);
    let machine = find_machine(&server.fleet.rules, "web_0").unwrap();
    assert!(server.fleet.rules.machine(machine).unwrap().model_version < server.set().model_version);
    let both = model(
        &json!({ "licenseType": "x", "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true } } }),
    );
    let version = server.set().model_version;
    assert_eq!(server.put(&both), ["change_model"]);
    assert_eq!(server.set().model_version, version + 1, "one change is one version");
    assert_eq!(
        server.put(&json!({ "properties": { "overprovision": true } })),
        [] as [&str; 0],
        "not of the model"
    );
}

/// promise: T5
#[test]
fn another_image_reaches_instances_at_once_where_upgrades_are_automatic() {
    let image = |id: &str| model(&json!({ "storageProfile": { "imageReference": { "id": id } } }));
    let mut sent = image("/a");
    sent["sku"] = json!({ "capacity": 3 });
    sent["properties"]["upgradePolicy"] = json!({ "mode": "Automatic" });
    let mut server = TestScaleSet::new(4, &sent);
    server.fleet.run_json(&json!({ "command": "deallocate", "machine": "web_0" }));
    let started: Vec<_> = server.fleet.rules.unfinished().collect();
    for action in started {
        let (maintenance, target) = (action.maintenance, action.target);
        server.fleet.submit(&Command::Complete { maintenance, target, report: Report::Done });
    }
    let mut sent = image("/b");
    sent["sku"] = json!({ "capacity": 2 });
    let before = server.stored.clone();
    let since = |sent: &Value| {
        let body = settle(SCALE_SETS, Some(&before), sent, NEW).unwrap();
        image_since(&server.fleet.rules, server.id(), Some(1), &before, &body)
    };
    assert_eq!(since(&image("/A")), Some(1), "the same image");
    assert_eq!(since(&sent), Some(2));
    assert_eq!(server.put(&sent), ["revise_model", "reimage web/web_1", "delete web/web_2"]);
    assert_eq!(server.set().model_version, 2);
}

#[test]
fn mode_and_policy_change_at_once() {
    let mut server = TestScaleSet::new(2, &json!({ "sku": { "capacity": 1 } }));
    let rolling = json!({ "mode": "rolling", "rollingUpgradePolicy": { "maxBatchInstancePercent": "34", "pauseTimeBetweenBatches": "PT5S" } });
    let sent = json!({ "properties": {
        "upgradePolicy": rolling,
        "scheduledEventsPolicy": { "allInstancesDown": { "automaticallyApprove": "false" } },
    } });
    assert_eq!(server.put(&sent), ["change_upgrade_policy", "change_policy"]);
    assert_eq!(server.put(&sent), [] as [&str; 0]);
    assert!(matches!(server.set().upgrade, UpgradePolicy::Rolling { .. }));
    assert_eq!(
        server.put(&json!({ "properties": { "upgradePolicy": { "mode": "Manual" } } })),
        ["change_upgrade_policy"]
    );
    let tagged = server.put(&json!({ "tags": { "a": "b" } }));
    assert_eq!(tagged, ["describe web/web_0"]);
    assert_eq!(server.put(&json!({ "tags": { "a": "b" } })), [] as [&str; 0]);
}

/// promise: Z1
#[test]
fn changes_of_an_operator_are_not_undone() {
    let mut server = TestScaleSet::new(3, &json!({ "sku": { "capacity": 2 } }));
    server.fleet.run_json(&json!({ "command": "change_model", "scale_set": "web", "terminate": "5m" }));
    server.fleet.run_json(&json!({ "command": "delete", "machine": "web_1" }));
    assert_eq!(server.put(&json!({ "properties": { "overprovision": false } })), [] as [&str; 0]);
    assert_eq!(server.put(&terminate(&json!({ "enable": false }))), ["change_model"]);
}

/// promise: Z6
#[test]
fn fixed_properties_of_a_scale_set_cannot_change() {
    let server = TestScaleSet::new(
        1,
        &json!({ "properties": { "platformFaultDomainCount": 1, "singlePlacementGroup": false } }),
    );
    for (sent, target) in [
        (json!({ "properties": { "orchestrationMode": "Flexible" } }), "orchestrationMode"),
        (model(&json!({ "priority": "Spot" })), "priority"),
        (json!({ "properties": { "platformFaultDomainCount": 2 } }), "platformFaultDomainCount"),
        (json!({ "properties": { "singlePlacementGroup": true } }), "singlePlacementGroup"),
    ] {
        let refused = server.refused(&sent);
        assert_eq!(refused, (409, "PropertyChangeNotAllowed".to_owned(), target.to_owned()));
    }
    let spot = TestScaleSet::new(1, &model(&json!({ "priority": "Spot" })));
    assert_eq!(spot.refused(&model(&json!({ "evictionPolicy": "Delete" }))).2, "evictionPolicy");
    let error =
        plan_scale_set(&spot.fleet.rules, "web", Some((ScaleSetId(9), &json!({}))), &json!({}), &unprotected);
    assert_eq!(error.unwrap_err().status, 404);
}

#[test]
fn a_shown_body_can_be_sent_back() {
    let mut server = TestScaleSet::new(
        2,
        &json!({ "sku": { "name": "s", "capacity": 1 }, "properties": { "virtualMachineProfile": { "mine": [] } } }),
    );
    let mut shown = server.stored.clone();
    refresh_scale_set(&server.fleet.rules, server.id(), &mut shown);
    shown["id"] = json!("/x");
    shown["properties"]["provisioningState"] = json!("Succeeded");
    assert_eq!(server.put(&shown), [] as [&str; 0]);
    let mut again = shown.clone();
    canonical(SCALE_SETS, &mut again);
    assert_eq!(server.stored, again);
}
