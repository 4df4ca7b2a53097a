//! Deployments on a small fleet, without a network.

use axum::http::StatusCode;
use forewarn_server::ClockCommand;
use serde_json::{Value, json};

use crate::http::tests::{Client, SUBSCRIPTION, TestResponse, group};

fn deployment(rest: &str) -> String {
    group(&format!("/providers/Microsoft.Resources/deployments/{rest}"))
}

async fn deploy(client: &Client, name: &str, template: Value) -> TestResponse {
    let body = json!({ "properties": { "mode": "incremental", "parameters": {}, "template": template } });
    client.send("PUT", &deployment(name), body).await
}

/// Status of a deployment's operation.
async fn status(client: &Client, response: &TestResponse) -> Value {
    let address = response.headers["azure-asyncoperation"].to_str().unwrap();
    client.get(address.strip_prefix("https://localhost:1340").unwrap()).await.body
}

fn address(name: &str, more: &Value) -> Value {
    let mut resource = json!({
        "type": "Microsoft.Network/publicIPAddresses",
        "apiVersion": "2022-01-01",
        "name": name,
        "location": "[resourceGroup().location]",
    });
    resource.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    resource
}

/// promise: Z4
#[tokio::test]
async fn resources_are_made_in_their_order_and_outputs_are_shown() {
    let client = Client::new().await;
    client.group().await;
    let tags = json!({ "first": "[reference('first').ipAddress]" });
    let set = json!({
        "type": "Microsoft.Compute/availabilitySets",
        "apiVersion": "2025-04-01",
        "name": "set",
        "location": "eastus",
        "sku": { "name": "Aligned" },
        "properties": { "platformFaultDomainCount": 2, "platformUpdateDomainCount": 5 },
    });
    let template = json!({
        "resources": [address("second", &json!({ "tags": tags })), address("first", &json!({})), set],
        "outputs": {
            "ip": { "type": "string", "value": "[reference('second').ipAddress]" },
            "domains": { "type": "int", "value": "[reference('set').platformUpdateDomainCount]" },
        },
    });
    let made = deploy(&client, "d", template).await;
    assert_eq!(
        (made.status, &made.body["properties"]["provisioningState"]),
        (StatusCode::CREATED, &json!("Accepted"))
    );
    assert_eq!(made.headers["retry-after"], "1");
    assert_eq!(status(&client, &made).await, json!({ "status": "Succeeded" }));
    let shown = client.get(&deployment("D")).await.body;
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    assert_eq!(shown["properties"]["outputs"]["ip"], json!({ "type": "String", "value": "198.18.0.2" }));
    assert_eq!(shown["properties"]["outputs"]["domains"]["value"], 5);
    assert_eq!(shown["properties"]["outputResources"].as_array().unwrap().len(), 3);
    let second = client.get(&group("/providers/Microsoft.Network/publicIPAddresses/second")).await.body;
    assert_eq!(second["tags"]["first"], "198.18.0.1");
    let set = client.get(&group("/providers/Microsoft.Compute/availabilitySets/set")).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.body);

    let list = client.get(&group("/providers/Microsoft.Resources/deployments")).await.body;
    assert_eq!(list["value"][0]["name"], "d");
    let steps = client.get(&deployment("d/operations")).await.body;
    assert_eq!(steps["value"][0]["properties"]["targetResource"]["resourceName"], "first");
    let step = steps["value"][1]["operationId"].as_str().unwrap();
    assert_eq!(client.get(&deployment(&format!("d/operations/{step}"))).await.body, steps["value"][1]);
    assert_eq!(client.send("HEAD", &deployment("d"), Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.send("DELETE", &deployment("d"), Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.get(&deployment("d")).await.body["error"]["code"], "DeploymentNotFound");
}

/// promise: Z4
#[tokio::test]
async fn resources_before_a_failure_stay() {
    let client = Client::new().await;
    client.group().await;
    let subnet = json!({
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "apiVersion": "2022-01-01",
        "name": "none/s",
        "dependsOn": ["first"],
    });
    let last = address("last", &json!({ "dependsOn": ["none/s"] }));
    let template = json!({ "resources": [last, subnet, address("first", &json!({}))] });
    let made = deploy(&client, "d", template).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let failed = status(&client, &made).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("Failed"), &json!("DeploymentFailed")));
    assert_eq!(failed["error"]["details"][0]["code"], "ParentResourceNotFound");
    let shown = client.get(&deployment("d")).await.body;
    assert_eq!(shown["properties"]["error"], failed["error"]);
    let there = |name: &str| group(&format!("/providers/Microsoft.Network/publicIPAddresses/{name}"));
    assert_eq!(client.get(&there("first")).await.status, StatusCode::OK);
    assert_eq!(client.get(&there("last")).await.status, StatusCode::NOT_FOUND);
    let steps = client.get(&deployment("d/operations")).await.body;
    let states: Vec<_> = steps["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["properties"]["provisioningState"])
        .collect();
    assert_eq!(states, ["Succeeded", "Failed"]);
    // The same again, with the missing resource.
    let template = json!({ "resources": [address("first", &json!({}))] });
    let again = deploy(&client, "d", template).await;
    assert_eq!(status(&client, &again).await["status"], "Succeeded");
}

