//! Resource groups, their clusters, and permits.

use axum::http::StatusCode;
use forewarn_control::ClusterId;
use forewarn_control::ControlError;
use forewarn_control::Permit;
use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::shared::{Reach, Scope};
use forewarn_control::{ClusterEntry, ControlState, Record};
use forewarn_control::{Fleet, NamedCommand, Site};
use forewarn_lifecycle::Name;
use forewarn_server::ControlHandle;
use serde_json::json;

use super::{Client, SEED, SUBSCRIPTION, compute, own};

const NORTH: ClusterId = ClusterId(1);

/// Permission for everything in some clusters.
fn admin_of(clusters: &[ClusterId]) -> Permit {
    let clusters: Reach<ClusterId> = clusters.iter().copied().collect();
    let mut permit = Permit::unlimited("test");
    permit.scope = Scope { clusters, ..Scope::default() };
    permit
}

async fn create(control: &ControlHandle, name: &str) {
    let command = Administration::CreateCluster(Name::new(name).unwrap());
    control.administer(command, RequestContext::default()).await.unwrap();
}

async fn fill(control: &ControlHandle, fleet: &str) {
    forewarn_server::admit_fleet_if_empty(control, &Fleet::parse(fleet).unwrap()).await.unwrap();
}

async fn change_site(control: &ControlHandle, change: serde_json::Value) -> Result<(), ControlError> {
    let mut command = json!({ "command": "change_site" });
    command.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let command: NamedCommand = serde_json::from_value(command).unwrap();
    control.run_commands(vec![command]).await.map(drop)
}

/// A server whose second cluster, `north`, has the site of the first, as older versions allowed.
async fn alike() -> Client {
    let client = Client::on(ControlState::new(SEED)).await;
    create(&client.control, "north").await;
    let mut state = client.control.look(|state| state.all.clone()).unwrap();
    let now = client.control.clock().now();
    state.apply(&Record::in_cluster(now, NORTH, ClusterEntry::Site(Site::default())));
    let control = ControlHandle::simulated_on(state, SEED, super::clock());
    fill(&control.of(NORTH), "host = [{ name = 'n1' }]\nvm = [{ name = 'solo', host = 'n1' }]").await;
    Client::of(control, Permit::unlimited("anyone"))
}

/// promise: Z1
#[tokio::test]
async fn a_new_cluster_has_a_group_of_its_own() {
    let client = Client::new().await;
    create(&client.control, "north").await;
    let north = client.control.of(NORTH);
    let group =
        async |control: &ControlHandle| control.look(|state| state.site.resource_group.clone()).unwrap();
    assert_eq!(
        (group(&client.control).await, group(&north).await),
        ("forewarn".into(), "forewarn-north".into())
    );
    // A fleet file without a site leaves it unchanged.
    fill(&north, "host = [{ name = 'n1' }]\nvm = [{ name = 'solo', host = 'n1' }]").await;
    assert_eq!(group(&north).await, "forewarn-north");
    let solo = |group: &str| {
        let rest = "providers/Microsoft.Compute/virtualMachines/solo?api-version=2024-07-01";
        client.get(format!("{SUBSCRIPTION}/resourceGroups/{group}/{rest}"))
    };
    let (one, two) = (solo("forewarn").await.body, solo("forewarn-NORTH").await.body);
    assert!(one["properties"]["vmId"].is_string() && two["properties"]["vmId"].is_string());
    assert_ne!(one["properties"]["vmId"], two["properties"]["vmId"]);
}

