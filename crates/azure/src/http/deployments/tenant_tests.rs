//! Deployments of tokens that are limited to tenants.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::tests::{Client, SUBSCRIPTION, TestResponse, own};

fn deployment(rest: &str) -> String {
    let group = format!("{SUBSCRIPTION}/resourceGroups/forewarn");
    format!("{group}/providers/Microsoft.Resources/deployments{rest}?api-version=2024-07-01")
}

fn scaled(set: &str, capacity: u32) -> Value {
    json!({
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2024-07-01",
        "name": set,
        "location": "[resourceGroup().location]",
        "sku": { "capacity": capacity },
    })
}

fn resource(kind: &str, name: &str) -> Value {
    let (location, properties) = ("[resourceGroup().location]", json!({}));
    json!({ "type": kind, "apiVersion": "2024-07-01", "name": name, "location": location, "properties": properties })
}

fn template(resources: &[Value]) -> Value {
    let template = json!({ "resources": resources });
    json!({ "properties": { "mode": "incremental", "parameters": {}, "template": template } })
}

async fn deploy(client: &Client, name: &str, resources: &[Value]) -> TestResponse {
    client.send("PUT", &deployment(&format!("/{name}")), template(resources)).await
}

fn instances(client: &Client) -> usize {
    let count = |state: &forewarn_server::State<'_>| {
        state.cluster.machines().filter(|(_, machine)| machine.name.as_str().starts_with("web_")).count()
    };
    client.control.look(count).unwrap()
}

/// promise: S3, Z4
#[tokio::test]
async fn a_token_of_a_tenant_deploys_a_template_about_its_tenant() {
    let client = Client::new().await;
    let (web, solo) = (client.of_tenant("web").await, client.of_tenant("solo").await);
    let checked = web.send("POST", &deployment("/main/validate"), template(&[scaled("web", 4)])).await;
    assert_eq!((checked.status, instances(&client)), (StatusCode::OK, 2), "{}", checked.body);
    let made = deploy(&web, "main", &[scaled("web", 4)]).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!((web.status(&made).await, instances(&client)), (json!("Succeeded"), 4));
    let shown = web.get(deployment("/main")).await;
    assert_eq!(shown.body["properties"]["provisioningState"], "Succeeded", "{}", shown.body);
    assert_eq!(shown.body["id"], made.body["id"]);
    assert!(shown.body["id"].as_str().unwrap().ends_with("/deployments/main"), "{}", shown.body);
    let steps = web.get(deployment("/main/operations")).await.body;
    assert_eq!(steps["value"][0]["properties"]["targetResource"]["resourceName"], "web");

    // Others have deployments of the same name, and nobody sees those of another.
    assert_eq!(solo.get(deployment("/main")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(deployment("/main")).await.status, StatusCode::NOT_FOUND);
    let theirs = deploy(&client, "main", &[scaled("web", 5)]).await;
    assert_eq!((theirs.status, instances(&client)), (StatusCode::CREATED, 5), "{}", theirs.body);
    for (who, many) in [(&web, 1), (&client, 1), (&solo, 0)] {
        let listed = who.get(deployment("")).await.body;
        assert_eq!(listed["value"].as_array().unwrap().len(), many, "{listed}");
    }
    assert_eq!(web.send("DELETE", &deployment("/main"), Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(web.get(deployment("/main")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(deployment("/main")).await.status, StatusCode::OK);
}

/// promise: S3, Z4
#[tokio::test]
async fn a_template_about_anything_else_is_refused_before_anything_happens() {
    let client = Client::new().await;
    let web = client.of_tenant("web").await;
    let machine = "Microsoft.Compute/virtualMachines";
    for (kind, foreign, absent) in [
        (machine, "solo", "nobody"),
        (machine, "SOLO", "NOBODY"),
        ("Microsoft.Compute/availabilitySets", "solo", "nobody"),
        ("Microsoft.Compute/virtualMachineScaleSets", "solo", "nobody"),
        ("Microsoft.Network/virtualNetworks", "solo", "nobody"),
    ] {
        let mut answers = Vec::new();
        for name in [foreign, absent] {
            for path in ["/main", "/main/validate"] {
                let method = if path == "/main" { "PUT" } else { "POST" };
                let body = template(&[scaled("web", 4), resource(kind, name)]);
                let refused = web.send(method, &deployment(path), body).await;
                assert_eq!(refused.status, StatusCode::FORBIDDEN, "{kind} {name}: {}", refused.body);
                answers.push(refused.body.to_string().replace(name, "NAME"));
            }
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{kind}: {answers:?}");
        assert_eq!(instances(&client), 2, "{kind}: nothing has happened");
        assert_eq!(web.get(deployment("/main")).await.status, StatusCode::NOT_FOUND, "nothing is recorded");
    }
    // What an operator may not do is refused before the rest happens, too.
    let mut changed = scaled("web", 4);
    changed["properties"] = json!({ "upgradePolicy": { "mode": "Automatic" } });
    let refused = deploy(&web, "main", &[changed]).await;
    assert_eq!((refused.status, instances(&client)), (StatusCode::FORBIDDEN, 2), "{}", refused.body);
}

/// promise: S3
#[tokio::test]
async fn a_template_reads_nothing_of_others() {
    let client = Client::new().await;
    let web = client.of_tenant("web").await;
    let network =
        format!("{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Network/virtualNetworks");
    let body = json!({ "location": "local", "properties": {} });
    let made = client.send("PUT", &format!("{network}/net?api-version=2022-01-01"), body).await;
    assert!(made.status.is_success(), "{}", made.body);
    let mut answers = Vec::new();
    for kind_and_names in [
        [("Microsoft.Network/virtualNetworks", "net"), ("Microsoft.Network/virtualNetworks", "nil")],
        [("Microsoft.Compute/virtualMachines", "solo"), ("Microsoft.Compute/virtualMachines", "nil")],
    ] {
        for (kind, name) in kind_and_names {
            let mut set = scaled("web", 4);
            let reference =
                format!("[reference(resourceId('{kind}', '{name}'), '2022-01-01').provisioningState]");
            set["tags"] = json!({ "seen": reference });
            let refused = deploy(&web, "main", &[set]).await;
            assert!(refused.status.is_client_error(), "{kind} {name}: {}", refused.body);
            answers.push(refused.body.to_string().replace(name, "NAME"));
        }
    }
    assert_eq!((&answers[0], &answers[2]), (&answers[1], &answers[3]));
    assert_eq!(instances(&client), 2);
}

/// promise: S3
#[tokio::test]
async fn a_token_of_a_tenant_learns_no_name_by_creating_it() {
    let client = Client::new().await;
    let web = client.of_tenant("web").await;
    let body = |properties: Value| json!({ "location": "local", "properties": properties });
    let create = async |name: &str, properties: Value| {
        web.send("PUT", &own(&format!("virtualMachines/{name}")), body(properties)).await
    };
    let (foreign, absent) = (create("solo", json!({})).await, create("nobody", json!({})).await);
    assert_eq!((foreign.status, absent.status), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    assert_eq!(foreign.body, absent.body);
    // Nor does it take the name of a machine of another tenant for an instance of its own.
    let set = own("virtualMachineScaleSets/web").split('?').next().unwrap().to_owned();
    let taken = create("solo", json!({ "virtualMachineScaleSet": { "id": set } })).await;
    assert_eq!((taken.status, &taken.body), (StatusCode::FORBIDDEN, &absent.body));
    let shown = client.get(own("virtualMachines/solo")).await.body;
    assert!(shown["properties"]["virtualMachineScaleSet"].is_null(), "{shown}");
}