/// promise: Z4
#[tokio::test]
async fn a_template_that_is_none_makes_nothing() {
    let client = Client::new().await;
    client.group().await;
    for (template, code) in [
        (json!({ "resources": [address("[nonsense()]", &json!({}))] }), "InvalidTemplate"),
        (json!({ "resources": [address("a", &json!({})), address("a", &json!({}))] }), "InvalidTemplate"),
        (Value::Null, "InvalidTemplate"),
    ] {
        let refused = deploy(&client, "d", template.clone()).await;
        assert_eq!((refused.status, &refused.body["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(code)));
        let body = json!({ "properties": { "mode": "Incremental", "template": template } });
        let checked = client.send("POST", &deployment("d/validate"), body).await;
        assert_eq!((checked.status, &checked.body), (StatusCode::BAD_REQUEST, &refused.body));
    }
    assert_eq!(client.get(&deployment("d")).await.status, StatusCode::NOT_FOUND);
    let body = json!({ "properties": { "template": { "resources": [address("a", &json!({}))] } } });
    let checked = client.send("POST", &deployment("d/validate"), body).await.body;
    assert_eq!(checked["properties"]["validatedResources"].as_array().unwrap().len(), 1);
    let left = client.control.look(|state| state.all.resources_below("/").count()).unwrap();
    assert_eq!(left, 1, "the group and nothing besides");
    let long = client.send("PUT", &deployment(&"x".repeat(65)), json!({})).await;
    assert_eq!(long.body["error"]["code"], "InvalidDeploymentName");
}

/// promise: Z4
#[tokio::test]
async fn an_unsupported_resource_type_fails_the_deployment() {
    let client = Client::new().await;
    client.group().await;
    let site = json!({ "type": "Microsoft.Web/sites", "apiVersion": "2022-01-01", "name": "x", "location": "eastus" });
    let made = deploy(&client, "d", json!({ "resources": [site] })).await;
    let failed = status(&client, &made).await;
    assert_eq!(failed["error"]["details"][0]["code"], "OperationNotSupported");
    assert!(failed["error"]["details"][0]["target"].as_str().unwrap().ends_with("/sites/x"));
}

/// Templates of the Azure command line.
const CAPTURED: [(&str, &str); 5] = [
    ("availability-set", include_str!("../../../../azure/tests/templates/availability-set.json")),
    ("vm", include_str!("../../../../azure/tests/templates/vm.json")),
    ("vm-count", include_str!("../../../../azure/tests/templates/vm-count.json")),
    ("vmss-flexible", include_str!("../../../../azure/tests/templates/vmss-flexible.json")),
    ("vmss-uniform", include_str!("../../../../azure/tests/templates/vmss-uniform.json")),
];

/// promise: Z4
#[tokio::test]
async fn templates_of_the_command_line_are_deployed() {
    let client = Client::new().await;
    client.group().await;
    for (name, text) in CAPTURED {
        // Its demo name is taken in this fleet: `web` is a scale set.
        let text = text.replace("\"web\"", "\"one\"");
        let made = client.send("PUT", &deployment(name), serde_json::from_str(&text).unwrap()).await;
        assert_eq!(status(&client, &made).await, json!({ "status": "Succeeded" }), "{name}");
    }
    let shown = client.get(&deployment("vmss-uniform")).await.body;
    let set = &shown["properties"]["outputs"]["vmss"]["value"];
    assert_eq!(set["upgradePolicy"]["mode"], "Manual");
    let notification =
        &set["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"];
    assert_eq!(notification, &json!({ "notBeforeTimeout": "PT10M", "enable": true }));
    let rule = client
        .get(&group("/providers/Microsoft.Network/loadBalancers/scaleLB/inboundNatRules/NatRule"))
        .await
        .body;
    assert_eq!(rule["properties"]["frontendPortRangeStart"], 50_000);
    let machines = client.get(&group("/providers/Microsoft.Compute/virtualMachines")).await.body;
    let names: Vec<_> =
        machines["value"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(["one", "many0", "many1"].iter().all(|name| names.contains(name)), "{names:?}");
}

/// promise: Z4
#[tokio::test]
async fn a_deployment_runs_until_what_it_has_begun_is_over() {
    let client = Client::new().await;
    let tenant = client.control.look(|state| state.cluster.tenant_named("web").unwrap()).unwrap();
    client.control.submit(forewarn_lifecycle::Command::Enrol(tenant)).await.unwrap();
    let set = json!({
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2024-07-01",
        "name": "web",
        "sku": { "capacity": 1 },
    });
    let body = json!({ "properties": { "mode": "Incremental", "template": { "resources": [set] } } });
    // Some clients leave out the provider.
    let target = format!("{SUBSCRIPTION}/resourceGroups/forewarn/deployments/less?api-version=2024-11-01");
    let made = client.send("PUT", &target, body).await;
    assert_eq!(status(&client, &made).await, json!({ "status": "Running" }));
    assert_eq!(client.get(&target).await.body["properties"]["provisioningState"], "Running");
    client.control.drive(ClockCommand::Advance(std::time::Duration::from_mins(5))).await.unwrap();
    assert_eq!(status(&client, &made).await, json!({ "status": "Succeeded" }));
}

/// promise: Z4
#[tokio::test]
async fn a_template_may_have_comments_and_names_without_quotes() {
    let client = Client::new().await;
    client.group().await;
    let text = r#"{"properties": {"mode": "Incremental", template:{
        // Empty.
        "resources": [],
    }}}"#;
    let made = client.send_text("PUT", &deployment("d"), text).await;
    assert_eq!(
        (made.status, status(&client, &made).await),
        (StatusCode::CREATED, json!({ "status": "Succeeded" }))
    );
    let refused = client.send_text("PUT", &deployment("d"), "{template}").await;
    assert_eq!(refused.body["error"]["code"], "InvalidRequestContent");
}

/// promise: C6
#[tokio::test]
async fn rejections_of_a_template_are_remembered_per_resource() {
    let client = Client::new().await;
    client.group().await;
    let profile = json!({ "terminateNotificationProfile": { "notBeforeTimeout": "PT10M", "enable": true } });
    let set = json!({
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2018-10-01",
        "name": "new",
        "location": "eastus",
        "sku": { "name": "S", "capacity": 1 },
        "properties": { "virtualMachineProfile": { "scheduledEventsProfile": profile } },
    });
    let made = deploy(&client, "d", json!({ "resources": [set] })).await;
    assert_eq!(status(&client, &made).await["error"]["details"][0]["code"], "BadRequest");
    let rejection = client.control.rejections().of_groups(|group| group.name == "mine");
    let [rejection] = rejection.as_slice() else { panic!("one: {rejection:?}") };
    assert_eq!((rejection.method.as_str(), rejection.api_version.as_deref()), ("PUT", Some("2018-10-01")));
    assert!(
        rejection
            .resource
            .ends_with("/resourceGroups/mine/providers/Microsoft.Compute/virtualMachineScaleSets/new"),
        "{rejection:?}"
    );
    assert_eq!(rejection.code, "BadRequest");
}