/// promise: Z1
#[tokio::test]
async fn a_group_that_is_another_clusters_is_refused() {
    let client = Client::new().await;
    client.group().await;
    create(&client.control, "north").await;
    let north = client.control.of(NORTH);
    for taken in ["Forewarn", "MINE"] {
        let refused = change_site(&north, json!({ "location": "x", "resource_group": taken })).await;
        assert_eq!(refused, Err(ControlError::GroupTaken(taken.to_owned())));
    }
    let several = json!([{ "command": "admit_host", "name": "n1" }, { "command": "change_site", "resource_group": "forewarn" }]);
    let several: Vec<NamedCommand> = serde_json::from_value(several).unwrap();
    assert!(north.run_commands(several).await.is_err());
    let seen = north.look(|state| (state.site.location.clone(), state.cluster.hosts().count())).unwrap();
    assert_eq!(seen, ("local".to_owned(), 0));
    change_site(&north, json!({ "resource_group": "forewarn", "subscription": "other" })).await.unwrap();
    change_site(&north, json!({ "location": "elsewhere" })).await.unwrap();
    // An existing group is not created again.
    create(&client.control, "mine").await;
    let group = format!("{SUBSCRIPTION}/resourceGroups/forewarn-x?api-version=2024-07-01");
    let made = client.send("PUT", &group, json!({ "location": "a" })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    create(&client.control, "x").await;
    let last = client.control.of(ClusterId(3)).look(|state| state.site.resource_group.clone()).unwrap();
    assert_eq!(last, "forewarn-x-2");
}

/// promise: Z1
#[tokio::test]
async fn an_ambiguous_group_needs_a_token_limited_to_one_cluster() {
    let client = alike().await;
    let refused = client.get(own("virtualMachines/solo")).await;
    assert_eq!(
        (refused.status, &refused.body["error"]["code"]),
        (StatusCode::CONFLICT, &json!("AmbiguousResourceGroup"))
    );
    let mut ids = Vec::new();
    for cluster in [ClusterId::DEFAULT, NORTH] {
        let limited = Client::of(client.control.clone(), admin_of(&[cluster]));
        let groups = limited.get(format!("{SUBSCRIPTION}/resourceGroups?api-version=2024-07-01")).await.body;
        assert_eq!(groups["value"][0]["name"], "forewarn");
        let solo = limited.get(own("virtualMachines/solo")).await;
        assert_eq!(solo.status, StatusCode::OK, "{}", solo.body);
        ids.push(solo.body["properties"]["vmId"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    // The group was claimed for the first of them: only that one can write in it.
    let tags = json!({ "tags": { "a": "b" } });
    let north = Client::of(client.control.clone(), admin_of(&[NORTH]));
    assert_eq!(
        north.send("PATCH", &own("virtualMachines/solo"), tags.clone()).await.status,
        StatusCode::CONFLICT
    );
    let first = Client::of(client.control.clone(), admin_of(&[ClusterId::DEFAULT]));
    assert_eq!(first.send("PATCH", &own("virtualMachines/solo"), tags).await.status, StatusCode::OK);
    assert_eq!(first.get(own("virtualMachines/solo")).await.body["properties"]["vmId"], ids[0]);
}

/// promise: Z1
#[tokio::test]
async fn a_group_is_created_in_a_permitted_cluster_and_only_once() {
    let client = Client::new().await;
    create(&client.control, "north").await;
    client.group().await;
    let north = Client::of(client.control.clone(), admin_of(&[NORTH]));
    let put = async |name: &str| {
        let target = format!("{SUBSCRIPTION}/resourceGroups/{name}?api-version=2024-07-01");
        north.send("PUT", &target, json!({ "location": "eastus" })).await
    };
    assert_eq!(put("there").await.status, StatusCode::CREATED);
    let cluster = |key: String| client.control.look(move |state| state.all.resource(&key).unwrap().cluster);
    assert_eq!(cluster(format!("{SUBSCRIPTION}/resourcegroups/there")), Ok(NORTH));
    for taken in ["mine", "forewarn"] {
        let refused = put(taken).await;
        let text = ControlError::GroupTaken(taken.to_owned()).to_string();
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (StatusCode::CONFLICT, &json!("Conflict"))
        );
        assert_eq!(refused.body["error"]["message"], text, "{taken}");
        let target = format!("{SUBSCRIPTION}/resourceGroups/{taken}?api-version=2024-07-01");
        assert_eq!(north.get(target.clone()).await.status, StatusCode::NOT_FOUND);
        assert_eq!(north.send("PATCH", &target, json!({ "tags": {} })).await.status, StatusCode::NOT_FOUND);
    }
}

/// promise: Z1
#[tokio::test]
async fn a_machine_joins_a_set_of_its_own_group_and_goes_with_that_only() {
    let client = Client::new().await;
    client.group().await;
    let other = |rest: &str| format!("{SUBSCRIPTION}/resourceGroups/other{rest}?api-version=2024-07-01");
    let in_other = |rest: &str| other(&format!("/providers/Microsoft.Compute/{rest}"));
    let made = client.send("PUT", &other(""), json!({ "location": "eastus" })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let set = json!({ "location": "eastus", "sku": { "name": "Aligned" }, "properties": {} });
    assert_eq!(client.send("PUT", &compute("availabilitySets/db"), set).await.status, StatusCode::OK);
    let flexible = json!({
        "location": "eastus",
        "sku": { "name": "S", "capacity": 0 },
        "properties": { "orchestrationMode": "Flexible", "platformFaultDomainCount": 1 },
    });
    let made = client.send("PUT", &compute("virtualMachineScaleSets/flex"), flexible).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let machine = |member: &str, group: &str, set: &str| {
        let id = format!("{SUBSCRIPTION}/resourcegroups/{group}/providers/Microsoft.Compute/{set}");
        json!({ "location": "eastus", "properties": { member: { "id": id } } })
    };
    for (member, set) in [
        ("availabilitySet", "availabilitySets/db"),
        ("virtualMachineScaleSet", "virtualMachineScaleSets/flex"),
    ] {
        for group in ["mine", "other"] {
            let refused =
                client.send("PUT", &in_other("virtualMachines/vm1"), machine(member, group, set)).await;
            let error = &refused.body["error"];
            assert_eq!((refused.status, &error["code"]), (StatusCode::NOT_FOUND, &json!("ResourceNotFound")));
            let named = format!("'Microsoft.Compute/{set}' under resource group '{group}'");
            assert!(error["message"].as_str().unwrap().contains(&named), "{error}");
        }
    }
    let member = machine("availabilitySet", "MINE", "AvailabilitySets/DB");
    let made = client.send("PUT", &compute("virtualMachines/vm1"), member).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    // A machine stays in its set, also if the id means another one.
    let moved = machine("availabilitySet", "other", "availabilitySets/db");
    let moved = client.send("PATCH", &compute("virtualMachines/vm1"), moved).await;
    assert_eq!(moved.status, StatusCode::NOT_FOUND, "{}", moved.body);
    assert_eq!(client.send("DELETE", &other(""), serde_json::Value::Null).await.status, StatusCode::ACCEPTED);
    assert_eq!(client.get(compute("virtualMachines/vm1")).await.status, StatusCode::OK);
}

/// promise: S3
#[tokio::test]
async fn a_subscription_of_others_is_not_there() {
    let client = Client::new().await;
    create(&client.control, "north").await;
    let north = client.control.of(NORTH);
    change_site(&north, json!({ "subscription": "n", "location": "north" })).await.unwrap();
    let limited = Client::of(client.control.clone(), admin_of(&[NORTH]));
    for rest in
        ["", "/locations", "/resourceGroups", "/resources", "/providers/Microsoft.Network/virtualNetworks"]
    {
        let refused = limited.get(format!("{SUBSCRIPTION}{rest}?api-version=2024-07-01")).await;
        assert_eq!(refused.body["error"]["code"], "SubscriptionNotFound", "{rest}");
        let own = limited.get(format!("/subscriptions/N{rest}?api-version=2024-07-01")).await;
        assert_eq!(own.status, StatusCode::OK, "{rest}: {}", own.body);
    }
    // With a shared subscription, each token reads its own locations.
    change_site(&client.control, json!({ "subscription": "n", "location": "secret" })).await.unwrap();
    let places = limited.get("/subscriptions/n/locations?api-version=2024-07-01").await.body;
    let places: Vec<_> = places["value"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert!(places.contains(&json!("north")) && !places.contains(&json!("secret")), "{places:?}");
}

/// promise: S3
#[tokio::test]
async fn rejections_outside_the_permit_are_not_remembered() {
    let client = Client::new().await;
    create(&client.control, "north").await;
    let limited = Client::of(client.control.clone(), admin_of(&[NORTH]));
    let refusals = || client.control.rejections().of_groups(|_| true).len();
    let refused = limited.send("DELETE", &own("virtualMachines/solo"), serde_json::Value::Null).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(refusals(), 0);
    let refused = client.send("POST", &own("virtualMachines/solo/fly"), serde_json::Value::Null).await;
    assert_eq!((refused.status, refusals()), (StatusCode::BAD_REQUEST, 1));
}
