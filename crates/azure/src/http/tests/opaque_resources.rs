//! Opaque resources and catalogs.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Client, SUBSCRIPTION, group};

fn network(rest: &str) -> String {
    group(&format!("/providers/Microsoft.Network/{rest}"))
}

async fn put(client: &Client, rest: &str, body: Value) -> (StatusCode, Value) {
    let made = client.send("PUT", &network(rest), body).await;
    (made.status, made.body)
}

/// promise: Z4
#[tokio::test]
async fn a_network_is_written_shown_and_forgotten() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({
        "location": "eastus",
        "tags": { "a": "b" },
        "properties": {
            "addressSpace": { "addressPrefixes": ["10.1.0.0/16"] },
            "subnets": [{ "name": "front", "properties": { "addressPrefix": "10.1.2.0/24" } }],
        },
    });
    let (status, made) = put(&client, "virtualNetworks/Net", body).await;
    assert_eq!(
        (status, &made["properties"]["provisioningState"]),
        (StatusCode::CREATED, &json!("Succeeded"))
    );
    assert_eq!(
        made["id"],
        network("virtualNetworks/Net").split('?').next().unwrap().replace("resourcegroups", "resourceGroups")
    );
    // Omitted members stay; a child that is written by itself is in its parent.
    let (status, _) =
        put(&client, "virtualNetworks/net/subnets/back", json!({ "properties": { "x": 1 } })).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, again) = put(&client, "virtualnetworks/NET", json!({ "tags": { "c": "d" } })).await;
    assert_eq!((status, &again["tags"]), (StatusCode::OK, &json!({ "c": "d" })));
    let names: Vec<_> =
        again["properties"]["subnets"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["front", "back"]);
    let front = client.get(&network("virtualNetworks/Net/subnets/FRONT")).await.body;
    assert_eq!(front["properties"]["addressPrefix"], "10.1.2.0/24");
    let subnets = client.get(&network("virtualNetworks/Net/subnets")).await.body;
    assert_eq!(subnets["value"].as_array().unwrap().len(), 2);
    for list in [
        network("virtualNetworks"),
        format!("{SUBSCRIPTION}/providers/microsoft.network/virtualNetworks?api-version=2022-01-01"),
    ] {
        let all = client.get(&list).await.body;
        assert_eq!(all["value"][0]["name"], "Net", "{list}");
    }

    for (filter, count) in [
        ("resourceGroup%20eq%20'MINE'", 1),
        ("resourceType%20eq%20'Microsoft.Network/virtualNetworks'%20and%20name%20eq%20'net'", 1),
        ("resourceGroup%20eq%20'other'", 0),
        ("location%20eq%20'eastus'%20and%20resourceType%20eq%20'Microsoft.Network/loadBalancers'", 0),
    ] {
        let all = client
            .get(&format!("{SUBSCRIPTION}/resources?$filter={filter}&api-version=2024-11-01"))
            .await
            .body;
        assert_eq!(all["value"].as_array().map(Vec::len), Some(count), "{filter}: {all}");
    }
    let strange = client
        .get(&format!("{SUBSCRIPTION}/resources?$filter=tagName%20eq%20'x'&api-version=2024-11-01"))
        .await;
    assert_eq!(strange.body["error"]["target"], "$filter");

    for (target, expected) in [
        ("virtualNetworks/net/subnets/back", StatusCode::OK),
        ("virtualNetworks/net/subnets/back", StatusCode::NO_CONTENT),
        ("virtualNetworks/net", StatusCode::OK),
        ("virtualNetworks/net", StatusCode::NO_CONTENT),
    ] {
        assert_eq!(client.send("DELETE", &network(target), Value::Null).await.status, expected, "{target}");
    }
    assert_eq!(client.get(&network("virtualNetworks")).await.body, json!({ "value": [] }));
}

