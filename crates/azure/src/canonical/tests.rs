//! Bodies as clients write them, and their canonical form.

use proptest::prelude::*;
use serde_json::json;

use super::super::kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
use super::super::merge::merge;
use super::*;

const KINDS: [&str; 5] =
    [VIRTUAL_MACHINES, SCALE_SETS, INSTANCES, AVAILABILITY_SETS, "Microsoft.Network/virtualNetworks"];

fn canonical_of(kind: &str, mut body: Value) -> Value {
    canonical(kind, &mut body);
    body
}

/// promise: Z1
#[test]
fn a_template_of_az_becomes_canonical() {
    let sent = json!({
        "sku": { "name": "Standard_DS1_v2", "capacity": "2" },
        "properties": {
            "overprovision": "True",
            "upgradePolicy": { "mode": "manual" },
            "orchestrationMode": "uniform",
            "virtualMachineProfile": {
                "priority": "spot",
                "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": "true", "notBeforeTimeout": "PT600S" } },
                "storageProfile": {
                    "osDisk": { "createOption": "fromImage", "caching": "readwrite", "managedDisk": { "storageAccountType": null } },
                    "dataDisks": [{ "lun": "0", "createOption": "empty", "diskSizeGB": 2.0 }],
                },
                "networkProfile": { "networkInterfaceConfigurations": [{ "properties": { "primary": "true" } }] },
            },
        },
    });
    let stored = json!({
        "sku": { "name": "Standard_DS1_v2", "capacity": 2 },
        "properties": {
            "overprovision": true,
            "upgradePolicy": { "mode": "Manual" },
            "orchestrationMode": "Uniform",
            "virtualMachineProfile": {
                "priority": "Spot",
                "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT600S" } },
                "storageProfile": {
                    "osDisk": { "createOption": "FromImage", "caching": "ReadWrite", "managedDisk": { "storageAccountType": null } },
                    "dataDisks": [{ "lun": 0, "createOption": "Empty", "diskSizeGB": 2 }],
                },
                "networkProfile": { "networkInterfaceConfigurations": [{ "properties": { "primary": true } }] },
            },
        },
    });
    assert_eq!(canonical_of(SCALE_SETS, sent), stored);
}

#[test]
fn a_known_member_gets_its_spelling_and_an_unknown_one_keeps_its_own() {
    let sent =
        json!({ "Properties": { "UpgradePolicy": { "MODE": "AUTOMATIC" }, "Mine": { "ENABLE": "true" } } });
    let stored =
        json!({ "properties": { "Mine": { "ENABLE": "true" }, "upgradePolicy": { "mode": "Automatic" } } });
    assert_eq!(canonical_of(SCALE_SETS, sent.clone()), stored);
    let other = canonical_of("Other/things", sent);
    assert_eq!(other["properties"]["UpgradePolicy"], json!({ "MODE": "AUTOMATIC" }));
}

#[test]
fn invalid_flags_numbers_and_words_are_left_for_validation() {
    let body = json!({
        "sku": { "capacity": "many" },
        "properties": { "upgradePolicy": { "mode": "Sometimes" }, "overprovision": "yes", "platformFaultDomainCount": "+1" },
    });
    assert_eq!(canonical_of(SCALE_SETS, body.clone()), body);
    let odd = json!({ "properties": [], "sku": "x", "tags": 5, "zones": "1" });
    assert_eq!(canonical_of(SCALE_SETS, odd.clone()), odd);
}

#[test]
fn tags_and_zones_are_texts() {
    let sent = json!({ "tags": { "a": 1, "b": true, "C": "x" }, "zones": [1, "2"] });
    let stored = json!({ "tags": { "a": "1", "b": "true", "C": "x" }, "zones": ["1", "2"] });
    for kind in KINDS {
        assert_eq!(canonical_of(kind, sent.clone()), stored, "{kind}");
    }
}

#[test]
fn members_of_the_server_are_removed() {
    let sent = json!({
        "id": "/x", "Name": "web", "type": "t", "etag": "\"1\"", "instanceId": "0", "location": "here",
        "properties": { "provisioningState": "Succeeded", "vmId": "v", "instanceView": {}, "latestModelApplied": true,
            "protectionPolicy": { "protectFromScaleIn": "true" } },
    });
    let stored =
        json!({ "location": "here", "properties": { "protectionPolicy": { "protectFromScaleIn": true } } });
    assert_eq!(canonical_of(INSTANCES, sent), stored);
    let set = json!({ "properties": { "platformFaultDomainCount": "2", "virtualMachines": [{ "id": "/x" }], "statuses": [] } });
    assert_eq!(
        canonical_of(AVAILABILITY_SETS, set),
        json!({ "properties": { "platformFaultDomainCount": 2 } })
    );
    let machine =
        json!({ "resources": [], "properties": { "vmId": "v", "timeCreated": "t", "userData": "x" } });
    assert_eq!(canonical_of(VIRTUAL_MACHINES, machine), json!({ "properties": { "userData": "x" } }));
}

#[test]
fn numbers_are_whole_or_left_alone() {
    for (sent, stored) in [
        (json!("3"), json!(3)),
        (json!("-3"), json!(-3)),
        (json!(3.0), json!(3)),
        (json!(3.5), json!(3.5)),
        (json!(1e300), json!(1e300)),
        (json!("3.0"), json!("3.0")),
        (json!("99999999999999999999"), json!("99999999999999999999")),
        (json!(""), json!("")),
        (json!("-"), json!("-")),
    ] {
        let body = canonical_of(SCALE_SETS, json!({ "sku": { "capacity": sent } }));
        assert_eq!(body, json!({ "sku": { "capacity": stored } }));
    }
}

/// Any JSON, mostly with known names, in any case.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        prop::sample::select(vec![
            "properties",
            "Properties",
            "tags",
            "sku",
            "capacity",
            "virtualMachineProfile",
            "scheduledEventsProfile",
            "terminateNotificationProfile",
            "enable",
            "ENABLE",
            "notBeforeTimeout",
            "zones",
            "upgradePolicy",
            "mode",
            "osProfile",
            "secrets",
            "adminPassword",
            "id",
            "provisioningState",
            "storageProfile",
            "dataDisks",
            "lun",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z]{0,3}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["true", "False", "manual", "Spot", "3", "PT5M", "", "é"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_is_idempotent(body in any_json(), kind in prop::sample::select(&KINDS[..])) {
        let once = canonical_of(kind, body);
        prop_assert_eq!(canonical_of(kind, once.clone()), once);
    }

    #[test]
    fn merging_is_idempotent(stored in any_json(), sent in any_json()) {
        let given = merge(&json!({}), &stored);
        prop_assert_eq!(merge(&given, &given), given.clone());
        let merged = merge(&given, &sent);
        prop_assert_eq!(merge(&merged, &sent), merged);
    }

    #[test]
    fn nothing_secret_is_left(body in any_json()) {
        let text = canonical_of(SCALE_SETS, json!({ "properties": body })).to_string();
        prop_assert!(!text.contains("adminPassword"), "{}", text);
    }
}
