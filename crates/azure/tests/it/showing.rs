//! What clients of Azure Resource Manager are shown. The bodies are in `seen`; read them before you commit them.

use forewarn_azure::*;
use forewarn_control::resource_id::*;
use forewarn_control::*;
use forewarn_lifecycle::*;
use serde_json::{Value, json};

use forewarn_testkit::TestCluster;

const SEED: Seed = Seed([7; 16]);

fn seen(name: &str, body: &Value) {
    let text = serde_json::to_string_pretty(body).unwrap();
    insta::with_settings!({ snapshot_path => "seen", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

fn show_context(town: &TestCluster) -> ShowContext<'_> {
    ShowContext {
        cluster: &town.rules,
        site: &town.site,
        details: &town.details,
        seed: &SEED,
        now: town.now.wall,
        version: ApiVersion::new(2024, 11, 1),
    }
}

/// Three hosts in two zones, and nothing on them.
fn town() -> TestCluster {
    let mut town = TestCluster::empty();
    town.run_text(r#"{"command":"admit_host","name":"h1","zone":1}"#);
    town.run_text(r#"{"command":"admit_host","name":"h2","zone":2}"#);
    town.run_text(r#"{"command":"admit_host","name":"h3","zone":1}"#);
    town
}

fn with_vm(entry: &str) -> (TestCluster, MachineId) {
    let mut town = town();
    town.run_text(&format!(r#"{{"command":"admit_vm","name":"solo","host":"h1"{entry}}}"#));
    (town, MachineId(0))
}

fn id(kind: &str, name: &str) -> ResourceId {
    let group = GroupId { subscription: "sub".to_owned(), name: "Shop".to_owned() };
    group.resource("Microsoft.Compute", kind, name)
}

fn kept<'a>(id: &'a ResourceId, body: &'a Value) -> StoredResource<'a> {
    let created = Some(Timestamp::from_millis(1_767_000_000_000));
    StoredResource { id, body, etag: 3, created, state: Provisioning::Succeeded }
}

/// A machine that no client has sent, as everybody sees it.
fn plain(town: &TestCluster, machine: MachineId, expand: Expand) -> Value {
    let context = show_context(town);
    let group = group_of(context.site, context.details.get(&machine));
    let id = machine_id(context.cluster, &group, machine).unwrap();
    let body = plain_machine(&context, machine);
    let kept =
        StoredResource { id: &id, body: &body, etag: 1, created: None, state: Provisioning::Succeeded };
    show_machine(&context, &kept, machine, expand)
}

fn view(town: &TestCluster, machine: MachineId) -> Value {
    plain(town, machine, Expand::InstanceView)["properties"]["instanceView"].take()
}

/// promise: Z1
#[test]
fn a_machine_of_a_fleet_file_is_shown_as_if_somebody_had_asked_for_it() {
    let (town, solo) = with_vm(r#","terminate":"5m","tags":{"team":"a"},"policy":{"restart":"automatic"}"#);
    seen("plain-machine", &plain(&town, solo, Expand::InstanceView));
    assert_eq!(plain(&town, solo, Expand::Nothing)["properties"].get("instanceView"), None);
}

/// promise: Z1
#[test]
fn a_machine_that_is_off_says_so() {
    let (mut town, solo) = with_vm("");
    town.run_text(r#"{"command":"stop","machine":"solo"}"#);
    assert_eq!(view(&town, solo)["statuses"][1]["code"], "PowerState/stopping");
    town.finish();
    seen("stopped-machine-view", &view(&town, solo));
    town.run_text(r#"{"command":"deallocate","machine":"solo"}"#);
    assert_eq!(view(&town, solo)["statuses"][1]["code"], "PowerState/deallocating");
    town.finish();
    seen("deallocated-machine-view", &view(&town, solo));
    town.run_text(r#"{"command":"start","machine":"solo"}"#);
    assert_eq!(view(&town, solo)["statuses"][1]["displayStatus"], "VM starting");
    town.finish();
    assert_eq!(view(&town, solo)["statuses"][1]["displayStatus"], "VM running");
}

/// promise: Z3
#[test]
fn a_machine_whose_deletion_is_announced_is_there_until_it_starts() {
    let (mut town, solo) = with_vm(r#","terminate":"5m""#);
    town.enrol("solo");
    town.run_text(r#"{"command":"delete","machine":"solo"}"#);
    assert!(is_leaving(&town.rules, solo) && !is_gone(&town.rules, solo));
    let shown = plain(&town, solo, Expand::InstanceView);
    assert_eq!(shown["properties"]["provisioningState"], "Deleting");
    assert_eq!(shown["properties"]["instanceView"]["statuses"][0]["code"], "ProvisioningState/deleting");
    assert_eq!(shown["properties"]["instanceView"]["statuses"][1]["code"], "PowerState/running");
    town.run_text(r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    town.submit(&Command::Tick);
    assert!(town.rules.machine(solo).is_some());
    assert!(is_leaving(&town.rules, solo) && is_gone(&town.rules, solo));
    town.finish();
    assert!(!is_leaving(&town.rules, solo) && is_gone(&town.rules, solo));
    // What is looked for and has just gone is no reason to fail.
    let context = show_context(&town);
    let (id, body) = (id("virtualMachines", "solo"), json!({ "location": "x" }));
    assert_eq!(show_machine(&context, &kept(&id, &body), solo, Expand::InstanceView)["name"], "solo");
    assert_eq!(plain_machine(&context, solo)["location"], "local");
    assert_eq!(
        show_instance(&context, &kept(&id, &body), InstanceBody::default(), solo, Expand::Nothing),
        json!({})
    );
}

/// promise: Z1
#[test]
fn a_machine_on_a_degraded_host_may_be_moved_by_its_owner() {
    let (mut town, solo) = with_vm("");
    town.enrol("solo");
    town.run_text(r#"{"command":"degrade_host","host":"h1","fails_in":"2d"}"#);
    seen("degraded-machine-view", &view(&town, solo));
    town.run_text(r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    town.submit(&Command::Tick);
    let status = &view(&town, solo)["maintenanceRedeployStatus"];
    assert_eq!(status["isCustomerInitiatedMaintenanceAllowed"], false);
    town.finish();
    assert_eq!(view(&town, solo).get("maintenanceRedeployStatus"), None);
}

/// promise: Z1
#[test]
fn what_a_client_wrote_of_a_machine_stays_and_the_rules_know_better() {
    let (mut town, solo) = with_vm(r#","spot":"delete","os_image":true"#);
    let body = json!({
        "location": "westeurope",
        "tags": { "kept": "yes" },
        "zones": ["9"],
        "etag": "stale",
        "properties": {
            "vmId": "stale",
            "provisioningState": "Updating",
            "instanceView": { "stale": true },
            "hardwareProfile": { "vmSize": "Standard_B1s" },
            "osProfile": { "computerName": "box", "windowsConfiguration": {} },
            "networkProfile": { "networkInterfaces": [{ "id": "/nic" }] },
            "priority": "Low",
            "evictionPolicy": "Delete",
            "scheduledEventsPolicy": { "unknown": 1 },
            "somethingNew": { "kept": true },
        },
    });
    let id = id("virtualMachines", "SOLO");
    let kept = kept(&id, &body);
    seen("kept-machine", &show_machine(&show_context(&town), &kept, solo, Expand::InstanceView));
    let old = ShowContext { version: ApiVersion::new(2019, 3, 1), ..show_context(&town) };
    assert_eq!(show_machine(&old, &kept, solo, Expand::Nothing).get("etag"), None);
    let updating = StoredResource { state: Provisioning::Updating, ..kept };
    assert_eq!(
        machine_instance_view(&old, &updating, solo)["statuses"][0]["code"],
        "ProvisioningState/updating"
    );
    town.run_text(r#"{"command":"describe","machine":"solo","tags":{"new":"one"}}"#);
    assert_eq!(
        show_machine(&show_context(&town), &kept, solo, Expand::Nothing)["tags"],
        json!({ "new": "one" })
    );
}

/// As `az vmss create` sends it, made canonical.
fn scale_set_body() -> Value {
    json!({
        "location": "eastus",
        "tags": { "team": "web" },
        "sku": { "name": "Standard_DS1_v2", "capacity": 99 },
        "zones": ["1", "2"],
        "properties": {
            "overprovision": false,
            "upgradePolicy": { "mode": "Manual", "rollingUpgradePolicy": { "maxSurge": true } },
            "virtualMachineProfile": {
                "storageProfile": {
                    "osDisk": { "createOption": "FromImage", "caching": "ReadWrite" },
                    "imageReference": { "publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS" },
                },
                "osProfile": { "computerNamePrefix": "web12ab34", "adminUsername": "azureuser" },
                "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic", "properties": {} }] },
                "scheduledEventsProfile": {
                    "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT600S" },
                },
            },
        },
    })
}

/// A scale set whose last instance is being deleted and whose first has the old model.
fn with_scale_set(orchestration: &str) -> (TestCluster, ScaleSetId) {
    let mut town = town();
    let traits = format!(r#""orchestration":"{orchestration}","terminate":"5m""#);
    town.run_text(&format!(r#"{{"command":"admit_scale_set","name":"web",{traits}}}"#));
    for (host, domain) in [("h1", 0), ("h2", 1), ("h3", 2)] {
        let place = format!(r#""host":"{host}","update_domain":{domain},"fault_domain":{domain}"#);
        town.run_text(&format!(r#"{{"command":"admit_instance","scale_set":"web","instance":{{{place}}}}}"#));
    }
    town.run_text(r#"{"command":"change_model","scale_set":"web","terminate":"10m"}"#);
    town.run_text(r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    town.enrol("web");
    town.run_text(r#"{"command":"delete","machine":"web_2"}"#);
    (town, ScaleSetId(0))
}

/// promise: Z1
#[test]
fn a_scale_set_is_shown_with_the_number_of_those_that_stay() {
    let (mut town, web) = with_scale_set("uniform");
    let (id, body) = (id("virtualMachineScaleSets", "web"), scale_set_body());
    let kept = kept(&id, &body);
    seen("scale-set", &show_scale_set(&show_context(&town), &kept, web));
    seen("scale-set-view", &scale_set_instance_view(&show_context(&town), &kept, web));
    town.run_text(r#"{"command":"change_model","scale_set":"web","terminate":"7m30s","os_image":true}"#);
    town.run_text(r#"{"command":"change_policy","tenant":"web","policy":{"redeploy":"automatic"}}"#);
    let shown = show_scale_set(&show_context(&town), &kept, web);
    let profile = json!({
        "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT7M30S" },
        "osImageNotificationProfile": { "enable": true, "notBeforeTimeout": "PT15M" },
    });
    assert_eq!(shown["properties"]["virtualMachineProfile"]["scheduledEventsProfile"], profile);
    let policy = json!({ "userInitiatedRedeploy": { "automaticallyApprove": true } });
    assert_eq!(shown["properties"]["scheduledEventsPolicy"], policy);
}

/// promise: Z1
#[test]
fn instances_are_shown_with_the_model_that_they_have() {
    let (town, _) = with_scale_set("uniform");
    let (id, body) = (id("virtualMachineScaleSets", "web"), scale_set_body());
    let (kept, context) = (kept(&id, &body), show_context(&town));
    let own = json!({
        "tags": { "own": "tag" },
        "properties": {
            "vmId": "stale",
            "instanceView": {},
            "protectionPolicy": { "protectFromScaleIn": true },
        },
    });
    seen(
        "instance",
        &show_instance(
            &context,
            &kept,
            InstanceBody { body: Some(&own), etag: 3 },
            MachineId(0),
            Expand::InstanceView,
        ),
    );
    let latest = |machine: u32| {
        let shown =
            show_instance(&context, &kept, InstanceBody::default(), MachineId(machine), Expand::Nothing);
        let properties = &shown["properties"];
        assert_eq!(properties.get("protectionPolicy"), None);
        (properties["latestModelApplied"].clone(), properties["provisioningState"].clone())
    };
    assert_eq!(
        [0, 1, 2].map(latest),
        [
            (json!(false), json!("Succeeded")),
            (json!(true), json!("Succeeded")),
            (json!(false), json!("Deleting")),
        ]
    );
    let view = instance_instance_view(&context, &kept, InstanceBody::default(), MachineId(2));
    assert_eq!((&view["platformUpdateDomain"], &view["platformFaultDomain"]), (&json!(2), &json!(2)));
}

/// promise: Z3
#[test]
fn an_instance_whose_deletion_has_started_is_not_listed() {
    let (mut town, web) = with_scale_set("uniform");
    let numbers = |town: &TestCluster| {
        let there = instances_there(&town.rules, web).into_iter();
        there.map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&town), [0, 1, 2]);
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    town.submit(&Command::Tick);
    assert_eq!(numbers(&town), [0, 1]);
    assert_eq!(instances_there(&town.rules, ScaleSetId(9)), []);
}

/// promise: Z1
#[test]
fn an_instance_of_a_flexible_scale_set_is_a_machine_too() {
    let (town, web) = with_scale_set("flexible");
    let (id, body) = (id("virtualMachineScaleSets", "web"), scale_set_body());
    let (kept, context) = (kept(&id, &body), show_context(&town));
    seen(
        "flexible-machine",
        &show_flexible_machine(
            &context,
            &kept,
            InstanceBody { body: None, etag: 3 },
            MachineId(0),
            Expand::Nothing,
        ),
    );
    let shown = show_instance(&context, &kept, InstanceBody::default(), MachineId(0), Expand::Nothing);
    assert_eq!((&shown["instanceId"], &shown["name"]), (&json!("web_dd6d6b41"), &json!("web_dd6d6b41")));
    assert_eq!(shown["id"], format!("{id}/virtualMachines/web_dd6d6b41"));
    let shown = show_scale_set(&context, &kept, web);
    assert_eq!(shown["properties"]["orchestrationMode"], "Flexible");
    assert_eq!(shown["properties"]["singlePlacementGroup"], false);
}

/// promise: Z1
#[test]
fn sets_of_a_fleet_file_are_shown_as_if_somebody_had_asked_for_them() {
    let mut town = town();
    town.run_text(
        r#"{"command":"admit_scale_set","name":"batch","spot":"deallocate","upgrade":"automatic"}"#,
    );
    town.run_text(
        r#"{"command":"admit_instance","scale_set":"batch","instance":{"host":"h2","fault_domain":6}}"#,
    );
    let set = ScaleSetId(0);
    let (id, body) = (id("virtualMachineScaleSets", "batch"), plain_scale_set(&show_context(&town), set));
    let kept = StoredResource { created: None, ..kept(&id, &body) };
    seen("plain-scale-set", &show_scale_set(&show_context(&town), &kept, set));
    let shown =
        show_instance(&show_context(&town), &kept, InstanceBody::default(), MachineId(0), Expand::Nothing);
    assert_eq!(shown["properties"]["osProfile"]["computerName"], "batch000000");
    assert_eq!(shown["zones"], json!(["2"]));
}

/// promise: Z1
#[test]
fn an_availability_set_names_its_machines_and_they_name_it() {
    let mut town = town();
    town.run_text(r#"{"command":"admit_availability_set","name":"db","policy":{"all_down":"asked"}}"#);
    for (name, host, domain) in [("db-a", "h1", 0), ("db-b", "h2", 7)] {
        let machine = format!(r#""name":"{name}","host":"{host}","update_domain":{domain},"fault_domain":1"#);
        town.run_text(&format!(r#"{{"command":"admit_machine","tenant":"db","machine":{{{machine}}}}}"#));
    }
    let (context, tenant) = (show_context(&town), TenantId(0));
    let group = group_of(context.site, None);
    let members = [0, 1].map(|id| machine_id(context.cluster, &group, MachineId(id)).unwrap());
    let id = availability_set_id(&group, &Name::new("db").unwrap());
    let body = plain_availability_set(&context, tenant);
    seen("availability-set", &show_availability_set(&context, &kept(&id, &body), tenant, &members));
    let sent = json!({ "properties": { "platformFaultDomainCount": 1, "platformUpdateDomainCount": 20 } });
    let shown = show_availability_set(&context, &kept(&id, &sent), tenant, &[]);
    let counts = ["platformFaultDomainCount", "platformUpdateDomainCount"];
    assert_eq!(counts.map(|count| shown["properties"][count].clone()), [json!(2), json!(20)]);
    let own = plain(&town, MachineId(0), Expand::Nothing);
    assert_eq!(own["properties"]["availabilitySet"]["id"], id.to_string());
    let theirs = json!({ "properties": { "availabilitySet": { "id": id.to_string().to_uppercase() } } });
    let shown = show_machine(&context, &kept(&members[0], &theirs), MachineId(0), Expand::Nothing);
    assert_eq!(shown["properties"]["availabilitySet"], theirs["properties"]["availabilitySet"]);
}

/// promise: M1, Z1
#[test]
fn a_machine_is_where_it_is_at_home() {
    let (mut town, solo) = with_vm("");
    let home = ResourceGroupRef { resource_group: "Shop".to_owned(), location: "westeurope".to_owned() };
    let change = MachineDetailsChange { home: Some(home.clone()), ..MachineDetailsChange::default() };
    let details = change.apply(&town.details.get(&solo).cloned().unwrap_or_default());
    town.details.insert(solo, details);
    // Whatever is said of it afterwards.
    town.run_text(r#"{"command":"describe","machine":"solo","addresses":["10.0.0.9"]}"#);
    assert_eq!(town.details.get(&solo).unwrap().home, Some(home));
    let shown = plain(&town, solo, Expand::Nothing);
    assert_eq!(shown["location"], "westeurope");
    let expected = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/Shop/providers";
    assert_eq!(shown["id"], format!("{expected}/Microsoft.Compute/virtualMachines/solo"));
    // Fleet files do not speak of it.
    assert!(!town.fleet().print().unwrap().contains("Shop"));
}

/// promise: M1, Z1
#[test]
fn every_machine_has_its_id() {
    let mut town = TestCluster::with_fleet();
    town.run_text(r#"{"command":"admit_scale_set","name":"flex","orchestration":"flexible"}"#);
    town.run_text(r#"{"command":"admit_instance","scale_set":"flex","instance":{"host":"h1"}}"#);
    town.run_text(r#"{"command":"admit_cloud_service","name":"cloud"}"#);
    town.run_text(r#"{"command":"admit_machine","tenant":"cloud","machine":{"name":"IN_0","host":"h1"}}"#);
    let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
    let ids = (0..5).map(|id| machine_id(&town.rules, &group, MachineId(id)).unwrap().to_string());
    let compute = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute";
    assert_eq!(
        ids.collect::<Vec<_>>(),
        [
            format!("{compute}/virtualMachines/solo"),
            format!("{compute}/virtualMachineScaleSets/web/virtualMachines/0"),
            format!("{compute}/virtualMachineScaleSets/web/virtualMachines/1"),
            format!("{compute}/virtualMachines/flex_eb641cd8"),
            format!("{compute}/cloudServices/cloud/roleInstances/IN_0"),
        ]
    );
    assert_eq!(machine_id(&town.rules, &group, MachineId(9)), None);
}

/// Clients read, change a little, and send the whole back.
/// promise: Z1
#[test]
fn what_is_shown_can_be_sent_back() {
    let mut town = town();
    town.run_text(r#"{"command":"admit_vm","name":"solo","host":"h1","fault_domain":9,"spot":"delete"}"#);
    town.run_text(r#"{"command":"admit_availability_set","name":"db"}"#);
    let place = r#""host":"h2","update_domain":99,"fault_domain":99"#;
    town.run_text(&format!(
        r#"{{"command":"admit_machine","tenant":"db","machine":{{"name":"db-a",{place},"terminate":"5m"}}}}"#
    ));
    town.run_text(
        r#"{"command":"admit_scale_set","name":"flex","orchestration":"flexible","os_image":true}"#,
    );
    town.run_text(&format!(r#"{{"command":"admit_instance","scale_set":"flex","instance":{{{place}}}}}"#));
    let context = show_context(&town);
    let again = |kind: &str, shown: &Value| settle(kind, Some(shown), shown, context.version).unwrap();
    for machine in [MachineId(0), MachineId(1)] {
        let shown = plain(&town, machine, Expand::InstanceView);
        let wanted = read_machine(&again(VIRTUAL_MACHINES, &shown)).unwrap();
        let known = context.cluster.machine(machine).unwrap();
        assert_eq!((wanted.priority, wanted.profile), (known.priority, known.profile));
    }
    let (id, set) = (id("virtualMachineScaleSets", "flex"), ScaleSetId(0));
    let body = plain_scale_set(&context, set);
    let kept = kept(&id, &body);
    let wanted = read_scale_set(&again(SCALE_SETS, &show_scale_set(&context, &kept, set))).unwrap();
    assert_eq!((wanted.capacity, wanted.orchestration), (Some(1), OrchestrationWord::Flexible));
    let shown =
        show_flexible_machine(&context, &kept, InstanceBody::default(), MachineId(2), Expand::InstanceView);
    let wanted = read_machine(&again(VIRTUAL_MACHINES, &shown)).unwrap();
    assert_eq!(wanted.scale_set, Some(id.clone()));
    let body = plain_availability_set(&context, TenantId(1));
    let shown = show_availability_set(&context, &StoredResource { body: &body, ..kept }, TenantId(1), &[]);
    let wanted = read_availability_set(&again(AVAILABILITY_SETS, &shown)).unwrap();
    assert_eq!(wanted.domains, Domains { update: 20, fault: 3 });
}

/// promise: Z1
#[test]
fn no_body_is_too_strange_to_be_shown() {
    let (town, web) = with_scale_set("flexible");
    let (context, id) = (show_context(&town), id("virtualMachineScaleSets", "web"));
    let model = |model: Value| json!({ "properties": { "virtualMachineProfile": model } });
    for body in [
        json!(null),
        json!([]),
        json!({ "properties": 1, "sku": "x", "zones": {}, "tags": [], "location": 3 }),
        model(json!("x")),
        model(json!({ "osProfile": [], "storageProfile": false, "scheduledEventsProfile": 0 })),
    ] {
        let kept = kept(&id, &body);
        assert_eq!(show_scale_set(&context, &kept, web)["sku"]["capacity"], 2);
        for own in [InstanceBody::default(), InstanceBody { body: Some(&body), etag: 1 }] {
            let shown = show_instance(&context, &kept, own, MachineId(0), Expand::InstanceView);
            assert_eq!(shown["instanceId"], "web_dd6d6b41");
            let shown = show_flexible_machine(&context, &kept, own, MachineId(0), Expand::InstanceView);
            assert_eq!(shown["properties"]["instanceView"]["statuses"][1]["code"], "PowerState/running");
        }
        let shown = show_availability_set(&context, &kept, TenantId(0), &[]);
        assert_eq!(shown["properties"]["platformFaultDomainCount"], 3);
    }
}