/// promise: Z4
#[tokio::test]
async fn interfaces_and_public_addresses_have_addresses() {
    let client = Client::new().await;
    client.group().await;
    let subnets = json!([{ "name": "s", "properties": { "addressPrefix": "10.1.2.0/24" } }]);
    let net = json!({ "location": "eastus", "properties": { "subnets": subnets } });
    let (_, net) = put(&client, "virtualNetworks/v", net).await;
    let subnet = &net["properties"]["subnets"][0]["id"];
    let interface = json!({
        "location": "eastus",
        "properties": { "ipConfigurations": [{ "name": "c", "properties": { "subnet": { "id": subnet } } }] },
    });
    for (name, address) in [("n1", "10.1.2.4"), ("n2", "10.1.2.5"), ("n1", "10.1.2.4")] {
        let (_, made) = put(&client, &format!("networkInterfaces/{name}"), interface.clone()).await;
        assert_eq!(
            made["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"], address,
            "{name}"
        );
    }
    for (name, address) in [("p1", "198.18.0.1"), ("p2", "198.18.0.2")] {
        let (_, made) =
            put(&client, &format!("publicIPAddresses/{name}"), json!({ "location": "eastus" })).await;
        assert_eq!(made["properties"]["ipAddress"], address);
    }
}

/// promise: Z4
#[tokio::test]
async fn invalid_opaque_resources_get_arm_errors() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({ "location": "eastus", "properties": {} });
    for (method, rest, body, status, code) in [
        ("GET", "virtualNetworks/v", Value::Null, 404, "ResourceNotFound"),
        ("PUT", "virtualNetworks/v", json!({ "properties": {} }), 400, "LocationRequired"),
        ("PATCH", "virtualNetworks/v", body.clone(), 404, "ResourceNotFound"),
        ("PUT", "virtualNetworks/v/subnets/s", json!({}), 404, "ParentResourceNotFound"),
        ("GET", "virtualNetworks/v/subnets/s", Value::Null, 404, "ResourceNotFound"),
        ("POST", "virtualNetworks/v/nothing", Value::Null, 400, "OperationNotSupported"),
    ] {
        let refused = client.send(method, &network(rest), body).await;
        assert_eq!(refused.status.as_u16(), status, "{method} {rest}: {}", refused.body);
        assert_eq!(refused.body["error"]["code"], code, "{method} {rest}");
    }
    let other = client.get(&group("/providers/Microsoft.Web/sites/x")).await;
    assert_eq!(other.body["error"]["code"], "OperationNotSupported");
}

/// promise: Z4
#[tokio::test]
async fn images_sizes_and_kinds_are_looked_up() {
    let client = Client::new().await;
    let compute = format!("{SUBSCRIPTION}/providers/Microsoft.Compute");
    let image = format!(
        "{compute}/locations/eastus/publishers/Canonical/artifacttypes/vmimage/offers/o/skus/s/versions"
    );
    let versions =
        client.get(&format!("{image}?$top=1&$orderby=name%20desc&api-version=2024-11-01")).await.body;
    let version = versions[0]["name"].as_str().unwrap();
    let one = client.get(&format!("{image}/{version}?api-version=2024-11-01")).await.body;
    assert_eq!((&one["name"], &one["properties"]["plan"]), (&json!(version), &Value::Null));
    for (rest, pointer, expected) in [
        ("/skus?$filter=location%20eq%20'eastus'&", "/value/0/locations/0", json!("eastus")),
        ("/locations/eastus/vmSizes?", "/value/0/numberOfCores", json!(1)),
        ("/locations/eastus/usages?", "/value/1/currentValue", json!(3)),
        ("/locations/eastus/publishers?", "/0/name", json!("Canonical")),
        ("?", "/namespace", json!("Microsoft.Compute")),
    ] {
        let found = client.get(&format!("{compute}{rest}api-version=2024-11-01")).await.body;
        assert_eq!(found.pointer(pointer), Some(&expected), "{rest}: {found}");
    }
    let all = client.get(&format!("{SUBSCRIPTION}/providers?api-version=2021-04-01")).await.body;
    assert!(all["value"].as_array().unwrap().iter().any(|one| one["namespace"] == "Microsoft.Network"));
    let registered = format!("{SUBSCRIPTION}/providers/Contoso.Things/register?api-version=2021-04-01");
    assert_eq!(client.send("POST", &registered, Value::Null).await.body["registrationState"], "Registered");
}

/// promise: Z1
#[tokio::test]
async fn a_disk_is_answered_as_its_clients_expect() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({ "location": "eastus", "properties": { "diskSizeGB": 4 } });
    for (kind, expected) in [
        ("Microsoft.Compute/disks", StatusCode::OK),
        ("Microsoft.Storage/storageAccounts", StatusCode::OK),
        ("Microsoft.Compute/images", StatusCode::CREATED),
    ] {
        let made = client.send("PUT", &group(&format!("/providers/{kind}/x")), body.clone()).await;
        assert_eq!(made.status, expected, "{kind}: {}", made.body);
    }
}
