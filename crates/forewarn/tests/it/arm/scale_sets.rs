//! `az vmss` on a Uniform scale set, from `az login` to `az group delete`, and what its machines see of it.

use serde_json::{Value, json};

use forewarn_testkit::arm::{AFTER_7, AFTER_10, ArmServer, GROUP, SET, SUBSCRIPTION, instance, text};
use forewarn_testkit::az::{Az, id};
use forewarn_testkit::wait_until;

/// The command of the article; the mode is said, because `az` has another default by now.
pub(crate) const CREATE: &str = "vmss create --resource-group myResourceGroup --name myVMScaleSet --image UbuntuLTS \
     --admin-username azureuser --generate-ssh-keys --terminate-notification-time 10 --orchestration-mode Uniform";

/// Words that stand behind the name of a command.
pub(crate) const OF_SET: &str = "--resource-group myResourceGroup --name myVMScaleSet";

/// The property in which a scale set says when instances are told of their deletion.
fn profile(set: &Value) -> &Value {
    &set["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"]
}

/// The instances that `az` lists, each with whether it has the latest model.
pub(crate) fn instances(az: &Az) -> Vec<(String, bool)> {
    let listed = az.ok(&format!("vmss list-instances {OF_SET}"));
    let shown = listed.as_array().unwrap().iter();
    shown.map(|shown| (text(&shown["instanceId"]), shown["latestModelApplied"] == true)).collect()
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn az_logs_in_without_anything_but_the_line_of_a_user() {
    let az = Az::point_at(ArmServer::start(crate::program()));
    let login = az.ok("login --identity");
    assert_eq!(login[0]["id"], SUBSCRIPTION, "{login}");
    assert_eq!((&login[0]["state"], &login[0]["isDefault"]), (&json!("Enabled"), &json!(true)));
    assert_eq!(login[0]["user"]["assignedIdentityInfo"], "MSI");
    assert_eq!(az.ok("account show")["id"], SUBSCRIPTION);
    assert!(!az.ok("account list-locations").as_array().unwrap().is_empty());
    let made = az.ok(&format!("group create --name {GROUP} --location eastus --tags a=b"));
    assert_eq!(made["properties"]["provisioningState"], "Succeeded");
    assert_eq!((&made["location"], &made["tags"]["a"]), (&json!("eastus"), &json!("b")));
    assert_eq!(az.ok(&format!("group show --name {GROUP}"))["id"], made["id"]);
    let listed = az.ok("group list");
    assert!(listed.as_array().unwrap().iter().any(|group| group["name"] == GROUP), "{listed}");
    assert_eq!(az.ok("group exists --name nowhere"), json!(false));
    assert_eq!(az.ok(&format!("group exists --name {GROUP}")), json!(true));
    let nothing = az.run("group show --name nowhere");
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    assert!(nothing.err.contains("(ResourceGroupNotFound)"), "{nothing:?}");
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn the_commands_of_the_article_make_change_and_delete_instances() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let made = az.ok(&format!("{CREATE} --instance-count 4"));
    let made = &made["vmss"];
    assert_eq!(profile(made), &json!({ "enable": true, "notBeforeTimeout": "PT10M" }), "{made}");
    assert_eq!(made["orchestrationMode"], "Uniform");
    assert_eq!(made["upgradePolicy"]["mode"], "Manual");
    place.server.enrol(&[&instance(0)]);
    let name = place
        .server
        .get(&instance(3), "/metadata/instance/compute/vmScaleSetName?api-version=2021-02-01&format=text");
    assert_eq!(name.body, SET);

    let shown = az.ok(&format!("vmss show {OF_SET}"));
    assert_eq!((&shown["name"], &shown["sku"]["capacity"]), (&json!(SET), &json!(4)));
    assert_eq!(shown["id"], id("Microsoft.Compute/virtualMachineScaleSets", SET).as_str());
    assert_eq!(shown["provisioningState"], "Succeeded");
    assert_eq!(az.ok(&format!("vmss list --resource-group {GROUP}"))[0]["name"], SET);

    // Another notice, which an instance has once it is upgraded.
    let changed = az.ok(&format!(
        "vmss update {OF_SET} --enable-terminate-notification true --terminate-notification-time 7"
    ));
    assert_eq!(profile(&changed), &json!({ "enable": true, "notBeforeTimeout": "PT7M" }));
    let image = &changed["virtualMachineProfile"]["storageProfile"]["imageReference"];
    assert_eq!(image["publisher"], "Canonical", "what az leaves out is kept: {changed}");
    assert!(instances(&az).iter().all(|(_, is_latest)| !is_latest));
    az.ok(&format!("vmss update-instances {OF_SET} --instance-ids '*'"));
    let numbers = ["0", "1", "2", "3"].map(|number| (number.to_owned(), true));
    assert_eq!(instances(&az), numbers);

    // Two of them go; `az` waits until both have agreed.
    let mut deletion = az.begin(&format!("vmss delete-instances {OF_SET} --instance-ids 1 2"));
    wait_until("both are told", || (place.seen(&instance(0)).len() == 2).then_some(()));
    for (seen, number) in place.seen(&instance(2)).iter().zip([1, 2]) {
        assert_eq!((seen.what.as_str(), &seen.whom), ("Terminate Scheduled", &instance(number)));
        assert_eq!(seen.not_before, AFTER_7);
    }
    place.approve(&instance(1), &instance(1));
    assert_eq!(
        place.short(&instance(2)),
        [format!("Terminate Scheduled {}", instance(1)), format!("Terminate Scheduled {}", instance(2))]
    );
    assert!(!deletion.is_over());
    place.approve(&instance(2), &instance(2));
    assert_eq!(
        place.short(&instance(0)),
        [format!("Terminate Started {}", instance(1)), format!("Terminate Started {}", instance(2))]
    );
    let ended = deletion.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(instances(&az), ["0", "3"].map(|number| (number.to_owned(), true)));
    place.server.advance("5m");
    assert!(!place.is_there(&instance(1)) && place.is_there(&instance(3)));
}

/// promise: Z1
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_scale_set_is_viewed_scaled_protected_and_deleted() {
    let az = Az::start(crate::program());
    let place = &az.server;
    az.ok(&format!("{CREATE} --instance-count 3 --upgrade-policy-mode Automatic"));
    place.server.enrol(&[&instance(0)]);
    let view = az.ok(&format!("vmss get-instance-view {OF_SET}"));
    assert_eq!(view["virtualMachine"]["statusesSummary"][0]["count"], 3, "{view}");
    let one = az.ok(&format!("vmss get-instance-view {OF_SET} --instance-id 1"));
    let codes: Vec<_> =
        one["statuses"].as_array().unwrap().iter().map(|status| text(&status["code"])).collect();
    assert_eq!(codes, ["ProvisioningState/succeeded", "PowerState/running"]);
    assert_eq!(one["platformUpdateDomain"], 1, "{one}");
    let shown = az.ok(&format!("vmss show {OF_SET} --instance-id 2"));
    assert_eq!((&shown["instanceId"], &shown["name"]), (&json!("2"), &json!(instance(2))));

    let protected = az.ok(&format!("vmss update {OF_SET} --instance-id 2 --protect-from-scale-in true"));
    assert_eq!(protected["protectionPolicy"]["protectFromScaleIn"], true, "{protected}");
    let larger = az.ok(&format!("vmss scale {OF_SET} --new-capacity 4"));
    assert_eq!(larger["sku"]["capacity"], 4);
    assert_eq!(profile(&larger)["notBeforeTimeout"], "PT10M", "the rest is kept: {larger}");
    assert!(place.is_there(&instance(3)));

    // Whoever is taken away is told, and the one that is protected is not.
    let scaling = az.begin(&format!("vmss scale {OF_SET} --new-capacity 2"));
    wait_until("two are told", || (place.seen(&instance(2)).len() == 2).then_some(()));
    let told = place.seen(&instance(2));
    assert!(told.iter().all(|seen| seen.what == "Terminate Scheduled" && seen.not_before == AFTER_10));
    assert!(told.iter().all(|seen| seen.whom != instance(2)), "{told:?}");
    place.server.advance("10m");
    let smaller = scaling.end().value();
    assert_eq!(smaller["sku"]["capacity"], 2);
    place.server.advance("5m");

    // A whole scale set goes as its instances do.
    let deletion = az.begin(&format!("vmss delete {OF_SET}"));
    wait_until("the rest is told", || (place.seen(&instance(2)).len() == 2).then_some(()));
    for seen in place.seen(&instance(2)) {
        place.approve(&instance(2), &seen.whom);
    }
    let ended = deletion.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.server.advance("5m");
    assert_eq!(az.ok(&format!("vmss list --resource-group {GROUP}")), json!([]));
    let gone = az.run(&format!("vmss show {OF_SET}"));
    assert_eq!(gone.code, Some(3), "{gone:?}");
    assert!(gone.err.contains("(ResourceNotFound)"), "{gone:?}");
}

/// promise: Z1
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_group_is_deleted_when_its_machines_have_agreed() {
    let az = Az::start(crate::program());
    let place = &az.server;
    az.ok(&format!("{CREATE} --instance-count 2"));
    place.server.enrol(&[&instance(0)]);
    let mut deletion = az.begin(&format!("group delete --name {GROUP} --yes"));
    wait_until("both are told", || (place.seen(&instance(0)).len() == 2).then_some(()));
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Scheduled"));
    place.approve(&instance(1), &instance(0));
    assert!(!deletion.is_over());
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.what == "Terminate Scheduled"));
    place.approve(&instance(0), &instance(1));
    let ended = deletion.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.server.advance("5m");
    assert_eq!(az.ok(&format!("group exists --name {GROUP}")), json!(false));
    assert!(!place.is_there(&instance(0)) && !place.is_there(&instance(1)));
}

/// promise: Z3
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn az_goes_on_waiting_when_the_server_is_killed_and_started_again() {
    let az = Az::point_at(ArmServer::start_durable(crate::program()));
    az.ok("login --identity");
    az.ok(&format!("group create --name {GROUP} --location eastus"));
    az.ok(&format!("{CREATE} --instance-count 2"));
    az.server.server.enrol(&[&instance(0)]);
    let mut deletion = az.begin(&format!("vmss delete-instances {OF_SET} --instance-ids 1"));
    wait_until("it is told", || (!az.server.seen(&instance(0)).is_empty()).then_some(()));
    let before = az.server.one(&instance(0));
    let az = az.kill_and_start();
    assert_eq!(az.server.one(&instance(0)), before);
    assert!(!deletion.is_over());
    az.server.approve(&instance(1), &instance(1));
    let ended = deletion.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(instances(&az).len(), 1);
}
